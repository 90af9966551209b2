"""The benchmarks still run, at toy size; their figures mean nothing here."""

import importlib
import importlib.util
from functools import partial

import numpy as np
import pytest

from measuring import table

pytestmark = pytest.mark.slow
pytest.importorskip("resource", reason="memory is measured by a POSIX call")


@pytest.mark.parametrize(
    "name", ["foundation", "kernel", "compile", "files", "serve", "dask", "sentences"]
)
def test_a_benchmark_runs(name):
    rows = importlib.import_module(f"bench_{name}").run(scale=0.0)
    assert table(rows, "toy").count("\n|") == len(rows) + 2 > 3


def test_a_tree_that_is_compared_with_itself_gives_the_same_numbers():
    import bench_reproduce

    rows = bench_reproduce.run(scale=0.0, base=str(bench_reproduce.OURS))
    assert (len(rows), rows[-1].measured) == (3, 0)


def test_the_benchmark_of_ranges_runs():
    import bench_ranges
    from ordspan.datasets import synthetic

    data = synthetic(n=200)
    assert len(bench_ranges.coverages(data, n_splits=1)) == 18
    assert len(bench_ranges.costs(scale=0.0)) == 4
    if importlib.util.find_spec("mord") and importlib.util.find_spec("statsmodels"):
        assert len(bench_ranges.probabilities(data, n_splits=1)) == 2


def test_the_benchmark_of_annotating_sentences_runs():
    from polars import DataFrame

    import bench_annotate

    words, rng = ["fine", "bad", "so so", "great", "awful"], np.random.default_rng(0)
    truth = rng.integers(1, 10, size=220)
    table = DataFrame(
        {"id": range(220), "sentence": [f"{words[t % 5]} {t} of nine" for t in truth]}
    )
    page = bench_annotate.run(table, np.column_stack([truth, truth]), truth, sessions=1)
    assert page.count("of 1 |") == len(bench_annotate.STOPS)


def test_the_comparison_with_peers_runs_and_goes_on_where_it_stopped(tmp_path):
    pytest.importorskip("pandas")
    import bench_peers

    datasets = bench_peers.available(["synthetic"], 90)
    methods = ["OrdinalPA", "SGDClassifier pa1"]
    compare = partial(bench_peers.compare, datasets, ("75 % ranges",), methods, jobs=2)
    whole = compare(keep=lambda table: bench_peers.write(table, tmp_path / "peers.csv"))
    assert list(whole.status) == ["ok"] * 3
    assert whole.mae.between(0, 4).all()
    assert bench_peers.page(whole).count("## ") > 4
    saved = bench_peers.pd.read_csv(tmp_path / "peers.csv")
    assert compare(table=saved).equals(saved)
