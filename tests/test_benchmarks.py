"""The benchmarks still run, at toy size; their figures mean nothing here."""

import importlib.util

import pytest

import bench_against
import bench_batch
import bench_compile
import bench_dask
import bench_defaults
import bench_files
import bench_foundation
import bench_kernel
import bench_ranges
import bench_reproduce
import compare_kernels
from measuring import table

pytest.importorskip("resource", reason="memory is measured by a POSIX call")


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


def test_the_dask_benchmark_runs():
    text = bench_dask.report(scale=0.0)
    assert text.count("reached |") == 3
    assert text.count("ns a row") == 3
