"""`ordspan train`: a model from files of any size."""

from typing import Any

from ordspan.cli.app import prints
from ordspan.cli.printing import print_notes, print_skipped, say
from ordspan.commands.jobs import TrainJob
from ordspan.wording import plural

MAX_GRADES = 10
"""Grades to print."""


@prints(
    TrainJob,
    "ratings.csv --label grade --model ratings.ordspan",
    "If there is a checkpoint beside the model, --resume continues it.",
)
def train(summary: dict[str, Any]) -> None:
    """Train a model from files of any size, in bounded memory.

    The label is one column (--label) of grades or ranges, or two columns
    (--lower, --upper). All other columns are features: numbers are
    standardised, text with few distinct values is one-hot encoded, and
    missing values are filled in. The command inspects the files first and
    prints what it decided.

    A checkpoint is kept next to the model. After a crash, Ctrl-C or SIGTERM,
    run the same command with --resume: it ends with the same model, byte for
    byte.
    """
    from ordspan.commands.evaluate import compared, shown_range

    ranges, classes = summary["ranges"], [str(grade) for grade in summary["classes"]]
    passes, n_classes = max(1, len(summary["mae"])), len(classes)
    if n_classes > MAX_GRADES + 2:
        classes = [*classes[:MAX_GRADES], "...", classes[-1]]
    say(
        f"{summary['rows'] // passes:,} rows"
        f"{f', {ranges // passes:,} of them ranges,' * (ranges > 0)}"
        f"{f' in {passes} passes,' * (passes > 1)} in "
        f"{summary['seconds']:.1f} s, {plural(summary['features'], 'feature')}, "
        f"{n_classes} grades: {', '.join(classes)}."
    )
    print_notes(summary["notes"])
    print_skipped(summary)
    mae, held_out, constant = summary["mae"], summary["held_out"], summary["constant"]
    if mae and constant:  # later passes have seen the rows
        say("Each row predicted before it was learned:")
        say("  " + compared(mae[0], constant["mae"], constant["grade"]))
    if len(mae) > 1:
        say(f"MAE of pass {len(mae)}, whose rows were seen before: {mae[-1]:.4f}.")
    if held_out is not None:
        best = held_out["best_constant"]["mae"]
        say(f"On {held_out['rows']:,} held-out rows:")
        say("  " + compared(held_out["mae"], best["value"], best["grade"]))
        shown = shown_range(held_out["ranges"])
        say(
            f"  {100 * shown['coverage']:.0f} % ranges hold the grade of "
            f"{100 * shown['expected']:.1f} % of the rows and span {shown['mean_width']:.1f} "
            "grades on average."
        )
    if (fitted := summary["fitted_mae"]) is not None:
        say("On the training rows:")
        say("  " + compared(fitted, constant["mae"], constant["grade"]))
    if (leak := summary["explained_by"]) is not None:
        say(
            f"{leak['column']!r} alone explains {100 * leak['share']:.0f} % of this; is it known "
            "before the grade is?"
        )
    say(f"Written to {summary['model']}.")
