"""What a newcomer trips over is told: unscaled features, missing probabilities."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ordspan import CalibratedOrdinal, KernelOrdinalPA, MulticlassPA, OrdinalPA, OrdinalSVM, PRank

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = 1 + np.searchsorted([-0.5, 0.5], X[:, 0])


def changed(column, factor=1.0, shift=0.0):
    Z = X.copy()
    Z[:, column] = factor * Z[:, column] + shift
    return Z


RANKERS = [OrdinalPA, KernelOrdinalPA, OrdinalSVM, PRank]


@pytest.mark.parametrize("kind", [*RANKERS, MulticlassPA, CalibratedOrdinal])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_features_of_very_different_size_are_named_with_the_way_out(kind):
    with pytest.warns(UserWarning, match=r"column 1 is 5,\d{3} times as large as .*Scaler") as told:
        kind().fit(changed(1, 5000.0), Y)
    assert len([one for one in told if one.category is UserWarning]) == 1
    assert told[0].filename == __file__


def test_features_are_named_as_in_the_frame_and_sparse_ones_by_their_values():
    frame = pd.DataFrame(changed(2, shift=100.0), columns=["size", "age", "year"])
    with pytest.warns(UserWarning, match=r"column 2 \('year'\) is \d+ times its spread away from"):
        OrdinalPA().fit(frame, Y)
    rare = np.zeros((900, 2))
    rare[:, 0], rare[17, 1] = 1.0 - 2.0 * (np.arange(900) % 2), 1.0
    labels = 1 + np.arange(900) % 2
    OrdinalPA().fit(sp.csr_array(rare), labels)
    with pytest.warns(UserWarning, match="column 1 is 2,000 times as large as column 0"):
        OrdinalPA().fit(sp.csr_array(rare * [1.0, 2000.0]), labels)


@pytest.mark.parametrize(
    "rows",
    [
        X,
        changed(1, 100.0),
        changed(1, shift=10.0),
        np.column_stack([X, np.full(200, 0.1), np.full(200, 7.7), np.zeros(200)]),
        np.column_stack([X, np.arange(200) == 7]),  # a rare word
    ],
    ids=["standardised", "factor 100", "10 spreads away", "constants", "rare"],
)
def test_usual_features_are_not_reported(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OrdinalPA().fit(rows, Y)


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("name", ["predict_proba", "predict_interval"])
def test_what_only_a_calibrated_model_has_names_it(kind, name):
    model = kind().fit(X, Y)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"has no {name}; wrap it: Calibrated"):
        getattr(model, name)
