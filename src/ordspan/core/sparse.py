"""Compiled: whether the index arrays of a sparse matrix are valid."""

import numpy as np

from ordspan.core.compiling import compiled


@compiled
def damaged_line(starts, columns, width):
    """First invalid line of compressed arrays, or -1; and whether columns increase in every line.

    A line may point outside the entries, or name a column that does not exist.
    """
    rising = True
    for i in range(starts.size - 1):
        first, last = starts[i], starts[i + 1]
        if not 0 <= first <= last <= columns.size:
            return i, False
        outside, falling = 0, 0
        for j in range(first, last):  # no early exit, so the loops vectorise
            outside += np.int64(columns[j] < 0) + np.int64(columns[j] >= width)
        for j in range(first + 1, last):
            falling += np.int64(columns[j] <= columns[j - 1])
        if outside > 0:
            return i, False
        rising = rising and falling == 0
    return -1, rising
