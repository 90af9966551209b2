"""`ordspan predict`: grades for the rows of files of any size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, progress_bar, report_errors
from ordspan.cli.printing import say

if TYPE_CHECKING:
    from ordspan.commands.predict import PredictReport

STDOUT = "-"


@app.command(
    epilog="Example: ordspan predict new.csv --model ratings.ordspan --range 0.9 --out graded.csv"
)
def predict(
    context: typer.Context,
    files: o.Files,
    model: Annotated[Path, typer.Option(help="A model that ordspan train wrote.")],
    out: Annotated[
        str,
        typer.Option(
            help="A file that ends with .csv, .parquet or .jsonl; it appears when it is complete. "
            "Left out or -, CSV on standard output."
        ),
    ] = STDOUT,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to carry along, such as id; of svmlight rows label and qid. Columns "
            "that are not features of the model are copied as text from CSV and JSON lines."
        ),
    ] = None,
    where: Annotated[
        bool,
        typer.Option("--where", help="Also write file and line (row of Parquet) of every row."),
    ] = False,
    range_: Annotated[
        float | None,
        typer.Option(
            "--range",
            help="Also write lower and upper: the range of grades that holds the true one so "
            "often, 0.5, 0.8, 0.9, 0.95 or 0.99.",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also write the probability of every grade.")
    ] = False,
    on_bad_row: Annotated[
        str,
        o.one_of(
            "empty",
            "raise",
            help="empty: bad rows get no grade, but the reason; raise: end with a message.",
        ),
    ] = "empty",
    format: o.Format = None,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    json: o.AsJson = False,
) -> None:
    """Predict the grade of every row, in order and in bounded memory.

    Written are the kept columns and then prediction (the grade), rank (1 is the lowest), score
    (the latent score) and margin (its distance to the nearest threshold: how sure the grade is);
    with --range lower and upper, with --proba a column for every grade, such as P(high).
    The columns of the model are found by name; others do no harm. There is one row for every row
    that was read: one that cannot be predicted is empty, and the column reason says why.
    """
    if json and out == STDOUT:
        raise typer.BadParameter("--json writes to standard output, so give --out a file")
    with report_errors(context, "No file was written." if out != STDOUT else ""):
        from ordspan.commands.predict import PredictJob
        from ordspan.commands.predict import predict as run
        from ordspan.commands.stopping import stoppable

        files = context.with_resource(o.opened_pipe(files))
        job = PredictJob(
            files,
            str(model),
            o.split_names(keep),
            where,
            range_,
            proba,
            on_bad_row,
            o.file_options(format, delimiter, decimal, encoding),
        )
        bar = progress_bar(counted=False)
        if out == STDOUT and sys.stdout.isatty():
            bar.disable = True  # it would be drawn among the rows
        with bar, stoppable() as stop:
            summary = run(job, out, stop=stop, report=bar_report(bar))
        o.print_json(summary) if json else print_summary(summary)


def bar_report(bar: Any) -> PredictReport:
    """A function that draws how many rows are done, and how fast."""
    from ordspan.clock import Clock

    clock = Clock()
    task = bar.add_task("reading", total=None)

    def report(rows: int, share: float | None) -> None:
        rate = rows / max(1e-9, clock.seconds())
        o.draw(bar, task, f"{rows:,} rows, {rate:,.0f}/s", share)

    return report


def print_summary(summary: dict[str, Any]) -> None:
    """What could not be predicted and what was written, on standard error."""
    if summary["empty"]:
        told = f"{summary['empty']:,} of {summary['rows']:,} rows could not be predicted"
        say(f"{told}; the column reason says why, such as:", err=True)
        for example in summary["empty_examples"]:
            say(f"  {example}", err=True)
    o.print_notes(summary["notes"], err=True)
    if summary["out"] != STDOUT:
        told = f"{summary['rows']:,} rows in {summary['seconds']:.1f} s"
        say(f"{told}, written to {summary['out']}.", err=True)
