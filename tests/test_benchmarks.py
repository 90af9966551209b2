"""The benchmarks still run, at toy size; their figures mean nothing here."""

import importlib
import importlib.util
from functools import partial
from operator import methodcaller

import pytest

from measuring import in_fresh_process, table

pytestmark = pytest.mark.slow
pytest.importorskip("resource", reason="memory is measured by a POSIX call")


def test_a_fresh_process_answers_or_its_end_is_told():
    assert in_fresh_process(methodcaller("put", 7)) == 7
    with pytest.raises(RuntimeError, match="abs ended with exit code 1"):
        in_fresh_process(abs)


@pytest.mark.parametrize(
    "name", ["foundation", "batch", "kernel", "compile", "reproduce", "files", "serve"]
)
def test_a_benchmark_runs(name):
    rows = importlib.import_module(f"bench_{name}").run(scale=0.0)
    assert table(rows, "toy").count("\n|") == len(rows) + 2 > 3


def test_the_benchmark_of_ranges_runs():
    import bench_ranges
    from ordspan.datasets import synthetic

    data = synthetic(n=200)
    assert len(bench_ranges.coverages(data, n_splits=1)) == 18
    assert len(bench_ranges.costs(scale=0.0)) == 4
    if importlib.util.find_spec("mord") and importlib.util.find_spec("statsmodels"):
        assert len(bench_ranges.probabilities(data, n_splits=1)) == 2


@pytest.mark.filterwarnings("ignore")  # of features and fits at toy size
def test_the_benchmark_of_calibration_runs():
    pytest.importorskip("pandas")
    import bench_calibration

    page = bench_calibration.report(scale=0.0)
    assert page.count("\n| california | ") == 2 * len(bench_calibration.WAYS) + 6


def test_the_dask_benchmark_runs(monkeypatch):
    import bench_dask

    monkeypatch.setattr(bench_dask, "N_BLOCKS", 4)
    in_threads = partial(bench_dask.LocalCluster, processes=False)
    monkeypatch.setattr(bench_dask, "LocalCluster", in_threads)
    assert bench_dask.report(scale=0.0).count("reached |") == 3


def test_the_comparison_with_peers_runs_and_goes_on_where_it_stopped(tmp_path):
    pytest.importorskip("pandas")
    import bench_peers

    datasets = bench_peers.available(["synthetic"], 90, None)
    methods = ["OrdinalPA (defaults)", "SGDClassifier pa1"]
    compare = partial(bench_peers.compare, datasets, (75,), methods, splits=2, jobs=2)
    whole = compare(keep=lambda table: bench_peers.write(table, tmp_path / "peers.csv"))
    assert list(whole.status) == ["ok"] * 3
    assert whole.mae.between(0, 4).all()
    assert bench_peers.mean_ranks(whole).count("\n") == 4
    saved = bench_peers.pd.read_csv(tmp_path / "peers.csv")
    assert compare(table=saved).equals(saved)


def test_a_comparison_with_another_commit_takes_the_rows_that_both_have(tmp_path, monkeypatch):
    import bench_against

    for name, first, second in (("then", 2.0, 4.0), ("now", 3.0, 8.0)):
        (tmp_path / name / "benchmarks").mkdir(parents=True)
        rows = [f"| a (7 ns): time | {first} | ≤ 4 × | reached |"]
        rows += [f"| b: faster | {second} | ≥ 5 × | NOT reached |", f"| {name} | 1.0 | ≤ 1 s | |"]
        (tmp_path / name / "benchmarks" / "bench.py").write_text(f"print({chr(10).join(rows)!r})")
    monkeypatch.setattr(bench_against, "HERE", tmp_path / "now" / "benchmarks")
    found = bench_against.compare(tmp_path / "then", ["bench.py"], turns=2)
    assert sorted(found) == [("a: time", 1.5, [1.5, 1.5]), ("b: faster", 0.5, [0.5, 0.5])]
    assert "| a: time | 1.50 (1.50 to 1.50) | slower |" in bench_against.report("then", found)
