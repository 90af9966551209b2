"""The engine: one model for one log, however it was grouped, repeated, undone or interrupted."""

import time
from itertools import pairwise
from threading import Event as Flag
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lessons import KINDS, killed, lessons, one_by_one, start

from ordspan.files.batch import FileError, RowError
from ordspan.files.features import Recipe
from ordspan.modelfile import to_bytes
from ordspan.serving import engine as engine_module
from ordspan.serving.engine import Engine, KeyConflictError, Lesson
from ordspan.serving.models import copy_model, learn, predict_batch, warm_up
from ordspan.serving.records import batch_of

N = 60


@pytest.fixture
def engine(tmp_path):
    with_few = Engine(tmp_path / "state", start("empty"), every=7)
    yield with_few
    with_few.close()


def reopened(engine, every=7):
    engine.close()
    return Engine(engine.folder, every=every)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_depends_only_on_the_order_of_the_rows(kind, tmp_path, monkeypatch):
    """Not on how they were grouped, on snapshots, restarts and kills, or on how it is replayed."""
    monkeypatch.setattr(engine_module, "PORTION", 11)
    some = lessons(kind, N)
    expected = one_by_one(kind, some)
    rng = np.random.default_rng(1)
    engine = Engine(tmp_path / "0", start(kind), every=7)
    cuts = [0, *sorted(rng.choice(N, size=12, replace=False).tolist()), N]
    for number, (begin, end) in enumerate(pairwise(cuts)):
        if end > begin:
            middle = (begin + end) // 2
            engine.learn_groups([engine.checked(some[begin:middle]) for _ in range(middle > begin)])
            engine.learn(some[middle:end])
        if number % 3 == 1:
            engine = reopened(engine)
        elif number % 3 == 2:
            folder = killed(engine, tmp_path / f"{number}")
            engine.close()
            engine = Engine(folder, every=7)
    assert to_bytes(engine.model) == expected
    assert to_bytes(engine.replayed()) == expected
    assert [event.id for event in engine.events()] == list(range(1, N + 1))
    engine.close()


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(-1e90, 1e90),
    st.sampled_from(["1.234", "1.234,5", "7", " 8 ", "1,5", "", "true"]),
)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_a_row_is_read_alike_alone_and_beside_others(rows):
    recipe = Recipe(("a", "b"), dressed=(("a", ","),))

    def read(some):
        try:
            return batch_of(recipe, some).X
        except RowError:
            return None

    alone = [read([row]) for row in rows]
    together = read(rows)
    if any(row is None for row in alone):
        assert together is None
    else:
        np.testing.assert_array_equal(together, np.vstack(alone))


def test_a_key_counts_once(engine, tmp_path):
    first, second, third = (
        lesson._replace(key=key) for lesson, key in zip(lessons("empty", 3), "abc", strict=True)
    )
    one, two, again = engine.learn([first, second, first])
    assert (one.id, two.id, again) == (1, 2, one)
    assert engine.learn([second]) == [two]
    engine = reopened(engine)
    assert engine.learn([second, third, first])[::2] == [two, one]
    groups = [engine.checked([third]), engine.checked([third])]
    assert len({events[0].id for events in engine.learn_groups(groups)}) == 1
    assert engine.n_events == 3
    assert to_bytes(engine.model) == one_by_one("empty", [first, second, third])
    engine.close()


def test_a_new_key_in_two_groups_that_are_written_together_counts_once(engine):
    (lesson,) = lessons("empty", 1, key="a")
    first, second = engine.learn_groups([engine.checked([lesson]), engine.checked([lesson])])
    assert first == second
    assert engine.n_events == 1


def other(lesson):
    yield lesson._replace(values=[9.0, *lesson.values[1:]])
    yield lesson._replace(lower=1, upper=4)


@pytest.mark.parametrize("restart", [False, True])
def test_a_key_of_another_label_is_refused_and_nothing_changes(engine, restart):
    (lesson,) = lessons("empty", 1, key="a")
    fresh = lessons("empty", 1, seed=2, key="b")
    engine.learn([lesson])
    engine.skip({}, key="s")
    if restart:
        engine = reopened(engine)
    before = to_bytes(engine.model)
    for clash in other(lesson):
        for some in ([clash], [*fresh, clash]):
            with pytest.raises(KeyConflictError, match=f"record {len(some)}: the key 'a' belongs"):
                engine.learn(some)
    with pytest.raises(KeyConflictError, match="the key 'b'"):
        engine.learn([*fresh, *(clash._replace(key="b") for clash in other(lesson))])
    for clash in (lambda: engine.undo(1, key="s"), lambda: engine.skip({}, key="a")):
        with pytest.raises(KeyConflictError, match="belongs to another event"):
            clash()
    assert (to_bytes(engine.model), engine.n_events) == (before, 2)
    assert engine.learn(fresh)[0].id == 3  # what was refused has left no key behind
    engine.close()


BAD = (
    (["seven", 1.0, 1.0], 1, 1, "record 3: column 'a' holds 'seven'"),
    ([1e300, 1.0, 1.0], 1, 1, "record 3: column 'a' holds 1e\\+300, which is too large"),
    ([1.0, 1.0, 1.0], 0, 2, "lower rank 0"),
    ([1.0, 1.0, 1.0], 1, 5, "upper rank 5"),
    ([1.0, 1.0, 1.0], 3, 2, "lower rank 3 is above"),
)


