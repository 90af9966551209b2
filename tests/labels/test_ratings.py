"""Several people's ratings of a row as one range."""

import numpy as np
import pandas as pd
import pytest

from ordspan import from_ratings


@pytest.mark.parametrize("n", range(1, 22))
def test_quartiles_hold_at_least_half_of_the_ratings(n):
    ratings = np.random.default_rng(n).integers(1, 10, (50, n))
    y = from_ratings(ratings, classes=range(1, 10))
    inside = (ratings >= y[:, :1]) & (ratings <= y[:, 1:])
    assert (inside.sum(axis=1) >= n / 2).all()
    assert ((ratings < y[:, :1]).sum(axis=1) <= n / 4).all()
    assert ((ratings > y[:, 1:]).sum(axis=1) <= n / 4).all()
    middle = np.median(ratings, axis=1)
    assert ((y[:, 0] <= middle) & (middle <= y[:, 1])).all()


def test_all_spans_every_rating():
    ratings = np.array([[1, 3, 2, 2, 2, 2, 2, 2], [4, 4, 4, 4, 4, 4, 4, 1]])
    assert from_ratings(ratings, "all").tolist() == [[1, 3], [1, 4]]
    assert from_ratings(ratings).tolist() == [[2, 2], [4, 4]]


@pytest.mark.parametrize(
    "ratings",
    [
        [[1, 2, np.nan], [None, 3, 3], [2.0, None, None], []],
        pd.DataFrame(
            {"a": [1, None, 2, None], "b": [2, 3, None, None], "c": [None, 3, None, None]}
        ),
        np.array([[1, 2, np.nan], [np.nan, 3, 3], [2, np.nan, np.nan], [np.nan] * 3]),
        pd.Series([[1, 2], [3, 3], [2], []]),
        ["[1, 2]", "[3, 3]", "[2]", "[]"],
        ["1;2", "3;;3", "2", ""],
    ],
    ids=["lists", "frame", "array", "lists in cells", "text", "other separators"],
)
def test_gaps_and_containers(ratings):
    """Of a row without a rating nothing is known."""
    assert from_ratings(ratings).tolist() == [[1, 2], [3, 3], [2, 2], [1, 3]]


def test_named_grades_need_an_order():
    judges = pd.DataFrame({"anna": ["low", "high"], "ben": ["mid", "high"]})
    with pytest.raises(ValueError, match="order of the grades"):
        from_ratings(judges)
    ordered = judges.astype(pd.CategoricalDtype(["low", "mid", "high"], ordered=True))
    for y in (from_ratings(ordered), from_ratings(judges, classes=["low", "mid", "high"])):
        assert y.tolist() == [["low", "mid"], ["high", "high"]]


def test_what_is_no_list_of_ratings_is_refused():
    for wrong in ([1, 2, 3], np.ones((2, 2, 2))):
        with pytest.raises(ValueError, match=r"(?s)row 0: .*1.* is not a list of ratings"):
            from_ratings(wrong)
    with pytest.raises(ValueError, match="row 2: rating 9 is not one of the grades"):
        from_ratings([[1, 2, 3], [1, 1], [2, 9]], classes=[1, 2, 3])
    with pytest.raises(ValueError, match="unknown span 'half'"):
        from_ratings([[1, 2]], "half")
