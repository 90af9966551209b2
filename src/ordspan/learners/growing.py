"""Learners to which features and ranks can be added while learning."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core import memory as layout
from ordspan.core.memory import Floats
from ordspan.core.rows import BAD_ROW, BAD_WIDTH, row_fits
from ordspan.core.walks import score_one
from ordspan.learners.base import Learner


class WideningLearner(Learner):
    """A learner to which features can be added."""

    def widened(self, n_features: int) -> Self:
        """A learner that continues this one with more features; this one is unchanged.

        It equals a learner that had all the features from the start and only saw zeros in the new
        ones, which are the last columns: to the bit if the rows are sparse. The order of a dense
        sum depends on its length and on the processor, so dense results differ by rounding, about
        1e-15 of the terms. It costs one copy of the memory, so a stream that keeps adding features
        should double their number each time.

        Parameters
        ----------
        n_features : int
            Length of a row from now on.

        Returns
        -------
        State
            The wider learner.

        Examples
        --------
        >>> import numpy as np
        >>> from ordspan.learners import LinearLearner
        >>> learner = LinearLearner(n_features=1, n_classes=2, variant="PA")
        >>> learner.learn_one(np.array([1.0]), 1)
        2
        >>> learner.widened(3).weights
        array([-0.5,  0. ,  0. ])
        """
        if n_features < self.n_features:
            raise ValueError(
                f"a learner of {self.n_features} features cannot be widened to {n_features}"
            )
        wider = copy(self)
        wider.n_features = n_features
        wider.memory = layout.widened_memory(self.memory, n_features)
        return wider


class GrowingLearner(WideningLearner):
    """A learner to which features and ranks can be added: one with sorted thresholds only."""

    def with_rank(self, rank: int) -> Self:
        """A learner that continues this one with one more rank, number ``rank`` of 1..K + 1.

        Higher ranks move up by one. Between two ranks the new one starts with an empty band of
        scores on the threshold between them, so predictions are only renumbered; beyond the
        outermost rank its threshold starts one margin away from the last.

        Parameters
        ----------
        rank : int
            The number of the new rank, from 1 for a new lowest one to K + 1 for a new highest one.

        Returns
        -------
        State
            The learner of K + 1 ranks.

        Examples
        --------
        >>> from ordspan.learners import LinearLearner
        >>> LinearLearner(n_features=1, n_classes=2).with_rank(3).thresholds
        array([0., 1.])
        """
        if not 1 <= rank <= self.n_classes + 1:
            raise ValueError(f"rank {rank} is not in 1..{self.n_classes + 1}")
        grown = copy(self)
        grown.n_classes = self.n_classes + 1
        grown.memory = layout.memory_with_rank(self.memory, rank)
        return grown

    def latent_sparse(self, values: Floats, columns: NDArray[np.int64]) -> float:
        """Score of a sparse row.

        Parameters
        ----------
        values, columns : arrays of shape (m,)
            As in `learn_sparse`.

        Returns
        -------
        float
            The score that decides its rank.
        """
        score: float = score_one(self.memory, values, columns)
        if not abs(score) < np.inf:
            fits = row_fits.py_func(values, columns, self.n_features)
            self._refuse_sparse(BAD_ROW if fits else BAD_WIDTH, values, columns)
        return score
