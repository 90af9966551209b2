"""The runner: the same bytes whatever happens on the way."""

import os
import signal
import time
from multiprocessing import get_context

import numpy as np
import pytest

from ordspan.commands.jobs import ReproduceJob
from ordspan.datasets import synthetic
from ordspan.experiments.protocol import TUNING_RUNS
from ordspan.experiments.reproduce import run
from ordspan.experiments.results import Results

DATA = synthetic(n=300, n_features=3)
OPTIONS = {"runs": 7, "trials": 60, "fractions": (0, 75), "jobs": 1}


def run_in(folder, progress=lambda *_: None, **changes):
    job = ReproduceJob(out=folder, **(OPTIONS | changes))
    return run(job, [DATA], {}, progress)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    run_in(folder)
    return folder


def content(folder):
    return (folder / "results.npz").read_bytes()


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_jobs(finished, tmp_path):
    run_in(tmp_path, jobs=3)
    assert content(tmp_path) == content(finished)
    run_in(tmp_path, seed=1, jobs=3, overwrite=True)
    assert content(tmp_path) != content(finished)


@pytest.fixture
def interrupted(tmp_path):
    """A folder in which the first cell of errors was finished, and that cell."""

    def stop_early(what, done, total):
        if done == TUNING_RUNS + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in(tmp_path, progress=stop_early)
    assert not (tmp_path / "results.npz").exists()
    (cell,) = tmp_path.glob("cells-*/synthetic 0.npy")
    return tmp_path, cell


def test_an_interrupted_run_goes_on_where_it_stopped(finished, interrupted):
    folder, cell = interrupted
    np.save(cell, np.load(cell) + 1)  # to see that it is read, not run again
    run_in(folder, jobs=2)
    whole, resumed = (Results.load(each / "results.npz") for each in (finished, folder))
    changed = resumed.table["error_sums"] - whole.table["error_sums"]
    assert changed[:, :5].all()
    assert not changed[:, 5:].any()
    assert [path.name for path in folder.iterdir()] == ["results.npz"]


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY half", b"neither"])
def test_a_damaged_cell_is_run_again(finished, interrupted, damage):
    folder, cell = interrupted
    cell.write_bytes(damage)
    run_in(folder)
    assert content(folder) == content(finished)


def test_finished_results_are_not_run_again_and_other_settings_refused_by_name(finished):
    before = (finished / "results.npz").stat().st_mtime_ns
    run_in(finished, progress=lambda *_: pytest.fail("ran again"))
    assert (finished / "results.npz").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match=r"trials 60, not 61; .*--out.*--overwrite"):
        run_in(finished, trials=61)


@pytest.mark.parametrize("damage", [b"", b"PK half", b"neither"])
def test_a_damaged_table_is_named(damage, tmp_path):
    (tmp_path / "results.npz").write_bytes(damage)
    with pytest.raises(ValueError, match=r"results\.npz is damaged"):
        Results.load(tmp_path / "results.npz")


SOME = {"runs": 200, "trials": 400, "jobs": 2}


def run_some(folder, started):
    started.set()
    run_in(folder, **SOME)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_in(whole, **SOME)
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
    run_in(killed, **SOME)
    assert content(killed) == content(whole)
