"""Parquet and Arrow files: what pyarrow reads, whatever the types; damage is reported."""

import contextlib
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from ordspan.tables import arrow_file
from ordspan.tables.arrow_file import ArrowFile, ParquetFile
from ordspan.tables.rows import FileError

ONE = pa.table({"a": np.linspace(0, 1, 500), "grade": np.arange(500) % 5})


def read(path, numbers, texts=(), start=0, kind=ParquetFile):
    parts = [batch for batch, faults in kind(str(path)).batches(numbers, texts, start)]
    return np.vstack([part.X for part in parts]), np.concatenate([part.rows for part in parts])


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_those_of_the_columns(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(arrow_file, "MAX_ROWS", int(rng.choice([13, 300, 1 << 16])))
    n_rows = int(rng.integers(1, 1500))
    dtypes = rng.choice(["f4", "f8", "i1", "u1", "i2", "u2", "i4", "i8"], int(rng.integers(1, 5)))
    columns = {f"x{j}": (100 * rng.random(n_rows)).astype(t) for j, t in enumerate(dtypes)}
    path = tmp_path / "a.parquet"
    parquet.write_table(
        pa.table(columns),
        path,
        row_group_size=int(rng.choice([50, 333, 10**6])),
        compression=str(rng.choice(["none", "snappy", "zstd"])),
        use_dictionary=bool(rng.random() < 0.5),
    )
    start = int(rng.integers(n_rows))
    X, rows = read(path, list(columns), start=start)
    np.testing.assert_array_equal(X, np.column_stack(list(columns.values()))[rows])
    assert set(rows) >= set(range(start, n_rows))
    assert X.dtype == (np.float32 if (dtypes == "f4").all() else np.float64)
    assert X.flags.writeable


@pytest.mark.parametrize("form", ["file", "stream"])
def test_arrow_files_and_streams_are_read(tmp_path, monkeypatch, form):
    monkeypatch.setattr(arrow_file, "MAX_ROWS", 70)
    monkeypatch.setattr(arrow_file, "MIN_ROWS", 70)
    path = tmp_path / "a.arrow"
    make = ipc.new_file if form == "file" else ipc.new_stream
    with pa.OSFile(str(path), "wb") as sink, make(sink, ONE.schema) as writer:
        writer.write_table(ONE, max_chunksize=111)
    X, rows = read(path, ["a"], kind=ArrowFile)
    np.testing.assert_array_equal(X[:, 0], ONE["a"])
    np.testing.assert_array_equal(rows, np.arange(500))
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(FileError, match="damaged"):
        read(path, ["a"], kind=ArrowFile)


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (pa.array([1, None, 3], pa.int32()), [1, np.nan, 3]),
        (pa.array([True, False, None]), [1, 0, np.nan]),
        (pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2")]), [1.5, np.nan, -2]),
        (pa.array([1.5, 2.5, None], pa.float16()), [1.5, 2.5, np.nan]),
        (pa.array([None, None, None], pa.null()), [np.nan] * 3),
        (pa.array([2**63, 1, 0], pa.uint64()), [2.0**63, 1, 0]),
        (pa.array(["1.5", " 2", "NA"]), [1.5, 2, np.nan]),
    ],
    ids=lambda given: str(getattr(given, "type", "")),
)
def test_other_types_become_numbers(tmp_path, column, numbers):
    parquet.write_table(pa.table({"a": column}), tmp_path / "a.parquet")
    X, _ = read(tmp_path / "a.parquet", ["a"])
    np.testing.assert_array_equal(X[:, 0], numbers)


def test_columns_come_in_the_order_that_is_asked_for(tmp_path):
    path = tmp_path / "a.feather"
    feather.write_feather(ONE.append_column("b", pa.array(np.arange(500) * 2.0)), path)
    X, _ = read(path, ["b", "a"], ["grade"], kind=ArrowFile)
    np.testing.assert_array_equal(X, np.column_stack([np.arange(500) * 2.0, ONE["a"]]))


