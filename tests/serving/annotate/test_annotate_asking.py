"""What is asked next, and when a model may guess."""

import numpy as np
import pytest
from at_work import Events

from ordspan.serving.annotate.session import ENOUGH, Asker, History
from ordspan.serving.engine import untrained
from ordspan.tables.encoder import Encoder, Recipe

K = 4


def naive_earned(events):
    """The definition: enough answers, and closer to the random half than any constant grade."""
    undone = {event.undoes for event in events}
    learned = [e for e in events if e.kind == "learn" and e.id not in undone]
    tests = [said.event for said in History(100, K, events).replies.values() if said.tests]
    if len(learned) < ENOUGH or not tests:
        return False

    def loss(rank_of):
        return sum(max(0, e.lower - rank_of(e), rank_of(e) - e.upper) for e in tests)

    return loss(lambda e: e.predicted) < min(loss(lambda e, k=k: k) for k in range(1, K + 1))


@pytest.mark.parametrize("skill", [0.3, 0.5, 0.8])
def test_a_guess_is_earned_by_answers_and_by_beating_every_constant_grade(skill):
    rng = np.random.default_rng(round(10 * skill))
    events, history, seen = Events(), History(100, K), []
    for step in range(150):
        if rng.random() < 0.1 and history.replies:
            event = events.undo(history.replies[rng.choice(list(history.replies))].event)
        else:
            lower = int(rng.integers(1, K + 1))
            upper = int(rng.integers(lower, K + 1))
            right = rng.random() < skill
            predicted = lower if right else int(rng.integers(1, K + 1))
            why = str(rng.choice(["random", "widest"]))
            event = events.learn(step % 100, lower, upper, predicted, asked_by=why)
        history.add(event)
        seen.append(history.beats_constant(ENOUGH))
        assert seen[-1] == naive_earned(events.all)
    assert not any(seen[: ENOUGH - 1])


def test_only_the_first_answer_to_an_item_tests_the_model():
    events = Events()
    first = events.learn(7, 1)
    second = events.learn(7, 1, annotator="bob")
    events.undo(first)
    events.undo(second)
    third = events.learn(7, 1)
    events.learn(8, 1, asked_by="widest")
    history = History(10, K, events.all[:2])
    assert [said.tests for said in history.replies.values()] == [True, False]
    history = History(10, K, events.all)
    assert [said.event.id for said in history.replies.values() if said.tests] == [third.id]


def model_of():
    """A model that has learned and is calibrated."""
    model = untrained(Encoder(Recipe(("x0", "x1"), standardise=False)), np.arange(1, K + 1))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    ranks = np.digitize(X.sum(axis=1) + rng.normal(0, 1, 300), [-1, 0, 1]) + 1
    model.learner.learn_many(X, ranks, ranks, calibration=model.calibration)
    return model


def features_of(n_items):
    return np.random.default_rng(1).normal(size=(n_items, 2))


def earned(n_items, answered=()):
    """A history in which the model has earned its guess, and bob has answered some items."""
    events = Events()
    for step in range(ENOUGH):
        rank = 1 + step % K
        events.learn(n_items - 1 - step, rank, predicted=rank, annotator="bob")
    for item in answered:
        events.learn(item, 1, asked_by="widest", annotator="bob")
    return events, History(n_items, K, events.all)


def all_asked(asker, history, events, annotator, model=None):
    """Ask until there is no more; every question."""
    questions = []
    while (question := asker.ask(history, model, annotator)) is not None:
        questions.append(question)
        make = events.skip if len(questions) % 3 == 0 else events.learn
        more = () if make == events.skip else (1,)
        history.add(make(question.item, *more, annotator=annotator))
    return questions


def test_everyone_meets_the_items_in_the_same_random_order_and_each_once():
    asker, events, history = Asker(50, seed=3), Events(), History(50, K)
    ann = all_asked(asker, history, events, "ann")
    bob = all_asked(asker, history, events, "bob")
    assert [q.item for q in ann] == [q.item for q in bob]
    assert sorted(q.item for q in ann) == list(range(50))
    assert {q.asked_by for q in ann + bob} == {"random"}
    assert not any(q.guess or q.shown for q in ann + bob)
    other = all_asked(Asker(50, seed=4), History(50, K), Events(), "ann")
    assert [q.item for q in ann] != [q.item for q in other]


def test_coins_are_fair_and_decided_by_seed_annotator_and_number_of_answers():
    """Heads and tails of what comes next, and of whether the guess is shown."""
    n_items, model = 3000, model_of()

    def coins(seed, name):
        asker, (events, history) = Asker(n_items, seed, features_of(n_items)), earned(n_items)
        made = []
        for item in range(400):
            question = asker.ask(history, model, name)
            made.append((question.asked_by == "widest", question.shown))
            history.add(events.learn(item, 1, asked_by="widest", annotator=name))
        return np.array(made)

    first = coins(5, "ann")
    np.testing.assert_array_equal(first, coins(5, "ann"))
    # four standard deviations of a fair coin, of both coins and of their agreement
    agree = (first[:, 0] == first[:, 1]).mean()
    assert (np.abs([*first.mean(axis=0), agree] - np.array(0.5)) < 4 * 0.5 / 400**0.5).all()
    for other in (coins(6, "ann"), coins(5, "bob")):
        assert 0.1 < (first == other).all(axis=1).mean() < 0.4


def test_half_of_the_items_are_the_widest_that_nobody_has_answered():
    n_items, model = 200, model_of()
    asker = Asker(n_items, seed=0, features=features_of(n_items))
    events, history = earned(n_items)
    known, entropy = asker.predictions(model)
    widths = known.high - known.low
    reasons = []
    for _ in range(120):
        question = asker.ask(history, model, "ann")
        reasons.append(question.asked_by)
        i, guess = question.item, question.guess
        assert (guess.lower, guess.upper) == (known.low[i], known.high[i])
        assert guess.grade == known.rank[i]
        if question.asked_by == "widest":
            new = (history.answered == 0) & ~asker.reserved
            assert new[i]
            assert (widths[i], entropy[i]) == max(zip(widths[new], entropy[new], strict=True))
        else:  # the widest rule takes none of the half that tests the model
            assert asker.reserved[i]
        history.add(events.learn(question.item, 1, predicted=1, asked_by="widest"))
    assert 40 <= reasons.count("widest") <= 80


def test_when_all_are_answered_the_widest_is_one_that_this_annotator_has_not_seen():
    n_items = 60
    events, history = earned(n_items, answered=range(n_items - ENOUGH))
    assert (history.answered > 0).all()
    asker = Asker(n_items, 0, features_of(n_items))
    questions = all_asked(asker, history, events, "ann", model_of())
    assert sorted(q.item for q in questions) == list(range(n_items))
    assert {q.asked_by for q in questions} == {"random", "widest"}


@pytest.mark.parametrize(("guess", "shares"), [("show", {1}), ("hide", {0}), ("half", {0, 1})])
def test_guesses_are_shown_to_all_to_none_or_to_a_half(guess, shares):
    model, (events, history) = model_of(), earned(60)
    asker, shown = Asker(60, 0, features_of(60), guess), set()
    for _ in range(30):
        question = asker.ask(history, model, "ann")
        assert question.guess is not None
        shown.add(question.shown)
        history.add(events.learn(question.item, 1, asked_by="widest"))
    assert shown == shares


def test_without_features_there_is_never_a_guess():
    _, history = earned(60)
    question = Asker(60, 0).ask(history, model_of(), "ann")
    assert (question.asked_by, question.guess, question.shown) == ("random", None, False)
