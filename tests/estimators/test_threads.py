"""Several threads at one model: no update is lost, and predictions do not wait."""

import copy
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event

import numpy as np
import pytest
from sklearn.base import clone

from ordspan import CalibratedOrdinal, KernelOrdinalPA, MulticlassPA, OrdinalPA, PRank
from ordspan.learners import KernelLearner, LinearLearner

N_THREADS, N_CALLS, N_ROWS, D, K = 4, 30, 100, 5, 4
MODELS = [OrdinalPA(), PRank(), MulticlassPA(), KernelOrdinalPA(budget=20, gamma=0.2)]


RNG = np.random.default_rng(0)
X, RANKS = RNG.standard_normal((N_ROWS, D)), RNG.integers(1, K + 1, N_ROWS)
GRADES = range(1, K + 1)


def in_threads(call, n_calls=N_THREADS * N_CALLS):
    with ThreadPoolExecutor(N_THREADS) as pool:
        for future in [pool.submit(call) for _ in range(n_calls)]:
            future.result()


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_threads_lose_no_update_of_an_estimator(model):
    model = clone(model)
    in_threads(lambda: model.partial_fit(X, RANKS, GRADES))
    assert model.learner_.n_trials == N_THREADS * N_CALLS * N_ROWS


def test_threads_that_begin_a_calibrated_stream_together_lose_no_row():
    def begin(model, start):
        start.wait()
        model.partial_fit(X, RANKS, GRADES)

    for _ in range(5):
        model, start = CalibratedOrdinal(), Barrier(N_THREADS)
        in_threads(partial(begin, model, start), N_THREADS)
        n_rows = N_THREADS * N_ROWS
        assert model.calibration_.n_rows == model.estimator_.learner_.n_trials == n_rows


@pytest.mark.parametrize("learner", [LinearLearner(D, K), KernelLearner(D, K, budget=20)])
def test_threads_lose_no_update_of_a_learner(learner):
    in_threads(lambda: learner.learn_many(X, RANKS))
    assert learner.n_trials == N_THREADS * N_CALLS * N_ROWS
    row, rank = X[0], int(RANKS[0])
    in_threads(lambda: [learner.learn_one(row, rank) for _ in range(10)])
    assert learner.n_trials == N_THREADS * N_CALLS * (N_ROWS + 10)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_predictions_wait_for_no_learning_and_copies_have_locks_of_their_own(model):
    model = clone(model).fit(X, RANKS)
    with model._lock, model.learner_._lock, ThreadPoolExecutor(1) as pool:
        assert pool.submit(model.predict, X).result(timeout=60).shape == (N_ROWS,)
        twins = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for twin in [*twins, clone(model)]:
            pool.submit(twin.partial_fit, X, RANKS, GRADES).result(timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_learns_while_a_thread_of_its_parent_does():
    model, held, done = OrdinalPA().fit(X, RANKS), Event(), Event()

    def learn_slowly():
        with model._lock, model.learner_._lock:
            held.set()
            done.wait(60)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(learn_slowly)
        held.wait(60)
        child = multiprocessing.get_context("fork").Process(
            target=model.partial_fit, args=(X, RANKS)
        )
        child.start()
        child.join(timeout=30)
        child.kill()
        done.set()
    assert child.exitcode == 0
