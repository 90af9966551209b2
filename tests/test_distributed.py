"""Training on Dask: the same answers wherever the blocks are, whoever dies meanwhile."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster, Status
from examples import ESTIMATORS, graded
from sklearn.base import clone

from fuzz.dask_kills import KILLED, fit_and_kill, mortals
from ordspan import KernelOrdinalPA, MulticlassPA, OrdinalPA, OrdinalSVM, PRank, load, save
from ordspan.distributed import Round, fit, predict
from ordspan.learners import LinearLearner, MulticlassPALearner, PRankLearner

pytestmark = pytest.mark.filterwarnings(
    # sockets and loops of clusters that were killed on purpose are closed by the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::ResourceWarning",
)
needs_signals = pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")
CLASSES = [1, 2, 3, 4]
KNOWN = OrdinalPA(classes=CLASSES)  # so that no pass looks for the grades
BUSY = 50  # seconds that a busy machine may take on top: what is tested is that nothing hangs
MIXED = [estimator for estimator in ESTIMATORS if not isinstance(estimator, KernelOrdinalPA)]
WEIGHTED = OrdinalPA(class_weight={1: 3.0, 2: 0.5})
X, Y, SPANS = graded(n=400)


@pytest.fixture(scope="module")
def client():
    with mortals() as client, client.as_current():
        yield client


@contextmanager
def in_this_process(n_workers):
    """A client of workers that are quickly there and quickly gone."""
    workers = {"n_workers": n_workers, "threads_per_worker": 1, "processes": False}
    with (  # without a limit of memory, nothing but the tests pauses workers or resumes them
        LocalCluster(**workers, memory_limit=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def threads():
    with in_this_process(2) as client:
        yield client


def lazy(array, size=100):
    chunks = (size, -1) if array.ndim == 2 else size
    return da.from_array(array, chunks=chunks)


def patience(seconds):
    return dask.config.set({"ordspan.timeout": seconds})


def made_by(function, **settings):
    """Rows whose blocks a function makes on the workers."""
    return lazy(X).map_blocks(function, dtype=float, meta=X[:0], **settings)


def at_block(number, action):
    """Rows one block of which does something as it is made."""

    def made(block, block_info=None):
        if block_info[0]["chunk-location"][0] == number:
            action()
        return block

    return made_by(made)


def state_of(model):
    return model.learner_.state


def check_same(model, other):
    np.testing.assert_array_equal(state_of(model), state_of(other))
    assert model.rounds_ == other.rounds_


# the same answers


@pytest.mark.parametrize("labels", [Y, SPANS], ids=["exact", "intervals"])
@pytest.mark.parametrize("estimator", [*MIXED, WEIGHTED], ids=repr)
def test_one_block_on_dask_is_plain_training(client, estimator, labels):
    here = clone(estimator).partial_fit(X, labels, classes=CLASSES).partial_fit(X, labels)
    there = clone(estimator).set_params(classes=CLASSES)
    given = fit(client, there, lazy(X, 400), lazy(labels, 400), rounds=2)
    assert given is there
    np.testing.assert_array_equal(state_of(there), state_of(here))
    assert there.n_updates_ == here.n_updates_
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


def mixed_by_hand(kind, pieces, labels, rounds):
    """The definition, in plain NumPy: every piece from the same start, then the mean by rows."""
    mixed = kind(X.shape[1], len(CLASSES))
    for _ in range(rounds):
        ends = []
        for rows, ranks in zip(pieces, labels, strict=True):
            learner = kind(X.shape[1], len(CLASSES))
            learner.model.weights[:] = mixed.model.weights
            learner.model.edges[:] = mixed.model.edges
            learner.learn_many(rows, ranks)
            ends.append((len(rows) / len(X), learner.model))
        mixed.model.weights[:] = sum(share * end.weights for share, end in ends)
        mixed.model.edges[1:-1] = sum(share * end.edges[1:-1] for share, end in ends)
    return mixed


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (OrdinalPA(average=False, balanced=False), LinearLearner),
        (PRank(), PRankLearner),
        (MulticlassPA(), MulticlassPALearner),
    ],
)
def test_rounds_mix_by_rows_as_defined(client, estimator, kind):
    cuts = [150, 250]
    expected = mixed_by_hand(kind, np.split(X, cuts), np.split(Y, cuts), rounds=3)
    rows = da.from_array(X, chunks=((150, 100, 150), 4))
    model = fit(client, estimator, rows, lazy(Y), rounds=3)
    np.testing.assert_allclose(model.coef_, expected.weights, rtol=1e-12, atol=1e-14)
    if hasattr(model, "thresholds_"):
        np.testing.assert_allclose(model.thresholds_, expected.thresholds, rtol=1e-12)
    assert model.learner_.n_trials == 1200
    assert model.n_iter_ == 3


def test_the_result_does_not_depend_on_the_workers_or_on_who_comes_first(client, threads):
    def late(block, block_info=None):
        time.sleep(0.05 * (3 - block_info[0]["chunk-location"][0]))  # the last block comes first
        return block

    plain = fit(client, OrdinalPA(), lazy(X), lazy(SPANS), rounds=2)
    check_same(fit(client, OrdinalPA(), made_by(late), lazy(SPANS), rounds=2), plain)
    check_same(fit(threads, OrdinalPA(), lazy(X), lazy(SPANS), rounds=2), plain)


def test_every_container_gives_the_same_model(client, tmp_path):
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names).assign(low=SPANS[:, 0], high=SPANS[:, 1], grade=Y)
    for start in range(0, 400, 100):
        frame[start : start + 100].to_parquet(tmp_path / f"part-{start}.parquet")
    frames, read = dd.from_pandas(frame, npartitions=4), dd.read_parquet(tmp_path)
    sparse = lazy(X).map_blocks(sp.csr_array, meta=sp.csr_array((0, 4)))
    expected = state_of(fit(client, OrdinalPA(), lazy(X), lazy(SPANS), rounds=2))
    for rows, labels in (
        (sparse, lazy(SPANS)),
        (frames[names], frames[["low", "high"]]),
        (read[names], read[["low", "high"]]),
    ):
        model = fit(client, OrdinalPA(), rows, labels, rounds=2)
        sums = 1e-12 if rows is sparse else 0  # sparse ones add in another order
        np.testing.assert_allclose(state_of(model), expected, rtol=sums)
        named = getattr(model, "feature_names_in_", np.array([])).tolist()
        assert named == ([] if rows is sparse else names)
    exact = fit(client, OrdinalPA(), frames[names], frames["grade"], rounds=1)
    check_same(exact, fit(client, OrdinalPA(), lazy(X), lazy(Y), rounds=1))


@pytest.mark.parametrize(("persist", "times"), [(True, 1), (False, 3)])
def test_blocks_are_made_once_a_round_unless_they_are_persisted(client, tmp_path, persist, times):
    def made(block):
        (tmp_path / f"{time.time_ns()}-{os.getpid()}").touch()
        return block

    both = lazy(np.column_stack([X, Y])).map_blocks(made, dtype=float, meta=X[:0])
    rows, labels = both[:, :4], both[:, 4]  # made from the same blocks
    if persist:
        rows, labels = client.persist([rows, labels])
    fit(client, clone(KNOWN), rows, labels, rounds=3)
    assert len(list(tmp_path.iterdir())) == 4 * times


def test_classes_are_found_in_all_blocks_together(client):
    ordered = np.argsort(Y, kind="stable")  # no block shows every class
    model = fit(client, OrdinalPA(), lazy(X[ordered]), lazy(Y[ordered]), rounds=1)
    assert model.classes_.tolist() == CLASSES
    order = ["d", "c", "b", "a"]
    words = np.array(order)[Y - 1]
    with pytest.raises(ValueError, match=r"order of the grades .* is not known"):
        fit(client, PRank(), lazy(X), lazy(words), rounds=1)
    named = pd.Series(pd.Categorical(words, categories=order, ordered=True))
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("wxyz")), npartitions=4)
    told = fit(client, OrdinalPA(), frame, dd.from_pandas(named, npartitions=4), rounds=1)
    assert told.classes_.tolist() == order


# faults


def slowly(block):
    """Blocks that take a while, so that a round has a middle."""
    time.sleep(0.1)
    return block


@pytest.mark.slow
@needs_signals
def test_workers_killed_at_random_moments_change_nothing(client):
    """As often as the environment says in ORDSPAN_KILLS."""
    rng, killed = np.random.default_rng(0), len(KILLED)
    for number in range(int(os.environ.get("ORDSPAN_KILLS", "2"))):
        fit_and_kill(client, rng, persist=number % 2 == 0)
    assert len(KILLED) > killed


@pytest.mark.slow
@needs_signals
def test_a_block_that_kills_its_workers_is_named(client):
    def allow(deaths):
        return client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", deaths)
        )

    allow(0)
    rows = at_block(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
    # Dask also blames a task that ran beside the deadly one when their worker died
    with pytest.raises(RuntimeError, match=r"every worker that took it died, 1 in a row"):
        fit(client, clone(KNOWN), rows, lazy(Y), rounds=1)
    allow(3)
    client.wait_for_workers(2, timeout=60)


def test_a_cluster_that_loses_its_last_worker_is_an_error_in_time():
    started, lost = time.monotonic(), r"has had no worker for 0\.5 s; with .*=PATH"
    with in_this_process(1) as lonely, patience("1s"), pytest.raises(RuntimeError, match=lost):
        fit(
            *(lonely, OrdinalPA(), lazy(X), lazy(Y)),
            rounds=2,
            progress=lambda progress: progress.done == 4 and lonely.cluster.scale(0),
        )
    assert time.monotonic() - started < 10 + BUSY


@pytest.mark.slow
def test_a_cluster_whose_workers_are_paused_is_an_error_in_time(threads):
    def pause(progress):
        for worker in threads.cluster.workers.values():
            threads.loop.add_callback(setattr, worker, "status", Status.paused)

    started = time.monotonic()
    stuck = "2 of 2 workers paused for lack of memory and none working for 0.5 s"
    for reason in (stuck, "had no running worker within 1 s"):  # paused meanwhile, then before
        with patience(1), pytest.raises(RuntimeError, match=reason):
            fit(threads, clone(KNOWN), lazy(X), lazy(Y), rounds=99, progress=pause)
    assert time.monotonic() - started < 10 + BUSY


def test_an_interrupted_connection_is_an_error_that_says_so(threads):
    def interrupt(progress):
        if progress.done == 1 and progress.round == 2:
            threads.loop.add_callback(threads.scheduler_comm.comm.abort)
            deadline = time.monotonic() + BUSY
            while threads.futures or threads.status != "running":  # until it has connected again
                assert time.monotonic() < deadline
                time.sleep(0.01)

    with pytest.raises(ConnectionError, match=r"lost the scheduler at .*connection-lost; with"):
        fit(threads, OrdinalPA(), lazy(X), lazy(Y), rounds=3, progress=interrupt)


def test_a_bad_row_names_its_block_and_row_and_leaves_the_model_unchanged(client):
    model = clone(KNOWN).fit(X, Y)
    before, numbers = state_of(model).copy(), np.arange(400)
    bad = np.where((numbers == 217)[:, None] & (np.arange(4) == 1), np.nan, X)
    ninth, missing = np.where(numbers == 317, 9, Y), np.where(numbers == 103, np.nan, Y)
    for rows, labels, reason in (
        (bad, Y, r"^block 2: Input X contains NaN: row 17, column 1"),
        (X, ninth, r"^block 3, row 17: label 9 is not one of the grades"),
        (X, missing, r"^block 1.*row 3.*nan"),
    ):
        with pytest.raises(ValueError, match=reason):
            fit(client, model, lazy(rows), lazy(labels), rounds=1)
    with pytest.raises(ValueError, match=r"^block 1: .*row 3 is .*nan.*; only a range"):
        fit(client, OrdinalPA(), lazy(X), lazy(missing), rounds=1)
    np.testing.assert_array_equal(state_of(model), before)


@pytest.mark.parametrize("error", [OSError, ConnectionError, TimeoutError, CancelledError])
def test_a_block_that_raises_is_named_and_no_fault_of_the_cluster(threads, error):
    def fail():
        raise error("of its own")

    with pytest.raises(ValueError, match=rf"^block 3: {error.__name__}: of its own"):
        fit(threads, clone(KNOWN), at_block(3, fail), lazy(Y), rounds=1)


@pytest.fixture
def own_scheduler(tmp_path):
    """The address and process of a scheduler with one worker, both processes of their own."""
    file = str(tmp_path / "scheduler.json")
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    quiet = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask_command = [sys.executable, "-m", "dask"]
    own = ["--host", "127.0.0.1", "--scheduler-file", file]
    scheduler = subprocess.Popen(
        [*dask_command, "scheduler", *own, "--port", "0", "--no-dashboard"], **quiet
    )
    worker = subprocess.Popen(
        [*dask_command, "worker", *own, "--no-nanny", "--no-dashboard", "--nthreads", "1"], **quiet
    )
    yield file, scheduler.pid
    for process in (worker, scheduler):
        process.kill()
        process.wait()


@pytest.mark.slow
@needs_signals
def test_a_lost_scheduler_is_an_error_in_time_and_a_checkpoint_goes_on(
    client, own_scheduler, tmp_path
):
    file, pid = own_scheduler

    def send(name):
        with suppress(ProcessLookupError):  # it was killed before
            os.kill(pid, getattr(signal, name))

    settings = {"rounds": 4, "checkpoint": tmp_path / "checkpoint"}
    with Client(scheduler_file=file, timeout=60, set_as_default=False) as doomed:
        fit(doomed, OrdinalPA(), lazy(X), lazy(Y), rounds=1)  # imported before the clock starts
        for how, round_ in (("SIGSTOP", 2), ("SIGKILL", 3)):

            def lose(progress, how=how, round_=round_):
                if progress.round == round_:
                    send(how)

            started = time.monotonic()
            lost = r"lost the scheduler at tcp://.*checkpoint="
            with patience(4), pytest.raises(ConnectionError, match=lost):
                fit(doomed, OrdinalPA(), made_by(slowly), lazy(Y), **settings, progress=lose)
            assert time.monotonic() - started < 4 + BUSY
            assert load(settings["checkpoint"]).n_iter_ == round_ - 1
            send("SIGCONT")
        doomed.close(timeout=1)
    seen = []
    model = fit(client, OrdinalPA(), lazy(X), lazy(Y), **settings, progress=seen.append)
    assert {progress.round for progress in seen} == {3, 4}
    check_same(model, fit(client, OrdinalPA(), lazy(X), lazy(Y), rounds=4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": OrdinalPA(C=0.5)}, r"made with estimator.C = 0.1, now it is 0.5; give ano"),
        ({"estimator": PRank()}, "made with estimator = 'OrdinalPA', now it is 'PRank'"),
        ({"size": 200}, r"blocks = '\(100, 100, 100, 100\)', now it is '\(200, 200\)'"),
        ({"X": X[:, :3]}, "n_features = 4, now it is 3"),
        ({"y": Y + 1}, "classes = .*, now it is "),
        ({"shuffle": True}, "shuffle = False, now it is True"),
        ({"rounds": 1}, "already has 2 rounds, more than rounds=1"),
        ({"cut": -1}, "damaged"),
        ({"path": "model"}, "is a model file, not a checkpoint"),
        ({"path": "no/file"}, "no/file: cannot be written"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(threads, tmp_path, change, message):
    def go(path="checkpoint", estimator=None, X=X, y=Y, rounds=2, size=100, **settings):
        model = OrdinalPA() if estimator is None else estimator
        blocks = lazy(X, size), lazy(y, size)
        return fit(threads, model, *blocks, rounds=rounds, checkpoint=tmp_path / path, **settings)

    first = go()
    check_same(go(progress=pytest.fail), first)  # nothing is left to do
    save(first, tmp_path / "model")
    kept = tmp_path / "checkpoint"
    kept.write_bytes(kept.read_bytes()[: change.pop("cut", None)])
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        go(**change)


def test_a_checkpoint_keeps_the_seed_of_the_shuffling(client, tmp_path):
    """Without a seed of the user's, the one that was drawn must outlive the interruption."""

    def stop(progress):
        if progress.round == 2:
            raise KeyboardInterrupt

    settings = {"checkpoint": tmp_path / "checkpoint", "shuffle": True}
    with pytest.raises(KeyboardInterrupt):
        fit(client, OrdinalPA(), lazy(X), lazy(Y), rounds=2, progress=stop, **settings)
    kept, ends = (tmp_path / "checkpoint").read_bytes(), []
    for _ in range(2):
        (tmp_path / "checkpoint").write_bytes(kept)
        ends.append(fit(client, OrdinalPA(), lazy(X), lazy(Y), rounds=2, **settings).coef_)
    np.testing.assert_array_equal(*ends)
    seeded = fit(client, OrdinalPA(random_state=3), lazy(X), lazy(Y), rounds=2, shuffle=True)
    other = fit(client, OrdinalPA(random_state=4), lazy(X), lazy(Y), rounds=2, shuffle=True)
    assert not np.array_equal(seeded.coef_, other.coef_)


