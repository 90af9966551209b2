"""Every number of ordspan evaluate is what its definition gives on the whole data in memory."""

import html
import json
import re
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics as sk

import ordspan
from commands.tables import said, summary
from ordspan import evaluate_files, metrics, train_files
from ordspan.metrics.ranks import GAP, best_probabilities
from standalone import check_stands_alone, try_page

N_ROWS, N_CLASSES = 600, 5
TIMED = ("seconds", "files", "notes", "page")
FEATURES = ["size", "age", "town"]
PLOTS = ["scores", "confusion", "errors", "margins", "reliability", "coverage", "widths"]
LABELS = [{"label": "grade"}, {"lower": "low", "upper": "high"}]
CLOSE = {"rel": 1e-12, "abs": 1e-12}


@pytest.fixture(scope="module")
def frame():
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
def folder(frame, tmp_path_factory):
    """The rows in files, and models of columns and of sparse rows."""
    folder = tmp_path_factory.mktemp("evaluate")
    frame.to_csv(folder / "rows.csv", index=False)
    sparse = [
        f"{grade} qid:{query[1:]} 1:{size} 2:{age}"
        for grade, query, size, age in frame[["grade", "query", "size", "age"]].to_numpy().tolist()
    ]
    (folder / "rows.txt").write_text("\n".join(sparse) + "\n")
    columns = {"label": "grade", "features": FEATURES}
    train_files(folder / "rows.csv", folder / "model", **columns)
    train_files(folder / "rows.txt", folder / "sparse")
    return folder


@pytest.fixture(scope="module")
def predicted(folder, frame):
    return ordspan.load(folder / "model").predict(frame)


@pytest.fixture(scope="module")
def proba(folder, frame):
    return ordspan.load(folder / "model").predict_proba(frame)


@pytest.fixture(scope="module", params=LABELS, ids=["exact", "ranges"])
def labelled(request, folder, frame):
    """Both ends of the labels, and what an evaluation on them finds."""
    names = [*request.param.values()]
    found = found_in(folder, "rows.csv", **request.param)
    return frame[[names[0], names[-1]]].to_numpy(), found


def found_in(folder, *names, model="model", **options):
    """An evaluation without what differs from run to run, or from file to file."""
    found = evaluate_files([folder / name for name in names], folder / model, **options)
    return {key: value for key, value in found.items() if key not in TIMED}


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


# -- measures ------------------------------------------------------------------------------------


def test_measures_and_best_constants_are_those_of_the_metrics(folder, labelled, predicted, proba):
    (ends, found), grades = labelled, range(N_CLASSES)
    one = ends[:, 0] == ends[:, 1]
    exact = ends[one, 0]
    assert (found["rows"], found["exact_rows"]) == (N_ROWS, one.sum())
    assert found["range_rows"] == (~one).sum()
    if found["range_rows"]:
        as_text = found_in(folder, "rows.csv", label="range")
        assert as_text | {"labels": found["labels"]} == found
    scores = {"rps": metrics.ranked_probability_score, "log_score": metrics.log_score}
    for name, measure in scores.items():
        expected = measure(ends, proba, classes=grades)
        assert found["probabilities"][name] == pytest.approx(expected, **CLOSE)
    for name, labels, answers, measure, best in (
        ("mae", ends, predicted, metrics.mean_absolute_error, np.argmin),
        ("macro_mae", exact, predicted[one], metrics.macro_mean_absolute_error, np.argmin),
        ("accuracy", exact, predicted[one], metrics.accuracy, np.argmax),
        ("inside_interval", ends, predicted, metrics.inside_interval, np.argmax),
        ("quadratic_kappa", exact, predicted[one], metrics.quadratic_weighted_kappa, None),
    ):
        assert found[name] == pytest.approx(measure(labels, answers), **CLOSE)
        constants = [measure(labels, np.full(len(labels), k), classes=grades) for k in grades]
        constants = np.round(constants, 12)  # equals stay equal
        place = None if best is None else best(constants)
        assert found["best_constant"][name]["grade"] == place
        value = 0.0 if best is None else constants[place]
        assert found["best_constant"][name]["value"] == pytest.approx(value, **CLOSE)
    kappa = sk.cohen_kappa_score(exact, predicted[one], weights="quadratic")
    assert found["quadratic_kappa"] == pytest.approx(kappa, **CLOSE)
    assert found["confusion"] == sk.confusion_matrix(exact, predicted[one]).tolist()
    assert 0 < found["accuracy"] < 1
    assert found["ndcg"] is None
    for row in found["by_grade"]:
        of_grade = predicted[one][exact == row["grade"]]
        assert row["rows"] == of_grade.size
        assert row["mae"] == pytest.approx(np.abs(of_grade - row["grade"]).mean(), **CLOSE)
        sides = [np.mean(side) for side in (of_grade < row["grade"], of_grade == row["grade"])]
        assert [row["too_low"], row["right"]] == sides
        assert row["too_high"] == np.mean(of_grade > row["grade"])


