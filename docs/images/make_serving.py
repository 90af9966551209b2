"""Draws serving.png: the error of a served model that learns from labels, and of one that does not.

Run it from anywhere: python docs/images/make_serving.py
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import Request, urlopen

import matplotlib as mpl
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan import load
from ordspan.datasets import load_dataset

mpl.use("agg")
import matplotlib.pyplot as plt

ORDSPAN = (sys.executable, "-m", "ordspan")
FOLLOWING = ("--no-average", "--C", "0.01")
TRAIN = ("--label", "grade", "--no-standardise")  # the columns are standardised already
N_TRAIN, BATCH, WINDOW = 1000, 20, 2000


@contextmanager
def service(model: Path) -> Iterator[str]:
    """The address of a service of a model, which ends with the block."""
    command = [*ORDSPAN, "serve", "--model", model, "--state", f"{model}-state", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(filter(None, (re.search(r"http://\S+:\d+", x) for x in process.stdout)))[0]
        finally:
            process.terminate()


def learned(address: str, houses: pl.DataFrame) -> NDArray[np.int64]:
    """What a service predicted for every row before it learned its label."""
    predicted = []
    for batch in houses.iter_slices(BATCH):
        body = json.dumps(batch.rename({"grade": "label"}).to_dicts()).encode()
        request = Request(f"{address}/learn", body, {"Content-Type": "application/json"})
        predicted += [answer["predicted"] for answer in json.load(urlopen(request))]
    return np.array(predicted)


def main() -> None:
    """Train on the first houses, serve the model, send the others, and draw the errors."""
    data = load_dataset("california")
    houses = pl.DataFrame(data.X, schema=list(data.feature_names))
    houses = houses.with_columns(grade=pl.Series(data.ranks))
    found = {}
    with TemporaryDirectory() as folder:
        houses[:N_TRAIN].write_csv(f"{folder}/bay.csv")
        for name, options in (("follows", FOLLOWING), ("average", ())):
            model = Path(folder) / name
            train = ("train", f"{folder}/bay.csv", "--model", model, *TRAIN, *options)
            subprocess.run([*ORDSPAN, *train], check=True)
            found[f"{name}, not updated"] = load(model).predict(houses[N_TRAIN:])
            with service(model) as address:
                found[name] = learned(address, houses[N_TRAIN:])
    errors = {name: np.abs(grade - data.ranks[N_TRAIN:]) for name, grade in found.items()}
    for name, error in errors.items():
        print(f"{name}: {error.mean():.3f}")

    looks = {
        "average, not updated": ("not updated", "#767676", ":"),
        "average": ("learns, average of all steps (default)", "#0072B2", "--"),
        "follows": ("learns, last step with C = 0.01", "#D55E00", "-"),
    }
    figure, ax = plt.subplots(figsize=(8.5, 4), layout="constrained")
    for name, (label, colour, line) in looks.items():
        rolling = np.convolve(errors[name], np.ones(WINDOW) / WINDOW, mode="valid")[::50]
        at = N_TRAIN + WINDOW + 50 * np.arange(rolling.size)
        ax.plot(at, rolling, color=colour, linestyle=line, linewidth=2, label=label)
    ax.set_xlabel("houses seen, ordered by place")
    ax.set_ylabel(f"mean error of the last {WINDOW:,} (grades)")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlim(0, len(houses))
    ax.set_ylim(0)
    ax.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.12))
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("serving.png"), dpi=100)


if __name__ == "__main__":
    main()
