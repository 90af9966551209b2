"""Describe a transformer and those nested in it as a tree of JSON nodes, with tensors apart."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ordspan.header import Node, Steps
from ordspan.pipelines.table import KNOWN, TRANSFORMERS
from ordspan.pipelines.values import INSIDE, encode_value

Tensors = dict[str, NDArray[Any]]
REFUSAL = "cannot save the step"


def describe_step(step: Any, path: str, tensors: Tensors) -> Node:
    """The node of a transformer; its arrays are added to the tensors under its path.

    Raises
    ------
    TypeError
        If a file cannot store it or a part of it; the path names the step.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    try:
        if type(step) is Pipeline:
            return describe_steps(step, step.steps, path, tensors)
        if type(step) is ColumnTransformer:
            return _describe_columns(step, path, tensors)
        return _describe_one(step, path, tensors)
    except TypeError as error:
        if str(error).startswith(REFUSAL):  # raised for a nested step, with a longer path
            raise
        name = path.removeprefix(f"{INSIDE}.")
        raise TypeError(f"{REFUSAL} {name!r} of the pipeline: {error}") from None


def _describe_one(step: Any, path: str, tensors: Tensors) -> Node:
    name = type(step).__name__
    entry = TRANSFORMERS.get(name)
    if entry is None or entry.find(name) is not type(step):
        raise TypeError(
            f"model files cannot store a {name}, only {', '.join(KNOWN)}; "
            "save the last step alone, and store the transformers in another way"
        )
    if any(getattr(step, name, None) is not None for name in ("min_frequency", "max_categories")):
        raise TypeError(
            "it groups infrequent categories; leave out min_frequency and max_categories, or list "
            "the frequent ones in categories= with handle_unknown='ignore'"
        )
    learned = {k: v for k, v in vars(step).items() if k in {*entry.fitted, *entry.inside}}
    fitted: dict[str, Any] = {}
    inside: list[Any] = []
    for attribute, value in learned.items():
        if attribute in entry.inside:
            if value is not None:
                inside.append((attribute, describe_step(value, f"{path}.{attribute}", tensors)))
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            transposed = value.flags.f_contiguous and not value.flags.c_contiguous
            tensors[f"{path}.{attribute}"] = np.ascontiguousarray(value.T if transposed else value)
            fitted[attribute] = {"tensor": "F" if transposed else "C"}
        elif hasattr(value, "toarray"):
            raise TypeError(
                f"its {attribute} are sparse rows; give it dense ones, for example by "
                "sparse_output=False of a OneHotEncoder or sparse_threshold=0 of a "
                "ColumnTransformer"
            )
        else:
            fitted[attribute] = _encoded(attribute, value)
    given = step.get_params(deep=False)
    node = _node(step, {*given, *learned, *entry.derived}, fitted, inside)
    node.parameters = {k: _encoded(k, v) for k, v in given.items()}
    return node


def _encoded(name: str, value: Any) -> Any:
    try:
        return encode_value(value)
    except TypeError as error:
        raise TypeError(f"its {name} is {error}") from None


def _node(step: Any, known: set[str], fitted: dict[str, Any], inside: list[Any]) -> Node:
    """The common attributes of a transformer; unknown ones are refused."""
    own = vars(step)
    usual = {"n_features_in_", "feature_names_in_", "_sklearn_output_config"}
    if unknown := sorted(own.keys() - known - usual):
        import sklearn

        raise TypeError(
            f"in scikit-learn {sklearn.__version__} it has {', '.join(unknown)}, which this "
            "ordspan does not know; upgrade ordspan"
        )
    names = own.get("feature_names_in_")
    return Node(
        type(step).__name__,
        {},
        fitted,
        own.get("n_features_in_"),
        None if names is None else names.tolist(),
        own.get("_sklearn_output_config", {}).get("transform"),
        inside,
    )


def describe_steps(pipeline: Any, steps: list[Any], path: str, tensors: Tensors) -> Node:
    """The node of a pipeline of some of its steps."""
    if pipeline.memory is not None:
        raise TypeError(
            f"memory={pipeline.memory!r} of a Pipeline is a cache on this machine; call "
            "set_params(memory=None) before save"
        )
    known = {*pipeline.get_params(deep=False)}
    node = _node(pipeline, known, {}, [])
    rest = known - {"steps", "memory"}
    node.parameters = {name: _encoded(name, getattr(pipeline, name)) for name in sorted(rest)}
    for name, step in steps:
        at = f"{path}.{name}" if path else name
        word = step is None or isinstance(step, str)
        node.inside.append((name, "passthrough" if word else describe_step(step, at, tensors)))
    return node


def _describe_columns(step: Any, path: str, tensors: Tensors) -> Node:
    """The node of a ColumnTransformer; a column selector is replaced by the selected columns."""
    derived = {"_columns", "_transformer_to_input_indices", "_remainder"}
    derived |= {"transformers_", "sparse_output_", "output_indices_"}
    if not hasattr(step, "transformers_"):
        raise TypeError("it is not fitted")
    given = step.get_params(deep=False)
    node = _node(step, {*given, *derived, "_transformers_feature_names_out"}, {}, [])
    children = {name: child for name, child, _ in step.transformers_}
    if len(children) < len(step.transformers_):
        raise TypeError("two of its transformers have the same name")
    described = [
        [name, child if isinstance(child, str) else None, _plain_columns(columns)]
        for (name, child, _), (_, _, columns) in zip(
            step.transformers, step.transformers_, strict=False
        )
    ]
    remainder = given.pop("remainder")
    if not isinstance(remainder, str):
        children.setdefault("remainder", remainder)
    del given["transformers"]
    node.parameters = {k: _encoded(k, v) for k, v in given.items()}
    node.parameters["remainder"] = remainder if isinstance(remainder, str) else None
    node.parameters["transformers"] = _encoded("columns", described)
    for name, child in children.items():
        held: Any = (
            child if isinstance(child, str) else describe_step(child, f"{path}.{name}", tensors)
        )
        node.inside.append((name, held))
    widths = {name: [part.start, part.stop] for name, part in step.output_indices_.items()}
    node.fitted = {"sparse_output": bool(step.sparse_output_), "output_indices": widths}
    return node


def _plain_columns(columns: Any) -> Any:
    """Columns as given, or as a list if they are an index of another library."""
    other = hasattr(columns, "tolist") and not isinstance(columns, np.ndarray | np.generic)
    return columns.tolist() if other else columns


def describe_pipeline(pipeline: Any, path: str, tensors: Tensors) -> Any:
    """Description of a pipeline without its last step."""
    before = describe_steps(pipeline, pipeline.steps[:-1], path, tensors)
    return msgspec.to_builtins(Steps(before, pipeline.steps[-1][0]))
