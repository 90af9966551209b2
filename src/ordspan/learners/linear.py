"""Learners with weights per feature: one score and sorted thresholds, or one vector per class."""

from importlib import import_module
from typing import Any

import numpy as np

from ordspan.core import state as layout
from ordspan.core.state import Floats, Ranks
from ordspan.core.walks import EXACT, PRANK, VECTORS, Walks
from ordspan.learners.base import Learner
from ordspan.wording import check_choice

SOLVERS = EXACT_STEP, PRINTED = "exact", "sca"
CLASSES = "classes"
VARIANTS = {
    "PA": {EXACT_STEP: layout.HARD, PRINTED: layout.SCA_HARD, CLASSES: layout.CLASSES_HARD},
    "PA-I": {EXACT_STEP: layout.CAPPED, PRINTED: layout.SCA_CAPPED, CLASSES: layout.CLASSES_CAPPED},
    "PA-II": {EXACT_STEP: layout.SOFT, PRINTED: layout.SCA_SOFT, CLASSES: layout.CLASSES_SOFT},
}
"""The rules of each variant in compiled code, as far as it has them: the exact step, the search as
the paper prints it, and the step of a score per class."""
DEFAULT_C = 0.1
MAX_C = 1e300


def variants_with(kind: str) -> list[str]:
    """The variants that have a rule of some kind.

    >>> variants_with("sca")
    ['PA', 'PA-I', 'PA-II']
    """
    return [variant for variant, rules in VARIANTS.items() if kind in rules]


def check_rule(variant: str, C: float, kind: str = EXACT_STEP) -> int:
    """The number of a variant's rule of some kind in compiled code.

    >>> check_rule("PA-II", 1.0)
    2
    """
    check_choice("variant", variant, variants_with(kind))
    number = C.item() if isinstance(C, np.number) else C
    if not isinstance(number, int | float) or not 0 < number <= MAX_C:
        raise ValueError(f"C must be a finite number above 0, got {C!r}")
    return VARIANTS[variant][kind]


def printed_walks() -> type[Walks]:
    """The search as the paper prints it; kept with the experiments, the only ones that need it."""
    walks: type[Walks] = import_module("ordspan.experiments.sca").SCA
    return walks


class LinearLearner(Learner):
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

    rules = tuple(rule[kind] for rule in VARIANTS.values() for kind in SOLVERS if kind in rule)

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
        check_choice("solver", solver, SOLVERS)
        rule = check_rule(variant, C, solver)
        if balanced and solver != "exact":
            raise ValueError(
                f"solver={solver!r} is the paper's printed search, which cannot be balanced; give "
                "balanced=False"
            )
        super().__init__(n_features, n_classes, rule=rule, C=C, average=average, balanced=balanced)

    def adopt_state(self, state: Floats) -> None:  # noqa: D102
        super().adopt_state(state)
        self.walks = printed_walks() if self.model.rule in layout.UNSORTED else EXACT

    def adopt_settings(self, other: Learner) -> None:  # noqa: D102
        super().adopt_settings(other)
        self.walks = other.walks


class PRankLearner(Learner):
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

    walks = PRANK
    rules = (layout.PRANK,)

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(n_features, n_classes, rule=layout.PRANK)


class VectorLearner(Learner):
    """A learner with one weight vector per class and no thresholds; the highest score wins."""

    walks = VECTORS

    @property
    def weights(self) -> Floats:
        """One vector per class, (K, d)."""
        return self.model.weights.reshape(self.n_classes, self.n_features).copy()

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:  # noqa: D102
        rows = self.rows(X)
        return np.column_stack([self._scores(w, rows, feature_names) for w in self.weights])

    def predict_many(self, X: Any, *, feature_names: Any = None) -> Ranks:  # noqa: D102
        scores = self.latent(X, feature_names=feature_names)
        return np.argmax(scores, axis=1).astype(np.int64) + 1

    def with_rank(self, rank: int) -> Any:  # noqa: D102
        raise TypeError(f"{type(self).__name__} has no thresholds, so it cannot add a rank")


class PerceptronLearner(VectorLearner):
    """Multiclass perceptron with the max-score update (Crammer & Singer 2003) on ranks 1..K.

    On a range label the best class inside is preferred to the best class outside.

    Parameters
    ----------
    n_features : int
        Length of a row.
    n_classes : int
        Number of ranks.

    Examples
    --------
    >>> from ordspan.learners import PerceptronLearner
    >>> learner = PerceptronLearner(1, 3)
    >>> learner.learn_many([[1.0]], [2], predict=True)  # equal scores: predicts the lowest class
    array([1])
    >>> learner.weights.ravel()  # the true class moves up, the predicted one down
    array([-1.,  1.,  0.])
    """

    rules = (layout.PERCEPTRON,)

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(n_features, n_classes, rule=layout.PERCEPTRON)


class MulticlassPALearner(VectorLearner):
    """Exact multiclass PA, PA-I or PA-II (Matsushima et al. 2010) on ranks 1..K.

    One weight vector per class, whose order is ignored. Each example moves all K vectors at once by
    the solution of: minimise half the sum over classes of the squared norm of their change, subject
    to ``(w_y - w_r).x >= 1 - slack`` for every other class r, where

    - PA has no slack,
    - PA-I has one slack >= 0 shared by all r, and C slack added to the objective,
    - PA-II has one slack shared by all r, and C slack^2 added to the objective.

    On a range label, y is the class of the range with the highest score (the lowest if tied), and
    only the classes outside are r. A row of zeros moves nothing.

    Parameters
    ----------
    n_features, n_classes, variant, C :
        As in `LinearLearner`.

    References
    ----------
    S. Matsushima, N. Shimizu, K. Yoshida, T. Ninomiya and H. Nakagawa, "Exact Passive-Aggressive
    Algorithm for Multiclass Classification Using Support Class", SDM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import MulticlassPALearner
    >>> learner = MulticlassPALearner(n_features=1, n_classes=3, variant="PA")
    >>> learner.learn_one(np.array([1.0]), 2)  # all scores are equal: predicts the lowest class
    1
    >>> learner.weights.ravel().round(3)  # the class is now ahead of both others by 1
    array([-0.333,  0.667, -0.333])
    """

    rules = tuple(rule[CLASSES] for rule in VARIANTS.values() if CLASSES in rule)

    def __init__(
        self, n_features: int, n_classes: int, variant: str = "PA-I", C: float = DEFAULT_C
    ) -> None:
        rule = check_rule(variant, C, CLASSES)
        super().__init__(n_features, n_classes, rule=rule, C=C)
