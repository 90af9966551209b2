"""A model as an ONNX graph of standard operators, from raw numbers and words to the grade."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import ordspan
from ordspan.commands.jobs import ExportJob
from ordspan.commands.models import ranker_and_calibration, read_model
from ordspan.commands.outputs import check_output, report_full_disk
from ordspan.core import calibration as calibration_parts
from ordspan.core import scaling as scaling_parts
from ordspan.learners import Calibration
from ordspan.models.atomic import write_atomically
from ordspan.models.table import TableModel
from ordspan.wording import hint

ENDING = ".onnx"
OPSET, IR_VERSION = 13, 7
ML, ML_OPSET = "ai.onnx.ml", 2
"""As old as the operators allow, so that runtimes since 2020 (onnxruntime 1.6) load the graph."""
ABOUT = (
    "X holds the features in the order of the property ordspan.features; where "
    "ordspan.standardised is true they are raw, and standardised in the graph. rank is 1 + the "
    "number of thresholds that the score reaches (without thresholds: the rank with the highest "
    "score; with probabilities: their median), prediction is the grade of that rank. Everything "
    "is computed in float64. A missing number of a table is NaN in X, and becomes the mean; words "
    "holds the columns of the property ordspan.words, as text, with an empty string for a missing "
    "value; values that are not listed there are ignored. Unlike ordspan, the graph does not "
    "reject NaN that is not filled in. A calibrated model also has probabilities, one column per "
    "grade, and lower and upper, the ends of the prediction ranges, one column per coverage of "
    "the property ordspan.coverages."
)

Floats = NDArray[np.float64]


class Graph:
    """Nodes and constants so far."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *values: Any, result: str = "", **attributes: Any) -> str:
        """Add an operator on results, by name, and constants; returns the name of its result."""
        names = [value if isinstance(value, str) else self._constant(value) for value in values]
        name = result or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [name], name=name, **attributes))
        return name

    def _constant(self, values: Any) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def count(self, conditions: str) -> str:
        """Count the true conditions along the last axis."""
        ones = self.add("Cast", conditions, to=TensorProto.INT64)
        return self.add("ReduceSum", ones, [-1], keepdims=0)


@dataclass(frozen=True)
class Exported:
    """Everything a graph is built from.

    Parameters
    ----------
    weights : array of shape (d,), or (K, d)
        Weights of the score, or one vector per grade.
    thresholds : array of shape (K - 1,), optional
        Between the grades; None if the vector with the highest score wins.
    classes : array of shape (K,)
        The grades from lowest to highest.
    features : sequence of str, optional
        Names of the columns of X, if they have names.
    centre, factor : array of shape (n_numbers,), optional
        A number becomes (value - centre) * factor; None if numbers are not scaled.
    fill : array of shape (n_numbers,), optional
        What a missing number is replaced by; None if NaN is kept.
    gaps : tuple of int
        Columns of X with an extra feature that marks a missing number.
    words : tuple of (str, tuple of str)
        Columns of the input ``words``, and the known values of each.
    calibration : Calibration, optional
        Turns scores into probabilities and ranges; None if the graph has neither.
    """

    weights: Floats
    thresholds: Floats | None
    classes: NDArray[Any]
    features: list[str] | None = None
    centre: Floats | None = None
    factor: Floats | None = None
    fill: Floats | None = None
    gaps: tuple[int, ...] = ()
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    calibration: Calibration | None = None

    @property
    def n_numbers(self) -> int:
        """Number of columns of X."""
        n_words = sum(len(words) for _, words in self.words)
        return int(self.weights.shape[-1]) - len(self.gaps) - n_words

    @property
    def coverages(self) -> list[float]:
        """The coverages of the ranges in the graph; none without calibration."""
        return [] if self.calibration is None else self.calibration.coverages.tolist()


def export(job: ExportJob) -> dict[str, Any]:
    """Write a model as an ONNX graph that predicts as ``ordspan predict`` does.

    The graph computes in float64, so that a float32 graph gives the same ranks as ordspan for the
    same float32 values. The file appears only when it is complete.

    Returns
    -------
    dict
        A summary in plain values.
    """
    path = check_output(job.out, (ENDING,), [job.model], "a graph", is_graph, job.overwrite)
    numbers = exported(read_model(job.model)[1], job.model)
    content = to_onnx(numbers, job.dtype).SerializeToString()
    with report_full_disk(job.out):
        write_atomically(path, content)
    return {
        "out": job.out,
        "model": job.model,
        "dtype": job.dtype,
        "features": int(numbers.weights.shape[-1]),
        "inputs": ["X"] * bool(numbers.n_numbers) + ["words"] * bool(numbers.words),
        "classes": numbers.classes.tolist(),
        "coverages": numbers.coverages,
        "opset": OPSET,
        "bytes": len(content),
    }


