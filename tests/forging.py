"""Model files of every kind, and others made of them that have a right digest."""

import atexit
import hashlib
import json
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from sklearn.frozen import FrozenEstimator

from commands.tables import said, stopped
from estimators.examples import ESTIMATORS, graded
from ordspan import CalibratedOrdinal, KernelOrdinalPA, OrdinalPA, OrdinalSVM, load, save
from ordspan.catalog import DEFAULTS
from ordspan.models.file import Checkpoint, Rounds

NO_DIGEST = "0" * 64  # stands in place of the digest while it is computed
X, Y, SPANS = graded(40)
TABLE = "age,job,note,grade\n" + "".join(
    f"{3 * i % 41},{'abc'[i % 3]},n{i * i % 7},{1 + i % 4}\n" for i in range(60)
)
SPARSE = "".join(f"{1 + i % 3} 1:{i % 5} {2 + i % 4}:{i % 7}.5\n" for i in range(60))
PRINTED = OrdinalPA(solver="sca", balanced=False, shuffle=False)
NO_VECTORS = KernelOrdinalPA(kernel="linear", classes=[1, 2, 3, 4])
FROZEN = FrozenEstimator(OrdinalPA(random_state=0).fit(X, Y))

FITTED = {str(one): (one, X, SPANS) for one in ESTIMATORS} | {
    "printed search": (PRINTED, *graded(60, n_classes=9)[:2]),
    "svm": (OrdinalSVM(random_state=0), X, Y),
    "calibrated": (CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0), X, SPANS),
    "frozen": (CalibratedOrdinal(FROZEN, labels="contain"), X, Y),
    "no support vectors": (NO_VECTORS, X, [[1, 4]] * len(X)),
}
SPARSE_TABLE, OF_TABLE, OF_ROUNDS = "table, sparse", "checkpoint of a table", "checkpoint of rounds"
TABLES = {f"table, {learner}": ["--learner", learner] for learner in DEFAULTS} | {
    "table, hashed": ["--passes", 3, "--hash", "note", "--checkpoint-every", 20],
    SPARSE_TABLE: [],
}
KINDS = (*FITTED, *TABLES, OF_TABLE, OF_ROUNDS)


@cache
def workshop():
    """A folder with two small files to train from, as long as the process lives."""
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder)
    (folder / "rows.csv").write_text(TABLE)
    (folder / "rows.txt").write_text(SPARSE)
    return folder


def train_words(kind, how="--overwrite"):
    """How a model of a table is trained; a checkpoint that of words that are hashed."""
    rows = ["rows.txt"] if kind == SPARSE_TABLE else ["rows.csv", "--label", "grade"]
    options = TABLES.get(kind, TABLES["table, hashed"])
    return ["train", workshop() / rows[0], *rows[1:], *options, "--model", workshop() / "m", how]


def rounds_of(path):
    """The checkpoint of a training on Dask."""
    return Checkpoint(path, {"rounds": 3}, [], "start anew")


def read_rounds(path):
    """Go on from the checkpoint of a training on Dask."""
    return rounds_of(path).read(OrdinalPA, Rounds)


def content_of(model):
    """What is written where a model is saved."""
    save(model, workshop() / "saved")
    return (workshop() / "saved").read_bytes()


def loaded(content):
    """The model of a file of this content, which is named model."""
    (workshop() / "model").write_bytes(content)
    return load(workshop() / "model")


@cache
def original(kind):
    """The content of a model file of a kind."""
    out = workshop() / "m"
    if kind in FITTED:
        estimator, rows, labels = FITTED[kind]
        return content_of(estimator.fit(rows, labels))
    if kind == OF_ROUNDS:
        rounds_of(out).write(OrdinalPA(random_state=0).fit(X, Y), (1, [(1, 40, 9, 0.5)]))
        return out.read_bytes()
    if kind == OF_TABLE:
        out.unlink(missing_ok=True)
        stopped(*train_words(kind))
        return out.with_name("m.checkpoint").read_bytes()
    said(*train_words(kind))
    return out.read_bytes()


def parts_of(content):
    """Header and tensors of a model file, to be changed."""
    size = int.from_bytes(content[:8], "little")
    text = json.loads(content[8 : 8 + size])["__metadata__"]["ordspan"]
    return json.loads(text[len(NO_DIGEST) :]), {
        name: array.copy() for name, array in load_tensors(content).items()
    }


def forged(header, tensors):
    """A model file of such parts with a right digest; the header may be a text."""
    text = header if isinstance(header, str) else json.dumps(header)
    return with_digest(save_tensors(tensors, metadata={"ordspan": NO_DIGEST + text}))


def with_digest(content):
    """A file with its digest made anew, in the place where it is written."""
    start = 8 + len('{"__metadata__":{"ordspan":"')
    head, tail = content[:start], content[start + len(NO_DIGEST) :]
    digest = hashlib.sha256(head + NO_DIGEST.encode() + tail).hexdigest()
    return bytes(head + digest.encode() + tail)
