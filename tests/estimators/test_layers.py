"""Methods of the last step, through what scikit-learn puts around it."""

import numpy as np
import pytest
from examples import graded
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import ordspan
from ordspan import CalibratedOrdinal, MulticlassPA, OrdinalPA

X, Y, SPANS = graded(200)
SCALED = StandardScaler().fit_transform(X)


@pytest.mark.parametrize("calibrated", [False, True])
def test_the_score_of_a_pipeline_is_that_of_its_last_step_on_transformed_rows(calibrated):
    last = OrdinalPA(random_state=0)
    last = CalibratedOrdinal(last, random_state=0) if calibrated else last
    pipeline = make_pipeline(StandardScaler(), MinMaxScaler(), last).fit(X, SPANS)
    expected = pipeline[-1].latent(pipeline[:-1].transform(X))
    nested = make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), last)).fit(X, SPANS)
    search = GridSearchCV(pipeline, {"minmaxscaler__clip": [False]}, cv=2).fit(X, SPANS)
    for model in (pipeline, nested, search, FrozenEstimator(pipeline)):
        np.testing.assert_array_equal(ordspan.latent(model, X), expected)
    np.testing.assert_array_equal(ordspan.latent(last.fit(X, Y), X), last.latent(X))


def test_the_ranges_of_a_pipeline_are_those_of_its_last_step():
    ranker = OrdinalPA(random_state=0)
    outside = CalibratedOrdinal(make_pipeline(StandardScaler(), ranker), random_state=0)
    inside = make_pipeline(StandardScaler(), CalibratedOrdinal(ranker, random_state=0))
    for model, last, rows in (
        (outside.fit(X, SPANS), outside, X),
        (inside.fit(X, SPANS), inside[-1], SCALED),
    ):
        found = ordspan.predict_interval(model, X, 0.5)
        np.testing.assert_array_equal(found, last.predict_interval(rows, 0.5))


def test_a_last_step_without_the_method_is_named():
    model = make_pipeline(StandardScaler(), MulticlassPA(random_state=0)).fit(X, Y)
    with pytest.raises(TypeError, match="MulticlassPA has no latent"):
        ordspan.latent(model, X)
    with pytest.raises(TypeError, match=r"has no predict_interval .*CalibratedOrdinal\("):
        ordspan.predict_interval(model, X)
