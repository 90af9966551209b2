"""A forged model, digest and all, is refused before anything is done with it.

The digest has no key, so anybody can make it anew: loading must prove the rest. The same holds for
the states of estimators in files of skops.
"""

import json
import tracemalloc
from functools import partial

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from commands.tables import said
from forging import (
    FITTED,
    KINDS,
    OF_ROUNDS,
    OF_TABLE,
    SPANS,
    X,
    forged,
    loaded,
    original,
    parts_of,
    read_rounds,
    train_words,
    workshop,
)
from ordspan import ModelFileError, OrdinalPA
from ordspan.core import state as layout

FIRST_EDGE, COUNTERS = layout.HEADER, layout.HEADER - layout.N_COUNTERS
LITTLE_MEMORY = 2**23


def check_refused(header, tensors, what):
    content = forged(header, tensors)
    tracemalloc.start()
    try:
        loaded(content)
        pytest.fail(f"taken for a model: {what}")
    except ModelFileError:
        assert tracemalloc.get_traced_memory()[1] < LITTLE_MEMORY
    finally:
        tracemalloc.stop()


def put(place, value):
    """A forgery that writes a value to the state; places after the edges depend on the grades."""

    def forge(state, n_classes):
        state[place(n_classes) if callable(place) else place] = value
        return state

    return forge


def unsorted(state, n_classes):
    state[FIRST_EDGE + 1 : FIRST_EDGE + n_classes] = np.arange(n_classes - 1)[::-1]
    return state


FORGED_STATES = {
    "cut to nothing": lambda state, k: state[:0],
    "one number less": lambda state, k: state[:-1],
    "grown": lambda state, k: np.resize(state, 100_001),
    "two-dimensional": lambda state, k: np.resize(state, (2, 40)),
    "float32": lambda state, k: state.astype(np.float32),
    "whole numbers": lambda state, k: state.clip(-99, 99).astype(np.int64),
    "no first sentinel": put(FIRST_EDGE, 0.0),
    "no last sentinel": put(lambda k: FIRST_EDGE + k, 0.0),
    "sentinels the wrong way round": put(lambda k: [FIRST_EDGE, FIRST_EDGE + k], [np.inf, -np.inf]),
    "NaN threshold": put(FIRST_EDGE + 1, np.nan),
    "infinite threshold": put(FIRST_EDGE + 1, -np.inf),
    "unsorted thresholds": unsorted,
    "unknown rule": put(layout.RULE, 99.0),
    "half a rule": put(layout.RULE, 0.5),
    "NaN rule": put(layout.RULE, np.nan),
    "other classes": put(layout.N_CLASSES, 1e9),
    "another average": put(layout.AVERAGING, 0.5),
    "another balance": put(layout.BALANCED, 0.5),
    "negative C": put(layout.C, -1.0),
    "infinite C": put(layout.C, np.inf),
    "negative count": put(COUNTERS + layout.TRIALS, -1.0),
    "half a count": put(COUNTERS + layout.UPDATES, 0.5),
    "endless count": put(COUNTERS + layout.TRIALS, 1e300),
    "NaN scale": put(COUNTERS + layout.SCALE, np.nan),
    "no scale": put(COUNTERS + layout.SCALE, 0.0),
    "infinite logarithms": put(COUNTERS + layout.LOG_SUM, np.inf),
    "NaN at the end": put(-1, np.nan),
    "infinity at the end": put(-1, np.inf),
}


