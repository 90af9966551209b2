"""The benchmarks still run, at toy size; their figures mean nothing here."""

import bench_foundation
from measuring import table


def test_the_foundation_benchmark_runs():
    rows = bench_foundation.run(scale=0.0)
    assert len(rows) >= 16
    assert table(rows, "toy").count("\n|") == len(rows) + 2
