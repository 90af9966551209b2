"""Model files: one safetensors file with a JSON header; loading never runs code.

The file contains the state of the learner, a SHA-256 digest of all other bytes, and a JSON header
with the name, parameters and grades of the estimator; for a model trained from files also its
columns and their scale. Equal models give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

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
from ordspan.models.header import Calibrated, Header, Table, array_of, from_plain, plain
from ordspan.models.table import TableModel
from ordspan.tables.encoder import Encoder
from ordspan.tables.label_columns import LabelColumns

FORMAT_VERSION = 4
DIGEST_SIZE = hashlib.sha256().digest_size
MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""Errors raised for a malformed header."""
ROOM, ROOM_PER_BYTE = 1 << 24, 16
"""Memory limit for what a header describes: a constant, and a multiple of the file size."""

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
        The model cannot be saved: it is of another class, or has a function as a parameter. For a
        Pipeline, the message shows how to write it with skops.

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


def to_bytes(model: Any, **notes: Any) -> bytes:
    """The content of a model file; ``notes`` are plain values stored with the model."""
    tensors: Tensors = {"digest": np.zeros(DIGEST_SIZE, dtype=np.uint8)}
    if isinstance(model, TableModel):
        header, calibration = _table_header(model), model.calibration
        tensors |= {"state": model.learner.state, "scale": model.encoder.state}
    else:
        from ordspan.estimators.calibrated import CalibratedOrdinal

        ranker, calibration, around = model, None, dict[str, Any]()
        if type(model) is CalibratedOrdinal:
            ranker, around = _without_calibration(model)
            calibration = model.calibration_
        if _estimators().get(type(ranker).__name__) is not type(ranker):
            raise TypeError(_why_not_saved(model))
        header = estimator_header(ranker) | around
        tensors["state"] = ranker.learner_.state
    if calibration is not None:
        tensors["calibration"] = calibration.state
    text = json.dumps(header | notes, sort_keys=True, allow_nan=False)
    content = bytearray(save_tensors(tensors, metadata={"ordspan": text}))
    start = _digest_start(content)
    content[start : start + DIGEST_SIZE] = hashlib.sha256(content).digest()
    return bytes(content)


def _without_calibration(model: Any) -> tuple[Any, dict[str, Any]]:
    """The ranker inside a `CalibratedOrdinal`, and the header of what is around it."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils.validation import check_is_fitted

    from ordspan.estimators.calibrated import check_calibration_unchanged

    check_is_fitted(model)
    check_calibration_unchanged(model)
    given = model.get_params(deep=False)
    frozen = isinstance(model.estimator_, FrozenEstimator)
    estimator = "frozen" if frozen else "given"
    if given.pop("estimator") is None:
        estimator = "default"
    parameters = {name: plain(name, value) for name, value in given.items()}
    ranker = model.estimator_.estimator if frozen else model.estimator_
    return ranker, {"calibrated": {"parameters": parameters, "estimator": estimator}}


def _table_header(model: TableModel) -> dict[str, Any]:
    """The header of a model of tables."""
    return {
        "format": FORMAT_VERSION,
        "estimator": model.kind,
        "parameters": {k: plain(k, v) for k, v in model.parameters.items()},
        "classes": plain("classes_", model.classes_),
        "n_features": model.recipe.n_features,
        "feature_names": None,
        "n_iter": model.parameters["max_iter"],
        "fitted": model.fitted,
        "table": {
            "recipe": asdict(model.recipe),
            "labels": model.columns._asdict(),
            "options": asdict(model.options),
            "training": model.training,
        },
    }


def _table_model(header: Header, table: Table, tensors: Tensors, room: int) -> TableModel:
    """Build a model of tables from a header and tensors."""
    parameters = {k: from_plain(v, room) for k, v in header.parameters.items()}
    if parameters.keys() != stored_parameters(header.estimator):
        raise ValueError(
            f"a {header.estimator} does not have the parameters {', '.join(parameters)}"
        )
    if (header.n_features, header.n_iter) != (table.recipe.n_features, parameters["max_iter"]):
        raise ValueError("features or passes differ between its header and its table")
    classes = check_classes(array_of(header.classes, room))
    _check_width(header.n_features, room)
    learner = with_state(
        lambda *shape: make_learner(header.estimator, parameters, *shape),
        *(tensors["state"], header.n_features, classes.size),
    )
    return TableModel(
        encoder=Encoder(table.recipe, tensors["scale"]),
        kind=header.estimator,
        parameters=parameters,
        classes_=classes,
        learner=learner,
        training=table.training,
        calibration=_calibration(tensors, classes.size),
        fitted=dict(header.fitted),
        columns=LabelColumns(**table.labels),
        options=table.options,
    )


def _check_width(n_features: int, room: int) -> None:
    """Refuse more features than a file has room for; a kernel's state does not show them."""
    if n_features * np.float64().itemsize > room:
        raise ValueError(f"{n_features:,} features are too many for this file")


