"""The label and the key of a record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from numpy.typing import NDArray

from ordspan.commands.models import RETRAIN, label_reader
from ordspan.labels.forms import number_as_text
from ordspan.serving.records import REQUEST, as_word
from ordspan.tables.rows import RowError
from ordspan.wording import brief

LONGEST_KEY = 200
N_REMEMBERED = 4096


def some_range(classes: NDArray[Any]) -> list[Any]:
    """Two neighbouring grades, for an example.

    >>> import numpy as np
    >>> some_range(np.array(["low", "high"])), some_range(np.arange(1, 6))
    (['low', 'high'], [3, 4])
    """
    middle = (len(classes) + 1) // 2
    return classes[middle - 1 : middle + 1].tolist()


class LabelParser:
    """Parse the labels of records in the forms accepted in files: a grade, a range, or two ends.

    >>> import numpy as np
    >>> labels = LabelParser(np.array([1, 2, 3, 4, 5]))
    >>> [labels.ends({"label": label}, 1) for label in (4, "3-5", [2, None], "at most 2")]
    [(4, 4), (3, 5), (2, 5), (1, 2)]
    >>> labels.ends({"lower": 3}, 1)
    (3, 5)
    """

    def __init__(self, classes: NDArray[Any]) -> None:
        low, high = ends = some_range(classes)
        pair = msgspec.json.encode(ends).decode()
        self._reader = label_reader(
            classes,
            f'correct it, write a range as "{low} to {high}", ">={low}" or {pair}, or {RETRAIN}',
        )
        self._interval = lru_cache(N_REMEMBERED)(self._reader.interval)  # most labels repeat

    def ends(self, given: Mapping[str, Any], number: int) -> tuple[int, int]:
        """Lowest and highest rank of a label, given as label, or as lower, upper or both."""
        try:
            match given:
                case {"label": _, **ends} if ends:
                    raise ValueError("give either 'label', or 'lower' and 'upper', not both")
                case {"label": [lower, upper]}:
                    return self._pair(lower, upper)
                case {"label": label}:
                    return self._interval(_label_word(label))
                case {"lower": _} | {"upper": _}:
                    return self._pair(given.get("lower"), given.get("upper"))
                case _:
                    raise ValueError("no label; give 'label', or 'lower', 'upper' or both")
        except ValueError as error:
            raise RowError(f"{REQUEST}, record {number}: {error}") from None

    def _pair(self, lower: Any, upper: Any) -> tuple[int, int]:
        low = self._reader.end(_label_word(lower), 1)
        high = self._reader.end(_label_word(upper), len(self._reader.classes))
        if low > high:
            raise ValueError(f"lower {lower!r} is above upper {upper!r}; swap them?")
        return low, high


def _label_word(value: Any) -> str:
    if isinstance(value, list | dict):
        raise ValueError(f"the label {brief(value)} is neither a grade nor a range")
    return number_as_text(as_word(value) if isinstance(value, bool) else value)


def key_of(key: Any, number: int) -> str | None:
    """The key of a record, if it has one."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
        raise RowError(
            f"{REQUEST}, record {number}: the key {brief(key)} is not a string of 1 to "
            f"{LONGEST_KEY} characters"
        )
    return key
