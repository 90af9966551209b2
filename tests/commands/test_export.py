"""`ordspan export`: the graph says what ordspan predict says, in runtimes that others wrote."""

import json
import sys

import numpy as np
import pytest

import ordspan
from commands.tables import FEATURES, GRADES, ask, ratings, read_rows, trained, write_table
from estimators.examples import graded
from ordspan import (
    CalibratedOrdinal,
    KernelOrdinalPA,
    MulticlassPA,
    MulticlassPerceptron,
    OrdinalPA,
    OrdinalSVM,
    PRank,
    save,
)
from ordspan.commands.export import Exported, export, exported, to_onnx
from ordspan.commands.models import read_model

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

X, Y, SPANS = graded()
NEW = ratings(n=1000, seed=1)
WORDS = np.array(["poor", "fair", "good", "best"])


def as_inputs(rows):
    """Numbers alone are X; with words they are a dict."""
    return rows if isinstance(rows, dict) else {"X": rows}


def in_onnxruntime(content, rows):
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, as_inputs(rows)), strict=True))


def in_reference(content, rows):
    from onnx.reference import ReferenceEvaluator

    graph = ReferenceEvaluator(onnx.load_from_string(content))
    return dict(zip(graph.output_names, graph.run(None, as_inputs(rows)), strict=True))


RUNTIMES = [in_onnxruntime, in_reference]


def rounding(numbers, rows):
    """How far two float64 sums of the same terms may lie apart: 1e-12 of the sum of their sizes."""
    Z = np.asarray(rows, dtype=np.float64)
    if numbers.centre is not None:
        Z = (Z - numbers.centre) * numbers.factor
    return 1e-12 * (np.abs(Z) @ np.abs(numbers.weights) + 1e-300)


def check_same(got, score, rank, margin, tolerance):
    """Scores within the tolerance, ranks the same wherever the margin exceeds it."""
    assert np.all(np.abs(got["score"] - score) <= tolerance)
    sure = margin > tolerance
    assert sure.mean() > 0.95
    np.testing.assert_array_equal(got["rank"][sure], rank[sure])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("export")


@pytest.fixture(scope="module")
def model(folder):
    return trained(folder, "--drop", "town")


def predicted(model, table, folder):
    """Score, rank and margin as ordspan predict writes them."""
    out = folder / "predicted.csv"
    path = write_table(table, folder / "rows.parquet")
    assert ask("predict", path, "--model", model, "--out", out).exit_code == 0
    rows = read_rows(out)
    score, margin = (np.array([float(row[name]) for row in rows]) for name in ("score", "margin"))
    return score, np.array([int(row["rank"]) for row in rows]), margin


