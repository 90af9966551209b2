"""Long work beside the loop that takes requests, so that short ones are not kept waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from fastapi.concurrency import run_in_threadpool

MANY_BYTES = 1 << 17
"""Longer bodies are worked on in a thread."""

Found = TypeVar("Found")


class Offload:
    """Calls functions with bodies: with short ones at once, with long ones one at a time.

    What a long body is read to takes many times its room, so there is only one of them.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, work: Callable[[bytes], Found], body: bytes) -> Found:
        """What the function returns."""
        if len(body) <= MANY_BYTES:
            return work(body)
        async with self._turn:
            return await run_in_threadpool(work, body)
