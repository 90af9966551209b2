"""What a newcomer trips over is told: unscaled features, missing probabilities, compiling."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import CalibratedOrdinal, KernelOrdinalPA, MulticlassPA, OrdinalPA, OrdinalSVM, PRank

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = 1 + np.searchsorted([-0.5, 0.5], X[:, 0])


def changed(column, factor=1.0, shift=0.0):
    Z = X.copy()
    Z[:, column] = factor * Z[:, column] + shift
    return Z


@pytest.mark.parametrize("kind", [OrdinalPA, KernelOrdinalPA, OrdinalSVM, PRank, MulticlassPA])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_features_of_very_different_size_are_named_with_the_way_out(kind):
    with pytest.warns(UserWarning, match=r"column 1 is 5,\d{3} times as large as .*Scaler") as told:
        kind().fit(changed(1, 5000.0), Y)
    assert len([one for one in told if one.category is UserWarning]) == 1
    assert told[0].filename == __file__


def test_a_feature_far_from_zero_is_named_as_in_the_frame():
    frame = pd.DataFrame(changed(2, shift=100.0), columns=["size", "age", "year"])
    with pytest.warns(UserWarning, match=r"column 2 \('year'\) is \d+ times its spread away from"):
        OrdinalPA().fit(frame, Y)


def test_the_sizes_of_sparse_features_are_those_of_their_values():
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


def test_the_way_out_is_one():
    wrong = changed(1, 5000.0)
    model = make_pipeline(StandardScaler(), OrdinalPA(random_state=0)).fit(wrong, Y)
    assert model.score(wrong, Y) > -0.05


def test_a_calibrated_model_warns_once():
    with pytest.warns(UserWarning, match="times as large as") as told:
        CalibratedOrdinal(random_state=0).fit(changed(1, 5000.0), Y)
    assert len(told) == 1


@pytest.mark.parametrize("kind", [OrdinalPA, KernelOrdinalPA, OrdinalSVM, PRank])
@pytest.mark.parametrize("name", ["predict_proba", "predict_interval"])
def test_what_only_a_calibrated_model_has_names_it(kind, name):
    model = kind().fit(X, Y)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"has no {name}; wrap it: Calibrated"):
        getattr(model, name)


@pytest.mark.slow
def test_a_first_fit_on_a_terminal_says_once_that_it_compiles(tmp_path):
    pty = pytest.importorskip("pty")
    code = (
        "import ordspan; X = [[-1.0], [1.0]]\nfor _ in range(2): ordspan.OrdinalPA().fit(X, [1, 2])"
    )
    told = []
    for _ in range(2):  # the second process finds the compiled code
        master, slave = pty.openpty()
        with open(master, "rb", buffering=0) as terminal:
            subprocess.run(
                [sys.executable, "-c", code],
                check=True,
                stderr=slave,
                env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            )
            os.write(slave, b".")
            told.append(terminal.read(1000).decode())
            os.close(slave)
    assert told[0].count("compiling for this machine") == 1
    assert told[1] == "."
