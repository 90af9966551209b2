"""Labels in any container become ranges of ranks, or an error that names the row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import OrdinalPA, coarsen, intervals

GRADES = ["low", "mid", "high"]
X = np.array([[0.0], [2.0], [1.0]])


def learned(y, **parameters):
    """What an estimator learns from labels."""
    model = OrdinalPA(random_state=0, **parameters).fit(X[: len(y)], y)
    return model.classes_.tolist(), model.coef_.tolist()


@pytest.mark.parametrize(
    "container",
    [
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        lambda values: np.array(values, dtype=object),
        lambda values: pd.DataFrame({"y": values}),
        lambda values: pl.DataFrame({"y": values}),
    ],
)
def test_exact_labels_of_any_container_are_one_column(container):
    for values, classes in (([3, 1, 2], None), (["low", "high", "mid"], GRADES)):
        assert learned(container(values), classes=classes) == learned(values, classes=classes)


PAIRS = [(1, 2), (2, 2), (1, 3)]


@pytest.mark.parametrize(
    "ranges",  # test_contract.py has frames and arrays of intervals
    [
        np.array(PAIRS),
        pd.Series(PAIRS),
        pd.Series([list(pair) for pair in PAIRS]),
        pl.Series([list(pair) for pair in PAIRS]),
    ],
)
def test_ranges_of_any_container_are_two_columns(ranges):
    assert learned(ranges) == learned(PAIRS)


def test_a_column_vector_is_flattened_with_a_warning_at_the_users_line():
    with pytest.warns(DataConversionWarning) as caught:
        model = make_pipeline(StandardScaler(), OrdinalPA()).fit([[-1.0], [1.0]], [[1], [2]])
    assert model.classes_.tolist() == [1, 2]
    assert [warning.filename for warning in caught] == [__file__]


def test_intervals_and_coarsening_keep_the_order_of_an_ordered_categorical():
    words = ["low", "high", "mid"] * 20
    for column in (
        pd.Series(pd.Categorical(words, categories=GRADES, ordered=True)),
        pl.Series(words, dtype=pl.Enum(GRADES)),
    ):
        built = intervals(column, ["high"] * 60)
        assert built[0].tolist() == ["low", "high"]
        for (low, high), word in zip(coarsen(column, 1.0, random_state=0), words, strict=True):
            assert GRADES.index(low) <= GRADES.index(word) <= GRADES.index(high)
    with pytest.raises(ValueError, match=r"the order of the grades .* is not known: give it"):
        coarsen(words, 0.5)


UP, DOWN = (pd.Categorical(["a"], order, ordered=True) for order in (["a", "b"], ["b", "a"]))


def test_listed_grades_decide_between_two_orders():
    with pytest.raises(ValueError, match="two columns differ in order"):
        intervals(UP, DOWN)
    assert intervals(UP, DOWN, classes=["a", "b"]).tolist() == [["a", "a"]]


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (None, None, "requires y to be passed"),
        ((grade for grade in (1, 2)), None, "a list or an array, got generator"),
        ({1, 2}, None, "a list or an array, got set"),
        (3, None, "a list or an array, got int"),
        ([[1, 2, 3]], None, r"shape \(n,\) or, for ranges, \(n, 2\), but has shape \(1, 3\)"),
        (pd.DataFrame([[1, 2, 3]]), None, "y has 3 columns; use one column of labels or two"),
        (pd.DataFrame(index=[0, 1]), None, "y has 0 columns"),
        (pd.arrays.IntervalArray.from_tuples(PAIRS), None, "closed on 'right'.*closed='both'"),
        (pd.DataFrame({"lower": UP, "upper": DOWN}), None, r"order: \['a', 'b'\] and \['b', 'a'\]"),
        # single grades beside pairs
        (
            [1, [2, 3]],
            None,
            r"row 1: label \[2, 3\] is not of the same kind as row 0, 1; .*from ordspan.inter",
        ),
        ([(1, 2), (2, 2), 3], None, r"row 2: label 3 is not of the same kind as row 0, \(1, 2\)"),
        ([(1, 2), (1, 2, 3)], None, r"row 1: label \(1, 2, 3\) is not of the same kind"),
        (np.array([1, [2, 3]], dtype=object), None, r"row 1: label \[2, 3\]"),
        (pd.Series([1, (2, 3)]), None, r"row 1: label \(2, 3\)"),
        (pd.Series([[1, 2], None]), None, "row 1: label None"),
        # unknown and missing grades
        (["low", "top"], GRADES, r"row 1: label 'top' is not one of the grades \['low'.*; correct"),
        ([1, 9], [1, 2], "row 1: label 9 is not one of the grades"),
        ([0], [1, 2], "row 0: label 0 is not one of the grades"),
        ([1.5], [1, 2], r"row 0: label 1\.5 is not one"),
        ([1], GRADES, "row 0: label 1 is not one"),
        (["1"], [1, 2], r"row 0: label '1' is not one .*ordspan\.parse_intervals\(y"),
        (["1-2"], [1, 2], r"row 0: label '1-2' is not one .*ordspan\.parse_intervals\(y"),
        (["often"], [1, 2], "row 0: label 'often' is not one .* with every grade in classes"),
        ([range(2), range(3)], None, "row 1: label range.0, 3. is not of the same kind as row 0"),
        ([1.0, np.nan], [1, 2], "row 1 is nan; only a range can have an open end"),
        (["low", None], GRADES, "row 1 is None; only a range can have an open end"),
        (range(150), None, r"150 different numbers, as measurements are.*ordspan\.brackets"),
        ([[None, "low"], ["low", "top"]], GRADES, "row 1: label 'top'"),
    ],
)
def test_bad_labels_name_row_value_and_the_way_out(labels, classes, message):
    rows = X[: len(labels)] if hasattr(labels, "__len__") else X
    with pytest.raises(ValueError, match=message):
        OrdinalPA(classes=classes).fit(rows, labels)


def test_codes_far_from_the_other_grades_get_a_warning():
    with pytest.warns(UserWarning, match=r"\[99\] lie far from the other grades.*no answer"):
        OrdinalPA().fit(np.eye(5), [1, 2, 3, 4, 99])


NAN, INF = float("nan"), float("inf")
COLUMN = np.array([1.0, NAN, 2.0])
OPEN_ENDS = (None, NAN, INF, np.float32("nan"), pd.NA, pd.NaT)


@pytest.mark.parametrize(
    ("lower", "upper", "classes", "meant"),
    [
        (["mid", None], [None, None], GRADES, [["mid", "high"], ["low", "high"]]),
        ([None, 2, 3], [2, None, 3], None, [[2, 2], [2, 3], [3, 3]]),
        ([-INF, 2.0, NAN], [1.0, 3.0, INF], None, [[1, 1], [2, 3], [1, 3]]),
        (COLUMN, COLUMN, None, [[1, 1], [1, 2], [2, 2]]),
        (["nan", "mid"], ["mid", "mid"], ["nan", "mid"], [["nan", "mid"], ["mid", "mid"]]),
    ]
    + [
        (["mid", end], [end, "mid"], GRADES, [["mid", "high"], ["low", "mid"]]) for end in OPEN_ENDS
    ],
)
def test_open_ends_reach_to_the_outer_grades_and_are_no_words(lower, upper, classes, meant):
    assert intervals(lower, upper, classes=classes).tolist() == meant


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([1, 3], [1, 2], "row 1: lower end 3 is above upper end 2; swap the two columns"),
        ([1, 3, 1], [1, 1, 2], "row 1: .* two people's votes, take the lower"),
        ([1, 2], [1], r"columns of one length, got shapes \(2,\), \(1,\)"),
        ([[1]], [1], r"columns of one length, got shapes \(1, 1\), \(1,\)"),
        ([1], [4], "row 0: label 4 is not one of the grades"),
        ([1, (1, 2)], [1, 2], "row 1: label .* all pairs"),
    ],
)
def test_bad_intervals_are_named(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        intervals(lower, upper, classes=[1, 2, 3])
    intervals([3], [2], classes=[3, 2, 1])  # the order of the classes decides which end is lower
