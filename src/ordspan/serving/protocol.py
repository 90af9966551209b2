"""The Open Inference Protocol, version 2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, HTTPException, Request, Response

import ordspan
from ordspan.files.batch import brief
from ordspan.files.features import Recipe
from ordspan.serving.engine import Engine
from ordspan.serving.models import COVERAGE, BatchPredictions, predict_batch
from ordspan.serving.offload import Offload
from ordspan.serving.records import MAX_ROWS, batch_of, check_strings, decoded, refusals
from ordspan.serving.responses import as_json
from ordspan.tabular import TabularModel

NUMBERS = {"BOOL", "FP16", "FP32", "FP64"} | {
    f"{u}INT{n}" for u in ("", "U") for n in (8, 16, 32, 64)
}
TEXT = "BYTES"
FEATURES = "features"
"""Name of the single tensor that a purely numeric model accepts instead of one per column."""


class Tensor(msgspec.Struct):
    """An input of a request."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class Wanted(msgspec.Struct):
    """A requested output."""

    name: str


class InferRequest(msgspec.Struct):
    """An inference request."""

    inputs: list[Tensor]
    outputs: list[Wanted] = []
    id: str | None = None


def check_name(name: str) -> None:
    """Refuse a model name that cannot be part of a URL."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(f"the name {name!r} cannot be part of a URL; use letters, digits, . _ -")


def add_protocol_routes(app: FastAPI, engine: Engine, name: str, offload: Offload) -> None:
    """Add the routes for health, metadata and inference."""
    check_name(name)

    @app.get("/v2")
    async def server() -> Response:
        """Server metadata."""
        return as_json({"name": "ordspan", "version": ordspan.__version__, "extensions": []})

    @app.get("/v2/health/live")
    async def live() -> Response:
        """Whether the server is running."""
        return as_json({"live": True})

    @app.get("/v2/health/ready")
    async def ready() -> Response:
        """Whether the server is ready to predict."""
        return as_json({"ready": True})

    @app.get(f"/v2/models/{name}/ready")
    async def model_ready() -> Response:
        """Whether the model is ready to predict."""
        return as_json({"name": name, "ready": True})

    @app.get(f"/v2/models/{name}")
    async def metadata() -> Response:
        """Input and output tensors of the model."""
        return as_json(model_metadata(engine.model, name))

    @app.post(f"/v2/models/{name}/infer")
    async def infer(request: Request) -> Response:
        """Predict from tensors: one per column, or all features in one."""

        def work(body: bytes) -> Response:
            asked = decoded(body, InferRequest)
            return as_json({"model_name": name} | inferred(engine.model, asked))

        return await offload(work, await request.body())


def inferred(model: TabularModel, asked: InferRequest) -> dict[str, Any]:
    """The requested outputs, or all if none is named."""
    rows = rows_of(model.recipe, asked.inputs)
    check_strings(model.recipe, rows)
    batch = batch_of(model.recipe, rows)
    with refusals():
        outputs = {tensor["name"]: tensor for tensor in tensors(model, predict_batch(model, batch))}
    wanted = [output.name for output in asked.outputs] or list(outputs)
    if unknown := [name for name in wanted if name not in outputs]:
        raise HTTPException(400, f"unknown output {brief(unknown[0])}; choose from {list(outputs)}")
    found = {"outputs": [outputs[name] for name in dict.fromkeys(wanted)]}
    return found | ({} if asked.id is None else {"id": asked.id})


def model_metadata(model: TabularModel, name: str) -> dict[str, Any]:
    """Model metadata as the protocol defines it."""
    recipe = model.recipe
    inputs = [
        {"name": column, "datatype": "FP64" if column in recipe.numbers else TEXT, "shape": [-1]}
        for column in recipe.columns
    ]
    if recipe.n_sparse:
        inputs = [{"name": FEATURES, "datatype": "FP64", "shape": [-1, recipe.n_sparse]}]
    n_classes = len(model.classes_)
    outputs = [
        {"name": "grade", "datatype": _datatype(model), "shape": [-1]},
        {"name": "rank", "datatype": "INT64", "shape": [-1]},
        {"name": "score", "datatype": "FP64", "shape": [-1]},
    ]
    if model.calibration is not None:
        outputs += [
            {"name": "lower", "datatype": _datatype(model), "shape": [-1]},
            {"name": "upper", "datatype": _datatype(model), "shape": [-1]},
            {"name": "probabilities", "datatype": "FP64", "shape": [-1, n_classes]},
        ]
    return {
        "name": name,
        "versions": [],
        "platform": "ordspan",
        "inputs": inputs,
        "outputs": outputs,
        "parameters": {"grades": model.classes_.tolist(), "coverage": COVERAGE},
    }


def _datatype(model: TabularModel) -> str:
    return {"i": "INT64", "u": "INT64", "f": "FP64", "b": "BOOL"}.get(
        model.classes_.dtype.kind, TEXT
    )


def rows_of(recipe: Recipe, tensors: Sequence[Tensor]) -> list[list[Any]]:
    """The values of every row, in the order of the columns."""
    if len(tensors) == 1 and len(tensors[0].shape) == 2 and not recipe.texts:
        return _matrix_rows(recipe, tensors[0])
    if recipe.n_sparse:
        raise HTTPException(400, f"give one tensor of shape [rows, {recipe.n_sparse}]")
    named = {tensor.name: tensor for tensor in tensors}
    if len(named) < len(tensors) or named.keys() != set(recipe.columns):
        odd = sorted(named.keys() ^ set(recipe.columns)) or ["a duplicate name"]
        raise HTTPException(400, f"give one tensor for each column of the model; see {odd[0]!r}")
    columns = [_flat_values(named[name]) for name in recipe.columns]
    _check_row_count(max(map(len, columns)))
    if len(set(map(len, columns))) > 1 or not columns[0]:
        raise HTTPException(400, "all tensors must have the same number of rows, at least one")
    return [list(row) for row in zip(*columns, strict=True)]


def _matrix_rows(recipe: Recipe, tensor: Tensor) -> list[list[Any]]:
    width = recipe.n_sparse or len(recipe.numbers)
    cells = _flat_values(tensor)
    if tensor.shape[1] != width or not cells:
        raise HTTPException(400, f"tensor {tensor.name!r} must have shape [rows, {width}]")
    _check_row_count(len(cells) // width)
    rows = [cells[begin : begin + width] for begin in range(0, len(cells), width)]
    if recipe.n_sparse:
        return [[[at, value] for at, value in enumerate(row) if value] for row in rows]
    return rows


def _check_row_count(n_rows: int) -> None:
    if n_rows > MAX_ROWS:
        raise HTTPException(413, f"{n_rows:,} rows in one request; send at most {MAX_ROWS:,}")


def _flat_values(tensor: Tensor) -> list[Any]:
    """The data of a tensor, which may be nested, checked against its shape."""
    if tensor.datatype not in NUMBERS and tensor.datatype != TEXT:
        raise HTTPException(400, f"tensor {tensor.name!r} has unknown datatype {tensor.datatype!r}")
    if not 1 <= len(tensor.shape) <= 2:
        raise HTTPException(400, f"tensor {brief(tensor.name)} must have one or two dimensions")
    cells = tensor.data
    for _ in tensor.shape[1:]:
        if cells and all(isinstance(part, list) for part in cells):
            cells = [cell for part in cells for cell in part]
    size = 1
    for length in tensor.shape:
        size *= length
    if size != len(cells) or any(length < 0 for length in tensor.shape):
        raise HTTPException(
            400, f"tensor {tensor.name!r} has {len(cells)} values, but shape {tensor.shape}"
        )
    return cells


def tensors(model: TabularModel, predicted: BatchPredictions) -> list[dict[str, Any]]:
    """Predictions as output tensors."""

    def tensor(name: str, values: Any, datatype: str) -> dict[str, Any]:
        shape, data = list(values.shape), values.ravel().tolist()
        return {"name": name, "datatype": datatype, "shape": shape, "data": data}

    classes, kind = model.classes_, _datatype(model)
    found = [
        tensor("grade", classes[predicted.rank - 1], kind),
        tensor("rank", predicted.rank, "INT64"),
        tensor("score", predicted.score, "FP64"),
    ]
    if model.calibration is not None and predicted.low is not None and predicted.high is not None:
        found += [
            tensor("lower", classes[predicted.low - 1], kind),
            tensor("upper", classes[predicted.high - 1], kind),
            tensor("probabilities", model.calibration.probabilities(predicted.score), "FP64"),
        ]
    return found
