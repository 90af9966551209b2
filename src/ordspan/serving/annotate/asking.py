"""Which item to show next: half at random, half where the model is least certain."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.models.table import TableModel
from ordspan.serving.annotate.history import RANDOM, WIDEST, Extra, Guess, History
from ordspan.serving.models import COVERAGE

ENOUGH = 30
"""Answers needed before guesses are shown or used."""
SHOW, HIDE, HALF = "show", "hide", "half"


class ItemPredictions(NamedTuple):
    """Predictions for all items."""

    rank: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    entropy: NDArray[np.float64]

    def of(self, item: int) -> Guess:
        """The guess for one item."""
        return Guess(int(self.low[item]), int(self.high[item]), int(self.rank[item]))


def predict_items(model: TableModel, features: Any) -> ItemPredictions:
    """Rank, 90 % range and entropy of every item."""
    found = model.answer(features, COVERAGE)
    assert found.low is not None
    assert found.high is not None
    chances = model.needed_calibration().probabilities(found.score)
    entropy = -(chances * np.log(np.maximum(chances, 1e-300))).sum(axis=1)
    return ItemPredictions(found.rank, found.low, found.high, entropy)


class Asker:
    """Chooses the next item for an annotator.

    Questions alternate at random between two halves of the items. The first half of a random
    order, shared by all annotators, is asked in that order, so that several people answer the
    same items and the error on them is unbiased: nothing else ever takes items from it. Of the
    other half, the item with the widest predicted range is asked. Which half comes next, and
    whether the guess is shown, is drawn from a generator seeded with the seed, the annotator and
    their number of answers.

    Parameters
    ----------
    n_items : int
        Number of items.
    seed : int
        Seed of the order and the draws.
    features : array or CSR matrix, optional
        Features of all items; without them there are no guesses.
    guess : {"half", "show", "hide"}
        Whether guesses are shown.
    """

    def __init__(self, n_items: int, seed: int, features: Any = None, guess: str = HALF) -> None:
        self.seed, self.features, self.guess = seed, features, guess
        self.order = np.random.default_rng(seed).permutation(n_items)
        self.reserved = np.zeros(n_items, dtype=bool)
        self.reserved[self.order[: (n_items + 1) // 2]] = True
        self._known: tuple[TableModel, ItemPredictions] | None = None

    def ask(
        self, history: History, model: TableModel, annotator: str, without: Collection[int] = ()
    ) -> Extra | None:
        """The next question; None if the annotator has seen all items.

        It has no guess until the model is good enough.

        Parameters
        ----------
        history : History
            Answers so far.
        model : TableModel
            Makes the guesses; never changed in place.
        annotator : str
            Name of the annotator.
        without : collection of int
            Items to leave out now.
        """
        open_items = np.ones(self.order.size, dtype=bool)
        open_items[list({*history.seen.get(annotator, ()), *without})] = False
        if not open_items.any():
            return None
        widest, show = self._draws(annotator, history.n_answers.get(annotator, 0))
        if self.features is None or not history.beats_constant(ENOUGH):
            return Extra(self._first(open_items), annotator)
        known = self._predictions(model)
        at_random, others = open_items & self.reserved, open_items & ~self.reserved
        if (widest and others.any()) or not at_random.any():
            item, why = self._widest(known, others, history), WIDEST
        else:
            item, why = self._first(at_random), RANDOM
        return Extra(item, annotator, None, why, known.of(item), show)

    def _draws(self, annotator: str, n_answers: int) -> tuple[bool, bool]:
        """Draw whether to ask the widest range, and whether to show the guess."""
        name = int.from_bytes(annotator.encode(), "big")
        draws = np.random.default_rng([self.seed, n_answers, name]).integers(2, size=2)
        shown = {SHOW: True, HIDE: False, HALF: bool(draws[1])}
        return bool(draws[0]), shown[self.guess]

    def _first(self, open_items: NDArray[np.bool_]) -> int:
        """The first open item of the random order."""
        return int(self.order[np.argmax(open_items[self.order])])

    def _widest(
        self, known: ItemPredictions, open_items: NDArray[np.bool_], history: History
    ) -> int:
        """The open item with the widest range, preferring items that nobody has answered."""
        new = open_items & (history.answered == 0)
        best = new if new.any() else open_items
        for measure in (known.high - known.low, known.entropy):
            best = best & (measure == measure[best].max())
        return self._first(best)

    def _predictions(self, model: TableModel) -> ItemPredictions:
        """Predictions for all items, cached per model."""
        if self._known is None or self._known[0] is not model:
            self._known = model, predict_items(model, self.features)
        return self._known[1]
