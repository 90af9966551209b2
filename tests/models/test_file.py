"""Model files: bit for bit, whole or not at all, and nothing but ordspan's own are loaded."""

import pickle
import re
import sys

import numpy as np
import pandas as pd
import pytest
import skops.io
from safetensors.numpy import save as save_tensors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.examples import ESTIMATORS, graded
from forging import content_of, forged, loaded, parts_of
from ordspan import (
    CalibratedOrdinal,
    KernelOrdinalPA,
    ModelFileError,
    OrdinalPA,
    OrdinalSVM,
    load,
    save,
)

X, Y, SPANS = graded()
RANKER = OrdinalPA(random_state=0)
FROZEN = FrozenEstimator(RANKER.fit(X, Y))
AROUND = [CalibratedOrdinal(random_state=0), CalibratedOrdinal(RANKER), CalibratedOrdinal(FROZEN)]
SET = OrdinalPA(classes=np.arange(1, 5, dtype="i1"), class_weight={1: 2.0, 4: 0.5}, random_state=0)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [(one, words) for one in [*ESTIMATORS, OrdinalSVM()] for words in (False, True)]
    + [(one, False) for one in (SET, *AROUND)],
)
def test_a_loaded_model_predicts_and_learns_on_exactly_like_the_saved_one(estimator, words):
    rows, labels = X, SPANS
    if words:
        rows, order = pd.DataFrame(X, columns=list("abcd")), ["d", "c", "b", "a"]
        estimator, labels = clone(estimator).set_params(classes=order), np.array(order)[SPANS - 1]
    model = clone(estimator).fit(rows, labels)
    content = content_of(model)
    twin = loaded(content)
    assert repr(twin) == repr(model)
    assert twin.classes_.dtype == model.classes_.dtype
    assert (twin.n_features_in_, hasattr(twin, "feature_names_in_")) == (4, words)
    for method in ("predict", "latent", "decision_function", "predict_proba", "predict_interval"):
        if hasattr(model, method):
            ours, theirs = (getattr(one, method)(rows) for one in (twin, model))
            np.testing.assert_array_equal(ours, theirs)
    assert content_of(twin) == content
    if hasattr(model, "partial_fit"):
        ours, theirs = (content_of(one.partial_fit(rows, labels)) for one in (twin, model))
        assert ours == theirs


def test_equal_models_give_equal_bytes_of_which_none_can_change_unnoticed():
    content, twin = (content_of(clone(RANKER).fit(X, Y)) for _ in range(2))
    assert content == twin
    for i in range(len(content)):
        flipped = content[:i] + bytes([content[i] ^ (1 << i % 8)]) + content[i + 1 :]
        for damaged in (content[:i], flipped, content + content[:i]):
            if damaged != content:
                with pytest.raises(ModelFileError):
                    loaded(damaged)


class Trap:
    def __reduce__(self):
        return sys.exit, (13,)


def test_pickles_and_foreign_files_are_refused_and_not_run(tmp_path):
    foreign = {
        "pickle": pickle.dumps(Trap()),
        "other.safetensors": save_tensors({"digest": np.zeros(32, dtype=np.uint8)}),
        "text": b"hello",
        "empty": b"",
        "zeros": bytes(100),
    }
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelFileError, match=name):
            load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


@pytest.mark.parametrize("version", [1, 4, 99])
def test_any_other_format_is_refused(version):
    header, tensors = parts_of(content_of(clone(RANKER).fit(X, Y)))
    content = forged(header | {"format": version}, tensors)
    message = f"model has model format {version}, .* another version of ordspan; train the model"
    with pytest.raises(ModelFileError, match=message):
        loaded(content)


SEARCH = GridSearchCV(RANKER, {"C": [0.1]}, cv=2)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (Ridge().fit(X, Y), TypeError, r"cannot save sklearn\S+\.Ridge, only KernelOrdinalPA"),
        (SEARCH.fit(X, Y), TypeError, r"cannot save \S+\.GridSearchCV, only .*OrdinalPA"),
        (OrdinalPA(), NotFittedError, "not fitted"),
        (CalibratedOrdinal(), NotFittedError, "not fitted"),
        (OrdinalPA(random_state=np.random.RandomState(0)).fit(X, Y), TypeError, "random_state"),
        (FROZEN, TypeError, r"cannot save \S+\.FrozenEstimator"),
    ],
)
def test_what_cannot_be_saved_is_named(model, error, message, tmp_path):
    with pytest.raises(error, match=message):
        save(model, tmp_path / "model")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        save(SET.fit(X, Y), tmp_path)
    assert list(tmp_path.iterdir()) == []


PIPELINE = make_pipeline(StandardScaler(), KernelOrdinalPA(random_state=0))


@pytest.mark.parametrize(
    "model",
    [
        PIPELINE,
        make_pipeline(StandardScaler(), CalibratedOrdinal(RANKER)),
        CalibratedOrdinal(PIPELINE, random_state=0),
        CalibratedOrdinal(FrozenEstimator(PIPELINE.fit(X, Y))),
    ],
)
def test_a_pipeline_is_written_by_skops_as_the_refusal_says(model, tmp_path):
    model.fit(X, SPANS)
    path = tmp_path / "model"
    with pytest.raises(TypeError, match=r"cannot save \S+\.Pipeline.* skops\.io\.dump") as refusal:
        save(model, path)
    dump, load_it = re.findall(r"skops\.io\..*?\)(?=,|$)", str(refusal.value))
    eval(dump)
    loaded = eval(load_it)
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    last = loaded[-1] if hasattr(loaded, "steps") else loaded
    if hasattr(last, "partial_fit"):
        assert last.partial_fit(X, Y).predict(X).shape == Y.shape


def test_a_model_whose_parameters_were_set_anew_goes_on_with_them():
    model = clone(RANKER).fit(X, Y).set_params(C=7.0, variant="PA-II")
    content = content_of(model)
    twins = loaded(content), pickle.loads(pickle.dumps(model))
    model.partial_fit(X, Y)
    for twin in twins:
        assert content_of(twin) == content
        assert content_of(twin.partial_fit(X, Y)) == content_of(model)


@pytest.mark.parametrize("keep", [content_of, pickle.dumps, skops.io.dumps])
def test_a_kernel_set_anew_after_learning_is_not_kept_as_if_learned(keep):
    model = KernelOrdinalPA(random_state=0).fit(X, Y).set_params(kernel="linear")
    with pytest.raises(ValueError, match="have changed since it was fitted; restore them"):
        keep(model)
    assert keep(model.set_params(kernel="rbf", C=2.0))
