"""The claims table and the summary say what the results table holds."""

import csv

import numpy as np
import pytest
from fake_results import LEVEL, fake_results
from scipy import stats

from ordspan.experiments.claims import (
    ALLOWANCE,
    COMPARABLE,
    FAILS,
    FRACTION,
    HOLDS,
    MARGIN,
    NOT_RUN,
    OUTPERFORMS,
    PAPER,
    TRIALS,
    Claim,
    by_sentence,
    count_verdicts,
    make_claims,
)
from ordspan.experiments.results import Cell, write_table

WINNING = {**LEVEL, "PA": 0.4, "PA-I": 0.3, "PA-II": 0.35}
LOSING = {**LEVEL, "PA": 1.3, "PA-I": 1.2, "PA-II": 1.25}
EQUAL = {**LEVEL, "PA": 0.8, "PA-I": 0.8, "PA-II": 0.8}


def verdicts(claims, test):
    return {claim.verdict for claim in claims if claim.test == test}


def claim_about(claims, test, *names):
    (claim,) = {c[1:] for c in claims if c.test == test and c[1:5] == names}
    return Claim("", *claim)


def test_every_sentence_of_the_paper_is_taken_apart():
    per_sentence = [len(group) for group in by_sentence(make_claims(fake_results()))]
    assert per_sentence == [36, 12, 2, 2, 6, 6, 3, 72, 24, 12, 12]


def test_verdicts_follow_the_errors():
    claims = make_claims(fake_results(level=WINNING))
    assert verdicts(claims, OUTPERFORMS) == {HOLDS}
    assert verdicts(claims, COMPARABLE) == {FAILS}  # better by far is not comparable
    claims = make_claims(fake_results(level=LOSING))
    assert verdicts(claims, OUTPERFORMS) == {FAILS}
    assert all(claim.high < 0 for claim in claims if claim.test == OUTPERFORMS and "P" in claim[4])
    claims = make_claims(fake_results(level=EQUAL, trials=4000))
    assert verdicts(claims, COMPARABLE) == {HOLDS}
    assert claim_about(claims, OUTPERFORMS, "california", 75, "PA", "PRank").verdict == FAILS


def test_the_interval_is_the_one_of_the_paired_t_test():
    results = fake_results(runs=6)
    claim = claim_about(make_claims(results), OUTPERFORMS, "abalone", 50, "PA-I", "MCP")
    ours, rival = (results.final(Cell("abalone", 50, name)) for name in ("PA-I", "MCP"))
    interval = stats.ttest_rel(rival, ours).confidence_interval(0.95)
    assert claim.effect == pytest.approx((rival - ours).mean())
    assert (claim.low, claim.high) == pytest.approx((interval.low, interval.high))


def test_comparable_is_judged_by_the_stated_margin():
    results = fake_results(level=EQUAL)
    for claim in make_claims(results):
        if claim.test == COMPARABLE:
            rival = results.final(Cell(claim.dataset, claim.labels, claim.rival)).mean()
            assert (claim.verdict == HOLDS) == (abs(claim.effect) <= MARGIN * rival)


def test_the_fall_with_trials_compares_with_the_first_tenth():
    results = fake_results(trials=500, runs=12)
    claim = claim_about(make_claims(results), TRIALS, "mslr", 50, "PA", "itself at T/10")
    running = results.running(Cell("mslr", 50, "PA"), interval=True)
    early = results.trials.tolist().index(50)
    assert claim.effect == pytest.approx(running[:, early].mean() - running[:, -1].mean())
    assert claim.verdict == HOLDS


def test_errors_that_grow_do_not_fall_with_trials():
    results = fake_results(datasets=("mslr",), growing=True)
    assert verdicts(make_claims(results), TRIALS) == {FAILS, NOT_RUN}


def test_the_fall_with_the_fraction_is_measured_against_the_intervals():
    results = fake_results(runs=12)
    claims = make_claims(results)
    exact, used = (
        [results.final(Cell("mslr", f, "PA"), interval=interval).mean() for f in (50, 75)]
        for interval in (False, True)
    )
    fall = claim_about(claims, FRACTION, "mslr", 75, "PA", "itself at 50 %")
    assert fall.effect == pytest.approx(used[0] - used[1])
    wider = claim_about(claims, ALLOWANCE, "mslr", 75, "PA", "itself at 50 %")
    assert wider.effect == pytest.approx((exact[1] - used[1]) - (exact[0] - used[0]))
    assert (fall.verdict, wider.verdict) == (HOLDS, HOLDS)


def test_missing_data_sets_are_not_run():
    claims = make_claims(fake_results(datasets=("california",)))
    for claim in claims:
        assert (claim.verdict == NOT_RUN) == (claim.dataset != "california")
        assert (claim.effect is None) == (claim.verdict == NOT_RUN)


@pytest.mark.parametrize(
    "options", [{"runs": 1}, {"algorithms": ("PA sca",)}, {"fractions": (10,)}]
)
def test_what_cannot_be_tested_is_not_run(options):
    claims = make_claims(fake_results(**options))
    assert count_verdicts(claims) == {HOLDS: 0, FAILS: 0, NOT_RUN: len(claims)}


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


def test_summary_agrees_with_the_errors(tmp_path):
    results = fake_results(runs=5)
    rows = written(results.summary(), tmp_path / "summary.csv")
    assert len(rows) == 4 * 3 * 5
    columns = "dataset,labels,algorithm,C,mae,sem,interval_mae,trials,runs,hindsight_ratio"
    assert ",".join(rows[0]) == columns
    for row in rows:
        cell = Cell(row["dataset"], int(row["labels"]), row["algorithm"])
        sums = results.rows[cell]
        per_run = sums["error_sums"][:, -1] / 300
        assert float(row["mae"]) == pytest.approx(per_run.mean())
        assert float(row["sem"]) == pytest.approx(stats.sem(per_run))
        used = sums["interval_error_sums"][:, -1].mean() / 300
        assert float(row["interval_mae"]) == pytest.approx(used)
        assert (row["trials"], row["runs"]) == ("300", "5")
        assert row["C"] == ("0.01" if cell.algorithm in ("PA-I", "PA-II") else "")
        best = results.rows[cell._replace(algorithm="hindsight")]["error_sums"][:2, -1]
        ratio = per_run[:2].mean() / best.mean() * 300  # of the first two runs alone
        assert float(row["hindsight_ratio"]) == pytest.approx(ratio)


def test_one_run_has_no_standard_error_and_a_perfect_fixed_ranker_no_ratio():
    rows = fake_results(runs=1, level={"hindsight": 0.0}, fractions=(0,)).summary()
    assert {row["hindsight_ratio"] for row in rows} == {None}
    assert all(np.isnan(row["sem"]) for row in rows)
