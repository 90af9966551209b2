"""CalibratedOrdinal: scikit-learn's contract, streams and batches, and what errors leave behind."""

import pickle
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import graded
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ordspan
from ordspan import CalibratedOrdinal, KernelOrdinalPA, OrdinalPA, OrdinalSVM, PRank
from ordspan.core.measures import distance
from ordspan.estimators import MulticlassPA
from ordspan.learners import Calibration

STREAMS = [
    OrdinalPA(random_state=0),
    PRank(random_state=0),
    KernelOrdinalPA(gamma=0.1, random_state=0),
]
RANKERS = [*STREAMS, OrdinalSVM(random_state=0)]
CLASSES = [1, 2, 3, 4]


def expected_failures(estimator):
    folds = "cross-validation puts a row that is there twice into two folds, one of weight 2 in one"
    median = "predict is the median of the probabilities, for the smallest distance, not the mode"
    return {
        "check_sample_weight_equivalence_on_dense_data": folds,
        "check_sample_weight_equivalence_on_sparse_data": folds,
        "check_classifiers_train": median,
        "check_classifiers_classes": "it fits class names whose order nobody has given",
    }


@pytest.mark.filterwarnings("ignore:.*large features drown the others:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:the model predicts the same grade:UserWarning")
@parametrize_with_checks(
    [CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def check_answers(model, X, classes=CLASSES):
    """Probabilities of every class, and nested ranges around the prediction."""
    chance, predicted = model.predict_proba(X), model.predict(X)
    below = chance.cumsum(axis=1) - chance
    median = (below <= 0.5 + 1e-12) & (below + chance >= 0.5 - 1e-12)
    assert median[predicted[:, None] == model.classes_].all()
    assert chance.shape == (len(predicted), len(classes))
    np.testing.assert_allclose(chance.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert (chance >= 0.0).all()
    assert model.classes_.tolist() == list(classes)
    inner = np.column_stack([predicted, predicted])
    for coverage in model.calibration_.coverages:
        span = model.predict_interval(X, coverage)
        assert (span[:, 0] <= inner[:, 0]).all()
        assert (span[:, 1] >= inner[:, 1]).all()
        assert np.isin(span, classes).all()
        inner = span


def fitted_parts(model):
    ranker = model.estimator_[-1] if hasattr(model.estimator_, "steps") else model.estimator_
    return ranker.learner_.state


@pytest.mark.parametrize("estimator", RANKERS)
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("exact", [True, False])
def test_every_ranker_is_calibrated_alone_and_at_the_end_of_a_pipeline(estimator, piped, exact):
    X, y, spans = graded()
    ranker = clone(estimator).set_params(classes=CLASSES)
    whole = make_pipeline(StandardScaler(), ranker) if piped else ranker
    model = CalibratedOrdinal(whole, random_state=0, cv=3).fit(X, y if exact else spans)
    check_answers(model, X)
    plain = clone(whole).fit(X, y if exact else spans)
    np.testing.assert_array_equal(model.latent(X), ordspan.latent(plain, X))
    assert model.score(X, spans) == -distance(model.predict(X), *spans.T).mean()
    assert model.n_features_in_ == 4
    inside = model.predict_interval(X, 0.9)
    assert ((inside[:, 0] <= y) & (y <= inside[:, 1])).mean() > 0.85
    assert not hasattr(model, "partial_fit") or not piped


@pytest.mark.parametrize("estimator", STREAMS)
def test_a_stream_in_pieces_is_the_stream_at_once(estimator):
    X, _, spans = graded()
    whole = CalibratedOrdinal(estimator).partial_fit(X, spans, classes=CLASSES)
    parts = CalibratedOrdinal(clone(estimator).set_params(classes=CLASSES))
    for start in range(0, 300, 37):
        parts.partial_fit(X[start : start + 37], spans[start : start + 37])
    np.testing.assert_array_equal(parts.calibration_.state, whole.calibration_.state)
    plain = clone(estimator).partial_fit(X, spans, classes=CLASSES)
    np.testing.assert_array_equal(whole.latent(X), plain.latent(X))
    check_answers(whole, X)
    assert not hasattr(estimator, "learner_")  # the parameter is as it was


def test_weights_of_zero_leave_rows_out():
    X, y, spans = graded()
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    kept = weight > 0
    steady = OrdinalPA(classes=CLASSES, shuffle=False)
    for method in ("fit", "partial_fit"):
        whole, rest = (CalibratedOrdinal(clone(steady), random_state=0) for _ in range(2))
        getattr(whole, method)(X, spans, sample_weight=weight)
        getattr(rest, method)(X[kept], spans[kept], sample_weight=weight[kept])
        np.testing.assert_allclose(whole.calibration_.state, rest.calibration_.state, rtol=1e-9)
    piped = CalibratedOrdinal(make_pipeline(StandardScaler(), steady), random_state=0)
    heavy = piped.fit(X, y, sample_weight=np.where(y == 4, 50.0, 1.0)).predict_proba(X)
    light = clone(piped).fit(X, y, sample_weight=np.where(y == 4, 0.02, 1.0)).predict_proba(X)
    assert heavy[:, 3].mean() > light[:, 3].mean() + 0.05


def test_rows_of_weight_zero_keep_their_numbers_for_a_splitter():
    X, y, _ = graded(n=40)
    weight = np.arange(40) % 4 > 0
    parts = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    steady = OrdinalPA(classes=CLASSES, shuffle=False)
    model = CalibratedOrdinal(steady, cv=parts).fit(X, y, weight.astype(float))
    same = CalibratedOrdinal(steady, cv=KFold(2)).fit(X, y, weight.astype(float))
    np.testing.assert_array_equal(same.calibration_.state, model.calibration_.state)
    ranker = [clone(steady).fit(X[a], y[a], weight[a].astype(float)) for a, _ in parts]
    test = np.concatenate([b for _, b in parts])
    fold = np.repeat([0, 1], 20)[weight[test]]
    level = [model.estimator_.thresholds_.mean() - r.thresholds_.mean() for r in ranker]
    scores = [r.latent(X[b]) + up for r, up, (_, b) in zip(ranker, level, parts, strict=True)]
    kept, truth = weight[test], y[test][weight[test]]
    bands = [r.thresholds_ + up for r, up in zip(ranker, level, strict=True)]
    wanted = Calibration(4).fit(
        np.concatenate(scores)[kept], truth, truth, thresholds=bands, fold=fold
    )
    wanted.use_thresholds(model.estimator_.thresholds_)
    np.testing.assert_allclose(model.calibration_.state, wanted.state, rtol=1e-9, atol=1e-9)


def test_a_splitter_that_leaves_rows_out_is_refused_with_the_row():
    X, y, _ = graded(n=40)
    with pytest.raises(ValueError, match="cv never tests row 0"):
        CalibratedOrdinal(cv=TimeSeriesSplit(3)).fit(X, y)
    weight = np.ones(40)
    weight[:3] = 0.0
    with pytest.raises(ValueError, match="cv never tests row 3"):
        CalibratedOrdinal(cv=TimeSeriesSplit(3)).fit(X, y, weight)
    with pytest.raises(ValueError, match="'cv' parameter of CalibratedOrdinal must be an int"):
        CalibratedOrdinal(cv=1).fit(X, y)
    with pytest.raises(ValueError, match=r"at least 2 rows with positive weight .* = 1"):
        CalibratedOrdinal().fit(X, y, np.arange(40) == 7)


def test_a_frozen_estimator_is_calibrated_as_it_is():
    X, y, spans = graded()
    ranker = OrdinalPA(random_state=0).fit(X[:150], y[:150])
    memory, parameters = ranker.learner_.state.copy(), ranker.get_params()
    pipeline = make_pipeline(StandardScaler().fit(np.vstack([X, -X]) / X.std(0)), ranker)
    for frozen in (FrozenEstimator(ranker), FrozenEstimator(pipeline)):
        model = CalibratedOrdinal(frozen, random_state=0).fit(X[150:], spans[150:])
        check_answers(model, X)
        scores = model.latent(X[150:])
        wanted = Calibration(4).fit(scores, *spans[150:].T, thresholds=ranker.thresholds_)
        np.testing.assert_allclose(model.calibration_.state, wanted.state, rtol=1e-9, atol=1e-9)
        with pytest.raises(ValueError, match="inconsistent"):
            model.fit(X, spans[150:])
        with pytest.raises(ValueError, match="is not a finite number"):
            model.fit(X, spans, -np.ones(300))
    CalibratedOrdinal(make_pipeline(StandardScaler(), FrozenEstimator(ranker))).fit(X, y)
    assert ranker.get_params() == parameters
    np.testing.assert_array_equal(ranker.learner_.state, memory)


def test_a_pipeline_takes_frames_and_words():
    X, y, _ = graded(n_classes=3)
    order = ["low", "mid", "high"]
    words = pd.Series(pd.Categorical(np.array(order)[y - 1], categories=order, ordered=True))
    names = ["a", "b", "c", "d"]
    for rows in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = CalibratedOrdinal(
            make_pipeline(StandardScaler(), OrdinalPA(random_state=0)), random_state=0
        ).fit(rows, words)
        assert model.classes_.tolist() == order
        assert model.feature_names_in_.tolist() == names
        assert set(model.predict_interval(rows, 0.8).ravel()) <= set(order)
        assert model.predict_proba(rows).shape == (300, 3)


def with_nan(X):
    bad = X.copy()
    bad[7, 2] = np.nan
    return bad


def test_errors_leave_the_model_as_it_was():
    X, y, spans = graded()
    for model in (
        CalibratedOrdinal(random_state=0).fit(X, y),
        CalibratedOrdinal().partial_fit(X, y, classes=CLASSES),
    ):
        before = dict(vars(model))
        memory, state = fitted_parts(model).copy(), model.calibration_.state.copy()
        for bad, labels, options, message in [
            (with_nan(X), spans, {}, "row 7, column 2"),
            (X[:, :3], spans, {}, "features"),
            (X, y + 3, {"classes": CLASSES}, "not one of the grades|classes"),
            (X, spans[:5], {}, "inconsistent"),
            (X, spans, {"sample_weight": np.full(300, -1.0)}, "sample_weight"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.partial_fit(bad, labels, **options)
        for broken in (with_nan(X), X[:20]):
            with pytest.raises(ValueError):
                model.fit(broken, spans)
        for parameters, message in (
            ({"labels": "all"}, "'labels' .*must be a str among .*Got 'all'"),
            ({"coverages": [2.0]}, "coverages must be distinct numbers between 0 and 1"),
        ):
            with pytest.raises(ValueError, match=message):
                copy(model).set_params(**parameters).fit(X, y)
            new = CalibratedOrdinal(**parameters)
            with pytest.raises(ValueError, match=message):
                new.partial_fit(X, y, classes=CLASSES)
            assert not hasattr(new, "estimator_")
            with pytest.raises(NotFittedError):
                new.predict_interval(X)
        assert vars(model) == before
        np.testing.assert_array_equal(fitted_parts(model), memory)
        np.testing.assert_array_equal(model.calibration_.state, state)


def test_estimators_without_a_score_and_thresholds_are_refused():
    X, y, _ = graded()
    with pytest.raises(
        TypeError, match=r"must be one with a score and thresholds .* got Multiclass"
    ):
        CalibratedOrdinal(MulticlassPA()).fit(X, y)
    assert not hasattr(CalibratedOrdinal(MulticlassPA()), "partial_fit")
    assert not hasattr(CalibratedOrdinal(OrdinalSVM()), "partial_fit")


@pytest.mark.parametrize("estimator", STREAMS)
def test_a_copy_learns_on_its_own_and_a_pickle_goes_on_alike(estimator):
    X, y, spans = graded()
    model = CalibratedOrdinal(estimator, random_state=0).fit(X, y)
    memory, state = fitted_parts(model).copy(), model.calibration_.state.copy()
    shallow, pickled = copy(model), pickle.loads(pickle.dumps(model))
    wide = ((spans[:, 0] == 1) & (spans[:, 1] == 4)).sum()
    for twin in (shallow, pickled):
        twin.partial_fit(X, spans)  # a stream goes on from a fit
        check_answers(twin, X)
        assert twin.calibration_.n_rows == 600 - wide
        assert not np.array_equal(fitted_parts(twin), memory)
        np.testing.assert_array_equal(fitted_parts(model), memory)
        np.testing.assert_array_equal(model.calibration_.state, state)
    np.testing.assert_array_equal(shallow.calibration_.state, pickled.calibration_.state)
    assert not clone(model).__sklearn_is_fitted__()
    assert not hasattr(copy(CalibratedOrdinal()), "calibration_")


def test_jobs_and_seeds_decide_nothing_but_the_time():
    X, y, _ = graded()
    one, two = (
        CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0, n_jobs=n).fit(X, y)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.calibration_.state, two.calibration_.state)
    assert cross_val_score(CalibratedOrdinal(random_state=0), X, y, cv=3).shape == (3,)


@pytest.mark.filterwarnings("ignore:the model predicts the same grade:UserWarning")
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("estimator", [OrdinalPA, KernelOrdinalPA, PRank])
def test_hard_data_do_no_harm(estimator, method):
    X, y, _ = graded(n=60)
    for rows, labels in [
        (np.zeros_like(X), y),
        (np.ones_like(X), y),
        (X, np.tile([1, 4], (60, 1))),
        (X[:2], [1, 4]),
        (X * 1e60, y),
    ]:
        model = CalibratedOrdinal(estimator(classes=CLASSES, random_state=0), random_state=0)
        check_answers(getattr(model, method)(rows, labels), rows)


@pytest.mark.parametrize(
    ("coverage", "way_out"),
    [(90, r"did you mean 0\.9\?"), (99.0, r"did you mean 0\.99\?"), (0.7, r"one of 0\.5, .*0\.99")],
)
def test_a_coverage_that_was_not_calibrated_gets_a_way_out(coverage, way_out):
    X, y, _ = graded(100)
    model = CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"coverage {coverage} was not calibrated; .*{way_out}"):
        model.predict_interval(X, coverage)


def test_coverages_and_labels_cannot_change_in_a_stream():
    X, y, _ = graded(n=40)
    model = CalibratedOrdinal(coverages=[0.8]).partial_fit(X, y, classes=CLASSES)
    before = model.calibration_.state.copy()
    for change in ({"coverages": [0.9]}, {"labels": "contain"}):
        with pytest.raises(ValueError, match="was calibrated for coverages="):
            copy(model).set_params(**change).partial_fit(X, y)
    np.testing.assert_array_equal(model.calibration_.state, before)
    model.set_params(coverages=np.array([0.8])).partial_fit(X, y)


def test_a_stream_goes_on_by_parameters_of_the_estimator_that_are_set_anew():
    X, y, _ = graded(n=40)
    model = CalibratedOrdinal(OrdinalPA()).partial_fit(X, y, classes=CLASSES)
    before = model.estimator_.coef_
    model.set_params(estimator__C=1e-9).partial_fit(X, y)
    assert model.estimator_.C == 1e-9
    plain = OrdinalPA().partial_fit(X, y, classes=CLASSES).set_params(C=1e-9).partial_fit(X, y)
    np.testing.assert_array_equal(model.estimator_.coef_, plain.coef_)
    assert not np.array_equal(before, plain.coef_)
    with pytest.raises(ValueError, match="the estimator cannot change from OrdinalPA"):
        copy(model).set_params(estimator=PRank()).partial_fit(X, y)
    with pytest.raises(ValueError, match="average and balanced cannot change"):
        model.set_params(estimator__average=False).partial_fit(X, y)
    assert model.estimator_.average


def test_folds_given_as_masks_are_those_given_as_numbers():
    X, _, spans = graded(60)
    test = np.arange(60) % 2 == 0
    masks = [(~test, test), (test, ~test)]
    numbers = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in masks]
    ranker = OrdinalPA(random_state=0)
    models = [CalibratedOrdinal(ranker, cv=cv).fit(X, spans) for cv in (masks, numbers)]
    np.testing.assert_array_equal(*(model.calibration_.state for model in models))