def test_whether_a_model_is_better_than_a_constant_is_said(folder, frame, tmp_path):
    grades = np.random.default_rng(0).permutation(frame["grade"])
    frame.assign(grade=grades).to_csv(tmp_path / "shuffled.csv", index=False)
    frame[frame["grade"] == 0].to_csv(tmp_path / "alike.csv", index=False)
    page = tmp_path / "page.html"
    for path, better, sentence in (
        (folder / "rows.csv", True, "MAE {0:.4f}, against {1:.4f} by always predicting {2}: "),
        (tmp_path / "shuffled.csv", False, "The model is no better than always predicting {2}: MA"),
        (tmp_path / "alike.csv", False, "These rows cannot tell good models from bad: "),
    ):
        words = [path, "--model", folder / "model", "--html", page, "--overwrite"]
        found = summary("evaluate", *words)
        assert found["better_than_constant"] is better
        best = found["best_constant"]["mae"]
        sentence = sentence.format(found["mae"], best["value"], best["grade"])
        assert sentence in said("evaluate", *words)
        shown = page.read_text("utf-8")
        assert f'<p class="verdict {"good" if better else "bad"}" role="note">{sentence}' in shown
        assert f"best constant: {best['value']:.4f} (always {best['grade']})</span>" in shown


def test_without_exact_labels_their_measures_are_none(folder, tmp_path, frame):
    wide = frame.assign(low=0, high=frame["high"].where(frame["high"] > 0, 1))
    wide.to_csv(tmp_path / "wide.csv", index=False)
    words = ["evaluate", tmp_path / "wide.csv", "--model", folder / "model"]
    words, page = [*words, "--lower", "low", "--upper", "high"], tmp_path / "page.html"
    found = summary(*words, "--html", page)
    assert found["exact_rows"] == 0
    assert found["macro_mae"] is found["accuracy"] is found["quadratic_kappa"] is None
    assert found["mae"] >= 0
    assert re.search(r"accuracy\s+–\s+–\s+0 exact labels", said(*words))
    assert "<section hidden>\n<h2>True and predicted grades" in page.read_text("utf-8")


def test_a_grade_without_rows_does_not_count(folder, frame, predicted, tmp_path):
    some = (frame["grade"] != 3).to_numpy()
    frame[some].to_csv(tmp_path / "some.csv", index=False)
    page = tmp_path / "page.html"
    found = evaluate_files(tmp_path / "some.csv", folder / "model", page=page)
    expected = metrics.macro_mean_absolute_error(frame["grade"][some], predicted[some])
    assert found["macro_mae"] == pytest.approx(expected, **CLOSE)
    empty = dict.fromkeys(("mae", "too_low", "right", "too_high"))
    assert found["by_grade"][3] == {"grade": 3, "rows": 0, **empty}
    shown = page.read_text("utf-8")
    assert "<td>3</td><td>0</td>" not in shown


# -- probabilities and ranges --------------------------------------------------------------------


def known(probability, lower, upper):
    """Chances of every grade within a label."""
    inside = [p if lower <= k <= upper else 0.0 for k, p in enumerate(probability)]
    return np.array(inside) / sum(inside)


