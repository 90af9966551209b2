"""Named data sets, coarsening and synthetic data."""

from collections.abc import Callable
from typing import Any

from ordspan.datasets.coarsening import coarsen
from ordspan.datasets.letor import DataDir, DataUnavailable, data_folder, mslr
from ordspan.datasets.sets import Dataset, Truth, abalone, california, income, parkinson, synthetic
from ordspan.wording import check_choice

__all__ = [
    "NAMES",
    "DataUnavailable",
    "Dataset",
    "Truth",
    "abalone",
    "california",
    "coarsen",
    "income",
    "load_dataset",
    "mslr",
    "parkinson",
    "synthetic",
]

_SETS: dict[str, Callable[..., Dataset]] = {
    load.__name__: load for load in (california, abalone, parkinson, synthetic, mslr)
}
NAMES = tuple(_SETS)


def load_dataset(name: str, data_dir: DataDir = None, **choices: Any) -> Dataset:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    data_dir : path, optional
        Folder with ``mslr``, which does not ship with ordspan; by default, the one named by
        ORDSPAN_DATA. A sample of it is downloaded if it is not there, unless ORDSPAN_OFFLINE is
        set, and kept in the cache folder (ORDSPAN_CACHE).
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
    ValueError
        A file of it is damaged; the message names the row.

    Examples
    --------
    >>> from ordspan.datasets import load_dataset
    >>> load_dataset("abalone").X.shape
    (4177, 10)
    >>> load_dataset("synthetic", n=500).X.shape
    (500, 10)
    """
    if data_dir is not None:
        data_folder(data_dir)  # refuse a mistyped folder even if it is not needed
    check_choice("data set", name, NAMES)
    if name == "mslr":
        choices["data_dir"] = data_dir
    return _SETS[name](**choices)
