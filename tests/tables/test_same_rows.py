"""The same file gives the same rows, whichever reader is used."""

import gzip
import io

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from files_to_train import FORMATS, make_rows, write_rows

import ordspan
from commands.tables import read_rows, said, summary
from ordspan import OrdinalPA, stream

N = 10_000
X, GRADES = make_rows(N)
NAMES = ["x0", "x1", "x2"]


@pytest.mark.parametrize("ending", FORMATS)
def test_every_reader_sees_the_same_rows(tmp_path, ending):
    """In files of several blocks and batches."""
    path = write_rows(tmp_path, ending, X, GRADES, note=1000)
    label = [] if ending == "txt" else ["--label", "grade", "--drop", "note"]
    batches = list(stream(path, **{"label": "grade", "drop": ["note"]} if label else {}))
    read = np.vstack([b.X.toarray() if ending == "txt" else b.X for b in batches])
    np.testing.assert_array_equal(read, X)
    np.testing.assert_array_equal(np.concatenate([b.y for b in batches]), GRADES)
    np.testing.assert_array_equal(np.concatenate([b.rows for b in batches]), np.arange(N) + 1)

    expected = OrdinalPA("PA-II", 0.5, classes=[1, 2, 3, 4])
    for batch in batches:
        expected.partial_fit(batch.X, batch.y)
    model = tmp_path / "m"
    words = ["--variant", "PA-II", "--C", 0.5, "--no-standardise", "--model", model]
    found = summary("train", path, *label, *words)
    assert (found["rows"], found["updates"]) == (N, expected.n_updates_)
    trained = ordspan.load(model).estimator
    np.testing.assert_array_equal(trained.coef_, expected.coef_)
    np.testing.assert_array_equal(trained.thresholds_, expected.thresholds_)

    out = tmp_path / "out.csv"
    said("predict", path, "--model", model, "--out", out)
    scores = np.concatenate([expected.latent(b.X) for b in batches])
    assert [float(row["score"]) for row in read_rows(out)] == scores.tolist()

    found = summary("evaluate", path, "--model", model)
    assert found["rows"] == N
    predicted = np.array([int(row["rank"]) for row in read_rows(out)])
    assert found["mae"] == np.abs(predicted - GRADES).mean()


TABLE = pl.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)}).with_columns(
    town=pl.Series(["Köln", 'a "b", c', "two\nlines", "Ulm"] * 2500), grade=GRADES
)
TABLE = TABLE.with_columns(x0=pl.when(pl.int_range(N) % 50 > 0).then("x0"))


FILES = {
    "a.csv": lambda table: table.write_csv().encode(),
    "quoted.csv": lambda table: table.write_csv(quote_style="always").encode(),
    "windows.csv": lambda table: b"\xef\xbb\xbf" + table.write_csv(line_terminator="\r\n").encode(),
    "blank.csv": lambda table: table.write_csv().replace("2\n", "2\n\n").encode(),
    "wide.csv": lambda table: table.write_csv().encode("utf-16"),
    "a.csv.gz": lambda table: gzip.compress(table.write_csv().encode()),
    "a.csv.zst": lambda table: pa.compress(table.write_csv().encode(), "zstd", asbytes=True),
    "a.jsonl": lambda table: table.write_ndjson().encode(),
    "a.jsonl.gz": lambda table: gzip.compress(table.write_ndjson().encode()),
    "a.parquet": lambda table: written(table.write_parquet, row_group_size=200),
    "a.arrow": lambda table: written(table.write_ipc),
}


def written(write, **more):
    out = io.BytesIO()
    write(out, **more)
    return out.getvalue()


@pytest.mark.parametrize("more", [[], ["--passes", 2], ["--hash", "town"]])
def test_every_format_gives_the_same_model_to_the_bit(tmp_path, more):
    """Small files, and some of several blocks, which may end in a cell of several lines."""
    tables = [TABLE[:900], *([] if more else [TABLE.with_columns(note=pl.lit("a\n" * 450))])]
    data, models = tmp_path / "data", {}
    data.mkdir()
    words = ["train", data, "--label", "grade", "--model", tmp_path / "m", "--overwrite", *more]
    for name, content in FILES.items():
        for table in tables:
            (data / name).write_bytes(content(table))
            said(*words, *["--drop", "note"] * ("note" in table.columns))
            model = ordspan.load(tmp_path / "m")
            states = (model.encoder.state, model.learner.state, model.calibration.state)
            found = (model.recipe, *(state.tobytes() for state in states))
            assert models.setdefault(len(table), found) == found, name
            (data / name).unlink()
