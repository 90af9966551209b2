"""Model files: bit for bit, whole or not at all, and nothing but ordspan's own are loaded."""

import os
import pickle
import stat
import sys

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from estimators.examples import ESTIMATORS, graded
from ordspan import KernelOrdinalPA, OrdinalPA, load, modelfile, save

X, Y, SPANS = graded()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("words", [False, True])
def test_a_loaded_model_predicts_and_learns_on_exactly_like_the_saved_one(
    estimator, words, tmp_path
):
    order = np.array(["d", "c", "b", "a"]) if words else np.array([1, 2, 3, 4])
    spans = order[SPANS - 1]
    model = clone(estimator).set_params(classes=order).fit(X, spans)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params().keys() == model.get_params().keys()
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    model.partial_fit(X, spans)
    loaded.partial_fit(X, spans)
    np.testing.assert_array_equal(loaded.learner_.memory, model.learner_.memory)
    assert (loaded.n_iter_, loaded.n_features_in_) == (model.n_iter_, model.n_features_in_)


def test_names_of_features_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = OrdinalPA(random_state=0).fit(frame, Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


def test_equal_models_give_equal_bytes_and_saving_again_changes_nothing(tmp_path):
    contents = []
    for name in ("a", "b"):
        save(OrdinalPA(random_state=0).fit(X, Y), tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    save(load(tmp_path / "a"), tmp_path / "again")
    assert contents[0] == contents[1] == (tmp_path / "again").read_bytes()


def test_every_cut_and_every_flipped_byte_is_noticed():
    content = modelfile.to_bytes(OrdinalPA(random_state=0).fit(X, Y))
    for i in range(len(content)):
        flipped = content[:i] + bytes([content[i] ^ (1 << i % 8)]) + content[i + 1 :]
        for damaged in (content[:i], flipped, content + content[:i]):
            if damaged != content:
                with pytest.raises(modelfile.ModelFileError):
                    modelfile.from_bytes(damaged, "model")


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
        with pytest.raises(modelfile.ModelFileError, match=name):
            load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


def test_a_newer_format_says_to_upgrade(tmp_path, monkeypatch):
    model = OrdinalPA(random_state=0).fit(X, Y)
    monkeypatch.setattr(modelfile, "FORMAT_VERSION", 99)
    save(model, tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(modelfile.ModelFileError, match="upgrade ordspan"):
        load(tmp_path / "model")


def test_an_older_format_says_how_to_go_on(tmp_path, monkeypatch):
    model = OrdinalPA(random_state=0).fit(X, Y)
    monkeypatch.setattr(modelfile, "FORMAT_VERSION", 1)
    save(model, tmp_path / "model")
    monkeypatch.undo()
    message = "model format 1 of an earlier ordspan, this one reads 3; retrain the model"
    with pytest.raises(modelfile.ModelFileError, match=message):
        load(tmp_path / "model")


def test_what_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(TypeError, match="cannot save a Ridge"):
        save(Ridge(), tmp_path / "model")
    search = GridSearchCV(OrdinalPA(random_state=0), {"C": [0.1]}, cv=2).fit(X, Y)
    with pytest.raises(TypeError, match="cannot save a GridSearchCV; use its best_estimator_"):
        save(search, tmp_path / "model")
    with pytest.raises(NotFittedError):
        save(OrdinalPA(), tmp_path / "model")
    model = OrdinalPA(random_state=np.random.RandomState(0)).fit(X, Y)
    with pytest.raises(TypeError, match="random_state"):
        save(model, tmp_path / "model")
    model = KernelOrdinalPA(kernel=lambda A, B: A @ B.T).fit(X, Y)
    with pytest.raises(TypeError, match=r"cannot save kernel=.*a model file contains no code"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    save(OrdinalPA(random_state=0).fit(X, Y), tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def full_disk(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save(OrdinalPA(random_state=1).fit(X, Y), tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are a POSIX matter")
def test_a_saved_file_has_the_usual_permissions(tmp_path):
    save(OrdinalPA(random_state=0).fit(X, Y), tmp_path / "model")
    (tmp_path / "plain").write_bytes(b"")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("model", "plain")}
    assert len(modes) == 1


def test_a_model_whose_parameters_were_set_anew_can_be_loaded(tmp_path):
    model = OrdinalPA(random_state=0).fit(X, Y).set_params(C=7.0, variant="PA-II")
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.partial_fit(X, Y).coef_, model.partial_fit(X, Y).coef_)


def test_a_precomputed_kernel_is_kept_by_the_numbers_of_its_rows(tmp_path):
    model = KernelOrdinalPA(kernel="precomputed", random_state=0).fit(X @ X.T, Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.support_, model.support_)
    np.testing.assert_array_equal(loaded.predict(X @ X.T), model.predict(X @ X.T))


def test_a_kernel_set_to_scale_keeps_the_gamma_it_found(tmp_path):
    model = KernelOrdinalPA(gamma="scale", budget=30, random_state=0).fit(3.0 * X, Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.gamma_ == model.gamma_ == pytest.approx(1 / (4 * np.var(3.0 * X)))
    for one in (model, loaded):
        one.partial_fit(9.0 * X, Y)
        assert one.gamma_ == pytest.approx(1 / (4 * np.var(3.0 * X)))
    np.testing.assert_array_equal(loaded.learner_.memory, model.learner_.memory)


def test_a_kernel_set_anew_after_learning_is_not_saved_as_if_learned(tmp_path):
    model = KernelOrdinalPA(random_state=0).fit(X, Y).set_params(kernel="linear")
    with pytest.raises(ValueError, match="have changed since it was fitted; restore them"):
        save(model, tmp_path / "model")
    save(model.set_params(kernel="rbf", C=2.0), tmp_path / "model")
