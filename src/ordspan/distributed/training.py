"""Iterative parameter mixing: one pass per block from the same start, then an average."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ordspan.core.measures import distance
from ordspan.core.state import TRIALS, UPDATES, Floats, add_counters, model_view, places
from ordspan.distributed.cluster import Blocks, Cluster, blocks_of
from ordspan.estimators import MulticlassPA, MulticlassPerceptron, OrdinalPA, PRank
from ordspan.estimators.base import refuse_balanced
from ordspan.labels.ranks import read_labels
from ordspan.learners import Calibration, Learner
from ordspan.learners.rows import NO_ORDER
from ordspan.models.file import Checkpoint, Rounds, estimator_header

LEARNS_IN_PASSES = (OrdinalPA, PRank, MulticlassPerceptron, MulticlassPA)
SAME = ("estimator", "classes", "n_features", "feature_names")
START_OVER = "give another checkpoint=, or delete the file to start over"
CALIBRATION_ROWS, HELD_OUT_SHARE = 5000, 0.1


class Progress(NamedTuple):
    """Progress of training, passed to ``progress`` when a block is done.

    Parameters
    ----------
    round, rounds : int
        Number of the current round, from 1, and total number of rounds.
    done, blocks : int
        Finished blocks of this round, and total number of blocks.
    mae : float
        Mean distance of this round so far, each row predicted before it was learned.

    Examples
    --------
    >>> from ordspan.distributed import Progress
    >>> def show(progress):
    ...     print(f"round {progress.round} of {progress.rounds}: MAE {progress.mae:.2f}")
    >>> show(Progress(round=1, rounds=3, done=2, blocks=4, mae=0.31))
    round 1 of 3: MAE 0.31
    """

    round: int
    rounds: int
    done: int
    blocks: int
    mae: float


class Round(NamedTuple):
    """Summary of a finished round.

    Parameters
    ----------
    round : int
        Its number, from 1.
    rows, updates : int
        Rows learned, and rows that changed the model.
    mae : float
        Mean distance in ranks, each row predicted before it was learned.

    Examples
    --------
    >>> from ordspan.distributed import Round
    >>> rounds = [Round(1, rows=400, updates=210, mae=0.42), Round(2, 400, 120, 0.31)]
    >>> [summary.mae for summary in rounds]
    [0.42, 0.31]
    """

    round: int
    rows: int
    updates: int
    mae: float


class Learned(NamedTuple):
    """What a block returns."""

    state: NDArray[np.float64]
    rows: int
    error: int  # sum of the distances in ranks
    kept: NDArray[np.float64]  # score before learning, lower and upper rank of some rows


def fit(
    client: Any,
    estimator: Any,
    X: Any,
    y: Any,
    *,
    rounds: int,
    shuffle: bool = False,
    checkpoint: Any = None,
    progress: Callable[[Progress], object] | None = None,
) -> Any:
    """Train an online estimator on the blocks of a cluster by iterative parameter mixing.

    In each round every block makes one pass from the current parameters, on the worker that has
    the block. The results are averaged in the order of the blocks, and the next round starts from
    the average. One block and one round equal ``partial_fit``, bit for bit. The result does not
    depend on scheduling or on failed workers, as long as all workers have the same kind of
    processor.

    Parameters
    ----------
    client : distributed.Client
        Connected to your cluster; it is not closed.
    estimator : OrdinalPA, PRank, MulticlassPerceptron or MulticlassPA
        Trained from scratch, in place. Its ``max_iter`` and ``shuffle`` are ignored. Without its
        ``classes``, the grades are found in an extra pass over the labels.
    X : dask array or dask data frame
        Rows. Blocks of an array may be dense or CSR. Empty blocks are skipped. Blocks are computed
        anew in each round, unless you keep them in the memory of the workers:
        ``X, y = client.persist([X, y])``. For files, use `ordspan.train_files` with
        ``dask=client``.
    y : dask array, series or data frame
        Exact labels (n,), or ranges (n, 2) or two columns, in the same blocks as ``X``.
    rounds : int
        Passes over all blocks, with averaging after each.
    shuffle : bool
        Shuffle the rows of each block in each round, seeded by ``random_state`` of the estimator.
    checkpoint : path-like, optional
        A model file that is replaced after each round. If it exists, training continues from its
        round, with the same result as without interruption; a checkpoint with different settings or
        blocks is refused. The rows are not compared.
    progress : callable, optional
        Called with a `Progress` when a block is done; for example ``print``.

    Returns
    -------
    estimator
        The fitted estimator. Its attribute ``rounds_`` lists a `Round` for each round.

    Notes
    -----
    Blocks of workers that die are computed again. For data that cannot always be read, make the
    collections under ``dask.annotate(retries=3)``. A scheduler that does not answer, no worker, or
    only workers that Dask has paused for lack of memory, are an error after 60 seconds, or as in
    ``dask.config.set({"ordspan.timeout": "5 min"})``. A block may take any time.

    References
    ----------
    R. McDonald, K. Hall and G. Mann, "Distributed Training Strategies for the Structured
    Perceptron", NAACL 2010.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ordspan import OrdinalPA
    >>> from ordspan.datasets import synthetic
    >>> from ordspan.distributed import fit
    >>> data = synthetic(n=4000)
    >>> X, y = da.from_array(data.X, chunks=(1000, -1)), da.from_array(data.ranks, chunks=1000)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = fit(client, OrdinalPA(), X, y, rounds=2)
    >>> model.rounds_[1].rows, model.score(data.X, data.ranks)
    (4000, -0.5015)
    """
    if not isinstance(estimator, LEARNS_IN_PASSES):
        names = ", ".join(kind.__name__ for kind in LEARNS_IN_PASSES)
        raise TypeError(
            f"a {type(estimator).__name__} cannot be trained in blocks; give one of {names}"
        )
    refuse_balanced(estimator.class_weight, "a block")
    if not isinstance(rounds, numbers.Integral) or rounds < 1:
        raise ValueError(f"rounds must be a whole number >= 1, got {rounds!r}")
    cluster = Cluster(client)
    blocks, sample, classes = blocks_of(cluster, X, y, estimator.classes)
    model = prepare(estimator, sample, classes)
    sizes = str(X.chunks[0]) if isinstance(X, da.Array) else len(blocks)
    settings, keeper = {"shuffle": shuffle, "blocks": sizes}, None
    if checkpoint is not None:
        header = estimator_header(model)
        settings |= {name: getattr(header, name) for name in SAME}
        settings |= {f"estimator.{name}": value for name, value in header.parameters.items()}
        keeper = Checkpoint(checkpoint, settings, [], START_OVER)
    train(cluster, model, blocks, keeper, rounds, shuffle, progress)
    estimator.__dict__ = vars(model) | estimator.get_params(deep=False)
    return estimator


def prepare(estimator: Any, sample: Any, classes: NDArray[Any]) -> Any:
    """A copy of the estimator with the features of a sample and the grades, untrained."""
    model = clone(estimator)
    model._checked(sample, reset=True)
    learner = model._make_learner(model.n_features_in_, classes.size)
    return model.from_learner(learner, classes, n_iter=0)


def _continued(model: Any, state: NDArray[np.float64]) -> Learner:
    """A learner of the same kind that continues from a state."""
    return model._make_learner(model.n_features_in_, model.classes_.size).restore(state)


def train(
    cluster: Cluster,
    model: Any,
    blocks: Blocks,
    keeper: Checkpoint | None,
    rounds: int,
    shuffle: bool = False,
    progress: Callable[[Progress], object] | None = None,
    calibrated: bool = False,
) -> Calibration | None:
    """Train a prepared model in rounds; returns a calibration, if asked for and there are rows.

    It is fitted on scores from before learning, which blocks return in the last round; so there
    is no checkpoint after that one. With several rounds these rows are held out of all of them,
    because scores of learned rows are too good.
    """
    seed, done = None, list[Any]()
    if shuffle:
        seed = int(check_random_state(model.random_state).randint(2**31))
    if keeper is not None and (found := keeper.read(type(model), Rounds)) is not None:
        then, (seed, done) = found
        model.learner_.restore(then.learner_.state)
        if len(done) > rounds:
            raise ValueError(
                f"the checkpoint {keeper.path} already has {len(done)} rounds, more than "
                f"rounds={rounds}; give another checkpoint="
            )
    past = [Round(*one) for one in done]
    model.n_iter_, parts = len(past), []
    names, pairs = zip(*blocks, strict=True)
    n_kept = -(-CALIBRATION_ROWS // len(blocks)) if calibrated else 0
    for number in range(len(past) + 1, rounds + 1):
        report = progress and _progress_reporter(progress, number, rounds, len(blocks))
        label = f"ordspan-round-{number}"
        start = cluster.share(model, f"{label}-start")
        work = [
            (start, pair, seed, (number, block), n_kept, calibrated and rounds > 1)
            for block, pair in enumerate(pairs)
        ]
        parts = cluster.run(_learn_block, work, names, label, report)
        parts = [part for part in parts if part.rows]  # without empty blocks
        past.append(_mix_into(model, parts, number))
        if keeper is not None and (number < rounds or not calibrated):
            keeper.write(model, (seed, past))
    model.rounds_ = past
    return _calibrate(model, parts) if any(part.kept.size for part in parts) else None


def _progress_reporter(
    progress: Callable[[Progress], object], number: int, rounds: int, n_blocks: int
) -> Callable[[Learned], None]:
    """A callback that passes the progress of a round to the user's function."""
    done, rows, error = 0, 0, 0

    def report(part: Learned) -> None:
        nonlocal done, rows, error
        done, rows, error = done + 1, rows + part.rows, error + part.error
        progress(Progress(number, rounds, done, n_blocks, error / rows if rows else np.nan))

    return report


