"""Pipelines in model files: the same predictions to the bit, or a refusal that names the step."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from estimators.examples import graded
from forging import COLUMNS, PIPELINES, forged, parts_of
from ordspan import (
    CalibratedOrdinal,
    KernelOrdinalPA,
    ModelFileError,
    OrdinalPA,
    OrdinalSVM,
    PRank,
    load,
    save,
)
from ordspan.commands.info import describe_model
from ordspan.modelfile import from_bytes, to_bytes
from ordspan.pipelines.values import SizeBudget, decode_value

X, Y, SPANS = graded(120)
RANKER = OrdinalPA(random_state=0)


def a_frame():
    """Numbers with gaps, words with gaps, and small whole numbers."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.loc[::9, "a"] = np.nan
    frame["word"] = rng.choice(["x", "y", "z"], len(frame)).astype(object)
    frame.loc[::13, "word"] = None
    frame["count"] = rng.integers(0, 3, len(frame))
    return frame


FRAME = a_frame()


def by_column(remainder="drop", **options):
    parts = [
        ("n", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["a", "b"]),
        ("w", OneHotEncoder(handle_unknown="ignore", drop="first"), ["word", "count"]),
        ("p", "passthrough", ["c"]),
    ]
    return ColumnTransformer(parts, remainder=remainder, **options)


PARTS = [("s", MinMaxScaler(), slice(0, 2)), ("i", SimpleImputer(), [False, False, True, True])]
WORDS = make_pipeline(
    SimpleImputer(strategy="most_frequent"), OneHotEncoder(dtype=np.float32, sparse_output=False)
)
POLY = Nystroem("poly", degree=2, kernel_params={"coef0": 1.0}, n_components=30, random_state=0)
CALIBRATED = CalibratedOrdinal(RANKER, random_state=0)

SAVED = {
    "standard": ((StandardScaler(), RANKER), X),
    "no mean": (("passthrough", StandardScaler(with_mean=False), PRank(random_state=0)), X),
    "float32": ((MinMaxScaler(clip=True), OrdinalSVM()), X.astype(np.float32)),
    "nystroem": ((RobustScaler(), Nystroem(n_components=30, random_state=0), RANKER), X),
    "poly": ((MaxAbsScaler(), POLY, KernelOrdinalPA(random_state=0)), np.asfortranarray(X)),
    "calibrated last": ((RobustScaler(), CALIBRATED), X),
    "columns": ((by_column(), RANKER), FRAME),
    "sparse": ((by_column("passthrough", sparse_threshold=1.0), RANKER), FRAME),
    "other columns": ((by_column(StandardScaler()), RANKER), FRAME),
    "frames": (
        (ColumnTransformer(PARTS).set_output(transform="pandas"), RANKER),
        FRAME[[*"bcd", "count"]],
    ),
    "parts": ((ColumnTransformer(PARTS), RANKER), X),
    "words": ((WORDS, RANKER), FRAME[["word", "count"]]),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_loaded_pipeline_predicts_to_the_bit_what_the_saved_one_did(name, tmp_path):
    steps, data = SAVED[name]
    check(make_pipeline(*steps).fit(data, SPANS), data, tmp_path / "model")


@pytest.mark.parametrize("frozen", [False, True])
def test_a_calibrated_pipeline_is_saved_whole(frozen, tmp_path):
    inner = make_pipeline(by_column(), RANKER)
    inner = FrozenEstimator(inner.fit(FRAME, Y)) if frozen else inner
    check(CalibratedOrdinal(inner, random_state=0).fit(FRAME, SPANS), FRAME, tmp_path / "model")


def check(model, data, path):
    save(model, path)
    loaded = load(path)
    answers = ("predict", "decision_function", "predict_proba", "predict_interval", "latent")
    for answer in answers:
        if hasattr(model, answer):
            ours, theirs = (getattr(one, answer)(data) for one in (loaded, model))
            np.testing.assert_array_equal(ours, theirs)
    assert repr(loaded) == repr(model)
    assert repr(loaded.get_params()) == repr(model.get_params())
    for attribute in ("n_features_in_", "feature_names_in_"):
        np.testing.assert_array_equal(
            getattr(loaded, attribute, None), getattr(model, attribute, None)
        )
    assert to_bytes(loaded) == path.read_bytes()
    refitted = loaded.fit(data, Y)
    np.testing.assert_array_equal(refitted.predict(data), model.fit(data, Y).predict(data))


def test_columns_that_a_function_chose_are_kept_as_a_list(tmp_path):
    chosen = ColumnTransformer([("n", MinMaxScaler(), make_column_selector(pattern="[bcd]"))])
    model = make_pipeline(chosen, RANKER).fit(FRAME[[*"abcd"]], Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded[0].transformers[0][2] == ["b", "c", "d"]
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))


