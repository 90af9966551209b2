"""What to ask next: half at random, half where the model is least sure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.learners.scoring import rank_among
from ordspan.serving.annotate.history import RANDOM, WIDEST, Guess, History
from ordspan.tabular import TabularModel

COVERAGE = 0.9
ENOUGH = 30
"""Answers before a guess is shown or used."""
SHOW, HIDE, HALF = GUESSES = ("show", "hide", "half")


class Question(NamedTuple):
    """An item to ask, and why; without a guess where the model has not earned it."""

    item: int
    asked_by: str
    guess: Guess | None
    show: bool


class ItemPredictions(NamedTuple):
    """What a model says of all items."""

    rank: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    entropy: NDArray[np.float64]

    def of(self, item: int) -> Guess:
        """The guess for one item."""
        return Guess(int(self.low[item]), int(self.high[item]), int(self.rank[item]))


def predict_items(model: TabularModel, features: Any) -> ItemPredictions:
    """Rank, range at 90 % and uncertainty of every item, in one call each."""
    calibration = model.needed_calibration()
    score = model.learner.latent(features)
    rank = rank_among(model.learner.thresholds, score)
    low, high = calibration.ranges(score, rank, COVERAGE)
    chances = calibration.probabilities(score)
    entropy = -(chances * np.log(np.maximum(chances, 1e-300))).sum(axis=1)
    return ItemPredictions(rank, low, high, entropy)


class Asker:
    """Chooses the next item for an annotator.

    Half of the items come from one random order that is the same for everyone, so that several
    people answer the same items and the error on them is honest; the other half are those with
    the widest predicted range. Which half it is, and whether the guess is shown, are coins of a
    generator that only the seed, the annotator and their number of answers decide.

    Parameters
    ----------
    n_items : int
        Number of items.
    seed : int
        Of the order and the coins.
    features : array or CSR matrix, optional
        Of all items; left out, there is nothing to guess from.
    guess : {"half", "show", "hide"}
        Whether guesses are shown.
    """

    def __init__(self, n_items: int, seed: int, features: Any = None, guess: str = HALF) -> None:
        self.seed, self.features, self.guess = seed, features, guess
        self.order = np.random.default_rng(seed).permutation(n_items)
        self._known: tuple[TabularModel, ItemPredictions] | None = None

    def ask(
        self, history: History, model: TabularModel, annotator: str, without: Collection[int] = ()
    ) -> Question | None:
        """The next question; None where an annotator has seen all items.

        Parameters
        ----------
        history : History
            What was answered so far.
        model : TabularModel
            Makes the guesses; never changed in place.
        annotator : str
            Who is asked.
        without : collection of int
            Items not to ask now.
        """
        open_items = np.ones(self.order.size, dtype=bool)
        open_items[list({*history.seen.get(annotator, ()), *without})] = False
        if not open_items.any():
            return None
        widest, show = self._coins(annotator, history.n_answers.get(annotator, 0))
        if self.features is None or not history.earned(ENOUGH):
            return Question(self._first(open_items), RANDOM, None, show=False)
        known = self._predictions(model)
        if widest:
            item, why = self._widest(known, open_items, history), WIDEST
        else:
            item, why = self._first(open_items), RANDOM
        return Question(item, why, known.of(item), show)

    def _coins(self, annotator: str, n_answers: int) -> tuple[bool, bool]:
        """Whether to ask where the range is widest, and whether to show the guess."""
        name = int.from_bytes(annotator.encode(), "big")
        coins = np.random.default_rng([self.seed, n_answers, name]).integers(2, size=2)
        shown = {SHOW: True, HIDE: False, HALF: bool(coins[1])}
        return bool(coins[0]), shown[self.guess]

    def _first(self, open_items: NDArray[np.bool_]) -> int:
        """The first open item of the random order."""
        return int(self.order[np.argmax(open_items[self.order])])

    def _widest(
        self, known: ItemPredictions, open_items: NDArray[np.bool_], history: History
    ) -> int:
        """The open item with the widest range, of those that nobody answered if there are any."""
        new = open_items & (history.answered == 0)
        best = new if new.any() else open_items
        for measure in (known.high - known.low, known.entropy):
            best = best & (measure == measure[best].max())
        return self._first(best)

    def _predictions(self, model: TabularModel) -> ItemPredictions:
        """What the model says of all items, found once for each model."""
        if self._known is None or self._known[0] is not model:
            self._known = model, predict_items(model, self.features)
        return self._known[1]