def _learn_block(
    model: Any,
    block: tuple[Any, Any],
    seed: int | None,
    number: tuple[int, int],
    n_kept: int,
    hold_out: bool,
) -> Learned:
    """One pass over a block, as in ``partial_fit``, on a worker."""
    X, y = block
    if X.shape[0] == 0 and len(y) == 0:
        return Learned(model.learner_.state, 0, 0, np.empty((0, 3)))
    X = model._checked(X, reset=False)
    rows = model._rows(X, read_labels(y)[0], model.classes_)
    rows = rows._replace(weight=model._weights(rows, model.classes_))
    n_rows = rows.lower.size
    order = NO_ORDER
    if seed is not None:
        order = np.random.default_rng([seed, *number]).permutation(n_rows)
    if hold_out:  # the same rows in all rounds; a weight of 0 skips a row
        kept = np.random.default_rng(0).permutation(n_rows)
        kept = kept[: min(n_kept, int(HELD_OUT_SHARE * n_rows))]
        weight = rows.weight if rows.weight.size else np.ones(n_rows)
        weight[kept] = 0.0
        rows = rows._replace(weight=weight)
    else:  # the last ones, whose scores are closest to those of the final model
        kept = order if order.size else np.arange(n_rows)
        kept = kept[n_rows - min(n_kept, n_rows // 2) :]
    learner, scores = _continued(model, model.learner_.state), np.empty(n_rows)
    ranks = learner.learn(rows, order, feature_names=model._names(), scores_before=scores)
    assert ranks is not None
    errors = distance(ranks, rows.lower, rows.upper)
    errors = np.delete(errors, kept) if hold_out else errors
    calibration = np.column_stack([scores[kept], rows.lower[kept], rows.upper[kept]])
    return Learned(learner.state, errors.size, int(errors.sum()), calibration)


def _mix_into(model: Any, parts: list[Learned], number: int) -> Round:
    """Set the model to the average of the blocks."""
    if not parts:
        raise ValueError("every block is empty: there is no row to learn from")
    before, ends = model.learner_.state, [part.state for part in parts]
    rows = np.array([part.rows for part in parts], dtype=np.float64)
    state = mix(before, ends, (rows / rows.sum()).tolist())
    model.from_learner(_continued(model, state), model.classes_, n_iter=number)
    updates = model.n_updates_ - int(model_view(before).counters[UPDATES])
    mae = sum(part.error for part in parts) / rows.sum()
    return Round(number, int(rows.sum()), updates, float(mae))


def _calibrate(model: Any, parts: list[Learned]) -> Calibration:
    """Calibrate on the rows that the blocks scored before learning; each stands for many."""
    fold = np.repeat(np.arange(len(parts)), [len(part.kept) for part in parts])
    weight = np.array([part.rows / max(1, len(part.kept)) for part in parts])[fold]
    bands = np.array([_continued(model, part.state).thresholds for part in parts])
    scores, lower, upper = np.concatenate([part.kept for part in parts]).T
    calibration = Calibration(model.classes_.size)
    calibration.fit(scores, lower, upper, weight, thresholds=bands, fold=fold)
    calibration.use_thresholds(model.learner_.thresholds)
    return calibration


def mix(start: Floats, ends: Sequence[Floats], shares: Sequence[float]) -> Floats:
    """State of a mixture of learners that went from ``start`` to each of ``ends``.

    Weights and thresholds are weighted sums over the learners. Each step of the sum rounds a
    monotone function, the same for every threshold, so sorted thresholds stay sorted to the bit.
    Counters and the sums that balancing gathers grow by what each learner added. The average of
    all iterates is the mean over the trials of all learners. A single learner is returned
    unchanged, to the bit.

    Parameters
    ----------
    start : array
        The state that every learner started from.
    ends : sequence of arrays
        Their states afterwards, summed in this order.
    shares : sequence of float
        Their weights: non-negative, summing to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import LinearLearner
    >>> left, right = (LinearLearner(1, 2, "PA") for _ in range(2))
    >>> start = left.state.copy()
    >>> left.learn_many([[1.0]], [1]), right.learn_many([[4.0]], [1])
    (None, None)
    >>> left.weights, right.weights
    (array([-0.5]), array([-0.23529412]))
    >>> left.restore(mix(start, [left.state, right.state], [0.5, 0.5])).weights
    array([-0.36764706])
    """
    if len(ends) == 1:
        return ends[0].copy()
    mixed = start.copy()
    for end in ends:
        add_counters(mixed, start, end)
    parameters, corrections = places(start)
    mixed[parameters] = 0.0
    for end, share in zip(ends, shares, strict=True):
        mixed[parameters] += share * end[parameters]
    if corrections.size:
        before = sum_of_iterates(start)
        total = before + sum(sum_of_iterates(end) - before for end in ends)
        mixed[corrections] = model_view(mixed).counters[TRIALS] * mixed[parameters] - total
    return mixed


def sum_of_iterates(state: Floats) -> Floats:
    """Sum of the iterates of an averaging learner: the correction is trials * (last - average)."""
    parameters, corrections = places(state)
    return model_view(state).counters[TRIALS] * state[parameters] - state[corrections]
