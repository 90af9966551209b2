"""`ordspan predict`: predict grades for files of any size."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, progress_bar, report_errors
from ordspan.cli.printing import say

if TYPE_CHECKING:
    from ordspan.commands.predict import PredictReport

STDOUT = "-"
OutFile = Annotated[
    str,
    typer.Option(
        help="Output file, .csv, .parquet or .jsonl, which appears when it is complete; - is CSV "
        "on standard output."
    ),
]
KeptColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to copy to the output, such as id; for svmlight label and qid. Columns that "
        "are not features are copied as text from CSV and JSON lines."
    ),
]
Where = Annotated[
    bool,
    typer.Option("--where", help="Also write the file and line (Parquet: row) of every row."),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        "--range",
        help="Also write lower and upper: a range of grades that contains the true one with this "
        "probability, 0.5, 0.8, 0.9, 0.95 or 0.99.",
    ),
]
Proba = Annotated[bool, typer.Option("--proba", help="Also write the probability of every grade.")]
OnBadRow = Annotated[
    str,
    o.one_of(
        "empty",
        "raise",
        help="empty: write the reason instead of a grade; raise: stop at the first bad row.",
    ),
]


@app.command(
    epilog="Example: ordspan predict new.csv --model ratings.ordspan --range 0.9 --out graded.csv"
)
def predict(
    context: typer.Context,
    files: o.Files,
    model: o.TrainedModel,
    out: OutFile = STDOUT,
    keep: KeptColumns = None,
    where: Where = False,
    range_: Coverage = None,
    proba: Proba = False,
    on_bad_row: OnBadRow = "empty",
    format: o.Format = None,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    json: o.AsJson = False,
) -> None:
    """Predict the grade of every row, in order and in bounded memory.

    The output has the kept columns, then prediction (the grade), rank (1 is the lowest), score
    (the latent score) and margin (distance of the score to the nearest threshold, a measure of
    confidence); with --range also lower and upper, with --proba one column per grade, such as
    P(high). Columns are matched by name; extra columns are ignored. There is one output row per
    input row; if a row cannot be predicted, its cells are empty and the column reason says why.
    """
    if json and out == STDOUT:
        raise typer.BadParameter("--json writes to standard output, so give --out a file")
    with report_errors("No file was written." if out != STDOUT else ""):
        from ordspan.commands.predict import PredictJob
        from ordspan.commands.predict import predict as run
        from ordspan.commands.stopping import stoppable

        files, pipe = context.with_resource(o.opened_pipe(files))
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
            bar.disable = True  # the bar would be mixed with the rows
        with bar, stoppable() as stop:
            summary = run(job, out, stop=stop, pipe=pipe, report=bar_report(bar))
        o.print_json(summary) if json else print_summary(summary)


def bar_report(bar: Any) -> PredictReport:
    """A callback that updates the progress bar with the number of rows and the speed."""
    from ordspan.clock import Clock

    clock = Clock()
    task = bar.add_task("reading", total=None)

    def report(rows: int, share: float | None) -> None:
        rate = rows / max(1e-9, clock.seconds())
        o.draw(bar, task, f"{rows:,} rows, {rate:,.0f}/s", share)

    return report


def print_summary(summary: dict[str, Any]) -> None:
    """Print failures and the output path to standard error."""
    if summary["empty"]:
        text = f"{summary['empty']:,} of {summary['rows']:,} rows could not be predicted"
        say(f"{text}; the column reason says why, such as:", err=True)
        for example in summary["empty_examples"]:
            say(f"  {example}", err=True)
    o.print_notes(summary["notes"], err=True)
    if summary["out"] != STDOUT:
        text = f"{summary['rows']:,} rows in {summary['seconds']:.1f} s"
        say(f"{text}, written to {summary['out']}.", err=True)
