"""Microsoft's learning-to-rank data: a full fold, or a sample of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ordspan.core.state import Ranks
from ordspan.datasets.sets import Dataset, Floats, check_choice, standardise
from ordspan.datasets.sources import (
    MSLR_SAMPLE,
    RANKEVAL,
    CorruptFile,
    DataDir,
    DataUnavailable,
    Found,
    data_folder,
    fetch,
    look_up,
)
from ordspan.tables.rows import FileError
from ordspan.tables.svmlight import SparseRows, SvmlightFile
from ordspan.tables.text import Text

MSLR_PARTS = {"train": ("train.txt",), "all": ("train.txt", "vali.txt", "test.txt")}
MSLR_FEATURES = 136
MSLR_GRADES = 5
MSLR_WAY = (
    "get MSLR-WEB10K from https://www.microsoft.com/en-us/research/project/mslr/ and put "
    "train.txt, vali.txt and test.txt of its Fold1 into a folder, or for a sample of 10,000 rows "
    f"put msn1.fold1.train.5k.txt and msn1.fold1.test.5k.txt of {RANKEVAL} into its folder "
    "mslr_web10k_sample; set ORDSPAN_DATA to the folder"
)


def mslr(*, parts: str = "train", data_dir: DataDir = None) -> Dataset:
    """Microsoft learning to rank: 136 features of query-page pairs, relevance 0..4 as ranks 1..5.

    A full fold of MSLR-WEB10K is preferred: train.txt, vali.txt and test.txt in the data folder
    itself, or in Fold1 or MSLR-WEB10K/Fold1 there. Without it, a sample of 10,000 rows is read,
    the first 5,000 of train.txt and of test.txt: from mslr_web10k_sample in the data folder, or
    downloaded (11 MB) from the tests of the package rankeval and cached. Microsoft's terms, for
    research only, apply to both.

    Parameters
    ----------
    parts : {"train", "all"}
        What to read of a full fold: train.txt, the 723,412 rows of Fold1 that the paper counts,
        or all three files, 1,200,192 rows. The sample is always read whole.
    data_dir : path, optional
        Folder to look in first; by default, the one named by ORDSPAN_DATA.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..5.
    """
    check_choice("parts", parts, tuple(MSLR_PARTS))
    files = _full_fold(MSLR_PARTS[parts], data_dir)
    if files:
        source = f"full fold: {', '.join(file.name for file in files)}"
    else:
        found = [_sample_file(name, data_dir) for name in MSLR_SAMPLE]
        files = tuple(path for path, _ in found)
        source = "sample of 10,000 rows: " + ", ".join(source for _, source in found)
    X, ranks = read_graded(files)
    names = tuple(f"feature {number}" for number in range(1, MSLR_FEATURES + 1))
    return Dataset("mslr", standardise(X), ranks, MSLR_GRADES, names, source)


def _full_fold(parts: tuple[str, ...], data_dir: DataDir) -> tuple[Path, ...]:
    """The files of a full fold in the data folder; empty if it has none."""
    folder = data_folder(data_dir)
    if folder is None:
        return ()
    for fold in (folder, folder / "Fold1", folder / "MSLR-WEB10K" / "Fold1"):
        missing = [part for part in parts if not (fold / part).is_file()]
        if not missing:
            return tuple(fold / part for part in parts)
        if len(missing) < len(parts):  # an incomplete fold is a mistake; do not search further
            reason = f"{fold} has no {' and no '.join(missing)}"
            raise DataUnavailable("mslr", reason, MSLR_WAY)
    return ()


def _sample_file(name: str, data_dir: DataDir) -> Found:
    try:
        return look_up(name, data_dir) or fetch(name)
    except ConnectionError as fault:
        folder = data_folder(data_dir)
        where = f"no train.txt and no {name} in {folder}" if folder else "no data folder is named"
        raise DataUnavailable("mslr", f"{where}, and {fault}", MSLR_WAY) from None


def read_graded(paths: Sequence[Path]) -> tuple[Floats, Ranks]:
    """Features and ranks of svmlight files with all 136 features in every line.

    The files are read twice, first only to count: the matrix of a full fold (0.8 GB) is then
    filled in place and never copied.
    """
    blocks = (block for path in paths for block in Text(str(path)).blocks())
    n_lines = sum(block.content.count(b"\n") + 1 for block in blocks)
    X, ranks = np.empty((n_lines, MSLR_FEATURES)), np.empty(n_lines, dtype=np.int64)
    n_rows = 0
    for path in (path for path in paths if path.stat().st_size):
        try:
            first, file = n_rows, SvmlightFile(str(path), n_features=MSLR_FEATURES)
            for _, found in file.sparse_rows(Text(str(path)).blocks()):
                _refuse_faults(path, found, n_rows - first)
                rows = slice(n_rows, n_rows := n_rows + found.grades.size)
                X[rows] = found.X.data.reshape(-1, MSLR_FEATURES)
                ranks[rows] = found.grades + 1
        except FileError as error:
            raise CorruptFile(str(error)) from None
    if n_rows == 0:
        raise CorruptFile(f"no rows in {', '.join(map(str, paths))}")
    return X[:n_rows], ranks[:n_rows]  # comments and empty lines are lines, but not rows


def _refuse_faults(path: Path, found: SparseRows, before: int) -> None:
    """Raise an error that names the row and the column of the first invalid row."""
    X, starts = found.X, found.X.indptr
    is_bad = np.diff(starts) != MSLR_FEATURES
    is_bad |= ~np.isin(found.grades, range(MSLR_GRADES))
    is_bad[np.searchsorted(starts, np.flatnonzero(~np.isfinite(X.data)), side="right") - 1] = True
    is_bad[list(found.faults)] = True
    if not is_bad.any():
        return
    row = int(np.argmax(is_bad))
    cells = slice(starts[row], starts[row + 1])
    values = dict(zip((X.indices[cells] + 1).tolist(), X.data[cells].tolist(), strict=True))
    fault = found.faults.get(row)
    if fault is None and found.grades[row] not in range(MSLR_GRADES):
        fault = f"relevance {found.grades[row]:g} is not one of 0, 1, 2, 3, 4"
    for column in range(1, MSLR_FEATURES + 1):
        if column not in values:
            fault = fault or f"column {column} is missing"
        elif not np.isfinite(values[column]):
            fault = fault or f"column {column} holds {values[column]:g}, not a finite number"
    raise CorruptFile(f"{path}, row {before + row + 1}: {fault}")