def is_graph(path: Path) -> bool:
    """Whether ordspan wrote a file as a graph."""
    try:
        return bool(onnx.load(path, load_external_data=False).producer_name == "ordspan")
    except DecodeError:
        return False


def exported(model: Any, path: str) -> Exported:
    """Collect the numbers of a model; raises if no standard operator can compute it."""
    estimator, calibration = ranker_and_calibration(model)
    weights = getattr(estimator, "coef_", None)
    if weights is None:
        raise ValueError(
            f"{path} holds an estimator ({type(estimator).__name__}) without feature "
            "weights: kernel models cannot be exported; predict with ordspan itself, or train a "
            "linear model, such as OrdinalPA"
        )
    names = getattr(estimator, "feature_names_in_", None)
    features = None if names is None else names.tolist()
    basic = (weights, getattr(estimator, "thresholds_", None), estimator.classes_)
    if not isinstance(model, TableModel):
        return Exported(*basic, features, calibration=calibration)
    recipe = model.recipe
    if hashed := (*recipe.hashed, *dict(recipe.sentences)):
        columns = ", ".join(hashed)
        raise ValueError(
            f"{path} hashes the words of {columns}, which no standard ONNX operator does; "
            "train without these columns, or predict with ordspan itself"
        )
    if model.options.na:
        raise ValueError(
            f"{path} reads {', '.join(model.options.na)} as no answer, which a graph cannot "
            f"do; empty these cells and train without {hint('na=', '--na')}, or predict with "
            "ordspan itself"
        )
    features = list(recipe.numbers) or [recipe.feature_name(j) for j in range(recipe.n_sparse)]
    fill = None
    if recipe.numbers and recipe.missing == "mean":
        fill = model.encoder.state[scaling_parts.MEAN].copy()
    gaps = tuple(recipe.numbers.index(name) for name in recipe.missing_indicators)
    centre, factor = model.centre_and_factor() or (None, None)
    return Exported(*basic, features, centre, factor, fill, gaps, recipe.words, calibration)


def to_onnx(numbers: Exported, dtype: str) -> Any:
    """The checked graph, from X (n, d) and perhaps words to rank (n,), prediction (n,) and score.

    The score is (n,), or (n, K) for a model with one weight vector per grade. A calibrated model
    also gives probabilities (n, K), and lower and upper, (n, number of coverages).
    """
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = Graph()
    _compute(graph, numbers, element)
    info = helper.make_tensor_value_info
    grades = helper.np_dtype_to_tensor_dtype(_plain_classes(numbers.classes).dtype)
    each = [] if numbers.thresholds is not None else [numbers.classes.size]
    outputs = [
        info("rank", TensorProto.INT64, ["n"]),
        info("prediction", grades, ["n"]),
        info("score", element, ["n", *each]),
    ]
    if numbers.calibration is not None:
        outputs.append(info("probabilities", element, ["n", numbers.classes.size]))
        ends: list[Any] = ["n", len(numbers.coverages)]
        outputs += [info("lower", grades, ends), info("upper", grades, ends)]
    inputs = [info("X", element, ["n", numbers.n_numbers])] if numbers.n_numbers else []
    if numbers.words:
        inputs.append(info("words", TensorProto.STRING, ["n", len(numbers.words)]))
    opsets = [helper.make_opsetid("", OPSET)]
    opsets += [helper.make_opsetid(ML, ML_OPSET)] if numbers.words else []
    model = helper.make_model(
        helper.make_graph(graph.nodes, "ordspan", inputs, outputs, graph.constants),
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="ordspan",
        producer_version=ordspan.__version__,
        doc_string=ABOUT,
    )
    properties = {
        "version": ordspan.__version__,
        "features": numbers.features,
        "classes": numbers.classes.tolist(),
        "thresholds": None if numbers.thresholds is None else numbers.thresholds.tolist(),
        "standardised": numbers.centre is not None,
        "words": [[name, list(words)] for name, words in numbers.words],
        "coverages": numbers.coverages,
    }
    helper.set_model_props(model, {f"ordspan.{k}": json.dumps(v) for k, v in properties.items()})
    onnx.checker.check_model(model, full_check=True)
    return model


