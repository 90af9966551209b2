"""The data sets of the paper's section 6.1, ready to learn from: standardised rows, ranks 1..K."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.labels import Ranks
from ordspan.data.sources import (
    FILES,
    MSLR_WAY,
    CorruptFile,
    DataUnavailable,
    Progress,
    find,
    find_fold,
    folders,
    look_up,
)

DataDir = str | os.PathLike[str] | None
Floats = NDArray[np.float64]

CALIFORNIA_EDGES = (1, 100_001, 200_001, 300_001, 400_001, 500_002)
ABALONE_EDGES = (1, 8, 10, 13, 30)
PARKINSON_EDGES = (7, 18, 28, 38, np.inf)

CALIFORNIA_FEATURES = (
    "longitude", "latitude", "housingMedianAge", "totalRooms", "totalBedrooms", "population",
    "households", "medianIncome",
)  # fmt: skip
ABALONE_MEASURES = (
    "length", "diameter", "height", "whole_weight", "shucked_weight", "viscera_weight",
    "shell_weight",
)  # fmt: skip
SEXES = {"M": 1.0, "F": -1.0, "I": 0.0}
"""One number for the sex of an abalone: infants lie between the sexes."""

MSLR_PARTS = {"train": ("train.txt",), "all": ("train.txt", "vali.txt", "test.txt")}
MSLR_FEATURES = 136
MSLR_GRADES = 5
MSLR_BLOCK = 5_000
"""Lines parsed at a time, so that only one block stands in memory twice."""


@dataclass(frozen=True)
class Truth:
    """The ranker a synthetic data set was made with, and its error on that very sample."""

    weights: Floats
    thresholds: Floats
    mae: float


@dataclass(frozen=True)
class Dataset:
    """A data set to learn from.

    Attributes
    ----------
    name : str
        Its name, as ``load`` takes it.
    X : ndarray of shape (n, d)
        Features with zero mean and unit variance; a constant column is all zeros.
    ranks : ndarray of shape (n,)
        Classes 1..K.
    n_classes : int
        K.
    feature_names : tuple of str
        Names of the columns.
    source : str
        In words, where the rows came from.
    truth : Truth or None
        The true ranker, where it is known.
    """

    name: str
    X: Floats
    ranks: Ranks
    n_classes: int
    feature_names: tuple[str, ...]
    source: str
    truth: Truth | None = None


def standardise(X: Floats) -> Floats:
    """Zero mean and unit variance in every column, in place; a constant column becomes zeros.

    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    varies = X.max(axis=0) > X.min(axis=0)  # exact, where a computed variance may be 1e-33
    X[:, ~varies] = 0.0
    for _ in range(2):  # the mean of large numbers is rounded: the second pass takes off the rest
        X -= X.mean(axis=0)
    # einsum needs no second matrix as X.std() does
    spread = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X /= np.where(varies, spread, 1.0)
    return X


def bin_ranks(values: ArrayLike, edges: Sequence[float]) -> Ranks:
    """Rank k of the half-open bin [edges[k-1], edges[k]) each value lies in; none may lie outside.

    >>> bin_ranks([1, 7, 7.9, 8, 29], edges=(1, 8, 10, 13, 30))
    array([1, 1, 1, 2, 4])
    """
    numbers = np.asarray(values, dtype=np.float64)
    inside = (numbers >= edges[0]) & (numbers < edges[-1])  # false for NaN
    if not inside.all():
        row = int(np.argmin(inside))
        raise ValueError(
            f"row {row}: {numbers[row]} lies outside the classes, [{edges[0]}, {edges[-1]})"
        )
    return np.searchsorted(np.asarray(edges), numbers, side="right").astype(np.int64)


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value that is not among the known ones, listing these."""
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}; choose one of {', '.join(known)}")


def california(*, data_dir: DataDir = None, progress: Progress | None = None) -> Dataset:
    """California housing: 20640 districts, 8 features, 5 classes of the median house value.

    The classes are 1-100000, 100001-200000, ..., 400001-500001. The paper's 9 features count the
    house value itself, and its 20460 rows are read as a slip of the pen for 20640.

    Parameters
    ----------
    data_dir : path, optional
        Folder to look in first; left out, the one ORDSPAN_DATA names.
    progress : callable, optional
        Called with the bytes done and the bytes in all, or None, while a download runs.
    """
    found = find("california", data_dir, progress)
    table = np.loadtxt(io.BytesIO(found.content), delimiter=",")
    ranks = bin_ranks(table[:, -1], CALIFORNIA_EDGES)
    X = standardise(table[:, :-1].copy())
    return Dataset("california", X, ranks, 5, CALIFORNIA_FEATURES, found.source)


def abalone(
    *, sex: str = "one-hot", data_dir: DataDir = None, progress: Progress | None = None
) -> Dataset:
    """Abalone: 4177 shells, 4 classes of the number of rings, 1-7, 8-9, 10-12 and 13-29.

    Parameters
    ----------
    sex : {"one-hot", "one-column"}
        Three columns that are 1 for M, F and I each, 10 features in all; or one column with
        1 for M, -1 for F and 0 for I (infant), the 8 features the paper counts.
    data_dir, progress
        As for ``california``.
    """
    check_choice("sex", sex, ("one-hot", "one-column"))
    found = find("abalone", data_dir, progress)
    lines = found.content.decode().splitlines()
    table = np.loadtxt(lines, delimiter=",", converters={0: SEXES.__getitem__})
    codes, names = table[:, :1], ["sex"]
    if sex == "one-hot":
        codes = (codes == list(SEXES.values())).astype(np.float64)
        names = [f"sex={name}" for name in SEXES]
    X = standardise(np.hstack([codes, table[:, 1:-1]]))
    ranks = bin_ranks(table[:, -1], ABALONE_EDGES)
    return Dataset("abalone", X, ranks, 4, (*names, *ABALONE_MEASURES), found.source)


def parkinson(
    *,
    motor_updrs: bool = False,
    subject: bool = False,
    data_dir: DataDir = None,
    progress: Progress | None = None,
) -> Dataset:
    """Parkinson telemonitoring: 5875 recordings, 19 to 21 features, 4 classes of total_UPDRS.

    The printed classes 7-17, 18-27, 28-37 and 38-54.992 leave gaps, and the scores are real
    numbers; they are read by their integer part: [7, 18), [18, 28), [28, 38), [38, inf).

    Parameters
    ----------
    motor_updrs : bool
        Keep motor_UPDRS as a feature. It is a part of the score to predict, and nearly tells it.
    subject : bool
        Keep the number of the patient as a feature.
    data_dir, progress
        As for ``california``.

    Notes
    -----
    The paper's 22 features are all columns of the file, the target among them: with both choices
    on there are 21, without them 19.
    """
    found = find("parkinson", data_dir, progress)
    header, *lines = found.content.decode().splitlines()
    names = tuple(header.split(","))
    table = np.loadtxt(lines, delimiter=",")
    dropped = {"total_UPDRS"}
    dropped |= set() if motor_updrs else {"motor_UPDRS"}
    dropped |= set() if subject else {"subject#"}
    kept = [column for column, name in enumerate(names) if name not in dropped]
    ranks = bin_ranks(table[:, names.index("total_UPDRS")], PARKINSON_EDGES)
    features = tuple(names[column] for column in kept)
    return Dataset(
        "parkinson", standardise(table.take(kept, axis=1)), ranks, 4, features, found.source
    )


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
