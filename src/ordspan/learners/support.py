"""The support vectors of a learner in dual form, in blocks with room to grow."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ordspan.core.memory import Floats
from ordspan.core.rbf import LANES
from ordspan.core.vectors import N_PARTS

CACHE_LINE = 8
"""Numbers in a cache line."""


def aligned_zeros(*shape: int) -> Floats:
    """Zeros aligned to a cache line, so that fewer lines are fetched."""
    size = math.prod(shape)
    room = np.zeros(size + CACHE_LINE)
    first = -room.ctypes.data // room.itemsize % CACHE_LINE
    return room[first : first + size].reshape(shape)


class Snapshot(NamedTuple):
    """A copy of the state of a `Support`."""

    size: int
    vectors: Floats
    dual: Floats


class Support:
    """Support vectors, and the coefficients and norms of each.

    Parameters
    ----------
    width : int
        Length of a vector.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.size = 0  # number of support vectors
        self.vectors = np.zeros((0, width, LANES))  # block by block, feature by feature
        self.dual = np.zeros((N_PARTS, 0))  # the parts that core.vectors names

    @property
    def is_full(self) -> bool:
        """Whether there is no room for one more."""
        return self.size == self.dual.shape[1]

    @property
    def rows(self) -> Floats:
        """The support vectors, one per row."""
        return self.vectors.transpose(0, 2, 1).reshape(-1, self.width)[: self.size]

    @property
    def known(self) -> Floats:
        """The used columns of ``dual``, (N_PARTS, size)."""
        return self.dual[:, : self.size]

    def fill(self, known: Floats, rows: Floats) -> None:
        """Replace the support vectors by those given as `known` and `rows` return them."""
        n_blocks = -(-len(rows) // LANES)
        flat = np.zeros((n_blocks * LANES, self.width))
        flat[: len(rows)] = rows
        self.size = len(rows)
        self.vectors, self.dual = self._room(n_blocks)
        self.vectors[...] = flat.reshape(-1, LANES, self.width).transpose(0, 2, 1)
        self.dual[:, : self.size] = known

    def grow(self, budget: int | None) -> None:
        """Double the capacity, up to what a budget can need."""
        n_blocks = 2 * self.vectors.shape[0] + 1
        if budget is not None:
            n_blocks = min(n_blocks, max(budget, self.size) // LANES + 1)  # and the next one
        vectors, dual = self._room(n_blocks)
        vectors[: self.vectors.shape[0]] = self.vectors
        dual[:, : self.dual.shape[1]] = self.dual
        self.vectors, self.dual = vectors, dual

    def _room(self, n_blocks: int) -> tuple[Floats, Floats]:
        return aligned_zeros(n_blocks, self.width, LANES), aligned_zeros(N_PARTS, n_blocks * LANES)

    def snapshot(self) -> Snapshot:
        """A copy for `roll_back`."""
        return Snapshot(self.size, self.vectors.copy(), self.dual.copy())

    def roll_back(self, before: Snapshot) -> None:
        """Restore a snapshot."""
        self.size = before.size
        self.vectors, self.dual = self._room(before.vectors.shape[0])
        self.vectors[...], self.dual[...] = before.vectors, before.dual
