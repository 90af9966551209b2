"""`ordspan evaluate`: how well a model grades the rows of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, progress_bar, told_plainly

if TYPE_CHECKING:
    from ordspan.commands.evaluate import Report
    from ordspan.commands.tally import Tally

MOST_COLUMNS = 12
"""A confusion matrix of more grades is too wide to print."""


@app.command(epilog="Example: ordspan evaluate ratings.csv --model ratings.ordspan")
def evaluate(
    files: o.Files,
    model: Annotated[Path, typer.Option(help="A model that ordspan train wrote.")],
    label: o.Label = None,
    lower: o.Lower = None,
    upper: o.Upper = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column with the query of each row, for NDCG; svmlight has its qid."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE.html", help="Also write a web page with plots.")
    ] = None,
    on_bad_row: o.OnBadRow = "raise",
    format: o.Format = None,
    delimiter: o.SameDelimiter = None,
    json: o.AsJson = False,
) -> None:
    """Measure how well a model grades the rows of files, in bounded memory.

    Labels are taken from the columns of the training, or from those named
    here. The MAE is the mean distance in grades to the label or its range;
    macro MAE, accuracy, kappa and the confusion matrix are over the rows
    with an exact label.

    NDCG at 1, 5 and 10 is the mean over the queries with a relevant row, one
    above the lowest grade. Gains are 2^(rank-1)-1, equal scores share their
    places, and rows labelled by a range are left out. The rows of a query
    must stand together.
    """
    with told_plainly():
        from ordspan.commands.evaluate import EvaluateJob
        from ordspan.commands.evaluate import evaluate as run
        from ordspan.commands.stopping import stoppable

        separator = None if delimiter is None else o.read_delimiter(delimiter)
        job = EvaluateJob(files, model, label, lower, upper, group, on_bad_row, format, separator)
        with progress_bar(counted=False) as bar, stoppable():
            summary = run(job, page=html, report=bar_report(bar))
        o.print_json(summary) if json else print_tables(summary)


def bar_report(bar: Any) -> Report:
    """A function that draws how far the reading has come."""
    task = bar.add_task("reading", total=None)

    def report(tally: Tally, share: float | None) -> None:
        told = f"{tally.rows:,} rows, MAE {tally.loss / tally.rows:.3f}"
        o.draw(bar, task, told, share)

    return report


def print_tables(summary: dict[str, Any]) -> None:
    """The measures, the confusion matrix, and what was left out."""
    from rich.console import Console

    console = Console()
    console.print(measures_table(summary))
    if summary["exact_rows"]:
        if len(summary["classes"]) <= MOST_COLUMNS:
            console.print(confusion_table(summary))
        else:
            typer.echo(
                f"The confusion matrix of {len(summary['classes'])} grades is too wide to print: "
                "see it with --html or --json."
            )
    if summary["skipped"]:
        typer.echo(f"Bad rows skipped: {summary['skipped']:,}, such as:")
        for example in summary["skipped_examples"]:
            typer.echo(f"  {example}")
    if "page" in summary:
        typer.echo(f"Written to {summary['page']}; open it in a browser.")


def measures_table(summary: dict[str, Any]) -> Any:
    """One line for each measure."""
    from rich.markup import escape
    from rich.table import Table

    from ordspan.commands.evaluate import files_told

    exact = f"{summary['exact_rows']:,} rows with an exact label"
    rows = f"{summary['rows']:,} rows"
    lines = [
        ("MAE", summary["mae"], rows),
        ("macro MAE", summary["macro_mae"], exact),
        ("accuracy", summary["accuracy"], exact),
        ("inside the interval", summary["inside_interval"], rows),
        ("quadratic kappa", summary["quadratic_kappa"], exact),
    ]
    if (ndcg := summary["ndcg"]) is not None:
        without = ndcg["queries_without_relevant_rows"]
        over = f"{ndcg['queries'] - without:,} queries, {without:,} more without a relevant row"
        lines += [(f"NDCG@{cut}", ndcg[f"ndcg@{cut}"], over) for cut in (1, 5, 10)]
    table = Table(title=escape(f"{summary['model']} on {files_told(summary['files'])}"))
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("over")
    for name, value, over in lines:
        table.add_row(name, "–" if value is None else f"{value:.4f}", over)
    return table


def confusion_table(summary: dict[str, Any]) -> Any:
    """True grades down, predicted ones across."""
    from rich.markup import escape
    from rich.table import Table

    names = [escape(str(grade)) for grade in summary["classes"]]
    table = Table(title="Rows by true grade (down) and predicted grade (across)")
    table.add_column("true")
    for name in names:
        table.add_column(name, justify="right")
    for name, counts in zip(names, summary["confusion"], strict=True):
        table.add_row(name, *(f"{count:,}" for count in counts))
    return table
