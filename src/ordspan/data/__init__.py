"""Data: files as streams of batches, named data sets, coarsening, synthetic streams."""

from collections.abc import Callable
from typing import Any

from ordspan.data.coarsening import coarsen
from ordspan.data.judgements import era, esl, lev, swd
from ordspan.data.letor import mslr
from ordspan.data.sets import Dataset, Truth, abalone, california, parkinson
from ordspan.data.sources import (
    CorruptFile,
    DataDir,
    DataUnavailable,
    DownloadProgress,
    data_folder,
)
from ordspan.data.synthetic import synthetic
from ordspan.files.batch import Batch
from ordspan.files.streams import Stream, stream

__all__ = [
    "NAMES",
    "Batch",
    "CorruptFile",
    "DataUnavailable",
    "Dataset",
    "Stream",
    "Truth",
    "abalone",
    "california",
    "coarsen",
    "era",
    "esl",
    "lev",
    "load_dataset",
    "mslr",
    "parkinson",
    "stream",
    "swd",
    "synthetic",
]

_SHIPPED: dict[str, Callable[..., Dataset]] = {
    "california": california,
    "abalone": abalone,
    "parkinson": parkinson,
    "synthetic": synthetic,
}
_FROM_FILES: dict[str, Callable[..., Dataset]] = {
    "mslr": mslr,
    "era": era,
    "esl": esl,
    "lev": lev,
    "swd": swd,
}
NAMES = (*_SHIPPED, *_FROM_FILES)


def load_dataset(
    name: str, data_dir: DataDir = None, progress: DownloadProgress | None = None, **choices: Any
) -> Dataset:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    data_dir : path, optional
        Folder with the data sets that do not ship with ordspan; by default, the one named by
        ORDSPAN_DATA. The sample of ``mslr`` is downloaded if it is not there, unless
        ORDSPAN_OFFLINE is set, and kept in the cache folder (ORDSPAN_CACHE); ``era``, ``esl``,
        ``lev`` and ``swd`` are also found in an installed skordinal.
    progress : callable, optional
        Called during a download with the bytes done, and their total or None.
    **choices
        Keyword arguments of the data set's own function, such as ``sex="one-column"`` for
        ``abalone``.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..K.

    Raises
    ------
    DataUnavailable
        The data set is not available here; the message says how to get it.
    CorruptFile
        A file exists, but is damaged or another version.

    Examples
    --------
    >>> from ordspan.data import load_dataset
    >>> load_dataset("abalone").X.shape
    (4177, 10)
    >>> load_dataset("synthetic", n=500).X.shape
    (500, 10)
    """
    if data_dir is not None:
        data_folder(data_dir)  # refuse a mistyped folder even if it is not needed
    if name in _SHIPPED:
        return _SHIPPED[name](**choices)
    if name not in _FROM_FILES:
        raise ValueError(f"unknown data set {name!r}; choose one of {', '.join(NAMES)}")
    return _FROM_FILES[name](data_dir=data_dir, progress=progress, **choices)