@pytest.mark.parametrize(("values", "lower", "upper", "said"), BAD)
def test_a_bad_lesson_in_a_list_leaves_everything_as_it_was(
    engine, tmp_path, values, lower, upper, said
):
    good = lessons("empty", 12)
    engine.learn(good[:4])
    before = to_bytes(engine.model)
    with pytest.raises(ValueError, match=said):
        engine.learn([*good[4:6], Lesson(values, lower, upper, "a"), *good[6:8]])
    assert (to_bytes(engine.model), engine.n_events) == (before, 4)
    engine.learn(good[4:])
    assert to_bytes(engine.model) == one_by_one("empty", good)


def test_a_refused_group_leaves_those_beside_it(engine, tmp_path):
    some = lessons("empty", 4)
    groups = [some[:2], [some[0], some[1]._replace(upper=9)], some[2:]]
    first, error, last = engine.learn_groups(map(engine.checked, groups))
    assert [event.id for event in first + last] == [1, 2, 3, 4]
    assert isinstance(error, ValueError)
    assert to_bytes(engine.model) == one_by_one("empty", some)


def test_nothing_to_learn_is_learned(engine):
    assert engine.learn([]) == []


def test_what_was_predicted_before_is_kept(engine):
    some = lessons("empty", 30)
    for lesson in some:
        said = predict_batch(engine.model, batch_of(engine.model.recipe, [lesson.values])).ranks(0)
        (event,) = engine.learn([lesson._replace(extra={"by": "ann"})])
        assert (event.predicted, event.low, event.high) == said
        assert (event.lower, event.upper, event.extra) == (*lesson[1:3], '{"by":"ann"}')
    engine = reopened(engine)
    assert engine.events()[-1] == event
    assert engine.events(after=29) == [event]
    assert engine.totals().rows == 30
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
    assert to_bytes(again.model) == to_bytes(again.replayed()) == expected
    assert again.totals().rows == len(left) == 20
    again.close()
    engine.close()


def test_a_label_or_a_skip_is_taken_back_once_and_nothing_else_is(engine):
    engine.learn(lessons("empty", 2))
    skipped = engine.skip({"item": 3})
    before = to_bytes(engine.model)
    engine.undo(skipped.id)
    undo = engine.undo(1)
    for number in (skipped.id, 1, undo.id, 0, 99):
        with pytest.raises(ValueError, match=f"no label or skip with number {number} to undo"):
            engine.undo(number)
    assert engine.n_events == 5
    assert to_bytes(engine.model) != before


def test_an_undo_that_comes_twice_with_its_key_counts_once(engine):
    engine.learn(lessons("empty", 3))
    assert engine.undo(2, key="u") == engine.undo(2, key="u")
    assert engine.n_events == 4


def fingerprint(model):
    """All that learning changes."""
    parts = (model.learner.memory, model.scale.state, model.calibration.state)
    return model.training["rows"], *(part.tobytes() for part in parts)


@pytest.mark.parametrize("kind", ["empty", "kernel"])
def test_predictions_never_see_half_an_update(kind, tmp_path):
    """A model that is published is the one after some number of events, and stays that."""
    some, expected = lessons(kind, 90), {}
    model = copy_model(start(kind))
    for begin in range(0, 90, 3):
        expected[model.training["rows"]] = fingerprint(model)
        rows = some[begin : begin + 3]
        ends = np.array([lesson[1:3] for lesson in rows]).T
        learn(model, batch_of(model.recipe, [lesson.values for lesson in rows]), *ends)
    expected[model.training["rows"]] = fingerprint(model)
    engine, over, seen = Engine(tmp_path / "state", start(kind)), Flag(), []

    def look():
        while not over.is_set():
            model = engine.model
            seen.append((model, fingerprint(model)))
            time.sleep(0.001)

    watcher = Thread(target=look)
    watcher.start()
    for begin in range(0, 90, 3):
        engine.learn(some[begin : begin + 3])
    over.set()
    watcher.join()
    engine.close()
    for model, then in seen:
        assert then == expected[then[0]]
        assert then == fingerprint(model)  # later events have not changed it
    assert len({then for _, then in seen}) > 3


def test_threads_learn_one_after_the_other(engine):
    some = [lesson._replace(key=str(n)) for n, lesson in enumerate(lessons("empty", 24))]
    parts = [some[at::3] + some[: 8 * at] for at in range(3)]  # some are sent twice
    threads = [
        Thread(target=lambda part: [engine.learn([x]) for x in part], args=(part,))
        for part in parts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = engine.events()
    assert sorted(int(event.key) for event in events) == list(range(24))
    in_order = [some[int(event.key)] for event in events]
    assert to_bytes(engine.model) == one_by_one("empty", in_order)


def test_a_folder_goes_on_with_its_own_model_only(engine, tmp_path):
    with pytest.raises(FileError, match="holds no model yet; give one with --model, or"):
        Engine(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    engine.close()
    with pytest.raises(FileError, match="was started with another model"):
        Engine(engine.folder, start("hashed"))
    Engine(engine.folder, start("empty")).close()
    (engine.folder / "base.ordspan").unlink()
    for model in (start("empty"), None):
        with pytest.raises(FileError, match=r"the initial model of the log .* is missing"):
            Engine(engine.folder, model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_up_changes_nothing(kind):
    model = start(kind)
    before = to_bytes(model)
    warm_up(model)
    assert to_bytes(model) == before