# progress


def test_progress_tells_rounds_blocks_and_the_running_error(client):
    seen = []
    model = fit(client, OrdinalPA(), lazy(X), lazy(SPANS), rounds=2, progress=seen.append)
    assert [(p.round, p.done) for p in seen] == [(r, d) for r in (1, 2) for d in (1, 2, 3, 4)]
    assert all(p.rounds == 2 and p.blocks == 4 for p in seen)
    assert [p.mae for p in seen if p.done == 4] == [r.mae for r in model.rounds_]
    error = moved = 0
    for rows, spans in zip(np.split(X, 4), np.split(SPANS, 4), strict=True):
        learner = LinearLearner(4, 4, average=True, balanced=True)
        ranks = learner.learn_many(rows, *spans.T, predict=True)
        error += np.maximum(0, np.maximum(spans[:, 0] - ranks, ranks - spans[:, 1])).sum()
        moved += learner.n_updates
    assert model.rounds_[0] == Round(1, 400, moved, error / 400)


@pytest.mark.parametrize("labels", [Y, np.full(len(Y), 9)], ids=["fitted", "refused"])
def test_nothing_is_left_on_the_cluster(client, labels):
    error = None
    try:
        fit(client, clone(KNOWN), lazy(X), lazy(labels), rounds=2)
    except ValueError as refusal:
        error = refusal  # and all that its traceback refers to
    assert (error is None) == (labels is Y)
    deadline = time.monotonic() + 10 + BUSY
    while left := client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


