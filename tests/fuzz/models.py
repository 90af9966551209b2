"""Forged model files and checkpoints with a right digest: refused, or harmless."""

import atexit
import copy
import json
import tracemalloc
import warnings
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import numpy as np
import polars as pl
from scipy.sparse import csr_array

import ordspan
from forging import (
    KINDS,
    OF_ROUNDS,
    OF_TABLE,
    SPARSE,
    TABLE,
    forged,
    job_of,
    original,
    parts_of,
    rounds_of,
    with_digest,
)
from ordspan import OrdinalPA
from ordspan.checkpoint import Rounds
from ordspan.cli.info import print_info
from ordspan.commands.info import describe_model
from ordspan.commands.predict import PredictJob, predict
from ordspan.commands.stopping import Stopped
from ordspan.commands.train import train
from ordspan.tabular import TabularModel

NUMBERS = (0, -1, 1, 2, 7, 2**31, 5 * 10**8, 2**53 + 1, 2**63, 10**30, 0.5, 1e308, -1e308, 5e-324)
WORDS = ("", "x", "é\x1b", "\ud800", "PA", "linear", "precomputed", "sca", "rot13", "<U99999999")
OTHERS = (None, True, [], {}, [[]], [None], {"a": 1}, *WORDS)
FLOATS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 0.5, 3.0, 99.0, 1e308, -1e308, 5e-324, 1e6, 2.0**60)
SPARE, PER_BYTE = 1 << 25, 64
"""Memory that a load may take: so much, and so much for each byte of the file."""


def attack(rng, folder: Path) -> None:
    """One forged file: load it, describe it, predict with it, go on learning from it."""
    name = str(rng.choice(KINDS))
    content = damaged(rng, kept_original(name))
    path = folder / "m" if name != OF_TABLE else workshop() / "m.checkpoint"
    path.write_bytes(content)
    model = loaded(path, len(content))
    if model is not None:
        for use in (described, predicted, predicted_from_file, learned, saved):
            harmless(use, model, path, rng)
    if name == OF_TABLE:
        harmless(lambda: train(job_of(name, workshop()), path.with_suffix(""), resume=True))
    if name == OF_ROUNDS:
        harmless(lambda: rounds_of(path).read(OrdinalPA, Rounds))


def harmless(use, *arguments) -> None:
    """What a strange model cannot do it refuses; anything else is a fault."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(*arguments)
    except (ValueError, Stopped):
        pass


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


def described(model, path, rng) -> None:
    description = describe_model(path)
    json.dumps(description)
    if rng.random() < 0.1:
        with redirect_stdout(StringIO()):
            print_info(description)


def predicted(model, path, rng) -> None:
    if isinstance(model, TabularModel):
        if not model.recipe.n_sparse:
            table = {name: [1.0, 5.0, None] for name in model.recipe.numbers}
            table |= {name: ["a", "c", "n2"] for name in model.recipe.texts}
            grades = model.predict(pl.DataFrame(table))
        else:
            grades = model.predict(rows_of(rng, model.recipe.n_sparse))
    else:
        X = rows_of(rng, model.n_features_in_)
        grades = model.predict(X)
        if hasattr(model, "decision_function"):
            assert not np.isnan(model.decision_function(X)).any()
    assert set(grades.tolist()) <= set(model.classes_.tolist())


def predicted_from_file(model, path, rng) -> None:
    if isinstance(model, TabularModel) and rng.random() < 0.1:
        rows = workshop() / ("rows.txt" if model.recipe.n_sparse else "rows.csv")
        predict(PredictJob([str(rows)], str(path)), path.with_name("out.csv"))


def learned(model, path, rng) -> None:
    if isinstance(model, TabularModel):
        if model.recipe.n_sparse:
            X, y = rows_of(rng, model.recipe.n_sparse), rng.choice(model.classes_, 3)
            model.partial_fit(X, y)
    elif hasattr(model, "partial_fit"):
        if hasattr(model, "solver") and rng.random() < 0.5:
            model.set_params(solver="exact")  # of thresholds that the printed search left
        X = rows_of(rng, model.n_features_in_)
        model.partial_fit(X, rng.choice(model.classes_, X.shape[0]))


def saved(model, path, rng) -> None:
    ordspan.save(model, path.with_name("again"))
    ordspan.load(path.with_name("again"))


def rows_of(rng, width: int):
    """Three rows of any width; wide ones are sparse, and reach to the ends."""
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
        text = rng.choice(["[" * 100_000, "{}", "null", "[]", "3", "", '{"format": 3}', text[:-9]])
    content = bytearray(forged(str(text), tensors))
    if rng.random() < 0.05:  # the names and places of tensors too
        place = rng.integers(8, 8 + int.from_bytes(content[:8], "little"))
        content[place] = rng.integers(32, 127)
    return with_digest(content)


def change_header(rng, header):
    """Another value, no value, one more value or another place's value somewhere in a tree."""
    header = copy.deepcopy(header)
    spots = [*places(header)]
    if not spots:
        return header
    holder, key = spots[rng.integers(len(spots))]
    what = rng.integers(5)
    if what == 0:
        del holder[key]
    elif what == 1:
        other, at = spots[rng.integers(len(spots))]
        holder[key] = copy.deepcopy(other[at])
    elif what == 2 and isinstance(holder[key], int | float):
        holder[key] = holder[key] + int(rng.integers(-2, 3)) if rng.random() < 0.5 else -holder[key]
    elif what == 3 and isinstance(holder, list):
        holder.insert(int(key), holder[key])
    else:
        pool = NUMBERS if rng.random() < 0.5 else OTHERS
        holder[key] = copy.deepcopy(pool[rng.integers(len(pool))])
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
        kept = int(rng.integers(0, array.shape[0] + 1)) if array.ndim else 0
        tensors[name] = array[:kept].copy()
    elif what == 1:
        tensors[name] = np.concatenate([array.ravel(), array.ravel()[: rng.integers(1, 90)]])
    elif what == 2:
        other = rng.choice(["float32", "int64", "uint8", "float16", "bool"])
        with np.errstate(all="ignore"):
            tensors[name] = array.astype(other)
    elif what == 3 and rng.random() < 0.2:
        del tensors[name]
    elif array.size and array.dtype == np.float64:
        near = rng.random() < 0.7  # the head of a state is where it hurts
        place = rng.integers(min(array.size, 20) if near else array.size)
        array.flat[place] = rng.choice(FLOATS)


@cache
def workshop() -> Path:
    """A folder with two small files to train from, as long as the process lives."""
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder)
    (folder / "rows.csv").write_text(TABLE)
    (folder / "rows.txt").write_text(SPARSE)
    return folder


@cache
def kept_original(kind: str) -> bytes:
    return original(kind, workshop())
