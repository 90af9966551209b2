"""Scores of many rows, and the ranks of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordspan.core.labels import Ranks
from ordspan.core.memory import Floats
from ordspan.core.rows import scores
from ordspan.learners.checks import RowValueError
from ordspan.learners.rows import NO_ORDER, refusal, row_blocks


def rank_among(thresholds: Floats, scores: Floats) -> Ranks:
    """Rank of every score; a score on a threshold has the rank above."""
    return np.searchsorted(thresholds, scores, side="right").astype(np.int64) + 1


def scores_of(weights: Floats, matrix: Any, feature_names: Any) -> Floats:
    """Dot product of every row of a matrix with the weights."""
    out = np.empty(matrix.shape[0])
    for block, _ in row_blocks(matrix, NO_ORDER):
        part = out[block.rows]
        bad = scores(weights, block.data, block.columns, block.starts, part)
        if bad >= 0:
            raise RowValueError(refusal(matrix, block.rows.start + bad, feature_names))
    return out