def test_ranges_hold_what_they_are_said_to_hold(folder, frame, labelled, proba):
    ends, found = labelled
    model = ordspan.load(folder / "model")
    ranges = found["probabilities"]["ranges"]
    assert [row["coverage"] for row in ranges] == model.calibration.coverages.tolist()
    chances = [known(p, *end) for p, end in zip(proba, ends, strict=True)]
    for row in ranges:
        spans = model.predict_interval(frame, coverage=row["coverage"])
        for name, count in (("contains", "contain"), ("meets", "meet")):
            share = metrics.interval_coverage(ends, spans, count=count, classes=range(N_CLASSES))
            assert row[name] == pytest.approx(share, **CLOSE)
        first, last = spans.T
        expected = [c[a : b + 1].sum() for c, a, b in zip(chances, first, last, strict=True)]
        assert row["expected"] == pytest.approx(np.mean(expected), **CLOSE)
        assert row["widths"] == np.bincount(last - first, minlength=N_CLASSES).tolist()
        assert row["mean_width"] == pytest.approx((last - first + 1).mean(), **CLOSE)


def test_bins_of_the_reliability_diagram_are_means_over_their_predictions(labelled, proba):
    ends, found = labelled
    rows = np.array(
        [
            [p[:k].sum(), known(p, lower, upper)[:k].sum(), upper < k, lower < k]
            for p, (lower, upper) in zip(proba, ends, strict=True)
            for k in range(1, N_CLASSES)
        ]
    )
    place = np.minimum(9, (10 * rows[:, 0]).astype(int))
    bins = found["probabilities"]["reliability"]
    assert [row["count"] for row in bins] == [n for n in np.bincount(place) if n]
    for row, number in zip(bins, np.unique(place), strict=True):
        means = rows[place == number].mean(axis=0).tolist()
        names = ("predicted", "observed", "at_least", "at_most")
        assert [row[name] for name in names] == pytest.approx(means, **CLOSE)


@pytest.mark.parametrize("seed", range(5))
def test_no_other_constant_makes_range_labels_more_probable(seed):
    random = np.random.default_rng(seed)
    n_classes, n_labels = int(random.integers(2, 7)), int(random.integers(1, 12))
    lower, upper = np.sort(random.integers(0, n_classes, size=(2, n_labels)), axis=0)
    counts = random.integers(1, 50, size=n_labels)
    found = best_probabilities(lower + 1, upper + 1, counts, n_classes)
    assert sum(found["probabilities"]) == pytest.approx(1.0)
    assert min(found["probabilities"]) >= 0.0

    def log_score(chance):
        of_label = [chance[a : b + 1].sum() for a, b in zip(lower, upper, strict=True)]
        return -(counts / counts.sum()) @ np.log(np.maximum(1e-300, of_label))

    best = np.array(found["probabilities"])
    assert found["log_score"] == pytest.approx(log_score(best), **CLOSE)
    others = random.dirichlet(np.full(n_classes, 0.5), size=300)
    near = 0.99 * best + 0.01 * others
    assert min(map(log_score, [*others, *near])) >= found["log_score"] - 2 * GAP
    ranked = [
        sum((best[:k].sum() - (y < k)) ** 2 for k in range(1, n_classes)) for y in range(n_classes)
    ]
    within = [
        (best[a : b + 1] @ ranked[a : b + 1]) / best[a : b + 1].sum()
        for a, b in zip(lower, upper, strict=True)
    ]
    assert found["rps"] == pytest.approx(within @ counts / counts.sum(), **CLOSE)


@pytest.mark.filterwarnings("ignore:values unlike")
def test_a_label_that_was_thought_impossible_has_a_finite_log_score(folder, tmp_path):
    far = tmp_path / "far.csv"
    far.write_text("size,age,town,grade\n1e6,0,Rome,0\n-1e6,0,Rome,1-4\n")
    assert ordspan.load(folder / "model").predict_proba(pd.read_csv(far)).min() == 0.0
    found = evaluate_files(far, folder / "model")["probabilities"]
    json.dumps(found, allow_nan=False)
    assert found["log_score"] > 1e5


# -- queries -------------------------------------------------------------------------------------


def cuts_of(found):
    return [found["ndcg"][f"ndcg@{k}"] for k in (1, 5, 10)]


