"""CalibratedOrdinal: its answers, what its folds are for, and what a stream goes on by.

test_contract.py and test_bad_input.py hold what it shares with the other estimators.
"""

from copy import copy

import numpy as np
import pytest
from examples import graded
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordspan
from ordspan import CalibratedOrdinal, KernelOrdinalPA, OrdinalPA, OrdinalSVM, PRank
from ordspan.estimators import MulticlassPA
from ordspan.learners import Calibration
from ordspan.metrics import mean_absolute_error

RANKERS = [
    OrdinalPA(random_state=0),
    PRank(random_state=0),
    KernelOrdinalPA(gamma=0.1, random_state=0),
    OrdinalSVM(random_state=0),
]
CLASSES = [1, 2, 3, 4]
X, Y, SPANS = graded()


def check_answers(model):
    """What a model says is what its calibration says of its scores."""
    score, known, classes = model.latent(X), model.calibration_, model.classes_
    assert classes.tolist() == CLASSES
    np.testing.assert_array_equal(model.predict_proba(X), known.probabilities(score))
    np.testing.assert_array_equal(model.predict(X), classes[known.predict(score) - 1])
    for coverage in known.coverages:
        ends = classes[np.column_stack(known.ranges(score, coverage)) - 1]
        np.testing.assert_array_equal(model.predict_interval(X, coverage), ends)


@pytest.mark.parametrize("estimator", RANKERS)
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("exact", [True, False])
def test_every_ranker_is_calibrated_alone_and_at_the_end_of_a_pipeline(estimator, piped, exact):
    ranker = clone(estimator).set_params(classes=CLASSES)
    whole = make_pipeline(StandardScaler(), ranker) if piped else ranker
    model = CalibratedOrdinal(whole, random_state=0, cv=3).fit(X, Y if exact else SPANS)
    check_answers(model)
    plain = clone(whole).fit(X, Y if exact else SPANS)
    np.testing.assert_array_equal(model.latent(X), ordspan.latent(plain, X))
    assert model.score(X, SPANS) == -mean_absolute_error(SPANS, model.predict(X))
    inside = model.predict_interval(X, 0.9)
    assert ((inside[:, 0] <= Y) & (inside[:, 1] >= Y)).mean() > 0.85
    assert not hasattr(model, "partial_fit") or not piped


