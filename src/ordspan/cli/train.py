"""`ordspan train`: a model from files of any size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, progress_bar, told_plainly

if TYPE_CHECKING:
    from ordspan.commands.train import Report


@app.command(epilog="Example: ordspan train ratings.csv --label grade --model ratings.ordspan")
def train(
    files: o.Files,
    model: Annotated[Path, typer.Option(help="Where to write the model.")],
    label: o.Label = None,
    lower: o.Lower = None,
    upper: o.Upper = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="All grades from lowest to highest: low,mid,high or 0..4. Left out, numeric "
            "grades are found by one more pass over the label column."
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to learn from, comma separated (quote a name with a comma); left out, "
            "all others."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to leave out, such as id.")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Columns to take as words though they look like numbers."),
    ] = None,
    hash_bits: Annotated[
        int, typer.Option(min=1, max=24, help="Words are hashed into 2^this many features.")
    ] = 12,
    standardise: Annotated[
        bool, typer.Option(help="Centre and scale numbers by running mean and spread.")
    ] = True,
    variant: Annotated[str, o.one_of("PA", "PA-I", "PA-II", help="PA, PA-I or PA-II.")] = "PA-I",
    c: Annotated[float, typer.Option("--C", "-C", help="Aggressiveness of PA-I and PA-II.")] = 0.1,
    average: Annotated[
        bool, typer.Option(help="Predict with the average of all iterates, or with the last.")
    ] = True,
    balanced: Annotated[
        bool,
        typer.Option(
            help="Let thresholds move as far as scores do, or as the paper has it, which is slow "
            "to learn from many features."
        ),
    ] = True,
    passes: Annotated[int, typer.Option(min=1, help="How often to walk over the files.")] = 1,
    shuffle_buffer: Annotated[
        int, typer.Option(min=0, help="Shuffle rows within windows of this many; 0 keeps order.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the shuffling.")] = 0,
    checkpoint_every: Annotated[
        str,
        typer.Option(
            help="Rows (100000) or time (30s, 5m) between checkpoints.",
            callback=o.checked_interval,
        ),
    ] = "60s",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint of this model.")
    ] = False,
    on_bad_row: o.OnBadRow = "raise",
    format: o.Format = None,
    delimiter: o.Delimiter = ",",
    zero_based: o.ZeroBased = None,
    n_features: Annotated[
        int, typer.Option(min=0, help="Features of svmlight rows; 0 finds them in a first pass.")
    ] = 0,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Train on a Dask cluster, or with local on one of this machine's processors: each "
            "file is a block, each pass a round, with a checkpoint after it.",
        ),
    ] = None,
    json: o.AsJson = False,
) -> None:
    """Train a ranker from files of any size, in bounded memory.

    The label is one column (--label) of grades or ranges, or two (--lower,
    --upper). Everything else is a feature: numbers are standardised online,
    words are hashed.

    A checkpoint beside the model keeps the work safe: after a kill, Ctrl-C or
    SIGTERM, the same command with --resume goes on and ends with the same
    model, to the byte.
    """
    with told_plainly(
        f"What was learned is in {model}.checkpoint; standard input cannot be gone on with."
        if files == ["-"]
        else "The same command with --resume goes on from there."
    ):
        from ordspan.commands.stopping import stoppable
        from ordspan.commands.train import Every, TrainJob
        from ordspan.commands.train import train as run
        from ordspan.files.grades import read_order

        job = TrainJob(
            files,
            label=label,
            lower=lower,
            upper=upper,
            order=None if order is None else read_order(order).tolist(),
            features=None if features is None else o.split_names(features),
            drop=o.split_names(drop),
            text=o.split_names(text),
            hash_bits=hash_bits,
            standardise=standardise,
            on_bad_row=on_bad_row,
            options=o.file_options(format, delimiter, zero_based, n_features),
            variant=variant,
            C=c,
            average=average,
            balanced=balanced,
            passes=passes,
            shuffle_buffer=shuffle_buffer,
            seed=seed,
        )
        every = Every(*o.read_interval(checkpoint_every))
        with progress_bar(counted=False) as bar, stoppable() as stop:
            report = bar_report(bar)
            if dask is None:
                summary = run(job, model, every=every, resume=resume, stop=stop, report=report)
            else:
                from ordspan.commands.train_dask import train_on_dask

                summary = train_on_dask(job, model, dask, resume=resume, stop=stop, report=report)
    o.print_json(summary) if json else print_summary(summary)


def bar_report(bar: Any) -> Report:
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
    """What was trained, in a few lines."""
    mae = ", ".join(f"{value:.4f}" for value in summary["mae"])
    typer.echo(
        f"{summary['rows']:,} rows in {summary['seconds']:.1f} s "
        f"({summary['rows_per_second']:,} a second), {summary['features']} features, "
        f"{len(summary['classes'])} grades."
    )
    typer.echo(f"MAE, each row predicted before it was learned: {mae}.")
    if summary["words"]:
        typer.echo(f"Taken as words, and hashed: {', '.join(summary['words'])}.")
    if summary["skipped"]:
        typer.echo(f"{summary['skipped']} bad rows were skipped, such as:")
        for example in summary["skipped_examples"]:
            typer.echo(f"  {example}")
    typer.echo(f"Written to {summary['model']}.")
