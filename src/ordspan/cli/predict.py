"""`ordspan predict`: predict grades for files of any size."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import typer

from ordspan.cli.app import bar_report, command, progress_bar, report_errors
from ordspan.cli.printing import print_json, print_notes, say
from ordspan.commands.jobs import STDOUT, PredictJob


@command(PredictJob, "new.csv --model ratings.ordspan --range 0.9 --out graded.csv")
def predict(job: PredictJob, json: bool, pipe: BinaryIO | None) -> None:
    """Predict the grade of every row, in order and in bounded memory.

    The output has the kept columns, then prediction (the grade), rank (1 is the lowest), score
    (the latent score) and margin (distance of the score to the nearest threshold, a measure of
    confidence); with --range also lower and upper, with --proba one column per grade, such as
    P(high). Columns are matched by name; extra columns are ignored. There is one output row per
    input row; if a row cannot be predicted, its cells are empty and the column reason says why.
    """
    if json and job.out == STDOUT:
        raise typer.BadParameter("--json writes to standard output, so give --out a file")
    with report_errors("No file was written." if job.out != STDOUT else ""):
        from ordspan.commands.predict import predict as run
        from ordspan.commands.stopping import stoppable

        bar = progress_bar(counted=False)
        if job.out == STDOUT and sys.stdout.isatty():
            bar.disable = True  # the bar would be mixed with the rows
        with bar, stoppable() as stop:
            summary = run(job, stop=stop, pipe=pipe, report=bar_report(bar))
        print_json(summary) if json else print_summary(summary)


def print_summary(summary: dict[str, Any]) -> None:
    """Print failures and the output path to standard error."""
    if summary["empty"]:
        text = f"{summary['empty']:,} of {summary['rows']:,} rows could not be predicted"
        say(f"{text}; the column reason says why, such as:", err=True)
        for example in summary["empty_examples"]:
            say(f"  {example}", err=True)
    print_notes(summary["notes"], err=True)
    if summary["out"] != STDOUT:
        text = f"{summary['rows']:,} rows in {summary['seconds']:.1f} s"
        say(f"{text}, written to {summary['out']}.", err=True)
