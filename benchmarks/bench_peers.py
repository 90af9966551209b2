"""How does ordspan compare with other libraries, on exact labels, on ranges, and by probabilities?

``make peers`` runs this at full size and writes docs/peers.md, docs/peers.csv and
docs/images/peers*.png; the tests run it at toy size. An interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ordspan.atomic import write_atomically
from ordspan.data import DataUnavailable
from peers.figure import draw
from peers.measure import has_rps
from peers.methods import BY_NAME
from peers.page import of_group, page
from peers.plan import QUICK, Cell, Plan, cells, load
from peers.runner import run
from peers.table import Result, read, write

UNFINISHED = Path("build/peers.csv")


def compare(
    plan: Plan,
    store: Path,
    *,
    jobs: int = 1,
    data_dir: str | None = None,
    tell: Callable[[str], object] = print,
) -> list[Result]:
    """Measure what the store does not hold yet; returns the rows in the order of the plan.

    Parameters
    ----------
    plan : Plan
        What to run. Methods that are not installed and data sets that cannot be had are left out.
    store : Path
        CSV file that every row is kept in as soon as it is measured.
    jobs : int
        Processes.
    data_dir : str, optional
        Folder to look for data in first.
    tell : callable
        Told what is left out and each row.
    """
    sizes = sizes_here(plan, data_dir, tell)
    wanted = runnable(replace(plan, datasets=tuple(sizes)), tell)
    kept = {result.key: result for result in read(store) if fits(result, plan, sizes)}
    kept = {tuple(cell): kept[tuple(cell)] for cell in wanted if tuple(cell) in kept}
    todo = [cell for cell in wanted if tuple(cell) not in kept]

    def keep(result: Result) -> None:
        kept[result.key] = result
        write(store, in_order(wanted, kept))
        tell(
            f"{len(kept)}/{len(wanted)} {result.dataset}, {result.labels} %, {result.title}: "
            + (f"MAE {result.mae:.3f}" if result.status == "ok" else result.status)
        )

    run(plan, todo, keep, jobs=jobs, data_dir=data_dir)
    return in_order(wanted, kept)


def sizes_here(plan: Plan, data_dir: str | None, tell: Callable[[str], object]) -> dict[str, int]:
    """The data sets that can be had, with the number of rows used."""
    sizes = {}
    for name in plan.datasets:
        try:
            sizes[name] = len(load(name, plan, data_dir).ranks)
        except DataUnavailable as reason:
            tell(f"left out: {reason}")
    return sizes


def runnable(plan: Plan, tell: Callable[[str], object]) -> list[Cell]:
    """The cells whose package is here."""
    missing = [name for name in plan.methods if BY_NAME[name].missing]
    for name in missing:
        tell(f"{name} is left out: {BY_NAME[name].missing}")
    return [cell for cell in cells(plan) if cell.method not in missing]


def fits(result: Result, plan: Plan, sizes: dict[str, int]) -> bool:
    """Whether a row was measured under this plan."""
    size = result.rows == sizes.get(result.dataset) and result.folds == plan.folds(result.labels)
    lacks_rps = result.status == "ok" and has_rps(Cell(*result.key)) and math.isnan(result.rps)
    return size and not lacks_rps


def in_order(wanted: list[Cell], kept: dict[tuple, Result]) -> list[Result]:
    return [kept[tuple(cell)] for cell in wanted if tuple(cell) in kept]


def report(results: list[Result], folder: Path) -> None:
    """Write page and figures."""
    eight, unseen = (of_group(results, group) for group in ("eight", "unseen"))
    draw([eight], folder / "images" / "peers.png")
    draw([unseen], folder / "images" / "peers-unseen.png")
    draw([eight, unseen], folder / "images" / "peers-probabilities.png", "rps")
    write_atomically(folder / "peers.md", page(results).encode())


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", type=Path, help="write table, page and figure to this folder")
    parser.add_argument("--quick", action="store_true", help="200 rows and two folds")
    parser.add_argument(
        "--rows", type=int, help=f"most rows of a data set, {Plan.rows} if left out"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--data-dir", help="folder with the data; left out, ORDSPAN_DATA if set")
    parser.add_argument(
        "--add", action="store_true", help="keep the rows of the saved table, run what it lacks"
    )
    parser.add_argument(
        "--report-only", action="store_true", help="only write page and figure from the saved table"
    )
    options = parser.parse_args()
    if (options.add or options.report_only) and not options.save:
        parser.error("--add and --report-only need --save FOLDER, where the table is")
    return options


def main() -> None:
    options = parsed()
    if options.report_only:
        saved = read(options.save / "peers.csv")
        if not saved:
            raise SystemExit(
                f"{options.save / 'peers.csv'} holds no rows; run the comparison first"
            )
        report(saved, options.save)
        return
    store = UNFINISHED.with_stem("peers-quick") if options.quick else UNFINISHED
    if options.add and not store.exists():
        write(store, read(options.save / "peers.csv"))
    plan = QUICK if options.quick else Plan()
    plan = replace(plan, rows=options.rows or plan.rows)
    results = compare(plan, store, jobs=options.jobs, data_dir=options.data_dir)
    if not results:
        raise SystemExit("no data set can be had; name a folder with --data-dir or ORDSPAN_DATA")
    if options.save:
        write(options.save / "peers.csv", results)
        report(results, options.save)
    else:
        print(page(results))
    store.unlink()  # whole now: the next run measures anew


if __name__ == "__main__":
    main()
