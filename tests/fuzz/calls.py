"""Calls of estimators with any parameters and values: a named error, or finite answers."""

import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from estimators.examples import KINDS, graded
from ordspan import OrdinalSVM, load, save

X, Y, SPANS = graded(24, d=3)
ESTIMATORS = (*KINDS, OrdinalSVM)
STRANGE = (None, True, 0, -1, 1, 2.5, 1e-320, 1e-150, 1e150, 1e300, np.nan, np.inf, "", "x", [], {})
GOOD = {
    "variant": ("PA", "PA-I", "PA-II"),
    "C": (0.01, 1.0, 1e6),
    "kernel": ("rbf", "linear", "poly", "sigmoid"),
    "gamma": ("distance", "scale", "auto", 0.5),
    "solver": ("exact", "sca"),
    "loss": ("hinge", "squared_hinge"),
    "budget": (None, 1, 7),
    "balanced": (True, False),
    "average": (True, False),
    "classes": (None, [1, 2, 3, 4], [4, 3, 2, 1], ["a", "b"]),
    "class_weight": (None, "balanced", {1: 2.0, 4: 0.0}),
    "max_iter": (1, 3),
}
DTYPES = ("f4", "f2", "i8", "u1", "?", "O", "U9", ">f8", "c16")
EXTREMES = (0.0, -0.0, 5e-324, 1e-200, 1e-100, 1e49, 1e90, 1e99, 1e101, 1e150, 1e308, -1e308)


def attack(rng, folder: Path) -> None:
    """Fit an estimator, learn on, predict, save; an error leaves it as it was."""
    kind = ESTIMATORS[rng.integers(len(ESTIMATORS))]
    model = kind(**parameters(rng, kind))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if unchanged_or(model, lambda: model.fit(rows(rng), labels(rng), **weights(rng))):
            finite(model, folder)
        else:
            model = kind().fit(X, SPANS)
        if hasattr(model, "partial_fit"):
            for _ in range(2):
                unchanged_or(
                    model, lambda: model.partial_fit(rows(rng), labels(rng), **weights(rng))
                )
                finite(model, folder)
        unchanged_or(model, lambda: answers(model, rows(rng)))
        unchanged_or(model, lambda: model.score(rows(rng), labels(rng), **weights(rng)))


def unchanged_or(model, use) -> bool:
    """Whether a use was allowed; one that was not leaves attributes and state alone."""
    before = dict(vars(model))
    state = state_of(model)
    try:
        use()
    except (ValueError, TypeError):
        kept = [name for name in vars(model) if not name.startswith("_lock_")]
        assert set(kept) <= before.keys()
        assert all(before[name] is vars(model)[name] for name in before)
        assert state is None or np.array_equal(state, state_of(model), equal_nan=True)
        return False
    return True


def state_of(model):
    return model.learner_.state.copy() if hasattr(model, "learner_") else None


def finite(model, folder) -> None:
    """What was learned is finite, sorted, predicts, and can be saved."""
    if "kernel" not in model.get_params() or model.kernel == "linear":
        assert np.isfinite(model.coef_).all()
    if hasattr(model, "thresholds_"):
        assert np.isfinite(model.thresholds_).all()
        printed = getattr(model, "solver", "exact") == "sca"  # may leave them out of order
        assert printed or (np.diff(model.thresholds_) >= 0).all()
    save(model, folder / "saved")
    twin = load(folder / "saved")
    assert np.array_equal(state_of(twin), state_of(model))
    answers(model, np.zeros((2, model.n_features_in_)))


def answers(model, matrix) -> None:
    found = model.predict(matrix)
    assert set(found.tolist()) <= set(model.classes_.tolist())
    assert not np.isnan(model.decision_function(matrix)).any()


def parameters(rng, kind) -> dict:
    """Mostly good parameters, some strange."""
    chosen = {"random_state": 0} if "random_state" in kind().get_params() else {}
    for name in kind().get_params():
        if name in GOOD and rng.random() < 0.3:
            chosen[name] = GOOD[name][rng.integers(len(GOOD[name]))]
        if name in GOOD and name != "max_iter" and rng.random() < 0.06:
            chosen[name] = STRANGE[rng.integers(len(STRANGE))]
    return chosen


def rows(rng):
    """The rows, some with extreme values, of another type, sparse, or of another shape."""
    matrix = X.copy()
    if rng.random() < 0.3:
        pool = EXTREMES if rng.random() < 0.8 else (np.nan, np.inf, -np.inf)
        for _ in range(rng.integers(1, 30)):
            matrix[rng.integers(len(X)), rng.integers(3)] = pool[rng.integers(len(pool))]
    if rng.random() < 0.1:
        matrix = matrix * EXTREMES[rng.integers(len(EXTREMES))]
    if rng.random() < 0.2:
        matrix = matrix.astype(str(rng.choice(DTYPES)))
    what = rng.random()
    if what < 0.1 and matrix.dtype.kind == "f" and matrix.dtype.itemsize > 2:
        return csr_array(matrix)
    if what < 0.15:
        return [matrix[:0], matrix[:, :2], matrix[0], matrix[:5], None, "x", matrix[None]][
            rng.integers(7)
        ]
    return matrix if what < 0.9 else [np.asfortranarray(matrix), matrix.tolist()][rng.integers(2)]


def labels(rng):
    """Exact labels or intervals, some strange."""
    y = np.array(SPANS if rng.random() < 0.5 else Y)
    if rng.random() < 0.15:
        y = y.astype(str(rng.choice(["f8", "O", "U3", "u1", "?"])))
    if rng.random() < 0.1:
        y = y.astype(float)
        y[rng.integers(len(y))] = rng.choice([np.nan, np.inf, 0, 9, 2.5, -1e300])
    if rng.random() < 0.05:
        return [y[:3], y[::-1].T, None, [], "abc", [None] * len(y), y[:, None]][rng.integers(7)]
    return y


def weights(rng) -> dict:
    """No weights, or some that are strange."""
    if rng.random() < 0.7:
        return {}
    weight = rng.random(len(X))
    if rng.random() < 0.5:
        weight[rng.integers(len(X))] = rng.choice([0.0, 1e-320, 1e6, 1e308, -1.0, np.nan, np.inf])
    return {"sample_weight": weight if rng.random() < 0.9 else weight[:3]}
