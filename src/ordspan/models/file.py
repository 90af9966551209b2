"""Model files: one safetensors file with a JSON header; loading never runs code.

The tensors are the numbers that were learned. The header is everything else: a `Header`, after a
SHA-256 digest of the file. Equal models give equal bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from sys import float_info
from typing import Annotated, Any, Literal

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
from ordspan.models.atomic import write_atomically
from ordspan.models.table import TableModel
from ordspan.tables.encoder import Encoder, Recipe
from ordspan.tables.files import FileOptions
from ordspan.tables.label_columns import LabelColumns
from ordspan.tables.rows import Count

FORMAT_VERSION = 5
NO_DIGEST = "0" * 64  # stands in place of the digest while it is computed
MAX_ARRAY_BYTES = 1 << 22  # of an array in the header
ROOM, ROOM_PER_BYTE = 1 << 24, 16  # memory for a row of features: so much, and by file size
MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, SafetensorError)

Finite = Annotated[float, msgspec.Meta(ge=-float_info.max, le=float_info.max)]
Scalar = bool | int | Finite | str


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
    /.../model.ordspan ...
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
        as a Pipeline; the message shows how to write it with skops.

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
    return from_bytes(Path(path).read_bytes(), str(path))


class Array(msgspec.Struct, tag="array"):
    """A 1-d array of numbers or text."""

    dtype: Annotated[str, msgspec.Meta(pattern="^[<>|=]?[biufU][0-9]{1,9}$")]
    values: list[Scalar]

    def __post_init__(self) -> None:
        size = np.dtype(self.dtype).itemsize * len(self.values)
        if size > MAX_ARRAY_BYTES:
            raise ValueError(f"an array of {size:,} bytes is too large for a header")


class Pairs(msgspec.Struct, tag="dict"):
    """A dict whose keys may be numbers, which JSON has not."""

    values: list[tuple[Scalar | None, Scalar | None]]


Value = Scalar | list[Scalar | None] | Array | Pairs | None  # a parameter of an estimator


Origin = Literal["default", "given", "frozen"]


class Calibrated(msgspec.Struct):
    """The `CalibratedOrdinal` around an estimator."""

    parameters: dict[str, Value]  # except the estimator
    estimator: Origin


class Constant(msgspec.Struct):
    """The best constant prediction, and its MAE."""

    grade: Scalar
    mae: float


class Settings(msgspec.Struct):
    """The settings of a training that are shown or needed to continue it."""

    files: list[str]
    passes: Annotated[int, msgspec.Meta(ge=1)]


class Training(msgspec.Struct):
    """What the record of a training must have, because it is shown or needed to continue."""

    settings: Settings
    rows: Count
    skipped: Count
    mae: list[float]
    constant: Constant | None
    left_out: dict[str, str]
    notes: list[str]
    start: str | None = msgspec.field(name="from")
    sweeps: Count = 0
    identities: list[tuple[str, Count, str]] = []  # name, size and digest of each file


class Table(msgspec.Struct):
    """What a model trained from files knows besides the estimator."""

    recipe: Recipe
    labels: LabelColumns
    options: FileOptions
    training: dict[str, Any]

    def __post_init__(self) -> None:
        msgspec.convert(self.training, Training)


class Note(msgspec.Struct):
    """How far a training has come, and with which settings and files."""

    settings: dict[str, Any]
    progress: dict[str, Any]


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
    calibrated: Calibrated | None = None
    table: Table | None = None
    checkpoint: Note | None = None

    def __post_init__(self) -> None:
        names, table = self.feature_names, self.table
        if names is not None and len(names) != self.n_features:
            raise ValueError(f"{len(names)} names for {self.n_features} features")
        if table is not None and table.recipe.n_features != self.n_features:
            raise ValueError(f"{table.recipe.n_features} columns for {self.n_features} features")
        if table is not None and self.parameters.get("max_iter") != self.n_iter:
            raise ValueError(f"{self.n_iter} passes are not its max_iter")


def to_bytes(model: Any, checkpoint: Note | None = None) -> bytes:
    """The content of a model file, or of a checkpoint."""
    if isinstance(model, TableModel):
        header = Header(
            estimator=model.kind,
            parameters=_stored(model.parameters),
            classes=stored("classes_", model.classes_),
            n_features=model.recipe.n_features,
            n_iter=model.parameters["max_iter"],
            fitted=model.fitted,
            table=Table(model.recipe, model.columns, model.options, model.training),
        )
        tensors = {"state": model.learner.state, "scale": model.encoder.state}
        calibration = model.calibration
    else:
        ranker, calibrated = _without_calibration(model)
        header, tensors = estimator_header(ranker, calibrated), {"state": ranker.learner_.state}
        calibration = None if calibrated is None else model.calibration_
    if calibration is not None:
        tensors["calibration"] = calibration.state
    header.checkpoint = checkpoint
    text = json.dumps(msgspec.to_builtins(header), sort_keys=True, allow_nan=False)
    blank = save_tensors(tensors, metadata={"ordspan": NO_DIGEST + text})
    return blank.replace(NO_DIGEST.encode(), sha256(blank).hexdigest().encode(), 1)


def estimator_header(model: Any, calibrated: Calibrated | None = None) -> Header:
    """The header of a fitted estimator, and of the `CalibratedOrdinal` around it."""
    model.check_settings_unchanged()
    names = getattr(model, "feature_names_in_", None)
    return Header(
        estimator=type(model).__name__,
        parameters=_stored(model.get_params(deep=False)),
        classes=stored("classes_", model.classes_),
        n_features=int(model.n_features_in_),
        feature_names=None if names is None else names.tolist(),
        n_iter=int(model.n_iter_),
        fitted={name: float(getattr(model, name)) for name in model._fitted_numbers},
        calibrated=calibrated,
    )


def _without_calibration(model: Any) -> tuple[Any, Calibrated | None]:
    """An estimator of ours, and the `CalibratedOrdinal` around it, if any."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils.validation import check_is_fitted

    from ordspan.estimators.calibrated import CalibratedOrdinal, check_calibration_unchanged

    ranker, calibrated = model, None
    if type(model) is CalibratedOrdinal:
        check_is_fitted(model)
        check_calibration_unchanged(model)
        ranker, parameters = model.estimator_, model.get_params(deep=False)
        origin: Origin = "default" if parameters.pop("estimator") is None else "given"
        if isinstance(ranker, FrozenEstimator):
            ranker, origin = ranker.estimator, "frozen"
        calibrated = Calibrated(_stored(parameters), origin)
    kind, known = type(ranker), _estimators()
    if known.get(kind.__name__) is not kind:
        if "river" in kind.__module__.split("."):  # has an OrdinalPA and a PRank too
            name = f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}"
            raise TypeError(f"cannot save {name}, a River model; pickle it instead")
        raise TypeError(
            f"cannot save a {kind.__name__}, only {', '.join(known)}, alone or calibrated; write "
            "it with skops.io.dump(model, path), and read it, if you trust the file, with "
            "skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))"
        )
    check_is_fitted(ranker)
    return ranker, calibrated


