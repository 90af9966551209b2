"""Limits on memory and on the number of grades, checked before anything is allocated."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ordspan.tables.batch import FileError

FEATURE_BYTES = 150
"""Memory per feature while a linear model is trained: scales, weights, averages, and copies."""


def memory_limit() -> float:
    """Bytes that may be allocated at once: half the memory of the machine or its container."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        memory = 8 << 30
    with suppress(OSError, ValueError):  # no container, or no limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return memory / 2


def check_memory(what: str, n_bytes: float, remedy: str) -> None:
    """Raise if something needs more than half of the memory.

    >>> check_memory("a.txt: 10 features", 1500, "; use fewer")
    """
    limit = memory_limit()
    if n_bytes > limit:
        raise FileError(
            f"{what} would take about {n_bytes / 1e9:,.1f} GB of memory, more than the limit of "
            f"{limit / 1e9:,.1f} GB, half of the memory{remedy}"
        )
