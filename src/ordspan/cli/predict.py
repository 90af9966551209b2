"""`ordspan predict`: predict grades for files of any size."""

from typing import Any

from ordspan.cli.app import prints
from ordspan.cli.printing import print_notes, say
from ordspan.commands.jobs import STDOUT, PredictJob


@prints(
    PredictJob,
    "new.csv --model ratings.ordspan --range 0.9 --out graded.csv",
    "No file was written.",
)
def predict(summary: dict[str, Any]) -> None:
    """Predict the grade of every row, in order and in bounded memory.

    The output has the kept columns, then prediction (the grade), rank (1 is the lowest), score
    (the latent score) and margin (distance of the score to the nearest threshold, a measure of
    confidence); with --range also lower and upper, with --proba one column per grade, such as
    P(high). Columns are matched by name; extra columns are ignored. There is one output row per
    input row; if a row cannot be predicted, its cells are empty and the column reason says why.
    """
    if summary["empty"]:
        text = f"{summary['empty']:,} of {summary['rows']:,} rows could not be predicted"
        say(f"{text}; the column reason says why, such as:", err=True)
        for example in summary["empty_examples"]:
            say(f"  {example}", err=True)
    print_notes(summary["notes"], err=True)
    if summary["out"] != STDOUT:
        text = f"{summary['rows']:,} rows in {summary['seconds']:.1f} s"
        say(f"{text}, written to {summary['out']}.", err=True)
