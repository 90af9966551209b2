"""Microsoft's learning-to-rank data: a full fold or the sample, and its svmlight lines checked."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

import numpy as np

from ordspan.core.labels import Ranks
from ordspan.data.sets import DataDir, Dataset, Floats, check_choice, standardise
from ordspan.data.sources import (
    FILES,
    MSLR_WAY,
    CorruptFile,
    DataUnavailable,
    Progress,
    find_fold,
    folders,
    look_up,
)

MSLR_PARTS = {"train": ("train.txt",), "all": ("train.txt", "vali.txt", "test.txt")}
MSLR_FEATURES = 136
MSLR_GRADES = 5
MSLR_BLOCK = 5_000
"""Lines parsed at a time, so that only one block stands in memory twice."""


def mslr(
    *, parts: str = "train", data_dir: DataDir = None, progress: Progress | None = None
) -> Dataset:
    """Microsoft learning to rank: 136 features of query-page pairs, relevance 0..4 as ranks 1..5.

    A full fold of MSLR-WEB10K wins: train.txt, vali.txt and test.txt in the data folder itself,
    or in Fold1 or MSLR-WEB10K/Fold1 there. Without it, the sample of 10,000 rows is read: the
    first 5,000 of train.txt and of test.txt. Neither can be downloaded without Microsoft's terms.

    Parameters
    ----------
    parts : {"train", "all"}
        What to read of a full fold: train.txt, the 723,412 rows of Fold1 that the paper counts,
        or all three files, 1,200,192 rows. The sample is always read whole.
    data_dir : path, optional
        Folder to look in first; left out, the one ORDSPAN_DATA names.
    progress : callable, optional
        Not used, as nothing is downloaded; here so that all data sets are called alike.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..5.
    """
    check_choice("parts", parts, tuple(MSLR_PARTS))
    files = find_fold(MSLR_PARTS[parts], data_dir)
    if files:
        texts = [Text(str(file), file) for file in files]
        source = f"full fold: {', '.join(file.name for file in files)}"
    else:
        texts = [_sample_text(part, data_dir) for part in ("train", "test")]
        source = "sample of 10,000 rows: " + ", ".join(text.name for text in texts)
    X, ranks = read_graded(texts)
    names = tuple(f"feature {number}" for number in range(1, MSLR_FEATURES + 1))
    return Dataset("mslr", standardise(X), ranks, MSLR_GRADES, names, source)


class Text(NamedTuple):
    """A text to read: its name for error messages, and its place or its gzipped content."""

    name: str
    content: Path | bytes

    def open(self) -> IO[bytes]:
        """The text as a stream of lines."""
        if isinstance(self.content, Path):
            return self.content.open("rb")
        return io.BytesIO(gzip.decompress(self.content))


def _sample_text(part: str, data_dir: DataDir) -> Text:
    key = f"mslr-sample-{part}"
    found = look_up(key, data_dir)
    if found is None:
        places = " or ".join(str(folder) for _, folder in folders(data_dir))
        reason = f"no train.txt of a full fold and no {FILES[key].path} in {places}"
        raise DataUnavailable("mslr", reason, MSLR_WAY)
    return Text(found.source, found.content)


def read_graded(texts: Sequence[Text]) -> tuple[Floats, Ranks]:
    """Features and ranks of svmlight texts with all 136 features in every line.

    The texts are read twice, first only to count: the matrix of a full fold (0.8 GB) is then
    filled in place and never copied.
    """
    n_lines = 0
    for text in texts:
        with text.open() as stream:
            n_lines += sum(1 for _ in stream)
    X, ranks = np.empty((n_lines, MSLR_FEATURES)), np.empty(n_lines, dtype=np.int64)
    n_rows = 0
    for name, first, lines in _blocks(texts):
        features, grades = _parse(name, first, lines)
        rows = slice(n_rows, n_rows := n_rows + grades.size)
        X[rows], ranks[rows] = features, grades + 1
    if n_rows == 0:
        raise CorruptFile(f"no rows in {', '.join(text.name for text in texts)}")
    return X[:n_rows], ranks[:n_rows]  # comments and empty lines are lines, but not rows


def _blocks(texts: Sequence[Text]) -> Iterator[tuple[str, int, list[bytes]]]:
    """Some lines at a time, with the name of their text and the number of the first line."""
    for text in texts:
        first = 1
        with text.open() as stream:
            while lines := list(islice(stream, MSLR_BLOCK)):
                yield text.name, first, lines
                first += len(lines)


def _parse(name: str, first: int, lines: list[bytes]) -> tuple[Floats, Floats]:
    from sklearn.datasets import load_svmlight_file  # slow to import

    try:
        rows, grades = load_svmlight_file(
            io.BytesIO(b"".join(lines)), n_features=MSLR_FEATURES, zero_based=False
        )
    except ValueError as error:
        _refuse(name, first, lines, str(error))
    full = (np.diff(rows.indptr) == MSLR_FEATURES).all()
    if not (full and np.isfinite(rows.data).all() and np.isin(grades, range(MSLR_GRADES)).all()):
        _refuse(name, first, lines, "a grade or a feature is missing or out of range")
    return rows.data.reshape(-1, MSLR_FEATURES), grades


def _refuse(name: str, first: int, lines: list[bytes], reason: str) -> NoReturn:
    """Name the line and the column at fault: a slow second look, taken only after a failure."""
    for number, line in enumerate(lines, first):
        if fault := line_fault(line.decode(errors="replace")):
            raise CorruptFile(f"{name}, line {number}: {fault}")
    raise CorruptFile(f"{name}, lines {first} to {first + len(lines) - 1}: {reason}")


def line_fault(line: str) -> str:
    """What is wrong with a line of an MSLR file; empty when nothing is.

    >>> line_fault("7 qid:1 1:0.5")
    "relevance '7' is not one of 0, 1, 2, 3, 4"
    >>> line_fault("2 qid:1 1:0.5 2:x")
    "column 2 holds 'x', not a finite number"
    """
    words = line.partition("#")[0].split()
    if not words:
        return ""
    grade, *cells = (word for word in words if not word.startswith("qid:"))
    if _number(grade) not in range(MSLR_GRADES):
        return f"relevance {grade!r} is not one of 0, 1, 2, 3, 4"
    for column, cell in zip_longest(range(1, MSLR_FEATURES + 1), cells):
        index, _, value = (cell or "").partition(":")
        if column is None:
            return f"{cell!r} comes after the last of {MSLR_FEATURES} columns"
        if index != str(column):
            return f"column {column} is missing" + (f", {cell!r} stands there" if cell else "")
        if not np.isfinite(_number(value)):
            return f"column {column} holds {value!r}, not a finite number"
    return ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
