"""A model as an ONNX graph of standard operators, from raw numbers and words to the grade."""

import json
from functools import partial, reduce
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ordspan
from ordspan.commands.jobs import ExportJob
from ordspan.commands.models import ranker_and_calibration, read_model
from ordspan.commands.outputs import GRAPH, check_output
from ordspan.core import calibration as calibration_parts
from ordspan.core import scaling as scaling_parts
from ordspan.core.state import Floats
from ordspan.learners import Calibration
from ordspan.models.atomic import write_atomically
from ordspan.models.file import Header
from ordspan.models.table import TableModel
from ordspan.tables.encoder import Recipe

OPSET, IR_VERSION = 13, 7
ML, ML_OPSET = "ai.onnx.ml", 2
"""As old as the operators allow, so that runtimes since 2020 (onnxruntime 1.6) load the graph."""
ABOUT = (
    "X: the columns of the property ordspan.features, raw; NaN is a missing number. words: the "
    "columns of ordspan.words, as text; an empty string is a missing value, and values that are "
    "not listed there are ignored. rank: 1 is the lowest; prediction: the grade of that rank; "
    "score: the higher, the higher the grade. A calibrated model also has probabilities, one "
    "column per grade, and lower and upper, the ends of the ranges, one column per coverage of "
    "ordspan.coverages. Computed in float64; NaN that is not filled in is not refused."
)


class Graph:
    """Nodes, constants, inputs and outputs so far."""

    def __init__(self) -> None:
        self.proto = onnx.GraphProto(name="ordspan")

    def add(self, operator: str, *values: Any, result: str = "", **attributes: Any) -> str:
        """Add an operator on results, by name, and constants; returns the name of its result."""
        names = [value if isinstance(value, str) else self._constant(value) for value in values]
        name = result or f"{operator.lower()}{len(self.proto.node)}"
        self.proto.node.append(helper.make_node(operator, names, [name], name=name, **attributes))
        return name

    def _constant(self, values: Any) -> str:
        name = f"constant{len(self.proto.initializer)}"
        self.proto.initializer.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def count(self, conditions: str) -> str:
        """Count the true conditions along the last axis."""
        ones = self.add("Cast", conditions, to=TensorProto.INT64)
        return self.add("ReduceSum", ones, [-1], keepdims=0)

    def take(self, name: str, element: int, width: int) -> None:
        """Declare an input of ``width`` columns."""
        self.proto.input.append(helper.make_tensor_value_info(name, element, ["n", width]))

    def give(self, name: str, element: int, shape: list[Any], *node: Any, **how: Any) -> None:
        """Add an operator whose result is an output."""
        self.proto.output.append(helper.make_tensor_value_info(name, element, shape))
        self.add(*node, result=name, **how)


def export(job: ExportJob) -> dict[str, Any]:
    """Write a model as an ONNX graph that predicts as ``ordspan predict`` does.

    The graph computes in float64, so that a float32 graph gives the same ranks as ordspan for the
    same float32 values. The file appears only when it is complete.

    Returns
    -------
    dict
        A summary in plain values.
    """
    path = check_output(job.out, [job.model], GRAPH, job.overwrite, [".onnx"])
    header, model = read_model(job.model)
    check_exportable(header, model, job.model)
    graph = to_onnx(header, model, helper.np_dtype_to_tensor_dtype(np.dtype(job.dtype)))
    write_atomically(path, graph.SerializeToString())
    return {
        "out": job.out,
        "model": job.model,
        "dtype": job.dtype,
        "features": header.n_features,
        "classes": model.classes_.tolist(),
    }


def check_exportable(header: Header, model: Any, path: str) -> None:
    """Raise if no standard operator can compute a model."""
    problem, remedy = "", "train a model without that"
    if not hasattr(ranker_and_calibration(model)[0], "coef_"):
        problem = f"holds an estimator ({header.estimator}) without feature weights"
        remedy = "train with the learner pa or svm"
    elif isinstance(model, TableModel):
        if hashed := (*model.recipe.hashed, *dict(model.recipe.sentences)):
            problem = f"hashes the words of {', '.join(hashed)}"
        elif model.options.na:
            problem = f"reads {', '.join(model.options.na)} as no answer"
    if problem:
        raise ValueError(
            f"{path} {problem}, for which there is no standard ONNX operator; {remedy}, or predict "
            "with ordspan itself"
        )


