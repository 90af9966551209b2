"""Small tables in files, a model of them, and the command line in this process."""

import csv
from functools import cache

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from typer import testing

from ordspan.cli import app

# Typer makes all commands anew for each call, which takes longer than most of them do
if hasattr(testing, "_get_command"):
    testing._get_command = cache(testing._get_command)
GRADES = ["low", "mid", "high", "top"]
FEATURES = ["size", "age"]


def ask(*words, **more):
    return testing.CliRunner().invoke(app, [str(word) for word in words], **more)


def ratings(n=300, seed=0):
    """Rows with an id, two numbers of very different scale, a word, and a grade made of them."""
    rng = np.random.default_rng(seed)
    size, age = rng.normal(5000, 300, n).round(2), rng.normal(0.3, 0.1, n).round(5)
    town = rng.choice(["Ulm", "Bonn, am Rhein", 'the "other"'], n)
    rank = np.digitize((size - 5000) / 300 + (age - 0.3) / 0.2, [-1, 0, 1])
    columns = {"id": [f"r{i}" for i in range(n)], "size": size, "age": age, "town": town}
    return pa.table(columns | {"grade": np.array(GRADES)[rank]})


def write_table(table, path):
    """A file of the format that its ending tells."""
    name = str(path)
    if name.endswith(".parquet"):
        parquet.write_table(table, path)
    elif name.endswith(".jsonl"):
        table.to_pandas().to_json(path, orient="records", lines=True, double_precision=15)
    else:
        with pa.output_stream(path, compression="gzip" if name.endswith(".gz") else None) as file:
            arrow_csv.write_csv(table, file)
    return path


def read_rows(path):
    """The rows of a CSV file, as Python's own reader reads them."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def trained(folder, *words, name="model"):
    """A model of ``ratings`` that ordspan train wrote."""
    data = write_table(ratings(), folder / f"{name}-train.csv")
    model = folder / name
    order = ["--label", "grade", "--grades", ",".join(GRADES)]
    answer = ask("train", data, *order, "--drop", "id", *words, "--model", model)
    assert answer.exit_code == 0, answer.output
    return model
