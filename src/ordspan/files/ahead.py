"""Work done ahead in another thread, while what is there already is being used."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T], count: int = 1) -> Iterator[T]:
    """The items, the next of which are made in another thread while one is used.

    >>> list(ahead(iter("abc"), 2))
    ['a', 'b', 'c']
    """
    end = object()
    pool = ThreadPoolExecutor(1)
    try:
        coming = deque(pool.submit(next, items, end) for _ in range(count))
        while (item := coming.popleft().result()) is not end:
            coming.append(pool.submit(next, items, end))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)
