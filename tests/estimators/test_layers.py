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


@pytest.mark.parametrize("calibrated", [False, True])
def test_score_and_ranges_of_a_pipeline_are_those_of_its_last_step_on_transformed_rows(calibrated):
    last = OrdinalPA(random_state=0)
    last = CalibratedOrdinal(last, random_state=0) if calibrated else last
    pipeline = make_pipeline(StandardScaler(), MinMaxScaler(), last).fit(X, SPANS)
    fitted, rows = pipeline[-1], pipeline[:-1].transform(X)
    nested = make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), last)).fit(X, SPANS)
    search = GridSearchCV(pipeline, {"minmaxscaler__clip": [False]}, cv=2).fit(X, SPANS)
    for model in (pipeline, nested, search, FrozenEstimator(pipeline)):
        np.testing.assert_array_equal(ordspan.latent(model, X), fitted.latent(rows))
        if calibrated:
            found = ordspan.predict_interval(model, X, 0.5)
            np.testing.assert_array_equal(found, fitted.predict_interval(rows, 0.5))
    np.testing.assert_array_equal(ordspan.latent(last.fit(X, Y), X), last.latent(X))


def test_a_last_step_without_the_method_is_named():
    model = make_pipeline(StandardScaler(), MulticlassPA(random_state=0)).fit(X, Y)
    with pytest.raises(TypeError, match="MulticlassPA has no latent"):
        ordspan.latent(model, X)
    with pytest.raises(TypeError, match=r"has no predict_interval .*CalibratedOrdinal\("):
        ordspan.predict_interval(model, X)
