"""Estimators learn the grades that labels mean, and pass on what labels cannot mean."""

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import OrdinalPA, coarsen

X = np.arange(6.0)[:, None]


@pytest.mark.parametrize(
    "learn",
    [
        lambda y: OrdinalPA().fit(X, y),
        lambda y: make_pipeline(StandardScaler(), OrdinalPA()).fit(X, y),
        lambda y: coarsen(y, 0.5, random_state=0),
    ],
)
def test_words_without_an_order_are_refused(learn):
    for y in (["low", "mid", "high"] * 2, ["1", "2", "3", "1-2", "2", "1"]):
        with pytest.raises(ValueError, match=r"the order of the grades .* is not known: give it"):
            learn(y)


def test_a_column_vector_is_flattened_with_a_warning_at_the_users_line():
    with pytest.warns(DataConversionWarning) as caught:
        model = make_pipeline(StandardScaler(), OrdinalPA()).fit([[-1.0], [1.0]], [[1], [2]])
    assert model.classes_.tolist() == [1, 2]
    assert [warning.filename for warning in caught] == [__file__]