@pytest.mark.parametrize("run", RUNTIMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_graph_is_predict_to_the_rounding_of_its_type(model, tmp_path, dtype, run):
    path = tmp_path / "model.onnx"
    answer = ask("export", model, path, "--dtype", dtype)
    assert answer.exit_code == 0, answer.output
    numbers = exported(read_model(model))
    rows = NEW.select(FEATURES).to_pandas().to_numpy().astype(dtype)
    table = NEW
    for i, name in enumerate(FEATURES):
        table = table.set_column(table.column_names.index(name), name, [rows[:, i]])
    score, rank, margin = predicted(model, table, tmp_path)
    got = run(path.read_bytes(), rows)
    assert got["score"].dtype == dtype
    # the score is rounded to float32 at the very end; the ranks come from float64
    exact = rounding(numbers, rows)
    rounded = np.abs(score) * np.finfo(np.float32).eps if dtype == "float32" else 0.0
    assert np.all(np.abs(got["score"] - score) <= exact + rounded)
    sure = margin > exact
    assert sure.mean() > 0.99
    np.testing.assert_array_equal(got["rank"][sure], rank[sure])
    np.testing.assert_array_equal(got["prediction"], np.array(GRADES)[got["rank"] - 1])
    assert set(got["rank"]) == {1, 2, 3, 4}


def test_float32_rows_differ_from_float64_rows_by_their_own_rounding_only(model, tmp_path):
    path = tmp_path / "model.onnx"
    export(model, path)
    numbers = exported(read_model(model))
    rows = NEW.select(FEATURES).to_pandas().to_numpy()
    score, rank, margin = predicted(model, NEW, tmp_path)
    half_unit = np.abs(rows) * np.finfo(np.float32).eps / 2
    moved = half_unit @ np.abs(numbers.factor * numbers.weights)
    tolerance = moved + rounding(numbers, rows) + np.abs(score) * np.finfo(np.float32).eps
    got = in_onnxruntime(path.read_bytes(), rows.astype(np.float32))
    check_same(got, score, rank, margin, tolerance)


@pytest.mark.parametrize("run", RUNTIMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_score_on_a_threshold_belongs_to_the_class_above(dtype, run):
    numbers = Exported(np.array([1.0]), np.array([0.0, 0.0, 0.5]), np.array([10, 20, 30, 40]))
    scores = np.array([0.0, 0.5, -1.0, 0.25, 7.0], dtype=dtype)
    below = np.nextafter(np.array([0.0, 0.5], dtype), np.array(-1, dtype))
    rows = np.concatenate([scores, below]).reshape(-1, 1)
    got = run(to_onnx(numbers, dtype).SerializeToString(), rows)
    assert got["rank"].tolist() == [3, 4, 1, 3, 4, 1, 3]
    assert got["prediction"].tolist() == [30, 40, 10, 30, 40, 10, 30]
    assert got["rank"].dtype == np.int64


@pytest.mark.parametrize("run", RUNTIMES)
def test_of_equal_scores_the_lowest_class_wins(run):
    numbers = Exported(np.array([[1.0], [1.0], [-1.0]]), None, np.array(["a", "b", "c"]))
    got = run(to_onnx(numbers, "float64").SerializeToString(), np.array([[0.0], [1.0], [-1.0]]))
    assert got["prediction"].tolist() == ["a", "a", "c"]


@pytest.mark.parametrize("run", RUNTIMES)
@pytest.mark.parametrize(
    "estimator",
    [
        OrdinalPA(random_state=0),
        OrdinalPA(average=False, balanced=False, random_state=0),
        PRank(random_state=0),
        OrdinalSVM(),
        MulticlassPerceptron(random_state=0),
        MulticlassPA(random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_saved_from_python_are_exported(estimator, tmp_path, run):
    estimator.set_params(classes=WORDS).fit(X, WORDS[SPANS - 1])
    save(estimator, tmp_path / "model")
    export(tmp_path / "model", tmp_path / "model.onnx", dtype="float64")
    got = run((tmp_path / "model.onnx").read_bytes(), X)
    np.testing.assert_allclose(got["score"], estimator.learner_.latent(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(got["prediction"], estimator.predict(X))
    np.testing.assert_array_equal(WORDS[got["rank"] - 1], got["prediction"])


@pytest.mark.parametrize("classes", [[1, 2, 3, 4], [0.5, 1.0, 1.5, 9.0], ["d", "c", "b", "a"]])
def test_grades_keep_their_kind(classes, tmp_path):
    labels = np.array(classes)
    fitted = OrdinalPA(classes=labels, random_state=0).fit(X, labels[Y - 1])
    save(fitted, tmp_path / "model")
    export(tmp_path / "model", tmp_path / "model.onnx")
    got = in_onnxruntime((tmp_path / "model.onnx").read_bytes(), X.astype(np.float32))
    kinds = {"i": "i", "f": "f", "U": "O"}
    assert got["prediction"].dtype.kind == kinds[labels.dtype.kind]
    np.testing.assert_array_equal(got["prediction"], fitted.predict(X.astype(np.float32)))


def test_sparse_rows_are_exported_as_dense_ones(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, size=(200, 5)) * rng.random((200, 5)).round(3) * [1, 10, 100, 1, 0]
    grades = np.digitize(rows @ [1, 0.1, 0.01, -1, 1], [0, 1])
    with open(tmp_path / "a.svm", "w") as file:
        for grade, row in zip(grades, rows, strict=True):
            cells = " ".join(f"{j + 1}:{float(value)!r}" for j, value in enumerate(row) if value)
            file.write(f"{grade} {cells}\n")
    model, out = tmp_path / "model", tmp_path / "out.csv"
    told = ["--model", model, "--n-features", 5]
    assert ask("train", tmp_path / "a.svm", *told).exit_code == 0
    assert ask("predict", tmp_path / "a.svm", "--model", model, "--out", out).exit_code == 0
    export(model, tmp_path / "m.onnx", dtype="float64")
    got = in_onnxruntime((tmp_path / "m.onnx").read_bytes(), rows)
    want = read_rows(out)
    score, margin = (np.array([float(row[name]) for row in want]) for name in ("score", "margin"))
    rank = np.array([int(row["rank"]) for row in want])
    check_same(got, score, rank, margin, rounding(exported(read_model(model)), rows))
    assert got["prediction"].tolist() == [int(row["prediction"]) for row in want]


def test_a_model_of_raw_numbers_has_no_scaling_in_its_graph(folder, tmp_path):
    model = trained(folder, "--drop", "town", "--no-standardise", "-C", "1e-6", name="raw")
    export(model, tmp_path / "m.onnx", dtype="float64")
    rows = NEW.select(FEATURES).to_pandas().to_numpy()
    got = in_onnxruntime((tmp_path / "m.onnx").read_bytes(), rows)
    score, rank, margin = predicted(model, NEW, tmp_path)
    check_same(got, score, rank, margin, rounding(exported(read_model(model)), rows))


def test_the_file_tells_what_it_takes_and_old_runtimes_can_load_it(model, tmp_path):
    path = tmp_path / "m.onnx"
    told = json.loads(ask("export", model, path, "--json").stdout)
    assert (told["features"], told["classes"], told["dtype"]) == (2, GRADES, "float32")
    graph = onnx.load(path)
    onnx.checker.check_model(graph, full_check=True)
    assert [(used.domain, used.version) for used in graph.opset_import] == [("", 13)]
    assert graph.ir_version == 7
    props = {prop.key: json.loads(prop.value) for prop in graph.metadata_props}
    assert props["ordspan.features"] == FEATURES
    assert props["ordspan.classes"] == GRADES
    assert props["ordspan.version"] == ordspan.__version__
    assert props["ordspan.standardised"] is True
    assert props["ordspan.thresholds"] == ordspan.load(model).estimator.thresholds_.tolist()
    again = tmp_path / "again.onnx"
    export(model, again)
    assert again.read_bytes() == path.read_bytes()


def test_what_cannot_be_exported_is_refused(folder, tmp_path):
    model = trained(folder, "--hash", "town", name="hashed")
    answer = ask("export", model, tmp_path / "m.onnx")
    assert answer.exit_code == 1
    assert "hashes the words of town, which no standard ONNX operator does" in answer.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{model}", "m.txt"], "m.txt: unknown file extension '.txt'; choose .onnx"),
        (["{model}", "none/m.onnx"], "none: no such folder"),
        (["none", "m.onnx"], "none: no such model file"),
        (["{model}", "m.onnx", "--dtype", "float16"], "unknown dtype 'float16'; choose from"),
    ],
)
def test_a_mistake_is_told_in_one_line(model, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    answer = ask("export", *(word.format(model=model) for word in words))
    assert answer.exit_code == 1
    assert message in answer.output
    assert list(tmp_path.iterdir()) == []


def test_a_missing_onnx_is_told_with_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    answer = ask("export", model, tmp_path / "m.onnx")
    assert answer.exit_code == 1
    assert "this needs onnx: pip install 'ordspan[onnx]'" in answer.output
    assert list(tmp_path.iterdir()) == []


def with_gaps(table):
    """The table with every seventh age missing."""
    age = [None if row % 7 == 3 else value for row, value in enumerate(table["age"].to_pylist())]
    return table.set_column(table.column_names.index("age"), "age", [age])


@pytest.mark.parametrize("run", RUNTIMES)
@pytest.mark.parametrize("words", [[], ["--drop", "town"], ["--features", "town"]])
def test_words_and_missing_numbers_are_in_the_graph(folder, tmp_path, words, run):
    data = write_table(with_gaps(ratings()), tmp_path / "gaps.csv")
    model, path = tmp_path / "model", tmp_path / "model.onnx"
    order = ["--label", "grade", "--grades", ",".join(GRADES)]
    assert ask("train", data, *order, *words, "--model", model).exit_code == 0
    assert ask("export", model, path, "--dtype", "float64").exit_code == 0
    new = with_gaps(NEW)
    town = ["Bern" if row % 5 == 1 else word for row, word in enumerate(new["town"].to_pylist())]
    new = new.set_column(new.column_names.index("town"), "town", [town])  # one that is not known
    score, rank, margin = predicted(model, new, tmp_path)
    recipe = ordspan.load(model).recipe
    inputs = {}
    if recipe.numbers:
        inputs["X"] = new.select(recipe.numbers).to_pandas().to_numpy(dtype=float)
        assert np.isnan(inputs["X"]).any()
    if recipe.words:
        inputs["words"] = np.array([town], dtype=object).T
    got = run(path.read_bytes(), inputs)
    check_same(got, score, rank, margin, np.full(len(score), 1e-9))


def check_calibrated(got, content, model, rows):
    """Probabilities to the rounding of their type, and the range of every coverage."""
    proba = got["probabilities"]
    assert proba.dtype == got["score"].dtype
    # the score may differ in its last digits, and the slope carries that on
    tolerance = 1e-6 if proba.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=tolerance)
    assert proba.min() >= 0
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=tolerance)
    props = {p.key: json.loads(p.value) for p in onnx.load_from_string(content).metadata_props}
    assert got["lower"].shape == got["upper"].shape == (len(proba), len(props["ordspan.coverages"]))
    for column, coverage in enumerate(props["ordspan.coverages"]):
        ends = np.column_stack([got["lower"][:, column], got["upper"][:, column]])
        np.testing.assert_array_equal(ends, model.predict_interval(rows, coverage))


@pytest.mark.parametrize("run", RUNTIMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_and_ranges_of_a_table_model_are_in_its_graph(model, tmp_path, dtype, run):
    path = tmp_path / "model.onnx"
    told = export(model, path, dtype=dtype)
    rows = NEW.select(FEATURES).to_pandas().astype(dtype)
    loaded = ordspan.load(model)
    assert told["coverages"] == loaded.calibration.coverages.tolist()
    got = run(path.read_bytes(), rows.to_numpy())
    check_calibrated(got, path.read_bytes(), loaded, rows)
    assert (got["lower"] != got["upper"]).any()


@pytest.mark.parametrize("run", RUNTIMES)
@pytest.mark.parametrize(
    ("inner", "how"),
    [
        (OrdinalPA(random_state=0), "fit"),
        (OrdinalPA(random_state=0), "partial_fit"),
        (PRank(random_state=0), "partial_fit"),
        (OrdinalSVM(), "fit"),
    ],
)
def test_a_calibrated_estimator_is_exported_with_its_probabilities(tmp_path, inner, how, run):
    estimator = CalibratedOrdinal(inner.set_params(classes=WORDS), coverages=(0.3, 0.9, 0.999))
    getattr(estimator, how)(X, WORDS[SPANS - 1])  # 0.999 needs more rows: the whole scale
    save(estimator, tmp_path / "model")
    export(tmp_path / "model", tmp_path / "model.onnx", dtype="float64")
    content = (tmp_path / "model.onnx").read_bytes()
    got = run(content, X)
    np.testing.assert_array_equal(got["prediction"], estimator.predict(X))
    check_calibrated(got, content, estimator, X)


def test_without_a_calibration_there_are_three_outputs(tmp_path):
    save(OrdinalPA(random_state=0).fit(X, Y), tmp_path / "model")
    told = export(tmp_path / "model", tmp_path / "model.onnx")
    graph = onnx.load(tmp_path / "model.onnx").graph
    assert [output.name for output in graph.output] == ["rank", "prediction", "score"]
    assert told["coverages"] == []


@pytest.mark.parametrize("around", [lambda kernel: kernel, CalibratedOrdinal])
def test_a_kernel_is_refused(tmp_path, around):
    save(around(KernelOrdinalPA(random_state=0)).fit(X, Y), tmp_path / "k")
    message = r"k holds an estimator \(KernelOrdinalPA\) .* cannot be exported"
    with pytest.raises(ValueError, match=message):
        export(tmp_path / "k", tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
