"""Reading ahead and parsing in parallel, in other threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

THREADS = 2


def read_ahead(items: Iterator[T], count: int = 1) -> Iterator[T]:
    """The items, with the next ``count`` of them produced in another thread.

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
        pool.shutdown(wait=False, cancel_futures=True)  # may run in a garbage collection


def parallel_map(make: Callable[[T], S], items: Iterator[T], threads: int = THREADS) -> Iterator[S]:
    """`map` over the items in order, several at a time; with 0 threads, one by one.

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
        pool.shutdown(wait=False, cancel_futures=True)  # may run in a garbage collection
