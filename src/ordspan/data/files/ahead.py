"""Work done ahead in other threads, while what is there already is being used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

THREADS = 2


def ahead(items: Iterator[T], count: int) -> Iterator[T]:
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


def made_ahead(
    make: Callable[[T], S], items: Iterator[T], threads: int = THREADS
) -> Iterator[tuple[T, S]]:
    """Every item and what is made of it, in order; the next ones are in the making meanwhile.

    With no threads each is made when it is asked for, and no item is taken before.

    >>> list(made_ahead(str.upper, iter("ab")))
    [('a', 'A'), ('b', 'B')]
    """
    if threads == 0:
        for item in items:
            yield item, make(item)
        return
    coming: deque[tuple[T, Future[S]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            coming.append((item, pool.submit(make, item)))
            if len(coming) > threads:
                first, made = coming.popleft()
                yield first, made.result()
        while coming:
            first, made = coming.popleft()
            yield first, made.result()
