"""Every number of ordspan evaluate is what scikit-learn finds on the whole data in memory."""

import json
import os
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk
from sklearn.dummy import DummyClassifier, DummyRegressor
from typer.testing import CliRunner

import ordspan
from browser import check_stands_alone, try_page
from ordspan import OrdinalPA, metrics, modelfile
from ordspan.cli import app
from ordspan.commands import evaluate as module
from ordspan.commands import queries
from ordspan.commands.evaluate import EvaluateJob, evaluate
from ordspan.commands.evaluate_plots import margin_plot
from ordspan.commands.queries import Query, QueryTally, SeenNames, dcg, gains
from ordspan.commands.tally import LabelCounts, Sample, Tally, compared, kappa
from ordspan.commands.train import TrainJob, train
from ordspan.core.losses import distance
from ordspan.drawing import label_heights, spread
from ordspan.files import arrow_file, text

N_ROWS, N_CLASSES = 600, 5
TIMED = ("seconds", "rows_per_second", "files", "page")
FEATURES = ["size", "age", "town"]
PLOTS = ["scores", "confusion", "errors", "margins", "reliability", "coverage", "widths"]


def make_frame():
    """Rows of queries of 1 to 30 rows; scores tie often, and some queries have grade 0 alone."""
    random = np.random.default_rng(5)
    query = np.repeat(np.arange(200), random.integers(1, 31, size=200))[:N_ROWS]
    size = random.integers(-2, 3, size=N_ROWS).astype(float)
    age = random.integers(0, 3, size=N_ROWS).astype(float)
    town = random.choice(["Rome", "Oslo"], size=N_ROWS)
    score = 1.5 * size + age + (town == "Rome") + random.normal(size=N_ROWS)
    grade = np.digitize(score, [-2.0, 0.5, 2.0, 4.0])
    grade[query % 7 == 3] = 0
    low = np.where(random.random(N_ROWS) < 0.5, grade, np.maximum(0, grade - 1))
    high = np.where(low == grade, grade, np.minimum(N_CLASSES - 1, grade + 1))
    ranges = [str(a) if a == b else f"{a}-{b}" for a, b in zip(low, high, strict=True)]
    return pd.DataFrame(
        {
            "query": [f"q{number}" for number in query],
            **dict(zip(FEATURES, (size, age, town), strict=True)),
            "grade": grade,
            "low": low,
            "high": high,
            "range": ranges,
        }
    )


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The rows in files of every format, and models of columns and of sparse rows."""
    folder = tmp_path_factory.mktemp("evaluate")
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_csv(folder / "rows.csv.gz", index=False)
    frame.to_parquet(folder / "rows.parquet", index=False)
    frame.to_json(folder / "rows.jsonl", orient="records", lines=True)
    frame[:250].to_csv(folder / "first.csv", index=False)
    frame[250:].to_csv(folder / "rest.csv", index=False)
    sparse = [
        f"{grade} qid:{query[1:]} 1:{size} 2:{age}"
        for grade, query, size, age in frame[["grade", "query", "size", "age"]].to_numpy().tolist()
    ]
    (folder / "rows.txt").write_text("\n".join(sparse) + "\n")
    files = [str(folder / "rows.csv")]
    train(TrainJob(files, label="grade", features=FEATURES), folder / "model")
    strict = TrainJob(files, label="grade", features=FEATURES, missing="error")
    train(strict, folder / "strict")
    train(TrainJob([str(folder / "rows.txt")]), folder / "sparse")
    return folder


@pytest.fixture(scope="module")
def predicted(folder, frame):
    return ordspan.load(folder / "model").predict(frame)


def found_in(folder, *names, model="model", page=None, **options):
    """An evaluation without what differs from run to run."""
    job = EvaluateJob([str(folder / name) for name in names], folder / model, **options)
    found = evaluate(job, page=page)
    return {key: value for key, value in found.items() if key not in TIMED}


def ask(*words):
    return CliRunner().invoke(app, ["evaluate", *map(str, words)])


def by_query(names, grades, scores):
    """Mean NDCG of scikit-learn over queries with a relevant row, and the number of the others."""
    values, without = [], 0
    for name in dict.fromkeys(names):
        rows = np.asarray(names) == name
        gain, score = 2.0 ** np.asarray(grades)[rows] - 1, np.asarray(scores)[rows]
        if not gain.any():
            without += 1
        elif rows.sum() == 1:
            values.append([1.0] * 3)  # scikit-learn refuses a single row, whose order is the best
        else:
            values.append([sk.ndcg_score([gain], [score], k=k) for k in (1, 5, 10)])
    return np.mean(values, axis=0), without


def test_measures_of_exact_labels(folder, frame, predicted):
    true = frame["grade"].to_numpy()
    found = found_in(folder, "rows.csv")
    assert (found["rows"], found["exact_rows"], found["range_rows"]) == (N_ROWS, N_ROWS, 0)
    assert found["mae"] == pytest.approx(sk.mean_absolute_error(true, predicted), rel=1e-14)
    assert found["accuracy"] == found["inside_interval"] == sk.accuracy_score(true, predicted)
    expected = sk.cohen_kappa_score(true, predicted, weights="quadratic")
    assert found["quadratic_kappa"] == pytest.approx(expected, rel=1e-12)
    of_grades = [
        sk.mean_absolute_error(true[true == grade], predicted[true == grade])
        for grade in range(N_CLASSES)
    ]
    assert found["macro_mae"] == pytest.approx(np.mean(of_grades), rel=1e-14)
    assert [row["mae"] for row in found["by_grade"]] == pytest.approx(of_grades, rel=1e-14)
    assert found["confusion"] == sk.confusion_matrix(true, predicted).tolist()
    assert 0 < found["accuracy"] < 1
    assert found["ndcg"] is None


def constants(labels, grades, measure):
    """A measure of every constant prediction, by definition."""
    return [measure(labels, np.full(len(labels), grade), classes=grades) for grade in grades]


@pytest.mark.parametrize("columns", [{"label": "grade"}, {"label": "range"}])
def test_the_best_constant_is_the_best_of_all_constants(folder, frame, columns):
    names = ["grade", "grade"] if columns["label"] == "grade" else ["low", "high"]
    ends, grades = frame[names].to_numpy(), range(N_CLASSES)
    exact = ends[ends[:, 0] == ends[:, 1], 0]
    best = found_in(folder, "rows.csv", **columns)["best_constant"]
    for name, labels, measure, choose in (
        ("mae", ends, metrics.mean_absolute_error, np.argmin),
        ("macro_mae", exact, metrics.macro_mean_absolute_error, np.argmin),
        ("accuracy", exact, metrics.accuracy, np.argmax),
        ("inside_interval", ends, metrics.inside_interval, np.argmax),
    ):
        values = np.round(constants(labels, grades, measure), 12)  # equals stay equal
        assert best[name]["grade"] == choose(values)
        assert best[name]["value"] == pytest.approx(values[choose(values)], abs=1e-12)
    assert constants(exact, grades, metrics.quadratic_weighted_kappa) == pytest.approx([0.0] * 5)
    assert best["quadratic_kappa"] == {"grade": None, "value": 0.0}


def test_the_best_constants_of_exact_labels_are_those_of_scikit_learn(folder, frame):
    true = frame["grade"].to_numpy()
    rows = np.zeros((N_ROWS, 1))
    best = found_in(folder, "rows.csv")["best_constant"]
    mode = DummyClassifier(strategy="most_frequent").fit(rows, true)
    assert best["accuracy"]["grade"] == mode.predict(rows[:1])[0]
    assert best["accuracy"]["value"] == mode.score(rows, true)
    median = DummyRegressor(strategy="median").fit(rows, true).predict(rows)
    assert best["mae"]["grade"] == median[0]
    assert best["mae"]["value"] == pytest.approx(sk.mean_absolute_error(true, median), rel=1e-14)


@pytest.mark.parametrize("seed", range(30))
def test_label_counts_in_parts_find_the_best_of_all_constants(seed):
    random = np.random.default_rng(seed)
    n_classes, n_rows = int(random.integers(2, 8)), int(random.integers(1, 40))
    ends = np.sort(random.integers(1, n_classes + 1, size=(n_rows, 2)))
    ends[random.random(n_rows) < 0.3, 1] = n_classes
    parts = np.array_split(ends, 3)
    labels, others = LabelCounts(n_classes), LabelCounts(n_classes)
    for counts, part in zip((labels, labels, others), parts, strict=True):
        counts.add(*part.T)
    labels = LabelCounts.from_dict(json.loads(json.dumps(labels.to_dict())))
    labels.merge(others)
    assert labels.rows == n_rows
    ranks = range(1, n_classes + 1)
    errors = [distance(rank, *ends.T) for rank in ranks]
    totals = [int(error.sum()) for error in errors]
    assert labels.best_mae() == (np.argmin(totals) + 1, min(totals) / n_rows)
    inside = [int((error == 0).sum()) for error in errors]
    assert labels.best()["inside_interval"] == (np.argmax(inside) + 1, max(inside) / n_rows)
    exact = ends[ends[:, 0] == ends[:, 1], 0]
    best = labels.best()
    if not exact.size:
        assert best["accuracy"] is best["macro_mae"] is best["quadratic_kappa"] is None
        return
    assert best["accuracy"].value == max(constants(exact, ranks, metrics.accuracy))
    macro = min(constants(exact, ranks, metrics.macro_mean_absolute_error))
    assert best["macro_mae"].value == pytest.approx(macro, rel=1e-14)
    kappa = max(constants(exact, ranks, metrics.quadratic_weighted_kappa))
    assert best["quadratic_kappa"].value == pytest.approx(kappa, abs=1e-12)


@pytest.fixture(scope="module")
def shuffled(folder, frame, tmp_path_factory):
    """Labels that have nothing to do with the features."""
    path = tmp_path_factory.mktemp("shuffled") / "rows.csv"
    grades = np.random.default_rng(0).permutation(frame["grade"])
    frame.assign(grade=grades).to_csv(path, index=False)
    return path


def test_a_model_that_is_no_better_than_a_constant_is_said_to_be(folder, shuffled, tmp_path):
    page = tmp_path / "page.html"
    words = [shuffled, "--model", folder / "model", "--html", page]
    found = json.loads(ask(*words, "--json").stdout)
    best = found["best_constant"]["mae"]
    assert found["mae"] > best["value"]
    assert found["better_than_constant"] is False
    sentence = f"The model is no better than always predicting {best['grade']}: MAE"
    assert sentence in ask(*words).stdout
    assert f'<p class="verdict bad" role="note">{sentence}' in page.read_text("utf-8")


def test_how_much_better_than_a_constant_a_model_is(folder, tmp_path):
    page = tmp_path / "page.html"
    words = [folder / "rows.csv", "--model", folder / "model", "--html", page]
    found = json.loads(ask(*words, "--json").stdout)
    best = found["best_constant"]["mae"]
    assert found["better_than_constant"] is True
    percent = round(100 * (1 - found["mae"] / best["value"]))
    sentence = (
        f"MAE {found['mae']:.4f}, against {best['value']:.4f} by always predicting "
        f"{best['grade']}: {percent} % less."
    )
    assert sentence in ask(*words).stdout.splitlines()
    text = page.read_text("utf-8")
    assert f'<p class="verdict good" role="note">{sentence}</p>' in text
    constant = f"best constant: {best['value']:.3f} (always {best['grade']})"
    assert f'<span class="constant">{constant}</span>' in text


def test_labels_that_one_grade_satisfies_show_nothing():
    assert compared(0.0, 0.0, 3).startswith("These rows cannot show whether the model is any good")
    assert "hardly better" in compared(0.995, 1.0, 3)
    assert "no better" in compared(1.0, 1.0, 3)


def test_shares_of_every_grade(folder, frame, predicted):
    true = frame["grade"].to_numpy()
    for row in found_in(folder, "rows.csv")["by_grade"]:
        of_grade = predicted[true == row["grade"]]
        assert row["rows"] == of_grade.size
        assert row["too_low"] == np.mean(of_grade < row["grade"])
        assert row["right"] == np.mean(of_grade == row["grade"])
        assert row["too_high"] == np.mean(of_grade > row["grade"])


@pytest.mark.parametrize("columns", [{"label": "range"}, {"lower": "low", "upper": "high"}])
def test_measures_of_intervals(folder, frame, predicted, columns):
    ends = frame[["low", "high"]].to_numpy()
    exact = ends[:, 0] == ends[:, 1]
    found = found_in(folder, "rows.csv", **columns)
    assert found["exact_rows"] == exact.sum()
    assert found["range_rows"] == (~exact).sum()
    close = {"rel": 1e-12}
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(ends, predicted), **close)
    assert found["inside_interval"] == metrics.inside_interval(ends, predicted)
    for name, measure in (
        ("macro_mae", metrics.macro_mean_absolute_error),
        ("accuracy", metrics.accuracy),
        ("quadratic_kappa", metrics.quadratic_weighted_kappa),
    ):
        expected = measure(ends[exact, 0], predicted[exact])
        assert found[name] == pytest.approx(expected, **close)
    assert found["confusion"] == sk.confusion_matrix(ends[exact, 0], predicted[exact]).tolist()


def test_without_exact_labels_their_measures_are_none(folder, tmp_path, frame):
    wide = frame.assign(low=0, high=frame["high"].where(frame["high"] > 0, 1))
    wide.to_csv(tmp_path / "wide.csv", index=False)
    words = [tmp_path / "wide.csv", "--model", folder / "model", "--lower", "low", "--upper"]
    page = tmp_path / "page.html"
    answer = ask(*words, "high", "--json", "--html", page)
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert found["exact_rows"] == 0
    assert found["macro_mae"] is found["accuracy"] is found["quadratic_kappa"] is None
    assert found["mae"] >= 0
    table = ask(*words, "high").stdout
    assert re.search(r"accuracy\s*│\s*– │ –\s*│ 0 exact labels", table)
    assert "<section hidden>\n<h2>True and predicted grades" in page.read_text("utf-8")


def test_ndcg_by_query_is_that_of_scikit_learn(folder, frame):
    score = ordspan.load(folder / "model").latent(frame)
    assert np.unique(score).size < N_ROWS / 5  # so there are many ties
    expected, without = by_query(frame["query"], frame["grade"], score)
    found = found_in(folder, "rows.csv", group="query")["ndcg"]
    assert [found[f"ndcg@{k}"] for k in (1, 5, 10)] == pytest.approx(expected, rel=1e-12)
    assert found["queries_without_relevant_rows"] == without > 0
    assert found["queries"] == frame["query"].nunique()


def test_rows_with_a_range_are_left_out_of_the_order(folder, frame):
    score = ordspan.load(folder / "model").latent(frame)
    exact = (frame["low"] == frame["high"]).to_numpy()
    expected, _ = by_query(frame["query"][exact], frame["low"][exact], score[exact])
    found = found_in(folder, "rows.csv", group="query", label="range")["ndcg"]
    assert [found[f"ndcg@{k}"] for k in (1, 5, 10)] == pytest.approx(expected, rel=1e-12)
    assert found["queries"] == frame["query"].nunique()


@pytest.mark.parametrize("seed", range(20))
def test_a_query_in_parts_is_the_whole_query(seed):
    random = np.random.default_rng(seed)
    n_rows = int(random.integers(2, 60))
    score = random.integers(0, random.integers(1, 40), size=n_rows).astype(float)
    rank = random.integers(1, N_CLASSES + 1, size=n_rows)
    rank[0] = 2  # at least one is relevant
    query = Query("one", gains(N_CLASSES))
    cuts = np.sort(random.integers(0, n_rows, size=4))
    for part in np.split(np.arange(n_rows), cuts):
        query.add(score[part], rank[part])
    expected = [sk.ndcg_score([2.0 ** (rank - 1) - 1], [score], k=k) for k in (1, 5, 10)]
    np.testing.assert_allclose(query.ndcg(), expected, rtol=1e-12)


def test_a_query_keeps_no_more_than_ten_scores():
    query = Query("long", gains(3))
    for part in np.random.default_rng(0).normal(size=(10, 1000)):
        query.add(part, np.full(1000, 2))
    assert query._scores.size == query._counts.size == query._gains.size == 10


def test_gains_of_very_many_grades_do_not_overflow():
    gain = gains(3000)
    assert np.isfinite(gain).all()
    assert dcg(gain[::-1], np.ones(3000, dtype=int))[0] == pytest.approx(1.0)


def test_qids_of_svmlight_files_are_queries(folder, frame):
    model = ordspan.load(folder / "sparse")
    score = model.latent(frame[["size", "age"]].to_numpy())
    expected, _ = by_query(frame["query"], frame["grade"], score)
    found = found_in(folder, "rows.txt", model="sparse")
    assert found["group"] == "qid"
    assert [found["ndcg"][f"ndcg@{k}"] for k in (1, 5, 10)] == pytest.approx(expected, rel=1e-12)
    again = found_in(folder, "rows.txt", model="sparse", group="qid", label="label")
    assert again == found


def test_svmlight_rows_without_qid_have_no_ndcg(folder, tmp_path):
    text = re.sub(r" qid:\d+", "", (folder / "rows.txt").read_text())
    (tmp_path / "plain.txt").write_text(text)
    found = evaluate(EvaluateJob([str(tmp_path / "plain.txt")], folder / "sparse"))
    assert found["ndcg"] is found["group"] is None
    both = [str(folder / "rows.txt"), str(tmp_path / "plain.txt")]
    with pytest.raises(ValueError, match=r"plain.txt, line 1 and after: no qid here"):
        evaluate(EvaluateJob(both, folder / "sparse"))
    with pytest.raises(ValueError, match=r"rows.txt, line 1 and after: a qid here"):
        evaluate(EvaluateJob(both[::-1], folder / "sparse"))


@pytest.mark.parametrize(
    "names", [["rows.csv.gz"], ["rows.parquet"], ["rows.jsonl"], ["first.csv", "rest.csv"]]
)
def test_every_format_gives_the_same(folder, names):
    options = {"label": "range", "group": "query"}
    assert found_in(folder, *names, **options) == found_in(folder, "rows.csv", **options)


@pytest.mark.parametrize(("name", "model"), [("rows.csv", "model"), ("rows.txt", "sparse")])
def test_small_chunks_give_the_same_numbers_and_the_same_page(
    folder, tmp_path, monkeypatch, name, model
):
    options = {"model": model, "group": "query" if model == "model" else None}
    monkeypatch.setattr(module, "SAMPLE_SIZE", 300)
    whole = found_in(folder, name, page=tmp_path / "whole.html", **options)
    monkeypatch.setattr(text, "BLOCK_BYTES", 200)
    pieces = found_in(folder, name, page=tmp_path / "pieces.html", **options)
    assert pieces == whole
    assert (tmp_path / "pieces.html").read_bytes() == (tmp_path / "whole.html").read_bytes()


def test_small_batches_of_parquet_give_the_same(folder, monkeypatch):
    whole = found_in(folder, "rows.parquet", group="query")
    monkeypatch.setattr(arrow_file, "MAX_ROWS", 7)
    assert found_in(folder, "rows.parquet", group="query") == whole


def test_a_sample_is_whole_while_it_has_room_and_even_after():
    grade = np.repeat([0, 1, 2], [5, 50, 4000])
    sample = Sample(2, 50)
    score = np.arange(grade.size, dtype=float)
    for part in np.array_split(np.arange(grade.size), 37):
        sample.add(grade[part], score[part], score[part], np.zeros(part.size, dtype=int))
    assert np.sort(sample.of(0)["score"]).tolist() == list(range(5))
    assert np.sort(sample.of(1)["score"]).tolist() == list(range(5, 55))
    drawn = sample.of(2)["score"]
    assert drawn.size == np.unique(drawn).size == 50
    # the mean of 50 draws from 4000 lies within four standard errors of the middle
    assert abs(drawn.mean() - score[grade == 2].mean()) < 4 * 4000 / np.sqrt(12 * 50)


def test_kappa_of_one_constant_is_perfect():
    assert kappa(np.diag([0, 7, 0])) == 1.0 == metrics.quadratic_weighted_kappa([2] * 7, [2] * 7)


def test_names_are_remembered_across_merges(monkeypatch):
    monkeypatch.setattr(queries, "SEEN_AT_ONCE", 8)
    seen = SeenNames()
    names = [f"query {number}" for number in range(100)]
    assert all(seen.add(name) for name in names)
    assert not any(seen.add(name) for name in names)
    assert seen._old.size == 96
    assert seen.add("another")


def test_a_query_that_comes_back_is_named_with_its_line(folder, frame, tmp_path, monkeypatch):
    mixed = pd.concat([frame, frame[:1]])
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    words = [tmp_path / "mixed.csv", "--model", folder / "model", "--group", "query"]
    for block in (1 << 22, 100):
        monkeypatch.setattr(text, "BLOCK_BYTES", block)
        answer = ask(*words, "--html", tmp_path / "page.html")
        assert answer.exit_code == 1
        assert f"mixed.csv, line {N_ROWS + 2}: query 'q0' appears again" in answer.output
        assert "sort the rows by query" in answer.output
        assert not (tmp_path / "page.html").exists()


def test_labels_are_those_of_the_training_unless_named(folder, frame, tmp_path):
    frame.rename(columns={"grade": "stars"}).to_csv(tmp_path / "renamed.csv", index=False)
    words = [tmp_path / "renamed.csv", "--model", folder / "model"]
    answer = ask(*words)
    assert answer.exit_code == 1
    assert (
        "renamed.csv: no column 'grade', the label column used in training; the columns are"
        in answer.output
    )
    assert "--label" in answer.output
    assert ask(*words, "--label", "stars").exit_code == 0


def spoil(frame, column, value, row=3):
    spoilt = frame.astype(object)
    spoilt.loc[row, column] = value
    return spoilt


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (
            "grade",
            9,
            r"line 5: column 'grade' holds '9': grade '9' is not among the model's \[0, 1, 2",
        ),
        ("grade", "", "line 5: column 'grade' holds '': the label is empty"),
        ("size", "tall", "line 5: column 'size' holds 'tall', not a number"),
        ("age", "", "line 5: column 'age' is empty or NaN"),
        ("query", " ", "line 5: column 'query' is empty; fill it"),
    ],
)
def test_a_bad_row_is_named_or_skipped_and_counted(folder, frame, tmp_path, column, value, message):
    spoil(frame, column, value).to_csv(tmp_path / "bad.csv", index=False)
    page = tmp_path / "page.html"
    words = [tmp_path / "bad.csv", "--model", folder / "strict", "--group", "query", "--html", page]
    answer = ask(*words)
    assert answer.exit_code == 1
    assert re.search(rf"error: .*bad\.csv, {message}", answer.output)
    assert not page.exists()
    answer = ask(*words, "--on-bad-row", "skip", "--json")
    found = json.loads(answer.stdout)
    assert (found["skipped"], found["rows"]) == (1, N_ROWS - 1)
    assert re.search(message, found["skipped_examples"][0])
    frame.drop(index=3).to_csv(tmp_path / "good.csv", index=False)
    good = evaluate(EvaluateJob([str(tmp_path / "good.csv")], folder / "strict", group="query"))
    for name in ("mae", "confusion", "ndcg", "quadratic_kappa"):
        assert found[name] == good[name]
    assert "1 bad row was skipped, such as:" in ask(*words, "--on-bad-row", "skip").stdout
    assert "Rows skipped</dt><dd>1, such as" in page.read_text("utf-8")


def test_a_missing_number_counts_as_its_mean(folder, frame, tmp_path):
    spoil(frame, "age", "").to_csv(tmp_path / "gap.csv", index=False)
    spoil(frame, "age", frame["age"].mean()).to_csv(tmp_path / "mean.csv", index=False)
    gap, mean = (
        found_in(tmp_path, name, model=folder / "model") for name in ("gap.csv", "mean.csv")
    )
    assert (gap["rows"], gap["skipped"]) == (N_ROWS, 0)
    assert gap["confusion"] == mean["confusion"]


def test_many_bad_rows_are_an_error_unless_they_are_allowed(folder, frame, tmp_path):
    bad = frame.assign(grade=frame["grade"].where(np.arange(N_ROWS) % 3 > 0, 77))
    bad.to_csv(tmp_path / "bad.csv", index=False)
    words = [tmp_path / "bad.csv", "--model", folder / "model", "--on-bad-row", "skip"]
    answer = ask(*words)
    assert answer.exit_code == 1
    assert f"of {N_ROWS} rows (33.3%) cannot be used" in answer.output
    assert "--allow-skipped 0.34" in answer.output
    answer = ask(*words, "--allow-skipped", "0.34", "--json")
    assert json.loads(answer.stdout)["skipped"] == -(-N_ROWS // 3)


def test_nothing_but_bad_rows_is_an_error(folder, frame, tmp_path):
    frame.assign(grade=77).to_csv(tmp_path / "bad.csv", index=False)
    answer = ask(tmp_path / "bad.csv", "--model", folder / "model", "--on-bad-row", "skip")
    assert answer.exit_code == 1
    assert f"no usable row; {N_ROWS} skipped, the first: " in answer.output


def test_models_that_cannot_grade_files_are_refused(folder, tmp_path, monkeypatch):
    ordspan.save(OrdinalPA().fit([[0.0], [1.0], [2.0]], [1, 2, 3]), tmp_path / "python")
    content = (folder / "model").read_bytes()
    (tmp_path / "damaged").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (tmp_path / "short").write_bytes(content[:100])
    fitted = ordspan.load(folder / "model")
    with monkeypatch.context() as newer:
        newer.setattr(modelfile, "FORMAT_VERSION", 99)
        ordspan.save(fitted, tmp_path / "newer")
    for name, message in {
        "python": "holds an estimator (OrdinalPA) that was saved from Python, without the columns",
        "damaged": "damaged is damaged: its checksum does not match",
        "short": "short is not an ordspan model file, or it is damaged or truncated",
        "newer": "newer has model format 99, this ordspan reads up to 3; upgrade ordspan",
        "missing": "missing: no such model file; ordspan train writes one",
    }.items():
        answer = ask(folder / "rows.csv", "--model", tmp_path / name)
        assert answer.exit_code == 1
        assert message in answer.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rows.csv", "--model", "model", "--html", "none/page.html"], "none: no such folder"),
        (
            ["rows.csv", "--model", "model", "--html", "rows.csv"],
            "unknown file extension '.csv'; choose .html",
        ),
        (["rows.csv", "--model", "model", "--html", "model"], "choose .html or .htm"),
        (
            ["rows.csv", "--model", "model", "--group", "q"],
            "no column 'q'; the columns are query, size",
        ),
        (
            ["rows.csv", "--model", "model", "--label", "x"],
            "no column 'x'; the columns are query, size",
        ),
        (["rows.csv", "--model", "model", "--label", "a", "--lower", "b"], "give either a label"),
        (
            ["rows.csv", "--model", "model", "--lower", "low", "--upper", "low"],
            "lower and upper are both column 'low'; give it as the label column",
        ),
        (["no.csv", "--model", "model"], "no.csv: no such file"),
        (["rows.csv", "--model", "sparse"], "rows.csv: svmlight rows are expected here"),
        (["rows.txt", "--model", "model"], "svmlight rows have no named columns, but the model"),
        (["rows.txt", "--model", "sparse", "--group", "size"], "name no columns for labels"),
        (
            ["header.csv", "--model", "model"],
            "header.csv: no row to evaluate; does it contain only a header?",
        ),
        (["empty.csv", "--model", "model"], "empty.csv: the file is empty"),
        (["part.csv.gz", "--model", "model"], "part.csv.gz: damaged or truncated"),
        (["part.parquet", "--model", "model"], "part.parquet: not a Parquet file, or damaged"),
    ],
)
def test_mistakes_get_one_line_and_write_nothing(folder, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    header = (folder / "rows.csv").read_text().partition("\n")[0]
    (folder / "header.csv").write_text(header + "\n")
    (folder / "empty.csv").write_text("")
    for name in ("rows.csv.gz", "rows.parquet"):
        (folder / name.replace("rows", "part")).write_bytes((folder / name).read_bytes()[:2000])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    answer = ask(*words)
    assert answer.exit_code == 1
    assert answer.output.startswith("error: ")
    assert message in answer.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_usage_mistakes_return_2(folder):
    assert ask(folder / "rows.csv").exit_code == 2
    assert ask("--model", folder / "model").exit_code == 2


def test_a_full_disk_and_ctrl_c_leave_the_old_page(folder, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("before")
    words = [folder / "rows.csv", "--model", folder / "model", "--html", page]

    def full(handle):
        raise OSError(28, "No space left on device")

    def interrupted(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        answer = ask(*words)
        assert (answer.exit_code, page.read_text()) == (1, "before")
        assert "No space left on device" in answer.output
    monkeypatch.setattr(module, "scored", interrupted)
    answer = ask(*words)
    assert (answer.exit_code, page.read_text()) == (130, "before")
    assert list(tmp_path.iterdir()) == [page]


def test_a_model_remembers_delimiter_and_format(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.data", index=False, sep="\t")
    words = f"{tmp_path / 'rows.data'} --model {tmp_path / 'model'}".split()
    options = ["--label", "grade", "--features", "size,age,town", "--format", "csv"]
    trained = CliRunner().invoke(app, ["train", *words, *options, "--delimiter", "tab"])
    assert trained.exit_code == 0, trained.output
    assert ask(*words).exit_code == 0
    frame.to_csv(tmp_path / "rows.csv", index=False)
    answer = ask(tmp_path / "rows.csv", *words[1:], "--delimiter", ",")
    assert answer.exit_code == 0, answer.output


def test_tables_and_json_say_the_same(folder):
    words = [folder / "rows.csv", "--model", folder / "model", "--group", "query"]
    found = json.loads(ask(*words, "--json").stdout)
    output = ask(*words).stdout
    lines = re.findall(r"│ ([\w@ ]+?)\s*│ (\d\.\d{4}) │ (\S.*?)\s*│", output)
    best = {name: (best["grade"], best["value"]) for name, best in found["best_constant"].items()}
    probable = found["probabilities"]
    constant = probable["best_constant"]
    assert {name: shown for name, _, shown in lines} == {
        "MAE": "{1:.4f} (always {0})".format(*best["mae"]),
        "macro MAE": "{1:.4f} (always {0})".format(*best["macro_mae"]),
        "accuracy": "{1:.4f} (always {0})".format(*best["accuracy"]),
        "inside the range": "{1:.4f} (always {0})".format(*best["inside_interval"]),
        "quadratic kappa": "0.0000 (any grade)",
        "RPS": f"{constant['rps']:.4f} (same for all)",
        "log score": f"{constant['log_score']:.4f} (same for all)",
        **{f"NDCG@{k}": "–" for k in (1, 5, 10)},
    }
    assert {name: value for name, value, _ in lines} == {
        "MAE": f"{found['mae']:.4f}",
        "macro MAE": f"{found['macro_mae']:.4f}",
        "accuracy": f"{found['accuracy']:.4f}",
        "inside the range": f"{found['inside_interval']:.4f}",
        "quadratic kappa": f"{found['quadratic_kappa']:.4f}",
        "RPS": f"{probable['rps']:.4f}",
        "log score": f"{probable['log_score']:.4f}",
        **{f"NDCG@{k}": f"{found['ndcg'][f'ndcg@{k}']:.4f}" for k in (1, 5, 10)},
    }
    rows = [re.findall(r"\d+", line)[1:] for line in output.splitlines() if "│ " in line]
    matrix = [[int(count) for count in row] for row in rows[-N_CLASSES:]]
    assert matrix == found["confusion"]


def test_a_wide_confusion_matrix_is_not_printed(tmp_path):
    rows = [f"{value},{value}" for value in range(20)] * 5
    (tmp_path / "wide.csv").write_text("\n".join(["size,grade", *rows]))
    train(TrainJob([str(tmp_path / "wide.csv")], label="grade"), tmp_path / "model")
    page = tmp_path / "page.html"
    answer = ask(tmp_path / "wide.csv", "--model", tmp_path / "model", "--html", page)
    assert "confusion matrix of 20 grades is too wide to print" in answer.stdout
    assert page_data(page.read_text("utf-8"))["confusion"]["traces"][0]["showscale"]


def test_the_examples_of_the_help_work_when_pasted(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame[["size", "age", "grade"]].to_csv("ratings.csv", index=False)
    for command in ("train", "evaluate"):
        shown = " ".join(CliRunner().invoke(app, [command, "--help"]).output.split())
        example = re.search(rf"Example: ordspan ({command} .*?\.ordspan)", shown)[1]
        answer = CliRunner().invoke(app, shlex.split(example))
        assert answer.exit_code == 0, answer.output


def page_data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


ODD = ["<b>low</b>", "mid </script><!--", "{{title}}", "very high & more"]


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    found_in(folder, "rows.csv", group="query", label="range", page=path)
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def odd_page(frame, tmp_path_factory):
    """A page whose grades have names that could break it."""
    folder = tmp_path_factory.mktemp("odd")
    named = frame.assign(grade=[ODD[min(grade, 3)] for grade in frame["grade"]])
    named.to_csv(folder / "rows.csv", index=False)
    files = [str(folder / "rows.csv")]
    train(TrainJob(files, label="grade", classes=ODD, features=["size", "age"]), folder / "model")
    evaluate(EvaluateJob(files, folder / "model"), page=folder / "page.html")
    return (folder / "page.html").read_text("utf-8")


def test_the_page_stands_alone(page):
    check_stands_alone(page)


def test_names_of_grades_cannot_break_the_page(odd_page):
    assert odd_page.count("</script>") == odd_page.count("<script") == 3
    assert "<b>low" not in odd_page
    assert "<td>{{title}}</td>" in odd_page
    names = page_data(odd_page)["confusion"]["traces"][0]["x"]
    assert names == ["&lt;b&gt;low&lt;/b&gt;", "mid &lt;/scrip…", "{{title}}", "very high &amp;…"]


def test_the_page_holds_what_was_found(folder, page):
    from plotly import graph_objects as go

    found = found_in(folder, "rows.csv", group="query", label="range")
    data = page_data(page)
    assert list(data) == [*PLOTS, "queries"]
    for plot in data.values():
        go.Figure(plot["traces"], plot["layout"])  # refuses what plotly does not know
    for name in ("mae", "macro_mae", "quadratic_kappa"):
        assert f'<span class="value">{found[name]:.3f}</span>' in page
    assert f'<span class="value">{100 * found["accuracy"]:.1f} %</span>' in page
    counts = data["confusion"]["traces"][0]["customdata"]
    assert [[int(count) for count in row] for row in counts] == found["confusion"]
    lines = [shape["y0"] for shape in data["scores"]["layout"]["shapes"]]
    assert lines == found["thresholds"]
    names = [note["text"] for note in data["scores"]["layout"]["annotations"]]
    assert names == ["0 | 1", "1 | 2", "2 | 3", "3 | 4"]
    ndcg = found["ndcg"]
    ranked = ndcg["queries"] - ndcg["queries_without_relevant_rows"]
    assert sum(data["queries"]["traces"][0]["y"]) == ranked


def test_scores_of_a_grade_are_those_of_its_rows(folder, frame, page):
    score = ordspan.load(folder / "model").latent(frame)
    low, high = frame["low"].to_numpy(), frame["high"].to_numpy()
    groups = {str(grade): (low == grade) & (high == grade) for grade in range(N_CLASSES)}
    groups["(ranges)"] = low < high
    traces = page_data(page)["scores"]["traces"]
    assert [trace["name"] for trace in traces] == list(groups)
    for trace in traces:
        expected = np.sort(score[groups[trace["name"]]])
        np.testing.assert_allclose(np.sort(trace["y"]), expected, rtol=1e-4)


def test_every_tenth_by_margin_has_its_share_right(folder, frame, predicted, page):
    model = ordspan.load(folder / "model")
    score, thresholds = model.latent(frame), model.estimator.thresholds_
    margin = np.abs(score[:, None] - thresholds).min(axis=1)
    inside = (frame["low"] <= predicted) & (predicted <= frame["high"])
    (trace,) = page_data(page)["margins"]["traces"]
    assert np.mean(trace["y"]) == pytest.approx(100 * inside.mean(), abs=0.01)
    expected = np.sort(margin).reshape(10, -1).mean(axis=1)
    np.testing.assert_allclose(trace["x"], expected, rtol=1e-4)


def test_a_grade_with_few_rows_weighs_as_few_among_the_tenths():
    tally = Tally(2, sample_size=200)
    tally.confusion[:] = [[9800, 0], [200, 0]]  # the rows of the second grade are all wrong
    tally.rows = 10_000
    grade = np.repeat([1, 2], [9800, 200])
    margin = np.random.default_rng(0).random(grade.size)
    tally.sample.add(grade, margin, margin, (grade == 2).astype(int))
    (trace,) = margin_plot(tally)["traces"]
    assert np.mean(trace["y"]) == pytest.approx(98, abs=1)  # half of the sampled rows are wrong


def test_a_grade_without_rows_does_not_count(folder, frame, predicted, tmp_path):
    some = (frame["grade"] != 3).to_numpy()
    frame[some].to_csv(tmp_path / "some.csv", index=False)
    job = EvaluateJob([str(tmp_path / "some.csv")], folder / "model")
    found = evaluate(job, page=tmp_path / "page.html")
    expected = metrics.macro_mean_absolute_error(frame["grade"][some], predicted[some])
    assert found["macro_mae"] == pytest.approx(expected, rel=1e-14)
    assert found["by_grade"][3] == {
        "grade": 3,
        "rows": 0,
        **dict.fromkeys(("mae", "too_low", "right", "too_high")),
    }
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<td>3</td><td>0</td><td>–</td><td>–</td><td>–</td><td>–</td>" in page
    traces = page_data(page)["scores"]["traces"]
    assert [trace["name"] for trace in traces] == ["0", "1", "2", "4"]


def test_names_of_thresholds_keep_their_distance_and_order():
    values = np.array([-3.0, 0.0, 0.01, 0.02, 5.0])
    moved = spread(values, 0.5)
    assert (np.diff(moved) >= 0.5 - 1e-12).all()
    assert moved[[0, 4]].tolist() == [-3.0, 5.0]
    assert moved[1:4].mean() == pytest.approx(0.01)


def test_as_many_thresholds_are_named_as_have_room():
    same = np.zeros(4)
    assert list(label_heights(same, -1.0, 1.0)) == [0, 1, 2, 3]
    many = np.linspace(-14.0, 14.0, 29)
    heights = label_heights(many, -25.0, 22.0)
    assert 5 < len(heights) < 29
    for number, height in heights.items():
        assert abs(height - many[number]) < 6
    assert len(label_heights(np.zeros(500), -1.0, 1.0)) < 10


LOOK = """
const places = [...document.querySelectorAll(".plot")];
async function tryEverything() {
  await settle();
  const found = {
    shown: places.filter(plot => plot.offsetParent).map(plot => plot.id),
    violins: count("#scores .violinlayer .trace"),
    thresholds: count("#scores .shapelayer path"),
    names: [...document.querySelectorAll("#scores .annotation-text")].map(t => t.textContent),
    cells: [...document.querySelectorAll("#confusion .heatmap-label")].map(t => t.textContent),
    ticks: [...document.querySelectorAll("#confusion .xtick text")].map(t => t.textContent),
    bars: count("#errors .point"),
    tooWide: places.filter(plot => plot.scrollWidth > plot.clientWidth + 1).map(plot => plot.id),
  };
  const widths = () => places.filter(p => p.offsetParent).map(p => p._fullLayout.width);
  const before = widths();
  window.dispatchEvent(new Event("beforeprint"));
  await settle();
  found.printed = widths();
  window.dispatchEvent(new Event("afterprint"));
  await settle();
  found.restored = JSON.stringify(before) === JSON.stringify(widths());
  return found;
}
"""


@pytest.mark.parametrize("width", [500, 1400], ids=["narrow", "wide"])
def test_the_page_works_in_a_browser(tab, page, tmp_path, width):
    seen = try_page(tab, page, LOOK, tmp_path, width)
    assert "failed" not in seen
    assert seen["problems"] == seen["requests"] == seen["tooWide"] == []
    assert seen["overflow"] == 0
    assert seen["shown"] == [*PLOTS, "queries"]
    assert (seen["violins"], seen["thresholds"]) == (N_CLASSES + 1, N_CLASSES - 1)
    assert seen["names"] == ["0 | 1", "1 | 2", "2 | 3", "3 | 4"]
    assert len(seen["cells"]) == N_CLASSES**2
    assert max(seen["printed"]) <= 680
    assert seen["restored"]


def test_odd_names_are_shown_as_they_are(tab, odd_page, tmp_path):
    seen = try_page(tab, odd_page, LOOK, tmp_path, 900)
    assert "failed" not in seen
    assert seen["problems"] == []
    assert seen["ticks"] == [ODD[0], "mid </scrip…", ODD[2], "very high &…"]
    assert seen["shown"] == PLOTS


def test_an_unusual_group_column_of_parquet(folder, frame, tmp_path):
    """Categories with gaps, and whole numbers too large for a float, are told apart."""
    large = frame.assign(
        kind=pd.Categorical(frame["query"]),
        big=[10**17 + int(name[1:]) for name in frame["query"]],
    )
    large.to_parquet(tmp_path / "rows.parquet", index=False)
    expected = found_in(folder, "rows.csv", group="query")["ndcg"]
    for group in ("kind", "big"):
        job = EvaluateJob([str(tmp_path / "rows.parquet")], folder / "model", group=group)
        assert evaluate(job)["ndcg"] == expected
    large.loc[5, "kind"] = None
    large.to_parquet(tmp_path / "rows.parquet", index=False)
    job = EvaluateJob([str(tmp_path / "rows.parquet")], folder / "model", group="kind")
    with pytest.raises(ValueError, match="row 6: column 'kind' is empty"):
        evaluate(job)


def test_a_query_may_go_on_in_the_next_file(folder, frame, tmp_path):
    whole = found_in(folder, "rows.csv", group="query")["ndcg"]
    cut = int(np.flatnonzero(frame["query"].duplicated())[3])  # within a query
    frame[:cut].to_csv(tmp_path / "a.csv", index=False)
    frame[cut:].to_csv(tmp_path / "b.csv", index=False)
    assert evaluate(EvaluateJob([str(tmp_path)], folder / "model", group="query"))["ndcg"] == whole


def test_no_query_is_relevant():
    tally = QueryTally("query", 3)
    found = tally.summary()
    assert found["ndcg@10"] is None
    assert found["queries"] == 0