def test_calibration_sees_scores_of_folds_moved_to_the_level_of_the_model():
    """Also with rows of weight 0, and folds given as numbers, masks or by a splitter."""
    X, y, _ = graded(n=40)
    weight, first = np.arange(40) % 4 > 0, np.arange(40) < 20
    parts = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    steady = OrdinalPA(classes=CLASSES, shuffle=False)
    model, *same = (
        CalibratedOrdinal(steady, cv=cv, n_jobs=jobs).fit(X, y, weight.astype(float))
        for cv, jobs in ((parts, 1), (KFold(2), 2), ([(~first, first), (first, ~first)], 1))
    )
    for one in same:
        np.testing.assert_array_equal(one.calibration_.state, model.calibration_.state)
    ranker = [clone(steady).fit(X[a], y[a], weight[a].astype(float)) for a, _ in parts]
    fold = np.repeat([0, 1], 20)[weight]
    level = [model.estimator_.thresholds_.mean() - r.thresholds_.mean() for r in ranker]
    scores = [r.latent(X[b]) + up for r, up, (_, b) in zip(ranker, level, parts, strict=True)]
    bands = [r.thresholds_ + up for r, up in zip(ranker, level, strict=True)]
    truth = y[weight]
    wanted = Calibration(4).fit(
        np.concatenate(scores)[weight], truth, truth, thresholds=bands, fold=fold
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
    with pytest.raises(ValueError, match=r"at least 5 rows with positive weight .* = 4"):
        CalibratedOrdinal().fit(X, y, np.arange(40) < 4)
    with pytest.raises(ValueError, match=r"Give cv=list\(splitter.split\(X, y, groups"):
        CalibratedOrdinal(cv=GroupKFold(3)).fit(X, y)
    CalibratedOrdinal(cv=list(GroupKFold(3).split(X, y, np.arange(40) % 7))).fit(X, y)


def test_a_frozen_estimator_is_calibrated_as_it_is():
    ranker = OrdinalPA(random_state=0).fit(X[:150], Y[:150])
    before = ranker.learner_.state.tobytes()
    pipeline = make_pipeline(StandardScaler().fit(np.vstack([X, -X]) / X.std(0)), ranker)
    for frozen in (FrozenEstimator(ranker), FrozenEstimator(pipeline)):
        model = CalibratedOrdinal(frozen, random_state=0).fit(X[150:], SPANS[150:])
        check_answers(model)
        scores = model.latent(X[150:])
        wanted = Calibration(4).fit(scores, *SPANS[150:].T, thresholds=ranker.thresholds_)
        np.testing.assert_allclose(model.calibration_.state, wanted.state, rtol=1e-9, atol=1e-9)
        with pytest.raises(ValueError, match="inconsistent"):
            model.fit(X, SPANS[150:])
    assert ranker.learner_.state.tobytes() == before


def test_pipelines_in_pipelines_and_frozen_calibrated_models_are_calibrated_alike():
    flat = make_pipeline(StandardScaler(), OrdinalPA(random_state=0))
    nested, weight = make_pipeline(flat), np.linspace(0.5, 1.5, len(X))
    models = [CalibratedOrdinal(model, random_state=0) for model in (flat, nested)]
    one, other = (model.fit(X, Y, weight).predict_proba(X) for model in models)
    np.testing.assert_array_equal(one, other)
    frozen = [FrozenEstimator(model) for model in (models[0].estimator_, models[0])]
    models = [CalibratedOrdinal(model, random_state=0) for model in frozen]
    one, other = (model.fit(X, Y, weight).predict_proba(X) for model in models)
    np.testing.assert_array_equal(one, other)


def test_estimators_without_a_score_and_thresholds_are_refused():
    with pytest.raises(
        TypeError, match=r"must be one with a score and thresholds .* got Multiclass"
    ):
        CalibratedOrdinal(MulticlassPA()).fit(X, Y)
    assert not hasattr(CalibratedOrdinal(MulticlassPA()), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        _ = CalibratedOrdinal(OrdinalSVM()).partial_fit
    assert "OrdinalSVM cannot learn row by row" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("coverage", "way_out"),
    [(90, r"did you mean 0\.9\?"), (99.0, r"did you mean 0\.99\?"), (0.7, r"one of 0\.5, .*0\.99")],
)
def test_a_coverage_that_was_not_calibrated_gets_a_way_out(coverage, way_out):
    X, y, _ = graded(100)
    model = CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"coverage {coverage} was not calibrated; .*{way_out}"):
        model.predict_interval(X, coverage)


def test_a_stream_goes_on_by_parameters_set_anew_but_not_by_other_promises():
    X, y, _ = graded(n=40)
    model = CalibratedOrdinal(OrdinalPA(), coverages=[0.8]).partial_fit(X, y, classes=CLASSES)
    model.set_params(estimator__C=1e-9, coverages=np.array([0.8])).partial_fit(X, y)
    plain = OrdinalPA().partial_fit(X, y, classes=CLASSES).set_params(C=1e-9).partial_fit(X, y)
    np.testing.assert_array_equal(model.estimator_.coef_, plain.coef_)
    before = model.estimator_.learner_.state.copy(), model.calibration_.state.copy()
    for change, message in (
        ({"coverages": [0.9]}, "was calibrated for coverages="),
        ({"labels": "contain"}, "was calibrated for coverages="),
        ({"estimator": PRank()}, "the estimator cannot change from OrdinalPA"),
        ({"estimator": OrdinalPA(average=False)}, "average and balanced cannot change"),
    ):
        with pytest.raises(ValueError, match=message):
            copy(model).set_params(**change).partial_fit(X, y)
    np.testing.assert_array_equal(model.estimator_.learner_.state, before[0])
    np.testing.assert_array_equal(model.calibration_.state, before[1])
