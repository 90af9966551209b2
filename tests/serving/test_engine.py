"""The model of a log: one, however it was grouped, repeated, undone or interrupted."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from threading import Event, Thread

import numpy as np
import pytest

from ordspan.models.file import to_bytes
from serving.served import (
    KINDS,
    empty,
    killed,
    learn,
    lessons,
    model_of,
    models_along,
    refusal,
    serving,
    standing,
)

N = 60


def from_log_alone(folder):
    """The model of a folder whose snapshot is lost."""
    with suppress(FileNotFoundError):
        (folder / "snapshot.ordspan").unlink()
    return model_of(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_depends_only_on_the_order_of_the_rows(kind, tmp_path):
    """Not on how they were grouped, on snapshots, restarts and kills, or on how it is replayed."""
    some, rng = lessons(kind, N), np.random.default_rng(1)
    expected = models_along(kind, some)[-1]
    cuts = [0, *sorted(rng.choice(range(1, N), size=12, replace=False).tolist()), N]
    folder = tmp_path / "state"
    for number, (begin, end) in enumerate(pairwise(cuts)):
        with serving(folder, None if number else kind, every=7) as client:
            for last in range(begin + 1, end + 1, 2):
                learn(client, some[max(0, begin - 5) : last])  # some once more
            learn(client, some[max(0, begin - 5) : end])
            if number % 2:
                folder = killed(client, tmp_path / f"killed {number}")
    with serving(folder) as client:
        assert client.get("/model").content == expected
        assert [event.id for event in client.engine.events()] == list(range(1, N + 1))
    assert from_log_alone(folder) == expected


def test_a_log_of_many_rows_is_replayed_to_the_same_bytes(tmp_path):
    rows = [{"a": n % 17, "b": n % 5, "label": 1 + n % 5} for n in range(9000)]
    with serving(tmp_path / "state", empty()) as client:
        learn(client, rows)
        content, folder = client.get("/model").content, killed(client, tmp_path / "killed")
    assert model_of(folder) == content


def test_a_key_counts_once_and_belongs_to_one_label(tmp_path):
    first, second, fresh = lessons("empty", 3)
    clash, taken = first | {"b": 9.0}, first | {"label": [1, 4]}
    with serving(tmp_path, "empty") as client:
        one, two, again = learn(client, [first, second, first])
        assert (one["event"], two["event"], again) == (1, 2, one)
    with serving(tmp_path) as client:
        before = standing(client)
        for some in ([clash], [taken], [fresh, clash], [fresh, first | {"key": fresh["key"]}]):
            answer, key = client.post("/learn", json=some), some[-1]["key"]
            assert answer.status_code == 409
            assert f"record {len(some)}: the key '{key}' belongs" in answer.json()["detail"]
            assert standing(client) == before
        with ThreadPoolExecutor() as pool:
            with client.engine._lock:  # so that all wait and are learned together
                groups = [fresh, first], [clash], [fresh], [second, taken]
                sent = [pool.submit(client.post, "/learn", json=group) for group in groups]
                while "ordspan_queue_rows 6.0" not in client.get("/metrics").text:
                    pass
            answers = [one.result() for one in sent]
        assert [answer.status_code for answer in answers] == [200, 409, 200, 409]
        assert [done["event"] for done in answers[0].json()] == [3, 1]
        assert answers[2].json() == answers[0].json()[:1]
        content = client.get("/model").content
    assert content == models_along("empty", [first, second, fresh])[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [1, 7, 1000])
def test_undo_gives_the_model_of_the_log_without_the_event(kind, every, tmp_path):
    some = lessons(kind, 24)
    undone = {3: 3, 9: 9, 16: 8, 24: 24}  # the last one, or one that the snapshot has learned
    with serving(tmp_path / "state", kind, every=every) as client:
        for number, lesson in enumerate(some, 1):
            learn(client, lesson)
            if number in undone:
                key = some[undone[number] - 1]["key"]
                assert client.post("/undo", json={"key": key}).is_success
        content, folder = client.get("/model").content, killed(client, tmp_path / "killed")
    left = [lesson for n, lesson in enumerate(some, 1) if n not in undone.values()]
    assert content == models_along(kind, left)[-1]
    assert model_of(folder) == content
    assert from_log_alone(folder) == content


@pytest.mark.parametrize("kind", ["empty", "hashed", "kernel", "large"])
def test_predictions_never_see_half_an_update(kind, tmp_path):
    """A model that is published is the one after some number of requests, and stays that."""
    some, over, seen = lessons(kind, 90), Event(), []
    expected = models_along(kind, some)[::3]
    with serving(tmp_path, kind) as client:

        def look():
            while not over.wait(0.001):
                model = client.engine.model
                seen.append((model if len(seen) % 3 == 0 else None, to_bytes(model)))

        watcher = Thread(target=look)
        watcher.start()
        for begin in range(0, 90, 3):
            learn(client, some[begin : begin + 3])
        over.set()
        watcher.join()
    assert {content for _, content in seen} <= set(expected)
    assert all(content == to_bytes(model) for model, content in seen if model is not None)
    assert len({content for _, content in seen}) > 3


def test_a_folder_goes_on_with_its_own_model_only(tmp_path):
    state = tmp_path / "state"
    assert "holds no model yet; give one with --model, or" in refusal(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    for _ in range(2):
        with serving(state, "empty"):
            pass
        assert "was started with another model" in refusal(state, "hashed")
    (state / "base.ordspan").unlink()
    for model in ("empty", None):
        assert "the initial model of the log" in refusal(state, model)
