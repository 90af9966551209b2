"""The runner: the same bytes whatever happens on the way."""

import json
import os
import signal
import time
from multiprocessing import get_context

import numpy as np
import pytest

from ordspan.data import synthetic
from ordspan.experiments import runner
from ordspan.experiments.protocol import GRID, Curve, outcome, predictions, streams
from ordspan.experiments.runner import OtherSettings, Plan
from ordspan.experiments.table import DamagedTable, Results, read_table

DATA = synthetic(n=300, n_features=3)


def plan(**changes):
    return Plan((DATA,), **({"runs": 7, "trials": 60, "labels": (0, 75)} | changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    runner.run(plan(), folder, jobs=1)
    return folder


def content(folder):
    return (folder / "results.parquet").read_bytes()


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_jobs(finished, tmp_path):
    runner.run(plan(), tmp_path, jobs=3)
    assert content(tmp_path) == content(finished)
    runner.run(plan(seed=1), tmp_path, jobs=3, overwrite=True)
    assert content(tmp_path) != content(finished)


def test_the_table_holds_every_cell_and_its_errors_add_up(finished):
    results = Results(read_table(finished / "results.parquet"))
    assert results.labels == [0, 75]
    assert results.algorithms == ["PA", "PA-I", "PA-II", "PRank", "MCP"]
    for labels in results.labels:
        for algorithm in results.algorithms:
            cell = ("synthetic", labels, algorithm)
            errors = results.errors(cell)
            assert errors.shape == (7, 60)
            np.testing.assert_array_equal(results.final(cell), errors.mean(axis=1))
            assert (results.trajectory(cell) is None) == (algorithm == "MCP")
            assert (results.aggressiveness(cell) is None) == (algorithm not in ("PA-I", "PA-II"))
    for baseline in ("PRank", "MCP"):
        rows = [results.errors(("synthetic", labels, baseline)) for labels in (0, 75)]
        np.testing.assert_array_equal(*rows)


def test_c_is_the_best_of_the_grid_on_the_tuning_runs(finished):
    results = Results(read_table(finished / "results.parquet"))
    curve, totals = Curve("PA-I"), np.zeros(len(GRID))
    for run in range(runner.TUNING_RUNS):
        some = dict(streams(DATA, (75,), 0, runner.protocol.TUNING, run, 60))[75]
        for k, C in enumerate(GRID):
            predicted = predictions(curve.learner(3, 5, C), curve, some)
            totals[k] += outcome(predicted, curve, some).interval_errors.sum()
    assert results.aggressiveness(("synthetic", 75, "PA-I")) == GRID[totals.argmin()]


def test_an_interrupted_run_goes_on_where_it_stopped(finished, tmp_path):
    class EnoughError(Exception):
        pass

    def stop_early(what, done, total):
        if done == runner.TUNING_RUNS + 1:
            raise EnoughError

    with pytest.raises(EnoughError):
        runner.run(plan(), tmp_path, jobs=1, progress=stop_early)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").glob("*.parquet")}
    assert kept
    assert not (tmp_path / "results.parquet").exists()
    seen = []
    runner.run(plan(), tmp_path, jobs=2, progress=lambda what, *_: seen.append(what))
    assert any("already done" in what for what in seen)
    assert content(tmp_path) == content(finished)
    assert not (tmp_path / "cells").exists()


def test_finished_results_are_not_run_again(finished):
    before = (finished / "results.parquet").stat().st_mtime_ns
    runner.run(plan(), finished, jobs=1, progress=lambda *_: pytest.fail("ran again"))
    assert (finished / "results.parquet").stat().st_mtime_ns == before


def test_results_of_other_settings_are_refused_by_name(finished):
    with pytest.raises(OtherSettings, match=r"trials 60, not 61; .*--out.*--overwrite"):
        runner.run(plan(trials=61), finished, jobs=1)


def test_a_damaged_cell_is_named_not_mixed_in(tmp_path):
    runner.begin(tmp_path / "cells", runner.settings(plan(), {}), tmp_path)
    (tmp_path / "cells" / "synthetic-000000.parquet").write_bytes(b"PAR1 half")
    with pytest.raises(DamagedTable, match=r"synthetic-000000\.parquet is not a complete"):
        runner.run(plan(), tmp_path, jobs=1)
    assert not (tmp_path / "results.parquet").exists()


def test_a_full_disk_leaves_no_half_table(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    runner.begin(tmp_path / "cells", runner.settings(plan(), {}), tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        runner.run(plan(), tmp_path, jobs=1)
    assert {path.name for path in (tmp_path / "cells").iterdir()} == {"settings.json"}
    assert not (tmp_path / "results.parquet").exists()


SOME = Plan((DATA,), runs=40, trials=400, labels=(0, 75))


def run_small_cells(folder, started):
    runner.RUNS_A_CELL = 1
    started.set()
    runner.run(SOME, folder, jobs=2)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "RUNS_A_CELL", 1)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    runner.run(SOME, whole, jobs=2)
    rng, codes, context = np.random.default_rng(0), set(), get_context("spawn")
    for _ in range(int(os.environ.get("ORDSPAN_KILLS", "2"))):
        started = context.Event()
        process = context.Process(target=run_small_cells, args=(killed, started))
        process.start()
        assert started.wait(60)
        time.sleep(rng.uniform(0.0, 0.6))
        process.kill()
        process.join()
        codes.add(process.exitcode)
        for path in killed.rglob("*.parquet"):
            if not path.name.startswith("."):
                read_table(path)
    assert -signal.SIGKILL in codes  # not all had come to their end
    runner.run(SOME, killed, jobs=2)
    assert content(killed) == content(whole)


def test_settings_are_plain_json_and_tell_where_the_data_came_from():
    chosen = runner.settings(plan(), {"mslr": "not here"})
    assert json.loads(json.dumps(chosen)) == chosen
    assert chosen["sources"]["synthetic"].startswith("synthetic stream")
    assert chosen["unavailable"] == {"mslr": "not here"}