def _estimators() -> dict[str, Any]:
    """Estimators by name that a file can hold, alone or calibrated; imports scikit-learn."""
    from ordspan import estimators

    return {name: getattr(estimators, name) for name in estimators.__all__}


def _stored(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: stored(name, value) for name, value in parameters.items()}


def stored(name: str, value: Any) -> Any:
    """A parameter as a `Value`, if it can be one; arrays keep their type, NumPy scalars do not."""
    try:
        return msgspec.convert(_plain(value), Value)
    except ValueError:
        raise TypeError(
            f"cannot save {name}={value!r}; use plain numbers, strings or lists (for "
            "random_state, an int)"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {"type": "dict", "values": [_plain(pair) for pair in value.items()]}
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return {"type": "array", "dtype": array.dtype.str, "values": array.tolist()}
    return value


def restored(value: Value) -> Any:
    """The inverse of `stored`."""
    if isinstance(value, Array):
        return np.array(value.values, dtype=value.dtype)
    return dict(value.values) if isinstance(value, Pairs) else value


def from_bytes(content: bytes, name: str) -> Any:
    """The model in a file."""
    return read_header_and_model(content, name)[1]


def read_header_and_model(content: bytes, name: str) -> tuple[Header, Any]:
    """Header and model of a file; raises if it is damaged or ordspan cannot have written it."""
    try:
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
    except MALFORMED as error:
        raise ModelFileError(
            f"{name} is not an ordspan model file, or it is damaged ({error}); write it again with "
            "ordspan.save or ordspan train"
        ) from None
    raise ModelFileError(
        f"{name} has model format {version}, but this ordspan reads only {FORMAT_VERSION}: it was "
        "written by another version of ordspan; train the model again"
    )


def _model(header: Header, tensors: dict[str, NDArray[Any]]) -> Any:
    """Build a model from a header and tensors, which are checked."""
    table = header.table
    classes = check_classes(restored(header.classes))
    if table is not None:
        parameters = _restored(header.parameters, stored_parameters(header.estimator))
        make = partial(make_learner, header.estimator, parameters)
    else:
        kind = _estimators().get(header.estimator)
        if kind is None:
            raise ValueError(f"unknown estimator {header.estimator!r}")
        estimator = kind(**_restored(header.parameters, kind._get_param_names()))
        fitted = {name: header.fitted[name] for name in kind._fitted_numbers}
        vars(estimator).update(fitted)  # needed by some learners
        make = estimator._make_learner
    learner = with_state(make, tensors["state"], header.n_features, classes.size)
    calibration = None
    if header.calibrated or "calibration" in tensors:
        calibration = Calibration.from_state(tensors["calibration"], classes.size)
    if table is not None:
        return TableModel(
            encoder=Encoder(table.recipe, tensors["scale"]),
            kind=header.estimator,
            parameters=parameters,
            classes_=classes,
            learner=learner,
            training=table.training,
            calibration=calibration,
            fitted=header.fitted,
            columns=table.labels,
            options=table.options,
        )
    names = header.feature_names
    estimator.from_learner(learner, classes, n_iter=header.n_iter, feature_names=names)
    if header.calibrated is None:
        return estimator
    return _calibrated(header.calibrated, estimator, calibration)


def _calibrated(around: Calibrated, ranker: Any, calibration: Any) -> Any:
    """The `CalibratedOrdinal` around a fitted ranker."""
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    from ordspan.estimators.calibrated import CalibratedOrdinal

    names = {*CalibratedOrdinal._get_param_names()} - {"estimator"}
    parameters = _restored(around.parameters, names)
    if isinstance(parameters["coverages"], list):
        parameters["coverages"] = tuple(parameters["coverages"])  # JSON has lists only
    fitted = FrozenEstimator(ranker) if around.estimator == "frozen" else ranker
    given = {"default": None, "given": clone(ranker), "frozen": fitted}[around.estimator]
    return CalibratedOrdinal(given, **parameters).from_parts(fitted, calibration)


def _restored(stored: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    if stored.keys() != set(names):
        raise ValueError(f"unexpected parameters: {', '.join(stored)}")
    return {name: restored(value) for name, value in stored.items()}