def _calibration(tensors: Tensors, n_classes: int) -> Calibration | None:
    """The calibration in a file, if any."""
    if "calibration" not in tensors:
        return None
    return Calibration.from_state(tensors["calibration"], n_classes)


def _estimators() -> dict[str, Any]:
    """Estimators by name that a file can hold, alone or calibrated; imports scikit-learn."""
    from ordspan import estimators

    return {name: getattr(estimators, name) for name in estimators.__all__}


def _why_not_saved(model: Any) -> str:
    """Why a model of a class that files do not know cannot be saved, and what to do instead."""
    from sklearn.pipeline import Pipeline

    from ordspan.estimators.steps import layers_of

    name, module = type(model).__name__, type(model).__module__
    if "river" in module.split("."):  # has an OrdinalPA, a PRank and a Pipeline too
        return f"cannot save {module.rpartition('.')[0]}.{name}, a River model; pickle it instead"
    if hasattr(model, "best_estimator_"):
        return f"cannot save a {name}; use its best_estimator_ instead"
    layers = layers_of(model)
    if any(isinstance(layer, Pipeline) for layer in layers):
        kinds = [type(layer) for layer in layers if type(layer).__module__.startswith("ordspan.")]
        trusted = [f"{kind.__module__}.{kind.__name__}" for kind in kinds]
        return (
            "cannot save a Pipeline, because its other steps are not ordspan's; write it with "
            f"skops.io.dump(model, path) and read it with skops.io.load(path, trusted={trusted}), "
            "with what skops.io.get_untrusted_types(file=path) names besides, if you trust it"
        )
    return f"cannot save a {name}; save takes {', '.join(sorted(_estimators()))}, also calibrated"