def _compute(graph: Graph, numbers: Exported, element: int) -> None:
    """Add the nodes from X to all outputs."""
    weights = np.ascontiguousarray(np.atleast_2d(numbers.weights).T)  # a column for each score
    terms = _terms(graph, numbers, weights)
    score = terms[0]
    for term in terms[1:]:
        score = graph.add("Add", score, term)
    classes, calibration = _plain_classes(numbers.classes), numbers.calibration
    if calibration is not None:
        # how far every cut lies above a score, (n, K - 1), in log-odds
        away = graph.add("Sub", calibration.cuts, graph.add("Mul", score, calibration.slope))
        index = graph.count(graph.add("Less", away, 0.0))
        chances = _probabilities(graph, away, calibration)
        graph.add("Cast", chances, to=element, result="probabilities")
        lower, upper = _range_ends(graph, score, index, calibration)
        graph.add("Gather", classes, lower, result="lower")
        graph.add("Gather", classes, upper, result="upper")
    elif numbers.thresholds is None:
        index = graph.add("ArgMax", score, axis=1, keepdims=0)
    else:
        index = graph.count(graph.add("GreaterOrEqual", score, numbers.thresholds))
    if numbers.thresholds is not None:
        score = graph.add("Squeeze", score, [1])
    graph.add("Add", index, 1, result="rank")
    graph.add("Gather", classes, index, result="prediction")
    graph.add("Cast", score, to=element, result="score")


def _terms(graph: Graph, numbers: Exported, weights: Floats) -> list[str]:
    """Contributions of numbers, gaps and words to the score, each (n, 1)."""
    terms, at = [], numbers.n_numbers
    if at:
        terms.append(graph.add("MatMul", _prepared(graph, numbers), weights[:at]))
    if numbers.gaps:
        missing = graph.add("Cast", graph.add("IsNaN", "X"), to=TensorProto.DOUBLE)
        marks = graph.add("Gather", missing, numbers.gaps, axis=1)
        terms.append(graph.add("MatMul", marks, weights[at : at + len(numbers.gaps)]))
        at += len(numbers.gaps)
    for place, (_, words) in enumerate(numbers.words):
        index = graph.add(
            "LabelEncoder",
            graph.add("Gather", "words", [place], axis=1),
            domain=ML,
            keys_strings=list(words),
            values_int64s=list(range(len(words))),
            default_int64=len(words),
        )
        # an unknown word adds nothing
        terms.append(graph.add("Gather", np.append(weights[at : at + len(words), 0], 0.0), index))
        at += len(words)
    return terms


def _prepared(graph: Graph, numbers: Exported) -> str:
    """X in float64, centred and scaled step by step, as in ordspan.

    Folding the centre into the weights would save two operators but lose digits if the mean is
    large compared to the spread.
    """
    value = graph.add("Cast", "X", to=TensorProto.DOUBLE)
    if numbers.fill is not None:
        value = graph.add("Where", graph.add("IsNaN", "X"), numbers.fill, value)
    if numbers.centre is None:
        return value
    if numbers.centre.any():
        value = graph.add("Sub", value, numbers.centre)
    return graph.add("Mul", value, numbers.factor)


def _probabilities(graph: Graph, away: str, calibration: Calibration) -> str:
    """Probability of every grade, (n, K), as a product.

    Differences of sigmoids would lose digits, and could be negative.
    """
    certain = 1.0  # beyond the outer cuts, to the right of the last and to the left of the first
    at_most = graph.add("Pad", graph.add("Sigmoid", away), [0, 0, 0, 1], certain)
    at_least = graph.add("Sigmoid", graph.add("Neg", away))
    at_least = graph.add("Pad", at_least, [0, 1, 0, 0], certain)
    gaps = np.diff(calibration.cuts, prepend=-np.inf, append=np.inf)
    return graph.add("Mul", graph.add("Mul", at_most, at_least), -np.expm1(-gaps))


def _range_ends(graph: Graph, score: str, index: str, calibration: Calibration) -> tuple[str, str]:
    """First and last index of the range of every coverage, each (n, number of coverages)."""
    parts = calibration_parts.parts_view.py_func(calibration.state)
    scaled = graph.add("Mul", score, parts.head[[calibration_parts.UNIT]])
    away = graph.add("Sub", parts.bands[1:-1], scaled)
    away = graph.add("Unsqueeze", away, [1])  # (n, 1, K - 1), to compare with every reach
    reach = calibration.reach[:, np.newaxis]
    first = graph.count(graph.add("Less", away, -reach))
    last = graph.count(graph.add("LessOrEqual", away, reach))
    index = graph.add("Unsqueeze", index, [1])
    return graph.add("Min", first, index), graph.add("Max", last, index)


def _plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """Grades in the widest type of their kind: whole numbers, numbers or words."""
    widest = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
    kind = classes.dtype.kind
    return classes.astype(widest[kind]) if kind in widest else classes.astype(str).astype(object)
