"""Options of `ordspan annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ordspan.cli.options import one_of

ItemsFile = Annotated[
    Path | None,
    typer.Argument(
        help="A table of items: CSV, JSON lines, Parquet, Arrow or Excel. Remembered by the state "
        "folder."
    ),
]
Grades = Annotated[
    str | None,
    typer.Option(help="The grades from lowest to highest, such as 1..5 or low,mid,high."),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="Column with the id of each item; by default the row number."),
]
Drop = Annotated[list[str] | None, typer.Option(help="Columns to show but not to learn from.")]
Hide = Annotated[list[str] | None, typer.Option(help="Columns to neither show nor learn from.")]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(help="Columns to treat as text even if they look like numbers."),
]
QuestionText = Annotated[str, typer.Option(help="The question shown with each item.")]
ShowGuess = Annotated[
    str,
    one_of(
        "half",
        "show",
        "hide",
        help="Show the model's guess for a random half of the items, so that its influence on the "
        "answers can be measured (half), for all (show) or for none (hide).",
    ),
]
ExportFile = Annotated[
    str | None,
    typer.Option(
        help="Write all answers to a .csv, .parquet or .jsonl file and exit; - is CSV on standard "
        "output."
    ),
]
PageToken = Annotated[
    Path | None,
    typer.Option(help="File with a secret that users must enter on the page."),
]
OpenPage = Annotated[
    bool | None,
    typer.Option(
        "--open/--no-open",
        help="Open the page in a browser; by default if run in a terminal.",
        show_default=False,
    ),
]
