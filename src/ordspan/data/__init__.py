"""Data: files as streams of batches, named data sets, coarsening, synthetic streams."""

from collections.abc import Callable
from typing import Any

from ordspan.data.coarsening import coarsen
from ordspan.data.judgements import era, esl, lev, swd
from ordspan.data.letor import mslr
from ordspan.data.sets import DataDir, Dataset, Truth, abalone, california, parkinson
from ordspan.data.sources import CorruptFile, DataUnavailable, Progress
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
    "load",
    "mslr",
    "parkinson",
    "stream",
    "swd",
    "synthetic",
]

_FROM_FILES: dict[str, Callable[..., Dataset]] = {
    "california": california,
    "abalone": abalone,
    "parkinson": parkinson,
    "mslr": mslr,
    "era": era,
    "esl": esl,
    "lev": lev,
    "swd": swd,
}
NAMES = (*_FROM_FILES, "synthetic")


def load(
    name: str, data_dir: DataDir = None, progress: Progress | None = None, **choices: Any
) -> Dataset:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    data_dir : path, optional
        Folder to look in first; left out, the one ORDSPAN_DATA names, if any. The cache folder,
        the network (unless ORDSPAN_OFFLINE is set) and installed packages follow.
    progress : callable, optional
        Called with the bytes done and the bytes in all, or None, while a download runs.
    **choices
        Keywords of the data set's own function, such as ``sex="one-column"`` of ``abalone``.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..K.

    Raises
    ------
    DataUnavailable
        The data set cannot be had here; the message says how to get it.
    CorruptFile
        A file is there, but is damaged or another version.

    Examples
    --------
    >>> from ordspan.data import load
    >>> load("synthetic", n=500).X.shape
    (500, 10)
    """
    if name == "synthetic":
        return synthetic(**choices)
    if name not in _FROM_FILES:
        raise ValueError(f"unknown data set {name!r}; choose one of {', '.join(NAMES)}")
    return _FROM_FILES[name](data_dir=data_dir, progress=progress, **choices)
