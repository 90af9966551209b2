"""Work done ahead in other threads, while what is there already is being used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

THREADS = 2


def read_ahead(items: Iterator[T], count: int = 1) -> Iterator[T]:
    """The items, the next of which are made in another thread while one is used.

    >>> list(read_ahead(iter("abc"), 2))
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
        _end(pool)


def _end(pool: ThreadPoolExecutor) -> None:
    """Let go of a pool; a thread of its own, in which garbage was collected, cannot wait for it."""
    with suppress(RuntimeError):
        pool.shutdown(cancel_futures=True)


def parallel_map(make: Callable[[T], S], items: Iterator[T], threads: int = THREADS) -> Iterator[S]:
    """What is made of the items, in their order, several at a time; no threads, one by one.

    >>> list(parallel_map(str.upper, iter("ab")))
    ['A', 'B']
    """
    if threads == 0:
        yield from map(make, items)
        return
    coming: deque[Future[S]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            coming.append(pool.submit(make, item))
            if len(coming) > threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        _end(pool)
