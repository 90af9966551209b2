"""Draws sentences, each with the ratings of ten judges, from the files that judges.md names.

python examples/data/pack_judges.py FOLDER
"""

import ast
import sys
from pathlib import Path

import numpy as np
import pandas as pd

SETS = {"reviews": "amazonReviewSnippets", "tweets": "tweets"}
N_SENTENCES, N_JUDGES = 1250, 10


def read(path):
    """The lines of a file, split at tabs, by their first field."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    return {line.split("\t")[0]: line.split("\t")[-1] for line in text.splitlines() if line}


def main(folder):
    """Write the table beside this script."""
    rng, rows = np.random.default_rng(0), []
    for name, stem in SETS.items():
        texts = read(Path(folder, f"{stem}_GroundTruth.txt"))
        ratings = read(Path(folder, f"{stem}_anonDataRatings.txt"))
        both = [key for key in texts if key in ratings]
        for number in np.sort(rng.permutation(len(both))[:N_SENTENCES]):
            votes = ast.literal_eval(ratings[both[number]])
            some = rng.permutation(votes)[:N_JUDGES]
            rows.append(
                (name, texts[both[number]].strip(), " ".join(map(str, some)), np.mean(votes))
            )
    table = pd.DataFrame(rows, columns=["set", "text", "ratings", "mean"]).round({"mean": 2})
    table.to_csv(Path(__file__).with_name("judges.csv.xz"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
