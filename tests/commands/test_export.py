"""`ordspan export`: the graph says what the model says, in runtimes that others wrote."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import ordspan
from commands.tables import FEATURES, GRADES, ratings, said, summary, trained, write_table
from estimators.examples import graded
from ordspan import (
    CalibratedOrdinal,
    MulticlassPA,
    MulticlassPerceptron,
    OrdinalPA,
    OrdinalSVM,
    PRank,
    save,
)

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

X, Y, SPANS = graded()
WORDS = np.array(["poor", "fair", "good", "best"])


def in_onnxruntime(content, inputs):
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def in_reference(content, inputs):
    from onnx.reference import ReferenceEvaluator

    graph = ReferenceEvaluator(onnx.load_from_string(content))
    return dict(zip(graph.output_names, graph.run(None, inputs), strict=True))


RUNTIMES = pytest.mark.parametrize("run", [in_onnxruntime, in_reference])


def exported(model, dtype="float64"):
    """The graph of a model, as a file beside the one of the model."""
    path = model.with_name("model.onnx")
    said("export", model, path, "--dtype", dtype)
    return path


def saved(model, folder):
    save(model, folder / "model")
    return folder / "model"


def properties(graph):
    return {prop.key: json.loads(prop.value) for prop in graph.metadata_props}


def check_graph(path, model, rows, run, inputs):
    """Scores to the rounding of their type, the rest the same wherever rounding cannot matter."""
    graph, got = onnx.load(path), run(path.read_bytes(), inputs)
    single = got["score"].dtype == np.float32
    score = model.latent(rows) if hasattr(model, "latent") else model.decision_function(rows)
    np.testing.assert_allclose(got["score"], score, rtol=2e-7 if single else 0, atol=1e-9)
    if score.ndim == 1:
        sure = np.abs(score[:, None] - properties(graph)["ordspan.thresholds"]).min(axis=1) > 1e-9
    else:
        sure = np.diff(np.sort(score))[:, -1] > 1e-9
    assert sure.mean() > 0.99
    np.testing.assert_array_equal(got["prediction"][sure], model.predict(rows)[sure])
    np.testing.assert_array_equal(model.classes_[got["rank"] - 1], got["prediction"])
    coverages = properties(graph)["ordspan.coverages"]
    assert ("probabilities" in got) == bool(coverages)
    if coverages:
        close = {"rtol": 0, "atol": 1e-6 if single else 1e-12}
        np.testing.assert_allclose(got["probabilities"], model.predict_proba(rows), **close)
        np.testing.assert_allclose(got["probabilities"].sum(axis=1), 1.0, **close)
        assert got["probabilities"].min() >= 0
        assert got["lower"].shape == got["upper"].shape == (len(score), len(coverages))
    for column, coverage in enumerate(coverages):
        ends = np.column_stack([got["lower"][:, column], got["upper"][:, column]])
        np.testing.assert_array_equal(ends, model.predict_interval(rows, coverage))
    return got


def with_gaps(table):
    """The table with every seventh age missing."""
    age = [None if row % 7 == 3 else value for row, value in enumerate(table["age"].to_pylist())]
    return table.set_column(table.column_names.index("age"), "age", pa.array([*age]))


@RUNTIMES
@pytest.mark.filterwarnings("ignore:values unlike")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "words",
    [[], ["--drop", "town"], ["--features", "town"], ["--drop", "town", "--no-standardise"]],
)
def test_the_graph_of_a_table_model_is_the_model(tmp_path, words, dtype, run):
    data = write_table(with_gaps(ratings()), tmp_path / "gaps.csv")
    model, order = tmp_path / "model", ["--label", "grade", "--grades", ",".join(GRADES)]
    said("train", data, *order, "--drop", "id", *words, "--model", model)
    rows = with_gaps(ratings(n=1000, seed=1)).to_pandas()
    rows[FEATURES] = rows[FEATURES].astype(dtype)
    rows.loc[::5, "town"] = "Bern"  # not known
    loaded, inputs = ordspan.load(model), {}
    if numbers := list(loaded.recipe.numbers):
        inputs["X"] = rows[numbers].to_numpy()
        assert np.isnan(inputs["X"]).any()
    if loaded.recipe.words:
        inputs["words"] = rows[["town"]].to_numpy(dtype=object)
    got = check_graph(exported(model, dtype), loaded, rows, run, inputs)
    assert (got["lower"] != got["upper"]).any()


def test_sparse_rows_are_exported_as_dense_ones(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, size=(200, 5)) * rng.random((200, 5)).round(3) * [1, 10, 100, 1, 0]
    grades = np.digitize(rows @ [1, 0.1, 0.01, -1, 1], [0, 1])
    lines = [
        f"{grade} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)
        for grade, row in zip(grades, rows.tolist(), strict=True)
    ]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    model = tmp_path / "model"
    said("train", tmp_path / "a.svm", "--model", model, "--n-features", 5)
    loaded = ordspan.load(model)
    check_graph(exported(model), loaded, csr_array(rows), in_onnxruntime, {"X": rows})


ONLINE = [OrdinalPA(random_state=0), PRank(random_state=0)]
OTHERS = [
    OrdinalPA(average=False, balanced=False, random_state=0),
    OrdinalSVM(),
    MulticlassPerceptron(random_state=0),
    MulticlassPA(random_state=0),
]
# 0.999 needs more rows: the whole scale
CALIBRATED = [CalibratedOrdinal(one, coverages=(0.3, 0.9, 0.999)) for one in [*ONLINE, OTHERS[1]]]


@RUNTIMES
@pytest.mark.parametrize(
    ("estimator", "how"),
    [(one, "fit") for one in (*ONLINE, *OTHERS, *CALIBRATED)]
    + [(one, "partial_fit") for one in CALIBRATED[:2]],
)
def test_estimators_saved_from_python_are_exported(estimator, how, tmp_path, run):
    calibrated = isinstance(estimator, CalibratedOrdinal)
    model = clone(estimator)
    model.set_params(**{"estimator__classes" if calibrated else "classes": WORDS})
    getattr(model, how)(X, WORDS[SPANS - 1])
    path = exported(saved(model, tmp_path))
    coverages = properties(onnx.load(path))["ordspan.coverages"]
    assert coverages == ([0.3, 0.9, 0.999] if calibrated else [])
    check_graph(path, model, X, run, {"X": X})


# with whole numbers as weights and thresholds, and both equal at x = -1 or 0
AT_ONCE = {"max_iter": 1, "random_state": 0}
ON_EDGES = [
    (PRank(classes=[10, 20, 30, 40], **AT_ONCE), 20, [1, -1, 7, -7, 0], [20, 40, 10, 40, 20]),
    (MulticlassPerceptron(classes=[*"abc"], **AT_ONCE), "c", [0, 1, -1], [*"aca"]),
]


@RUNTIMES
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("estimator", "label", "rows", "grades"), ON_EDGES)
def test_a_score_on_a_threshold_belongs_to_the_grade_above_and_of_equals_the_lowest_wins(
    estimator, label, rows, grades, dtype, run, tmp_path
):
    model = clone(estimator).fit([[1.0]], [label])
    path = exported(saved(model, tmp_path), dtype)
    rows = np.array(rows, dtype=dtype).reshape(-1, 1)
    assert run(path.read_bytes(), {"X": rows})["prediction"].tolist() == grades
    assert model.predict(rows).tolist() == grades


@pytest.mark.parametrize("classes", [[1, 2, 3, 4], [0.5, 1.0, 1.5, 9.0], ["d", "c", "b", "a"]])
def test_grades_keep_their_kind(classes, tmp_path):
    labels = np.array(classes)
    fitted = OrdinalPA(classes=labels, random_state=0).fit(X, labels[Y - 1])
    path = exported(saved(fitted, tmp_path))
    got = check_graph(path, fitted, X, in_onnxruntime, {"X": X})
    assert got["prediction"].dtype.kind == {"U": "O"}.get(labels.dtype.kind, labels.dtype.kind)


def test_the_file_tells_what_it_takes_and_old_runtimes_can_load_it(tmp_path, monkeypatch):
    model, path = trained(tmp_path, "--drop", "town"), tmp_path / "m.onnx"
    told = summary("export", model, path)
    assert (told["features"], told["classes"], told["dtype"]) == (2, GRADES, "float32")
    graph = onnx.load(path)
    onnx.checker.check_model(graph, full_check=True)
    assert [(used.domain, used.version) for used in graph.opset_import] == [("", 13)]
    assert graph.ir_version == 7
    props = properties(graph)
    assert (props["ordspan.features"], props["ordspan.classes"]) == (FEATURES, GRADES)
    assert props["ordspan.version"] == ordspan.__version__
    assert props["ordspan.standardised"] is True
    assert props["ordspan.thresholds"] == ordspan.load(model).estimator.thresholds_.tolist()
    assert exported(model, "float32").read_bytes() == path.read_bytes()
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "ordspan.commands.export")
    printed = said("export", model, tmp_path / "n.onnx", code=1)
    assert "this needs onnx: pip install 'ordspan[onnx]'" in printed
