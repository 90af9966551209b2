"""Notes at the end of a training run on what a user may not expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.labels.grades import grades_hint
from ordspan.tables.profile import first_few

if TYPE_CHECKING:
    from ordspan.commands.train_run import Run

FEW, RARE = 100, 10_000
"""With fewer rows no grade is rare; otherwise one is if it is in one row of this many."""


def all_notes(run: Run) -> list[str]:
    """Notes on what a user may not expect."""
    notes = [*run.notes, *run.encoder.unseen.messages(), *rare_grades(run)]
    if n := run.progress.unlabelled:
        notes.append(
            f"{n:,} row{'s' * (n > 1)} without a label {'were' if n > 1 else 'was'} left out"
        )
    if run.job.is_pipe and run.runs.are_long():
        notes.append(
            "the labels come in long runs of one grade, and an online learner forgets earlier "
            "grades; shuffle the rows, or give a file instead of a pipe"
        )
    return notes


def rare_grades(run: Run) -> list[str]:
    """A note on grades that were found in very few labels, perhaps by mistake."""
    found = run.labels.lower + run.labels.upper - run.labels.exact
    # a grade of an ordered type may have no rows at all
    once = round(run.labels.rows * run.job.passes / max(1, run.progress.learned))
    once = 1 if run.kind == ESTIMATORS[SVM] else max(1, once)  # times that each row is counted
    rare = (found > 0) & (found <= max(once, run.labels.rows // RARE))
    given = run.job.classes is not None or run.base is not None
    if given or run.progress.learned < FEW or not rare.any() or (~rare).sum() < 2:
        return []
    names = first_few([str(grade) for grade in run.classes[rare].tolist()])
    way = grades_hint(run.classes[~rare].tolist())
    return [f"very few rows have the grades {names}; if these are mistyped, {way} finds them"]
