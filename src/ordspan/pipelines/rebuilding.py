"""Rebuild transformers from the nodes of a file; every value is validated before use."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import numpy as np

from ordspan.header import Node, Steps
from ordspan.pipelines.describing import Tensors
from ordspan.pipelines.table import TRANSFORMERS, refuse_other_names
from ordspan.pipelines.values import SizeBudget, decode_value

PLACEHOLDERS = ("drop", "passthrough")
BYTES_PER_COLUMN = 256
"""Approximate memory of a ColumnTransformer per column, in bytes."""


def rebuild_step(node: Node, path: str, tensors: Tensors, budget: SizeBudget) -> Any:
    """Rebuild the transformer of a node; its tensors are consumed."""
    if node.kind == "Pipeline":
        return rebuild_steps(node, path, tensors, budget)
    if node.kind == "ColumnTransformer":
        return _rebuild_columns(node, path, tensors, budget)
    entry = TRANSFORMERS[node.kind]
    step = entry.find(node.kind)(**_parameters(node, budget))
    step._validate_params()
    if node.n_features is None:
        return _with_names(step, node)
    sizes = {"d": node.n_features}
    if node.fitted.keys() != entry.fitted.keys():
        raise ValueError(f"a {node.kind} with {', '.join(node.fitted)}")
    for attribute, check in entry.fitted.items():
        at, stored = f"{path}.{attribute}", node.fitted[attribute]
        if isinstance(stored, dict) and "tensor" in stored:
            value = tensors.pop(at).copy()
            value = value.T if stored["tensor"] == "F" else value
        else:
            value = decode_value(stored, budget)
        if not check(value, sizes):
            raise ValueError(f"{at} does not fit a {node.kind} of {node.n_features:,} features")
        setattr(step, attribute, value)
    held: dict[str, Any] = dict(node.inside)
    for attribute in entry.inside:
        child = held.get(attribute)
        found = rebuild_step(child, f"{path}.{attribute}", tensors, budget) if child else None
        setattr(step, attribute, found)
    _with_names(step, node)
    entry.derive(step)
    return step


def _parameters(node: Node, budget: SizeBudget) -> dict[str, Any]:
    given = {name: decode_value(value, budget) for name, value in node.parameters.items()}
    jobs = given.get("n_jobs")
    if isinstance(jobs, int) and abs(jobs) > (os.cpu_count() or 1):
        given["n_jobs"] = -1  # as many as this machine has
    return given


def _with_names(step: Any, node: Node) -> Any:
    if node.output is not None:
        step.set_output(transform=node.output)
    if node.n_features is not None:
        step.n_features_in_ = node.n_features
    if node.feature_names is not None:
        if len(node.feature_names) != node.n_features:
            raise ValueError(f"{len(node.feature_names)} names for {node.n_features} features")
        step.feature_names_in_ = np.array(node.feature_names, dtype=object)
    return step


def rebuild_steps(node: Node, path: str, tensors: Tensors, budget: SizeBudget) -> Any:
    """The pipeline of a node."""
    from sklearn.pipeline import Pipeline

    steps: list[tuple[str, Any]] = []
    for name, child in node.inside:
        at = f"{path}.{name}" if path else name
        steps.append((name, _child(child, at, tensors, budget)))
    if len(dict(steps)) < len(steps):
        raise ValueError("two steps with the same name")
    pipeline = Pipeline(steps, **_parameters(node, budget))
    pipeline._validate_params()
    return pipeline


def rebuild_pipeline(
    steps: Steps, model: Any, path: str, tensors: Tensors, budget: SizeBudget
) -> Any:
    """The pipeline around a model."""
    pipeline = rebuild_steps(steps.before, path, tensors, budget)
    pipeline.steps.append((steps.last, model))
    return pipeline


def _child(child: Any, path: str, tensors: Tensors, budget: SizeBudget) -> Any:
    return child if isinstance(child, str) else rebuild_step(child, path, tensors, budget)


def _rebuild_columns(node: Node, path: str, tensors: Tensors, budget: SizeBudget) -> Any:
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer

    n_features = node.n_features or 0
    budget.take(BYTES_PER_COLUMN * n_features)
    given = _parameters(node, budget)
    stored, remainder = given.pop("transformers"), given.pop("remainder")
    refuse_other_names(given.get("verbose_feature_names_out"))
    children = {
        name: _child(child, f"{path}.{name}", tensors, budget) for name, child in node.inside
    }

    def unfitted(name: str, word: Any) -> Any:
        if word not in (*PLACEHOLDERS, None):
            raise ValueError(f"{word!r} is no transformer")
        return clone(children[name]) if word is None else word

    transformers = [(name, unfitted(name, word), columns) for name, word, columns in stored]
    step = ColumnTransformer(transformers, remainder=unfitted("remainder", remainder), **given)
    step._validate_params()
    step._validate_transformers()
    _with_names(step, node)
    step._columns = [columns for _, _, columns in transformers]
    numbers = {}
    for name, _, columns in transformers:
        numbers[name] = column_numbers(columns, n_features, node.feature_names)
        budget.take(BYTES_PER_COLUMN * len(numbers[name]))
    step._transformer_to_input_indices = numbers
    step._validate_remainder(None)
    parts = [(name, columns) for name, _, columns in transformers]
    parts += [("remainder", step._remainder[2])] if step._remainder[2] else []
    step.transformers_ = [(name, children[name], columns) for name, columns in parts]
    for name, child, _ in step.transformers_:
        if isinstance(child, str) and child != "drop" and numbers[name]:
            raise ValueError(f"{path}.{name} is not fitted")
    step.sparse_output_ = msgspec.convert(node.fitted["sparse_output"], bool)
    widths = msgspec.convert(node.fitted["output_indices"], dict[str, tuple[int, int]])
    step.output_indices_ = {name: slice(*ends) for name, ends in widths.items()}
    return step


def column_numbers(columns: Any, n_features: int, names: list[str] | None) -> list[int]:
    """Indices of columns given in any form that scikit-learn accepts.

    >>> column_numbers(["b"], 2, ["a", "b"]), column_numbers(slice(1, None), 3, None)
    ([1], [1, 2])
    """
    if isinstance(columns, str):
        return [(names or []).index(columns)]
    if isinstance(columns, slice) and isinstance(columns.start or columns.stop, str):
        known = names or []
        start = 0 if columns.start is None else known.index(columns.start)
        stop = len(known) if columns.stop is None else known.index(columns.stop) + 1
        return list(range(start, stop)[:: columns.step])
    if isinstance(columns, slice):
        return list(range(n_features)[columns])
    chosen = list(columns) if isinstance(columns, list | tuple | np.ndarray) else [columns]
    if chosen and all(isinstance(name, str) for name in chosen):
        places = {name: number for number, name in enumerate(names or [])}
        return [places[name] for name in chosen]
    if not chosen:
        return []
    return np.arange(n_features)[np.asarray(chosen)].tolist()
