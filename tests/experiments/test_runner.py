"""The runner: the same bytes whatever happens on the way."""

import json
import os
import signal
import time
from multiprocessing import get_context

import numpy as np
import pytest

from ordspan.datasets import synthetic
from ordspan.experiments import runner
from ordspan.experiments.protocol import GRID, Curve, error_sums, predictions, streams
from ordspan.experiments.results import DamagedTable, Results
from ordspan.experiments.runner import OtherSettings, Plan

DATA = synthetic(n=300, n_features=3)


def plan(**changes):
    return Plan((DATA,), **({"runs": 7, "trials": 60, "labels": (0, 75)} | changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    runner.run(plan(), folder, jobs=1)
    return folder


def content(folder):
    return (folder / "results.npz").read_bytes()


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_jobs(finished, tmp_path):
    runner.run(plan(), tmp_path, jobs=3)
    assert content(tmp_path) == content(finished)
    runner.run(plan(seed=1), tmp_path, jobs=3, overwrite=True)
    assert content(tmp_path) != content(finished)


def test_the_table_holds_every_curve_and_its_errors(finished):
    results = Results.load(finished / "results.npz")
    assert results.labels == [0, 75]
    assert results.algorithms == ["PA", "PA-I", "PA-II", "PRank", "MCP"]
    for (_, labels, name), row in ((cell, results.rows[cell]) for cell in results.cells):
        curve, C = Curve(name), None if np.isnan(row["C"]) else row["C"]
        assert (C is None) == (name not in ("PA-I", "PA-II"))
        assert np.isnan(row["thresholds"]).any() == (name == "MCP")
        for run in range(7):
            (some,) = streams(DATA, (labels,), 0, runner.protocol.REPORTED, run, 60)
            predicted = predictions(curve.learner(3, 5, C), curve, some)
            sums = error_sums(predicted, some, *some.labels(curve))
            np.testing.assert_array_equal(row["error_sums"][run], sums[0])
            np.testing.assert_array_equal(row["interval_error_sums"][run], sums[1])


def test_c_is_the_best_of_the_grid_on_the_tuning_runs(finished):
    curve, totals = Curve("PA-I"), np.zeros(len(GRID))
    for run in range(runner.TUNING_RUNS):
        (some,) = streams(DATA, (75,), 0, runner.protocol.TUNING, run, 60)
        for k, C in enumerate(GRID):
            predicted = predictions(curve.learner(3, 5, C), curve, some)
            totals[k] += error_sums(predicted, some, *some.labels(curve))[1, -1]
    results = Results.load(finished / "results.npz")
    assert results.rows["synthetic", 75, "PA-I"]["C"] == GRID[totals.argmin()]


def test_algorithms_without_c_run_alone(tmp_path):
    results = runner.run(plan(algorithms=("PRank", "MCP")), tmp_path, jobs=1)
    assert np.isnan(results.table["C"]).all()
    assert results.final(("synthetic", 75, "MCP")).min() > 0


def test_an_interrupted_run_goes_on_where_it_stopped(finished, tmp_path):
    class EnoughError(Exception):
        pass

    def stop_early(what, done, total):
        if done == runner.TUNING_RUNS + 1:
            raise EnoughError

    with pytest.raises(EnoughError):
        runner.run(plan(), tmp_path, jobs=1, progress=stop_early)
    assert not (tmp_path / "results.npz").exists()
    kept = tmp_path / "cells" / "synthetic 0.npy"
    np.save(kept, np.load(kept) + 1)  # to see that it is read, not run again
    runner.run(plan(), tmp_path, jobs=2)
    whole, resumed = (Results.load(folder / "results.npz") for folder in (finished, tmp_path))
    changed = resumed.table["error_sums"] - whole.table["error_sums"]
    assert changed[:, :5].all()
    assert not changed[:, 5:].any()
    assert not (tmp_path / "cells").exists()


def test_finished_results_are_not_run_again(finished):
    before = (finished / "results.npz").stat().st_mtime_ns
    runner.run(plan(), finished, jobs=1, progress=lambda *_: pytest.fail("ran again"))
    assert (finished / "results.npz").stat().st_mtime_ns == before


def test_results_of_other_settings_are_refused_by_name(finished):
    with pytest.raises(OtherSettings, match=r"trials 60, not 61; .*--out.*--overwrite"):
        runner.run(plan(trials=61), finished, jobs=1)


def test_a_damaged_cell_is_named_not_mixed_in(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "synthetic 0.npy").write_bytes(b"\x93NUMPY half")
    with pytest.raises(DamagedTable, match=r"synthetic 0\.npy is damaged; delete it and run again"):
        runner.run(plan(), tmp_path, jobs=1)
    assert not (tmp_path / "results.npz").exists()


@pytest.mark.parametrize("content", [b"", b"PK half", b"neither"])
def test_a_damaged_table_is_named(content, tmp_path):
    (tmp_path / "results.npz").write_bytes(content)
    with pytest.raises(DamagedTable, match=r"results\.npz is damaged"):
        Results.load(tmp_path / "results.npz")


def test_a_full_disk_leaves_no_half_table(finished, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        runner.run(plan(), tmp_path, jobs=1)
    assert [path.name for path in tmp_path.rglob("*")] == ["cells"]


SOME = Plan((DATA,), runs=200, trials=400, labels=(0, 75))


def run_some(folder, started):
    started.set()
    runner.run(SOME, folder, jobs=2)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    runner.run(SOME, whole, jobs=2)
    rng, codes, context = np.random.default_rng(0), set(), get_context("spawn")
    before = set()
    for _ in range(int(os.environ.get("ORDSPAN_KILLS", "2"))):
        started = context.Event()
        process = context.Process(target=run_some, args=(killed, started))
        process.start()
        assert started.wait(60)
        time.sleep(rng.uniform(0.0, 0.6))
        process.kill()
        process.join()
        codes.add(process.exitcode)
        kept = {path for path in killed.rglob("*.npy") if not path.name.startswith(".")}
        assert kept >= before  # no finished result is lost
        for path in kept:
            np.load(path)
        before = kept
    assert -signal.SIGKILL in codes  # not all had come to their end
    runner.run(SOME, killed, jobs=2)
    assert content(killed) == content(whole)


def test_settings_are_plain_json_and_tell_where_the_data_came_from():
    chosen = runner.settings(plan(), {"mslr": "not here"})
    assert json.loads(json.dumps(chosen)) == chosen
    assert chosen["sources"]["synthetic"].startswith("synthetic stream")
    assert chosen["unavailable"] == {"mslr": "not here"}