def estimator_header(model: Any) -> dict[str, Any]:
    """The header of an estimator."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    model.check_settings_unchanged()
    names = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT_VERSION,
        "estimator": type(model).__name__,
        "parameters": {k: plain(k, v) for k, v in model.get_params(deep=False).items()},
        "classes": plain("classes_", model.classes_),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "n_iter": int(model.n_iter_),
        "fitted": {name: getattr(model, name) for name in model._fitted_numbers},
    }


def from_bytes(content: bytes, name: str) -> Any:
    """The model in a file."""
    return model_of(content, checked_header(content, name), name)


def model_of(content: bytes, header: Header, name: str) -> Any:
    """The model in a file; raises if ordspan cannot have written it."""
    room = ROOM + ROOM_PER_BYTE * len(content)
    try:
        tensors = load_tensors(content)
        needed = {"digest", "state"} | ({"scale"} if header.table else set())
        needed |= {"calibration"} if header.calibrated else set()
        if tensors.keys() - ({"calibration"} if header.table else set()) != needed:
            raise ValueError(f"unexpected tensors: {', '.join(tensors)}")
        if header.table is not None:
            return _table_model(header, header.table, tensors, room)
        ranker = _estimator(header, tensors["state"], room)
        if header.calibrated is None:
            return ranker
        calibration = _calibration(tensors, ranker.classes_.size)
        return _calibrated(header.calibrated, ranker, calibration, room)
    except (*MALFORMED, SafetensorError) as error:
        raise _not_a_model_error(name, error) from None


def _not_a_model_error(name: str, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"{name} is not a model written by ordspan ({error}); write it again with "
        "ordspan.save or ordspan train"
    )


def _estimator(header: Header, state: NDArray[Any], room: int) -> Any:
    """Build an estimator from a header and the state of its learner."""
    known = _estimators()
    if header.estimator not in known:
        raise ValueError(f"unknown estimator {header.estimator!r}")
    parameters = {k: from_plain(v, room) for k, v in header.parameters.items()}
    model = known[header.estimator](**parameters)
    classes = check_classes(array_of(header.classes, room))
    names = header.feature_names
    if names is not None and len(names) != header.n_features:
        raise ValueError(f"{len(names)} names for {header.n_features} features")
    fitted = {name: header.fitted[name] for name in model._fitted_numbers}
    vars(model).update(fitted)  # needed by some learners
    _check_width(header.n_features, room)
    learner = with_state(model._make_learner, state, header.n_features, classes.size)
    return model.from_learner(learner, classes, n_iter=header.n_iter, feature_names=names)


def _calibrated(around: Calibrated, ranker: Any, calibration: Any, room: int) -> Any:
    """The `CalibratedOrdinal` around a fitted ranker."""
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    from ordspan.estimators.calibrated import CalibratedOrdinal

    fitted = FrozenEstimator(ranker) if around.estimator == "frozen" else ranker
    given = {"default": None, "given": clone(ranker), "frozen": fitted}[around.estimator]
    parameters = {name: from_plain(value, room) for name, value in around.parameters.items()}
    if isinstance(parameters.get("coverages"), list):
        parameters["coverages"] = tuple(parameters["coverages"])  # JSON has lists only
    return CalibratedOrdinal(given, **parameters).from_parts(fitted, calibration)


def checked_header(content: bytes, name: str) -> Header:
    """Read the header; raises if the format is unknown or the checksum is wrong."""
    try:
        start = _digest_start(content)
        text = _raw_header(content)["__metadata__"]["ordspan"]
    except MALFORMED:
        raise ModelFileError(
            f"{name} is not an ordspan model file, or it is damaged or truncated; "
            "write it again with ordspan.save or ordspan train"
        ) from None
    blank = bytearray(content)
    blank[start : start + DIGEST_SIZE] = bytes(DIGEST_SIZE)
    if content[start : start + DIGEST_SIZE] != hashlib.sha256(blank).digest():
        raise ModelFileError(
            f"{name} is damaged: its checksum does not match its content; write it again"
        )
    try:
        parsed = json.loads(text)
        version = msgspec.convert(parsed["format"], int)
        header = msgspec.convert(parsed, Header) if version == FORMAT_VERSION else None
    except MALFORMED as error:
        raise _not_a_model_error(name, error) from None
    if header is None:
        raise ModelFileError(
            f"{name} has model format {version}, but this ordspan reads only {FORMAT_VERSION}: it "
            "was written by another version of ordspan; train the model again"
        )
    return header


def _raw_header(content: bytes | bytearray) -> dict[str, Any]:
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > len(content) - 8:
        raise ValueError("truncated")
    return json.loads(bytes(content[8 : 8 + size]))


def _digest_start(content: bytes | bytearray) -> int:
    offsets = _raw_header(content)["digest"]["data_offsets"]
    start = 8 + int.from_bytes(content[:8], "little") + int(offsets[0])
    if offsets[1] - offsets[0] != DIGEST_SIZE or start + DIGEST_SIZE > len(content):
        raise ValueError("no digest")
    return start
