"""Folds with the same mix of labels: counts of any label differ by at most one."""

import numpy as np
import pandas as pd
import pytest
from examples import graded
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score

from ordspan import CalibratedOrdinal, OrdinalPA, StratifiedIntervalKFold

X, Y, SPANS = graded(90)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=5, max_size=60),
    st.integers(2, 5),
    st.booleans(),
)
def test_every_label_and_every_middle_is_spread_evenly(pairs, n_splits, shuffle):
    y = np.array([[low, low + width] for low, width in pairs])
    splitter = StratifiedIntervalKFold(n_splits, shuffle=shuffle, classes=range(1, 9))
    folds = list(splitter.split(np.zeros(len(y)), y))
    assert len(folds) == splitter.get_n_splits() == n_splits
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.append(train, test)), np.arange(len(y)))
    assert sum(test.size for _, test in folds) == len(y)
    for strata in (y, y.sum(axis=1, keepdims=True), np.zeros((len(y), 1))):
        for stratum in np.unique(strata, axis=0):
            counts = [(strata[test] == stratum).all(axis=1).sum() for _, test in folds]
            assert np.ptp(counts) <= 1


def test_a_seed_gives_the_same_folds_whatever_the_container_and_another_seed_others():
    def tests(labels, seed=1):
        folds = StratifiedIntervalKFold(4, shuffle=True, random_state=seed).split(X, labels)
        return np.concatenate([test for _, test in folds]).tolist()

    for other in (np.column_stack([Y, Y]), pd.Series(Y), Y.tolist()):
        assert tests(other) == tests(Y)
    assert tests(Y, seed=2) != tests(Y)


def test_words_are_in_their_order_and_ends_may_be_open():
    order = ["low", "mid", "high"]
    y = [["low", "mid"], [None, "mid"], ["mid", None], ["mid", "high"]]
    folds = StratifiedIntervalKFold(2, classes=order).split(np.zeros(4), y)
    assert [test.tolist() for _, test in folds] == [[0, 2], [1, 3]]


@pytest.mark.parametrize("labels", [Y, SPANS], ids=["exact", "ranges"])
def test_it_works_where_scikit_learn_takes_a_splitter(labels):
    folds = StratifiedIntervalKFold(3, shuffle=True, random_state=0)
    model = OrdinalPA(classes=[1, 2, 3, 4], random_state=0)
    assert cross_val_score(model, X, labels, cv=folds).shape == (3,)
    assert CalibratedOrdinal(model, cv=folds).fit(X, labels).predict_proba(X).shape == (90, 4)
    assert repr(folds).startswith("StratifiedIntervalKFold(classes=None, n_splits=3")


def test_more_folds_than_rows_are_refused():
    with pytest.raises(ValueError, match="n_splits=5 greater than the number of samples"):
        list(StratifiedIntervalKFold().split(X[:3], Y[:3]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        list(StratifiedIntervalKFold().split(X[:3], Y))
    with pytest.raises(ValueError, match="n_splits"):
        StratifiedIntervalKFold(1)
