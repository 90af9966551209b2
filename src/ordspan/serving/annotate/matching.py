"""Match items and grades of other programs with items and ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ordspan.files.batch import brief, is_number
from ordspan.files.forms import plain_word
from ordspan.files.grades import LabelReader
from ordspan.serving.annotate.items import Items

RANGE, SLIDER, POINT = ("range_low", "range_high"), "slider", "scale_"
NOT_CHOSEN, NO_GRADE = (None, False, "", "false"), "bad_text"

Given = Mapping[str, Any]
"""An answer of Potato: the inputs that were filled in or chosen, and their values."""


class PointScale:
    """Convert choices on a slider or scale to ranks.

    Points of a scale count from 1. Slider values are grades if grades are numbers; otherwise they
    count from 1 as well.

    >>> scale = PointScale(["low", "mid", "high"])
    >>> scale.ends({"range_low": "1", "range_high": "2"}), scale.ends({"scale_3": "3"})
    ((1, 2), (3, 3))
    >>> scale.ends({"mid": "true", "high": "false"}), scale.ends({"slider": ""})
    ((2, 2), None)
    """

    def __init__(self, grades: Sequence[Any]) -> None:
        self.grades, self._n = LabelReader(np.asarray(grades)), len(grades)
        self._numbers = all(not isinstance(grade, str) for grade in grades)
        self._counts = list(map(plain_word, grades)) == [str(i + 1) for i in range(self._n)]

    def ends(self, given: Given) -> tuple[int, int] | None:
        """Lowest and highest rank of an answer, or None if there is none."""
        chosen = {name: value for name, value in given.items() if value not in NOT_CHOSEN}
        if not chosen or NO_GRADE in chosen:
            return None
        if RANGE[0] in chosen and RANGE[1] in chosen:
            lower, upper = (self._value(chosen[end]) for end in RANGE)
            if lower > upper:
                raise ValueError(f"the lower end {chosen[RANGE[0]]} is above {chosen[RANGE[1]]}")
            return lower, upper
        if len(chosen) > 1:
            raise ValueError(f"several grades are chosen, {', '.join(chosen)}; keep one")
        ((name, value),) = chosen.items()
        rank = self._value(value) if name == SLIDER else self._choice(name)
        return rank, rank

    def _value(self, value: Any) -> int:
        word = plain_word(value)
        return self.grades.rank(word) if self._numbers or not is_number(word) else self._point(word)

    def _choice(self, name: str) -> int:
        if name.startswith(POINT):
            return self._point(name.removeprefix(POINT))
        if not is_number(name) or not self._numbers:
            return self._point(name) if name.isdecimal() else self.grades.rank(name)
        if not self._counts:
            raise ValueError(
                f"{name} is ambiguous: a grade, or a point on a scale that counts from 1; annotate "
                f"with grades 1..{self._n} to make them the same"
            )
        return self._point(name)

    def _point(self, word: str) -> int:
        """The rank of a point, counted from 1."""
        if not (word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= self._n):
            raise ValueError(
                f"{brief(word)} is not a point from 1 to {self._n}, the number of grades"
            )
        return int(word)


class Finder:
    """Find items by id, or by the values of their columns."""

    def __init__(self, items: Items, id_column: str | None) -> None:
        self._items, self._id = items, id_column
        self._by_id = {} if items.ids is None else {key: i for i, key in enumerate(items.ids)}
        self._by_cells: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}

    def item(self, data: Given) -> int:
        """The one item that matches the data."""
        if self._id is not None and (self._id in data or "" in data):
            key = str(data.get("", data.get(self._id))).strip()
            if key not in self._by_id:
                raise ValueError(f"no item has the {self._id} {brief(key)}; correct it")
            return self._by_id[key]
        if "" in data:
            raise ValueError(f"no id column for item {brief(data[''])}; name it with --id")
        columns = tuple(name for name in self._items.table.columns if name in data)
        if not columns:
            raise ValueError("the data has no column of the items; name an id column with --id")
        fits = self._index(columns).get(tuple(plain_word(data[name]) for name in columns), [])
        if len(fits) != 1:
            found = f"{len(fits)} items have" if fits else "no item has"
            cells = ", ".join(f"{name} {brief(data[name])}" for name in columns)
            raise ValueError(f"{found} {cells}; name an id column with --id")
        return fits[0]

    def _index(self, columns: tuple[str, ...]) -> dict[tuple[str, ...], list[int]]:
        if columns not in self._by_cells:
            index = self._by_cells[columns] = defaultdict(list)
            for item, row in enumerate(self._items.table.select(columns).iter_rows()):
                index[tuple(map(plain_word, row))].append(item)
        return self._by_cells[columns]
