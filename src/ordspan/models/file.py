"""Model files: one safetensors file with a JSON header; loading never runs code.

The tensors are the numbers that were learned. The header is everything else: a `Header`, after a
SHA-256 digest of the file. Equal models give equal bytes. A checkpoint is a model file with a note
on how far its training has come.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from reprlib import repr as short
from sys import float_info
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from ordspan.catalog import make_learner, stored_parameters
from ordspan.labels.grades import check_classes
from ordspan.learners import Calibration
from ordspan.learners.base import with_state
from ordspan.models.atomic import check_can_write, write_atomically
from ordspan.models.table import TableModel
from ordspan.tables.encoder import Encoder, Recipe
from ordspan.tables.files import FileOptions, Identity
from ordspan.tables.label_columns import LabelColumns
from ordspan.tables.rows import Count, damage_reported

FORMAT_VERSION = 8
ENDING = ".checkpoint"
NO_DIGEST = "0" * 64  # stands in place of the digest while it is computed
MAX_ARRAY_BYTES = 1 << 22  # of an array in the header
ROOM, ROOM_PER_BYTE = 1 << 24, 16  # memory for a row of features: at least, and by file size
MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, SafetensorError)

Finite = Annotated[float, msgspec.Meta(ge=-float_info.max, le=float_info.max)]
Scalar = bool | int | Finite | str
Tensors = dict[str, NDArray[Any]]


class ModelFileError(ValueError):
    """A file that is not a valid, intact ordspan model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ordspan
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.ordspan"
    >>> _ = path.write_text("not a model")
    >>> try:
    ...     ordspan.load(path)
    ... except ordspan.ModelFileError as error:
    ...     print(error)
    /.../model.ordspan: not an ordspan model file...
    """


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, atomically.

    Parameters
    ----------
    model : estimator
        A fitted ordspan estimator, or a model that ``ordspan train`` wrote.
    path : path-like
        Where to write. The file appears under this name only when it is complete on disk.

    Raises
    ------
    TypeError
        The model cannot be saved: it has a function as a parameter, or is of another class, such
        as a Pipeline or a River model; the message shows how to write it with skops.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from ordspan import OrdinalPA, load, save
    >>> model = OrdinalPA(random_state=0).fit([[0.0], [1.0], [2.0]], [1, 2, 3])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.ordspan"
    >>> save(model, path)
    >>> load(path).predict([[2.0]])
    array([3])
    """
    write_atomically(Path(path), to_bytes(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator from a file, bit for bit; damaged files are refused.

    Parameters
    ----------
    path : path-like
        A file written by `save`.

    Returns
    -------
    estimator
        Predicts and continues with ``partial_fit`` exactly as the saved one.

    Raises
    ------
    ModelFileError
        The file is damaged, not a model, or was written by another version of ordspan; a subclass
        of ``ValueError``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from ordspan import OrdinalPA, load, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.ordspan"
    >>> save(OrdinalPA("PA-II", random_state=0).fit([[0.0], [1.0]], [1, 2]), path)
    >>> load(path)
    OrdinalPA(random_state=0, variant='PA-II')
    """
    return from_bytes(Path(path).read_bytes(), str(path))[1]


class Array(msgspec.Struct):
    """A 1-d array of numbers or text; without a type, the keys and values of a dict in turn.

    Its size is limited, because an array of long text takes more memory than a header.
    """

    dtype: Annotated[str, msgspec.Meta(pattern="^[<>|=]?[biufU][0-9]{1,9}$")] | None
    values: list[Scalar]

    def __post_init__(self) -> None:
        size = np.dtype(self.dtype).itemsize * len(self.values)
        if size > MAX_ARRAY_BYTES:
            raise ValueError(f"an array of {size:,} bytes is too large for a header")


Rounds = tuple[int | None, list[tuple[Count, Count, Count, float]]]
"""Progress of training on Dask: the seed, and every round."""
Value = Scalar | list[Scalar | None] | Array | None  # a parameter of an estimator


class Settings(msgspec.Struct):
    """The settings of a training that are needed to continue it."""

    files: list[str]
    passes: Annotated[int, msgspec.Meta(ge=1)]


class Training(msgspec.Struct):
    """What the record of a training must have, because code relies on it; the rest is shown."""

    settings: Settings
    rows: Count
    left_out: dict[str, str]
    sweeps: Count = 0
    digests: list[str] = []  # of each file


class TableHeader(msgspec.Struct):
    """What a model trained from files knows besides the estimator."""

    recipe: Recipe
    labels: LabelColumns
    options: FileOptions
    training: dict[str, Any]

    def __post_init__(self) -> None:
        msgspec.convert(self.training, Training)


class CheckpointNote(msgspec.Struct):
    """How far a training has come, and with which settings and files."""

    settings: dict[str, Any]
    progress: Any

    def read(self, kind: Any, name: str) -> Any:
        """The progress as a record of this kind; a forged one is refused."""
        with damage_reported(
            name, "no valid progress", *MALFORMED, kind=ModelFileError, remedy="start over"
        ):
            return msgspec.convert(self.progress, kind)


class Header(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All of a model file except the numbers that were learned."""

    format: int = FORMAT_VERSION
    estimator: str
    parameters: dict[str, Value]
    classes: Array
    n_features: Annotated[int, msgspec.Meta(ge=1)]
    feature_names: list[str] | None = None
    n_iter: Count
    fitted: dict[str, Finite]
    calibrated: dict[str, Value] | None = None  # parameters of a CalibratedOrdinal around it
    table: TableHeader | None = None
    checkpoint: CheckpointNote | None = None

    def __post_init__(self) -> None:
        names, table = self.feature_names, self.table
        if names is not None and len(names) != self.n_features:
            raise ValueError(f"{len(names)} names for {self.n_features} features")
        if table is not None and table.recipe.n_features != self.n_features:
            raise ValueError(f"{table.recipe.n_features} columns for {self.n_features} features")
        if table is not None and self.parameters.get("max_iter") != self.n_iter:
            raise ValueError(f"{self.n_iter} passes are not its max_iter")


def to_bytes(model: Any, checkpoint: CheckpointNote | None = None) -> bytes:
    """The content of a model file, or of a checkpoint."""
    header, tensors = _parts(model)
    header.checkpoint = checkpoint
    text = json.dumps(msgspec.to_builtins(header), sort_keys=True, allow_nan=False)
    blank = save_tensors(tensors, metadata={"ordspan": NO_DIGEST + text})
    return blank.replace(NO_DIGEST.encode(), sha256(blank).hexdigest().encode(), 1)


def _parts(model: Any) -> tuple[Header, Tensors]:
    """Header and tensors of a model of tables, or of an estimator, perhaps calibrated."""
    if isinstance(model, TableModel):
        header = Header(
            estimator=model.kind,
            parameters=stored(model.parameters),
            n_features=model.recipe.n_features,
            n_iter=model.parameters["max_iter"],
            fitted=model.fitted,
            table=TableHeader(model.recipe, model.columns, model.options, model.training),
            **stored({"classes": model.classes_}),
        )
        tensors = {"state": model.learner.state, "scale": model.encoder.state}
        return header, tensors | {"calibration": model.calibration.state}
    from sklearn.frozen import FrozenEstimator

    from ordspan.estimators.calibrated import CalibratedOrdinal, check_calibration_unchanged

    if type(model) is not CalibratedOrdinal:
        return estimator_header(model), {"state": model.learner_.state}
    check_calibration_unchanged(model)
    ranker, parameters = model.estimator_, model.get_params(deep=False)
    parameters["estimator"] = model.estimator and type(ranker).__name__
    if isinstance(ranker, FrozenEstimator):
        ranker = ranker.estimator
    header = estimator_header(ranker)
    header.calibrated = stored(parameters)
    return header, {"state": ranker.learner_.state, "calibration": model.calibration_.state}


def estimator_header(model: Any) -> Header:
    """What a model file says of an estimator beside its arrays; raises if it is not fitted."""
    from ordspan import estimators

    kind = type(model)
    if getattr(estimators, kind.__name__, None) is not kind:
        ours = f"only {', '.join(estimators.__all__)} of ordspan, alone or calibrated"
        raise TypeError(  # River has an OrdinalPA and a PRank too
            f"cannot save {kind.__module__}.{kind.__name__}, {ours}; write it with "
            "skops.io.dump(model, path), and read it, if you trust the file, with "
            "skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))"
        )
    model.check_settings_unchanged()
    names = getattr(model, "feature_names_in_", None)
    return Header(
        estimator=kind.__name__,
        parameters=stored(model.get_params(deep=False)),
        n_features=int(model.n_features_in_),
        feature_names=None if names is None else names.tolist(),
        n_iter=int(model.n_iter_),
        fitted={name: float(getattr(model, name)) for name in model._fitted_numbers},
        **stored({"classes": model.classes_}),
    )


def stored(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as values of a header; NumPy scalars become plain numbers."""
    values = {}
    for name, value in parameters.items():
        content = value
        if isinstance(value, dict):
            content = {"dtype": None, "values": [one for pair in value.items() for one in pair]}
        elif getattr(value, "ndim", 0):
            array = np.asarray(value)
            content = {"dtype": array.dtype.str, "values": array.tolist()}
        try:
            plain = msgspec.to_builtins(content, enc_hook=np.generic.item)
            values[name] = msgspec.convert(plain, Value)
        except (ValueError, TypeError):
            raise TypeError(
                f"cannot save {name}={value!r}; use plain numbers, strings or lists (for "
                "random_state, an int)"
            ) from None
    return values


def restored(value: Value) -> Any:
    """The value that `stored` wrote, with its types."""
    if not isinstance(value, Array):
        return value
    if value.dtype is None:
        return dict(zip(value.values[::2], value.values[1::2], strict=True))
    return np.array(value.values, value.dtype)


def _parameters(values: Mapping[str, Value], names: Iterable[str]) -> dict[str, Any]:
    """The parameters that `stored` wrote, which must have these names."""
    if values.keys() != set(names):
        raise ValueError(f"unexpected parameters: {', '.join(values)}")
    return {name: restored(value) for name, value in values.items()}


def from_bytes(content: bytes, name: str) -> tuple[Header, Any]:
    """Header and model of a file; raises if it is damaged or ordspan cannot have written it."""
    what = "not an ordspan model file, or damaged"
    remedy = "write it again with ordspan.save or ordspan train"
    with damage_reported(name, what, *MALFORMED, kind=ModelFileError, remedy=remedy):
        size = int.from_bytes(content[:8], "little")
        text: str = json.loads(content[8 : 8 + size])["__metadata__"]["ordspan"]
        digest, text = text[: len(NO_DIGEST)], text[len(NO_DIGEST) :]
        blank = content.replace(bytes(digest, "ascii"), NO_DIGEST.encode(), 1)
        if sha256(blank).hexdigest() != digest:
            raise ValueError("its checksum does not match its content")
        parsed = json.loads(text)
        version = msgspec.convert(parsed["format"], int)
        if version == FORMAT_VERSION:
            header = msgspec.convert(parsed, Header)
            if header.n_features * np.float64().itemsize > ROOM + ROOM_PER_BYTE * len(content):
                raise ValueError(f"{header.n_features:,} features are too many for this file")
            return header, _model(header, load_tensors(content))
    raise ModelFileError(
        f"{name} has model format {version}, but this ordspan reads only {FORMAT_VERSION}: it was "
        "written by another version of ordspan; train the model again"
    )


def _model(header: Header, tensors: Tensors) -> Any:
    """Build a model from a header and tensors, which are checked."""
    classes = check_classes(restored(header.classes))
    if header.table is None:
        return _estimator(header, tensors, classes)
    parameters = _parameters(header.parameters, stored_parameters(header.estimator))
    make = partial(make_learner, header.estimator, parameters)
    return TableModel(
        encoder=Encoder(header.table.recipe, tensors["scale"]),
        kind=header.estimator,
        parameters=parameters,
        classes_=classes,
        learner=with_state(make, tensors["state"], header.n_features, classes.size),
        training=header.table.training,
        calibration=Calibration.from_state(tensors["calibration"], classes.size),
        fitted=header.fitted,
        columns=header.table.labels,
        options=header.table.options,
    )


def _estimator(header: Header, tensors: Tensors, classes: NDArray[Any]) -> Any:
    """The estimator of a header, and the `CalibratedOrdinal` around it, if any."""
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    from ordspan import estimators
    from ordspan.estimators.calibrated import CalibratedOrdinal

    if header.estimator not in estimators.__all__:
        raise ValueError(f"unknown estimator {header.estimator!r}")
    kind = getattr(estimators, header.estimator)
    ranker = kind(**_parameters(header.parameters, kind._get_param_names()))
    # needed by some learners
    vars(ranker).update({name: header.fitted[name] for name in kind._fitted_numbers})
    learner = with_state(ranker._make_learner, tensors["state"], header.n_features, classes.size)
    ranker.from_learner(learner, classes, n_iter=header.n_iter, feature_names=header.feature_names)
    if header.calibrated is None:
        return ranker
    parameters = _parameters(header.calibrated, CalibratedOrdinal._get_param_names())
    parameters["coverages"] = tuple(parameters["coverages"])  # JSON has lists only
    if parameters["estimator"] == FrozenEstimator.__name__:
        ranker = FrozenEstimator(ranker)
    parameters["estimator"] = None if parameters["estimator"] is None else clone(ranker)
    calibration = Calibration.from_state(tensors["calibration"], classes.size)
    return CalibratedOrdinal(**parameters).from_parts(ranker, calibration)


class Checkpoint:
    """A model file that is replaced as training proceeds.

    Parameters
    ----------
    path : path-like
        The file.
    settings : dict
        Plain values that must match when training resumes.
    files : sequence of Identity
        The training files, which must be unchanged.
    remedy : str
        What to do on a mismatch, for messages.
    """

    def __init__(
        self, path: Any, settings: dict[str, Any], files: Sequence[Identity], remedy: str
    ) -> None:
        self.path, self.remedy = Path(path), remedy
        check_can_write(self.path)
        for name, time, digest in files:
            facts = {f"modification time of {name}": time, f"content of {name}": digest}
            settings = settings | facts
        # through JSON: fails now, not after hours of work, and compares as read from a file
        self.settings = json.loads(json.dumps(msgspec.to_builtins(settings)))

    def write(self, model: Any, progress: Any) -> None:
        """Write the model and its progress atomically."""
        write_atomically(self.path, to_bytes(model, CheckpointNote(self.settings, progress)))

    def read(self, kind: type, progress: Any) -> tuple[Any, Any] | None:
        """The last model and progress; None if there is no file."""
        if not self.path.exists():
            return None
        header, model = from_bytes(self.path.read_bytes(), str(self.path))
        if (note := header.checkpoint) is None:
            raise ModelFileError(f"{self.path} is a model file, not a checkpoint; {self.remedy}")
        for key in sorted(note.settings.keys() | self.settings.keys()):
            then, now = note.settings.get(key), self.settings.get(key)
            if then != now:
                raise ValueError(
                    f"the checkpoint {self.path} was made with {key} = {short(then)}, "
                    f"now it is {short(now)}; {self.remedy}"
                )
        if type(model) is not kind:
            raise ModelFileError(f"{self.path} is a checkpoint of another training; {self.remedy}")
        return model, note.read(progress, str(self.path))
