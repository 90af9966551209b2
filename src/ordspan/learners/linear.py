"""Learners with one weight per feature and sorted thresholds."""

from __future__ import annotations

from ordspan.core import memory
from ordspan.learners.checks import DEFAULT_C, check_rule
from ordspan.learners.growing import GrowingLearner


class LinearLearner(GrowingLearner):
    """Exact PA, PA-I or PA-II on ranks 1..K: the fast core of `OrdinalPA`.

    Its defaults are the paper's algorithm: the last iterate, and unbalanced steps.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.
    variant : {"PA-I", "PA", "PA-II"}
        Which update.
    C : float
        Aggressiveness of PA-I and PA-II; PA has none.
    average : bool
        Predict with the average of all iterates instead of the last.
    solver : {"exact", "sca"}
        "sca" is the search printed in the paper, which often misses the optimum; for comparison.
    balanced : bool
        Measure the thresholds on the scale of the scores; see `OrdinalPA`. The paper does not.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import LinearLearner
    >>> learner = LinearLearner(n_features=1, n_classes=2, variant="PA")
    >>> learner.learn_one(np.array([1.0]), 1, 1)  # predicts rank 2, then learns rank 1
    2
    >>> learner.predict_one(np.array([1.0]))
    1
    >>> learner.weights, learner.thresholds
    (array([-0.5]), array([0.5]))
    """

    rules = range(memory.PRANK)

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        average: bool = False,
        *,
        solver: str = "exact",
        balanced: bool = False,
    ) -> None:
        rule = check_rule(variant, C, solver)
        if balanced and solver != "exact":
            raise ValueError(
                f"solver={solver!r} is the paper's printed search, which cannot be balanced; give "
                "balanced=False"
            )
        super().__init__(
            n_features, n_classes, rule=rule, C=float(C), average=average, balanced=bool(balanced)
        )


class PRankLearner(GrowingLearner):
    """PRank (Crammer & Singer 2001) on ranks 1..K.

    On a range label only the required thresholds move.

    Parameters
    ----------
    n_features, n_classes : int
        As in `LinearLearner`.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import PRankLearner
    >>> learner = PRankLearner(n_features=1, n_classes=3)
    >>> learner.learn_one(np.array([1.0]), 1)  # predicts 3: two thresholds are on the wrong side
    3
    >>> learner.weights, learner.thresholds
    (array([-2.]), array([1., 1.]))
    """

    rules = (memory.PRANK,)

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(n_features, n_classes, rule=memory.PRANK, C=1.0, average=False)