def test_ndcg_by_query_is_that_of_scikit_learn(folder, frame):
    score = ordspan.load(folder / "model").latent(frame)
    assert np.unique(score).size < N_ROWS / 5  # so there are many ties
    found = found_in(folder, "rows.csv", group="query")
    expected, without = by_query(frame["query"], frame["grade"], score)
    assert cuts_of(found) == pytest.approx(expected, **CLOSE)
    assert found["ndcg"]["queries_without_relevant_rows"] == without > 0
    # rows with a range are left out of the order
    exact = (frame["low"] == frame["high"]).to_numpy()
    expected, _ = by_query(frame["query"][exact], frame["low"][exact], score[exact])
    ranges = found_in(folder, "rows.csv", group="query", label="range")
    assert cuts_of(ranges) == pytest.approx(expected, **CLOSE)
    assert ranges["ndcg"]["queries"] == found["ndcg"]["queries"] == frame["query"].nunique()


def test_qids_of_svmlight_files_are_queries(folder, frame):
    score = ordspan.load(folder / "sparse").latent(frame[["size", "age"]].to_numpy())
    expected, _ = by_query(frame["query"], frame["grade"], score)
    found = found_in(folder, "rows.txt", model="sparse")
    assert found["group"] == "qid"
    assert cuts_of(found) == pytest.approx(expected, **CLOSE)
    assert found_in(folder, "rows.txt", model="sparse", group="qid", label="label") == found


