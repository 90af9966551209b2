"""Forged model files and checkpoints with a right digest: refused, or harmless."""

import atexit
import copy
import hashlib
import json
import tracemalloc
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import numpy as np
import polars as pl
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from scipy.sparse import csr_array

import ordspan
from estimators.examples import ESTIMATORS, graded
from ordspan import KernelOrdinalPA, OrdinalPA, OrdinalSVM
from ordspan.checkpoint import Checkpoint, Rounds
from ordspan.commands.info import describe
from ordspan.commands.stopping import Stop, Stopped
from ordspan.commands.train import TrainJob, train
from ordspan.modelfile import _digest_start, to_bytes
from ordspan.tabular import DEFAULTS, TabularModel

NUMBERS = (0, -1, 1, 2, 7, 2**31, 5 * 10**8, 2**53 + 1, 2**63, 10**30, 0.5, 1e308, -1e308, 5e-324)
OTHERS = (
    None,
    True,
    "",
    "x",
    "PA",
    "linear",
    "<U99999999",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    "é\x1b",
)
FLOATS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 0.5, 3.0, 99.0, 1e308, -1e308, 5e-324, 1e6, 2.0**60)
SPARE, PER_BYTE = 1 << 25, 64
"""Memory that a load may take: so much, and so much for each byte of the file."""
TABLE = "age,job,note,grade\n" + "".join(
    f"{3 * i % 41},{'abc'[i % 3]},n{i * i % 7},{1 + i % 4}\n" for i in range(60)
)
SPARSE = "".join(f"{1 + i % 3} 1:{i % 5} {2 + i % 4}:{i % 7}.5\n" for i in range(60))
RESUMED = "checkpoint of a table"


def attack(rng, folder: Path) -> None:
    """One forged file: load it, tell of it, predict with it, go on learning from it."""
    name = str(rng.choice([*originals()]))
    content = forged(rng, originals()[name])
    path = folder / "m" if name != RESUMED else workshop() / "m.checkpoint"
    path.write_bytes(content)
    model = loaded(path, len(content))
    if model is not None:
        for use in (told, predicted, learned, saved):
            harmless(use, model, path, rng)
    if name == RESUMED:
        harmless(resumed, None, path, rng)


def harmless(use, *arguments) -> None:
    """What a strange model cannot do it refuses; anything else is a fault."""
    try:
        with np.errstate(all="ignore"):
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


def told(model, path, rng) -> None:
    json.dumps(describe(path))


def predicted(model, path, rng) -> None:
    if isinstance(model, TabularModel):
        if not model.recipe.n_sparse:
            n_rows = 3
            table = {name: [1.0, 5.0, None] for name in model.recipe.numbers}
            table |= {name: ["a", "c", "n2"][:n_rows] for name in model.recipe.texts}
            grades = model.predict(pl.DataFrame(table))
        else:
            grades = model.predict(rows_of(rng, model.recipe.n_sparse))
    else:
        X = rows_of(rng, model.n_features_in_)
        grades = model.predict(X)
        if hasattr(model, "decision_function"):
            assert not np.isnan(model.decision_function(X)).any()
    assert set(grades.tolist()) <= set(model.classes_.tolist())


def learned(model, path, rng) -> None:
    if isinstance(model, TabularModel):
        if model.recipe.n_sparse:
            X, y = rows_of(rng, model.recipe.n_sparse), rng.choice(model.classes_, 3)
            model.partial_fit(X, y)
    elif hasattr(model, "partial_fit"):
        X = rows_of(rng, model.n_features_in_)
        model.partial_fit(X, rng.choice(model.classes_, X.shape[0]))


def saved(model, path, rng) -> None:
    ordspan.save(model, path.with_name("again"))
    ordspan.load(path.with_name("again"))


def resumed(model, path, rng) -> None:
    train(job(), path.with_suffix(""), resume=True)


def rows_of(rng, width: int):
    """Three rows of any width; wide ones are sparse, and reach to the ends."""
    if width <= 1000:
        return rng.standard_normal((3, width))
    columns = np.array([0, width - 1, width // 2], dtype=np.int64)
    return csr_array((rng.standard_normal(3), columns, np.arange(4)), shape=(3, width))


def forged(rng, original: bytes) -> bytes:
    """Another file, with a right digest, that differs in one to three places."""
    tensors = {name: array.copy() for name, array in load_tensors(original).items()}
    size = int.from_bytes(original[:8], "little")
    header = json.loads(json.loads(original[8 : 8 + size])["__metadata__"]["ordspan"])
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.5:
            header = change_header(rng, header)
        else:
            change_tensors(rng, tensors)
    text = json.dumps(header)
    if rng.random() < 0.02:
        text = rng.choice(["[" * 100_000, "{}", "null", "[]", "3", "", '{"format": 3}', text[:-9]])
    content = bytearray(save_tensors(tensors, metadata={"ordspan": str(text)}))
    if rng.random() < 0.05:  # the names and places of tensors too
        place = rng.integers(8, 8 + int.from_bytes(content[:8], "little"))
        content[place] = rng.integers(32, 127)
    return with_digest(content)


def with_digest(content: bytearray) -> bytes:
    try:
        start = _digest_start(content)
    except (ValueError, TypeError, LookupError):
        return bytes(content)
    size = hashlib.sha256().digest_size
    content[start : start + size] = bytes(size)
    content[start : start + size] = hashlib.sha256(content).digest()
    return bytes(content)


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


def job() -> TrainJob:
    return TrainJob([str(workshop() / "rows.csv")], label="grade", passes=3, hashed=["note"])


@cache
def workshop() -> Path:
    """A folder with two small files to train from, as long as the process lives."""
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder)
    (folder / "rows.csv").write_text(TABLE)
    (folder / "rows.txt").write_text(SPARSE)
    return folder


@cache
def originals() -> dict[str, bytes]:
    """Model files of every kind, and both kinds of checkpoints."""
    X, y, spans = graded(40)
    found = {str(one): to_bytes(one.fit(X, spans)) for one in ESTIMATORS}
    found["svm"] = to_bytes(OrdinalSVM(random_state=0).fit(X, y))
    kernel = KernelOrdinalPA(kernel="precomputed", random_state=0)
    found["precomputed"] = to_bytes(kernel.fit(X @ X.T, y))
    table, out = str(workshop() / "rows.csv"), workshop() / "m"
    jobs = {learner: TrainJob([table], label="grade", learner=learner) for learner in DEFAULTS}
    jobs |= {"hashed": job(), "sparse": TrainJob([str(workshop() / "rows.txt")])}
    for name, one in jobs.items():
        train(one, out, overwrite=True)
        found[f"table, {name}"] = out.read_bytes()
    keeper = Checkpoint(workshop() / "rounds", {"rounds": 3}, [], "")
    keeper.write(OrdinalPA(random_state=0).fit(X, y), Rounds(1, [(1, 40, 9, 0.5)]))
    found["checkpoint of rounds"] = (workshop() / "rounds").read_bytes()
    stop = Stop()
    with suppress(Stopped):
        train(
            job(), out, overwrite=True, stop=stop, report=lambda *_: setattr(stop, "requested", 1)
        )
    found[RESUMED] = out.with_name("m.checkpoint").read_bytes()
    return found
