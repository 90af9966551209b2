"""How soon does the page of annotate learn from sentences?

Simulated answers to the 3,708 sentences of reviews that 20 judges rated from -4 to 4 each (Hutto
and Gilbert 2014, the data of VADER: put its files into a folder vader_raters, and name the folder
above it by ORDSPAN_DATA). The annotator answers with the middle half of the judges, so most answers
are ranges. Sessions differ in the order of the questions. The page is
docs/measured/annotate-sentences.md.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from measuring import command, judged_sentences, machine
from ordspan.commands.jobs import AnnotateJob
from ordspan.serving.annotate.items import open_folder
from ordspan.serving.annotate.session import Session

GRADES = list(range(-4, 5))
STOPS = (30, 50, 100, 150, 200)


def read_reviews(folder: Path) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """The sentences, the ranks of the middle half of their judges, and of their median."""
    sentences, ratings = zip(*judged_sentences(folder, "amazonReviewSnippets"), strict=True)
    table = pl.DataFrame({"sentence": sentences}).with_row_index("id")
    quantiles = [np.quantile(each, [0.25, 0.75, 0.5], method="nearest") for each in ratings]
    ranks = np.array(quantiles, dtype=np.int64) + 5
    return table, ranks[:, :2], ranks[:, 2]


def simulate(path: Path, seed: int, ends: np.ndarray, truth: np.ndarray) -> list[list[float]]:
    """Errors of the model and of the best constant grade after some numbers of answers.

    On all items without an answer, and as the progress page has them.
    """
    with tempfile.TemporaryDirectory() as state:
        folder, items = open_folder(AnnotateJob(str(path), state=state, classes=GRADES, id="id"))
        session = Session(Path(state), items, msgspec.structs.replace(folder, seed=seed))
        features, found = session.features, []
        for number in range(1, STOPS[-1] + 1):
            asked = session.ask(b'{"annotator": "ann"}')
            item = asked["item"]
            lower, upper = ends[item].tolist()
            said = {"annotator": "ann", "key": str(number), "lower": lower, "upper": upper}
            said |= {"item": item, "asked_by": asked["asked_by"]}
            session.answer(msgspec.json.encode(said))
            if number in STOPS:
                left = session.history.answered == 0
                given = np.concatenate([ends[~left, 0], ends[~left, 1]])
                constant = np.abs(truth[left] - int(np.median(given))).mean()
                model = session.engine.model
                rank = model.calibration.predict(model.learner.latent(features))
                page = session.progress()
                shown = page["error"][-1]["mae"], page["best_constant"]
                found.append([np.abs(rank - truth)[left].mean(), constant, *shown])
        session.engine.close()
    return found


def run(table: pl.DataFrame, ends: np.ndarray, truth: np.ndarray, sessions: int = 20) -> str:
    """The page with the table."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "reviews.csv"
        table.write_csv(path)
        errors = np.array([simulate(path, seed, ends, truth) for seed in range(sessions)])
    lines = [
        "# Annotating sentences: error by number of answers",
        "",
        f"Written by benchmarks/bench_annotate.py. {machine()}",
        "",
        f"{len(table):,} sentences of reviews, graded from -4 to 4 by 20 judges each; {sessions} "
        "sessions. A simulated annotator answers with the middle half of the judges of a sentence, "
        f"a range in {(ends[:, 0] < ends[:, 1]).mean():.0%} of the cases. Error: mean distance in "
        "grades from the model's grade to the median of the judges, over all sentences without an "
        "answer; beside it the error of the grade that fits the answers so far best, and what the "
        "progress page shows: the distance to the answers of the random half, before each was "
        "learned.",
        "",
        "| answers | error | ± of sessions | constant grade | better in | page | page, constant |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, stop in zip(STOPS, errors.transpose(1, 0, 2), strict=True):
        model, constant, page, page_constant = stop.mean(axis=0)
        better = int((stop[:, 0] < stop[:, 1]).sum())
        spread = stop[:, 0].std()
        lines.append(
            f"| {number} | {model:.3f} | {spread:.3f} | {constant:.3f} | {better} of {sessions} "
            f"| {page:.3f} | {page_constant:.3f} |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    reviews = Path(os.environ["ORDSPAN_DATA"]) / "vader_raters"
    command(lambda scale: run(*read_reviews(reviews), sessions=20 if scale else 1), __doc__)
