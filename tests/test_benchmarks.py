"""The benchmarks still run, at toy size; their figures mean nothing here."""

import bench_batch
import bench_foundation
import bench_reproduce
from measuring import table


def test_the_foundation_benchmark_runs():
    rows = bench_foundation.run(scale=0.0)
    assert len(rows) >= 16
    assert table(rows, "toy").count("\n|") == len(rows) + 2


def test_the_batch_benchmark_runs():
    assert len(bench_batch.run(scale=0.0)) >= 8


def test_the_experiments_benchmark_runs():
    assert len(bench_reproduce.run(trials=20, whole=False)) == 2