# prediction


@pytest.mark.parametrize("model", [OrdinalPA(classes=[*"dcba"]), OrdinalSVM()], ids=repr)
def test_prediction_is_lazy_and_agrees_with_the_model(client, model):
    labels = np.array([*"dcba"])[Y - 1] if model.classes else Y
    model.fit(X, labels)
    sparse = lazy(X).map_blocks(sp.csr_array, meta=sp.csr_array((0, 4)))
    for rows in (da.from_array(X, chunks=(150, 3)), sparse):
        found = predict(model, rows)
        assert isinstance(found, da.Array)
        assert found.dtype == model.classes_.dtype
        np.testing.assert_array_equal(found.compute(), model.predict(X))
    frame = pd.DataFrame(X, columns=list("wxyz"), index=np.arange(1000, 1400))
    model.fit(frame, labels)
    series = predict(model, dd.from_pandas(frame, npartitions=3))
    assert isinstance(series, dd.Series)
    computed = series.compute()
    np.testing.assert_array_equal(computed, model.predict(frame))
    assert computed.index.equals(frame.index)
    assert computed.dtype == series.dtype


def test_prediction_waits_for_the_question_and_takes_empty_blocks():
    def explode(block):
        raise AssertionError("computed too early")

    model = OrdinalPA().fit(X, Y)
    predict(model, made_by(explode))
    some = lazy(X)[lazy(X)[:, 0] > 10]  # nobody knows yet that no row is left
    assert predict(model, some).compute(scheduler="sync").size == 0
    with pytest.raises(ValueError, match="X has 3 features, but OrdinalPA is expecting 4"):
        predict(model, lazy(X[:, :3])).compute(scheduler="sync")
    with pytest.raises(TypeError, match="X is a ndarray"):
        predict(model, X)


