"""One training run: reads rows, updates the model, tracks progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.catalog import ESTIMATORS, KERNEL, SVM, learner_parameters, make_learner
from ordspan.checkpoint import ENDING, Checkpoint
from ordspan.commands.continuing import model_to_continue, reader_for
from ordspan.commands.model_path import (
    RESUME,
    START_OVER,
    continue_hint,
    from_pipe,
    no_checkpoint_hint,
)
from ordspan.commands.outputs import report_full_disk
from ordspan.commands.tally import LabelCounts, Tally
from ordspan.commands.train_job import TrainJob, plain_value
from ordspan.commands.train_notes import all_notes
from ordspan.commands.train_progress import TrainProgress
from ordspan.commands.train_rows import Runs, drawn, ends_of, portions
from ordspan.core.measures import distance
from ordspan.files.batch import BadRows, Batch, Cursor, FileError
from ordspan.files.features import Scale, Unseen, prepare_features, stack_rows
from ordspan.files.limits import check_memory
from ordspan.files.opening import identity
from ordspan.files.reading import open_rows
from ordspan.files.text import STDIN
from ordspan.learners import Calibration, Learner
from ordspan.learners.rows import RowValueError
from ordspan.modelfile import ModelFileError
from ordspan.tabular import TabularModel, scored
from ordspan.wording import hint

ROWS_AT_ONCE = 1 << 13
"""Rows per call of the learner: enough to amortise Python overhead, few enough for prompt stops."""
BUFFER_BYTES = 1 << 26
"""Default size of the shuffle buffer."""
JUDGED_PORTION = 10_000


class Run:
    """A training run: its reader, learner, scale and progress."""

    def __init__(
        self,
        job: TrainJob,
        out: Path,
        *,
        dask: bool = False,
        preview: Any = None,
        words: set[str] | None = None,
        pipe: Any = None,
    ) -> None:
        self.job, self.out = job, out
        self.base = None if job.start is None else model_to_continue(job.start)
        if self.base is None:
            self.reader = open_rows(
                job.files,
                job.options,
                job.label_columns(),
                job.choice(),
                classes=job.classes,
                on_bad_row=job.on_bad_row,
                preview=preview,
                words=words,
                pipe=pipe,
            )
        else:
            self.reader = reader_for(self.base, job, pipe)
        reader = self.reader
        assert reader.grades is not None
        self.files, self.bad = reader.files, reader.bad
        self.classes = reader.grades.classes
        known = reader.scale if self.base is None else self.base.scale
        self.scale = known or Scale(reader.recipe.n_scaled)
        self.unseen, self.runs = Unseen(), Runs(self.classes.size)
        self.progress, self.labels = TrainProgress(), LabelCounts(self.classes.size)
        self._choose_order(dask)
        self.kind, self.parameters, self.learner = self._make_learner()
        self.fitted: dict[str, float] = {}
        self.training: dict[str, Any] = {}
        self.calibration = None if dask else self._make_calibration()
        if self.kind == ESTIMATORS[KERNEL]:
            self.fitted["gamma_"] = float(self.parameters["gamma"])
        identities = [identity(path) for path in self.files if path != STDIN]
        identities += [identity(job.start)] if job.start is not None else []
        self.checkpoint = Checkpoint(
            out.with_name(out.name + ENDING),
            job.to_dict() | {"dask": dask},
            identities,
            START_OVER,
        )
        self.share: float | None = None

    def _choose_order(self, dask: bool) -> None:
        """Decide whether to shuffle: as requested, or if the rows are sorted."""
        job, reader = self.job, self.reader
        self.buffer, self.notes = job.shuffle_buffer or 0, list(reader.notes)
        row_bytes = reader.recipe.row_bytes
        check_memory(
            f"a window of {self.buffer:,} rows of {row_bytes} bytes",
            self.buffer * row_bytes,
            f"; give a smaller {hint('shuffle_buffer', '--shuffle-buffer')}",
        )
        what = reader.sorted_by
        if what and job.shuffle_buffer == 0:
            self.notes.append(
                f"the rows are sorted by {what}, and learned in that order, as requested"
            )
        if what and job.shuffle_buffer is None:
            self.buffer = BUFFER_BYTES // row_bytes
            where = ", within each file" if dask else ""
            self.notes.append(
                f"the rows are sorted by {what}: they are learned in random order{where}"
            )
        if self.buffer and not job.is_pipe and not dask:
            reader.cut()

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
            parameters["gamma"] = self._gamma(parameters["gamma"], n_features)
        parameters |= {"classes": self.classes, "random_state": job.seed}
        if job.learner != SVM:
            parameters |= {"max_iter": job.passes, "shuffle": self.buffer > 0}
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
        rows = np.zeros((1, recipe.n_sparse or len(recipe.columns) + len(recipe.gaps)))
        if not self.job.is_pipe:
            self._turn(0)
            policy, self.reader.bad = self.reader.bad, BadRows("skip")
            first = next(portions(self.reader.batches(), ROWS_AT_ONCE, whole=True), None)
            self.reader.bad = policy
            if first is not None:
                parts = [prepare_features(self.reader.recipe, self.scale, batch) for batch in first]
                rows = stack_rows(parts)
        return KernelOrdinalPA(gamma=rule)._find_gamma(rows)

    def _turn(self, epoch: int) -> None:
        """Order the pieces of the files for a pass."""
        if self.buffer:
            n_pieces = len(self.reader.pieces)
            turn = np.random.default_rng([self.job.seed, epoch, n_pieces]).permutation(n_pieces)
            self.reader.turn = turn.tolist()

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The rows of a pass, from the cursor on."""
        self._turn(epoch)
        return self.reader.batches(self.progress.cursor)

    def model(self) -> TabularModel:
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
        return TabularModel(
            self.learner,
            self.classes,
            self.parameters,
            reader.recipe,
            self.scale,
            reader.columns,
            reader.options,
            training,
            self.kind,
            self.fitted,
            self.calibration,
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
        found = self.checkpoint.read(TabularModel, TrainProgress)
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
        self.calibration = model.calibration
        if not self.reader.scale:
            self.scale = model.scale
        self.bad.count = self.progress.skipped
        self.bad.examples = list(self.progress.bad_rows)

    def learn(self, batches: Sequence[Batch]) -> None:
        """Learn some rows and update the progress."""
        progress = self.progress
        if progress.cursor.epoch == 0:
            progress.good += sum(map(len, batches))
        kept = [batch.only(~self.is_held_out(batch)) for batch in batches]
        kept = [batch for batch in kept if len(batch)]
        if kept:
            lower, upper = ends_of(kept)
            n_rows = lower.size
            order = None
            if self.buffer:
                seed = [self.job.seed, progress.cursor.epoch, progress.rows]
                order = np.random.default_rng(seed).permutation(n_rows)
            rows = stack_rows([self.features(batch) for batch in kept])
            try:
                predicted = self.learner.learn_many(
                    rows,
                    lower,
                    upper,
                    order=order,
                    predict=True,
                    # later passes see rows already learned, whose scores are too optimistic
                    calibration=self.calibration if progress.cursor.epoch == 0 else None,
                )
            except RowValueError as error:
                raise FileError(f"in the rows from {batches[0].where(0)} on, {error}") from None
            assert predicted is not None
            progress.loss += int(distance(predicted, lower, upper).sum())
            progress.rows += n_rows
            progress.learned += n_rows
            self.runs.add(lower, upper)
            self.labels.add(lower, upper)
        self.note_progress(batches[-1])

    def features(self, batch: Batch) -> Any:
        """Features of rows for the learner."""
        from_pipe = self.reader.scale is None
        return prepare_features(
            self.reader.recipe, self.scale, batch, learn=from_pipe, unseen=self.unseen
        )

    def note_progress(self, last: Batch) -> None:
        """Update the progress after a batch."""
        progress = self.progress
        progress.cursor, skipped = last.after()
        if progress.cursor.epoch == 0:  # later passes see the same bad rows
            progress.skipped = skipped
            progress.bad_rows = self.bad.examples[:skipped]
        share = self.reader.share(last)
        self.share = None if share is None else (progress.cursor.epoch + share) / self.job.passes
        if progress.cursor.epoch == 0 and progress.good + progress.skipped >= JUDGED_PORTION:
            self.check_skipped()

    def check_skipped(self) -> None:
        """Raise if too many rows are bad."""
        if self.progress.good:
            self.bad.count = self.progress.skipped
            self.bad.check(self.progress.good, self.job.allow_skipped)

    def is_held_out(self, batch: Batch) -> NDArray[np.bool_]:
        """Which rows are held out, by their position and the seed."""
        if not self.job.hold_out:
            return np.zeros(len(batch), dtype=bool)
        piece = self.reader.turn[batch.cursor.piece]
        return drawn(batch.rows, piece, self.job.seed) < self.job.hold_out

    def end_pass(self) -> None:
        """Finish a pass over the files."""
        progress = self.progress
        progress.mae = [*progress.mae, progress.running_mae]
        progress.rows = progress.loss = 0
        if progress.cursor.epoch == 0:
            progress.skipped = self.bad.count
            progress.bad_rows = list(self.bad.examples)
        progress.cursor = Cursor(progress.cursor.epoch + 1)

    def held_out(self) -> dict[str, Any]:
        """Measures on the held-out rows."""
        self.reader.turn = range(len(self.reader.pieces))
        policy, self.reader.bad = self.reader.bad, BadRows("skip")
        batches = (batch.only(self.is_held_out(batch)) for batch in self.reader.batches())
        tally = Tally(self.classes.size)
        for answer in scored(self.model(), batches):
            tally.add(answer)
        self.reader.bad = policy
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
            "shuffled": self.buffer > 0,
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
