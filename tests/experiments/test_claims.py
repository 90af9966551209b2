"""The claims table and the summary say what the results table holds."""

import csv

import numpy as np
import pytest
from fake_results import LEVEL, fake_results
from scipy import stats

from ordspan.experiments.claims import MARGIN, PAPER, by_sentence, count_verdicts, make_claims
from ordspan.experiments.results import Cell, write_table

BETTER, ALIKE, TRIALS, FRACTION, ALLOWANCE = PAPER["tests"]
WINNING = {**LEVEL, "PA": 0.4, "PA-I": 0.3, "PA-II": 0.35}
LOSING = {**LEVEL, "PA": 1.3, "PA-I": 1.2, "PA-II": 1.25}
EQUAL = {**LEVEL, "PA": 0.8, "PA-I": 0.8, "PA-II": 0.8}


def claims_of(results, test):
    return [claim for claim in make_claims(results) if claim.test == test]


def claim_about(results, test, *names):
    """Sentences may repeat a claim, with the same numbers."""
    return next(claim for claim in claims_of(results, test) if claim[1:5] == names)


def test_every_sentence_of_the_paper_is_taken_apart():
    per_sentence = [len(group) for group in by_sentence(make_claims(fake_results()))]
    assert per_sentence == [36, 12, 2, 2, 6, 6, 3, 72, 24, 12, 12]


@pytest.mark.parametrize(
    ("options", "test", "verdicts"),
    [
        ({"level": WINNING}, BETTER, {"holds"}),
        ({"level": WINNING}, ALIKE, {"does not hold"}),  # better by far is not comparable
        ({"level": LOSING}, BETTER, {"does not hold"}),
        ({"level": EQUAL, "trials": 4000}, ALIKE, {"holds"}),
        ({"datasets": ("mslr",), "growing": True}, TRIALS, {"does not hold", "not run"}),
    ],
)
def test_verdicts_follow_the_errors(options, test, verdicts):
    assert {claim.verdict for claim in claims_of(fake_results(**options), test)} == verdicts


def test_the_interval_is_the_one_of_the_paired_t_test():
    results = fake_results(runs=6)
    claim = claim_about(results, BETTER, "abalone", 50, "PA-I", "MCP")
    ours, rival = (results.final(Cell("abalone", 50, name)) for name in ("PA-I", "MCP"))
    interval = stats.ttest_rel(rival, ours).confidence_interval(0.95)
    assert claim.effect == pytest.approx((rival - ours).mean())
    assert (claim.low, claim.high) == pytest.approx((interval.low, interval.high))


def test_comparable_is_judged_by_the_stated_margin():
    results = fake_results(level=EQUAL)
    for claim in claims_of(results, ALIKE):
        rival = results.final(Cell(claim.dataset, claim.labels, claim.rival)).mean()
        assert (claim.verdict == "holds") == (abs(claim.effect) <= MARGIN * rival)


def test_errors_fall_with_the_trials_and_with_the_ranges_that_were_learned():
    results = fake_results(trials=500, runs=12)
    cell = Cell("mslr", 50, "PA")
    running = results.running(cell, interval=True).mean(axis=0)
    early = results.trials.tolist().index(50)  # a tenth of the trials
    exact, used = (
        [results.final(cell._replace(labels=n), interval=each).mean() for n in (50, 75)]
        for each in (False, True)
    )
    for test, labels, rival, effect in (
        (TRIALS, 50, "itself at T/10", running[early] - running[-1]),
        (FRACTION, 75, "itself at 50 %", used[0] - used[1]),
        (ALLOWANCE, 75, "itself at 50 %", (exact[1] - used[1]) - (exact[0] - used[0])),
    ):
        claim = claim_about(results, test, "mslr", labels, "PA", rival)
        assert (claim.effect, claim.verdict) == (pytest.approx(effect), "holds")


@pytest.mark.parametrize(
    "options",
    [{"runs": 1}, {"algorithms": ("PA sca",)}, {"fractions": (10,)}, {"datasets": ("synthetic",)}],
)
def test_what_cannot_be_tested_is_not_run(options):
    claims = make_claims(fake_results(**options))
    assert count_verdicts(claims) == {"holds": 0, "does not hold": 0, "not run": len(claims)}
    assert {claim.effect for claim in claims} == {None}


def written(rows, path):
    write_table(rows, path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_claims_file_holds_every_claim_with_its_effect(tmp_path):
    claims = make_claims(fake_results(datasets=("california", "abalone")))
    rows = written([claim._asdict() for claim in claims], tmp_path / "claims.csv")
    assert {row["sentence"] for row in rows} == {each["words"] for each in PAPER["sentence"]}
    for claim, row in zip(claims, rows, strict=True):
        effect = float(row["effect"]) if row["effect"] else None
        assert (effect, row["verdict"]) == (pytest.approx(claim.effect), claim.verdict)
        assert (effect is None) == (claim.dataset not in ("california", "abalone"))


def test_summary_agrees_with_the_errors(tmp_path):
    results = fake_results(runs=5)
    rows = written(results.summary(), tmp_path / "summary.csv")
    assert len(rows) == 4 * 3 * 5
    for row in rows:
        cell = Cell(row["dataset"], int(row["labels"]), row["algorithm"])
        sums = results.rows[cell]
        per_run = sums["error_sums"][:, -1] / 300
        best = results.rows[cell._replace(algorithm="hindsight")]["error_sums"][:2, -1] / 300
        expected = {
            "mae": per_run.mean(),
            "sem": stats.sem(per_run),
            "interval_mae": sums["interval_error_sums"][:, -1].mean() / 300,
            "hindsight_ratio": per_run[:2].mean() / best.mean(),  # of the first two runs alone
        }
        assert {name: float(row[name]) for name in expected} == pytest.approx(expected)
        assert (row["trials"], row["runs"]) == ("300", "5")
        assert row["C"] == ("0.01" if cell.algorithm in ("PA-I", "PA-II") else "")


def test_one_run_has_no_standard_error_and_a_perfect_fixed_ranker_no_ratio():
    rows = fake_results(runs=1, level={"hindsight": 0.0}, fractions=(0,)).summary()
    assert {row["hindsight_ratio"] for row in rows} == {None}
    assert all(np.isnan(row["sem"]) for row in rows)
