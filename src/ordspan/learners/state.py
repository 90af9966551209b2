"""The state of a learner: one array of numbers that can be copied and restored."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Self, TypeVar

import numpy as np

from ordspan.core import memory as layout
from ordspan.core.memory import Floats
from ordspan.core.walks import Walks, walks_for


class Locked:
    """An object that one thread at a time may change; copies and pickles have their own lock."""

    @property
    def _lock(self) -> Any:
        """The lock of this process: one that was held during a fork stays held in the child."""
        return vars(self).setdefault(f"_lock_{os.getpid()}", RLock())

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if not name.startswith("_lock_")}


class State(Locked):
    """The state of an online ranker on ranks 1..K; the parameters are those of `Learner`."""

    walks: type[Walks]  # compiled for the rule
    rules: Collection[int] = ()  # allowed in a memory from a file
    fixed = "average and balanced"  # settings that cannot change during learning

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        rule: int,
        C: float,
        average: bool,
        balanced: bool = False,
        n_weights: int | None = None,
    ) -> None:
        if n_features < 1:
            raise ValueError(f"n_features must be at least 1, got {n_features}")
        if n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {n_classes}")
        self.n_features = n_features
        self.n_classes = n_classes
        n_weights = n_features if n_weights is None else n_weights
        settings = (bool(average), bool(balanced))
        self.adopt_memory(layout.new_memory(rule, C, n_weights, n_classes, *settings))

    def adopt_memory(self, memory: Floats) -> None:
        """Use a memory, including its rule, as the state; it is not copied.

        Parameters
        ----------
        memory : ndarray
            The ``memory`` of a learner with as many features and ranks.
        """
        self.memory = memory
        self.walks = walks_for(self.model.rule)

    def fault_in(self, memory: Any, n_features: int, n_classes: int) -> str | None:
        """Why a learner with these settings and the given shape cannot use a memory.

        Parameters
        ----------
        memory : ndarray
            An untrusted memory.
        n_features, n_classes : int
            The shape of the learner that is to use it.

        Returns
        -------
        str or None
            The reason, to follow the words "its state"; None if the memory is valid.

        Examples
        --------
        >>> from ordspan.learners import LinearLearner
        >>> learner = LinearLearner(n_features=1, n_classes=2)
        >>> learner.memory[0] = 99
        >>> LinearLearner(n_features=1, n_classes=2).fault_in(learner.memory, 1, 2)
        'follows an unknown rule 99'
        """
        if memory.dtype != np.float64 or not memory.dtype.isnative:
            return f"is of {memory.dtype.str}, not of this machine's float64"
        return self._fault_in(memory, n_features, n_classes)

    def _fault_in(self, memory: Floats, n_features: int, n_classes: int) -> str | None:
        return layout.memory_fault(memory, self.memory, self.rules, n_features, n_classes)

    @property
    def model(self) -> layout.Model:
        """Named views into the memory: the last iterate, without averaging."""
        return layout.model_view(self.memory)

    def restore(self, memory: Floats) -> Self:
        """Copy the memory of a learner of the same kind and shape.

        Parameters
        ----------
        memory : ndarray
            The ``memory`` of this learner, or of one made with the same parameters.

        Returns
        -------
        self
            The learner itself.
        """
        if not self._fits(memory):
            raise ValueError("the memory belongs to a learner of another kind or shape")
        self.memory = memory.copy()
        return self

    def _fits(self, memory: Floats) -> bool:
        same_shape = memory.shape == self.memory.shape
        return same_shape and layout.same_settings(memory, self.memory)

    def adopt_settings(self, other: State) -> None:
        """Continue with the settings of another learner: its rule, C and, if any, budget.

        Parameters
        ----------
        other : State
            A learner with as many features and ranks and the same ``fixed`` settings.
        """
        if not self.same_space(other):
            raise ValueError(f"{self.fixed} cannot change during learning; call fit to start over")
        self._take_rule(other)

    def same_space(self, other: State) -> bool:
        """Whether the parameters of two learners are comparable.

        Parameters
        ----------
        other : State
            The other learner.

        Returns
        -------
        bool
            True if one can continue with the settings of the other.
        """
        return self._same_space(other)

    def _same_space(self, other: State) -> bool:
        same_shape = self.memory.shape == other.memory.shape
        return same_shape and layout.same_settings(self.memory, other.memory, rule_too=False)

    def _take_rule(self, other: Any) -> None:
        layout.take_rule(self.memory, other.memory)
        self.walks = other.walks

    @contextmanager
    def unchanged_on_error(self) -> Iterator[None]:
        """Restore the learner if the block raises; other threads wait.

        Yields
        ------
        None
            While the block runs.
        """
        with self._lock:
            before = self._snapshot()
            try:
                yield
            except BaseException:
                self._roll_back(before)
                raise

    def _snapshot(self) -> Any:
        return self.memory.copy()

    def _roll_back(self, before: Any) -> None:
        self.adopt_memory(before)

    @property
    def n_trials(self) -> int:
        """Examples seen."""
        return int(self.model.counters[layout.TRIALS])

    @property
    def n_updates(self) -> int:
        """Examples that moved the parameters."""
        return int(self.model.counters[layout.UPDATES])

    @property
    def weights(self) -> Floats:
        """The weights used in prediction: the average of all iterates, or the last one."""
        model = self.model
        if (n_averaged := _n_averaged(model)) == 0:
            return model.weights.copy()
        return model.weights - model.weight_correction / n_averaged

    @property
    def thresholds(self) -> Floats:
        """The sorted thresholds used in prediction."""
        model = self.model
        if (n_averaged := _n_averaged(model)) == 0:
            return model.edges[1:-1].copy()
        average = model.edges[1:-1] - model.edge_correction[1:-1] / n_averaged
        # an average of sorted thresholds is sorted, up to its own rounding
        return np.maximum.accumulate(average)


def _n_averaged(model: layout.Model) -> int:
    """Number of iterates that predictions average over; 0 if they use the last one."""
    return int(model.counters[layout.TRIALS]) if model.edge_correction.size else 0


L = TypeVar("L", bound=State)


def with_memory(make: Callable[[int, int], L], memory: Any, n_features: int, n_classes: int) -> L:
    """A learner that uses an untrusted memory, which is checked before anything is allocated.

    >>> from ordspan.learners import LinearLearner
    >>> with_memory(LinearLearner, np.zeros(3), n_features=1, n_classes=2)
    Traceback (most recent call last):
    ValueError: its state has 3 numbers, but 1 features and 2 grades need 14
    """
    if fault := make(1, 2).fault_in(memory, n_features, n_classes):
        raise ValueError(f"its state {fault}")
    learner = make(n_features, n_classes)
    learner.adopt_memory(memory)  # as is: parameters may have changed since it last learned
    return learner
