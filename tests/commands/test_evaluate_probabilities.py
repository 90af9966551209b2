"""What ordspan evaluate says of probabilities and ranges, against its definition row by row."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import ordspan
from commands.tables import ask
from ordspan import evaluate_files, metrics, train_files
from ordspan.commands import evaluate as module
from ordspan.metrics.ranks import GAP, best_probabilities

GRADES = ["poor", "fair", "good", "best"]
N_ROWS = 300
NO_PROBABILITIES = "the model has no probabilities or ranges"
LABELS = [{"label": "grade"}, {"lower": "low", "upper": "high"}]
CLOSE = {"rel": 1e-10, "abs": 1e-12}


def ranges_around(rank, random):
    """Labels that hold a rank, 1..4, and often its neighbours too."""
    by = [random.integers(0, 3, rank.size) * (random.random(rank.size) < 0.4) for _ in range(2)]
    return np.maximum(1, rank - by[0]), np.minimum(4, rank + by[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows with exact and range labels, and a model of them with and without a calibration."""
    folder, random = tmp_path_factory.mktemp("probabilities"), np.random.default_rng(3)
    X = random.normal(size=(N_ROWS, 2)).round(3)
    rank = 1 + np.digitize(X @ [1.5, -1.0] + random.logistic(size=N_ROWS), [-1.5, 0.0, 1.5])
    lower, upper = ranges_around(rank, random)
    frame = pd.DataFrame({"size": X[:, 0], "age": X[:, 1]})
    for name, ranks in (("grade", rank), ("low", lower), ("high", upper)):
        frame[name] = np.array(GRADES)[ranks - 1]
    frame.to_csv(folder / "rows.csv", index=False)
    ends = {"lower": "low", "upper": "high"}
    train_files(folder / "rows.csv", folder / "model", **ends, classes=GRADES, drop="grade")
    model = ordspan.load(folder / "model")
    model.calibration = None
    ordspan.save(model, folder / "plain")
    return folder


