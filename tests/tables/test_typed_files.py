"""Parquet and Arrow files: what pyarrow reads, whatever the types; damage is reported."""

import decimal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from ordspan import stream

ONE = pa.table({"a": np.linspace(0, 1, 500), "grade": np.arange(500) % 5})

NEITHER = "neither numbers nor text: flatten nested values"


def read(path, *features, **more):
    """Numbers of all rows, as they are in the file; missing ones NaN."""
    parts = list(stream(path, features=features, **more))
    X = np.vstack([part.X for part in parts])
    assert np.concatenate([part.rows for part in parts]).tolist() == list(range(1, len(X) + 1))
    if X.shape[1] > len(features):
        X[X[:, len(features)] == 1, 0] = np.nan
    return X[:, : len(features)]


def write_arrow(path, table, make=ipc.new_file, size=None):
    with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=size)


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_those_of_the_columns(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n_rows = int(10 ** rng.uniform(0, 5.3))
    dtypes = rng.choice(["f4", "f8", "i1", "u1", "i2", "u2", "i4", "i8"], int(rng.integers(1, 5)))
    columns = {f"x{j}": (100 * rng.random(n_rows)).astype(t) for j, t in enumerate(dtypes)}
    parquet.write_table(
        pa.table(columns),
        tmp_path / "a.parquet",
        row_group_size=int(rng.choice([1 + n_rows // 20, 10**6])),
        compression=str(rng.choice(["none", "snappy", "zstd"])),
        use_dictionary=bool(rng.random() < 0.5),
    )
    names = rng.permutation([*columns]).tolist()
    X = read(tmp_path / "a.parquet", *names)
    np.testing.assert_array_equal(X, np.column_stack([columns[name] for name in names]))


@pytest.mark.parametrize(
    ("ending", "write"),
    [
        ("arrow", partial(write_arrow, size=111)),
        ("arrow", partial(write_arrow, make=ipc.new_stream, size=111)),
        ("feather", lambda path, table: feather.write_feather(table, path)),
        ("parquet", lambda path, table: parquet.write_table(table, path, row_group_size=90)),
    ],
)
def test_a_file_is_read_and_one_that_is_cut_is_named(tmp_path, ending, write):
    path = tmp_path / f"a.{ending}"
    write(path, ONE)
    np.testing.assert_array_equal(read(path, "a")[:, 0], ONE["a"])
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match=rf"a\.{ending}: .*damaged"):
        read(path, "a")


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (pa.array([1, None, 3], pa.int32()), [1, np.nan, 3]),
        (pa.array([True, False, None]), [1, 0, np.nan]),
        (pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2")]), [1.5, np.nan, -2]),
        (pa.array([1.5, 2.5, None], pa.float16()), [1.5, 2.5, np.nan]),
        (pa.array([2**63, 1, 0], pa.uint64()), [2.0**63, 1, 0]),
        (pa.array(["1.5", " 2", "NA"]), [1.5, 2, np.nan]),
        (pa.array(["1.0", "2.0", "n.a."]), [1, 2, np.nan]),
        (pa.array([1.5, float("nan"), 2]), [1.5, np.nan, 2]),
    ],
    ids=lambda given: str(getattr(given, "type", "")),
)
def test_other_types_become_numbers(tmp_path, column, numbers):
    parquet.write_table(pa.table({"a": column}), tmp_path / "a.parquet")
    np.testing.assert_array_equal(read(tmp_path / "a.parquet", "a")[:, 0], numbers)


def test_kinds_of_columns(tmp_path):
    frame = pd.DataFrame({"n": [1, 2], "c": pd.Categorical(["a", None]), "s": ["x", "y"]})
    table = pa.Table.from_pandas(frame).append_column("l", pa.array([[1], [2]]))
    table = table.append_column("d", pa.array(pd.to_datetime(["2020-01-01", "2020-01-02"])))
    parquet.write_table(table, tmp_path / "a.parquet")
    rows = stream(tmp_path / "a.parquet")
    assert rows.feature_names == ["n", "c is missing", "c = a", "s = x", "s = y"]
    assert f"left out 'l' ({NEITHER}), 'd' (dates)" in rows.notes
    with pytest.raises(ValueError, match=r"column 'l' cannot be a feature .neith"):
        stream(tmp_path / "a.parquet", features=["l"])


def test_types_that_polars_cannot_read_are_left_out(tmp_path):
    union = pa.UnionArray.from_sparse(pa.array([0] * 500, pa.int8()), [ONE["a"].combine_chunks()])
    span = pa.array([(1, 2, 3)] * 500, pa.month_day_nano_interval())
    write_arrow(tmp_path / "a.arrow", ONE.append_column("u", union).append_column("m", span))
    rows = stream(tmp_path / "a.arrow")
    assert rows.notes == [f"left out 'u', 'm' ({NEITHER})"]


def test_names_that_are_not_utf8_or_not_unique_are_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(ONE.rename_columns(["size", "grade"]), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"size", b"s\xe7ze"))
    with pytest.raises(
        ValueError, match=r"a\.parquet: not a Parquet file, or damaged or truncated"
    ):
        stream(path)
    parquet.write_table(pa.table([[1.0], [2.0]], names=["a", "a"]), path)
    with pytest.raises(ValueError, match="more than one column is named 'a'; rename one of them"):
        stream(path)


WORDS = pa.table({"w": [f"word {i}" for i in range(200)], "a": np.arange(200.0) % 7})


@pytest.mark.parametrize("form", ["parquet", "arrow", "category"])
def test_words_that_are_not_utf8_are_refused(tmp_path, form):
    table, path = WORDS, tmp_path / f"a.{'parquet' if form == 'parquet' else 'arrow'}"
    if form == "category":
        table = table.set_column(0, "w", table["w"].combine_chunks().dictionary_encode())
    if form == "parquet":
        parquet.write_table(table, path, compression="none", use_dictionary=False)
    else:
        write_arrow(path, table)
    path.write_bytes(path.read_bytes().replace(b"word 77", b"word \xff7"))
    with pytest.raises(ValueError, match=rf"a\.{path.suffix[1:]}: .*(?i:utf-?8)"):
        list(stream(path, features=["a", "w"], keep=["w"]))


def test_rows_with_long_words_are_read_few_at_a_time(tmp_path):
    words = [chr(97 + i % 26) * 40_000 + str(i) for i in range(1000)]
    parquet.write_table(pa.table({"w": words, "a": range(1000)}), tmp_path / "a.parquet")
    batches = stream(tmp_path / "a.parquet", features=["a"], keep=["w"])
    sizes = [batch.kept.estimated_size() for batch in batches]
    assert max(sizes) < 20e6 < sum(sizes)


@pytest.mark.parametrize(
    ("ending", "write"),
    [("parquet", parquet.write_table), ("arrow", lambda table, path: write_arrow(path, table))],
)
def test_a_file_without_rows_adds_none_and_is_refused_alone(tmp_path, ending, write):
    for name, table in (("a", WORDS[:0]), ("b", WORDS)):
        write(table, tmp_path / f"{name}.{ending}")
    batches = list(stream(tmp_path, features=["a", "w"]))
    assert sum(map(len, batches)) == len(WORDS)
    with pytest.raises(ValueError, match=rf"a\.{ending}: there is a header but no rows"):
        stream(tmp_path / f"a.{ending}")
