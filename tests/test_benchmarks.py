"""The benchmarks still run, at toy size; their figures mean nothing here."""

import importlib.util
import pickle
import sys
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from operator import methodcaller
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest
from tables import ask

import annotating
import bench_against
import bench_annotate
import bench_batch
import bench_compile
import bench_dask
import bench_defaults
import bench_files
import bench_foundation
import bench_kernel
import bench_ranges
import bench_reproduce
import bench_serve
import compare_kernels
from measuring import in_fresh_process, table

pytestmark = pytest.mark.slow

pytest.importorskip("resource", reason="memory is measured by a POSIX call")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """What benchmarks do in fresh processes is done here, where all is imported and compiled."""

    def work_here(work, *args):
        answer = SimpleQueue()
        pickle.loads(pickle.dumps(work))(*args, answer)
        return answer.get()

    def run_here(command, *, check, env=None, **_):
        executable, option, what, *words = command
        assert (executable, check) == (sys.executable, True)
        if option == "-c":
            with redirect_stdout(StringIO()) as told:
                exec(what, {})
            return SimpleNamespace(stdout=told.getvalue())
        assert (option, what) == ("-m", "ordspan")
        assert env is None or Path(env["PYTHONPATH"], "ordspan").is_dir()
        answer = ask(*words)
        assert answer.exit_code == 0, answer.output
        return answer

    for module in (bench_batch, bench_files, bench_foundation, bench_kernel):
        monkeypatch.setattr(module, "in_fresh_process", work_here)
    for module in (bench_compile, bench_files):
        monkeypatch.setattr(module, "subprocess", SimpleNamespace(run=run_here, DEVNULL=None))


def test_a_fresh_process_answers_or_its_end_is_told():
    assert in_fresh_process(methodcaller("put", 7)) == 7
    with pytest.raises(RuntimeError, match="abs ended with exit code 1"):
        in_fresh_process(abs)


def test_the_foundation_benchmark_runs():
    rows = bench_foundation.run(scale=0.0)
    assert len(rows) >= 16
    assert table(rows, "toy").count("\n|") == len(rows) + 2


def test_the_batch_benchmark_runs():
    assert len(bench_batch.run(scale=0.0)) >= 8


def test_the_kernel_benchmark_runs():
    assert len(bench_kernel.run(scale=0.0)) >= 9


def test_the_benchmark_of_ranges_runs():
    data = bench_defaults.synthetic(n=200)
    rows = bench_ranges.coverages(data, n_splits=1) + bench_ranges.costs(scale=0.0)
    assert len(rows) == 18 + 4
    if importlib.util.find_spec("mord") and importlib.util.find_spec("statsmodels"):
        assert len(bench_ranges.probabilities(data, n_splits=1)) == 2


def test_the_simulation_of_annotators_runs_and_draws(tmp_path):
    size = annotating.Size(seeds=2, pool=100, test=50, points=(5, 20, 60), late=10)
    found = {"toy": annotating.simulate(bench_defaults.synthetic(n=200), size)}
    text = bench_annotate.report(found, size, "images/annotate.png")
    assert text.count("| toy |") == 3 + 6 + 6 + 3 + 1 + 1  # the last one is a column of the summary
    bench_annotate.draw(found, size, tmp_path / "images" / "annotate.png")
    assert (tmp_path / "images" / "annotate.png").stat().st_size < 200_000


def test_an_honest_range_holds_the_truth_and_no_grade_that_can_be_ruled_out():
    grid = np.meshgrid(np.arange(1, 6), np.arange(0.0, 3.0, 0.1), np.linspace(-1.0, 1.0, 41))
    ranks, doubt, noise = (values.ravel() for values in grid)
    answers = annotating.perceive(ranks, doubt, noise, n_classes=5)
    (lower, upper), (guess, _) = answers[annotating.RANGE], answers[annotating.GUESS]
    assert (lower >= 1).all()
    assert (upper <= 5).all()
    assert (lower <= ranks).all()
    assert (ranks <= upper).all()
    seen = ranks + doubt * noise
    for end in (lower, upper):
        assert (np.abs(end - seen) <= doubt + 1e-6).all()
    sure = doubt < 0.5 - 1e-6
    assert (upper[sure] == ranks[sure]).all()
    assert (guess[sure] == ranks[sure]).all()
    closest = np.abs(np.arange(1, 6) - seen[:, np.newaxis]).min(axis=1)
    np.testing.assert_allclose(np.abs(guess - seen), closest, atol=1e-12)


def test_an_exact_answer_about_an_unsure_item_costs_as_much_as_the_ratio_says():
    curves = annotating.Curves(np.array([[9, 8, 7, 6]]), np.array([[False, True, True, False]]))
    assert curves.at([1, 2, 4]).tolist() == [[9, 8, 6]]
    assert curves.at([1, 2, 3, 4, 5, 6], ratio=2.0).tolist() == [[9, 9, 8, 8, 7, 6]]


