"""Labels in any container become ranges of ranks, or an error that names the row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ordspan import coarsen, intervals
from ordspan.labels.ranks import encode, read_labels

GRADES = np.array(["low", "mid", "high"])


# -- containers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "container",
    [
        list,
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
    for values in ([3, 1, 2], ["b", "a", "c"]):
        labels, order = read_labels(container(values))
        assert labels.tolist() == values
        assert order is None


PAIRS = [(1, 2), (2, 2), (1, 3)]


@pytest.mark.parametrize(
    "ranges",
    [
        PAIRS,
        np.array(PAIRS),
        pd.DataFrame(PAIRS),
        pl.DataFrame(PAIRS, schema=["lower", "upper"], orient="row"),
        pd.arrays.IntervalArray.from_tuples(PAIRS, closed="both"),
        pd.Series(pd.arrays.IntervalArray.from_tuples(PAIRS, closed="both")),
        pd.Series(PAIRS),
        pd.Series([list(pair) for pair in PAIRS]),
        pl.Series([list(pair) for pair in PAIRS]),
    ],
)
def test_ranges_of_any_container_are_two_columns(ranges):
    labels, order = read_labels(ranges)
    assert labels.tolist() == [list(pair) for pair in PAIRS]
    assert order is None
    lower, upper = encode(labels, np.array([1, 2, 3]))
    assert list(zip(lower.tolist(), upper.tolist(), strict=True)) == PAIRS


def test_intervals_and_coarsening_keep_the_order_of_an_ordered_categorical():
    words = ["low", "high", "mid"] * 20
    for column in (
        pd.Series(pd.Categorical(words, categories=GRADES, ordered=True)),
        pl.Series(words, dtype=pl.Enum(GRADES)),
    ):
        built = intervals(column, ["high"] * 60)
        assert built[0].tolist() == ["low", "high"]
        rank = {word: i for i, word in enumerate(GRADES.tolist())}
        for (low, high), word in zip(coarsen(column, 1.0, random_state=0), words, strict=True):
            assert rank[low] <= rank[word] <= rank[high]


def test_listed_grades_decide_between_two_orders():
    up, down = (
        pd.Categorical(["a"], categories=order, ordered=True) for order in (["a", "b"], ["b", "a"])
    )
    with pytest.raises(ValueError, match="two columns differ in order"):
        intervals(up, down)
    assert intervals(up, down, classes=["a", "b"]).tolist() == [["a", "a"]]


@pytest.mark.parametrize(
    ("labels", "row"),
    [
        ([1, [2, 3]], "row 1: label [2, 3] is not of the same kind as row 0, 1"),
        ([(1, 2), (2, 2), 3], "row 2: label 3 is not of the same kind as row 0, (1, 2)"),
        ([(1, 2), (1, 2, 3)], "row 1: label (1, 2, 3) is not of the same kind"),
        (np.array([1, [2, 3]], dtype=object), "row 1: label [2, 3]"),
        (pd.Series([1, (2, 3)]), "row 1: label (2, 3)"),
        (pd.Series([[1, 2], None]), "row 1: label None"),
    ],
)
def test_grades_beside_pairs_are_refused_by_row(labels, row):
    with pytest.raises(ValueError) as error:
        read_labels(labels)
    assert str(error.value).startswith(row)
    assert "ordspan.intervals(lower, upper)" in str(error.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "requires y to be passed"),
        ((grade for grade in (1, 2)), r"a list or an array, got generator"),
        ({1, 2}, r"a list or an array, got set"),
        (3, "a list or an array, got int"),
        ([[1, 2, 3]], r"shape \(n,\) or, for ranges, \(n, 2\), but has shape \(1, 3\)"),
        (pd.DataFrame([[1, 2, 3]]), "y has 3 columns; use one column of labels or two"),
        (pd.DataFrame(index=[0, 1]), "y has 0 columns"),
        (pd.arrays.IntervalArray.from_tuples(PAIRS), "closed on 'right'.*closed='both'"),
        (
            pd.DataFrame(
                {
                    "lower": pd.Categorical(["a"], categories=["a", "b"], ordered=True),
                    "upper": pd.Categorical(["a"], categories=["b", "a"], ordered=True),
                }
            ),
            r"differ in order: \['a', 'b'\] and \['b', 'a'\]",
        ),
    ],
)
def test_what_holds_no_labels_is_refused_in_words(labels, message):
    with pytest.raises(ValueError, match=message):
        read_labels(labels)


# -- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes", "ranks"),
    [
        (np.array(["mid", "low", "high"]), GRADES, [2, 1, 3]),
        (np.array(["mid", "low"], dtype=object), GRADES, [2, 1]),
        (np.array([3, 5, 4]), np.array([3, 4, 5]), [1, 3, 2]),
        (np.array([3, 5], dtype=np.uint8), np.array([3, 4, 5]), [1, 3]),
        (np.array([30, 10]), np.array([10, 20, 30]), [3, 1]),
        (np.array([1, 3]), np.array([3, 2, 1]), [3, 1]),
        (np.array([1.0, 3.0]), np.array([3, 2, 1]), [3, 1]),
        (np.array([0.5]), np.array([-1.0, 0.5]), [2]),
        (np.array([], dtype=int), np.array([1, 2]), []),
        (np.array(["2024-02-01"], "M8[D]"), np.array(["2024-01-01", "2024-02-01"], "M8[D]"), [2]),
    ],
)
def test_a_label_s_rank_is_its_place_among_the_classes(labels, classes, ranks):
    lower, upper = encode(labels, classes)
    assert lower.tolist() == upper.tolist() == ranks
    assert lower.dtype == np.int64


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (
            ["low", "top"],
            GRADES,
            r"row 1: label 'top' is not one of the grades \['low'.*; correct it",
        ),
        ([1, 9], [1, 2], "row 1: label 9 is not one of the grades"),
        ([0], [1, 2], "row 0: label 0 is not one of the grades"),
        ([1.5], [1, 2], r"row 0: label 1\.5 is not one"),
        ([1], GRADES, "row 0: label 1 is not one"),
        (["1"], [1, 2], r"row 0: label '1' is not one .*ordspan\.parse_intervals\(y"),
        (["1-2"], [1, 2], r"row 0: label '1-2' is not one .*ordspan\.parse_intervals\(y"),
        (["often"], [1, 2], "row 0: label 'often' is not one .* with every grade in classes"),
        ([1.0, np.nan], [1, 2], "row 1 is .*nan.*; only a range can have an open end"),
        (["low", None], GRADES, "row 1 is None; only a range can have an open end"),
        ([[None, "low"], ["low", "top"]], GRADES, "row 1: label 'top'"),
    ],
)
def test_unknown_and_missing_labels_name_row_value_and_the_way_out(labels, classes, message):
    with pytest.raises(ValueError, match=message):
        encode(read_labels(labels)[0], np.asarray(classes))


# -- intervals -----------------------------------------------------------------------------------

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
        (["mid", end], [end, "mid"], ["low", "mid", "high"], [["mid", "high"], ["low", "mid"]])
        for end in OPEN_ENDS
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