def test_columns_may_come_in_another_order_as_before(tmp_path):
    model = make_pipeline(by_column(), RANKER).fit(FRAME, Y)
    save(model, tmp_path / "model")
    turned = FRAME[FRAME.columns[::-1]].assign(more=1.0)
    np.testing.assert_array_equal(load(tmp_path / "model").predict(turned), model.predict(FRAME))


class OwnScaler(StandardScaler):
    pass


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (FunctionTransformer(np.sign), r"step 'functiontransformer' .* func is <ufunc 'sign'>, .*"),
        (PolynomialFeatures(), "'polynomialfeatures' .* cannot store a PolynomialFeatures"),
        (OwnScaler(), "'ownscaler' .* cannot store an? OwnScaler"),
        (Nystroem(lambda a, b: a @ b, n_components=5), "'nystroem' .* its kernel is <function"),
        (OneHotEncoder(min_frequency=2, handle_unknown="ignore"), "groups infrequent categories"),
        (
            ColumnTransformer([("p", PolynomialFeatures(), [0])]),
            r"step 'columntransformer\.p' of .* cannot store a PolynomialFeatures",
        ),
    ],
)
def test_a_step_that_cannot_be_saved_is_named(step, message, tmp_path):
    model = make_pipeline(step, RANKER).fit(np.round(X), Y)
    for whole in (model, CalibratedOrdinal(FrozenEstimator(model)).fit(np.round(X), Y)):
        with pytest.raises(TypeError, match=f"cannot save the .*{message}"):
            save(whole, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_sparse_components_and_places_on_this_machine_are_refused_with_a_way_out(tmp_path):
    sparse = make_pipeline(OneHotEncoder(), Nystroem(n_components=9, random_state=0), RANKER)
    with pytest.raises(TypeError, match=r"components_ are sparse rows; .*sparse_output=False"):
        save(sparse.fit(np.round(X), Y), tmp_path / "model")
    cached = make_pipeline(StandardScaler(), RANKER, memory=str(tmp_path / "cache")).fit(X, Y)
    with pytest.raises(TypeError, match=r"call set_params\(memory=None\)"):
        save(cached, tmp_path / "model")


def test_an_attribute_of_a_newer_scikit_learn_is_not_lost_in_silence(tmp_path):
    model = make_pipeline(StandardScaler(), RANKER).fit(X, Y)
    model[0].new_ = 1
    with pytest.raises(TypeError, match="it has new_, which this ordspan does not know"):
        save(model, tmp_path / "model")


def test_arrays_keep_the_order_of_their_numbers_in_memory():
    model = make_pipeline(Nystroem(n_components=9, random_state=0), RANKER).fit(X, Y)
    model[0].components_ = np.asfortranarray(model[0].components_)
    loaded = from_bytes(to_bytes(model), "model")
    assert loaded[0].components_.flags.f_contiguous  # a product may round otherwise
    np.testing.assert_array_equal(loaded[0].components_, model[0].components_)


def test_what_many_arrays_take_is_counted_together():
    wide = {"array": ["<U1000", ["a"]]}  # 4,000 bytes
    assert len(decode_value([wide] * 2, SizeBudget(8_000))) == 2
    with pytest.raises(ValueError, match="is too large for this file"):
        decode_value([wide] * 3, SizeBudget(8_000))


def test_more_jobs_than_this_machine_has_become_all_of_them():
    steps = ColumnTransformer([("s", StandardScaler(), [0])], n_jobs=None)
    model = make_pipeline(steps, RANKER).fit(X, Y)
    model.set_params(columntransformer__n_jobs=100_000)
    assert from_bytes(to_bytes(model), "model")[0].n_jobs == -1


def test_info_names_the_steps(tmp_path):
    save(make_pipeline(StandardScaler(), RANKER).fit(X, Y), tmp_path / "model")
    found = describe_model(tmp_path / "model")
    assert (found["estimator"], found["steps"]) == ("OrdinalPA", ["StandardScaler"])
    save(RANKER.fit(X, Y), tmp_path / "model")
    assert describe_model(tmp_path / "model")["steps"] is None


# -- forged ---------------------------------------------------------------------------------------


def columns_node(header):
    return header["pipeline"]["before"]["inside"][0][1]


def child(header, name):
    return dict(columns_node(header)["inside"])[name]


def imputer(header):
    return child(header, "filled")["inside"][0][1]


def put(find, *keys, value):
    def forge(header, tensors):
        holder = find(header)
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = value

    return forge


def tensor(name, change):
    def forge(header, tensors):
        found = next(key for key in tensors if key.endswith(name))
        tensors[found] = change(tensors[found])

    return forge


def coded(header):
    return child(header, "coded")


CATEGORIES = {"array": ["<f8", [2.0, 1.0, 0.0]]}
FORGED = {
    "unsorted categories": put(coded, "fitted", "categories_", value=[CATEGORIES]),
    "no categories": put(coded, "fitted", "categories_", value=[]),
    "categories of other features": put(coded, "n_features", value=2),
    "wide words": put(coded, "fitted", "categories_", value=[{"array": ["<U99999999", ["a"]]}]),
    "many wide words": put(
        coded, "parameters", "drop", value=[{"array": ["<U999999", ["a"]]}] * 1000
    ),
    "code": put(coded, "parameters", "dtype", value={"type": "object"}),
    "a list for a dict": put(coded, "parameters", "drop", value={"dict": [1]}),
    "another kind": put(coded, "kind", value="FunctionTransformer"),
    "a pickle": put(coded, "kind", value="joblib"),
    "a parameter that is none": put(coded, "parameters", "evil", value=1),
    "a wrong parameter": put(coded, "parameters", "handle_unknown", value="run"),
    "infrequent": put(coded, "parameters", "min_frequency", value=2),
    "a column that is not there": put(
        columns_node, "parameters", "transformers", 0, 2, value=[0, 99]
    ),
    "a name that is not there": put(columns_node, "parameters", "transformers", 0, 2, value=["x"]),
    "a billion columns": put(columns_node, "n_features", value=10**9),
    "long names": put(
        columns_node,
        "parameters",
        "verbose_feature_names_out",
        value="{feature_name:>999999999}",
    ),
    "unfitted": put(columns_node, "inside", 0, value=["filled", "passthrough"]),
    "an indicator of other features": tensor("features_", lambda a: a + 9),
    "statistics of other features": tensor("statistics_", lambda a: a[:1].copy()),
    "whole statistics": tensor("scale_", lambda a: a.astype(np.int64)),
    "one tensor more": lambda header, tensors: tensors.update(more=np.zeros(1)),
    "one tensor less": lambda header, tensors: tensors.pop(
        next(key for key in tensors if key.endswith("mean_"))
    ),
    "a dtype of words": put(imputer, "fitted", "_fit_dtype", value={"dtype": "<U9"}),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_step_is_refused(what):
    header, tensors = parts_of(to_bytes(COLUMNS.fit(*PIPELINES["pipeline of columns"][1:])))
    FORGED[what](header, tensors)
    with pytest.raises(ModelFileError):
        from_bytes(forged(header, tensors), "model")