@pytest.fixture(scope="module", params=LABELS, ids=["exact", "ranges"])
def labelled(request, folder):
    """Labels, and what an evaluation on them finds."""
    frame = pd.read_csv(folder / "rows.csv")
    names = list(request.param.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_CELLS", 64)  # so that every number is one of several chunks
        found = evaluate_files(folder / "rows.csv", folder / "model", **request.param)
    return frame[[names[0], names[-1]]].to_numpy(), found["probabilities"]


def known(probability, lower, upper):
    """Chances of every rank within a label."""
    inside = [p if lower <= k <= upper else 0.0 for k, p in enumerate(probability, start=1)]
    return np.array(inside) / sum(inside)


def ranks_of(words):
    return np.vectorize(GRADES.index)(words) + 1


def test_scores_are_those_of_the_metrics(folder, labelled):
    labels, found = labelled
    proba = ordspan.load(folder / "model").predict_proba(pd.read_csv(folder / "rows.csv"))
    ranked = metrics.ranked_probability_score(labels, proba, classes=GRADES)
    assert found["rps"] == pytest.approx(ranked, **CLOSE)
    surprise = metrics.log_score(labels, proba, classes=GRADES)
    assert found["log_score"] == pytest.approx(surprise, **CLOSE)


def test_ranges_hold_what_they_are_said_to_hold(folder, labelled):
    labels, found = labelled
    frame = pd.read_csv(folder / "rows.csv")
    model = ordspan.load(folder / "model")
    assert [row["coverage"] for row in found["ranges"]] == model.calibration.coverages.tolist()
    ends = ranks_of(labels)
    chances = [known(p, *end) for p, end in zip(model.predict_proba(frame), ends, strict=True)]
    for row in found["ranges"]:
        spans = model.predict_interval(frame, coverage=row["coverage"])
        for name, count in (("contains", "contain"), ("meets", "meet")):
            share = metrics.interval_coverage(labels, spans, count=count, classes=GRADES)
            assert row[name] == pytest.approx(share, **CLOSE)
        first, last = ranks_of(spans).T
        expected = [c[a - 1 : b].sum() for c, a, b in zip(chances, first, last, strict=True)]
        assert row["expected"] == pytest.approx(np.mean(expected), **CLOSE)
        assert row["widths"] == np.bincount(last - first, minlength=4).tolist()
        assert row["mean_width"] == pytest.approx((last - first + 1).mean(), **CLOSE)


def test_the_true_coverage_lies_between_the_bounds(folder):
    exact, ranges = (
        evaluate_files(folder / "rows.csv", folder / "model", **labels)["probabilities"]
        for labels in LABELS
    )
    for truth, row in zip(exact["ranges"], ranges["ranges"], strict=True):
        assert truth["contains"] == truth["expected"] == truth["meets"]
        assert row["contains"] <= truth["contains"] <= row["meets"]
        assert row["contains"] <= row["expected"] <= row["meets"]


def test_bins_of_the_reliability_diagram_are_means_over_their_predictions(folder, labelled):
    labels, found = labelled
    proba = ordspan.load(folder / "model").predict_proba(pd.read_csv(folder / "rows.csv"))
    rows = np.array(
        [
            [p[:k].sum(), known(p, lower, upper)[:k].sum(), upper <= k, lower <= k]
            for p, (lower, upper) in zip(proba, ranks_of(labels), strict=True)
            for k in range(1, 4)
        ]
    )
    place = np.minimum(9, (10 * rows[:, 0]).astype(int))
    assert [row["count"] for row in found["reliability"]] == [n for n in np.bincount(place) if n]
    for row, number in zip(found["reliability"], np.unique(place), strict=True):
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


def test_a_label_that_was_thought_impossible_has_a_finite_log_score(folder, tmp_path):
    (tmp_path / "far.csv").write_text("size,age,low,high\n1e6,0,poor,poor\n-1e6,0,fair,best\n")
    proba = ordspan.load(folder / "model").predict_proba(pd.read_csv(tmp_path / "far.csv"))
    assert proba.min() == 0.0
    found = evaluate_files(tmp_path / "far.csv", folder / "model")["probabilities"]
    json.dumps(found, allow_nan=False)
    assert found["log_score"] > 1e5


def test_tables_show_ranges_as_json_has_them(folder):
    words = ["evaluate", folder / "rows.csv", "--model", folder / "model"]
    found = json.loads(ask(*words, "--json").stdout)["probabilities"]
    output = ask(*words).stdout
    shown = re.findall(r" (\d+) %\s+(\S+) %\s+(\S+) %\s+(\S+) %\s+(\S+) ", output)
    assert [tuple(map(float, line)) for line in shown] == [
        (
            round(100 * row["coverage"]),
            *(float(f"{100 * row[name]:.1f}") for name in ("contains", "expected", "meets")),
            float(f"{row['mean_width']:.2f}"),
        )
        for row in found["ranges"]
    ]
    exact = ask(*words, "--label", "grade").stdout
    assert "contains the label" in exact
    assert "meets the label" not in exact


def test_a_model_without_a_calibration_is_evaluated_and_said_to_have_none(folder, tmp_path):
    words = ["evaluate", folder / "rows.csv", "--model"]
    page = tmp_path / "page.html"
    plain = json.loads(ask(*words, folder / "plain", "--json", "--html", page).stdout)
    full = json.loads(ask(*words, folder / "model", "--json").stdout)
    assert plain["probabilities"] is None
    assert plain["best_constant"] == full["best_constant"]
    assert plain["mae"] == pytest.approx(full["mae"], rel=0.1)  # by thresholds, not by the median
    output = ask(*words, folder / "plain").stdout
    assert f"Note: {NO_PROBABILITIES}." in output.splitlines()
    assert "RPS" not in output
    text = page.read_text("utf-8")
    assert f'<p class="note">Note: {NO_PROBABILITIES}.</p>' in text
    assert "<section hidden>\n<h2>Are the probabilities right?" in text
    assert NO_PROBABILITIES not in ask(*words, folder / "model").stdout
