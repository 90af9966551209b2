"""Evaluate a model on files of any size.

The score and the label of every row, 16 bytes, go to a temporary file; every number is computed
from them at the end, in chunks. So memory does not grow with the rows, apart from the names of
queries, and a billion rows need 16 GB in the folder for temporary files.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.clock import working_time
from ordspan.commands.jobs import EvaluateJob, Report, no_report
from ordspan.commands.models import name_labels, notes_on, open_for, read_table_model
from ordspan.commands.outputs import PAGE, check_output
from ordspan.commands.stopping import stoppable
from ordspan.core.measures import ReliabilityBins, cumulative_outcomes, distance, ranked_scores
from ordspan.core.state import Floats
from ordspan.learners import Calibration
from ordspan.metrics.ranks import CUTS, against_constants, best_probabilities, ndcg
from ordspan.models.atomic import report_full_disk, write_atomically
from ordspan.models.table import TableModel, scored
from ordspan.tables.files import expand
from ordspan.tables.reading import RowReader
from ordspan.tables.rows import Batch, FileError

Summary = dict[str, Any]
ROW = np.dtype([("score", "f8"), ("lower", "i4"), ("upper", "i4")])
Scores = NDArray[Any]
"""What is kept of a row (ROW), and an array of them (Scores)."""
CHUNK, MAX_CELLS = 1 << 18, 1 << 18
"""Rows, and rows times grades, that are computed at once."""
SAMPLE_SIZE = 100_000
"""Rows in the plots of scores and margins on a page."""


def follow_queries(reader: RowReader, starts: dict[str, int]) -> Iterator[Batch]:
    """The rows of files; ``starts`` gets each query, with the number of its first row.

    Rows without a query are bad. An svmlight file has a qid in every line or in none.
    """
    last, n_rows = "", 0
    fault = f"column {reader.group!r} is empty; fill it in, or name no query column"
    for batch in reader.batches():
        if n_rows and (batch.group is not None) != bool(starts):
            raise FileError(
                f"{batch.where(0)} and after: {'no' if starts else 'a'} qid here, unlike before; "
                "give every line its qid, or none"
            )
        names = [] if batch.group is None else batch.group.tolist()
        names = ["" if v is None or v != v else str(v).strip() for v in names]
        faults = {row: fault for row, name in enumerate(names) if not name}
        batch = reader.bad.take_from(batch, faults)
        for row, name in enumerate(filter(None, names)):
            if name == last:
                continue
            if name in starts:
                raise FileError(
                    f"{batch.where(row)}: query {name!r} appears again after other queries; sort "
                    f"the rows by {reader.group}, so that the rows of a query are consecutive"
                )
            starts[name] = n_rows + row
            last = name
        n_rows += len(batch)
        yield batch


def read_rows(
    model: TableModel, reader: RowReader, file: Any, report: Report
) -> tuple[NDArray[Any], list[int]]:
    """Score all rows into a file; return them, and where the queries start."""
    starts: dict[str, int] = {}
    n_rows = loss = 0
    for batch, score in scored(model, follow_queries(reader, starts)):
        rows = np.empty(len(batch), dtype=ROW)
        rows["score"], rows["lower"], rows["upper"] = score, batch.lower, batch.upper
        with report_full_disk("the folder for temporary files"):
            file.write(rows.tobytes())
        n_rows += len(batch)
        rank = model.calibration.predict(score)
        loss += int(distance(rank, rows["lower"], rows["upper"]).sum())
        report(n_rows, loss / max(1, n_rows), batch.share)
    if not n_rows:
        reader.bad.check(n_rows, allowed=0.0)
        why = "does it contain only a header, or no label?"
        raise FileError(f"{reader.files[0]}: no row to evaluate; {why}")
    file.flush()
    return np.memmap(file, ROW, "r"), [*starts.values()]


def chunks(rows: Scores, size: int) -> Iterator[tuple[Any, Any, Any]]:
    """Scores, lower and upper ranks of some rows at a time."""
    for begin in range(0, rows.size, size):
        part = rows[begin : begin + size]
        yield part["score"].copy(), part["lower"].astype(int), part["upper"].astype(int)


def count_answers(model: TableModel, rows: Scores) -> NDArray[np.int64]:
    """Every combination of lower, upper and predicted rank, and how often it occurs, (4, n)."""
    ranks = ["lower", "upper", "rank"]
    parts = [
        pl.DataFrame([lower, upper, model.calibration.predict(score)], ranks).group_by(ranks).len()
        for score, lower, upper in chunks(rows, CHUNK)
    ]
    return pl.concat(parts).group_by(ranks).sum().sort(ranks).cast(pl.Int64()).to_numpy().T


def by_grade(confusion: NDArray[np.int64], classes: list[Any]) -> list[dict[str, Any]]:
    """For every true grade: rows, mean error, and shares too low, right and too high."""
    rows, ranks = confusion.sum(axis=1), np.arange(len(classes))
    error = ranks - ranks[:, np.newaxis]
    cells = {"mae": abs(error), "too_low": error < 0, "right": error == 0, "too_high": error > 0}
    columns = {"grade": classes, "rows": rows}
    for name, counted in cells.items():
        columns[name] = (confusion * counted).sum(axis=1) / np.where(rows > 0, rows, np.nan)
    return pl.DataFrame(columns).fill_nan(None).to_dicts()


def measure(model: TableModel, rows: Scores, answers: NDArray[np.int64]) -> Summary:
    """Every measure of the model on rows, whose combinations were counted, and best constants."""
    classes, (lower, upper, rank, counts) = model.classes_.tolist(), answers
    found = against_constants(lower, upper, rank, classes, counts)
    best = best_probabilities(lower, upper, counts, len(classes))
    chances = {"best_constant": best, **measure_probabilities(model.calibration, rows)}
    return {"rows": rows.size, **found, "probabilities": chances}


def measure_probabilities(calibration: Calibration, rows: Scores) -> Summary:
    """Scores of probabilities, and the coverage of ranges at every calibrated level.

    If a label is a range, the true grade is unknown. "Expected" values then weight each grade of
    the label by its probability under the model, given the label. The bounds hold whatever the
    true grades are, as long as the labels contain them.
    """
    n_classes, levels = calibration.n_classes, calibration.coverages.tolist()
    scores, bins = np.zeros(2), ReliabilityBins(n_bins=10)
    hit_sums = np.zeros((len(levels), 3))
    widths = np.zeros((len(levels), n_classes), dtype=np.int64)
    for score, lower, upper in chunks(rows, max(1, MAX_CELLS // n_classes)):
        of_label = calibration.log_probabilities(score, lower, upper)
        outcomes = cumulative_outcomes(calibration.probabilities(score), lower, upper)
        ranked = ranked_scores(outcomes.predicted, outcomes.observed)
        scores += ranked.sum(), -of_label.sum()
        bins.add(outcomes)
        for level, coverage in enumerate(levels):
            first, last = calibration.ranges(score, coverage)
            low, high = np.maximum(first, lower), np.minimum(last, upper)
            meets, contains = low <= high, (low == lower) & (high == upper)
            part, expected = meets & ~contains, contains.astype(np.float64)
            inside = calibration.log_probabilities(score[part], low[part], high[part])
            expected[part] = np.exp(np.minimum(0.0, inside - of_label[part]))
            hit_sums[level] += contains.sum(), expected.sum(), meets.sum()
            widths[level] += np.bincount(last - first, minlength=n_classes)
    shares = dict(zip(("contains", "expected", "meets"), hit_sums.T / rows.size, strict=True))
    mean_width = widths @ np.arange(1, n_classes + 1) / rows.size
    ranges = {"coverage": levels, **shares, "mean_width": mean_width, "widths": widths.tolist()}
    return {
        "rps": float(scores[0]) / rows.size,
        "log_score": float(scores[1]) / rows.size,
        "ranges": pl.DataFrame(ranges).to_dicts(),
        "reliability": pl.DataFrame({"count": bins.counts, **bins.means._asdict()}).to_dicts(),
    }


def measure_queries(rows: Scores, starts: list[int], n_classes: int) -> Floats:
    """NDCG of every query at each cut, (3, n); rows labelled by a range are ignored."""
    bounds, n_queries, found = np.array([*starts, rows.size]), len(starts), []
    for queries in np.array_split(np.arange(n_queries), min(n_queries, 1 + rows.size // CHUNK)):
        ends = bounds[queries[0] : queries[-1] + 2]
        part, query = rows[ends[0] : ends[-1]], np.repeat(queries - queries[0], np.diff(ends))
        exact = part["lower"] == part["upper"]
        score, rank = part["score"][exact], part["lower"][exact]
        found.append(ndcg(query[exact], score, rank, queries.size, n_classes))
    return np.concatenate(found, axis=1)


def summarise_queries(found: Floats) -> Summary:
    """Mean NDCG at each cut over the queries with a relevant row, and their number.

    A row is relevant if its grade is not the lowest. NDCG is None without such a query.
    """
    relevant = found[:, np.isfinite(found[0])]
    means = relevant.mean(axis=1).tolist() if relevant.size else [None] * len(CUTS)
    named = {f"ndcg@{cut}": mean for cut, mean in zip(CUTS, means, strict=True)}
    n_queries, n_relevant = found.shape[1], relevant.shape[1]
    return named | {"queries": n_queries, "queries_without_relevant_rows": n_queries - n_relevant}


def summarise(model: TableModel, reader: RowReader, rows: Scores, ndcgs: Floats | None) -> Summary:
    """The results in plain values."""
    classes = model.classes_.tolist()
    lower, upper, rank, counts = answers = count_answers(model, rows)
    exact = lower == upper
    confusion = np.zeros((len(classes),) * 2, dtype=np.int64)  # true by predicted
    confusion[lower[exact] - 1, rank[exact] - 1] = counts[exact]
    queries = None if ndcgs is None else summarise_queries(ndcgs)
    return {
        "files": list(reader.files),
        "labels": {name: value for name, value in vars(reader.columns).items() if value},
        "group": reader.group if queries else None,
        "exact_rows": int(confusion.sum()),
        "range_rows": rows.size - int(confusion.sum()),
        "unlabelled_rows": reader.unlabelled,
        "classes": classes,
        "thresholds": [t for t in model.thresholds.tolist() if np.isfinite(t)],
        **measure(model, rows, answers),
        "ndcg": queries,
        "by_grade": by_grade(confusion, classes),
        "confusion": confusion.tolist(),
        "notes": [*notes_on(model, reader), *reader.label_notes()],
        "skipped": reader.bad.count,
        "skipped_examples": list(reader.bad.examples),
    }


def evaluate(job: EvaluateJob, *, report: Report = no_report) -> Summary:
    """Measure how well a model grades the rows of files.

    Parameters
    ----------
    job : EvaluateJob
        What to evaluate, and where to write a page.
    report : callable, optional
        Called after each batch of rows.

    Returns
    -------
    dict
        Plain values: rows, measures, the best constant prediction for each, the quality of
        probabilities and ranges, the confusion matrix (one row per true grade), NDCG of queries.
        All numbers are finite.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.commands.jobs import TrainJob
    >>> from ordspan.commands.train import train
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = "1,1\\n2,1\\n5,2\\n6,2\\n8,3\\n9,3\\n" * 50
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + rows)
    >>> _ = train(TrainJob(folder / "a.csv", folder / "model", label="grade"))
    >>> found = evaluate(EvaluateJob(folder / "a.csv", folder / "model"))
    >>> found["rows"], found["accuracy"], found["confusion"]
    (300, 1.0, [[100, 0, 0], [0, 100, 0], [0, 0, 100]])
    >>> found["better_than_constant"], found["best_constant"]["mae"]
    (True, {'grade': 2, 'value': 0.6666666666666666})
    """
    if job.page is not None:
        import matplotlib as mpl  # noqa: F401 - fail early

        inputs = [job.model, *expand(job.files)]
        check_output(job.page, inputs, PAGE, job.overwrite, [".html", ".htm"])
    model = read_table_model(job.model)
    with TemporaryFile() as file:
        with stoppable(job) as (stop, pipe), stop.at_any_moment():
            reader = open_for(model, job, job.on_bad_row, pipe)
            name_labels(reader, job, job.group)
            begun = working_time()
            rows, starts = read_rows(model, reader, file, report)
        reader.bad.check(rows.size, job.allow_skipped)
        ndcgs = measure_queries(rows, starts, len(model.classes_)) if starts else None
        summary: Summary = {"model": job.model} | summarise(model, reader, rows, ndcgs)
        summary["seconds"] = round(working_time() - begun, 3)
        if job.page is not None:
            from ordspan.commands.evaluate_page import page_text

            size = min(SAMPLE_SIZE, rows.size)
            drawn = np.random.default_rng(0).choice(rows.size, size, replace=False)
            text = page_text(summary, model, rows[np.sort(drawn)], ndcgs)
            write_atomically(Path(job.page), text.encode())
            summary["page"] = job.page
    return summary
