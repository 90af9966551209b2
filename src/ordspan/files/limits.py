"""Whether what files or options ask for fits into memory, found before it is allocated."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ordspan.files.batch import FileError

FEATURE_BYTES = 150
"""Of each feature, while a linear model is trained: scales, weights, their average, and copies."""
MAX_GRADES = 1 << 12
"""An evaluation counts every pair of grades."""
MAX_LABELS = 16 * MAX_GRADES
"""Ranges of grades are labels too."""


def memory_limit() -> float:
    """Bytes that may be asked for at once: half of what the machine, or its container, has."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        memory = 8 << 30
    with suppress(OSError, ValueError):  # no container, or no limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return memory / 2


def check_memory(what: str, n_bytes: float, way_out: str) -> None:
    """Refuse what takes more than half of the memory, with the numbers.

    >>> check_memory("a.txt: 10 features", 1500, "; use fewer")
    """
    limit = memory_limit()
    if n_bytes > limit:
        raise FileError(
            f"{what} would take about {n_bytes / 1e9:,.1f} GB of memory, and may take "
            f"{limit / 1e9:,.1f} GB, half of what there is{way_out}"
        )


def check_grades(count: int, who: str, most: int = MAX_GRADES) -> None:
    """Refuse more grades than can be learned, or more different labels than are worth reading."""
    if count > most:
        what = "grades" if most == MAX_GRADES else "different labels"
        raise ValueError(
            f"{who} {count:,} {what}, more than the {most:,} that can be learned; join "
            "neighbouring grades, such as prices in steps of 10"
        )
