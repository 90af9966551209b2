"""Move large requests off the event loop, so that small ones are not delayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from fastapi.concurrency import run_in_threadpool

MANY_BYTES = 1 << 17
"""Larger bodies are processed in a thread."""

Returned = TypeVar("Returned")


class Offload:
    """Process small bodies on the event loop, and large ones in a thread, one at a time.

    A decoded body takes many times its size in memory, hence one at a time.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, work: Callable[[bytes], Returned], body: bytes) -> Returned:
        """Return ``work(body)``."""
        if len(body) <= MANY_BYTES:
            return work(body)
        async with self._turn:
            return await run_in_threadpool(work, body)
