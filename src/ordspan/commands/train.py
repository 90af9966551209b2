"""Train a model from files of any size, with checkpoints to resume from."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ordspan.catalog import ESTIMATORS, KERNEL, PA, SVM, make_learner
from ordspan.clock import working_time
from ordspan.commands import models
from ordspan.commands.jobs import Report, TrainJob, no_report
from ordspan.commands.outputs import MODEL, OVERWRITE, check_output
from ordspan.commands.stopping import Stop, stoppable
from ordspan.core.measures import distance
from ordspan.core.state import Ranks
from ordspan.labels.grades import grades_hint
from ordspan.learners import Calibration, LinearLearner
from ordspan.learners.rows import RowValueError
from ordspan.metrics.ranks import count_labels, nearest_constant
from ordspan.models.atomic import report_full_disk, sole_writer, write_atomically
from ordspan.models.file import ENDING, Checkpoint, ModelFileError, to_bytes
from ordspan.models.table import TableModel
from ordspan.tables.files import expand, identity, sizes_of
from ordspan.tables.profile import WHOLE_BYTES, ColumnChoice, are_runs
from ordspan.tables.reading import ROWS_AT_ONCE, RowReader, Staging
from ordspan.tables.rows import BEGINNING, BadRows, Count, Cursor, FileError, check_memory
from ordspan.tables.text import STDIN
from ordspan.wording import first_few, hint, plural

ROWS = ".rows"
"""Ending of the folder with the rows of a training that reads them more than once."""
CALIBRATION_SHARE, MAX_CALIBRATION = 0.2, 5000
"""Rows kept out of several passes, to calibrate on what was not learned."""
JUDGED_PORTION = 10_000
FEW = 100  # with fewer rows no grade is rare, and runs of one grade mean nothing
RARE = 10_000  # a grade is rare if at most one row in so many has it
SENTENCE_PASSES = 10
START_OVER = (
    f"use the same settings and files, or start over with {OVERWRITE} and without {models.RESUME}"
)
SAMPLE_ROWS = 2000
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
    learn = fit_at_once if job.learner == SVM else learn_in_passes
    if job.dask is not None:
        from ordspan.commands import train_dask  # may not be installed

        learn = train_dask.learn_in_rounds
    check_output(path, expand(job.files), MODEL, overwrite=True)
    with sole_writer(path), stoppable(job) as (stop, pipe):
        continued = models.check_replaced_model(path, job)
        with stop.at_any_moment():
            run = Run(job, pipe)
        if not (job.resume or continued):  # its rows would be lost
            run.checkpoint.path.unlink(missing_ok=True)
        try:
            learn(run, stop, report)
            write_atomically(path, to_bytes(run.trained()))
            run.checkpoint.path.unlink(missing_ok=True)
        finally:
            if not run.checkpoint.path.exists():  # nothing to resume
                run.staging.remove()
    return run.summary()


def learn_in_passes(run: Run, stop: Stop, report: Report) -> None:
    """Make the remaining passes, calibrate and measure, with checkpoints.

    Write one if stopped, and on an error of a pipe, whose rows cannot be read again.
    """
    run.begin(stop)
    progress, (every_rows, every_seconds) = run.progress, run.job.checkpoint_every
    saved_rows, saved_at = progress.learned, time.monotonic()
    size = min(every_rows or ROWS_AT_ONCE, ROWS_AT_ONCE)
    try:
        for epoch in range(progress.cursor.epoch, run.passes):
            for share in one_pass(run, epoch, size, stop):
                rows, seconds = progress.learned - saved_rows, time.monotonic() - saved_at
                if 0 < every_rows <= rows or 0 < every_seconds <= seconds:
                    run.save_checkpoint()
                    saved_rows, saved_at = progress.learned, time.monotonic()
                report(progress.learned, progress.running_mae, share)
            stop.check()
            progress.end_pass()
            run.check_rows()
        run.calibrate()
        with stop.at_any_moment():
            run.measure_held_out()
    except (KeyboardInterrupt, Exception) as error:  # Polars raises one of its own
        pipe, path = run.job.is_pipe, run.checkpoint.path
        if progress.learned if pipe else isinstance(error, KeyboardInterrupt):
            way = models.start_hint(path) if pipe else models.RESUME
            done = plural(progress.learned, "row")
            note = f"{path} holds the model after {done}; continue with {way}"
            try:
                run.save_checkpoint()
            except OSError as full:
                note = f"no checkpoint was written: {full}"
            error.add_note(note)
        raise


def one_pass(run: Run, epoch: int, size: int, stop: Stop) -> Iterator[float | None]:
    """Learn from the cursor to the end of a pass, ``size`` rows at once; yields the share done."""
    progress = run.progress
    if not run.staged:
        # a pipe checks itself when all rows received so far are learned
        check = Stop() if run.job.is_pipe else stop
        for X, batch in run.encoded(check, progress.cursor, size):
            run.learn(X, batch.lower, batch.upper, batch.where(0))
            progress.cursor = batch.after
            yield batch.share
        return
    order = run.learned_rows
    if run.shuffle:
        order = np.random.default_rng([run.job.seed, epoch]).permutation(order)
    for begin in stop.between(range(progress.cursor.row, order.size, size)):
        rows = order[begin : begin + size]
        run.learn(*run.staging.take(rows), f"row {rows[0] + 1} of the files")
        progress.cursor = Cursor(epoch, row=begin + rows.size)
        yield (epoch + (begin + rows.size) / order.size) / run.passes


def fit_at_once(run: Run, stop: Stop, report: Report) -> None:
    """Read all rows into memory, if they fit, and find the optimum."""
    from ordspan.estimators import OrdinalSVM
    from ordspan.estimators.calibrated import CalibratedOrdinal

    run.begin(stop)
    needed, remedy = 2.0 * run.staging.n_bytes, "; use the learner pa, or fewer rows"
    check_memory("the svm needs all rows in memory, which", needed, remedy)
    model = run.model
    X, lower, upper = run.staging.take(run.learned_rows)
    run.progress.learned = lower.size
    report(lower.size, None, 1.0)
    stop.check()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrated = CalibratedOrdinal(OrdinalSVM(**model.parameters), random_state=run.job.seed)
        calibrated.fit(X, run.classes[np.column_stack([lower, upper]) - 1])
    run.notes += list(dict.fromkeys(str(warning.message) for warning in caught))
    fitted, model.calibration = calibrated.estimator_, calibrated.calibration_
    model.learner = fitted.learner_
    model.fitted = {name: getattr(fitted, name) for name in OrdinalSVM._fitted_numbers}
    model.training |= {
        "sweeps": int(fitted.n_iter_),
        "fitted_mae": float(distance(model.learner.predict_many(X), lower, upper).mean()),
    }
    run.progress.labels = count_labels(lower, upper, run.classes.size).tolist()
    run.sample = (X[:SAMPLE_ROWS], lower[:SAMPLE_ROWS], upper[:SAMPLE_ROWS])
    with stop.at_any_moment():
        run.measure_held_out()


def choose_order(job: TrainJob, reader: RowReader) -> tuple[int, bool, list[str]]:
    """Number of passes, whether each is in random order, and what may surprise a user."""
    passes, shuffle, notes = job.passes or 1, job.shuffle, list(reader.notes)
    few = reader.recipe.sentences and sum(sizes_of(reader.files)) <= WHOLE_BYTES
    plain = job.learner == PA and job.start is None and job.dask is None and not job.is_pipe
    repeats = bool(few) and plain and job.passes is None
    if repeats:  # their words are rare
        passes, once = SENTENCE_PASSES, hint("passes=1", "--passes 1")
        how = f"sentences in small files are learned in {passes} passes, each in random order"
        notes.append(f"{how}; to learn them once and in order, give {once}")
    if reader.sorted_by and not shuffle:
        order = "random order" + ("" if job.dask is None else ", within each file")
        if shuffle is False:
            order = "that order, as requested"
        notes.append(
            f"neighbouring rows are alike in {reader.sorted_by}: they are learned in {order}"
        )
    return passes, shuffle or (shuffle is None and (repeats or bool(reader.sorted_by))), notes


@dataclass
class TrainProgress:
    """State of a run, as stored in a checkpoint.

    Good, bad and unlabelled rows are all rows before the cursor.
    """

    labels: list[list[Count]]  # that start at, end at, and are exactly each grade
    bad: BadRows  # before the cursor
    cursor: Cursor = BEGINNING
    rows: Count = 0  # of this pass
    loss: Count = 0  # sum of errors in this pass, each row predicted before it is learned
    mae: list[float] = field(default_factory=list)  # of every finished pass
    learned: Count = 0  # rows of all passes
    good: Count = 0  # rows of the first pass, held-out ones too
    unlabelled: Count = 0  # rows without a label before the cursor

    @property
    def running_mae(self) -> float:
        """MAE of the current pass so far."""
        return self.loss / max(1, self.rows)

    def end_pass(self) -> None:
        """Start counting the next pass."""
        self.mae = [*self.mae, self.running_mae]
        self.rows = self.loss = 0
        self.cursor = Cursor(self.cursor.epoch + 1)


class Run:
    """One training: where its rows come from, the model so far, and how far it has come."""

    model: TableModel

    def __init__(self, job: TrainJob, pipe: Any = None) -> None:
        self.base: TableModel | None = None
        if job.start is not None:
            self.base, self.reader = models.open_continued(job, pipe)
        else:
            choice = ColumnChoice(**{name: vars(job)[name] for name in ColumnChoice._fields})
            files, bad = expand(job.files), BadRows(job.on_bad_row)
            self.reader = RowReader(files, job.options, job.label_columns, bad, pipe=pipe)
            models.name_labels(self.reader, job)
            self.reader.find_columns(choice, job.grades)
        assert self.reader.grades is not None
        self.classes = self.reader.grades.classes
        self.kind = ESTIMATORS[job.learner] if self.base is None else self.base.kind
        self.passes, self.shuffle, self.notes = choose_order(job, self.reader)
        self.job = replace(job, passes=self.passes)
        again = self.shuffle or self.passes > 1 or job.hold_out or job.learner != PA
        self.staged = bool(again) and job.dask is None and not job.is_pipe
        out = Path(job.model)
        self.staging = Staging(out.with_name(out.name + ROWS), self.reader.recipe)
        self.identities = [identity(path) for path in self.reader.files if path != STDIN]
        settings = self.job.to_dict() | {"dask": job.dask is not None}
        known = self.identities + ([] if job.start is None else [identity(job.start)])
        self.checkpoint = Checkpoint(out.with_name(out.name + ENDING), settings, known, START_OVER)
        self.progress = TrainProgress([[0] * self.classes.size] * 3, self.reader.bad)
        self.test_rows = self.calibration_rows = self.learned_rows = np.empty(0, dtype=np.int64)
        self.last_lower = self.repeated = 0  # of the rows so far, to find long runs of a grade
        self.sample: tuple[Any, Ranks, Ranks] | None = None  # the first rows that are learned
        self.begun = working_time()

    def begin(self, stop: Stop) -> None:
        """Make the model, or read that of the checkpoint; stage the rows if they are read again."""
        if self.job.resume:
            found = self.checkpoint.read(TableModel, TrainProgress)
            assert found is not None  # as there is a checkpoint
            self.model, self.progress = found
            then = [self.model.kind, self.model.recipe, self.model.classes_.tolist()]
            now = [self.kind, self.reader.recipe, self.classes.tolist()]
            if then != now or np.shape(self.progress.labels) != (3, self.classes.size):
                raise ModelFileError(
                    f"{self.checkpoint.path} has a different learner, different columns or "
                    f"different grades; {START_OVER}"
                )
            self.model.encoder, self.model.training = self.reader.encoder, {}
            self.reader.unlabelled, self.reader.bad = self.progress.unlabelled, self.progress.bad
        if self.staged:
            self.stage(stop)
        if not self.job.resume:
            self.model = self.new_model()

    def new_model(self) -> TableModel:
        """An untrained model, or the one to continue from."""
        reader, recipe = self.reader, self.reader.recipe
        if self.base is not None:
            ours: Any = {"encoder": reader.encoder, "columns": reader.columns, "training": {}}
            return replace(self.base, options=reader.options, **ours)
        parameters: dict[str, Any] = self.job.parameters
        parameters |= {"classes": self.classes, "random_state": self.job.seed}
        if self.job.learner != SVM:
            parameters |= {"max_iter": self.passes, "shuffle": self.shuffle}
        fitted = {}
        if self.job.learner == KERNEL:
            budget = parameters["budget"]
            what = f"{budget} support vectors of {recipe.n_features:,} features"
            remedy = f"; give a smaller {hint('budget', '--budget')}, or use the learner pa"
            check_memory(what, 8 * budget * recipe.n_features, remedy)
            parameters["gamma"] = fitted["gamma_"] = self._gamma(parameters["gamma"])
        return TableModel(
            encoder=reader.encoder,
            kind=self.kind,
            parameters=parameters,
            classes_=self.classes,
            learner=make_learner(self.kind, parameters, recipe.n_features, self.classes.size),
            training={},
            calibration=Calibration(self.classes.size),
            fitted=fitted,
            columns=reader.columns,
            options=reader.options,
        )

    def _gamma(self, rule: float | str) -> float:
        """Gamma, if by a rule, from some of the rows; for a pipe, as if standardised."""
        from ordspan.estimators.kernel import find_gamma

        recipe = self.reader.recipe
        # a hashed column counts once, however many buckets it has
        n_columns = recipe.n_sparse or len(recipe.columns) + len(recipe.missing_indicators)
        rows: Any = np.zeros((1, n_columns))
        if self.staged and isinstance(rule, str):
            drawn = np.random.default_rng(0).permutation(self.learned_rows)
            rows = self.staging.take(drawn[:ROWS_AT_ONCE])[0]
        return find_gamma(rule, rows)

    def stage(self, stop: Stop) -> None:
        """Read the files once and keep their rows as numbers; then choose the rows to learn."""
        progress, job = self.progress, self.job
        if not (progress.good and self.staging.n_rows == progress.good):
            progress.good = self.reader.unlabelled = 0
            progress.bad = self.reader.bad = BadRows(job.on_bad_row)
            rows = ((X, batch.lower, batch.upper, batch.share) for X, batch in self.encoded(stop))
            with report_full_disk(self.staging.folder):
                self.staging.write(rows)
        self.check_rows()
        drawn = np.random.default_rng(job.seed).permutation(progress.good)
        n_test = round(job.hold_out * drawn.size)
        if job.hold_out and not 0 < n_test < drawn.size:
            raise FileError(
                f"{self.reader.files[0]}: holding out {job.hold_out:g} of {drawn.size} rows "
                "leaves none to learn or none to evaluate; hold out another share"
            )
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

    def encoded(
        self, stop: Stop, at: Cursor = BEGINNING, size: int = ROWS_AT_ONCE
    ) -> Iterator[tuple[Any, Any]]:
        """Rows of the files from a position on: their features, and the batch with their ranks."""
        encoder, learn = self.reader.encoder, self.reader.learns_scale
        for batch in stop.between(self.reader.batches(at, size)):
            self.progress.good += len(batch)
            yield encoder.features(batch.X, batch.table, learn=learn), batch
            if self.progress.good + self.progress.bad.count >= JUDGED_PORTION:
                self.check_rows()

    def check_rows(self) -> None:
        """Raise if no row can be used, or too many cannot."""
        good, bad = self.progress.good, self.progress.bad
        bad.check(good, self.job.allow_skipped)
        if not good:
            raise FileError(f"{self.reader.files[0]}: no row with a label")

    def learn(self, X: Any, lower: Ranks, upper: Ranks, where: str) -> None:
        """Learn rows in order, and keep count of labels, errors and the position."""
        progress, learner = self.progress, self.model.learner
        first = progress.cursor.epoch == 0
        # later passes see rows already learned, whose scores are too optimistic
        calibration = self.model.calibration if first else None
        try:
            predicted = learner.learn_many(X, lower, upper, predict=True, calibration=calibration)
        except RowValueError as error:
            raise FileError(f"in the rows from {where} on, {error}") from None
        assert predicted is not None
        progress.loss += int(distance(predicted, lower, upper).sum())
        progress.rows += lower.size
        progress.learned += lower.size
        if self.sample is None:
            self.sample = (X[:SAMPLE_ROWS].copy(), lower[:SAMPLE_ROWS], upper[:SAMPLE_ROWS])
        if first:
            counts = count_labels(lower, upper, self.classes.size)
            progress.labels = np.add(progress.labels, counts).tolist()
            self.repeated += int((np.diff(lower, prepend=self.last_lower) == 0).sum())
            self.last_lower = int(lower[-1])

    def calibrate(self) -> None:
        """Calibrate on rows that no pass has learned: scores of learned rows are too good."""
        if not self.calibration_rows.size:
            return
        X, lower, upper = self.staging.take(self.calibration_rows)
        learner = self.model.learner
        self.model.calibration = Calibration(self.classes.size).fit(
            learner.latent(X), lower, upper, thresholds=learner.thresholds
        )

    def measure_held_out(self) -> None:
        """Measure the model on the held-out rows, if there are any."""
        from ordspan.commands.evaluate import ROW, count_answers, measure

        if not self.job.hold_out:
            return
        rows = np.empty(self.test_rows.size, dtype=ROW)
        for begin in range(0, rows.size, ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            X, rows["lower"][some], rows["upper"][some] = self.staging.take(self.test_rows[some])
            rows["score"][some] = self.model.learner.latent(X)
        self.model.training["held_out"] = measure(self.model, rows, count_answers(self.model, rows))

    def save_checkpoint(self) -> None:
        """Write model and progress atomically."""
        self.progress.unlabelled = self.reader.unlabelled
        self.checkpoint.write(self.trained(), self.progress)

    def trained(self) -> TableModel:
        """The current model with the record of its training."""
        before: dict[str, Any] = {} if self.base is None else self.base.training
        lower, upper, _ = np.array(self.progress.labels)
        rank, mae = nearest_constant(lower, upper) if lower.any() else (0, 0.0)
        training = self.model.training | {
            "settings": self.job.to_dict(),
            "from": self.job.start,
            "digests": [*before.get("digests", ()), *(one.digest for one in self.identities)],
            "rows": before.get("rows", 0) + self.progress.learned,
            "skipped": self.progress.bad.count,
            "unlabelled_rows": self.reader.unlabelled,
            "mae": self.progress.mae,
            "constant": {"grade": self.classes.tolist()[rank - 1], "mae": mae} if rank else None,
            "left_out": self.reader.left_out,
            "notes": self.notes,
        }
        return replace(self.model, training=training)

    def summary(self) -> dict[str, Any]:
        """The record of the training, and what else is told of it, in plain values for JSON."""
        model, learned = self.trained(), self.progress.learned
        n_labels, _, n_exact = map(sum, self.progress.labels)  # of one pass
        return model.training | {
            "model": str(Path(self.job.model)),
            "rows": learned,
            "ranges": round((n_labels - n_exact) * learned / max(1, n_labels)),
            "features": model.recipe.n_features,
            "classes": self.classes.tolist(),
            "updates": model.learner.n_updates,
            "explained_by": None if self.sample is None else sole_column(model, *self.sample),
            "shuffled": self.shuffle,
            "notes": self.all_notes(),
            "read": self.progress.good,
            "skipped_examples": self.progress.bad.examples,
            "resumed": self.job.resume,
            "seconds": round(working_time() - self.begun, 3),
        }

    def all_notes(self) -> list[str]:
        """What may surprise a user."""
        notes = [*self.notes, *self.reader.encoder.notes(), *self.reader.label_notes()]
        lower, upper, exact = np.array(self.progress.labels)
        n_rows, found = int(lower.sum()), lower + upper - exact
        # a grade of an ordered type may have no rows at all
        rare = (found > 0) & (found <= max(1, n_rows // RARE))
        given = self.job.grades is not None or self.base is not None
        if rare.any() and (~rare).sum() >= 2 and n_rows >= FEW and not given:
            names = first_few([*map(repr, self.classes[rare].tolist())])
            way = grades_hint(self.classes[~rare].tolist())
            notes.append(
                f"very few rows have the grades {names}; if these are mistyped, {way} finds them"
            )
        absent = self.classes[lower.cumsum() - upper.cumsum() + upper == 0].tolist()
        if absent and self.job.classes is not None:
            listed = hint("classes=", "--grades")
            notes.append(f"no row has {first_few([*map(repr, absent)])}, which {listed} lists")
        if self.job.is_pipe and n_rows >= FEW and are_runs(lower, self.repeated):
            notes.append(
                "the labels come in long runs of one grade, and an online learner forgets earlier "
                "grades; shuffle the rows, or give a file instead of a pipe"
            )
        return notes


def sole_column(model: TableModel, X: Any, lower: Ranks, upper: Ranks) -> dict[str, Any] | None:
    """The column that alone gives nearly all of a large gain, such as a copy of the label.

    Only its part of the linear score is used, and the rows are graded by the order of that part,
    so that every grade is as frequent as among the labels.
    """
    recipe, learner = model.recipe, model.learner
    if not isinstance(learner, LinearLearner) or recipe.n_sparse or len(recipe.columns) < 2:
        return None
    begin, end, _ = count_labels(lower, upper, model.classes_.size)
    constant = nearest_constant(begin, end)[1]
    gain = constant - distance(model.calibration.predict(learner.latent(X)), lower, upper).mean()
    if gain <= MUCH * constant:
        return None
    features = {name: [place] for place, name in enumerate(recipe.numbers)}
    at = len(features) + len(recipe.missing_indicators)
    for name, words in recipe.words:
        features[name] = [*range(at, at + len(words))]
        at += len(words)
    ranks = np.sort((lower + upper) // 2)
    for name, own in features.items():
        part = pl.Series(X[:, own] @ learner.weights[own])
        place = part.rank("average").to_numpy().astype(int)  # the middle one of equal parts
        mae = distance(ranks[place - 1], lower, upper).mean()
        if constant - mae >= NEARLY_ALL * gain:
            return {"column": name, "share": min(1.0, float((constant - mae) / gain))}
    return None