def test_svmlight_rows_without_qid_have_no_ndcg(folder, tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text(re.sub(r" qid:\d+", "", (folder / "rows.txt").read_text()))
    found = evaluate_files(plain, folder / "sparse")
    assert found["ndcg"] is found["group"] is None
    both = [folder / "rows.txt", plain]
    with pytest.raises(ValueError, match=r"plain.txt, row 1 and after: no qid here"):
        evaluate_files(both, folder / "sparse")
    with pytest.raises(ValueError, match=r"rows.txt, row 1 and after: a qid here"):
        evaluate_files(both[::-1], folder / "sparse")


def test_a_query_may_go_on_in_the_next_file_but_not_come_back(folder, frame, tmp_path):
    cut = int(np.flatnonzero(frame["query"].duplicated())[3])  # within a query
    frame[:cut].to_csv(tmp_path / "a.csv", index=False)
    frame[cut:].to_csv(tmp_path / "b.csv", index=False)
    whole = found_in(folder, "rows.csv", group="query")["ndcg"]
    assert evaluate_files(tmp_path, folder / "model", group="query")["ndcg"] == whole
    pd.concat([frame, frame[:1]]).to_csv(tmp_path / "mixed.csv", index=False)
    page = tmp_path / "page.html"
    words = [tmp_path / "mixed.csv", "--model", folder / "model", "--group", "query"]
    printed = said("evaluate", *words, "--html", page, code=1)
    assert f"mixed.csv, row {N_ROWS + 1}: query 'q0' appears again" in printed
    assert "sort the rows by query" in printed
    assert not page.exists()


def test_without_a_relevant_row_there_is_no_ndcg(folder, frame, tmp_path):
    frame[frame["grade"] == 0].to_csv(tmp_path / "alike.csv", index=False)
    found = evaluate_files(tmp_path / "alike.csv", folder / "model", group="query")["ndcg"]
    assert found["ndcg@10"] is None
    assert found["queries"] == found["queries_without_relevant_rows"] > 0


def test_an_unusual_group_column_of_parquet(folder, frame, tmp_path):
    """Categories with gaps, and whole numbers too large for a float, are told apart."""
    path, expected = tmp_path / "rows.parquet", found_in(folder, "rows.csv", group="query")["ndcg"]
    large = frame.assign(kind=pd.Categorical(frame["query"]))
    large["big"] = [10**17 + int(name[1:]) for name in frame["query"]]
    large.to_parquet(path, index=False)
    for group in ("kind", "big"):
        assert evaluate_files(path, folder / "model", group=group)["ndcg"] == expected
    large.loc[5, "kind"] = None
    large.to_parquet(path, index=False)
    with pytest.raises(ValueError, match="row 6: column 'kind' is empty"):
        evaluate_files(path, folder / "model", group="kind")


# -- files ---------------------------------------------------------------------------------------


def test_many_rows_are_measured_as_the_few_that_they_repeat(folder, tmp_path):
    """So many that they are read and measured in several parts, and drawn from a sample."""
    few, times = pl.read_csv(folder / "rows.csv"), 450
    copies = [few.with_columns(query=pl.format(f"{n} {{}}", "query")) for n in range(times)]
    pl.concat(copies).write_csv(tmp_path / "many.csv")
    how = {"group": "query", "label": "range"}
    found = evaluate_files(tmp_path / "many.csv", folder / "model", page=tmp_path / "p.html", **how)
    expected = found_in(folder, "rows.csv", **how)
    for name in ("rows", "exact_rows", "range_rows"):
        assert found[name] == times * expected[name]
    assert found["confusion"] == (times * np.array(expected["confusion"])).tolist()
    for name in ("mae", "macro_mae", "accuracy", "quadratic_kappa", "inside_interval"):
        assert found[name] == pytest.approx(expected[name], **CLOSE)
    assert cuts_of(found) == pytest.approx(cuts_of(expected), **CLOSE)
    assert found["ndcg"]["queries"] == times * expected["ndcg"]["queries"]
    ours, theirs = found["probabilities"], expected["probabilities"]
    for name in ("rps", "log_score"):
        assert ours[name] == pytest.approx(theirs[name], rel=1e-10)
    for name in ("contains", "expected", "meets", "mean_width"):
        shares = [[row[name] for row in one["ranges"]] for one in (ours, theirs)]
        assert shares[0] == pytest.approx(shares[1], rel=1e-10)
    assert (tmp_path / "p.html").stat().st_size < 1_000_000


# -- bad rows and other mistakes -----------------------------------------------------------------


def spoil(frame, column, value, row=3):
    spoilt = frame.astype(object)
    spoilt.loc[row, column] = value
    return spoilt


def test_a_bad_row_is_named_or_skipped_and_counted(folder, frame, tmp_path):
    spoil(frame, "query", " ").to_csv(tmp_path / "bad.csv", index=False)
    frame.drop(index=3).to_csv(tmp_path / "good.csv", index=False)
    page, words = tmp_path / "page.html", ["--model", folder / "model", "--group", "query"]
    bad = ["evaluate", tmp_path / "bad.csv", *words, "--html", page, "--overwrite"]
    assert "bad.csv, row 4: column 'query' is empty; fill it" in said(*bad, code=1)
    assert not page.exists()
    found = summary(*bad, "--on-bad-row", "skip")
    good = summary("evaluate", tmp_path / "good.csv", *words)
    assert (found["skipped"], found["rows"]) == (1, N_ROWS - 1)
    for name in ("mae", "confusion", "ndcg", "quadratic_kappa"):
        assert found[name] == good[name]
    told = f"Bad rows skipped: 1 of {N_ROWS} (0.2%), such as:"
    assert told in said(*bad, "--on-bad-row", "skip")
    assert "skipped</dt><dd>1</dd><dt>skipped examples</dt>" in page.read_text("utf-8")


def test_rows_without_a_label_are_left_out_and_counted(folder, frame, tmp_path):
    for row, empty in ((3, ""), (7, "NA"), (N_ROWS - 1, " ")):
        frame = spoil(frame, "grade", empty, row)
    some, page = tmp_path / "some.csv", tmp_path / "page.html"
    frame.to_csv(some, index=False)
    frame.drop(index=[3, 7, N_ROWS - 1]).to_csv(tmp_path / "all.csv", index=False)
    words = ["--model", folder / "model", "--group", "query"]
    labelled = summary("evaluate", tmp_path / "all.csv", *words)
    piped = summary("evaluate", "-", "--format", "csv", *words, input=some.read_text())
    for found in (summary("evaluate", some, *words), piped):
        for name in ("rows", "mae", "confusion", "ndcg", "probabilities", "skipped"):
            assert found[name] == labelled[name]
        assert (found["unlabelled_rows"], labelled["unlabelled_rows"]) == (3, 0)
    note = "Note: 3 rows without a label were left out."
    assert note in said("evaluate", some, *words, "--html", page)
    assert note in page.read_text("utf-8")
    frame.assign(grade="").to_csv(some, index=False)
    assert "some.csv: no row to evaluate; does" in said("evaluate", some, *words, code=1)


def test_rows_the_model_was_trained_on_are_recognised(folder, tmp_path):
    """Also in a copy under another name; a file that differs in one byte is another."""
    shutil.copy(folder / "rows.csv", tmp_path / "copy.csv")
    (tmp_path / "other.csv").write_bytes((folder / "rows.csv").read_bytes()[:-2] + b"4\n")
    page = tmp_path / "page.html"
    for name, told in (("copy.csv", True), ("other.csv", False)):
        words = [tmp_path / name, "--model", folder / "model"]
        printed = said("evaluate", *words, "--html", page, "--overwrite")
        note = f"Note: the model was trained on {tmp_path / name}, so expect"
        for output in (printed, page.read_text("utf-8")):
            assert (note in output) == told
        printed = said("predict", *words, "--out", tmp_path / f"out-{name}")
        assert ("Note: the model was trained on" in printed) == told
    both = [tmp_path / "other.csv", folder / "rows.csv", tmp_path / "copy.csv"]
    assert "rows.csv, and 1 more, so" in evaluate_files(both, folder / "model")["notes"][0]
    # a model that goes on from another has learned the rows of both
    train_files(both[0], tmp_path / "longer", start=folder / "model")
    for path in both[:2]:
        assert "was trained on" in evaluate_files(path, tmp_path / "longer")["notes"][0]


# -- what is printed -----------------------------------------------------------------------------


def test_tables_and_json_say_the_same(folder):
    words = ["evaluate", folder / "rows.csv", "--model", folder / "model", "--group", "query"]
    found, output = summary(*words), said(*words)
    assert "contains the label" in output
    assert "meets the label" not in output
    numbers = {n: found[n] for n in ("mae", "macro_mae", "accuracy", "quadratic_kappa")}
    numbers |= {n: found["probabilities"][n] for n in ("rps", "log_score")} | found["ndcg"]
    titles = {"mae": "MAE", "macro_mae": "macro MAE", "rps": "RPS"}
    for best in found["best_constant"].values():
        always = "any grade" if best["grade"] is None else f"always {best['grade']}"
        assert f" {best['value']:.4f} ({always})" in output
    for name, value in numbers.items():
        title = titles.get(name, name.replace("_", " ").replace("ndcg", "NDCG"))
        assert "queries" in name or re.search(rf"  {title}  +{value:.4f}  ", output)
    lines = output[output.index("Rows by true grade") :].splitlines()
    rows = [line.split()[1:] for line in lines if re.match(r" +\d[\d ]+$", line)]
    matrix = [[int(count) for count in row] for row in rows[-N_CLASSES:]]
    assert matrix == found["confusion"]
    ranges = [*words, "--label", "range"]
    shown = re.findall(r" (\d+) %\s+(\S+) %\s+(\S+) %\s+(\S+) %\s+(\S+) ", said(*ranges))
    names = ("contains", "expected", "meets")
    assert shown == [
        (
            f"{100 * row['coverage']:.0f}",
            *(f"{100 * row[name]:.1f}" for name in names),
            f"{row['mean_width']:.2f}",
        )
        for row in summary(*ranges)["probabilities"]["ranges"]
    ]


def test_very_many_grades_have_an_ndcg_but_no_printed_matrix(tmp_path):
    rows = [f"{value},{value},one" for value in range(1100)]  # 2^1100 is no float
    (tmp_path / "wide.csv").write_text("\n".join(["size,grade,query", *rows]))
    words = [tmp_path / "wide.csv", "--model", tmp_path / "model"]
    train_files(words[0], tmp_path / "model", label="grade", classes="0..1099", features=["size"])
    printed = said("evaluate", *words, "--group", "query", "--html", tmp_path / "page.html")
    assert "confusion matrix of 1100 grades is too wide to print" in printed
    assert (tmp_path / "page.html").stat().st_size < 1_000_000
    assert 0 < evaluate_files(words[0], tmp_path / "model", group="query")["ndcg"]["ndcg@10"] <= 1


# -- the page ------------------------------------------------------------------------------------


def figure(page, name):
    """A figure of the page, for wide windows."""
    return re.search(rf'<figure id="{name}"><div class="wide">(.*?)</svg>', page, re.DOTALL)[1]


def written(page, name):
    """What is written in a figure, piece by piece."""
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)<", figure(page, name))]


