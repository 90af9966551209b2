"""`ordspan train`: a model from files of any size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, progress_bar, report_errors
from ordspan.cli.printing import PrintError, say

if TYPE_CHECKING:
    from ordspan.commands.train_run import TrainReport


OF_MODEL = (
    *("order", "features", "text", "hash_columns", "hash_bits", "standardise", "missing"),
    *("learner", "variant", "c", "average", "balanced", "kernel", "gamma", "degree", "coef0"),
    *("budget", "loss", "tol", "zero_based", "n_features"),
)
"""Options that a finished model decides, so that they cannot be given with --from."""


@app.command(epilog="Example: ordspan train ratings.csv --label grade --model ratings.ordspan")
def train(
    context: typer.Context,
    files: o.Files,
    model: Annotated[Path, typer.Option(help="Where to write the model.")],
    label: o.Label = None,
    lower: o.Lower = None,
    upper: o.Upper = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="All grades from lowest to highest: low,mid,high or 0..4. Left out, they are the "
            "numbers in the label column, or come from an ordered categorical in Parquet or Arrow."
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Go on learning from a finished model: same columns, grades and scaling.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is there already.")
    ] = False,
    hold_out: Annotated[
        float,
        typer.Option(
            min=0, max=0.9, help="Share of the rows to keep from learning and evaluate at the end."
        ),
    ] = 0.0,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to learn from, comma separated (quote a name with a comma); left out, "
            "all others but ids and empty ones."
        ),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Columns to take as words though they look like numbers."),
    ] = None,
    hash_columns: Annotated[
        list[str] | None,
        typer.Option(
            "--hash", help="Columns of words to hash; left out, those with very many words."
        ),
    ] = None,
    hash_bits: Annotated[
        int, typer.Option(min=1, max=24, help="Words are hashed into 2^this many features.")
    ] = 12,
    standardise: Annotated[
        bool, typer.Option(help="Centre and scale numbers by mean and spread.")
    ] = True,
    missing: Annotated[
        str,
        o.one_of(
            "mean",
            "error",
            help="mean: fill a missing number by its column's mean, and mark it; error: a bad row.",
        ),
    ] = "mean",
    learner: Annotated[
        str,
        o.one_of(
            "pa",
            "kernel",
            "svm",
            help="pa: linear, any size; kernel: curved, on a budget of support vectors; svm: the "
            "linear optimum, for rows that fit in memory.",
        ),
    ] = "pa",
    variant: Annotated[
        str | None,
        o.one_of("PA", "PA-I", "PA-II", help="(pa, kernel) PA, PA-I or PA-II; default PA-I."),
    ] = None,
    c: Annotated[
        float | None,
        typer.Option(
            "--C", "-C", help="How far a row may move the model; default 0.1, for kernel 1."
        ),
    ] = None,
    average: Annotated[
        bool | None,
        typer.Option(
            "--average/--no-average",
            help="(pa, kernel) Predict with the average of all iterates (default) or the last.",
            show_default=False,
        ),
    ] = None,
    balanced: Annotated[
        bool | None,
        typer.Option(
            "--balanced/--no-balanced",
            help="(pa) Let thresholds move as far as scores do (default), or as in the paper, "
            "which is slow to learn from many features.",
            show_default=False,
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        o.one_of(
            "rbf",
            "linear",
            "poly",
            "sigmoid",
            help="(kernel) rbf (default), linear, poly or sigmoid.",
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(help="(kernel) distance (default), scale, auto or a number."),
    ] = None,
    degree: Annotated[
        float | None, typer.Option(help="(kernel) Degree of poly; default 3.")
    ] = None,
    coef0: Annotated[
        float | None, typer.Option(help="(kernel) Constant of poly and sigmoid; default 0.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="(kernel) Maximum number of support vectors; default 500."),
    ] = None,
    loss: Annotated[
        str | None,
        o.one_of("hinge", "squared_hinge", help="(svm) hinge or squared_hinge (default)."),
    ] = None,
    tol: Annotated[
        float | None, typer.Option(help="(svm) Relative duality gap; default 0.001.")
    ] = None,
    passes: Annotated[
        int, typer.Option(min=1, help="(pa, kernel) How many passes to make over the files.")
    ] = 1,
    shuffle_buffer: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Read parts of the files in random order and shuffle windows of this many rows; 0 "
            "keeps the order. Left out, rows that come sorted are shuffled.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the shuffling and of what is held out.")
    ] = 0,
    checkpoint_every: Annotated[
        str,
        typer.Option(
            help="Rows (100000) or time (30s, 5m) between checkpoints.",
            callback=o.checked_interval,
        ),
    ] = "60s",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint of this model.")
    ] = False,
    on_bad_row: o.OnBadRow = "raise",
    allow_skipped: o.AllowSkipped = 0.2,
    format: o.Format = None,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    zero_based: o.ZeroBased = None,
    n_features: Annotated[
        int, typer.Option(min=0, help="Features of svmlight rows; 0 finds them in a first pass.")
    ] = 0,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Train on a Dask cluster, or, with local, on all processors of this machine: each "
            "file is a block, each pass a round, with a checkpoint after it.",
        ),
    ] = None,
    json: o.AsJson = False,
) -> None:
    """Train a ranker from files of any size, in bounded memory.

    The label is one column (--label) of grades or ranges, or two (--lower,
    --upper). Everything else is a feature: numbers are standardised, each
    word of a column with few words is a feature, and gaps are filled. The
    files are inspected first, and the command prints what it decided.

    A checkpoint beside the model keeps the work safe: after a kill, Ctrl-C or
    SIGTERM, the same command with --resume goes on and ends with the same
    model, to the byte.
    """
    with report_errors(context, lambda: how_to_go_on(model, is_pipe=files == [o.STDIN])):
        from ordspan.commands.stopping import stoppable
        from ordspan.commands.train import Every, TrainJob
        from ordspan.commands.train import train as run
        from ordspan.files.grades import read_order

        refuse_with(context, start is not None, OF_MODEL, "--from, because the model decides it")
        refuse_with(context, learner == "svm", ("passes",), "--learner svm")
        given = {
            "variant": variant,
            "C": c,
            "average": average,
            "balanced": balanced,
            "kernel": kernel,
            "gamma": None if gamma is None else read_gamma(gamma),
            "degree": degree,
            "coef0": coef0,
            "budget": budget,
            "loss": loss,
            "tol": tol,
        }
        files = context.with_resource(o.opened_pipe(files))
        job = TrainJob(
            files,
            label=label,
            lower=lower,
            upper=upper,
            order=None if order is None else read_order(order).tolist(),
            features=None if features is None else o.split_names(features),
            drop=o.split_names(drop),
            text=o.split_names(text),
            hashed=o.split_names(hash_columns),
            hash_bits=hash_bits,
            standardise=standardise,
            missing=missing,
            on_bad_row=on_bad_row,
            options=o.file_options(format, delimiter, decimal, encoding, zero_based, n_features),
            learner=learner,
            parameters={name: value for name, value in given.items() if value is not None},
            passes=passes,
            shuffle_buffer=shuffle_buffer,
            seed=seed,
            hold_out=hold_out,
            allow_skipped=allow_skipped,
            start=None if start is None else str(start),
        )
        every = Every(*o.read_interval(checkpoint_every))
        more: dict[str, Any] = {"resume": resume, "overwrite": overwrite}
        with progress_bar(counted=False) as bar, stoppable() as stop:
            report = bar_report(bar)
            if dask is None:
                summary = run(job, model, every=every, stop=stop, report=report, **more)
            else:
                from ordspan.commands.train_dask import train_on_dask

                summary = train_on_dask(job, model, dask, stop=stop, report=report, **more)
        try:
            o.print_json(summary) if json else print_summary(summary)
        except PrintError as error:
            raise PrintError(f"{error}. The model was written to {model}") from None


def how_to_go_on(model: Path, *, is_pipe: bool) -> str:
    """What an interrupted user can do, if something was learned already."""
    checkpoint = model.with_name(f"{model.name}.checkpoint")
    if not checkpoint.exists():
        return "Nothing was learned yet."
    if is_pipe:
        return f"{checkpoint} has what was learned; training from a pipe cannot be resumed."
    return "The same command with --resume goes on from there."


def refuse_with(context: typer.Context, so: bool, names: tuple[str, ...], what: str) -> None:
    """Refuse options that would do nothing."""
    for parameter in context.command.params if so else ():
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"{parameter.opts[0]} cannot be given with {what}")


def read_gamma(text: str) -> str | float:
    """A rule by name, or a number.

    >>> read_gamma("scale"), read_gamma("0.5")
    ('scale', 0.5)
    """
    if text in ("distance", "scale", "auto"):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--gamma takes distance, scale, auto or a number, got {text!r}") from None


def bar_report(bar: Any) -> TrainReport:
    """A function that draws how far the training has come."""
    from ordspan.clock import Clock

    clock = Clock()
    task = bar.add_task("reading", total=None)
    at_start: list[int] = []  # rows that a resumed run had learned before

    def report(learned: int, mae: float, share: float | None) -> None:
        if not at_start:
            at_start.append(learned)
        rate = (learned - at_start[0]) / max(1e-9, clock.seconds())
        o.draw(bar, task, f"{learned:,} rows, {rate:,.0f}/s, MAE {mae:.3f}", share)

    return report


def print_summary(summary: dict[str, Any]) -> None:
    """What was trained, in a few lines, and whether it is any good."""
    from ordspan.commands.tally import compared

    say(
        f"{summary['rows']:,} rows in {summary['seconds']:.1f} s "
        f"({summary['rows_per_second']:,} a second), {summary['features']} "
        f"feature{'s' * (summary['features'] != 1)}, "
        f"{len(summary['classes'])} grades."
    )
    o.print_notes(summary["notes"])
    o.print_skipped(summary)
    mae = ", ".join(f"{value:.4f}" for value in summary["mae"])
    if mae:
        say(f"MAE, each row predicted before it was learned: {mae}.")
    held_out, constant = summary["held_out"], summary["constant"]
    if held_out is not None:
        best = held_out["best_constant"]["mae"]
        say(f"On {held_out['rows']:,} rows that were held out:")
        say("  " + compared(held_out["mae"], best["value"], best["grade"]))
    elif summary["mae"] and constant:  # of the first pass: later ones have seen the rows
        say(compared(summary["mae"][0], constant["mae"], constant["grade"]))
    if (fitted := summary["fitted_mae"]) is not None:
        say("On the rows that it was fitted to:")
        say("  " + compared(fitted, constant["mae"], constant["grade"]))
    say(f"Written to {summary['model']}.")
