"""Microsoft's learning-to-rank data: a full fold, or a sample of it, which is downloaded.

It does not ship with the package. A download is used only if its SHA-256 is known.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ordspan.core.state import Ranks
from ordspan.datasets.sets import Dataset, Floats, standardise
from ordspan.tables.rows import FileError
from ordspan.tables.svmlight import read_file
from ordspan.wording import install_hint

DataDir = str | os.PathLike[str] | None
MSLR_FEATURES, MSLR_GRADES = 136, 5
MSLR_FOLDS = ("train.txt", "Fold1/train.txt", "MSLR-WEB10K/Fold1/train.txt")
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
    MSLR_SAMPLE[1]: "13d3c638edd23e482c38f4316c2680c938c2eaedbe096970ab30a48e364463d3",
}
TIMEOUT = 10.0
"""Seconds without a response before a download is abandoned."""
MSLR_WAY = (
    "get MSLR-WEB10K from https://www.microsoft.com/en-us/research/project/mslr/ and put "
    "train.txt of its Fold1 into a folder, or for a sample of 10,000 rows "
    f"put msn1.fold1.train.5k.txt and msn1.fold1.test.5k.txt of {RANKEVAL} into its folder "
    "mslr_web10k_sample; set ORDSPAN_DATA to the folder"
)


class DataUnavailable(LookupError):  # noqa: N818 - the name describes the problem
    """The data set is not available; the message says why, and how to get it.

    Examples
    --------
    >>> from ordspan.datasets import DataUnavailable
    >>> print(DataUnavailable("no file train.txt; name its folder with data_dir"))
    no file train.txt; name its folder with data_dir
    """


def mslr(*, data_dir: DataDir = None) -> Dataset:
    """Microsoft learning to rank: 136 features of query-page pairs, relevance 0..4 as ranks 1..5.

    The 723,412 rows of a full fold of MSLR-WEB10K are preferred: train.txt in the data folder
    itself, or in Fold1 or MSLR-WEB10K/Fold1 there. Without it, a sample of 10,000 rows is read,
    the first 5,000 of train.txt and of test.txt: from mslr_web10k_sample in the data folder, or
    downloaded (11 MB) from the tests of the package rankeval and cached. Microsoft's terms, for
    research only, apply to both.

    Parameters
    ----------
    data_dir : path, optional
        Folder to look in first; by default, the one named by ORDSPAN_DATA.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..5.

    Raises
    ------
    DataUnavailable
        There is no such file, and the sample cannot be downloaded.
    ValueError
        A file is damaged; the message names the row.
    """
    folder, source = data_folder(data_dir), "full fold: train.txt"
    folds = [folder / fold for fold in MSLR_FOLDS] if folder else []
    files = [path for path in folds if path.is_file()][:1]
    if not files:
        samples = [_sample_file(name, folder) for name in MSLR_SAMPLE]
        files = [path for path, _ in samples]
        source = "sample of 10,000 rows: " + ", ".join(origin for _, origin in samples)
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


def _sample_file(name: str, folder: Path | None) -> tuple[Path, str]:
    """A file of the data folder, plain or gzipped, or of the cache; and where it comes from."""
    for form in (name, f"{name}.gz"):
        if folder and (path := folder / form).is_file():
            return path, f"file {form} of the data folder"
    try:
        return _download(name)
    except ModuleNotFoundError as missing:
        why = install_hint(missing.name)
    except (OSError, ValueError) as fault:  # no network, an HTTP error, another file, a full disk
        why = f"the download failed: {' '.join(str(fault).split())}"
    where = f"no train.txt and no {name} in {folder}" if folder else "no data folder is named"
    raise DataUnavailable(f"{where}, and {why}; {MSLR_WAY}")


def _download(name: str) -> tuple[Path, str]:
    """A file of the sample from the cache, downloaded if it is not there yet."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    path = Path(os.environ.get("ORDSPAN_CACHE") or pooch.os_cache("ordspan")) / name
    if os.environ.get("ORDSPAN_OFFLINE", "") not in ("", "0") and not path.exists():
        raise ConnectionError("downloads are disabled by ORDSPAN_OFFLINE")
    url, downloader = RANKEVAL + path.name, pooch.HTTPDownloader(timeout=TIMEOUT)
    pooch.retrieve(url, SHA256[name], path.name, path.parent, downloader=downloader)
    return path, f"download of {url}"


def read_graded(paths: Sequence[Path]) -> tuple[Floats, Ranks]:
    """Features and ranks of svmlight files with all 136 features in every line."""
    values, grades = [], []
    for path in paths:
        n_rows = 0
        for X, grade, _, faults in read_file(str(path), MSLR_FEATURES, first=1):
            is_whole = np.diff(X.indptr) == MSLR_FEATURES
            is_whole &= np.isin(grade, range(MSLR_GRADES)) & np.isfinite(X.sum(axis=1))
            if not is_whole.all():
                row = int(is_whole.argmin())
                needs = f"needs a relevance 0..4 and {MSLR_FEATURES} finite numbers"
                raise FileError(f"{path}, row {n_rows + row + 1}: {faults.get(row, needs)}")
            values.append(X.data.reshape(-1, MSLR_FEATURES))
            grades.append(grade + 1)
            n_rows += grade.size
        if not n_rows:
            raise FileError(f"{path}: the file is empty")
    return np.concatenate(values), np.concatenate(grades).astype(np.int64)
