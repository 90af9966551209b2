"""`ordspan reproduce`: the paper's experiments in one command."""

from typing import Any

from ordspan.cli.app import command, progress_bar
from ordspan.cli.printing import print_table, say, tell
from ordspan.commands.jobs import ReproduceJob

FILES = "results.npz, summary.csv, figure1 and figure2 (png, pdf), claims.csv, report.html"


@command(
    ReproduceJob,
    "--datasets abalone --runs 10 --out quick",
    "Run the same command again to continue.",
)
def reproduce(job: ReproduceJob, json: bool) -> None:
    """Run the paper's experiments: figures, tables, claims and one page.

    After an interruption, run the same command again to continue. The same
    settings give the same bytes in results.npz, whatever --jobs is.
    """
    from ordspan.clock import Clock
    from ordspan.experiments.claims import count_verdicts
    from ordspan.experiments.reproduce import reproduce as run

    clock = Clock()
    with progress_bar(counted=True) as bar:
        task = bar.add_task("starting", total=None)

        def report(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        results, summary, claims = run(job, report)
    folder, counts = job.report_only or job.out, count_verdicts(claims)
    if json:
        tell({"summary": summary, "claims": counts, "out": folder}, json)
        return
    print_summary(summary)
    hold, fail, not_run = counts.values()
    say(f"Of the paper's claims {hold} hold, {fail} do not, {not_run} were not run.")
    took = "" if job.report_only else f" in {clock.seconds():.1f} s"
    say(f"Written to {folder}{took}: {FILES}.")
    say(f"Open {folder}/report.html in a browser.")
    for name, reason in results.settings["unavailable"].items():
        say(f"Not run: {name}: {reason}.")


def print_summary(summary: list[dict[str, Any]]) -> None:
    """Print a table of the errors after the last trial, one row a curve."""
    rows = []
    for row in summary:
        labels = f"{row['labels']} % ranges" if row["labels"] else "exact"
        C = "" if row["C"] is None else f"{row['C']:g}"
        mae = f"{row['mae']:.3f}" + (f" ± {row['sem']:.3f}" if row["runs"] > 1 else "")
        used = f"{row['interval_mae']:.3f}"
        rows.append((row["dataset"], labels, row["algorithm"], C, mae, used))
    title = "Mean absolute error after the last trial (± standard error)"
    heads = ("data set", "labels", "algorithm", "C", "MAE", "MAE to the labels used")
    print_table(title, heads, rows, "data set", "algorithm")
