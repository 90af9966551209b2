"""The same file gives the same rows, whichever reader is used."""

import json

import numpy as np
import pyarrow as pa
import pytest
from files_to_train import FORMATS, make_rows, read_in_small_parts, write_rows
from pyarrow import ipc

import ordspan
from commands.tables import ask, read_rows
from ordspan import OrdinalPA
from ordspan.commands.train import TrainJob, train
from ordspan.data import stream

X, GRADES = make_rows(900)
NAMES = ["x0", "x1", "x2"]


def write(folder, ending):
    if ending != "arrow":
        return write_rows(folder, ending, X, GRADES)
    table = pa.table({name: X[:, j] for j, name in enumerate(NAMES)} | {"grade": GRADES})
    with ipc.new_file(str(folder / "rows.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=400)
    return folder / "rows.arrow"


@pytest.mark.parametrize("ending", [*FORMATS, "arrow"])
def test_every_reader_sees_the_same_rows(tmp_path, monkeypatch, ending):
    distributed = pytest.importorskip("distributed")
    from ordspan.distributed import fit

    read_in_small_parts(monkeypatch.setattr)
    path = write(tmp_path, ending)
    label = {} if ending == "txt" else {"label": "grade"}

    batches = list(stream(path, **label))
    read = np.vstack([b.X.toarray() if ending == "txt" else b.X for b in batches])
    np.testing.assert_array_equal(read, X)
    np.testing.assert_array_equal(np.concatenate([b.y for b in batches]), GRADES)
    np.testing.assert_array_equal(np.concatenate([b.rows for b in batches]), np.arange(900) + 1)

    expected = OrdinalPA(classes=[1, 2, 3, 4])
    for batch in batches:
        expected.partial_fit(batch.X, batch.y)
    model = tmp_path / "m"
    train(TrainJob([str(path)], standardise=False, **label), model)
    trained = ordspan.load(model).estimator
    np.testing.assert_array_equal(trained.coef_, expected.coef_)

    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        mixed = fit(client, OrdinalPA(), [path], rounds=1, **label)
    np.testing.assert_array_equal(mixed.coef_, expected.coef_)

    out = tmp_path / "out.csv"
    assert ask("predict", path, "--model", model, "--out", out).exit_code == 0
    scores = np.concatenate([expected.latent(b.X) for b in batches])
    assert [float(row["score"]) for row in read_rows(out)] == scores.tolist()

    answer = ask("evaluate", path, "--model", model, "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    predicted = ordspan.load(model).ranks(scores)
    assert found["rows"] == 900
    assert found["mae"] == np.abs(predicted - GRADES).mean()
