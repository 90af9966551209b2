"""What is asked next, and when a model may guess."""

import json
from contextlib import ExitStack
from itertools import count

import numpy as np
import pytest
from at_work import annotating, write_items

from ordspan.serving.annotate.session import ENOUGH


@pytest.fixture
def start(tmp_path):
    """Begins a session with a number of items; its caller, and the true ranks of the items."""
    numbers = count()

    def starting(n_items, **options):
        path, ranks = write_items(tmp_path, n_items)
        state = tmp_path / f"state {next(numbers)}"
        return sessions.enter_context(annotating(state, path, id="id", **options)), ranks

    with ExitStack() as sessions:
        yield starting


def naive_earned(events):
    """The definition: enough answers, and closer to the random half than any constant grade.

    Only the first answer to an item tests the model.
    """
    answers, tests = {}, set()
    for event in events:
        note = json.loads(event.extra)
        if event.kind == "learn":
            if note["asked_by"] == "random" and note["item"] not in answers.values():
                tests.add(event.id)
            answers[event.id] = note["item"]
        answers.pop(event.undoes, None)
    tested = [event for event in events if event.id in tests & answers.keys()]

    def loss(rank_of):
        return sum(max(0, e.lower - rank_of(e), rank_of(e) - e.upper) for e in tested)

    constant = min(loss(lambda e, k=k: k) for k in range(1, 6))
    return len(answers) >= ENOUGH and loss(lambda e: e.predicted) < constant


@pytest.mark.parametrize("skill", [0.0, 0.3, 1.0])
def test_a_guess_is_earned_by_answers_and_by_beating_every_constant_grade(start, skill):
    rng = np.random.default_rng(0)
    caller, ranks = start(60)
    earned = []
    for step in range(90):
        annotator = str(rng.choice(["ann", "bob"]))
        if rng.random() < 0.1:
            caller.undo(str(step), annotator)
        else:
            asked = caller.next(annotator)
            rank = ranks[asked["item"]] if rng.random() < skill else rng.integers(1, 6)
            caller.answer(asked, rank, rng.integers(rank, 6), annotator)
        earned.append(caller.next("cid")["guess"] is not None)
        assert earned[-1] == naive_earned(caller.engine.events())
    assert not any(earned[: ENOUGH - 1])
    assert any(earned) or skill < 1.0


def test_everyone_meets_the_items_in_the_same_random_order_and_each_once(start):
    orders = []
    for _ in range(2):
        caller, ranks = start(50, drop=["size", "age", "town"])  # nothing to learn from
        asked = [caller.answer_many(ranks, 50, name) for name in ("ann", "bob")]
        for one in (*asked[0], *asked[1]):
            assert (one["asked_by"], one["guess"], one["show_guess"]) == ("random", None, False)
        orders += [[one["item"] for one in some] for some in asked]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(50))


@pytest.mark.parametrize(("guess", "shown"), [("show", {1}), ("hide", {0}), ("half", {0, 1})])
def test_coins_are_fair_and_decided_by_seed_annotator_and_number_of_answers(start, guess, shown):
    """Heads and tails of which half comes next, and of whether the guess is shown."""

    def coins(caller):
        asked = [caller.next(f"person {number}") for number in range(400)]
        assert all(one["guess"] for one in asked)
        return np.array([(one["asked_by"] == "widest", one["show_guess"]) for one in asked])

    caller, ranks = start(100, guess=guess)
    caller.answer_many(ranks, 60)
    first = coins(caller)
    np.testing.assert_array_equal(first, coins(caller))
    assert set(first[:, 1].tolist()) == shown
    if guess == "half":  # four standard deviations of a fair coin, of both and of their agreement
        shares = [*first.mean(axis=0), (first[:, 0] == first[:, 1]).mean()]
        assert (np.abs(np.array(shares) - 0.5) < 4 * 0.5 / 400**0.5).all()
        caller.session.seed += 1
        assert 0.1 < (first == coins(caller)).all(axis=1).mean() < 0.4


def test_half_of_the_items_are_the_widest_that_nobody_has_answered(start):
    caller, ranks = start(120)
    caller.answer_many(ranks, 50, "bob")
    session, reasons = caller.session, []
    for _ in range(40):
        asked, calibration = caller.next(), caller.engine.model.calibration
        score = caller.engine.model.learner.latent(session.features)
        (low, high), chances = calibration.ranges(score, 0.9), calibration.probabilities(score)
        entropy = -(chances * np.log(np.maximum(chances, 1e-300))).sum(axis=1)
        item, widths = asked["item"], high - low
        assert asked["guess"] == [low[item], high[item], calibration.predict(score)[item]]
        reasons.append(asked["asked_by"])
        if reasons[-1] == "widest":
            new = (session.history.answered == 0) & ~session.reserved
            assert new[item]
            assert (widths[item], entropy[item]) == max(zip(widths[new], entropy[new], strict=True))
        else:  # the widest rule takes none of the half that tests the model
            assert session.reserved[item]
        caller.answer(asked, ranks[item])
    assert 10 <= reasons.count("widest") <= 30


def test_when_all_are_answered_the_widest_is_one_that_this_annotator_has_not_seen(start):
    caller, ranks = start(60)
    caller.answer_many(ranks, 60, "bob")
    asked = caller.answer_many(ranks, 60)
    assert sorted(one["item"] for one in asked) == list(range(60))
    assert {one["asked_by"] for one in asked} == {"random", "widest"}
    assert caller.next() == {"item": None, "answered": 60, "left": 0}
    told = caller.call("/api/progress").json()
    assert told["error"][-1]["mae"] < told["best_constant"]