ODD = ["<b>low</b>", "mid </script><!--", "{{title}}", "up to $5-$6", "#0072b2"]


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    found_in(folder, "rows.csv", group="query", label="range", page=path)
    return path.read_text("utf-8")


def test_the_page_stands_alone(page):
    check_stands_alone(page)
    assert "<script" not in page
    # what a hidden figure defines is not drawn in another
    names = re.findall(r' id="(\w+)"', page)
    assert len(names) == len({*names})


def test_names_of_grades_cannot_break_the_page(frame, tmp_path):
    rows, model, path = (tmp_path / name for name in ("rows.csv", "model", "page.html"))
    frame.assign(grade=[ODD[grade] for grade in frame["grade"]]).to_csv(rows, index=False)
    train_files(rows, model, label="grade", classes=ODD, features=["size", "age"])
    evaluate_files(rows, model, page=path)
    page = path.read_text("utf-8")
    assert "<script" not in page
    assert "</script" not in page
    assert "<b>low" not in page
    assert "<td>{{title}}</td>" in page
    assert written(page, "confusion")[:5] == [ODD[0], "mid </scrip…", *ODD[2:]]
    assert "up to $5-$6 | #0072b2" in written(page, "scores")


def test_the_page_holds_what_was_found(folder, page):
    found = found_in(folder, "rows.csv", group="query", label="range")
    for name in ("mae", "macro_mae", "accuracy", "quadratic_kappa"):
        assert f'<span class="value">{found[name]:.4f}</span>' in page
    for name in [*PLOTS, "queries"]:
        assert re.match(r'<svg role="img" aria-label="\w', figure(page, name))
    cells = [text for text in written(page, "confusion") if re.fullmatch(r"[\d,]+", text)]
    counts = [str(count) for row in found["confusion"] for count in row]
    assert cells[-len(counts) :] == counts
    assert {"0 | 1", "1 | 2", "2 | 3", "3 | 4", "(ranges)"} <= {*written(page, "scores")}
    assert written(page, "errors")[-3:] == ["too low", "right", "too high"]


