"""The command line never makes a wrong model in silence."""

import csv
import io
import json
import re

import numpy as np
import onnxruntime
import polars as pl
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from tables import ask, read_rows

from ordspan import OrdinalPA, OrdinalSVM, load
from ordspan.commands import train as training
from ordspan.commands import train_rows, train_run
from ordspan.files import preview, tables, text
from ordspan.learners.catalog import make_learner
from ordspan.tabular import as_batch

N = 6000


def log(n=N, seed=0):
    """A log: its features and how they make grades drift with time."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 1, n)
    x = rng.normal([0, 5, -3], [1, 10, 0.1], size=(n, 3))
    x[:, 0] += 2 * time
    place = rng.choice(["north", "south", "west"], n)
    score = x[:, 0] + (x[:, 1] - 5) / 10 + (place == "north") + rng.normal(0, 0.7, n)
    columns = {f"x{j}": x[:, j].round(4) for j in range(3)}
    return pl.DataFrame(columns | {"place": place, "grade": np.digitize(score, [0, 1, 2]) + 1})


def asked(*words, code=0, **more):
    answer = ask(*words, **more)
    assert answer.exit_code == code, answer.output
    return answer.output


def trained(path, *words, label="grade", name="m"):
    model = path.with_name(name)
    told = asked("train", path, "--label", label, "--model", model, *words, "--json")
    return model, json.loads(told)


def test_rare_grades_are_listed_and_doubted(tmp_path):
    grades = [f"{i % 5 + 1}" for i in range(300)]
    for found, told in (
        (grades, ()),
        ([*grades[:-2], "6", "7-9"], ("grades 6, 7, 9; if these are mistyped, --grades 1..5",)),
    ):
        frame = pl.DataFrame({"x": range(0, 600, 2), "grade": found}).sample(fraction=1, seed=0)
        frame.write_csv(tmp_path / "a.csv")
        words = ("train", tmp_path / "a.csv", "--label", "grade", "--overwrite")
        output = asked(*words, "--model", tmp_path / "m", "--passes", "3")
        assert [note for note in output.splitlines() if "very few rows" in note] == [
            f"Note: very few rows have the {note} finds them." for note in told
        ]
    assert "900 rows, 3 of them ranges, in " in output
    assert "8 grades: 1, 2, 3, 4, 5, 6, 7, 9." in output
    words = (*words, "--grades", "0..40", "--model", tmp_path / "m")
    output = asked(*words)
    assert "41 grades: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..., 40." in output
    assert "very few" not in output


def test_grades_of_an_ordered_type_may_have_no_rows(tmp_path):
    grades = pl.Series(["mid" if i % 2 else "low" for i in range(300)])
    frame = log(300).with_columns(grade=grades.cast(pl.Enum(["low", "mid", "high"])))
    frame.write_parquet(tmp_path / "a.parquet")
    assert not [n for n in trained(tmp_path / "a.parquet")[1]["notes"] if "very few" in n]


def test_the_error_is_printed_once(tmp_path):
    log(600).write_csv(tmp_path / "a.csv")
    words = ("train", tmp_path / "a.csv", "--label", "grade", "--overwrite", "--model")
    for passes in (1, 3):
        summary = json.loads(asked(*words, tmp_path / "m", "--passes", passes, "--json"))
        output = asked(*words, tmp_path / "m", "--passes", passes)
        assert output.count(f"{summary['mae'][0]:.4f}") == 1
        assert (
            f"MAE of pass 3, whose rows were seen before: {summary['mae'][-1]:.4f}" in output
        ) is (passes == 3)


# -- going on ----------------------------------------------------------------------------------


@pytest.fixture
def halves(tmp_path):
    """Two files, and a model of the first."""
    frame = log(2000)
    frame[:1000].write_csv(tmp_path / "first.csv")
    frame[1000:].write_csv(tmp_path / "second.csv")
    model, _ = trained(tmp_path / "first.csv", "--shuffle-buffer", "0")
    return model, tmp_path / "second.csv", frame


def test_resume_without_a_checkpoint_names_both_ways_out(halves):
    model, second, _ = halves
    before = model.read_bytes()
    words = ["train", second, "--label", "grade", "--model", model]
    told = asked(*words, "--resume", code=1)
    assert f"--from {model}" in told
    assert "--overwrite" in told
    assert "--overwrite replaces it" in asked(*words, code=1)
    assert model.read_bytes() == before
    assert "nothing to resume" in asked(*words[:-1], model.with_name("new"), "--resume", code=1)
    asked(*words, "--overwrite")
    assert model.read_bytes() != before


def test_training_goes_on_from_a_finished_model_as_if_it_had_not_ended(halves):
    model, second, frame = halves
    later = model.with_name("later")
    asked("train", second, "--from", model, "--model", later, "--shuffle-buffer", "0")
    by_hand = load(model).partial_fit(frame[1000:])
    assert (load(later).learner.memory == by_hand.learner.memory).all()
    assert load(later).training["rows"] == by_hand.training["rows"] == 2000
    exact = OrdinalPA(max_iter=1, shuffle=False)
    X = by_hand.prepared  # of the model's own scaling
    whole = X(as_batch(frame, by_hand.recipe)[0])
    exact.partial_fit(whole, frame["grade"].to_numpy(), classes=[1, 2, 3, 4])
    np.testing.assert_allclose(exact.coef_, by_hand.learner.weights, rtol=1e-12)


def test_a_loaded_model_scores_tables_as_evaluate_does(halves):
    model, second, frame = halves
    found = json.loads(asked("evaluate", second, "--model", model, "--json"))
    assert load(model).score(frame[1000:]) == -found["mae"]
    assert load(model).score(frame[1000:], frame[1000:]["grade"]) == -found["mae"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"grade": "9"}, "grade '9' is not among the model's"),
        ({"height": "1"}, "does not know the column 'height'; leave it out with --drop height"),
        ({"x1": None}, "no column 'x1'"),
    ],
)
def test_going_on_refuses_new_grades_and_columns_by_name(halves, change, told):
    model, second, frame = halves
    for name, value in change.items():
        frame = frame.drop(name) if value is None else frame.with_columns(pl.lit(value).alias(name))
    frame.write_csv(second)
    answer = asked("train", second, "--from", model, "--model", model.with_name("b"), code=1)
    assert told in answer
    assert not model.with_name("b").exists()


def test_options_that_the_model_decides_are_refused(halves):
    model, second, _ = halves
    words = ["train", second, "--from", model, "--model", model.with_name("b")]
    assert "--C cannot be given with --from" in asked(*words, "--C", "2", code=1)


# -- sorted files ------------------------------------------------------------------------------


def held_out_mae(folder, frame, test, name, write="write_csv", **words):
    path = folder / name
    getattr(frame, write)(path, **words)
    model, summary = trained(path, name=f"{name}.model")
    return json.loads(asked("evaluate", test, "--model", model, "--json"))["mae"], summary


@pytest.mark.parametrize("order", ["grade", "x0", "x1", "place", "time"])
def test_a_sorted_file_is_as_good_as_a_shuffled_one(tmp_path, order):
    rng = np.random.default_rng(1)
    frame = log().with_columns(time=pl.int_range(N))
    test, rest = frame[rng.permutation(N)[: N // 4]], frame[np.sort(rng.permutation(N)[N // 4 :])]
    test.drop("time").write_csv(tmp_path / "test.csv")
    in_order = rest.sort(order, maintain_order=True).drop("time")
    shuffled = rest.sample(fraction=1, shuffle=True, seed=2).drop("time")
    mixed, summary = held_out_mae(tmp_path, shuffled, tmp_path / "test.csv", "a.csv")
    assert not summary["shuffled"]
    for write, name in (("write_csv", "b.csv"), ("write_parquet", "b.parquet")):
        mae, summary = held_out_mae(tmp_path, in_order, tmp_path / "test.csv", name, write)
        assert summary["shuffled"]
        assert any("the rows are sorted by" in note for note in summary["notes"])
        assert mae <= 1.03 * mixed


@pytest.fixture
def small(monkeypatch):
    """A look, parts and windows so small that a file has many of them."""
    monkeypatch.setattr(preview, "PREVIEW_BYTES", 40_000)
    monkeypatch.setattr(preview.preview_files, "__defaults__", (40_000,))
    for module in (text, tables):
        monkeypatch.setattr(module, "PART_BYTES", 600)
    monkeypatch.setattr(train_run, "BUFFER_BYTES", 500 * 112)  # bytes of a row


def test_a_sorted_file_larger_than_the_buffer_is_shuffled_by_parts(tmp_path, small):
    frame = log()
    test, rest = frame[: N // 4], frame[N // 4 :]
    test.write_csv(tmp_path / "test.csv")
    mixed, _ = held_out_mae(
        tmp_path, rest.sample(fraction=1, shuffle=True, seed=2), tmp_path / "test.csv", "a.csv"
    )
    mae, summary = held_out_mae(tmp_path, rest.sort("grade"), tmp_path / "test.csv", "b.csv")
    assert summary["shuffled"]
    assert mae <= 1.03 * mixed
    rows = train_run.Run(
        training.TrainJob([str(tmp_path / "b.csv")], label="grade"), tmp_path / "x"
    )
    assert rows.buffer == 500
    assert len(rows.reader.pieces) > 10
    learned = np.concatenate([batch.X for batch in rows.batches(0)])
    np.testing.assert_array_equal(np.sort(learned[:, 0]), np.sort(rest["x0"].to_numpy()))


def test_a_told_order_is_kept_and_said(tmp_path):
    log(1000).sort("grade").write_csv(tmp_path / "a.csv")
    _, summary = trained(tmp_path / "a.csv", "--shuffle-buffer", "0")
    assert not summary["shuffled"]
    assert any("learned in that order, as requested" in note for note in summary["notes"])


def test_a_pipe_in_long_runs_of_one_grade_gets_a_warning(tmp_path):
    frame, words = log(1000), ["--label", "grade", "--grades", "1..4", "--format", "csv", "--model"]
    for order, told in (("grade", True), ("x2", False)):
        content = frame.sort(order).write_csv()
        answer = asked("train", "-", *words, tmp_path / order, input=content)
        assert ("the labels come in long runs of one grade" in answer) is told


# -- gaps and bad rows -------------------------------------------------------------------------


def survey(n=3000, seed=0):
    """Answers with gaps: those who do not tell their income have other grades."""
    rng = np.random.default_rng(seed)
    income, age = rng.normal(3000, 800, n).round(), rng.integers(18, 90, n)
    hidden = rng.random(n) < 0.2
    work = rng.choice(["full time", "retired", ""], n)
    score = (income - 3000) / 800 + 2 * hidden + (work == "retired") + rng.normal(0, 0.5, n)
    cells = np.where(hidden, rng.choice(["", "NA", "?", "n/a"], n), income.astype(int).astype(str))
    ages = np.where(rng.random(n) < 0.05, "", age.astype(str))
    grade = np.digitize(score, [0, 1, 2]) + 1
    return pl.DataFrame({"income": cells, "age": ages, "work": work, "grade": grade})


def test_gaps_are_filled_and_marked_as_scikit_learn_does(tmp_path):
    frame = survey()
    frame.write_csv(tmp_path / "a.csv")
    model, summary = trained(tmp_path / "a.csv")
    assert summary["skipped"] == 0
    assert summary["rows"] == 3000
    assert any(note.startswith("missing numbers are filled") for note in summary["notes"])
    numbers = frame.select(pl.col("income", "age").cast(pl.Float64(), strict=False)).to_numpy()
    filled = SimpleImputer(add_indicator=True).fit_transform(numbers)
    mean, spread = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)
    words = OneHotEncoder(sparse_output=False).fit_transform(frame[["work"]])
    expected = np.column_stack([(filled[:, :2] - mean) / spread, filled[:, 2:], words])
    found = load(model)
    np.testing.assert_allclose(found.prepared(as_batch(frame, found.recipe)[0]), expected)
    names = ["income", "age", "income is missing", "age is missing"]
    names += ["work is missing", "work = full time", "work = retired"]
    assert found.recipe.feature_names() == names
    assert summary["mae"][0] < 0.7 * summary["constant"]["mae"]
    told = asked("info", model)
    assert "work = retired" in told
    assert "income is missing" in told


def test_gaps_can_be_refused(tmp_path):
    survey().write_csv(tmp_path / "a.csv")
    words = ["train", tmp_path / "a.csv", "--label", "grade", "--model", tmp_path / "m"]
    answer = asked(*words, "--missing", "error", code=1)
    assert re.search(r"a\.csv, line \d+: column '\w+' is empty or NaN", answer)


def test_skipping_many_rows_is_said_and_skipping_most_is_an_error(tmp_path):
    def wanted(share):
        frame = log(1000)
        bad = np.arange(1000) < 1000 * share
        grades = np.where(bad, "none", frame["grade"].cast(pl.String()).to_numpy())
        frame.with_columns(grade=pl.Series(grades)).write_csv(tmp_path / "a.csv")
        return ["--label", "grade", "--on-bad-row", "skip"]

    start = ["train", tmp_path / "a.csv", "--model", tmp_path / "m", "--overwrite"]
    assert "10 bad rows were skipped, such as" in asked(*start, *wanted(0.01))
    assert "150 of 1,000 rows (15.0%) were bad and were skipped" in asked(*start, *wanted(0.15))
    before = (tmp_path / "m").read_bytes()
    answer = asked(*start, *wanted(0.4), code=1)
    assert "400 of 1,000 rows (40.0%) cannot be used" in answer
    assert "--allow-skipped 0.4" in answer
    assert (tmp_path / "m").read_bytes() == before
    assert "(40.0%)" in asked(*start, *wanted(0.4), "--allow-skipped", "0.4")
    asked("evaluate", *start[1:4], "--on-bad-row", "skip", code=1)
    asked("evaluate", *start[1:4], "--on-bad-row", "skip", "--allow-skipped", "0.5")


def test_predict_writes_a_row_for_every_row_and_says_why_one_is_empty(tmp_path):
    model, _ = trained_on(tmp_path, log(500))
    rows = ["x0,x1,x2,place,id", "1,2,3,north,a", "tall,2,3,north,b", "1,2", ",2,3,mars,d"]
    (tmp_path / "new.csv").write_text("\n".join([*rows, "inf,2,3,north,e"]) + "\n")
    out = tmp_path / "out.csv"
    words = ["predict", tmp_path / "new.csv", "--model", model, "--keep", "id", "--out", out]
    told = asked(*words)
    found = read_rows(out)
    assert [row["id"] for row in found] == ["a", "b", "", "d", "e"]
    assert [bool(row["prediction"]) for row in found] == [True, False, False, True, False]
    assert [row["rank"] != "" for row in found] == [True, False, False, True, False]
    assert "column 'x0' holds 'tall', not a number" in found[1]["reason"]
    assert "2 fields, but the header has 5" in found[2]["reason"]
    assert "column 'x0' holds inf" in found[4]["reason"]
    assert "3 of 5 rows could not be predicted" in told
    assert "place = 'mars' (1 row)" in told
    assert "--text" not in told  # which predict does not have
    asked(*words, "--on-bad-row", "raise", code=1)


def trained_on(folder, frame, *words, name="m", label="grade"):
    path = folder / f"{name}.csv"
    frame.write_csv(path)
    return trained(path, *words, name=name, label=label)


# -- words -------------------------------------------------------------------------------------


def test_columns_with_very_many_words_are_hashed(tmp_path):
    rng = np.random.default_rng(0)
    names = pl.Series(rng.permutation(2000) % 1500).cast(pl.String()) + " street"
    frame = log(2000).with_columns(street=names)
    model, _ = trained_on(tmp_path, frame)
    assert load(model).recipe.hashed == ("street",)
    assert [name for name, _ in load(model).recipe.words] == ["place"]
    answer = asked("export", model, tmp_path / "m.onnx", code=1)
    assert "hashes the words of street" in answer
    forced, _ = trained_on(tmp_path, log(2000), "--hash", "place", name="forced")
    assert load(forced).recipe.hashed == ("place",)


def test_an_exported_graph_fills_gaps_and_knows_words(tmp_path):
    frame = survey(500)
    model, _ = trained_on(tmp_path, frame)
    asked("export", model, tmp_path / "m.onnx", "--dtype", "float64")
    new = survey(300, seed=5).with_columns(work=pl.Series(["mars", "retired", ""] * 100))
    X = new.select(pl.col("income", "age").cast(pl.Float64(), strict=False)).to_numpy()
    graph = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    words = new[["work"]].to_numpy().astype(object)
    grade, score = graph.run(["prediction", "score"], {"X": X, "words": words})
    np.testing.assert_array_equal(grade, load(model).predict(new))
    np.testing.assert_allclose(score, load(model).latent(new), rtol=1e-12)


# -- is it any good ----------------------------------------------------------------------------


def test_train_says_when_a_model_is_no_better_than_a_constant(tmp_path):
    rng = np.random.default_rng(0)
    noise = pl.DataFrame({"x": rng.normal(size=800), "grade": rng.integers(1, 6, 800)})
    noise.write_csv(tmp_path / "a.csv")
    words = ["train", tmp_path / "a.csv", "--label", "grade", "--model", tmp_path / "m"]
    assert "The model is no better than always predicting 3" in asked(*words)


def test_rows_held_out_are_not_learned_and_are_evaluated(tmp_path):
    frame = log(2000)
    model, summary = trained_on(tmp_path, frame, "--hold-out", "0.25", "--shuffle-buffer", "0")
    held = train_rows.drawn(np.arange(2000), 0, 0) < 0.25
    assert summary["rows"] == 2000 - held.sum()
    assert summary["held_out"]["rows"] == held.sum()
    assert load(model).training["held_out"] == summary["held_out"]
    kept, rest = (frame.filter(pl.Series(mask)) for mask in (held, ~held))
    assert -load(model).score(kept) == pytest.approx(summary["held_out"]["mae"])
    base = load(model)
    fresh = load(model)
    fresh.learner = make_learner(base.kind, base.parameters, base.recipe.n_features, 4)
    fresh.partial_fit(rest)
    assert (fresh.learner.memory == base.learner.memory).all()


# -- learners ----------------------------------------------------------------------------------


def test_a_kernel_learns_what_a_line_cannot(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    ring = pl.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "grade": np.digitize(np.hypot(*X.T), [0.8, 1.5])}
    )
    line, _ = trained_on(tmp_path, ring, name="line")
    curved, _ = trained_on(tmp_path, ring, "--learner", "kernel", name="curved")
    assert load(line).score(ring) < -0.4
    assert load(curved).score(ring) > -0.15
    assert load(curved).estimator.support_vectors_.shape[0] <= 500
    small, _ = trained_on(tmp_path, ring, "--learner", "kernel", "--budget", "20", name="small")
    assert load(small).estimator.support_vectors_.shape[0] == 20
    assert "KernelOrdinalPA" in asked("info", curved)


def test_the_svm_of_a_file_is_that_of_the_library(tmp_path):
    frame = log(800)
    model, summary = trained_on(tmp_path, frame, "--learner", "svm", "--C", "0.5")
    found = load(model)
    X = found.prepared(as_batch(frame, found.recipe)[0])
    expected = OrdinalSVM(C=0.5).fit(X, frame["grade"].to_numpy())
    np.testing.assert_allclose(found.learner.weights, expected.coef_, rtol=1e-9)
    assert found.estimator.duality_gap_ <= 1e-3
    assert summary["mae"] == []
    assert summary["fitted_mae"] == pytest.approx(-found.score(frame))


def test_the_svm_refuses_rows_that_do_not_fit_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "memory_limit", lambda: 1000.0)
    log(800).write_csv(tmp_path / "a.csv")
    words = ["train", tmp_path / "a.csv", "--label", "grade", "--model", tmp_path / "m"]
    answer = asked(*words, "--learner", "svm", code=1)
    assert "the svm needs all rows in memory, about 0.0 GB" in answer
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--learner", "svm", "--variant", "PA"], "the learner svm has no parameter variant"),
        (["--learner", "svm", "--passes", "2"], "--passes cannot be given with --learner svm"),
        (["--budget", "3"], "the learner pa has no parameter budget"),
        (["--learner", "kernel", "--loss", "hinge"], "the learner kernel has no parameter loss"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path, words, told):
    log(100).write_csv(tmp_path / "a.csv")
    start = ["train", tmp_path / "a.csv", "--label", "grade", "--model", tmp_path / "m"]
    assert told in asked(*start, *words, code=1)


# -- labels ------------------------------------------------------------------------------------


def test_labels_as_people_write_them_are_one_model(tmp_path):
    frame = log(400)
    forms = {
        1: ["1", "under 2", "<2"],
        2: ["2", "2.0"],
        3: ["3", "3 to 3"],
        4: [">3", "4+", "at least 4"],
    }
    rng = np.random.default_rng(0)
    written = [rng.choice(forms[grade]) for grade in frame["grade"]]
    plain, _ = trained_on(tmp_path, frame, name="plain")
    mixed, _ = trained_on(tmp_path, frame.with_columns(grade=pl.Series(written)), name="mixed")
    assert (load(plain).learner.memory == load(mixed).learner.memory).all()


def test_german_school_grades_are_numbers(tmp_path):
    frame = log(400)
    marks = {1: "1,0", 2: "1,3", 3: "1,7", 4: "2,0"}
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";")
    writer.writerow(frame.columns)
    for row in frame.iter_rows():
        writer.writerow([*(str(v).replace(".", ",") for v in row[:-1]), marks[row[-1]]])
    (tmp_path / "a.csv").write_text(text.getvalue())
    model, summary = trained(tmp_path / "a.csv")
    assert summary["classes"] == [1.0, 1.3, 1.7, 2.0]
    assert load(model).recipe.numbers == ("x0", "x1", "x2")


# -- what is in the columns --------------------------------------------------------------------


def noted(path, *words):
    return trained(path, *words, "--overwrite")[1]["notes"]


def test_a_column_of_the_grades_themselves_is_noted(tmp_path):
    names = pl.Series(["low", "mid", "high"])
    frame = log(300).with_columns(names[pl.Series(range(300)) % 3].alias("grade"))
    frame = frame.with_columns(anna="grade", ben=frame["grade"].replace("high", "mid"))
    frame.write_csv(tmp_path / "a.csv")
    grades = ("--grades", "low,mid,high")
    note = "column 'anna' holds the grades themselves; if it is another label, leave it out with"
    assert [n for n in noted(tmp_path / "a.csv", *grades) if "grades" in n] == [
        f"{note} --drop anna"
    ]
    assert not [n for n in noted(tmp_path / "a.csv", *grades, "--drop", "anna") if "grades" in n]


def test_codes_with_leading_zeros_are_noted(tmp_path):
    codes = [f"{1000 * (i % 9) + 10:05}" for i in range(300)]
    log(300).with_columns(zip=pl.Series(codes)).write_csv(tmp_path / "a.csv")
    note = "read as numbers, with leading zeros: zip; if these are codes, give --text zip"
    assert note in noted(tmp_path / "a.csv")
    assert not [n for n in noted(tmp_path / "a.csv", "--text", "zip") if "zeros" in n]


@pytest.mark.parametrize(("repeated", "left_out"), [(0, "every"), (1, "nearly every"), (30, "")])
def test_an_id_that_some_rows_repeat_is_left_out(tmp_path, repeated, left_out):
    ids = [f"order {max(i, repeated)}" for i in range(1200)]
    log(1200).with_columns(pl.Series("order", ids)).write_csv(tmp_path / "a.csv")
    reason = trained(tmp_path / "a.csv")[1]["left_out"].get("order", "")
    assert reason == (left_out and f"{left_out} value is different, like an id")


def test_a_continued_training_says_how_it_reads_the_file(tmp_path):
    frame = log(300)
    frame.write_csv(tmp_path / "a.csv")
    model, _ = trained(tmp_path / "a.csv")
    text = frame.write_csv(separator=";").replace(".", ",").replace("north", "nörth")
    (tmp_path / "b.csv").write_bytes(text.encode("cp1252"))
    told = asked("train", tmp_path / "b.csv", "--from", model, "--model", tmp_path / "n")
    for note in ("Windows-1252", "fields are separated by", "read as numbers: x0"):
        assert note in told
    (tmp_path / "c.csv").write_text("x0,x1,x2,place,grade\n")
    words = ("train", tmp_path / "c.csv", "--from", model, "--model", tmp_path / "o")
    assert "c.csv: the file has a header but no rows" in asked(*words, code=1)


def test_mistyped_columns_are_suggested(tmp_path):
    log(300).write_csv(tmp_path / "a.csv")
    words = ("train", tmp_path / "a.csv", "--model", tmp_path / "m")
    assert "; did you mean 'grade'?" in asked(*words, "--label", "Grade", code=1)
    for name in ("--features", "--drop", "--text"):
        told = asked(*words, "--label", "grade", name, "plcae", code=1)
        assert "no column 'plcae'" in told
        assert "; did you mean 'place'?" in told
    model, _ = trained(tmp_path / "a.csv")
    told = asked("predict", tmp_path / "a.csv", "--model", model, "--keep", "plcae", code=1)
    assert "; did you mean 'place'?" in told
    told = asked("evaluate", tmp_path / "a.csv", "--model", model, "--label", "grad", code=1)
    assert "; did you mean 'grade'?" in told
