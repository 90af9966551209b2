"""How it goes, each number by its definition."""

import json

import numpy as np
import pytest

from ordspan.serving.annotate.session import History, progress
from ordspan.serving.log import Event
from ordspan.tables.encoder import Recipe

SIZE = Recipe(("size",))
GUESS = (3, 4, 3)


class Events(list):
    """The events of a log, one after the other."""

    def add(self, kind, *ranks, undoes=None, **extra):
        extra = json.dumps({"annotator": "ann"} | extra)
        ranks = ranks or (0,) * 5
        self.append(Event(len(self) + 1, kind, None, 0.0, "", *ranks, undoes, extra))

    def learn(self, item, lower, upper=None, predicted=1, low=1, high=1, tests=True, **extra):
        ranks = lower, lower if upper is None else upper, predicted, low, high
        self.add("learn", *ranks, item=item, tests=tests, **extra)


def told(events, n_items=10, recipe=SIZE):
    return progress(History(n_items, 5, events), recipe)


def test_speed_counts_work_here_and_ranges_count_all_answers():
    events = Events()
    events.learn(0, 1, 3, seconds=10)
    events.learn(1, 2, seconds=20)
    events.add("skip", item=2, seconds=30)
    events.learn(3, 2, 3, annotator="bob")  # without its time
    found = told(events)
    assert (found["answers"], found["skips"], found["items_answered"]) == (3, 1, 3)
    assert (found["minutes"], found["per_minute"]) == (1.0, 3.0)
    assert found["range_share"] == pytest.approx(2 / 3)
    assert found["mean_width"] == pytest.approx((3 + 1 + 2) / 3)
    columns = ("name", "answers", "skips", "per_minute", "range_share", "mean_width")
    people = [tuple(row[column] for column in columns) for row in found["annotators"]]
    assert people == [("ann", 2, 1, 2.0, 0.5, 2.0), ("bob", 1, 0, None, 1.0, 2.0)]
    nothing = told(Events())
    assert [nothing[name] for name in ("per_minute", "mean_width", "best_constant")] == [None] * 3


def test_error_and_coverage_are_those_of_the_random_half_before_learning():
    events = Events()
    events.learn(0, 2, 3, predicted=5, low=3, high=5)  # 2 away; meets
    events.learn(1, 4, predicted=4, low=4, high=4)  # right; contains
    events.learn(2, 1, predicted=2, low=2, high=3)  # 1 away; neither
    events.learn(3, 1, predicted=5, low=5, high=5, tests=False)
    events.learn(1, 1, predicted=5, low=5, high=5, annotator="bob", tests=False)
    found = told(events)
    assert [point["mae"] for point in found["error"]] == [2.0, 1.0, 1.0]
    half = 1.96 * np.std([2, 0, 1], ddof=1) / 3**0.5
    last = found["error"][-1]
    assert (last["answers"], last["low"]) == (3, 0.0)
    assert last["high"] == pytest.approx(1 + half)
    assert found["best_constant"] == pytest.approx((0 + 1 + 2) / 3)  # by the grade 3
    assert found["coverage"] == {
        "contains": pytest.approx(1 / 3),
        "meets": pytest.approx(2 / 3),
        "asked": 0.9,
    }


def test_agreement_is_over_pairs_of_annotators_on_the_same_item():
    events = Events()
    for name, ends in (("ann", (1, 2)), ("bob", (1, 2)), ("cid", (2, 4))):
        events.learn(0, *ends, annotator=name)
    events.learn(1, 1, annotator="ann")
    events.learn(1, 4, 5, annotator="bob")
    events.learn(2, 1, annotator="ann")
    found = told(events)["agreement"]
    assert found == {"items": 2, "pairs": 4, "same": 0.25, "meet": 0.75, "gap": 0.75}


def test_anchoring_is_the_distance_of_middles():
    events = Events()
    events.learn(0, 1, 2, guess=GUESS, shown=True)  # 2 grades
    events.learn(1, 3, guess=(2, 5, 3), shown=True)  # half a grade
    events.learn(2, 1, guess=(5, 5, 5))
    events.learn(3, 1)
    found = told(events)["anchoring"]
    assert found["shown"] == {"n": 2, "distance": 1.25}
    assert found["hidden"] == {"n": 1, "distance": 4.0}


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (Recipe(words=(("id", ("",)),)), "no column to learn from"),
        (Recipe(sentences=(("note", ()),)), "from note word by word"),
        (Recipe(("size",)), "learns from size. Add columns that say more"),
        (Recipe(hashed=("note",)), "only has texts to learn from (note)"),
    ],
)
def test_a_model_that_is_no_better_than_a_constant_is_explained_after_40_answers(recipe, words):
    bad, good = Events(), Events()
    for item in range(40):
        assert not told(bad, 40, recipe=recipe)["advice"]
        bad.learn(item, 1, predicted=5)
        good.learn(item, 1 + item % 5, predicted=1 + item % 5)
    assert words in told(bad, 40, recipe=recipe)["advice"]
    assert not told(good, 40, recipe=recipe)["advice"]
