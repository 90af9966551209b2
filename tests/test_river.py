"""The River adapter: River's own checks, the learner behind it to the bit, and bad input."""

import functools
import pickle
import random
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy.sparse import csr_array

pytest.importorskip("river", reason="needs river: pip install 'ordspan[river]'")

from river import checks, evaluate, metrics, preprocessing, stream

import ordspan
from ordspan.river import IntervalMAE, OrdinalPA, PRank

MODELS = {
    "default": OrdinalPA(),
    "PA-II": OrdinalPA("PA-II", average=False),
    "paper": OrdinalPA("PA", balanced=False),
    "PRank": PRank(),
}
each_model = pytest.mark.parametrize("name", MODELS)
one_of_each = pytest.mark.parametrize("name", ["default", "PRank"])


def fresh(name, **options):
    return MODELS[name].clone(options)


def state(model):
    """Everything a model knows, as bytes."""
    return pickle.dumps(model)


@functools.cache
def examples(n=200, seed=0):
    """Dicts in which features come and go, with exact and interval labels in 1..5."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=12)
    out = []
    for t in range(n):
        columns = rng.choice(4 + 8 * t // n, size=3, replace=False)
        values = rng.normal(size=3)
        rank = int(np.clip(np.round(3 + values @ weights[columns]), 1, 5))
        label = rank if rng.random() < 0.6 else (max(1, rank - 1), rank)
        out.append(({f"f{c}": float(v) for c, v in zip(columns, values, strict=True)}, label))
    return out


def taught(name, n=200, **options):
    model = fresh(name, **options)
    for x, y in examples()[:n]:
        model.learn_one(x, y)
    return model


# -- River's own checks --------------------------------------------------------------------------


def river_checks():
    """Every check that River has for a multi-class mini-batch classifier; none is skipped."""
    for name in ("default", "PRank"):  # one of each class
        for number, check in enumerate(checks.yield_checks(MODELS[name])):
            yield pytest.param(name, check, id=f"{name}-{check.__name__}-{number}")


@pytest.mark.parametrize(("name", "check"), list(river_checks()))
def test_rivers_own_checks(name, check):
    random.seed(0)
    assert not MODELS[name]._unit_test_skips()
    model = fresh(name)
    if "dataset" in getattr(check, "keywords", {}):
        rows = list(check.keywords["dataset"])
        check = functools.partial(check, dataset=rows)
        if isinstance(rows[0][1], str):  # names need an order
            model = fresh(name, classes=sorted({y for _, y in rows}))
    check(model)


@each_model
def test_the_memory_that_river_shows_is_that_of_the_model(name):
    """Compiled code, which all models share, is not a part of it."""
    model = preprocessing.StandardScaler() | taught(name)
    assert model._raw_memory_usage < 30_000


def test_probabilities_are_learned_from_grades_that_turn_up_on_the_way():
    model = OrdinalPA()
    rng = np.random.default_rng(0)
    assert model.predict_proba_one({"a": 0.0}) == {}
    for grade in rng.integers(1, 6, size=400).tolist():
        model.learn_one({"a": grade - 3 + 0.5 * rng.normal()}, grade)
        chances = model.predict_proba_one({"a": 0.0, "never seen": 7.0})
        assert list(chances) == model.grades
        assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12)
    assert max(chances, key=chances.get) == 3


# -- the same as the learner and the estimator ---------------------------------------------------


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_dicts_are_sparse_rows_of_the_estimator_to_the_bit(variant, average, balanced):
    """Also where features come later: they are as if known from the start."""
    settings = {"average": average, "balanced": balanced, "classes": [1, 2, 3, 4, 5]}
    model = OrdinalPA(variant, 0.3, **settings)
    expected = ordspan.CalibratedOrdinal(ordspan.OrdinalPA(variant, C=0.3, **settings))
    names = list(dict.fromkeys(name for x, _ in examples() for name in x))
    for x, y in examples():
        x = {name: x[name] for name in names if name in x}
        row = csr_array([[x.get(name, 0.0) for name in names]])
        if model.weights:
            grader = expected if average else expected.estimator_  # the median, or by thresholds
            assert model.predict_one(x) == grader.predict(row)[0]
            chances = list(model.predict_proba_one(x).values())
            assert chances == pytest.approx(expected.predict_proba(row)[0], rel=1e-12)
        model.learn_one(x, y)
        expected.partial_fit(row, [y if isinstance(y, tuple) else (y, y)])
    assert model.grades == [1, 2, 3, 4, 5]
    assert list(model.weights) == names
    assert list(model.weights.values()) == expected.estimator_.coef_.tolist()
    assert model.thresholds == expected.estimator_.thresholds_.tolist()


@each_model
def test_a_row_without_features_is_a_row_of_zeros_to_the_bit(name):
    bare, zeros = taught(name), taught(name)
    zero = dict.fromkeys(zeros.weights, 0.0)
    for label in (5, 1, (2, 3)):
        assert bare.predict_one({}) == zeros.predict_one(zero)
        assert bare.predict_proba_one({}) == zeros.predict_proba_one(zero)
        bare.learn_one({}, label)
        zeros.learn_one(zero, label)
    assert state(bare) == state(zeros)


@each_model
def test_a_stream_may_begin_with_rows_without_features(name):
    one, many = fresh(name), fresh(name)
    for grade in (3, 1, 2):
        one.learn_one({}, grade)
    nothing = pd.DataFrame(index=range(3))
    many.learn_many(nothing, [3, 1, 2])
    assert many.thresholds == one.thresholds
    assert many.weights == one.weights == {}
    assert many.predict_many(nothing).tolist() == [one.predict_one({})] * 3
    for model in (one, many):
        model.learn_one({"a": 1.0, "b": 2.0}, 3)
        assert list(model.weights) == ["a", "b"]


# -- grades --------------------------------------------------------------------------------------


@each_model
def test_nothing_is_known_at_first_and_then_one_grade(name):
    model, given = fresh(name), fresh(name, classes=[1, 2])
    for unknowing in (model, given):
        assert unknowing.predict_one({"a": 1.0}) is None
        assert unknowing.predict_many(pd.DataFrame({"a": [1.0]})).tolist() == [None]
    model.learn_one({"a": 1.0}, 4)
    assert (model.grades, model.thresholds, model.weights) == ([4], [], {"a": 0.0})
    assert model.predict_one({"a": -1.0}) == 4
    assert model.predict_many(pd.DataFrame({"a": [-1.0, 1.0]})).tolist() == [4, 4]


@each_model
@pytest.mark.parametrize(
    ("labels", "grades"),
    [
        ((30, 10, np.int64(20), (5, 40), (None, 7), (8, None)), [5, 7, 8, 10, 20, 30, 40]),
        ((2, 1.5, np.float64(0.5), 1), [0.5, 1, 1.5, 2]),
        (("10", "2", ("1", "2")), ["1", "2", "10"]),
        ((True, False), [False, True]),
    ],
)
def test_grades_are_put_in_order_as_they_turn_up(name, labels, grades):
    model = fresh(name)
    for label in labels:
        model.learn_one({"a": 1.0, "b": -1.0}, label)
    assert model.grades == grades
    assert [type(grade) for grade in model.grades] == [type(grade) for grade in grades]
    assert model.thresholds == sorted(model.thresholds)
    assert len(model.thresholds) == len(grades) - 1


# -- in River's world ----------------------------------------------------------------------------


def graded_stream(n=400, labels=(1, 2, 3, 4, 5)):
    data = ordspan.datasets.synthetic(n=n)
    for x, rank in stream.iter_array(100.0 + 5.0 * data.X, data.ranks):
        yield x, labels[rank - 1]


@pytest.mark.parametrize("labels", [(1, 2, 3, 4, 5), ("awful", "poor", "fair", "good", "great")])
def test_a_scaled_pipeline_learns_under_progressive_validation(labels):
    classes = None if labels[0] == 1 else list(labels)
    model = preprocessing.StandardScaler() | OrdinalPA(classes=classes)
    found = metrics.Accuracy() + metrics.CohenKappa() + IntervalMAE(classes=classes)
    score = evaluate.progressive_val_score(graded_stream(2000, labels), model, found)
    accuracy, kappa, error = score.get()
    guess = max(np.bincount([y for _, y in graded_stream(2000)])) / 2000
    assert accuracy > guess + 0.1
    assert kappa > 0.3
    assert error < 0.6


@each_model
def test_a_batch_is_its_rows_as_features_and_grades_come(name):
    one, many = fresh(name), fresh(name)
    for start in range(0, 200, 40):
        some, labels = zip(*examples()[start : start + 40], strict=True)
        frame = pd.DataFrame(some).fillna(0.0)
        many.learn_many(frame, pd.Series(labels))
        for x, y in zip(frame.to_dict("records"), labels, strict=True):
            one.learn_one(x, y)
    assert state(many) == state(one)
    frame["never seen"] = 3.0
    rows = frame.to_dict("records")
    assert many.predict_many(frame).tolist() == [one.predict_one(x) for x in rows]
    chances = pd.DataFrame([one.predict_proba_one(x) for x in rows])
    pd.testing.assert_frame_equal(many.predict_proba_many(frame), chances)


def test_a_frame_may_hold_numbers_of_any_kind():
    X = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [1.5, 2.5], "d": [Decimal(1), 2]})
    X = X.astype({"a": "Int64", "c": "float32"}).assign(e=pd.arrays.SparseArray([0, 1]))
    one, many = OrdinalPA(classes=[1, 2]), OrdinalPA(classes=[1, 2])
    many.learn_many(X, [1, 2])
    for x, y in zip(X.to_dict("records"), [1, 2], strict=True):
        one.learn_one(x, y)
    assert state(many) == state(one)


# -- the metric ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "guess", "error"),
    [(3, 5, 2), ((None, 2), 4, 2), ((4, None), 1, 3), ((2, 4), 2, 0), ((None, None), 1, 0)],
)
def test_the_metric_counts_to_the_nearest_end(label, guess, error):
    words = dict(enumerate(["awful", "poor", "fair", "good", "great"], start=1)) | {None: None}
    ends = tuple(map(words.get, label)) if isinstance(label, tuple) else words[label]
    for metric, true, predicted in (
        (IntervalMAE(), label, guess),
        (IntervalMAE(classes=[1, 2, 3, 4, 5]), label, guess),
        (IntervalMAE(classes=list(words.values())[:5]), ends, words[guess]),
    ):
        metric.update(true, predicted)
        assert metric.get() == error
        metric.revert(true, predicted)
        assert metric.get() == 0
        assert metric.clone().classes == metric.classes
    assert not metric.bigger_is_better


@pytest.mark.parametrize(
    ("classes", "label", "guess", "reason"),
    [
        (None, "good", "fair", r"'good' and prediction 'fair' are not both .*classes=\[\.\.\.\]"),
        (None, ("fair", None), "good", r"IntervalMAE\(classes="),
        (None, 3, "good", r"IntervalMAE\(classes="),
        (None, 3, None, "the prediction is None.*from the first prediction on"),
        ([1, 2, 3], 3, None, "the prediction is None"),
    ],
)
def test_the_metric_says_what_it_cannot_compare(classes, label, guess, reason):
    metric = IntervalMAE(classes)
    metric.update(2, 1)
    with pytest.raises(ValueError, match=reason):
        metric.update(label, guess)
    assert metric.get() == 1.0


def test_a_river_model_is_written_by_skops_as_the_refusal_says(tmp_path):
    model, path = taught("default"), tmp_path / "model"
    for whole, name in (
        (model, r"ordspan\.river\.models\.OrdinalPA"),
        (preprocessing.StandardScaler() | model, r"river\.compose\S+\.Pipeline"),
    ):
        with pytest.raises(TypeError, match=f"cannot save {name}.* skops") as refusal:
            ordspan.save(whole, path)
        assert not path.exists()
        dump, load = re.findall(r"skops\.io\..*?\)(?=,|$)", str(refusal.value))
        eval(dump, {"skops": skops, "model": whole, "path": path})
        twin = eval(load, {"skops": skops, "path": path})
        path.unlink()
        for one in (whole, twin):
            one.learn_one(GOOD_X, 2)
        assert twin.predict_proba_one(GOOD_X) == whole.predict_proba_one(GOOD_X)


# -- bad input -----------------------------------------------------------------------------------

GIVEN = {"classes": [1, 2, 3, 4, 5]}
GOOD_X = {"f0": 1.0, "brand new": 2.0}
BAD_FEATURES = {
    "text": ({"f0": 1.0, "f1": "red"}, r"feature 'f1' is 'red', not a number.*OneHotEncoder"),
    "text that looks like a number": ({"f0": "1.5"}, "feature 'f0' is '1.5', not a number"),
    "missing": ({"f0": None, "f1": 1.0}, r"feature 'f0' is None; leave it out.*StatImputer"),
    "list": ({"f0": [1.0, 2.0], "f1": 1.0}, "feature 'f0' is .*not a number"),
    "lists": ({"f0": [1.0], "f1": [2.0]}, r"feature 'f0' is \[1.0\], not a number"),
    "NaN": ({"f0": 1.0, "f1": np.nan}, r"feature 'f1' is nan; leave it out.*StatImputer"),
    "infinity": ({"f0": -np.inf}, "feature 'f0' is -inf"),
    "NaN in a new feature": ({"f0": 1.0, "new": np.nan}, "feature 'new' is nan"),
    "too large": ({"f0": 1e150, "new": 1.0}, r"feature 'f0' is 1e\+150, which overflows"),
}
BAD_LABELS = {
    "not a class": (6, r"label 6 is not one of the grades \[1, 2, 3, 4, 5\]", GIVEN),
    "an end that is not a class": ((1, 6), "label 6 is not one of the grades", GIVEN),
    "a word among given numbers": ("good", "label 'good' is not one of the grades", GIVEN),
    "a word among found numbers": ("good", "label 'good' is not one of the grades .*classes=", {}),
    "a measurement": (2.3, r"Labels like \[2.3\] look like measurements.*classes=", {}),
    "no grade": (object, "is not a grade: give a number or a string", {}),
    "no end": (([1], 2), r"label \[1\] is not a grade", {}),
    "ends swapped": ((4, 2), "lower end 4 is above upper end 2; swap", {}),
    "new ends swapped": ((9, 8), "lower end 9 is above upper end 8; swap", {}),
    "one new end, swapped": ((77, 2), "lower end 77 is above upper end 2; swap", {}),
    "three ends": ((1, 2, 3), r"a pair \(lower, upper\), got \(1, 2, 3\)", {}),
    "None": (None, "label None is missing", {}),
    "NaN": (np.nan, "label nan is missing", {}),
}


@one_of_each
@pytest.mark.parametrize("what", BAD_FEATURES)
@pytest.mark.parametrize("n_seen", [0, 1, 200])
def test_bad_features_are_named_and_change_nothing(name, what, n_seen):
    x, reason = BAD_FEATURES[what]
    model = taught(name, n_seen)
    before = state(model)
    for call in (
        lambda: model.learn_one(x, 777),
        lambda: model.predict_one(x),
        lambda: model.predict_proba_one(x),
    ):
        with pytest.raises(ValueError, match=reason):
            call()
    assert state(model) == before


@one_of_each
@pytest.mark.parametrize("what", BAD_LABELS)
def test_bad_labels_are_named_and_change_nothing(name, what):
    y, reason, options = BAD_LABELS[what]
    model = taught(name, **options)
    before = state(model)
    with pytest.raises(ValueError, match=reason):
        model.learn_one(GOOD_X, y)
    with pytest.raises(ValueError, match=f"row 2: .*{reason}"):
        model.learn_many(pd.DataFrame([GOOD_X] * 3), [1, 2 if options else 77, y])
    assert state(model) == before


@one_of_each
@pytest.mark.parametrize(
    ("frame", "labels", "reason"),
    [
        ({"f9": [1.0, 2.0], "f0": [1.0, np.inf]}, [1, 2], "row 1: feature 'f0' is inf"),
        ({"f0": [1.0, 1e150]}, [1, 2], r"row 1: feature 'f0' is 1e\+150, which overflows"),
        ({"f0": [1.0, pd.NA]}, [1, 2], "row 1: feature 'f0' is (<NA>|None); leave it out"),
        ({"f0": [1.0, 2.0]}, [1], "X has 2 rows, but there are 1 labels"),
    ],
)
def test_bad_batches_are_named_and_change_nothing(name, frame, labels, reason):
    model = taught(name)
    before = state(model)
    with pytest.raises(ValueError, match=reason):
        model.learn_many(pd.DataFrame(frame), pd.Series(labels))
    if len(labels) != 1:
        with pytest.raises(ValueError, match=reason):
            model.predict_many(pd.DataFrame(frame))
    assert state(model) == before


def test_two_columns_of_ends_are_pairs():
    X = pd.DataFrame({"a": [-1.0, 0.0, 1.0] * 10})
    ends = pd.DataFrame({"lower": [1, 1, 3] * 10, "upper": [1.0, 2.0, np.nan] * 10})
    columns, pairs = OrdinalPA(classes=[1, 2, 3]), OrdinalPA(classes=[1, 2, 3])
    columns.learn_many(X, ends)
    pairs.learn_many(X, pd.Series([(1, 1), (1, 2), (3, None)] * 10))
    assert columns.weights == pairs.weights
    assert columns.thresholds == pairs.thresholds
    with pytest.raises(ValueError, match=r"row 0: a range label is a pair"):
        columns.learn_many(X, ends[["lower"]])


@pytest.mark.parametrize(
    ("call", "given", "error", "reason"),
    [
        ("one", np.ones(2), TypeError, "x must be a dict of numbers by feature name, got"),
        ("many", np.ones((1, 2)), TypeError, "must be a pandas DataFrame, got ndarray"),
        ("many", pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), ValueError, "more than one colu"),
    ],
)
def test_what_is_no_example_or_batch_is_refused(call, given, error, reason):
    model = taught("default")
    with pytest.raises(error, match=reason):
        getattr(model, f"predict_{call}")(given)
    with pytest.raises(error, match=reason):
        getattr(model, f"learn_{call}")(given, 1 if call == "one" else [1])
    for options, why in (({"variant": "PA-III"}, "unknown variant"), ({"C": -1.0}, "C must be")):
        with pytest.raises(ValueError, match=why):
            OrdinalPA(**options)
    with pytest.raises(ValueError, match=r"order of the grades \['mid'\] is not known: .*classes="):
        OrdinalPA().learn_one({"a": 1.0}, "mid")
