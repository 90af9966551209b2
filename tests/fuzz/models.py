"""Forged model files, checkpoints and states with a right digest: refused, or harmless."""

import copy
import json
import tracemalloc
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array

import ordspan
from commands.tables import ask
from forging import (
    KINDS,
    OF_ROUNDS,
    OF_TABLE,
    forged,
    original,
    parts_of,
    read_rounds,
    train_words,
    with_digest,
    workshop,
)

NUMBERS = (0, -1, 1, 2, 7, 2**31, 5 * 10**8, 2**53 + 1, 2**63, 10**30, 0.5, 1e308, -1e308, 5e-324)
WORDS = ("", "x", "é\x1b", "\ud800", "PA", "linear", "sca", "rot13", "<U99999999")
OTHERS = (None, True, [], {}, [[]], [None], {"a": 1}, *WORDS)
FLOATS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 0.5, 3.0, 99.0, 1e308, -1e308, 5e-324, 1e6, 2.0**60)
HEADERS = ("[" * 100_000, "{}", "null", "[]", "3", "", '{"format": 6}')
SPARE, PER_BYTE = 1 << 25, 64
"""Memory that a load may take: so much, and so much for each byte of the file."""


def attack(rng, folder: Path) -> None:
    """One forged file: load it, describe it, predict with it, go on learning from it."""
    kind = str(rng.choice(KINDS))
    content = damaged(rng, original(kind))
    path = folder / "m" if kind != OF_TABLE else workshop() / "m.checkpoint"
    path.write_bytes(content)
    model = loaded(path, len(content))
    uses = [] if model is None else [described, predicted, learned, saved, restored]
    if hasattr(model, "recipe") and rng.random() < 0.1:
        uses.append(predicted_from_file)
    if kind == OF_TABLE:
        uses.append(lambda *_: command(*train_words(kind, "--resume")))
    if kind == OF_ROUNDS:
        uses.append(lambda *_: read_rounds(path))
    for use in uses:  # what a strange model cannot do it refuses; anything else is a fault
        with np.errstate(all="ignore"), warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore")
            use(model, path, rng)


def loaded(path: Path, size: int):
    """The model if it is taken for one, within the memory that its file allows."""
    tracemalloc.start()
    try:
        return ordspan.load(path)
    except ordspan.ModelFileError:
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < SPARE + PER_BYTE * size, f"{peak:,} bytes to load {size:,}"


def command(*words) -> None:
    """A command that is done, or refuses what it cannot do."""
    answer = ask(*words)
    assert isinstance(answer.exception, SystemExit | None), answer.exception


def described(model, path, rng) -> None:
    command("info", path)
    command("info", path, "--json")


def predicted(model, path, rng) -> None:
    grades = model.predict(rows_for(model, rng))
    assert set(grades.tolist()) <= set(model.classes_.tolist())
    if hasattr(model, "decision_function"):
        assert not np.isnan(model.decision_function(rows_for(model, rng))).any()


def predicted_from_file(model, path, rng) -> None:
    rows = workshop() / ("rows.txt" if model.recipe.n_sparse else "rows.csv")
    command("predict", rows, "--model", path, "--out", path.with_name("out.csv"), "--overwrite")


def learned(model, path, rng) -> None:
    if hasattr(model, "solver") and rng.random() < 0.5:
        model.set_params(solver="exact")  # of thresholds that the printed search left
    if hasattr(model, "partial_fit"):
        model.partial_fit(rows_for(model, rng), rng.choice(model.classes_, 3))


def saved(model, path, rng) -> None:
    ordspan.save(model, path.with_name("again"))
    ordspan.load(path.with_name("again"))


def restored(model, path, rng) -> None:
    """As pickle and skops do it, with numbers that may have been changed again."""
    if not hasattr(model, "recipe"):
        state = copy.deepcopy(model.__getstate__())
        arrays = {k: v for k, v in state.items() if k in ("learner_", "calibration_", "classes_")}
        change_tensors(rng, arrays)
        twin = type(model).__new__(type(model))
        twin.__setstate__(state | arrays)
        for use in (predicted, learned):
            use(twin, path, rng)


def rows_for(model, rng):
    """Three rows; wide ones are sparse, and reach to the ends."""
    if hasattr(model, "recipe") and not model.recipe.n_sparse:
        table = {name: [1.0, 5.0, None] for name in model.recipe.numbers}
        return pl.DataFrame(table | {name: ["a", "c", "n2"] for name in model.recipe.texts})
    width = model.recipe.n_sparse if hasattr(model, "recipe") else model.n_features_in_
    if width <= 1000:
        return rng.standard_normal((3, width))
    columns = np.array([0, width - 1, width // 2], dtype=np.int64)
    return csr_array((rng.standard_normal(3), columns, np.arange(4)), shape=(3, width))


def damaged(rng, content: bytes) -> bytes:
    """Another file, with a right digest, that differs in one to three places."""
    header, tensors = parts_of(content)
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.5:
            header = change_header(rng, header)
        elif tensors:
            change_tensors(rng, tensors)
    text = json.dumps(header)
    if rng.random() < 0.02:
        text = str(rng.choice([*HEADERS, text[:-9]]))
    content = bytearray(forged(text, tensors))
    if rng.random() < 0.05:  # the names and places of tensors too
        place = rng.integers(8, 8 + int.from_bytes(content[:8], "little"))
        content[place] = rng.integers(32, 127)
    return with_digest(content)


def change_header(rng, header):
    """Another value, no value, or the value of another place somewhere in a tree."""
    header = copy.deepcopy(header)
    spots = [*places(header)]
    (holder, key), (other, at) = (spots[rng.integers(len(spots))] for _ in range(2))
    values = [[copy.deepcopy(other[at])], NUMBERS, OTHERS]
    if isinstance(holder[key], int | float):
        values.append([-holder[key], holder[key] + int(rng.integers(-2, 3))])
    what = rng.integers(len(values) + 1)
    if what == len(values):
        del holder[key]
    else:
        holder[key] = copy.deepcopy(values[what][rng.integers(len(values[what]))])
    return header


def places(tree):
    """Every (holder, key) in a tree of JSON."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places(tree[key])


def change_tensors(rng, tensors) -> None:
    name = str(rng.choice([*tensors]))
    array, what = tensors[name], rng.integers(6)
    if what == 0:
        tensors[name] = array[: rng.integers(0, len(array) + 1)].copy()
    elif what == 1:
        tensors[name] = np.concatenate([array.ravel(), array.ravel()[: rng.integers(1, 90)]])
    elif what == 2 and array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            tensors[name] = array.astype(rng.choice(["float32", "int64", "uint8", "bool"]))
    elif what == 3 and rng.random() < 0.2:
        del tensors[name]
    elif array.size and array.dtype == np.float64:
        near = rng.random() < 0.7  # the head of a state is where it hurts
        place = rng.integers(min(array.size, 20) if near else array.size)
        array.flat[place] = rng.choice(FLOATS)
