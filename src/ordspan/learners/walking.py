"""Learners without a compiled call for a single example."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordspan.core.rows import BAD_LABEL, BAD_ROW, BAD_WIDTH, row_fits
from ordspan.core.walks import is_label
from ordspan.learners.base import Learner, whole_ranks_error
from ordspan.learners.checks import as_row
from ordspan.learners.rows import NO_ORDER, NO_WEIGHTS


class WalkingLearner(Learner):
    """A learner that learns a single example as a batch of one row."""

    def _learn_one(self, values: Any, columns: Any, lower: int, upper: int) -> int:
        if not row_fits.py_func(values, columns, self.n_features):
            return BAD_WIDTH
        try:
            if not is_label.py_func(lower, upper, self.n_classes):
                return BAD_LABEL
        except ValueError:  # not a number
            return BAD_LABEL
        except TypeError:
            raise whole_ranks_error(lower, upper) from None
        values, starts = as_row(values), None
        if columns is not None:
            columns, starts = np.asarray(columns, dtype=np.int64), np.array([0, values.size])
        low, high = np.array([int(lower)]), np.array([int(upper)])
        rank = np.empty(1, dtype=np.int64)
        rest = (low, high, NO_WEIGHTS, NO_ORDER, rank, NO_WEIGHTS)
        with self._lock:
            bad = self._walk(values, columns, starts, *rest)
        return BAD_ROW if bad >= 0 else int(rank[0])