def test_kinds_of_columns(tmp_path):
    frame = pd.DataFrame({"n": [1, 2], "c": pd.Categorical(["a", "b"]), "s": ["x", "y"]})
    table = pa.Table.from_pandas(frame).append_column("l", pa.array([[1], [2]]))
    table = table.append_column("d", pa.array(pd.to_datetime(["2020-01-01", "2020-01-02"])))
    parquet.write_table(table, tmp_path / "a.parquet")
    kinds = ParquetFile(str(tmp_path / "a.parquet")).kinds()
    assert kinds == {"n": "number", "c": "text", "s": "text", "l": "other", "d": "date"}
    with pytest.raises(FileError, match=r"column 'l' holds List.*drop=\['l'\]"):
        read(tmp_path / "a.parquet", ["l"])


def test_names_that_are_not_utf8_or_not_unique_are_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(ONE.rename_columns(["size", "grade"]), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"size", b"s\xe7ze"))
    with pytest.raises(FileError, match=r"a\.parquet: not a Parquet file, or damaged or truncated"):
        ParquetFile(str(path))
    parquet.write_table(pa.table([[1.0], [2.0]], names=["a", "a"]), path)
    with pytest.raises(FileError, match="more than one column is named 'a'; rename one of them"):
        ParquetFile(str(path))


def test_rows_that_a_file_promises_but_lacks_are_missed(tmp_path, monkeypatch):
    parquet.write_table(ONE, tmp_path / "a.parquet")
    file = ParquetFile(str(tmp_path / "a.parquet"))
    file.n_rows += 1
    with pytest.raises(FileError, match="after row 500: damaged, rows are missing"):
        list(file.batches(["a"], ()))


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_refused_or_does_no_harm_to_the_number_of_rows(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "a.parquet"
    refused = 0
    for _ in range(40):
        n_rows = int(rng.integers(1, 300))
        columns = {"a": rng.normal(size=n_rows), "b": rng.integers(9, size=n_rows)}
        parquet.write_table(pa.table(columns), path, row_group_size=150)
        content = bytearray(path.read_bytes())
        for place in rng.integers(4, len(content) - 8, size=2).tolist():
            content[place] = int(rng.integers(256))
        path.write_bytes(content)
        try:
            assert len(read(path, ["a", "b"])[0]) == n_rows
        except FileError:
            refused += 1
    assert 0 < refused < 40


@pytest.mark.parametrize("seed", range(3))
def test_damaged_words_are_faults_or_refused_and_never_end_the_process(tmp_path, seed):
    rng = np.random.default_rng(seed)
    table = pa.table({"w": [f"word {i}" for i in range(200)], "a": np.arange(200.0)})
    path = tmp_path / "a.arrow"
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    whole = path.read_bytes()
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(8, len(content) - 10, size=3).tolist():
            content[place] = int(rng.integers(256))
        path.write_bytes(content)
        with contextlib.suppress(FileError):
            assert len(read(path, ["a"], ["w"], kind=ArrowFile)[0]) <= 200
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    path.write_bytes(path.read_bytes().replace(b"word 7word 8", b"word \xffword 8"))
    ((batch, faults),) = ArrowFile(str(path)).batches(["a"], ["w"])
    assert faults == {7: "column 'w' holds b'word \\xff', which is not UTF-8; correct it"}
    assert batch.table["w"][8] == "word 8"


def test_rows_with_long_words_are_read_few_at_a_time(tmp_path):
    words = [chr(97 + i % 26) * 40_000 + str(i) for i in range(1000)]
    parquet.write_table(pa.table({"w": words}), tmp_path / "a.parquet")
    frames = ParquetFile(str(tmp_path / "a.parquet")).frames((), ["w"], 0)
    assert max(frame.table.estimated_size() for frame in frames) <= 1.1 * arrow_file.LONG_BYTES
