"""Microsoft's learning-to-rank data: a full fold, or a sample of it, which is downloaded.

It does not ship with the package. A file of the sample is used only if its SHA-256 is known.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ordspan.core.state import Ranks
from ordspan.datasets.sets import Dataset, Floats, standardise
from ordspan.tables.rows import FileError
from ordspan.tables.svmlight import SparseRows, SvmlightFile
from ordspan.tables.text import Text
from ordspan.wording import check_choice

DataDir = str | os.PathLike[str] | None
MSLR_PARTS = {"train": ("train.txt",), "all": ("train.txt", "vali.txt", "test.txt")}
MSLR_FEATURES, MSLR_GRADES = 136, 5
MSLR_SAMPLE = (
    "mslr_web10k_sample/msn1.fold1.train.5k.txt",
    "mslr_web10k_sample/msn1.fold1.test.5k.txt",
)
RANKEVAL = (
    "https://raw.githubusercontent.com/hpclab/rankeval/6c7d5981c54fde19b882c9a01e095cc67d439e4d/"
    "rankeval/test/data/"
)
SHA256 = {
    MSLR_SAMPLE[0]: "6d1721de961a35fbaef7085dc5b41e2940f0ddb04bab5f7a8566cf7db4158fa6",
    f"{MSLR_SAMPLE[0]}.gz": "1076088a88b72917280ee3a3488fcdf2ae7283f5cfaeaea6e8c5af9f61bd3b3a",
    MSLR_SAMPLE[1]: "13d3c638edd23e482c38f4316c2680c938c2eaedbe096970ab30a48e364463d3",
    f"{MSLR_SAMPLE[1]}.gz": "e44487c3868560ad20cf6dd37a7aa7218f8e50f0c28b22d738bbac59e18019d2",
}
TIMEOUT = 10.0
"""Seconds without a response before a download is abandoned."""
MSLR_WAY = (
    "get MSLR-WEB10K from https://www.microsoft.com/en-us/research/project/mslr/ and put "
    "train.txt, vali.txt and test.txt of its Fold1 into a folder, or for a sample of 10,000 rows "
    f"put msn1.fold1.train.5k.txt and msn1.fold1.test.5k.txt of {RANKEVAL} into its folder "
    "mslr_web10k_sample; set ORDSPAN_DATA to the folder"
)


class DataUnavailable(LookupError):  # noqa: N818 - the name describes the problem
    """The data set is not available: its name, the reason and how to get it.

    Parameters
    ----------
    name : str
        Name of the data set.
    reason : str
        Why it is not available.
    way_to_get_it : str
        What to do about it.

    Examples
    --------
    >>> from ordspan.datasets import DataUnavailable
    >>> print(DataUnavailable("mslr", "no file train.txt", "name its folder with data_dir"))
    mslr: no file train.txt; name its folder with data_dir
    """

    def __init__(self, name: str, reason: str, way_to_get_it: str) -> None:
        super().__init__(name, reason, way_to_get_it)
        self.name, self.reason, self.way_to_get_it = name, reason, way_to_get_it

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}; {self.way_to_get_it}"


class CorruptFile(ValueError):  # noqa: N818
    """The file exists, but its content is not the expected one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.datasets import CorruptFile, mslr
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "train.txt").write_text("not what it was")
    15
    >>> try:
    ...     mslr(data_dir=folder)
    ... except CorruptFile as error:
    ...     print(str(error).split(": ")[0])
    /.../train.txt, row 1
    """


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
    check_choice("parts", parts, MSLR_PARTS)
    folder = data_folder(data_dir)
    files = _full_fold(MSLR_PARTS[parts], folder) if folder else ()
    if files:
        source = f"full fold: {', '.join(file.name for file in files)}"
    else:
        files, origins = zip(*(_sample_file(name, folder) for name in MSLR_SAMPLE), strict=True)
        source = "sample of 10,000 rows: " + ", ".join(origins)
    X, ranks = read_graded(files)
    names = tuple(f"feature {number}" for number in range(1, MSLR_FEATURES + 1))
    return Dataset("mslr", standardise(X), ranks, MSLR_GRADES, names, source)


def data_folder(data_dir: DataDir = None) -> Path | None:
    """The given folder, or the one named by ORDSPAN_DATA; it must exist."""
    name = data_dir or os.environ.get("ORDSPAN_DATA")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(f"the data folder {folder} does not exist or is not a folder")
    return folder


def _full_fold(parts: tuple[str, ...], folder: Path) -> tuple[Path, ...]:
    """The files of a full fold in the data folder; empty if it has none."""
    for fold in (folder, folder / "Fold1", folder / "MSLR-WEB10K" / "Fold1"):
        missing = [part for part in parts if not (fold / part).is_file()]
        if not missing:
            return tuple(fold / part for part in parts)
        if len(missing) < len(parts):  # an incomplete fold is a mistake; do not search further
            reason = f"{fold} has no {' and no '.join(missing)}"
            raise DataUnavailable("mslr", reason, MSLR_WAY)
    return ()


def _sample_file(name: str, folder: Path | None) -> tuple[Path, str]:
    """A file of the data folder, plain or gzipped, or of the cache; and where it comes from."""
    for known in (name, f"{name}.gz"):
        if folder and (path := folder / known).is_file():
            if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256[known]:
                raise CorruptFile(
                    f"{path} is damaged or another version: its SHA-256 is not {SHA256[known]}; "
                    "delete or replace it"
                )
            return path, f"file {known} of the data folder"
    try:
        return _download(name)
    except ConnectionError as fault:
        where = f"no train.txt and no {name} in {folder}" if folder else "no data folder is named"
        raise DataUnavailable("mslr", f"{where}, and {fault}", MSLR_WAY) from None


def _download(name: str) -> tuple[Path, str]:
    """A file of the sample from the cache, downloaded if it is not there yet."""
    try:
        import pooch
        from requests import exceptions
    except ModuleNotFoundError as missing:
        raise ConnectionError(
            f"downloading needs {missing.name}: pip install 'ordspan[experiments]'"
        ) from None
    pooch.get_logger().setLevel("WARNING")
    cache = Path(os.environ.get("ORDSPAN_CACHE") or pooch.os_cache("ordspan"))
    folder, _, file = name.rpartition("/")
    if os.environ.get("ORDSPAN_OFFLINE", "") not in ("", "0") and not (cache / name).exists():
        raise ConnectionError("downloads are disabled by ORDSPAN_OFFLINE")
    try:
        path = pooch.retrieve(
            url := RANKEVAL + file,
            SHA256[name],
            fname=file,
            path=cache / folder,
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
        )
    except (exceptions.ConnectionError, exceptions.Timeout):
        raise ConnectionError(
            f"the download failed: {RANKEVAL.split('/')[2]} cannot be reached"
        ) from None
    except (OSError, ValueError) as fault:  # an HTTP error, another file, or a full disk
        raise ConnectionError(f"the download failed: {' '.join(str(fault).split())}") from None
    return Path(path), f"download of {url}"


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
    fault, cells = found.faults.get(row), slice(starts[row], starts[row + 1])
    if fault is None and found.grades[row] not in range(MSLR_GRADES):
        fault = f"relevance {found.grades[row]:g} is not one of 0, 1, 2, 3, 4"
    if fault is None:
        values = np.full(MSLR_FEATURES, np.nan)
        values[X.indices[cells]] = X.data[cells]
        column = int(np.argmin(np.isfinite(values)))
        fault = f"column {column + 1} is missing or not a finite number"
    raise CorruptFile(f"{path}, row {before + row + 1}: {fault}")
