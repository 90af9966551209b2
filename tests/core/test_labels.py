"""Labels in the user's words become intervals of ranks, or an error that names the row."""

import datetime

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import OrdinalPA, coarsen, intervals
from ordspan.core import labels

GRADES = np.array(["low", "mid", "high"])


@pytest.mark.parametrize(
    "learn",
    [
        lambda X, y: OrdinalPA().fit(X, y),
        lambda X, y: make_pipeline(StandardScaler(), OrdinalPA()).fit(X, y),
        lambda X, y: coarsen(y, 0.5, random_state=0),
    ],
)
def test_the_warning_about_sorted_grades_names_the_users_line(learn):
    with pytest.warns(UserWarning, match="the order of the grades was not given") as caught:
        learn([[1.0], [2.0], [3.0]], GRADES)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_warning_about_the_shape_of_y_names_the_users_line_too():
    with pytest.warns(DataConversionWarning) as caught:
        make_pipeline(StandardScaler(), OrdinalPA()).fit([[1.0], [2.0]], [[1], [2]])
    assert [warning.filename for warning in caught] == [__file__]


# -- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.float32, np.float64])
def test_whole_numbers_of_any_type_are_ranks(dtype):
    low, high = labels.check_ranks(np.array([1, 2], dtype), np.array([1, 3], dtype), 3)
    assert low.dtype == high.dtype == np.int64
    assert low.tolist() == [1, 2]
    assert high.tolist() == [1, 3]


def test_no_rows_are_no_error():
    low, high = labels.check_ranks(np.empty(0, int), np.empty(0, int), 3)
    assert low.size == high.size == 0


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([1, 0], [1, 1], r"row 1: lower rank 0 is not in 1\.\.3"),
        ([1, 4], [3, 4], r"row 1: lower rank 4 is not in 1\.\.3"),
        ([1, 1], [2, 4], r"row 1: upper rank 4 is not in 1\.\.3"),
        ([1, 3, 3], [1, 2, 1], r"row 1: lower rank 3 is above upper rank 2; swap"),
        ([1, 1.5], [2, 2], r"row 1: lower rank 1\.5 is not a whole number"),
        ([1, 1], [2, np.nan], r"row 1: upper rank nan is not a whole number"),
        ([1, 1], [2, np.inf], r"row 1: upper rank inf is not a whole number"),
        ([1, 2], [2], "lower has 2 ranks, but upper has 1"),
        ([[1, 2]], [[2, 2]], r"lower must be 1-d.*\(1, 2\)"),
        (["a"], ["b"], "lower must hold whole numbers, not"),
        ([True], [True], "lower must hold whole numbers, not bool"),
    ],
)
def test_bad_ranks_name_row_and_value(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        labels.check_ranks(lower, upper, 3)


# -- classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classes",
    [["low", "mid", "high"], np.array(["low", "mid", "high"], dtype=object), (3, 1, 2), [0.5, 1.5]],
)
def test_classes_keep_the_order_they_are_given_in(classes):
    assert labels.check_classes(classes).tolist() == list(classes)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([1, 2, 2], "lists 2 more than once"),
        (["a", "b", "a"], "lists 'a' more than once"),
        ([[1, 2]], "1-d list from lowest to highest, got 2-d"),
        (["a"], "at least 2 classes, but got 1 class"),
        ([1.0, np.nan], "must be finite"),
    ],
)
def test_bad_classes_are_named(classes, message):
    with pytest.raises(ValueError, match=message):
        labels.check_classes(classes)


def test_numbers_are_sorted_in_silence_and_words_with_a_warning():
    found = labels.infer_classes(np.array([3.0, 1.0, np.nan]), np.array([np.inf, 2.0, 1.0]))
    assert found.tolist() == [1, 2, 3]
    with pytest.warns(UserWarning, match=r"sorted: \['high', 'low'\].*classes="):
        assert labels.infer_classes(np.array(["low", "high"])).tolist() == ["high", "low"]


def test_a_range_that_contradicts_the_sorted_words_asks_for_their_order():
    lower = np.array([None, "low", "mid"], dtype=object)
    upper = np.array(["low", "mid", "high"], dtype=object)
    message = (
        r"row 2: lower end 'mid' is above upper end 'high', but the order .* was not given, so "
        r"they were sorted: \['high', 'low', 'mid'\]; give it .* classes="
    )
    with pytest.raises(ValueError, match=message):
        labels.infer_classes(lower, upper)
    with pytest.raises(ValueError, match="order of the grades was not given"):
        OrdinalPA().fit([[0.0], [1.0]], [["low", "mid"], ["mid", "high"]])


def test_one_word_has_no_order_to_guess():
    assert labels.infer_classes(np.array(["low", "low"])).tolist() == ["low"]


def test_open_ends_are_none_nan_and_infinities():
    mixed = np.array([None, float("nan"), float("inf"), 1, "low", np.float32("nan")], dtype=object)
    assert labels.is_open(mixed).tolist() == [True, True, True, False, False, True]
    assert labels.is_open(np.array([-np.inf, 0.0])).tolist() == [True, False]
    assert not labels.is_open(np.array([1, 2])).any()
    assert not labels.is_open(np.array(["nan"])).any()


# -- encoding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "classes", "ranks"),
    [
        (np.array(["mid", "low", "high"]), GRADES, [2, 1, 3]),
        (np.array(["mid", "low"], dtype=object), GRADES, [2, 1]),
        (np.array([3, 5, 4]), np.array([3, 4, 5]), [1, 3, 2]),
        (np.array([30, 10]), np.array([10, 20, 30]), [3, 1]),
        (np.array([1, 3]), np.array([3, 2, 1]), [3, 1]),
        (np.array([1.0, 3.0]), np.array([3, 2, 1]), [3, 1]),
        (np.array([0.5]), np.array([-1.0, 0.5]), [2]),
        (np.array([], dtype=int), np.array([1, 2]), []),
    ],
)
def test_a_label_s_rank_is_its_place_among_the_classes(given, classes, ranks):
    assert labels.encode(given, classes).tolist() == ranks


