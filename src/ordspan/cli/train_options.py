"""Options of `ordspan train`, in the groups that its help shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ordspan.cli.options import COLUMNS, FILES, LEARNER, RUNNING, checked_interval, one_of

Model = Annotated[Path, typer.Option(help="Where to write the model.")]

Grades = Annotated[
    str | None,
    typer.Option(
        help="All grades from lowest to highest: low,mid,high or 0..4. By default the numbers in "
        "the label column, or the order of a categorical column in Parquet or Arrow.",
        rich_help_panel=COLUMNS,
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to learn from, comma separated (quote a name that contains a comma). By "
        "default all others except ids and empty columns.",
        rich_help_panel=COLUMNS,
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Columns to leave out.", rich_help_panel=COLUMNS)
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to treat as text even if they look like numbers.", rich_help_panel=COLUMNS
    ),
]
HashColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--hash",
        help="Text columns to hash. By default those with very many distinct values.",
        rich_help_panel=COLUMNS,
    ),
]
HashBits = Annotated[
    int,
    typer.Option(
        min=1, max=24, help="Hash text into 2^this many features.", rich_help_panel=COLUMNS
    ),
]
Standardise = Annotated[
    bool,
    typer.Option(
        help="Scale numbers to zero mean and unit standard deviation.", rich_help_panel=COLUMNS
    ),
]
Missing = Annotated[
    str,
    one_of(
        "mean",
        "error",
        help="Missing numbers. mean: fill in the mean of the column and add an indicator feature; "
        "error: treat the row as a bad row.",
        panel=COLUMNS,
    ),
]

LearnerName = Annotated[
    str,
    one_of(
        "pa",
        "kernel",
        "svm",
        help="pa: linear, any size; kernel: non-linear, with a budget of support vectors; svm: "
        "the linear optimum, for data that fits in memory.",
        panel=LEARNER,
    ),
]
Variant = Annotated[
    str | None,
    one_of(
        "PA", "PA-I", "PA-II", help="(pa, kernel) PA, PA-I or PA-II; default PA-I.", panel=LEARNER
    ),
]
C = Annotated[
    float | None,
    typer.Option(
        "--C",
        "-C",
        help="Aggressiveness: how far one row may move the model; default 0.1, kernel 1.",
        rich_help_panel=LEARNER,
    ),
]
Average = Annotated[
    bool | None,
    typer.Option(
        "--average/--no-average",
        help="(pa, kernel) Predict with the average of all iterates (default) or the last.",
        show_default=False,
        rich_help_panel=LEARNER,
    ),
]
Balanced = Annotated[
    bool | None,
    typer.Option(
        "--balanced/--no-balanced",
        help="(pa) Let thresholds move as far as scores (default), or as in the paper, which "
        "learns slowly from many features.",
        show_default=False,
        rich_help_panel=LEARNER,
    ),
]
Kernel = Annotated[
    str | None,
    one_of(
        "rbf",
        "linear",
        "poly",
        "sigmoid",
        help="(kernel) rbf (default), linear, poly or sigmoid.",
        panel=LEARNER,
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option(
        help="(kernel) distance (default), scale, auto or a number.", rich_help_panel=LEARNER
    ),
]
Degree = Annotated[
    float | None,
    typer.Option(help="(kernel) Degree of poly; default 3.", rich_help_panel=LEARNER),
]
Coef0 = Annotated[
    float | None,
    typer.Option(help="(kernel) Constant of poly and sigmoid; default 0.", rich_help_panel=LEARNER),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="(kernel) Maximum number of support vectors; default 500.",
        rich_help_panel=LEARNER,
    ),
]
Loss = Annotated[
    str | None,
    one_of(
        "hinge",
        "squared_hinge",
        help="(svm) hinge or squared_hinge (default).",
        panel=LEARNER,
    ),
]
Tol = Annotated[
    float | None,
    typer.Option(help="(svm) Relative duality gap; default 0.001.", rich_help_panel=LEARNER),
]
Passes = Annotated[
    int,
    typer.Option(
        min=1, help="(pa, kernel) Number of passes over the files.", rich_help_panel=LEARNER
    ),
]
Shuffle = Annotated[
    bool | None,
    typer.Option(
        "--shuffle/--no-shuffle",
        help="Whether to learn the rows in random order; by default, only if they are sorted.",
        show_default=False,
        rich_help_panel=LEARNER,
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, help="Seed for shuffling and for --hold-out.", rich_help_panel=LEARNER),
]
HoldOut = Annotated[
    float,
    typer.Option(
        min=0,
        max=0.9,
        help="Share of the rows to hold out from training and evaluate on at the end.",
        rich_help_panel=LEARNER,
    ),
]

Start = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="MODEL",
        help="Continue training a finished model: same columns, grades and scaling.",
        rich_help_panel=RUNNING,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing model.", rich_help_panel=RUNNING)
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Resume from the checkpoint of this model.", rich_help_panel=RUNNING
    ),
]
CheckpointEvery = Annotated[
    str,
    typer.Option(
        help="Rows (100000) or time (30s, 5m) between checkpoints.",
        callback=checked_interval,
        rich_help_panel=RUNNING,
    ),
]
DaskAddress = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Train on a Dask cluster, or with local on all processors of this machine. Each file "
        "is a block and each pass a round, with a checkpoint after it.",
        rich_help_panel=RUNNING,
    ),
]

NFeatures = Annotated[
    int,
    typer.Option(
        min=0,
        help="Number of features in svmlight files; 0 counts them in a first pass.",
        rich_help_panel=FILES,
    ),
]
