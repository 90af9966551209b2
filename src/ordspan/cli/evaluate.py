"""`ordspan evaluate`: measure a model on files."""

from __future__ import annotations

from typing import Any

from ordspan.cli.app import prints
from ordspan.cli.printing import print_notes, print_skipped, say, show, table
from ordspan.commands.jobs import EvaluateJob

MAX_COLUMNS = 12
"""Largest confusion matrix to print."""

MEASURES = (
    ("mae", "MAE", False),
    ("macro_mae", "macro MAE", True),
    ("accuracy", "accuracy", True),
    ("inside_interval", "inside the range", False),
    ("quadratic_kappa", "quadratic kappa", True),
)
"""Name, title, and whether it covers exact labels only."""
PROBABILITY_MEASURES = {"rps": "RPS", "log_score": "log score"}
"""Name and title of the measures of probabilities."""


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
    from ordspan.commands.evaluate import NO_PROBABILITIES, range_table, verdict

    show(measures_table(summary))
    if summary["probabilities"]:
        show(table("Ranges by coverage", *range_table(summary)))
    if summary["exact_rows"]:
        if len(summary["classes"]) <= MAX_COLUMNS:
            show(confusion_table(summary))
        else:
            say(
                f"The confusion matrix of {len(summary['classes'])} grades is too wide to print: "
                "see it with --html or --json."
            )
    if not summary["probabilities"]:
        say(NO_PROBABILITIES)
    without = (summary["ndcg"] or {}).get("queries_without_relevant_rows")
    if without:
        say(f"Queries left out of NDCG, without a row above the lowest grade: {without:,}.")
    print_skipped(summary)
    print_notes(summary["notes"])
    say(verdict(summary))
    if "page" in summary:
        say(f"Written to {summary['page']}; open it in a browser.")


def measures_table(summary: dict[str, Any]) -> Any:
    """One line for each measure."""
    from ordspan.commands.evaluate import constant_text, describe_files

    rows, exact = f"{summary['rows']:,} rows", f"{summary['exact_rows']:,} exact labels"
    lines = []
    for name, title, of_exact in MEASURES:
        constant = constant_text(summary["best_constant"][name], "{:.4f}".format)
        lines.append((title, summary[name], constant, exact if of_exact else rows))
    if (found := summary["probabilities"]) is not None:
        for name, title in PROBABILITY_MEASURES.items():
            constant = f"{found['best_constant'][name]:.4f} (same for all)"
            lines.append((title, found[name], constant, rows))
    if (ndcg := summary["ndcg"]) is not None:
        over = f"{ndcg['queries'] - ndcg['queries_without_relevant_rows']:,} queries"
        lines += [(f"NDCG@{cut}", ndcg[f"ndcg@{cut}"], "–", over) for cut in (1, 5, 10)]
    shown = [
        (title, "–" if value is None else f"{value:.4f}", constant, over)
        for title, value, constant, over in lines
    ]
    title = f"{summary['model']} on {describe_files(summary['files'])}"
    heads = ("measure", "model", "best constant", "over")
    return table(title, heads, shown, "measure", "best constant", "over")


def confusion_table(summary: dict[str, Any]) -> Any:
    """Confusion matrix: true grades down, predicted grades across."""
    names = [str(grade) for grade in summary["classes"]]
    rows = [
        [name, *(f"{count:,}" for count in counts)]
        for name, counts in zip(names, summary["confusion"], strict=True)
    ]
    title = "Rows by true grade (down) and predicted grade (across)"
    return table(title, ["true", *names], rows, "true")
