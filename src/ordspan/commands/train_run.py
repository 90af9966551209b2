"""One training run: reads rows, updates the model, tracks progress."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.catalog import ESTIMATORS, KERNEL, SVM, learner_parameters, make_learner
from ordspan.commands.continuing import model_to_continue, reader_for
from ordspan.commands.model_path import (
    RESUME,
    START_OVER,
    continue_hint,
    from_pipe,
    no_checkpoint_hint,
)
from ordspan.commands.outputs import report_full_disk
from ordspan.commands.stopping import Stop
from ordspan.commands.tally import LabelCounts, Tally
from ordspan.commands.train_job import TrainJob, plain_value
from ordspan.commands.train_notes import all_notes
from ordspan.commands.train_progress import TrainProgress
from ordspan.commands.train_rows import Runs
from ordspan.core.measures import distance
from ordspan.core.state import Ranks
from ordspan.learners import Calibration, Learner
from ordspan.learners.rows import RowValueError
from ordspan.models.checkpoint import ENDING, Checkpoint
from ordspan.models.file import ModelFileError
from ordspan.models.table import Scored, TableModel
from ordspan.tables.files import identity
from ordspan.tables.reading import ROWS_AT_ONCE, open_rows
from ordspan.tables.rows import BadRows, Batch, Cursor, FileError, check_memory
from ordspan.tables.staging import Staging
from ordspan.tables.text import STDIN
from ordspan.wording import hint

ROWS = ".rows"
"""Ending of the folder with the rows of a training that reads them more than once."""
CALIBRATION_SHARE, MAX_CALIBRATION = 0.1, 5000
"""Rows kept out of several passes, to calibrate on what was not learned."""
JUDGED_PORTION = 10_000


class Run:
    """A training run: its reader, learner, scale and progress."""

    def __init__(
        self,
        job: TrainJob,
        out: Path,
        *,
        dask: bool = False,
        samples: Any = None,
        words: set[str] | None = None,
        pipe: Any = None,
        resume: bool = False,
    ) -> None:
        self.job, self.out, self._resumes = job, out, resume
        self.base = None if job.start is None else model_to_continue(job.start)
        if self.base is None:
            self.reader = open_rows(
                job.files,
                job.options,
                job.label_columns(),
                job.choice(),
                classes=job.classes,
                on_bad_row=job.on_bad_row,
                samples=samples,
                words=words,
                pipe=pipe,
            )
        else:
            self.reader = reader_for(self.base, job, pipe)
        reader = self.reader
        assert reader.grades is not None
        self.files, self.bad = reader.files, reader.bad
        self.classes = reader.grades.classes
        self.encoder, self.runs = reader.encoder, Runs(self.classes.size)
        self.progress, self.labels = TrainProgress(), LabelCounts(self.classes.size)
        self.share: float | None = None
        self._choose_order(dask)
        self.kind, self.parameters, self.learner = self._make_learner()
        self.fitted: dict[str, float] = {}
        self.training: dict[str, Any] = {}
        self.calibration = None if dask else self._make_calibration()
        if self.kind == ESTIMATORS[KERNEL]:
            self.fitted["gamma_"] = float(self.parameters["gamma"])
        self.identities = [identity(path) for path in self.files if path != STDIN]
        known = [identity(job.start)] if job.start is not None else []
        self.checkpoint = Checkpoint(
            out.with_name(out.name + ENDING),
            job.to_dict() | {"dask": dask},
            self.identities + known,
            START_OVER,
        )

    def _choose_order(self, dask: bool) -> None:
        """Decide whether to shuffle, as requested or if the rows are sorted, and where rows stay.

        Rows that are read more than once are kept as numbers beside the checkpoint.
        """
        job, what = self.job, self.reader.sorted_by
        self.shuffle, self.notes = bool(job.shuffle), list(self.reader.notes)
        if what and job.shuffle is False:
            self.notes.append(
                f"the rows are sorted by {what}, and learned in that order, as requested"
            )
        if what and job.shuffle is None:
            self.shuffle = True
            where = ", within each file" if dask else ""
            self.notes.append(
                f"the rows are sorted by {what}: they are learned in random order{where}"
            )
        again = self.shuffle or job.passes > 1 or job.hold_out or job.learner == SVM
        self.staging = Staging(
            self.out.with_name(self.out.name + ROWS), self.reader.recipe.n_features
        )
        self.staged = bool(again) and not dask and not job.is_pipe

    def stage(self, stop: Stop | None = None) -> None:
        """Read the files once and keep their rows as numbers; then choose the rows to learn."""
        progress = self.progress
        if not (progress.good and self.staging.n_rows == progress.good):
            self.bad.count, self.bad.examples = 0, []
            self.staging.write(self._encoded(stop or Stop()))
            progress.good, progress.skipped = self.staging.n_rows, self.bad.count
            progress.unlabelled = self.reader.unlabelled
            progress.bad_rows = list(self.bad.examples)
        if not progress.good:
            raise FileError(f"{self.files[0]}: no usable row; {self.bad.summary()}")
        self.check_skipped()
        n_rows = progress.good
        drawn = np.random.default_rng(self.job.seed).permutation(n_rows)
        n_test = round(self.job.hold_out * n_rows)
        n_kept = min(int(CALIBRATION_SHARE * (n_rows - n_test)), MAX_CALIBRATION)
        n_kept = 0 if self.job.passes == 1 else n_kept
        cuts = [n_test, n_test + n_kept]
        self.test_rows, self.calibration_rows, rows = map(np.sort, np.split(drawn, cuts))
        self.rows: NDArray[np.int64] = rows
        note = f"{n_kept:,} rows are not learned in any pass, but kept to calibrate probabilities"
        if n_kept and note not in self.notes:
            self.notes.append(note)

    def _encoded(self, stop: Stop) -> Iterator[tuple[Any, Any, Any, float | None]]:
        """Features and ranks of all rows of the files."""
        n_read = 0
        for batch in stop.between(self.reader.batches()):
            n_read += len(batch)
            share = self.reader.share(batch)
            yield self.features(batch), batch.lower, batch.upper, share
            if n_read + self.bad.count >= JUDGED_PORTION:
                self.bad.check(n_read, self.job.allow_skipped)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """The rows of a pass, in the order to learn them."""
        if not self.shuffle:
            return self.rows
        return np.random.default_rng([self.job.seed, epoch]).permutation(self.rows)

    def _make_learner(self) -> tuple[str, dict[str, Any], Learner]:
        """Name of the estimator, its parameters, and an untrained learner."""
        job, n_features = self.job, self.reader.recipe.n_features
        if self.base is not None:
            return self.base.kind, self.base.parameters, self.base.learner
        parameters = learner_parameters(job.learner, job.parameters)
        if job.learner == KERNEL:
            budget = parameters["budget"] or 0
            check_memory(
                f"{budget} support vectors of {n_features:,} features",
                8 * budget * n_features,
                f"; give a smaller {hint('budget', '--budget')}, or use the learner pa",
            )
        if job.learner == KERNEL and parameters["gamma"] in ("distance", "scale", "auto"):
            rule = parameters["gamma"]
            parameters["gamma"] = 1.0 if self._resumes else self._gamma(rule, n_features)
        parameters |= {"classes": self.classes, "random_state": job.seed}
        if job.learner != SVM:
            parameters |= {"max_iter": job.passes, "shuffle": self.shuffle}
        kind = ESTIMATORS[job.learner]
        return kind, parameters, make_learner(kind, parameters, n_features, self.classes.size)

    def _make_calibration(self) -> Calibration:
        """A new calibration, or that of the model to continue from."""
        if self.base is not None and self.base.calibration is not None:
            return self.base.calibration
        return Calibration(self.classes.size)

    def _gamma(self, rule: str, n_features: int) -> float:
        """Gamma by a rule, from the first rows; for a pipe, as if standardised."""
        from ordspan.estimators.kernel import KernelOrdinalPA

        recipe = self.reader.recipe
        # a hashed column counts once, however many buckets it has
        n_columns = recipe.n_sparse or len(recipe.columns) + len(recipe.missing_indicators)
        rows: Any = np.zeros((1, n_columns))
        if self.staged:
            self.stage()
            rows = self.staging.take(
                np.random.default_rng(0).permutation(self.rows)[:ROWS_AT_ONCE]
            )[0]
        elif not self.job.is_pipe:
            policy, self.reader.bad = self.reader.bad, BadRows("skip")
            first = next(self.reader.batches(), None)
            self.reader.bad = policy
            if first is not None:
                rows = self.encoder.features(first.X, first.table)
        return KernelOrdinalPA(gamma=rule)._find_gamma(rows)

    def model(self) -> TableModel:
        """The current model."""
        reader = self.reader
        rows_before = 0 if self.base is None else self.base.training["rows"]
        training = self.training | {
            "settings": self.job.to_dict(),
            "from": self.job.start,
            "rows": self.progress.learned + rows_before,
            "skipped": self.progress.skipped,
            "mae": self.progress.mae,
            "constant": self.constant(),
            "left_out": reader.left_out,
            "notes": self.notes,
        }
        return TableModel(
            encoder=self.encoder,
            kind=self.kind,
            parameters=self.parameters,
            classes_=self.classes,
            learner=self.learner,
            training=training,
            calibration=self.calibration,
            fitted=self.fitted,
            columns=reader.columns,
            options=reader.options,
        )

    def constant(self) -> dict[str, Any] | None:
        """The best constant prediction, and its MAE."""
        if not self.labels.rows:
            return None
        best = self.labels.best_mae()
        assert best.rank is not None
        return {"grade": plain_value(self.classes[best.rank - 1]), "mae": best.value}

    def save_checkpoint(self) -> None:
        """Write model and progress atomically."""
        self.progress.labels = self.labels.to_dict()
        with report_full_disk(str(self.checkpoint.path)):
            self.checkpoint.write(self.model(), self.progress)

    def resume(self) -> None:
        """Continue from the checkpoint."""
        path, pipe = self.checkpoint.path, self.job.is_pipe
        assert path is not None
        if pipe or from_pipe(path):
            go_on = f", and continue it with {continue_hint(path, pipe=pipe)}"
            raise ValueError(
                "training from a pipe such as standard input cannot be resumed; leave out "
                + RESUME
                + (go_on if path.exists() else "")
            )
        found = self.checkpoint.read(TableModel, TrainProgress)
        if found is None:
            raise FileError(no_checkpoint_hint(self.out, self.checkpoint.path))
        model, self.progress = found
        then = (model.kind, model.recipe, model.classes_.tolist(), sizes(self.progress.labels))
        now = (self.kind, self.reader.recipe, self.classes.tolist(), sizes(self.labels.to_dict()))
        if then != now:
            raise ModelFileError(
                f"{self.checkpoint.path} has a different learner, different columns or different "
                f"grades; {START_OVER}"
            )
        self.labels = LabelCounts.from_dict(self.progress.labels)
        self.learner, self.parameters = model.learner, model.parameters
        self.fitted = model.fitted
        self.calibration = model.calibration
        self.encoder.state[...] = model.encoder.state
        self.reader.unlabelled = self.progress.unlabelled
        self.bad.count = self.progress.skipped
        self.bad.examples = list(self.progress.bad_rows)

    def learn_batch(self, batch: Batch) -> None:
        """Learn rows as they are read, and update the progress."""
        self.progress.good += len(batch)
        assert batch.lower is not None
        assert batch.upper is not None
        self.learn(self.features(batch), batch.lower, batch.upper, batch.where(0))
        self.note_progress(batch)

    def learn(self, X: Any, lower: Ranks, upper: Ranks, where: str) -> None:
        """Learn rows in order."""
        progress = self.progress
        # later passes see rows already learned, whose scores are too optimistic
        calibration = self.calibration if progress.cursor.epoch == 0 else None
        try:
            predicted = self.learner.learn_many(
                X, lower, upper, predict=True, calibration=calibration
            )
        except RowValueError as error:
            raise FileError(f"in the rows from {where} on, {error}") from None
        assert predicted is not None
        progress.loss += int(distance(predicted, lower, upper).sum())
        progress.rows += lower.size
        progress.learned += lower.size
        self.runs.add(lower, upper)
        self.labels.add(lower, upper)

    def calibrate(self) -> None:
        """Calibrate on rows that no pass has learned: scores of learned rows are too good."""
        if not self.calibration_rows.size:
            return
        X, lower, upper = self.staging.take(self.calibration_rows)
        self.calibration = Calibration(self.classes.size).fit(
            self.learner.latent(X), lower, upper, thresholds=self.learner.thresholds
        )

    def features(self, batch: Batch) -> Any:
        """Features of rows for the learner."""
        return self.encoder.features(batch.X, batch.table, learn=self.reader.learns_scale)

    def note_progress(self, last: Batch) -> None:
        """Update the progress after a batch."""
        progress = self.progress
        progress.cursor, progress.skipped = last.after, self.bad.count
        progress.bad_rows = list(self.bad.examples)
        progress.unlabelled = self.reader.unlabelled
        self.share = self.reader.share(last)
        if progress.good + progress.skipped >= JUDGED_PORTION:
            self.check_skipped()

    def check_skipped(self) -> None:
        """Raise if too many rows are bad."""
        if self.progress.good:
            self.bad.check(self.progress.good, self.job.allow_skipped)

    def end_pass(self) -> None:
        """Finish a pass over the files."""
        progress = self.progress
        progress.mae = [*progress.mae, progress.running_mae]
        progress.rows = progress.loss = 0
        if not self.staged:
            progress.skipped, progress.unlabelled = self.bad.count, self.reader.unlabelled
            progress.bad_rows = list(self.bad.examples)
        progress.cursor = Cursor(progress.cursor.epoch + 1)

    def held_out(self) -> dict[str, Any]:
        """Measures on the held-out rows."""
        tally, model = Tally(self.classes.size), self.model()
        for begin in range(0, self.test_rows.size, ROWS_AT_ONCE):
            X, lower, upper = self.staging.take(self.test_rows[begin : begin + ROWS_AT_ONCE])
            batch = Batch(X, None, np.arange(lower.size), "", lower=lower, upper=upper)
            tally.add(Scored(batch, *model.answer(X)[:3]))
        if not tally.rows:
            raise FileError(
                f"{self.files[0]}: holding out {self.job.hold_out:g} of the rows leaves none to "
                "evaluate; hold out a larger share, or give more rows"
            )
        return {"rows": tally.rows} | tally.compared(self.classes.tolist())

    def _n_ranges(self) -> int:
        """How many of the learned rows have a range; Dask counts its labels in one pass only."""
        ranges = self.labels.rows - int(self.labels.exact.sum())
        return round(ranges * self.progress.learned / max(1, self.labels.rows))

    def summary(self, learned: int, resumed: bool, seconds: float) -> dict[str, Any]:
        """A summary in plain values."""
        recipe = self.reader.recipe
        return {
            "model": str(self.out),
            "estimator": self.kind,
            "rows": self.progress.learned,
            "ranges": self._n_ranges(),
            "passes": self.job.passes,
            "features": recipe.n_features,
            "words": list(recipe.texts),
            "classes": self.classes.tolist(),
            "thresholds": self.learner.thresholds.tolist(),
            "updates": self.learner.n_updates,
            "mae": self.progress.mae,
            "constant": self.constant(),
            "held_out": self.training.get("held_out"),
            "fitted_mae": self.training.get("fitted_mae"),
            "shuffled": self.shuffle,
            "left_out": self.reader.left_out,
            "notes": all_notes(self),
            "read": self.progress.good,
            "skipped": self.progress.skipped,
            "skipped_examples": self.bad.examples,
            "resumed": resumed,
            "seconds": round(seconds, 3),
            "rows_per_second": round(learned / max(seconds, 1e-9)),
        }


def sizes(lists: dict[str, list[int]]) -> dict[str, int]:
    """Length of each list, by name."""
    return {name: len(values) for name, values in lists.items()}