LOOK = """
async function tryEverything() {
  await settle();
  const figures = [...document.querySelectorAll("figure")].filter(figure => figure.offsetParent);
  const drawn = figures.map(f => [...f.querySelectorAll("svg")].filter(s => s.clientWidth));
  const texts = drawn.flat().flatMap(svg => [...svg.querySelectorAll("text")]);
  return {
    shown: figures.map(figure => figure.id),
    drawings: drawn.map(svgs => svgs.length),
    tooWide: figures.filter(f => f.scrollWidth > f.clientWidth + 1).map(figure => figure.id),
    smallest: Math.min(...texts.map(text => text.getBoundingClientRect().height)),
    page: getComputedStyle(document.body).backgroundColor,
    inks: [...new Set(texts.map(text => getComputedStyle(text).fill))],
  };
}
"""
INK = {"light": "rgb(28, 33, 39)", "dark": "rgb(230, 233, 236)"}
ORANGE = {"light": "rgb(189, 82, 0)", "dark": "rgb(240, 168, 104)"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400], ids=["narrow", "wide"])
def test_the_page_is_readable_in_a_browser(browser, page, width, scheme):
    seen = try_page(browser, page, LOOK, width, color_scheme=scheme)
    assert seen["problems"] == seen["requests"] == seen["tooWide"] == []
    assert seen["overflow"] == 0
    assert seen["shown"] == [*PLOTS, "queries"]
    assert seen["drawings"] == [1] * len(seen["shown"])
    assert seen["smallest"] > 8  # pixels
    assert seen["page"] == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 25, 29)")
    assert {*seen["inks"]} == {INK[scheme], ORANGE[scheme]}
