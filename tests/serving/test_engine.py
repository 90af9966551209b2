"""The engine: one model for one log, however it was grouped, repeated, undone or interrupted."""

import time
from itertools import pairwise
from threading import Event as Flag
from threading import Thread

import numpy as np
import pytest
from lessons import KINDS, killed, lessons, one_by_one, start

from ordspan.models.file import from_bytes, to_bytes
from ordspan.serving import engine as engine_module
from ordspan.serving.engine import SNAPSHOT, Engine, warm_up
from ordspan.serving.records import RequestError
from ordspan.tables.rows import FileError

N = 60


def from_log_alone(folder):
    """The model of a folder whose snapshot is lost."""
    (folder / SNAPSHOT).unlink()
    engine = Engine(folder)
    engine.close()
    return to_bytes(engine.model)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_depends_only_on_the_order_of_the_rows(kind, tmp_path, monkeypatch):
    """Not on how they were grouped, on snapshots, restarts and kills, or on how it is replayed."""
    monkeypatch.setattr(engine_module, "PORTION", 11)
    monkeypatch.setattr(engine_module, "SMALL", 0)  # as if it were large
    some = [lesson._replace(key=str(n)) for n, lesson in enumerate(lessons(kind, N))]
    expected = one_by_one(kind, some)
    rng = np.random.default_rng(1)
    warm_up(start(kind))  # changes nothing
    engine = Engine(tmp_path / "0", start(kind), every=7)
    cuts = [0, *sorted(rng.choice(range(1, N), size=12, replace=False).tolist()), N]
    for number, (begin, end) in enumerate(pairwise(cuts)):
        middle = (begin + end) // 2
        if middle > begin:
            both = [some[begin:middle], some[max(0, begin - 5) : middle]]  # some once more
            engine.learn_groups(both)
        engine.learn(some[max(0, begin - 5) : end])
        if number % 3 == 1:
            engine.close()
            engine = Engine(engine.folder, every=7)
        elif number % 3 == 2:
            folder = killed(engine, tmp_path / f"{number}")
            engine.close()
            engine = Engine(folder, every=7)
    assert to_bytes(engine.model) == expected
    assert [event.id for event in engine.events()] == list(range(1, N + 1))
    engine.close()
    assert from_log_alone(engine.folder) == expected


def test_a_key_counts_once_and_belongs_to_one_label(tmp_path):
    engine = Engine(tmp_path, start("empty"))
    first, second, fresh = (
        lesson._replace(key=key) for lesson, key in zip(lessons("empty", 3), "abc", strict=True)
    )
    one, two, again = engine.learn([first, second, first])
    assert (one.id, two.id, again) == (1, 2, one)
    for _ in range(2):
        before = to_bytes(engine.model)
        for other in ({"values": "[9.0,1.0,1.0]"}, {"lower": 1, "upper": 4}):
            clash = first._replace(**other)
            for some in ([clash], [fresh, clash]):
                said = f"record {len(some)}: the key 'a' belongs"
                with pytest.raises(RequestError, match=said):
                    engine.learn(some)
            with pytest.raises(RequestError, match="the key 'c'"):
                engine.learn([fresh, clash._replace(key="c")])
        assert (to_bytes(engine.model), engine.n_events) == (before, 2)
        engine.close()
        engine = Engine(tmp_path)
    groups = [[fresh, first], [first._replace(upper=9, key=None)], [fresh]]  # sent together
    done, error, same = engine.learn_groups(groups)
    assert ([event.id for event in done], same) == ([3, 1], done[:1])
    assert isinstance(error, ValueError)
    assert to_bytes(engine.model) == one_by_one("empty", [first, second, fresh])
    engine.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [1, 7, 1000])
def test_undo_gives_the_model_of_the_log_without_the_event(kind, every, tmp_path):
    engine = Engine(tmp_path / "state", start(kind), every=every)
    left = {}
    for number, lesson in enumerate(lessons(kind, 24), 1):
        (event,) = engine.learn([lesson])
        left[event.id] = lesson
        if number in (3, 9, 24):  # the last one
            engine.undo(event.id)
            del left[event.id]
        if number == 16:  # one that the snapshot has learned
            engine.undo(8)
            del left[8]
    expected = one_by_one(kind, left.values())
    assert to_bytes(engine.model) == expected
    again = Engine(killed(engine, tmp_path / "killed"))
    assert to_bytes(again.model) == expected
    again.close()
    assert from_log_alone(again.folder) == expected
    engine.close()


@pytest.mark.parametrize("small", [0, 1 << 18])
@pytest.mark.parametrize("kind", ["empty", "hashed", "kernel"])
def test_predictions_never_see_half_an_update(kind, small, tmp_path, monkeypatch):
    """A model that is published is the one after some number of events, and stays that."""
    monkeypatch.setattr(engine_module, "SMALL", small)
    some = lessons(kind, 90)
    engine, over, seen = Engine(tmp_path / "state", start(kind)), Flag(), []
    begun = start(kind).training["rows"]

    def look():
        while not over.is_set():
            model = engine.model
            content = to_bytes(model)
            seen.append((model if len(seen) % 3 == 0 else from_bytes(content, "model")[1], content))
            time.sleep(0.001)

    watcher = Thread(target=look)
    watcher.start()
    for begin in range(0, 90, 3):
        engine.learn(some[begin : begin + 3])
    over.set()
    watcher.join()
    engine.close()
    for model, content in seen:
        n_learned = model.training["rows"] - begun
        assert n_learned % 3 == 0
        assert content == to_bytes(model)  # later events have not changed it
        assert content == one_by_one(kind, some[:n_learned])
    assert len({content for _, content in seen}) > 3


def test_a_folder_goes_on_with_its_own_model_only(tmp_path):
    with pytest.raises(FileError, match="holds no model yet; give one with --model, or"):
        Engine(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    Engine(tmp_path / "state", start("empty")).close()
    with pytest.raises(FileError, match="was started with another model"):
        Engine(tmp_path / "state", start("hashed"))
    Engine(tmp_path / "state", start("empty")).close()
    (tmp_path / "state" / "base.ordspan").unlink()
    for model in (start("empty"), None):
        with pytest.raises(FileError, match=r"the initial model of the log .* is missing"):
            Engine(tmp_path / "state", model)