def test_the_estimates_of_the_error_are_means_over_the_items_they_name():
    items = annotating.draw_items(bench_defaults.synthetic(n=200), 60, 50, doubt=1.5, seed=0)
    run = annotating.annotate(items, annotating.RANGE, annotating.HALF, 40, seed=0)
    lower, upper = items.answers[annotating.RANGE]
    asked, left, left_true, held_out = {True: [], False: []}, [], [], []
    for number in range(10, 40):
        guess = np.array(
            [np.sum(run.thresholds[number] <= x @ run.weights[number]) + 1 for x in items.X]
        )
        missed = np.maximum(0, np.maximum(lower - guess, guess - upper))
        asked[bool(run.at_random[number])].append(missed[run.asked[number]])
        rest = [item for item in range(60) if item not in run.asked[:number]]
        left.append(missed[rest].mean())
        left_true.append(np.abs(guess - items.ranks)[rest].mean())
        held_out.append(run.errors(items)[number - 1])
    means = asked[True], asked[False], asked[True] + asked[False], left, left_true, held_out
    found = annotating.estimate(items, annotating.RANGE, run, first=10)
    np.testing.assert_allclose(found, [np.mean(values) for values in means])


def test_simulated_annotators_are_asked_once_about_each_item():
    items = annotating.draw_items(bench_defaults.synthetic(n=200), 60, 50, doubt=1.5, seed=0)
    for way in annotating.STRATEGIES:
        run = annotating.annotate(items, annotating.RANGE, way, 60, seed=0)
        assert sorted(run.asked) == list(range(60))
        assert run.at_random.sum() == {"random": 60, "half": 30, "widest": 0}[way]


def test_the_comparison_of_kernels_runs_and_draws(monkeypatch, tmp_path):
    monkeypatch.setattr(compare_kernels, "N_COMPONENTS", 20)
    monkeypatch.setattr(compare_kernels, "ONLINE_C", (1.0,))
    monkeypatch.setattr(compare_kernels, "BATCH_C", (1.0,))
    found = {"ring": compare_kernels.compare(compare_kernels.ring(n=200), n_splits=2)}
    text = compare_kernels.report(found, "kernels.png")
    assert text.count("\n| ") == len(found["ring"]) + 1 >= 9
    compare_kernels.draw(found, tmp_path / "images" / "kernels.png")
    assert (tmp_path / "images" / "kernels.png").stat().st_size < 200_000


def test_a_comparison_with_another_commit_takes_the_rows_that_both_have(tmp_path, monkeypatch):
    for name, first, second in (("then", 2.0, 4.0), ("now", 3.0, 8.0)):
        (tmp_path / name / "benchmarks").mkdir(parents=True)
        rows = [f"| a (7 ns): time | {first} | ≤ 4 × | reached |"]
        rows += [f"| b: faster | {second} | ≥ 5 × | NOT reached |", f"| {name} | 1.0 | ≤ 1 s | |"]
        (tmp_path / name / "benchmarks" / "bench.py").write_text(f"print({chr(10).join(rows)!r})")
    monkeypatch.setattr(bench_against, "HERE", tmp_path / "now" / "benchmarks")
    found = bench_against.compare(tmp_path / "then", ["bench.py"], turns=2)
    assert sorted(found) == [("a: time", 1.5, [1.5, 1.5]), ("b: faster", 0.5, [0.5, 0.5])]
    assert "| a: time | 1.50 (1.50 to 1.50) | slower |" in bench_against.report("then", found)


def test_the_benchmark_of_compiling_runs():
    assert len(bench_compile.run(scale=0.0)) == 6


def test_the_comparison_of_defaults_runs():
    size = bench_defaults.Size(runs=2, trials=50, draws=1, rows=100, splits=2)
    sets = (
        [bench_defaults.synthetic(n=200)],
        [bench_defaults.noisy(n=200)],
        [compare_kernels.ring(n=200)],
    )
    text = bench_defaults.report(*sets, size)
    assert text.count("| synthetic |") == 3
    assert "## `OrdinalSVM" in text
    assert "## `KernelOrdinalPA" in text


def test_the_experiments_benchmark_runs():
    assert len(bench_reproduce.run(scale=0.0)) == 2


def test_the_benchmark_of_files_runs():
    assert len(bench_files.run(scale=0.0)) >= 5


def test_the_benchmark_of_the_service_runs():
    assert len(bench_serve.run(scale=0.0)) == 4


def test_the_dask_benchmark_runs(monkeypatch):
    for name, few in (("N_BLOCKS", 4), ("N_MANY", 6)):
        monkeypatch.setattr(bench_dask, name, few)
    in_threads = partial(bench_dask.LocalCluster, processes=False)
    monkeypatch.setattr(bench_dask, "LocalCluster", in_threads)
    text = bench_dask.report(scale=0.0)
    assert text.count("reached |") == 3
    assert text.count("ns per row") == 3