@pytest.mark.parametrize(
    ("given", "classes", "message"),
    [
        (np.array(["low", "top"]), GRADES, r"row 1: label 'top' is not one of the grades \['low'"),
        (np.array([1, 9]), np.array([1, 2]), "row 1: label 9 is not one of the grades"),
        (np.array([0]), np.array([1, 2]), "row 0: label 0 is not one of the grades"),
        (np.array([1.5]), np.array([1, 2]), r"row 0: label 1\.5 is not one"),
        (np.array(["1"]), np.array([1, 2]), "row 0: label '1' is not one"),
        (np.array([1]), GRADES, "row 0: label 1 is not one"),
        (np.array([1.0, np.nan]), np.array([1, 2]), "row 1: label .*nan.* is missing"),
        (np.array(["low", None], dtype=object), GRADES, "row 1: label None is missing"),
    ],
)
def test_unknown_and_missing_labels_name_row_and_value(given, classes, message):
    with pytest.raises(ValueError, match=message):
        labels.encode(given, classes)


def test_the_row_of_an_unknown_label_counts_open_rows_too():
    given = np.array([None, "low", None, "top"], dtype=object)
    with pytest.raises(ValueError, match="row 3: label 'top'"):
        labels.encode(given, GRADES, open_rank=1)


# -- intervals -----------------------------------------------------------------------------------


def test_open_ends_reach_to_the_first_and_the_last_class():
    got = labels.intervals(["mid", None, None], [None, "mid", None], classes=GRADES)
    assert got.tolist() == [["mid", "high"], ["low", "mid"], ["low", "high"]]


def test_infinities_are_open_and_numbers_are_inferred():
    got = labels.intervals([-np.inf, 2.0, np.nan], [1.0, 3.0, np.inf])
    assert got.tolist() == [[1, 1], [2, 3], [1, 3]]


def test_the_same_column_twice_may_be_open():
    column = np.array([1.0, np.nan, 2.0])
    assert labels.intervals(column, column).tolist() == [[1, 1], [1, 2], [2, 2]]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([1, 3], [1, 2], "row 1: lower end 3 is above upper end 2; swap"),
        ([1, 2], [1], "lower has 2 labels, but upper has 1"),
        ([[1]], [1], r"lower must be 1-d, got shape \(1, 1\)"),
        ([1], [4], "row 0: label 4 is not one of the grades"),
    ],
)
def test_bad_intervals_are_named(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        labels.intervals(lower, upper, classes=[1, 2, 3])


@pytest.mark.parametrize(
    ("lower", "upper", "remedy"),
    [
        ([3, 1, 2], [1, 1, 1], "swap the two columns"),
        ([1, 3, 1], [1, 1, 2], ".* Row 2 has .* two people's votes, take the lower"),
    ],
)
def test_columns_crossed_both_ways_may_be_votes(lower, upper, remedy):
    with pytest.raises(ValueError, match=f"lower end 3 is above upper end 1; {remedy}"):
        intervals(lower, upper, classes=[1, 2, 3])


def test_the_order_of_the_classes_decides_which_end_is_lower():
    assert labels.intervals(["mid"], ["high"], classes=GRADES).shape == (1, 2)
    with pytest.raises(ValueError, match="row 0: lower end 'high' is above upper end 'mid'"):
        labels.intervals(["high"], ["mid"], classes=GRADES)


def test_dates_have_an_order_of_their_own():
    days = np.array([datetime.date(2020, 1, d) for d in (3, 1, 2)], dtype="datetime64[D]")
    assert labels.encode(days, labels.infer_classes(days)).tolist() == [3, 1, 2]


def test_intervals_and_coarsening_keep_the_order_of_an_ordered_categorical():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    order = ["low", "mid", "high"]
    words = ["low", "high", "mid"] * 20
    for column in (
        pd.Series(pd.Categorical(words, categories=order, ordered=True)),
        pl.Series(words, dtype=pl.Enum(order)),
    ):
        built = intervals(column, ["high"] * 60)
        assert built[0].tolist() == ["low", "high"]
        rank = {word: i for i, word in enumerate(order)}
        for (low, high), word in zip(coarsen(column, 1.0, random_state=0), words, strict=True):
            assert rank[low] <= rank[word] <= rank[high]


def test_labels_of_mixed_shape_are_refused_in_words():
    with pytest.raises(ValueError, match=r"all pairs \[lower, upper\]; some rows differ"):
        intervals([1, (1, 2)], [1, 2])


def test_a_missing_date_is_an_open_end():
    dates = np.array(["2024-01-01", "NaT", "2025-01-01"], dtype="datetime64[D]")
    assert labels.is_open(dates).tolist() == [False, True, False]


@pytest.mark.parametrize("end", [None, np.nan, float("inf")])
def test_an_open_end_in_a_list_of_words_is_not_a_word(end):
    found = intervals(["mid", end], [end, "mid"], classes=["low", "mid", "high"])
    assert found.tolist() == [["mid", "high"], ["low", "mid"]]


def test_a_word_that_reads_nan_is_a_word():
    found = intervals(["nan", "mid"], ["mid", "mid"], classes=["nan", "mid"])
    assert found.tolist() == [["nan", "mid"], ["mid", "mid"]]
