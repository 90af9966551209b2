"""Train a model from files of any size, with checkpoints to resume from."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.catalog import ESTIMATORS, KERNEL, PA, SVM, make_learner
from ordspan.clock import Clock
from ordspan.commands import continuing
from ordspan.commands.continuing import TrainProgress
from ordspan.commands.jobs import Report, TrainJob, no_report
from ordspan.commands.models import labels_to_learn
from ordspan.commands.outputs import report_full_disk
from ordspan.commands.stopping import Stop, Stopped, stoppable
from ordspan.core.measures import distance
from ordspan.core.state import Ranks
from ordspan.labels.grades import grades_hint
from ordspan.learners import Calibration, LinearLearner
from ordspan.learners.rows import RowValueError
from ordspan.metrics.ranks import against_constants, count_labels, nearest_constant
from ordspan.models.atomic import sole_writer, write_atomically
from ordspan.models.file import ENDING, Checkpoint, to_bytes
from ordspan.models.table import TableModel
from ordspan.tables.files import expand, identity, sizes_of
from ordspan.tables.profile import WHOLE_BYTES, ColumnChoice, are_runs, first_few
from ordspan.tables.reading import ROWS_AT_ONCE, Staging, open_rows
from ordspan.tables.rows import Batch, Cursor, FileError, check_memory, memory_limit
from ordspan.tables.text import STDIN
from ordspan.wording import hint

ROWS = ".rows"
"""Ending of the folder with the rows of a training that reads them more than once."""
CALIBRATION_SHARE, MAX_CALIBRATION = 0.2, 5000
"""Rows kept out of several passes, to calibrate on what was not learned."""
JUDGED_PORTION = 10_000
FEW_ROWS = 50
"""With fewer rows, runs of one grade mean nothing."""
FEW, RARE = 100, 10_000
"""With fewer rows no grade is rare; otherwise one is if it is in one row of this many."""
SENTENCE_PASSES = 10
SAMPLE_ROWS, CANDIDATES = 2000, 10
MUCH, NEARLY_ALL = 0.6, 0.95
"""A gain over a constant prediction that is worth a question, and the share of it."""


def train(job: TrainJob, *, report: Report = no_report) -> dict[str, Any]:
    """Train from files and write the model; if stopped, write a checkpoint and raise `Stopped`.

    Parameters
    ----------
    job : TrainJob
        What to train, where to write the model, and how.
    report : callable, optional
        Called after each portion of rows.

    Returns
    -------
    dict
        A summary in plain values.
    """
    path = Path(job.model)
    continuing.check_model_path(path, expand(job.files))
    if job.resume and job.learner == SVM:
        raise ValueError(
            "the svm is fitted in one step and has no checkpoints; train without resuming"
        )
    with sole_writer(path), stoppable(job) as (stop, pipe):
        continued = continuing.is_own_checkpoint(path, job)
        if not (job.overwrite or job.resume):
            continuing.refuse_to_overwrite(path, pipe=job.is_pipe, continued=continued)
        if job.dask is not None:
            from ordspan.commands.train_dask import train_on_dask

            with stop.at_any_moment():
                return train_on_dask(job, report).summary()
        with stop.at_any_moment():
            run = Run(job, pipe=pipe)
        if not (job.resume or continued):  # its rows would be lost
            run.checkpoint.remove()
        run.begin(stop)
        if run.model.kind == ESTIMATORS[SVM]:
            fit_at_once(run, stop, report)
        else:
            learn_all(run, stop, report)
        run.write()
    return run.summary()


def learn_all(run: Run, stop: Stop, report: Report) -> None:
    """Make the remaining passes, with checkpoints.

    Write one if stopped, and on an error of a pipe, whose rows cannot be read again.
    """
    progress, every = run.progress, run.job.checkpoint_every
    saved_rows, saved_at = progress.learned, time.monotonic()
    try:
        for epoch in range(progress.cursor.epoch, run.passes):
            for share in one_pass(run, epoch, min(every.rows or ROWS_AT_ONCE, ROWS_AT_ONCE), stop):
                rows, seconds = progress.learned - saved_rows, time.monotonic() - saved_at
                if 0 < every.rows <= rows or 0 < every.seconds <= seconds:
                    run.save_checkpoint()
                    saved_rows, saved_at = progress.learned, time.monotonic()
                report(progress.learned, progress.running_mae, share)
            stop.check()
            progress.end_pass()
            if progress.learned == 0:
                raise FileError(f"{run.files[0]}: no usable row; {run.bad.summary()}")
        run.check_skipped()
        run.calibrate()
        run.measure_held_out(stop)
    except Stopped:
        if progress.learned or not run.job.is_pipe:
            run.save_checkpoint()
        raise
    except Exception as error:
        if run.job.is_pipe and progress.learned and (path := run.checkpoint.path):
            with suppress(OSError, FileError):  # report the first error
                run.save_checkpoint()
                error.add_note(
                    f"{path} holds the model after {progress.learned:,} rows of this pipe; "
                    f"continue it with {continuing.continue_hint(path, pipe=True)}"
                )
        raise


def one_pass(run: Run, epoch: int, size: int, stop: Stop) -> Iterator[float | None]:
    """Learn from the cursor to the end of a pass, so many rows at a time; yields the share done."""
    progress = run.progress
    if not run.staged:
        # a pipe checks itself when all rows received so far are learned
        check = Stop() if run.job.is_pipe else stop
        for batch in check.between(run.reader.batches(progress.cursor, size)):
            assert batch.lower is not None
            assert batch.upper is not None
            progress.good += len(batch)
            run.learn(run.features(batch), batch.lower, batch.upper, batch.where(0))
            progress.cursor = batch.after
            if progress.good + run.bad.count >= JUDGED_PORTION:
                run.check_skipped()
            yield run.reader.share(batch)
        return
    order = run.order(epoch)
    for begin in stop.between(range(progress.cursor.row, order.size, size)):
        rows = order[begin : begin + size]
        run.learn(*run.staging.take(rows), f"row {rows[0] + 1} of the files")
        progress.cursor = Cursor(epoch, row=begin + rows.size)
        yield (epoch + (begin + rows.size) / order.size) / run.passes


def fit_at_once(run: Run, stop: Stop, report: Report) -> None:
    """Read all rows into memory, if they fit, and find the optimum."""
    from ordspan.estimators import OrdinalSVM
    from ordspan.estimators.calibrated import CalibratedOrdinal

    needed, limit = 2.0 * run.staging.n_bytes, memory_limit()
    if needed > limit:
        raise FileError(
            f"the svm needs all rows in memory, about {needed / 1e9:.1f} GB, but the limit is "
            f"{limit / 1e9:.1f} GB, half of the available memory; use the learner pa, or "
            "fewer rows"
        )
    X, lower, upper = run.staging.take(run.learned_rows)
    run.progress.learned = lower.size
    report(run.progress.learned, float("nan"), 1.0)
    stop.check()
    model = run.model
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrated = CalibratedOrdinal(OrdinalSVM(**model.parameters), random_state=run.job.seed)
        calibrated.fit(X, run.classes[np.column_stack([lower, upper]) - 1])
    run.notes += list(dict.fromkeys(str(warning.message) for warning in caught))
    fitted, model.calibration = calibrated.estimator_, calibrated.calibration_
    model.learner = fitted.learner_
    model.fitted = {name: getattr(fitted, name) for name in OrdinalSVM._fitted_numbers}
    run.measure_held_out(stop)
    run.labels += count_labels(lower, upper, None, run.classes.size)
    run.sample = (X[:SAMPLE_ROWS], lower[:SAMPLE_ROWS], upper[:SAMPLE_ROWS])
    model.training |= {
        "sweeps": int(fitted.n_iter_),
        "bytes": run.staging.n_bytes,
        "fitted_mae": float(distance(model.learner.predict_many(X), lower, upper).mean()),
    }


class Run:
    """One training: where its rows come from, the model so far, and how far it has come."""

    model: TableModel
    learned_rows: NDArray[np.int64]  # of the staged rows, like the two others
    calibration_rows: NDArray[np.int64]
    test_rows: NDArray[np.int64]

    def __init__(
        self,
        job: TrainJob,
        *,
        dask: bool = False,
        words: Counter[str] | None = None,
        pipe: Any = None,
    ) -> None:
        self.job, self.out = job, Path(job.model)
        self.base = None if job.start is None else continuing.model_to_continue(job.start)
        if self.base is None:
            choice = ColumnChoice(**{name: vars(job)[name] for name in ColumnChoice._fields})
            self.reader = open_rows(
                job.files,
                job.options,
                labels_to_learn(job),
                choice,
                classes=job.classes,
                on_bad_row=job.on_bad_row,
                words=words,
                pipe=pipe,
            )
        else:
            self.reader = continuing.reader_for(self.base, job, pipe)
        assert self.reader.grades is not None
        self.files, self.bad = self.reader.files, self.reader.bad
        self.classes = self.reader.grades.classes
        self.kind = ESTIMATORS[job.learner] if self.base is None else self.base.kind
        self.progress = TrainProgress([[0] * self.classes.size] * 3)
        self.labels = np.array(self.progress.labels)  # counts of lower, upper and exact labels
        self.last_lower = self.repeated = 0  # of the rows so far, to find long runs of a grade
        self.sample: tuple[Any, Ranks, Ranks] | None = None  # the first rows that are learned
        self.notes = list(self.reader.notes)
        self.passes = job.passes or (1 if dask else self._default_passes())
        repeats = job.passes is None and self.passes > 1
        self.shuffle = self._shuffles(dask) or (repeats and job.shuffle is None)
        job = self.job = replace(job, passes=self.passes)
        again = self.shuffle or self.passes > 1 or job.hold_out or job.learner != PA
        self.staged = bool(again) and not dask and not job.is_pipe
        folder = self.out.with_name(self.out.name + ROWS)
        self.staging = Staging(folder, self.reader.recipe.n_features)
        self.identities = [identity(path) for path in self.files if path != STDIN]
        start = [] if job.start is None else [identity(job.start)]
        self.checkpoint = Checkpoint(
            self.out.with_name(self.out.name + ENDING),
            job.to_dict() | {"dask": dask},
            self.identities + start,
            continuing.START_OVER,
        )
        self.clock, self.learned_before = Clock(), 0

    def _default_passes(self) -> int:
        """One pass, but several over few sentences, whose words are rare; that is noted."""
        job, sizes = self.job, sizes_of(self.files)
        few = self.reader.recipe.sentences and sum(sizes) <= WHOLE_BYTES
        if not few or job.is_pipe or job.learner != PA or self.base is not None:
            return 1
        other = hint("passes=1", "--passes 1")
        self.notes.append(
            f"sentences in small files are learned in {SENTENCE_PASSES} passes, each in random "
            f"order; to learn them once and in order, give {other}"
        )
        return SENTENCE_PASSES

    def begin(self, stop: Stop) -> None:
        """Make the model, or read that of the checkpoint; stage the rows if they are read again."""
        checkpoint = continuing.resumed(self) if self.job.resume else None
        if checkpoint is not None:
            self.model, self.progress = checkpoint
            self.labels[...] = self.progress.labels
            self.learned_before = self.progress.learned
            self.reader.encoder.state[...] = self.model.encoder.state
            self.model.encoder, self.model.training = self.reader.encoder, {}
            self.reader.unlabelled = self.progress.unlabelled
            self.bad.count, self.bad.examples = self.progress.skipped, self.progress.bad_rows
        self.clock = Clock()
        if self.staged:
            self.stage(stop)
        if checkpoint is None:
            self.model = self.new_model(Calibration(self.classes.size))

    def _shuffles(self, dask: bool) -> bool:
        """Whether to shuffle: as requested, or if neighbouring rows are alike, which is noted."""
        what, requested = self.reader.sorted_by, self.job.shuffle
        if what and not requested:
            where = ", within each file" if dask else ""
            how = f"they are learned in random order{where}"
            if requested is False:
                how = "they are learned in that order, as requested"
            self.notes.append(f"neighbouring rows are alike in {what}: {how}")
        return bool(what) if requested is None else requested

    def new_model(self, calibration: Calibration | None) -> TableModel:
        """An untrained model, or the one to continue from."""
        if self.base is not None:
            parameters, learner = self.base.parameters, self.base.learner
            calibration = self.base.calibration or calibration
        else:
            n_features, parameters = self.reader.recipe.n_features, self._parameters()
            learner = make_learner(self.kind, parameters, n_features, self.classes.size)
        kernel = self.kind == ESTIMATORS[KERNEL]
        return TableModel(
            encoder=self.reader.encoder,
            kind=self.kind,
            parameters=parameters,
            classes_=self.classes,
            learner=learner,
            training={},
            calibration=calibration,
            fitted={"gamma_": float(parameters["gamma"])} if kernel else {},
            columns=self.reader.columns,
            options=self.reader.options,
        )

    def _parameters(self) -> dict[str, Any]:
        """The parameters of the estimator."""
        job, parameters, recipe = self.job, self.job.parameters, self.reader.recipe
        if job.learner == KERNEL:
            budget = parameters["budget"] or 0
            check_memory(
                f"{budget} support vectors of {recipe.n_features:,} features",
                8 * budget * recipe.n_features,
                f"; give a smaller {hint('budget', '--budget')}, or use the learner pa",
            )
            parameters["gamma"] = self._gamma(parameters["gamma"])
        parameters |= {"classes": self.classes, "random_state": job.seed}
        if job.learner != SVM:
            parameters |= {"max_iter": self.passes, "shuffle": self.shuffle}
        return parameters

    def _gamma(self, rule: float | str) -> float:
        """Gamma, if by a rule, from some of the rows; for a pipe, as if standardised."""
        from ordspan.estimators.kernel import KernelOrdinalPA

        recipe = self.reader.recipe
        # a hashed column counts once, however many buckets it has
        n_columns = recipe.n_sparse or len(recipe.columns) + len(recipe.missing_indicators)
        rows: Any = np.zeros((1, n_columns))
        if self.staged and isinstance(rule, str):
            drawn = np.random.default_rng(0).permutation(self.learned_rows)
            rows = self.staging.take(drawn[:ROWS_AT_ONCE])[0]
        return KernelOrdinalPA(gamma=rule)._find_gamma(rows)

    def stage(self, stop: Stop) -> None:
        """Read the files once and keep their rows as numbers; then choose the rows to learn."""
        progress, job = self.progress, self.job
        try:
            with report_full_disk(str(self.staging.folder)):
                if not (progress.good and self.staging.n_rows == progress.good):
                    self.bad.count, self.bad.examples, self.reader.unlabelled = 0, [], 0
                    self.staging.write(self._encoded(stop))
                    progress.good = self.staging.n_rows
            if not progress.good:
                raise FileError(f"{self.files[0]}: no usable row; {self.bad.summary()}")
            self.check_skipped()
        except BaseException:
            self.staging.remove()
            raise
        drawn = np.random.default_rng(job.seed).permutation(progress.good)
        n_test = round(job.hold_out * drawn.size)
        n_kept = min(int(CALIBRATION_SHARE * (drawn.size - n_test)), MAX_CALIBRATION)
        n_kept = 0 if self.passes == 1 else n_kept
        parts = map(np.sort, np.split(drawn, [n_test, n_test + n_kept]))
        self.test_rows, self.calibration_rows, self.learned_rows = parts
        self.note_kept(n_kept)

    def note_kept(self, n_rows: int) -> None:
        """Note how many rows are kept to calibrate on."""
        if n_rows:
            self.notes.append(
                f"{n_rows:,} rows are not learned in any pass, but kept to calibrate probabilities"
            )

    def _encoded(self, stop: Stop) -> Iterator[tuple[Any, Any, Any, float | None]]:
        """Features and ranks of all rows of the files."""
        n_read = 0
        for batch in stop.between(self.reader.batches()):
            n_read += len(batch)
            yield self.features(batch), batch.lower, batch.upper, self.reader.share(batch)
            if n_read + self.bad.count >= JUDGED_PORTION:
                self.bad.check(n_read, self.job.allow_skipped)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """The staged rows of a pass, in the order to learn them."""
        if not self.shuffle:
            return self.learned_rows
        return np.random.default_rng([self.job.seed, epoch]).permutation(self.learned_rows)

    def features(self, batch: Batch) -> Any:
        """Features of rows for the learner."""
        encoder = self.reader.encoder
        return encoder.features(batch.X, batch.table, learn=self.reader.learns_scale)

    def learn(self, X: Any, lower: Ranks, upper: Ranks, where: str) -> None:
        """Learn rows in order."""
        progress = self.progress
        # later passes see rows already learned, whose scores are too optimistic
        calibration = self.model.calibration if progress.cursor.epoch == 0 else None
        try:
            predicted = self.model.learner.learn_many(
                X, lower, upper, predict=True, calibration=calibration
            )
        except RowValueError as error:
            raise FileError(f"in the rows from {where} on, {error}") from None
        assert predicted is not None
        progress.loss += int(distance(predicted, lower, upper).sum())
        progress.rows += lower.size
        progress.learned += lower.size
        self.repeated += int((np.diff(lower, prepend=self.last_lower) == 0).sum())
        self.last_lower = int(lower[-1])
        self.labels += count_labels(lower, upper, None, self.classes.size)
        if self.sample is None:
            self.sample = (X[:SAMPLE_ROWS].copy(), lower[:SAMPLE_ROWS], upper[:SAMPLE_ROWS])

    def calibrate(self) -> None:
        """Calibrate on rows that no pass has learned: scores of learned rows are too good."""
        if not (self.staged and self.calibration_rows.size):
            return
        X, lower, upper = self.staging.take(self.calibration_rows)
        learner = self.model.learner
        self.model.calibration = Calibration(self.classes.size).fit(
            learner.latent(X), lower, upper, thresholds=learner.thresholds
        )

    def check_skipped(self) -> None:
        """Raise if too many rows are bad."""
        if self.progress.good:
            self.bad.check(self.progress.good, self.job.allow_skipped)

    def save_checkpoint(self) -> None:
        """Write model and progress atomically."""
        progress = self.progress
        progress.labels, progress.unlabelled = self.labels.tolist(), self.reader.unlabelled
        progress.skipped, progress.bad_rows = self.bad.count, list(self.bad.examples)
        with report_full_disk(str(self.checkpoint.path)):
            self.checkpoint.write(self.trained(), progress)

    def write(self) -> None:
        """Write the model, and remove what is no longer needed."""
        with report_full_disk(str(self.out)):
            write_atomically(self.out, to_bytes(self.trained()))
        self.checkpoint.remove()
        self.staging.remove()

    def trained(self) -> TableModel:
        """The current model with the record of its training."""
        before: dict[str, Any] = {} if self.base is None else self.base.training
        files = [[one.name, one.size, one.digest] for one in self.identities]
        training = self.model.training | {
            "settings": self.job.to_dict(),
            "from": self.job.start,
            "identities": [*before.get("identities", ()), *files],
            "rows": before.get("rows", 0) + self.progress.learned,
            "skipped": self.bad.count,
            "mae": self.progress.mae,
            "constant": self.constant(),
            "left_out": self.reader.left_out,
            "notes": self.notes,
        }
        return replace(self.model, training=training)

    def constant(self) -> dict[str, Any] | None:
        """The best constant prediction, and its MAE."""
        lower, upper, _ = self.labels
        if not lower.any():
            return None
        rank, mae = nearest_constant(lower, upper)
        return {"grade": self.classes.tolist()[rank - 1], "mae": mae}

    def measure_held_out(self, stop: Stop) -> None:
        """Measure the model on the held-out rows."""
        if self.job.hold_out:
            with stop.at_any_moment():
                self.model.training["held_out"] = self.held_out()

    def held_out(self) -> dict[str, Any]:
        """Measures on the held-out rows."""
        from ordspan.commands.evaluate import ROW, measure_probabilities

        model, rows = self.trained(), np.empty(self.test_rows.size, dtype=ROW)
        for begin in range(0, rows.size, ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            X, rows["lower"][some], rows["upper"][some] = self.staging.take(self.test_rows[some])
            rows["score"][some] = model.answer(X).score
        if not rows.size:
            raise FileError(
                f"{self.files[0]}: holding out {self.job.hold_out:g} of the rows leaves none to "
                "evaluate; hold out a larger share, or give more rows"
            )
        lower, upper = rows["lower"].astype(int), rows["upper"].astype(int)
        rank, classes = model.ranks(rows["score"]), self.classes.tolist()
        measures = {"rows": rank.size} | against_constants(lower, upper, rank, classes)
        if model.calibration is not None:
            found = measure_probabilities(model.calibration, rows)
            measures |= {"rps": found["rps"], "ranges": found["ranges"]}
        return measures

    def summary(self) -> dict[str, Any]:
        """A summary in plain values."""
        recipe, training, seconds = self.reader.recipe, self.model.training, self.clock.seconds()
        learned = self.progress.learned
        n_labels, _, n_exact = self.labels.sum(axis=1).tolist()  # on Dask, of one pass only
        return {
            "model": str(self.out),
            "estimator": self.model.kind,
            "rows": learned,
            "ranges": round((n_labels - n_exact) * learned / max(1, n_labels)),
            "passes": self.passes,
            "features": recipe.n_features,
            "words": list(recipe.texts),
            "classes": self.classes.tolist(),
            "thresholds": self.model.learner.thresholds.tolist(),
            "updates": self.model.learner.n_updates,
            "mae": self.progress.mae,
            "constant": self.constant(),
            "held_out": training.get("held_out"),
            "fitted_mae": training.get("fitted_mae"),
            "explained_by": None if self.sample is None else sole_column(self.model, *self.sample),
            "shuffled": self.shuffle,
            "left_out": self.reader.left_out,
            "notes": self.all_notes(),
            "read": self.progress.good,
            "skipped": self.bad.count,
            "skipped_examples": self.bad.examples,
            "resumed": self.job.resume,
            "seconds": round(seconds, 3),
            "rows_per_second": round((learned - self.learned_before) / max(seconds, 1e-9)),
        }

    def all_notes(self) -> list[str]:
        """What a user may not expect."""
        notes = [*self.notes, *self.reader.encoder.unseen_notes(), *self._rare_grades()]
        notes += self.reader.label_notes()
        n_rows = int(self.labels[0].sum())
        if self.job.is_pipe and n_rows >= FEW_ROWS and are_runs(self.labels[0], self.repeated):
            notes.append(
                "the labels come in long runs of one grade, and an online learner forgets earlier "
                "grades; shuffle the rows, or give a file instead of a pipe"
            )
        return notes

    def _rare_grades(self) -> list[str]:
        """A note on grades that were found in very few labels, perhaps by mistake."""
        lower, upper, exact = self.labels
        found, n_labels, learned = lower + upper - exact, int(lower.sum()), self.progress.learned
        # a grade of an ordered type may have no rows at all
        once = max(1, round(n_labels * self.passes / max(1, learned)))
        if self.model.kind == ESTIMATORS[SVM]:
            once = 1  # times that each row is counted
        rare = (found > 0) & (found <= max(once, n_labels // RARE))
        given = self.job.classes is not None or self.base is not None
        if given or learned < FEW or not rare.any() or (~rare).sum() < 2:
            return []
        names = first_few([str(grade) for grade in self.classes[rare].tolist()])
        way = grades_hint(self.classes[~rare].tolist())
        return [f"very few rows have the grades {names}; if these are mistyped, {way} finds them"]


def sole_column(
    model: TableModel, X: Any, lower: Ranks, upper: Ranks
) -> dict[str, str | float] | None:
    """The column that alone gives nearly all of a large gain, such as a copy of the label.

    Only its part of the linear score is used, and the rows are graded by the order of that part,
    so that every grade is as frequent as among the labels.
    """
    recipe, learner = model.recipe, model.learner
    if not isinstance(learner, LinearLearner) or recipe.n_sparse or len(recipe.columns) < 2:
        return None
    sizes: dict[str | None, int] = dict.fromkeys(recipe.numbers, 1) | {
        None: len(recipe.missing_indicators)
    }
    sizes |= {name: len(words) for name, words in recipe.words}
    places = np.split(np.arange(recipe.n_plain), np.cumsum([*sizes.values()])[:-1])
    columns = X if isinstance(X, np.ndarray) else X.tocsc()
    scores: dict[str, Any] = {
        name: columns[:, own] @ learner.weights[own]
        for name, own in zip(sizes, places, strict=True)
        if name is not None
    }
    begin, end, _ = count_labels(lower, upper, None, model.classes_.size)
    constant = nearest_constant(begin, end)[1]
    gain = constant - distance(model.answer(X).rank, lower, upper).mean()
    if gain <= MUCH * constant:
        return None
    ranks, found = np.sort((lower + upper) // 2), {}
    for name in sorted(scores, key=lambda name: -np.std(scores[name]))[:CANDIDATES]:
        _, value, counts = np.unique(scores[name], return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - (counts + 1) // 2  # of the places of equal scores
        mae = distance(ranks[middle[value]], lower, upper).mean()
        found[name] = min(1.0, float((constant - mae) / gain))
    best = max(found, key=lambda name: found[name], default="")
    return {"column": best, "share": found[best]} if found.get(best, 0) >= NEARLY_ALL else None