def to_onnx(header: Header, model: Any, element: int) -> Any:
    """The checked graph, from X (n, d) and perhaps words to rank (n,), prediction (n,) and score.

    The score is (n,), or (n, K) for a model with one weight vector per grade. A calibrated model
    also gives probabilities (n, K), and lower and upper, (n, number of coverages).
    """
    estimator, calibration = ranker_and_calibration(model)
    recipe = Recipe(n_sparse=header.n_features, standardise=False)
    features = header.feature_names
    if isinstance(model, TableModel):
        recipe = model.recipe
        features = recipe.feature_names() if recipe.n_sparse else list(recipe.numbers)
    graph = Graph()
    if recipe.n_scaled:
        graph.take("X", element, recipe.n_scaled)
    if recipe.words:
        graph.take("words", TensorProto.STRING, len(recipe.words))
    score = _score(graph, model, estimator.coef_, recipe)
    thresholds = getattr(estimator, "thresholds_", None)
    _grade(graph, score, estimator, calibration, element)
    opsets = [helper.make_opsetid("", OPSET)]
    opsets += [helper.make_opsetid(ML, ML_OPSET)] if recipe.words else []
    made = helper.make_model(
        graph.proto,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="ordspan",
        producer_version=ordspan.__version__,
        doc_string=ABOUT,
    )
    properties = {
        "version": ordspan.__version__,
        "features": features,
        "classes": estimator.classes_.tolist(),
        "thresholds": None if thresholds is None else thresholds.tolist(),
        "standardised": recipe.standardise,
        "words": recipe.words,
        "coverages": [] if calibration is None else calibration.coverages.tolist(),
    }
    helper.set_model_props(made, {f"ordspan.{k}": json.dumps(v) for k, v in properties.items()})
    onnx.checker.check_model(made, full_check=True)
    return made


def _score(graph: Graph, model: Any, coef: Floats, recipe: Recipe) -> str:
    """Add the contributions of numbers, gaps and words to the score, (n, 1) or (n, K).

    Numbers are centred and scaled step by step, as in ordspan. Folding the centre into the weights
    would save two operators but lose digits if the mean is large compared to the spread.
    """
    weights = np.ascontiguousarray(np.atleast_2d(coef).T)  # a column for each score
    terms, at = [], recipe.n_scaled
    if at:
        value = graph.add("Cast", "X", to=TensorProto.DOUBLE)
        if recipe.numbers and recipe.missing == "mean":
            fill = model.encoder.state[scaling_parts.MEAN]
            value = graph.add("Where", graph.add("IsNaN", "X"), fill, value)
        if recipe.standardise:
            centre, factor = model.centre_and_factor()
            value = graph.add("Mul", graph.add("Sub", value, centre), factor)
        terms.append(graph.add("MatMul", value, weights[:at]))
    if gaps := [recipe.numbers.index(name) for name in recipe.missing_indicators]:
        missing = graph.add("Cast", graph.add("IsNaN", "X"), to=TensorProto.DOUBLE)
        indicators = graph.add("Gather", missing, gaps, axis=1)
        terms.append(graph.add("MatMul", indicators, weights[at : at + len(gaps)]))
        at += len(gaps)
    for place, (_, words) in enumerate(recipe.words):
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
    return reduce(partial(graph.add, "Add"), terms)


def _grade(graph: Graph, score: str, estimator: Any, calibration: Any, element: int) -> None:
    """Add all outputs: those of the score, and with a calibration probabilities and ranges."""
    classes, thresholds = estimator.classes_, getattr(estimator, "thresholds_", None)
    # in the widest type of their kind
    grades = np.array(classes.tolist(), None if classes.dtype.kind in "biuf" else object)
    kind = helper.np_dtype_to_tensor_dtype(grades.dtype)
    if calibration is not None:
        # how far every cut lies above a score, (n, K - 1), in log-odds
        away = graph.add("Sub", calibration.cuts, graph.add("Mul", score, calibration.slope))
        index = graph.count(graph.add("Less", away, 0.0))
    elif thresholds is None:
        index = graph.add("ArgMax", score, axis=1, keepdims=0)
    else:
        index = graph.count(graph.add("GreaterOrEqual", score, thresholds))
    graph.give("rank", TensorProto.INT64, ["n"], "Add", index, 1)
    graph.give("prediction", kind, ["n"], "Gather", grades, index)
    shape, scores = ["n", grades.size], score
    if thresholds is not None:
        shape, scores = ["n"], graph.add("Squeeze", score, [1])
    graph.give("score", element, shape, "Cast", scores, to=element)
    if calibration is not None:
        chances = _probabilities(graph, away, calibration)
        graph.give("probabilities", element, ["n", grades.size], "Cast", chances, to=element)
        ends = _range_ends(graph, score, index, calibration)
        for name, end in zip(("lower", "upper"), ends, strict=True):
            graph.give(name, kind, ["n", calibration.coverages.size], "Gather", grades, end)


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
    scaled = graph.add("Mul", score, parts.head[[calibration_parts.SCORE_FACTOR]])
    away = graph.add("Sub", parts.bands[1:-1], scaled)
    away = graph.add("Unsqueeze", away, [1])  # (n, 1, K - 1), to compare with every reach
    reach = calibration.reach[:, np.newaxis]
    first = graph.count(graph.add("Less", away, -reach))
    last = graph.count(graph.add("LessOrEqual", away, reach))
    index = graph.add("Unsqueeze", index, [1])
    return graph.add("Min", first, index), graph.add("Max", last, index)
