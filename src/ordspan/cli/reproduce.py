"""`ordspan reproduce`: the paper's experiments in one command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ordspan.cli.app import command, progress_bar, report_errors
from ordspan.cli.printing import print_json, say, show, table
from ordspan.commands.jobs import ReproduceJob

if TYPE_CHECKING:
    from ordspan.experiments.reproduce import Outcome

REPORT_FILES = "results.npz, summary.csv, figure1 and figure2 (png, pdf), claims.md, report.html"


@command(ReproduceJob, "--datasets abalone --runs 10 --out quick")
def reproduce(job: ReproduceJob, json: bool) -> None:
    """Run the paper's experiments: figures, tables, claims and one page.

    After an interruption, run the same command again to continue. The same settings give the same
    bytes in results.npz, whatever --jobs is.
    """
    with report_errors(lambda: "Run the same command again to continue."):
        from ordspan.clock import Clock
        from ordspan.datasets import NAMES
        from ordspan.experiments.protocol import ALGORITHMS, CITED_ALGORITHMS
        from ordspan.experiments.reproduce import load_datasets, write_outputs
        from ordspan.experiments.runner import Plan, run

        if job.report_only is not None:
            finish(write_outputs(Path(job.report_only)), job.report_only, "", json)
            return
        clock, out = Clock(), Path(job.out)
        check_names(job.datasets, NAMES, "data set")
        check_names(job.algorithms, ALGORITHMS + CITED_ALGORITHMS, "algorithm")
        check_folder(out)
        with progress_bar(counted=True) as bar:
            data_dir = None if job.data_dir is None else Path(job.data_dir)
            datasets, missing = load_datasets(tuple(dict.fromkeys(job.datasets)) or None, data_dir)
            if not datasets:
                reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
                raise LookupError(f"nothing to run. {reasons}")
            out.mkdir(parents=True, exist_ok=True)
            task = bar.add_task("starting", total=None)
            run(
                Plan(
                    datasets,
                    algorithms=tuple(dict.fromkeys(job.algorithms)),
                    labels=job.fractions,
                    runs=job.runs,
                    trials=job.trials,
                    seed=job.seed,
                    average=job.average,
                    solver=job.solver,
                ),
                out,
                jobs=job.jobs or os.cpu_count() or 1,
                unavailable=missing,
                overwrite=job.overwrite,
                progress=lambda what, done, total: bar.update(
                    task, description=what, completed=done, total=total
                ),
            )
            bar.update(task, description="drawing figures and report")
            outcome = write_outputs(out, clock.seconds())
        finish(outcome, job.out, f" in {clock.seconds():.1f} s", json)


def check_names(names: Sequence[str], known: Sequence[str], what: str) -> None:
    """Refuse unknown names."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {what} {name!r}; choose from {', '.join(known)}")


def check_folder(out: Path) -> None:
    """Raise, before there is work to lose, if the folder could not be written."""
    from ordspan.models.atomic import check_can_write

    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file, not a folder; choose another --out")
    there = next(folder for folder in (out, *out.parents) if folder.is_dir())
    check_can_write(there / out.name)


def finish(outcome: Outcome, folder: str, took: str, json: bool) -> None:
    """Print the summary table, the output paths, and how to get missing data sets."""
    from ordspan.experiments.claims import count_verdicts

    counts = count_verdicts(outcome.claims)
    if json:
        print_json({"out": folder, "claims": counts})
        return
    rows = []
    for row in outcome.summary:
        labels = "exact" if row.labels == 0 else f"{row.labels} % ranges"
        C = "" if row.C is None else f"{row.C:g}"
        mae = f"{row.mae:.3f}" + (f" ± {row.sem:.3f}" if row.runs > 1 else "")
        rows.append((row.dataset, labels, row.algorithm, C, mae, f"{row.interval_mae:.3f}"))
    title = "Mean absolute error after the last trial (± standard error)"
    heads = ("data set", "labels", "algorithm", "C", "MAE", "MAE to the labels used")
    text = f"{counts['holds']} hold, {counts['does not hold']} do not, {counts['not run']} not run"
    show(table(title, heads, rows, "data set", "algorithm"))
    say(f"Of the paper's claims {text}; see claims.md.")
    say(f"Written to {folder}{took}: {REPORT_FILES}.")
    say(f"Open {os.path.join(folder, 'report.html')} in a browser.")
    for name, reason in outcome.results.settings["unavailable"].items():
        say(f"Not run: {name}: {reason}.")
