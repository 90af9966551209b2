"""class_weight is sample_weight by grade: the same model to the bit."""

import numpy as np
import pytest
from examples import KINDS, graded
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from ordspan import MulticlassPA, OrdinalPA, OrdinalSVM

X, Y, SPANS = graded(120)
GRADES = {1: 2.0, 3: 0.5, 4: 7}


def mean_weight(spans, by_grade):
    """The definition, row by row."""
    return [np.mean([by_grade.get(g, 1.0) for g in range(a, b + 1)]) for a, b in spans]


@pytest.mark.parametrize(
    ("kind", "method"),
    [(kind, method) for kind in KINDS for method in ("fit", "partial_fit")] + [(OrdinalSVM, "fit")],
)
@pytest.mark.parametrize("y", [Y, SPANS], ids=["exact", "ranges"])
def test_weights_of_grades_are_weights_of_rows(kind, method, y):
    spans = np.column_stack([y, y]) if y.ndim == 1 else y
    rows = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    by_row = np.array(mean_weight(spans, GRADES))
    model = kind(random_state=0, classes=[1, 2, 3, 4])
    for given, weight in ((None, by_row), (rows, rows * by_row)):
        weighted, plain = clone(model).set_params(class_weight=GRADES), clone(model)
        ours = getattr(weighted, method)(X, y, sample_weight=given)
        theirs = getattr(plain, method)(X, y, sample_weight=weight)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), 1e-9)
        if y.ndim == 1:
            np.testing.assert_array_equal(ours.learner_.state, theirs.learner_.state)
    unweighted = getattr(clone(model), method)(X, y)
    assert not np.allclose(unweighted.decision_function(X), ours.decision_function(X))


def test_balanced_grades_count_the_same_where_a_range_is_a_part_of_each_of_its_grades():
    lower, upper = SPANS.T
    rows = np.random.default_rng(0).uniform(0.0, 2.0, len(SPANS))
    inside = (np.arange(1, 5) >= lower[:, None]) & (np.arange(1, 5) <= upper[:, None])
    count = (rows[:, None] * inside / inside.sum(axis=1, keepdims=True)).sum(axis=0)
    by_grade = dict(zip(range(1, 5), rows.sum() / (4 * count), strict=True))
    uneven = np.repeat([1, 2, 4], [50, 30, 40])
    for y, ours, theirs in (
        (SPANS, rows, rows * mean_weight(SPANS, by_grade)),
        (uneven, None, compute_sample_weight("balanced", uneven)),  # scikit-learn's, if exact
    ):
        model = OrdinalPA(classes=[1, 2, 3, 4], random_state=0)
        expected = clone(model).fit(X, y, theirs)
        found = clone(model).set_params(class_weight="balanced").fit(X, y, ours)
        np.testing.assert_allclose(found.coef_, expected.coef_)
    with pytest.raises(ValueError, match=r"partial_fit sees only some; use a dict"):
        MulticlassPA(class_weight="balanced").partial_fit(X, Y, classes=[1, 2, 3, 4])


def test_words_as_grades_have_weights_by_their_names():
    order = np.array(["d", "c", "b", "a"])
    weights = {"d": 2.0, "b": 0.5, "a": 7.0}
    named = OrdinalPA(classes=order, class_weight=weights, random_state=0).fit(X, order[Y - 1])
    numbered = OrdinalPA(class_weight=GRADES, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(named.coef_, numbered.coef_)
