"""`ordspan evaluate`: measure a model on files."""

from typing import Any

from ordspan.cli.app import prints
from ordspan.cli.printing import print_notes, print_skipped, print_table, say
from ordspan.commands.jobs import EvaluateJob

MOST_CHARACTERS = 70
"""Of the names of the grades above a confusion matrix."""


@prints(EvaluateJob, "ratings.csv --model ratings.ordspan")
def evaluate(summary: dict[str, Any]) -> None:
    """Measure how well a model grades the rows of files, in bounded memory.

    Labels are read from the columns used in training, or from those named
    here. MAE is the mean distance in grades to the label or its range;
    macro MAE, accuracy, kappa and the confusion matrix cover the rows with
    an exact label. Rows without a label are left out. Each measure is shown
    next to the best constant: the best value for predicting the same grade
    for every row.

    RPS is the ranked probability score and the log score the mean of
    -ln P(label); 0 is best for both, and the best constant is the same
    probabilities for every row. Ranges are counted for each coverage of
    predict --range. If a label is itself a range, the true grade is unknown:
    the share of predicted ranges that contain it lies between the share that
    contain the whole label and the share that overlap it. The expected share
    follows from the probabilities of the model.

    NDCG at 1, 5 and 10 is the mean over queries with a relevant row, one
    above the lowest grade. Gains are 2^(rank-1)-1, tied scores share their
    positions, and rows labelled by a range are ignored. The rows of a query
    must be consecutive.
    """
    from ordspan.commands.evaluate import describe_files, measures, range_table, verdict

    title = f"{summary['model']} on {describe_files(summary['files'])}"
    heads = ("measure", "model", "best constant", "over")
    print_table(title, heads, [row[:4] for row in measures(summary)], *heads[::2], "over")
    print_table("Ranges by coverage", *range_table(summary))
    names = [str(grade) for grade in summary["classes"]]
    wide = sum(len(name) + 3 for name in names) > MOST_CHARACTERS
    if summary["exact_rows"] and wide:
        say(
            f"The confusion matrix of {len(names)} grades is too wide to print: see it with --html "
            "or --json."
        )
    elif summary["exact_rows"]:
        counts = zip(names, summary["confusion"], strict=True)
        rows = [[name, *(f"{n:,}" for n in row)] for name, row in counts if any(row)]
        title = "Rows by true grade (down) and predicted grade (across)"
        print_table(title, ["true", *names], rows, "true")
    print_skipped(summary)
    print_notes(summary["notes"])
    say(verdict(summary))
    if "page" in summary:
        say(f"Written to {summary['page']}; open it in a browser.")
