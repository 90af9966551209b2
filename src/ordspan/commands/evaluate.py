"""Evaluate a model on files of any size, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ordspan.clock import Clock
from ordspan.commands.models import label_reader, options_for, read_table_model
from ordspan.commands.outputs import check_path, report_full_disk
from ordspan.commands.probability_tally import ProbabilityTally
from ordspan.commands.queries import QueryTally, query_names
from ordspan.commands.tally import Tally, compared
from ordspan.models.atomic import write_atomically
from ordspan.models.table import Scored, scored
from ordspan.tables.files import (
    FileOptions,
    check_columns,
    describe_columns,
    expand,
    is_svmlight,
    open_file,
)
from ordspan.tables.label_columns import LabelColumns, label_columns
from ordspan.tables.reading import RowReader, check_index_base
from ordspan.tables.rows import GROUP, LABEL, SKIPPED_SHARE, BadRows, Batch, FileError
from ordspan.wording import hint

SAMPLE_SIZE = 20_000  # rows on a page, of all grades together
LEAST_OF_GRADE = 50

NO_PROBABILITIES = "The model has no probabilities or ranges, because it was trained on Dask."

EvaluateReport = Callable[[Tally, float | None], None]
"""Callback with the counts so far, and the share of the files read, if known."""


@dataclass(frozen=True)
class EvaluateJob:
    """What to evaluate.

    Parameters
    ----------
    files : sequence of str
        Files and folders, or "-" for standard input.
    model : path
        A model file that ``ordspan train`` wrote.
    label, lower, upper : str, optional
        Label columns; by default those used in training.
    group : str, optional
        Column with the query of each row; svmlight rows use their qid.
    on_bad_row : {"raise", "skip"}
        Stop at the first bad row, or skip bad rows and count them.
    allow_skipped : float
        Largest accepted share of skipped rows.
    options : FileOptions
        How to open the files; by default detected, or as in training.
    """

    files: Sequence[str]
    model: str | Path
    label: str | None = None
    lower: str | None = None
    upper: str | None = None
    group: str | None = None
    on_bad_row: str = "raise"
    allow_skipped: float = SKIPPED_SHARE
    options: FileOptions = field(default_factory=FileOptions)


class Evaluation:
    """A model, its files, and the running totals of its predictions."""

    def __init__(self, job: EvaluateJob, *, sampled: bool = False, pipe: Any = None) -> None:
        self.job = job
        self.model = read_table_model(job.model)
        self.files = expand(job.files)
        self.bad = BadRows(job.on_bad_row)
        options = options_for(self.model, self.files, job.options)
        check_index_base(self.files, self.model.recipe, options)
        self.columns, self.group = self._columns(is_svmlight(self.files[0], options))
        self.reader = RowReader(
            self.files,
            options,
            self.model.encoder,
            self.columns,
            label_reader(self.model.classes_),
            self.bad,
            self.group,
            first=self._first_file(options, pipe),
        )
        n_classes = len(self.model.classes_)
        size = max(LEAST_OF_GRADE, SAMPLE_SIZE // (n_classes + 1)) if sampled else 0
        self.tally = Tally(n_classes, size)
        calibration = self.model.calibration
        self.probabilities = None if calibration is None else ProbabilityTally(calibration)
        self.queries: QueryTally | None = None

    def _columns(self, sparse: bool) -> tuple[LabelColumns, str | None]:
        """The columns of labels and queries."""
        given = label_columns(self.job.label, self.job.lower, self.job.upper)
        if not sparse:
            return (given if given.names() else self.model.columns), self.job.group
        if given.names() not in ([], [LABEL]) or self.job.group not in (None, GROUP):
            raise ValueError(
                f"{self.files[0]}: svmlight rows have fixed places for grade and qid; name "
                "no columns for labels and queries"
            )
        return LabelColumns(LABEL), GROUP

    def _first_file(self, options: FileOptions, pipe: Any) -> Any:
        """Open the first file and check that it has the label columns."""
        path, recipe = self.files[0], self.model.recipe
        reader = open_file(path, options, pipe)
        if is_svmlight(path, options) and not recipe.n_sparse:
            raise FileError(
                f"{path}: svmlight rows have no named columns, but the model was trained on "
                f"columns such as {recipe.columns[0]!r}"
            )
        if recipe.n_sparse:
            return reader
        for name in self.columns.names():
            if name not in reader.names and self.columns == self.model.columns:
                raise FileError(
                    f"{path}: no column {name!r}, the label column used in training; "
                    f"{describe_columns(reader.names)}. "
                    f"Name the labels here with {hint('label=', '--label COLUMN')}, or the "
                    "two columns of ranges"
                )
        check_columns(path, reader.names, [self.group] if self.group else [])
        return reader

    def run(self, report: EvaluateReport | None = None) -> None:
        """Read the files once."""
        for answer in scored(self.model, self._batches()):
            self.tally.add(answer)
            if self.probabilities is not None:
                self.probabilities.add(answer)
            self._add_queries(answer)
            if report is not None:
                report(self.tally, self.reader.share(answer.batch))
        if not self.tally.rows:
            why = f"no usable row; {self.bad.summary()}"
            if not self.bad.count:
                why = "no row to evaluate; does it contain only a header?"
            raise FileError(f"{self.files[0]}: {why}")
        self.bad.check(self.tally.rows, self.job.allow_skipped)

    def _batches(self) -> Iterator[Batch]:
        """Rows of the files; with a query column, rows without a query are bad rows."""
        for batch in self.reader.batches():
            if self.group is None or self.group not in batch.table.columns:
                yield batch
                continue
            codes, names = query_names(batch, self.group)
            empty = [code for code, name in enumerate(names) if not name]
            rows = np.flatnonzero(np.isin(codes, empty)).tolist()
            fault = f"column {self.group!r} is empty; fill it in, or name no query column"
            yield self.bad.take_from(batch, dict.fromkeys(rows, fault))

    def _add_queries(self, answer: Scored) -> None:
        """Add rows to their queries; an svmlight file has a qid in every line or in none."""
        if self.group is None:
            return
        batch = answer.batch
        present = self.group in batch.table.columns
        if present and self.queries is None and self.tally.rows == len(batch):
            self.queries = QueryTally(self.group, len(self.model.classes_))
        if present != (self.queries is not None):
            raise FileError(
                f"{batch.where(0)} and after: {'a' if present else 'no'} qid here, unlike before; "
                "give every line its qid, or none"
            )
        if self.queries is not None:
            self.queries.add(answer)

    def summary(self) -> dict[str, Any]:
        """The results in plain values."""
        tally, classes = self.tally, self.model.classes_.tolist()
        by_grade = [
            {"grade": grade, **row} for grade, row in zip(classes, tally.by_grade(), strict=True)
        ]
        return {
            "model": str(self.job.model),
            "files": list(self.files),
            "labels": self.columns._asdict(),
            "group": self.group if self.queries else None,
            "rows": tally.rows,
            "exact_rows": tally.exact,
            "range_rows": tally.rows - tally.exact,
            "classes": classes,
            "thresholds": [t for t in self.model.thresholds.tolist() if np.isfinite(t)],
            **tally.compared(classes),
            "probabilities": self.probabilities and self.probabilities.summary(),
            "ndcg": None if self.queries is None else self.queries.summary(),
            "by_grade": by_grade,
            "confusion": tally.confusion.tolist(),
            "notes": self.model.encoder.unseen.messages(),
            "skipped": self.bad.count,
            "skipped_examples": list(self.bad.examples),
        }


def verdict(summary: dict[str, Any]) -> str:
    """A sentence on whether the model beats a constant prediction."""
    constant = summary["best_constant"]["mae"]
    return compared(summary["mae"], constant["value"], constant["grade"])


def range_shares(summary: dict[str, Any]) -> dict[str, str]:
    """Shares to show for ranges, by name and title; one is enough for exact labels."""
    if not summary["range_rows"]:
        return {"contains": "contains the label"}
    return {"contains": "contains the label", "expected": "expected", "meets": "meets the label"}


def describe_files(files: list[str]) -> str:
    """A short description of the files.

    >>> describe_files(["-"]), describe_files(["a.csv", "b.csv", "c.csv"])
    ('standard input', 'a.csv and 2 more files')
    """
    first = "standard input" if files[0] == "-" else files[0]
    more = len(files) - 1
    return first if not more else f"{first} and {more} more file{'s' if more > 1 else ''}"


def evaluate(
    job: EvaluateJob,
    *,
    page: str | Path | None = None,
    pipe: BinaryIO | None = None,
    report: EvaluateReport | None = None,
) -> dict[str, Any]:
    """Measure how well a model grades the rows of files.

    Parameters
    ----------
    job : EvaluateJob
        What to evaluate.
    page : path, optional
        Where to write a web page with plots.
    pipe : binary file, optional
        Read instead of standard input.
    report : callable, optional
        Called after each batch of rows.

    Returns
    -------
    dict
        Plain values: rows, measures, the best constant prediction for each, the quality of
        probabilities and ranges (None for a model without them), the confusion matrix (one row
        per true grade), NDCG of queries. All numbers are finite.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.commands.train import TrainJob, train
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = "1,1\\n2,1\\n5,2\\n6,2\\n8,3\\n9,3\\n" * 50
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + rows)
    >>> _ = train(TrainJob([str(folder / "a.csv")], label="grade"), folder / "model")
    >>> found = evaluate(EvaluateJob([str(folder / "a.csv")], folder / "model"))
    >>> found["rows"], found["accuracy"], found["confusion"]
    (300, 1.0, [[100, 0, 0], [0, 100, 0], [0, 0, 100]])
    >>> found["better_than_constant"], found["best_constant"]["mae"]
    (True, {'grade': 2, 'value': 0.6666666666666666})
    """
    clock = Clock()
    if page is not None:
        from plotly.offline import get_plotlyjs  # noqa: F401 - fail early

        check_path(str(page), (".html", ".htm"), [str(job.model), *expand(job.files)])
    evaluation = Evaluation(job, sampled=page is not None, pipe=pipe)
    evaluation.run(report)
    summary = evaluation.summary()
    seconds = clock.seconds()
    summary["seconds"] = round(seconds, 3)
    summary["rows_per_second"] = round(summary["rows"] / max(seconds, 1e-9))
    if page is not None:
        from ordspan.commands.evaluate_page import page_text

        with report_full_disk(str(page)):
            write_atomically(Path(page), page_text(evaluation, summary).encode())
        summary["page"] = str(page)
    return summary
