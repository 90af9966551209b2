"""`ordspan reproduce`: the paper's experiments in one command."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordspan.cli.app import Command, app, progress_bar, report_errors
from ordspan.cli.printing import say, show, table

if TYPE_CHECKING:
    from ordspan.experiments.reproduce import Outcome

OUT = Path("ordspan-results")
REPORT_FILES = "results.npz, summary.csv, figure1 and figure2 (png, pdf), claims.md, report.html"
DatasetNames = Annotated[
    str | None,
    typer.Option(
        help="Comma separated: california, abalone, parkinson and synthetic, which come with "
        "ordspan, or mslr. By default the paper's four; mslr is skipped if it is missing."
    ),
]
AlgorithmNames = Annotated[
    str,
    typer.Option(
        help="Comma separated; besides the paper's five also PRIL, MC-PA, MC-PA-I, MC-PA-II, "
        "OAP-BPM."
    ),
]
Fractions = Annotated[
    str, typer.Option(help="Percentages of labels given as ranges, comma separated.")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder with the data sets; by default ORDSPAN_DATA.")
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Discard results of different settings in the folder."),
]
ReportOnly = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Only redraw the report from DIR/results.npz."),
]


def listed(text: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Known names in a comma separated list, without duplicates."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(f"no {what} given; choose from {', '.join(known)}")
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {what} {name!r}; choose from {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def percentages(text: str) -> tuple[int, ...]:
    """Whole percentages in a comma separated list, ascending."""
    try:
        values = sorted({int(part) for part in text.split(",")})
    except ValueError:
        values = [-1]
    if not all(0 <= value <= 100 for value in values):
        raise ValueError(f"--fractions takes whole percentages from 0 to 100, got {text!r}")
    return tuple(values)


@app.command(
    cls=Command, epilog="Example: ordspan reproduce --datasets abalone --runs 10 --out quick"
)
def reproduce(
    datasets: DatasetNames = None,
    algorithms: AlgorithmNames = "PA,PA-I,PA-II,PRank,MCP",
    fractions: Fractions = "0,50,75",
    runs: Annotated[int, typer.Option(min=1, help="Runs to average over.")] = 100,
    trials: Annotated[int, typer.Option(min=1, help="Trials of each run.")] = 7000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    average: Annotated[
        bool, typer.Option("--average", help="Also draw averaged PA, PA-I and PA-II.")
    ] = False,
    solver: Annotated[
        str, typer.Option(help="exact, or sca: also draw the search printed in the paper.")
    ] = "exact",
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = OUT,
    data_dir: DataDir = None,
    jobs: Annotated[int, typer.Option(min=0, help="Number of threads; 0 uses all processors.")] = 0,
    overwrite: Overwrite = False,
    report_only: ReportOnly = None,
) -> None:
    """Run the paper's experiments: figures, tables, claims and one page.

    After an interruption, run the same command again to continue. The same settings give the same
    bytes in results.npz, whatever --jobs is.
    """
    with report_errors("Run the same command again to continue."):
        from ordspan.clock import Clock
        from ordspan.datasets import NAMES
        from ordspan.experiments.protocol import ALGORITHMS, CITED_ALGORITHMS
        from ordspan.experiments.reproduce import load_datasets, write_outputs
        from ordspan.experiments.runner import Plan, run
        from ordspan.learners.linear import SOLVERS

        if report_only is not None:
            finish(write_outputs(report_only), report_only, None)
            return
        clock = Clock()
        names = None if datasets is None else listed(datasets, NAMES, "data set")
        plan = partial(
            Plan,
            algorithms=listed(algorithms, ALGORITHMS + CITED_ALGORITHMS, "algorithm"),
            labels=percentages(fractions),
            runs=runs,
            trials=trials,
            seed=seed,
            average=average,
            solver=listed(solver, tuple(SOLVERS), "solver")[-1],
        )
        check_folder(out)
        with progress_bar() as bar:
            found, missing = load_datasets(names, data_dir)
            if not found:
                reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
                raise LookupError(f"nothing to run. {reasons}")
            out.mkdir(parents=True, exist_ok=True)
            task = bar.add_task("starting", total=None)
            run(
                plan(found),
                out,
                jobs=jobs or os.cpu_count() or 1,
                unavailable=missing,
                overwrite=overwrite,
                progress=lambda what, done, total: bar.update(
                    task, description=what, completed=done, total=total
                ),
            )
            bar.update(task, description="drawing figures and report")
            outcome = write_outputs(out, clock.seconds())
        finish(outcome, out, clock.seconds())


def check_folder(out: Path) -> None:
    """Raise, before there is work to lose, if the folder could not be written."""
    from ordspan.models.atomic import check_can_write

    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file, not a folder; choose another --out")
    there = next(folder for folder in (out, *out.parents) if folder.is_dir())
    check_can_write(there / out.name)


def finish(outcome: Outcome, folder: Path, seconds: float | None) -> None:
    """Print the summary table, the output paths, and how to get missing data sets."""
    from ordspan.experiments.claims import count_verdicts

    rows = []
    for row in outcome.summary:
        labels = "exact" if row.labels == 0 else f"{row.labels} % ranges"
        C = "" if row.C is None else f"{row.C:g}"
        mae = f"{row.mae:.3f}" + (f" ± {row.sem:.3f}" if row.runs > 1 else "")
        rows.append((row.dataset, labels, row.algorithm, C, mae, f"{row.interval_mae:.3f}"))
    title = "Mean absolute error after the last trial (± standard error)"
    heads = ("data set", "labels", "algorithm", "C", "MAE", "MAE to the labels used")
    counts = count_verdicts(outcome.claims)
    text = f"{counts['holds']} hold, {counts['does not hold']} do not, {counts['not run']} not run"
    took = "" if seconds is None else f" in {seconds:.1f} s"
    show(table(title, heads, rows, "data set", "algorithm"))
    say(f"Of the paper's claims {text}; see claims.md.")
    say(f"Written to {folder}{took}: {REPORT_FILES}.")
    say(f"Open {folder / 'report.html'} in a browser.")
    for name, reason in outcome.results.settings["unavailable"].items():
        say(f"Not run: {name}: {reason}.")