# bad input


def test_empty_blocks_are_skipped(client):
    chunks = (0, 200, 0, 200, 0)
    holes = da.from_array(X, chunks=(chunks, 4)), da.from_array(SPANS, chunks=(chunks, 2))
    with_holes = fit(client, OrdinalPA(), *holes, rounds=2)
    without = fit(client, OrdinalPA(), lazy(X, 200), lazy(SPANS, 200), rounds=2)
    np.testing.assert_array_equal(state_of(with_holes), state_of(without))
    nothing = da.from_array(X[:0], chunks=(1, 4)), da.from_array(Y[:0], chunks=1)
    with pytest.raises(ValueError, match="every block is empty"):
        fit(client, OrdinalPA(classes=CLASSES), *nothing, rounds=1)


FRAMES = dd.from_pandas(pd.DataFrame(X, columns=list("wxyz")), npartitions=4)
RAGGED = da.concatenate(
    [da.from_delayed(dask.delayed(X[:200, :w]), (200, 4), float) for w in (4, 3)]
)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"estimator": OrdinalSVM()}, TypeError, "a OrdinalSVM cannot be trained in blocks"),
        ({"estimator": OrdinalPA(class_weight="balanced")}, ValueError, "a block sees only some"),
        ({"rounds": 0}, ValueError, "rounds must be a whole number >= 1"),
        ({"y": lazy(Y, 150), "X": FRAMES}, ValueError, "X has 4 blocks and y has 3; split both"),
        ({"X": lazy(X)[lazy(X)[:, 0] < 0]}, ValueError, r"^block \d: .*inconsistent"),
        (
            {"X": RAGGED, "y": lazy(Y, 200)},
            ValueError,
            r"^block 1: X has 3 features, but OrdinalPA",
        ),
        ({"X": X}, TypeError, "X is a ndarray, not a Dask collection"),
        ({"X": ["a.csv"]}, TypeError, r"files with ordspan.train_files\(.*dask=client"),
        ({"y": Y}, TypeError, "y is a ndarray, not a Dask collection"),
        ({"y": lazy(Y[1:])}, ValueError, "X has 400 rows, but y has 399 labels"),
        ({"estimator": OrdinalPA(random_state=-1), "shuffle": True}, ValueError, "andom_state|eed"),
    ],
)
def test_what_cannot_be_mixed_is_refused(client, changes, error, message):
    asked = {"estimator": OrdinalPA(), "X": lazy(X), "y": lazy(Y), "rounds": 1} | changes
    with pytest.raises(error, match=message):
        fit(client, **asked)


def test_a_client_that_cannot_work_is_named_in_seconds():
    started = time.monotonic()
    with pytest.raises(TypeError, match=r"client is None, not a distributed.Client"):
        fit(None, OrdinalPA(), lazy(X), lazy(Y), rounds=1)
    none = pytest.raises(RuntimeError, match="had no running worker within 1 s; start one")
    with in_this_process(0) as empty, patience(1), none:
        fit(empty, OrdinalPA(), lazy(X), lazy(Y), rounds=1)
    with pytest.raises(ValueError, match="client is closed; connect"):
        fit(empty, OrdinalPA(), lazy(X), lazy(Y), rounds=1)
    assert time.monotonic() - started < 10 + BUSY