def forged_states(state, n_classes, solver):
    """Every forgery of a state; the printed search may leave thresholds unsorted."""
    for what, forge in FORGED_STATES.items():
        if not (forge is unsorted and solver == "sca"):
            yield what, forge(state.copy(), n_classes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_its_header_does_not_allow_is_refused(kind):
    header, tensors = parts_of(original(kind))
    n_classes, solver = len(header["classes"]["values"]), header["parameters"].get("solver")
    for what, state in forged_states(tensors["state"], n_classes, solver):
        check_refused(header, tensors | {"state": state}, what)
    for name in tensors.keys() - {"state"}:
        nan, negative = tensors[name].copy(), tensors[name].copy()
        nan[1 % len(nan)], negative[2 % len(nan)] = np.nan, -1.0
        for forgery in (nan[:0], nan, negative, tensors[name].astype("f4"), tensors[name][None]):
            check_refused(header, tensors | {name: forgery.copy()}, name)
    for name in tensors:
        check_refused(header, {k: v for k, v in tensors.items() if k != name}, f"no {name}")


@pytest.mark.parametrize("kind", FITTED)
def test_a_state_from_a_pickle_or_skops_is_checked_like_that_of_a_file(kind):
    estimator, rows, labels = FITTED[kind]
    model = clone(estimator).fit(rows, labels)
    state, n_classes = model.__getstate__(), model.classes_.size
    if "calibration_" in state:
        numbers = state["calibration_"]
        forgeries = [{"calibration_": n} for n in (None, numbers[1:], numbers * np.nan)]
        forgeries += [{"estimator_": None}, {"estimator_": clone(OrdinalPA())}]
    else:
        found = forged_states(state["learner_"], n_classes, state.get("solver"))
        forgeries = [{"learner_": state} for _, state in found]
        forgeries += [{"learner_": model.learner_}, {"learner_": None}]
        forgeries += [{"classes_": classes} for classes in (model.classes_[1:], [[1, 2]], None)]
        forgeries += [{"n_features_in_": n} for n in (3.5, None, 0, -1, 2**64)]
    for forgery in forgeries:
        with pytest.raises(ValueError, match=f"cannot restore this {type(model).__name__} "):
            type(model).__new__(type(model)).__setstate__(state | forgery)


def test_skops_hands_the_numbers_to_the_check():
    model = make_pipeline(StandardScaler(), OrdinalPA(random_state=0)).fit(X, SPANS)
    trusted = ["ordspan.estimators.online.OrdinalPA"]
    twin = skops.io.loads(skops.io.dumps(model), trusted=trusted)
    assert twin.predict(X).tolist() == model.predict(X).tolist()
    unsorted(model[-1].learner_.state, 4)
    message = "its state has thresholds that are not finite or not sorted"
    with pytest.raises(ValueError, match=message):
        skops.io.loads(skops.io.dumps(model), trusted=trusted)


def widened(header, n_features):
    header["n_features"] = n_features
    if header["table"] and header["table"]["recipe"]["n_sparse"]:
        header["table"]["recipe"]["n_sparse"] = n_features
        header["table"]["options"]["n_features"] = n_features


def wide_hashes(header):
    header["n_features"] = 2**24
    if header["table"]:
        header["table"]["recipe"] |= {"hashed": ["x"], "hash_bits": 24}


def other_names(header):
    if header["table"] and (numbers := header["table"]["recipe"]["numbers"]):
        header["table"]["recipe"]["missing_indicators"] = numbers
    else:
        header["feature_names"] = ["a"]


FORGED_HEADERS = {
    "a class more": lambda header: header["classes"]["values"].append(99),
    "wide classes": lambda header: header["classes"].update(dtype="<U99999999"),
    "wide parameter": lambda header: header["parameters"].update(
        classes={"dtype": "<U99999999", "values": ["a"]}
    ),
    "wide hashes": wide_hashes,
    "an unknown field": lambda header: header.update(pipeline={}),
    "an unknown parameter": lambda header: header["parameters"].update(deep=True),
    "other names": other_names,
}
for number in (500_000_000, 2**63, 0, -1, True, "4"):
    FORGED_HEADERS[f"{number!r} features"] = partial(widened, n_features=number)


@pytest.mark.parametrize("kind", KINDS)
def test_a_header_that_does_not_fit_is_refused(kind):
    for what, forge in FORGED_HEADERS.items():
        header, tensors = parts_of(original(kind))
        forge(header)
        check_refused(header, tensors, what)
    header, tensors = parts_of(original(kind))
    only_format = json.dumps({"format": header["format"]})
    for text in ("", "null", "3", "[]", "{}", '"x"', "[" * 100_000, "NaN", only_format, "{"):
        check_refused(text, tensors, text[:20])
    optional = {"feature_names", "calibrated", "table", "checkpoint"}
    for name in header.keys() - optional:
        for value in (None, [], {}, "x", -1, [[]], float("nan"), {"dtype": "O", "values": [1]}):
            if not (value == {} and name == "fitted"):  # not all have such numbers
                check_refused(header | {name: value}, tensors, f"{name} = {value}")
        check_refused({k: v for k, v in header.items() if k != name}, tensors, f"no {name}")


def progress(**changes):
    return lambda header, tensors: header["checkpoint"]["progress"].update(changes)


@pytest.mark.parametrize(
    "forge",
    [
        progress(cursor=[0, -1, 0]),
        progress(cursor="x"),
        progress(rows=-1),
        progress(bad={"policy": "raise", "count": 2**70, "examples": []}),
        progress(bad={"policy": "x", "count": 0, "examples": []}),
        progress(mae=["x"]),
        progress(labels={"lower": [1]}),
        progress(labels={"lower": [1], "upper": [1], "exact": [1]}),
        lambda header, tensors: header["checkpoint"].update(progress=None),
        lambda header, tensors: header.pop("checkpoint"),
        lambda header, tensors: header["table"]["training"].pop("settings"),
        lambda header, tensors: header["table"]["training"].update(digests=[1]),
        lambda header, tensors: header["table"]["recipe"].update(missing_indicators=["job"]),
        lambda header, tensors: header["parameters"].update(max_iter=["x"]),
        lambda header, tensors: header["classes"].update(values=[1, 2, 3, 9]),
        lambda header, tensors: unsorted(tensors["state"], 4),
    ],
)
def test_a_checkpoint_that_does_not_belong_to_its_files_does_not_go_on(forge):
    header, tensors = parts_of(original(OF_TABLE))
    forge(header, tensors)
    (workshop() / "m.checkpoint").write_bytes(forged(header, tensors))
    assert "m.checkpoint" in said(*train_words(OF_TABLE, "--resume"), code=1)


def test_a_deep_record_is_an_error_of_one_line(tmp_path):
    header, tensors = parts_of(original(OF_TABLE))
    header["table"]["training"]["mae"] = json.loads("[" * 600 + "]" * 600)
    (tmp_path / "m").write_bytes(forged(header, tensors))
    assert "recursion" in said("info", tmp_path / "m", code=1)


@pytest.mark.parametrize("found", [None, {}, [1, 3], ["x", []]])
def test_a_checkpoint_of_rounds_must_say_how_far_it_has_come(tmp_path, found):
    header, tensors = parts_of(original(OF_ROUNDS))
    header["checkpoint"]["progress"] = found
    (tmp_path / "c").write_bytes(forged(header, tensors))
    with pytest.raises(ModelFileError):
        read_rounds(tmp_path / "c")


def test_an_honest_model_of_the_printed_search_may_have_unsorted_thresholds():
    header, tensors = parts_of(original("printed search"))
    unsorted(tensors["state"], 9)
    model = loaded(forged(header, tensors))
    assert model.set_params(solver="exact").partial_fit(np.ones((1, 4)), [5]).predict([[1.0] * 4])
