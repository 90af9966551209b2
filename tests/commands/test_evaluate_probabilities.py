"""What ordspan evaluate says of probabilities and ranges, against its definition row by row."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest

import ordspan
from browser import try_page
from commands.tables import ask
from ordspan.commands import probability_tally
from ordspan.commands.evaluate import NO_PROBABILITIES, EvaluateJob, evaluate
from ordspan.commands.probability_plots import coverage_plot, reliability_plot, width_plot
from ordspan.commands.probability_tally import GAP, N_BINS, ProbabilityTally, best_constant
from ordspan.commands.train import TrainJob, train
from ordspan.learners import Calibration

GRADES = ["poor", "fair", "good", "best"]
N_ROWS = 300
LABELS = [{"label": "grade"}, {"lower": "low", "upper": "high"}]
CLOSE = {"rel": 1e-10, "abs": 1e-12}


def ranges_around(rank, random):
    """Labels that hold a rank, 1..4, and often its neighbours too."""
    lower = np.maximum(
        1, rank - random.integers(0, 3, rank.size) * (random.random(rank.size) < 0.4)
    )
    upper = np.minimum(
        4, rank + random.integers(0, 3, rank.size) * (random.random(rank.size) < 0.4)
    )
    return lower, upper


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
    job = TrainJob(
        [str(folder / "rows.csv")], lower="low", upper="high", classes=GRADES, drop=["grade"]
    )
    train(job, folder / "model")
    model = ordspan.load(folder / "model")
    model.calibration = None
    ordspan.save(model, folder / "plain")
    return folder


@pytest.fixture(scope="module", params=LABELS, ids=["exact", "ranges"])
def labelled(request, folder):
    """Labels as ranks, and what an evaluation on them finds."""
    frame = pd.read_csv(folder / "rows.csv")
    columns = request.param
    names = list(columns.values())
    ends = np.column_stack([frame[name].map(GRADES.index) + 1 for name in (names[0], names[-1])])
    job = EvaluateJob([str(folder / "rows.csv")], folder / "model", **columns)
    return frame, ends, evaluate(job)


def known(probability, lower, upper):
    """Chances of every rank within a label."""
    inside = [p if lower <= k <= upper else 0.0 for k, p in enumerate(probability, start=1)]
    return np.array(inside) / sum(inside)


def test_scores_of_probabilities_are_what_they_are_defined_as(folder, labelled):
    frame, ends, summary = labelled
    found = summary["probabilities"]
    ranked, surprise = [], []
    for p, (lower, upper) in zip(
        ordspan.load(folder / "model").predict_proba(frame), ends, strict=True
    ):
        # the expected score of the label's grades, each with its own sum of squares
        scores = [sum((p[:k].sum() - (y <= k)) ** 2 for k in range(1, 4)) for y in range(1, 5)]
        ranked.append(known(p, lower, upper) @ scores)
        surprise.append(-math.log(p[lower - 1 : upper].sum()))
    assert found["rps"] == pytest.approx(np.mean(ranked), **CLOSE)
    assert found["log_score"] == pytest.approx(np.mean(surprise), **CLOSE)


def test_ranges_hold_what_they_are_said_to_hold(folder, labelled):
    frame, ends, summary = labelled
    model, found = ordspan.load(folder / "model"), summary["probabilities"]["ranges"]
    assert [row["coverage"] for row in found] == model.calibration.coverages.tolist()
    probability = model.predict_proba(frame)
    for row in found:
        words = model.predict_interval(frame, coverage=row["coverage"])
        spans = [[GRADES.index(word) + 1 for word in span] for span in words]
        contains = meets = expected = 0
        for p, (lower, upper), (first, last) in zip(probability, ends, spans, strict=True):
            label, span = set(range(lower, upper + 1)), set(range(first, last + 1))
            contains += label <= span
            meets += bool(label & span)
            expected += sum(known(p, lower, upper)[k - 1] for k in span)
        assert (row["contains"], row["meets"]) == (contains / N_ROWS, meets / N_ROWS)
        assert row["expected"] == pytest.approx(expected / N_ROWS, **CLOSE)
        widths = [last - first + 1 for first, last in spans]
        assert row["widths"] == np.bincount(widths, minlength=5)[1:].tolist()
        assert row["mean_width"] == pytest.approx(np.mean(widths), rel=1e-14)


def test_the_true_coverage_lies_between_the_bounds(folder):
    files = [str(folder / "rows.csv")]
    exact = evaluate(EvaluateJob(files, folder / "model", label="grade"))["probabilities"]
    ranges = evaluate(EvaluateJob(files, folder / "model"))["probabilities"]
    for truth, row in zip(exact["ranges"], ranges["ranges"], strict=True):
        assert truth["contains"] == truth["expected"] == truth["meets"]
        assert row["contains"] <= truth["contains"] <= row["meets"]
        assert row["contains"] <= row["expected"] <= row["meets"]


def test_bins_of_the_reliability_diagram_are_means_over_their_predictions(folder, labelled):
    frame, ends, summary = labelled
    rows = []
    for p, (lower, upper) in zip(
        ordspan.load(folder / "model").predict_proba(frame), ends, strict=True
    ):
        for k in range(1, 4):
            expected = known(p, lower, upper)[:k].sum()
            rows.append([p[:k].sum(), expected, upper <= k, lower <= k])
    rows = np.array(rows, dtype=float)
    place = np.minimum(N_BINS - 1, (N_BINS * rows[:, 0]).astype(int))
    found = summary["probabilities"]["reliability"]
    assert [row["count"] for row in found] == [n for n in np.bincount(place).tolist() if n]
    for row, number in zip(found, np.unique(place), strict=True):
        means = rows[place == number].mean(axis=0)
        names = ("predicted", "observed", "at_least", "at_most")
        assert [row[name] for name in names] == pytest.approx(means.tolist(), **CLOSE)


def test_the_best_constant_of_exact_labels_is_their_shares(folder):
    frame = pd.read_csv(folder / "rows.csv")
    files = [str(folder / "rows.csv")]
    found = evaluate(EvaluateJob(files, folder / "model", label="grade"))["probabilities"]
    share = frame["grade"].value_counts(normalize=True)[GRADES].to_numpy()
    best = found["best_constant"]
    assert best["probabilities"] == pytest.approx(share.tolist(), rel=1e-12)
    assert best["log_score"] == pytest.approx(-(share * np.log(share)).sum(), rel=1e-12)
    at_most = np.cumsum(share)[:-1]
    assert best["rps"] == pytest.approx((at_most * (1 - at_most)).sum(), rel=1e-12)
    assert found["rps"] < best["rps"]
    assert found["log_score"] < best["log_score"]


@pytest.mark.parametrize("seed", range(10))
def test_no_other_constant_makes_range_labels_more_probable(seed):
    random = np.random.default_rng(seed)
    n_classes, n_labels = int(random.integers(2, 7)), int(random.integers(1, 12))
    lower, upper = np.sort(random.integers(0, n_classes, size=(2, n_labels)), axis=0)
    counts = random.integers(1, 50, size=n_labels)
    found = best_constant(lower, upper, counts, n_classes)
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


def test_rows_in_any_batches_give_the_same_to_the_bit(monkeypatch):
    random = np.random.default_rng(0)
    rank = random.integers(1, 5, size=500)
    lower, upper = ranges_around(rank, random)
    score = rank + random.normal(size=500)
    calibration = Calibration(4)
    calibration.observe(score, rank, lower, upper)
    whole, parts = ProbabilityTally(calibration), ProbabilityTally(calibration)
    whole.add_rows(score, rank, lower, upper)
    monkeypatch.setattr(probability_tally, "MAX_CELLS", 4 * 7)
    for part in np.array_split(np.arange(500), 13):
        parts.add_rows(score[part], rank[part], lower[part], upper[part])
    assert parts.summary() == whole.summary()


def test_a_label_that_was_thought_impossible_has_a_finite_log_score():
    random = np.random.default_rng(0)
    score = random.normal(size=400)
    rank = 1 + np.digitize(score, [-0.5, 0.5])
    calibration = Calibration(3).fit(score, rank, rank, rank, thresholds=[-0.5, 0.5])
    tally = ProbabilityTally(calibration)
    far = np.array([1e6, 1e300, -1e6, 1e6])
    tally.add_rows(far, np.array([3, 3, 1, 3]), np.array([1, 1, 2, 1]), np.array([1, 2, 3, 3]))
    assert (calibration.probabilities(far[:1])[0, :1] == 0.0).all()
    found = tally.summary()
    assert "Infinity" not in json.dumps(found)
    assert "NaN" not in json.dumps(found)
    assert found["log_score"] > 1e5
    exact = np.array([calibration.cuts[0] - calibration.slope * 2.0])
    one = ProbabilityTally(calibration)
    one.add_rows(np.array([2.0]), np.array([3]), np.array([1]), np.array([1]))
    assert one.summary()["log_score"] == pytest.approx(np.logaddexp(0.0, -exact[0]), rel=1e-12)


def test_tables_show_ranges_as_json_has_them(folder):
    words = ["evaluate", folder / "rows.csv", "--model", folder / "model"]
    found = json.loads(ask(*words, "--json").stdout)["probabilities"]
    output = ask(*words).stdout
    shown = re.findall(r"│\s+(\d+) % │\s+(\S+) % │\s+(\S+) % │\s+(\S+) % │\s+(\S+) │", output)
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
    for name in ("mae", "confusion", "best_constant", "quadratic_kappa"):
        assert plain[name] == full[name]
    output = ask(*words, folder / "plain").stdout
    assert NO_PROBABILITIES in output.splitlines()
    assert "RPS" not in output
    text = page.read_text("utf-8")
    assert f'<p class="note" >{NO_PROBABILITIES}</p>' in text
    assert "<section hidden>\n<h2>Are the probabilities right?" in text
    assert NO_PROBABILITIES not in ask(*words, folder / "model").stdout


def test_plots_show_what_was_found(labelled):
    _, ends, summary = labelled
    found, with_ranges = summary["probabilities"], bool((ends[:, 0] < ends[:, 1]).any())
    _, points = reliability_plot(found["reliability"], with_ranges=with_ranges)["traces"]
    assert points["y"] == [round(100 * row["observed"], 2) for row in found["reliability"]]
    assert ("error_y" in points) == with_ranges
    if with_ranges:
        top = np.add(points["y"], points["error_y"]["array"])
        assert top == pytest.approx(
            [100 * row["at_most"] for row in found["reliability"]], abs=0.02
        )
    plot = coverage_plot(found["ranges"], with_ranges=with_ranges)
    lines = {trace["name"]: trace["y"] for trace in plot["traces"][1:]}
    names = {"contains the label": "contains", "meets the label": "meets", "expected": "expected"}
    for title, name in names.items() if with_ranges else [("contains the label", "contains")]:
        assert lines[title] == [round(100 * row[name], 2) for row in found["ranges"]]
    (bars,) = width_plot(found["ranges"][2])["traces"]
    assert bars["x"] == [1, 2, 3, 4]
    assert sum(bars["y"]) == pytest.approx(100, abs=0.05)


LOOK = """
async function tryEverything() {
  await settle();
  const plots = [...document.querySelectorAll(".plot")].filter(plot => plot.offsetParent);
  const papers = () => [...new Set(plots.map(plot => plot._fullLayout.paper_bgcolor))];
  const found = { page: getComputedStyle(document.body).backgroundColor, papers: papers(),
    points: count("#reliability .point"), bars: count("#widths .point"),
    names: [...document.querySelectorAll("#confusion .xtick text")].map(t => t.textContent) };
  window.dispatchEvent(new Event("beforeprint"));
  await settle();
  found.printed = papers();
  return found;
}
"""


def test_the_page_is_dark_where_that_is_preferred_and_white_on_paper(tab, tmp_path):
    """Also where a grade has the name of a colour, which stays its name."""
    colours = ["#fff", "#0072B2", "#1c2127"]
    rows = [f"{i},{colours[i * 3 // 300]}" for i in range(300)]
    (tmp_path / "rows.csv").write_text("\n".join(["size,grade", *rows]))
    files = [str(tmp_path / "rows.csv")]
    train(TrainJob(files, label="grade", classes=colours, features=["size"]), tmp_path / "model")
    evaluate(EvaluateJob(files, tmp_path / "model"), page=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    dark = page.replace("(prefers-color-scheme: dark)", "(min-width: 1px)")
    seen = try_page(tab, dark, LOOK, tmp_path, 900)
    assert "failed" not in seen
    assert seen["problems"] == []
    assert (seen["page"], seen["papers"], seen["printed"]) == (
        "rgb(21, 25, 29)",
        ["#15191d"],
        ["#fff"],
    )
    assert seen["names"] == colours
    assert (seen["points"] > 0, seen["bars"]) == (True, 3)
