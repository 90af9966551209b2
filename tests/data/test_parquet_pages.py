"""Parquet pages walked by our own code give what pyarrow reads, or are left to pyarrow."""

import decimal
import sys

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from pyarrow import parquet

from ordspan.core import paging
from ordspan.data.files import parquet_file, parquet_footer, parquet_pages
from ordspan.data.files.chunks import BadRows, Place
from ordspan.data.files.features import Recipe, feature_rows
from ordspan.data.files.lines import FileError
from ordspan.data.files.parquet_file import ParquetFile

DTYPES = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "i8")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    """Walk over pages of any size."""
    monkeypatch.setattr(parquet_pages, "FEWEST_VALUES", 0)


def some_table(rng):
    """Columns of any number type, of few and of many different values, in runs and not."""
    n_rows = int(rng.integers(1, 2000))
    columns = {}
    for j in range(int(rng.integers(1, 5))):
        dtype = rng.choice(DTYPES) if rng.random() < 0.6 else "f4"
        n_values = int(rng.choice([1, 2, 17, 300, 100_000]))
        values = (100 * rng.random(n_values)).astype(dtype)[rng.integers(n_values, size=n_rows)]
        columns[f"x{j}"] = np.sort(values) if rng.random() < 0.3 else values
    table = pa.table(columns | {"grade": rng.integers(1, 6, size=n_rows)})
    nullable = rng.random(table.num_columns) < 0.5
    fields = [f.with_nullable(bool(may)) for f, may in zip(table.schema, nullable, strict=True)]
    return table.cast(pa.schema(fields))


def some_settings(rng):
    return {
        "compression": str(rng.choice(["none", "snappy", "zstd"])),
        "use_dictionary": bool(rng.random() < 0.7),
        "dictionary_pagesize_limit": int(rng.choice([100, 2000, 1 << 20])),
        "data_page_size": int(rng.choice([64, 4000, 1 << 20])),
        "write_batch_size": int(rng.choice([1, 7, 1024])),
        "row_group_size": int(rng.choice([50, 333, 10**6])),
        "write_statistics": bool(rng.random() < 0.7),
        "version": str(rng.choice(["1.0", "2.6"])),
    }


def number_columns(table):
    return [name for name in table.column_names if name != "grade"]


def as_pyarrow_reads(table, names):
    """Rows of a table, by NumPy."""
    columns = [table.column(name).to_numpy() for name in names]
    singles = all(column.dtype == np.float32 for column in columns)
    return np.array(columns, dtype=np.float32 if singles else np.float64).T


def read(path, names, start=0, walk=True, texts=("grade",)):
    """All rows from one on, and whether each chunk came from our own walk."""
    reader = ParquetFile(str(path))
    reader.numbers_in_table = not walk
    chunks = list(reader.chunks(names, texts, Place(start, 1), BadRows()))
    rows = [feature_rows(Recipe(tuple(names)), chunk)[0] for chunk in chunks]
    return np.concatenate(rows), chunks, [chunk.matrix is not None for chunk in chunks]


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_those_that_pyarrow_reads(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    table = some_table(rng)
    parquet.write_table(table, tmp_path / "a.parquet", **some_settings(rng))
    monkeypatch.setattr(parquet_file, "MOST_ROWS", int(rng.choice([13, 300, 1 << 16])))
    names = list(rng.permutation(number_columns(table)))
    start = int(rng.integers(table.num_rows))
    texts = ["grade"] if rng.random() < 0.7 else []
    rows, chunks, walked = read(tmp_path / "a.parquet", names, start, texts=texts)
    wanted = as_pyarrow_reads(table, names)[start:]
    assert all(walked)
    assert len(chunks) <= -(-table.num_rows // parquet_file.MOST_ROWS)  # also of small row groups
    assert rows.dtype == wanted.dtype
    assert_array_equal(rows, wanted)
    numbers = np.concatenate([chunk.numbers for chunk in chunks])
    assert_array_equal(numbers, np.arange(start + 1, table.num_rows + 1))
    if texts:
        grades = np.concatenate([chunk.table["grade"].to_numpy() for chunk in chunks])
        assert_array_equal(grades, table["grade"].to_numpy()[start:])


ONE = pa.table({"a": np.linspace(-1, 1, 500, dtype=np.float32), "grade": np.arange(500) % 3 + 1})


def with_column(values):
    return ONE.set_column(0, "a", pa.array(values))


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        (ONE, {"data_page_version": "2.0"}),
        (ONE, {"compression": "lz4"}),
        (ONE, {"compression": "gzip"}),
        (ONE, {"use_dictionary": False, "use_byte_stream_split": True}),
        (with_column(np.arange(500, dtype=np.uint32)), {}),
        (with_column(np.arange(500) % 2 == 0), {}),
        (with_column([decimal.Decimal(i) for i in range(500)]), {}),
    ],
    ids=["pages 2.0", "lz4", "gzip", "split bytes", "unsigned", "true", "decimal"],
)
def test_what_it_does_not_know_is_left_to_pyarrow(tmp_path, table, settings):
    parquet.write_table(table, tmp_path / "a.parquet", **settings)
    rows, _, walked = read(tmp_path / "a.parquet", ["a"])
    assert not any(walked)
    wanted = table["a"].cast(pa.float64()) if table is not ONE else table["a"]
    assert_array_equal(rows[:, 0], wanted.to_numpy())


def test_a_nested_column_next_to_a_number_does_no_harm(tmp_path):
    table = ONE.append_column("pair", pa.array([{"a": i, "b": [i]} for i in range(500)]))
    parquet.write_table(table, tmp_path / "a.parquet")
    rows, _, walked = read(tmp_path / "a.parquet", ["a"])
    assert all(walked)
    assert_array_equal(rows[:, 0], ONE["a"].to_numpy())


def test_pyarrow_goes_on_where_a_later_page_is_unusual(tmp_path, monkeypatch):
    values = np.linspace(0, 1, 500).tolist()
    values[401] = None
    table = with_column(values)
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=150)
    monkeypatch.setattr(parquet_file, "MOST_ROWS", 40)
    rows, chunks, walked = read(tmp_path / "a.parquet", ["a"])
    assert walked[0]
    assert not walked[-1]
    assert_array_equal(rows[:, 0], table["a"].to_numpy())
    assert_array_equal(np.concatenate([chunk.numbers for chunk in chunks]), np.arange(1, 501))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("dictionary", [False, True])
def test_numbers_are_checked_on_the_way(tmp_path, dtype, value, dictionary):
    values = np.ones(500, dtype)
    values[321] = value
    parquet.write_table(with_column(values), tmp_path / "a.parquet", use_dictionary=dictionary)
    chunks = list(
        ParquetFile(str(tmp_path / "a.parquet")).chunks(["a"], [], Place(), BadRows("skip"))
    )
    assert [chunk.checked for chunk in chunks] == [value == 1e38]
    _, faults = feature_rows(Recipe(("a",)), chunks[0])
    assert list(faults) == ([] if value == 1e38 else [321])


def test_numbers_whose_squares_overflow_are_not_passed(tmp_path):
    values = np.full(500, 1e80)
    values[321] = -1e91
    parquet.write_table(with_column(values), tmp_path / "a.parquet")
    (chunk,) = ParquetFile(str(tmp_path / "a.parquet")).chunks(["a"], [], Place(), BadRows("skip"))
    assert not chunk.checked
    assert list(feature_rows(Recipe(("a",)), chunk)[1]) == [321]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
def test_a_file_that_takes_the_place_of_another_is_not_mixed_with_it(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(ONE, path)
    reader = ParquetFile(str(path))
    parquet.write_table(with_column(np.zeros(500, np.float32)), tmp_path / "b.parquet")
    (tmp_path / "b.parquet").replace(path)
    (chunk,) = reader.chunks(["a"], ["grade"], Place(), BadRows())
    rows, _ = feature_rows(Recipe(("a",)), chunk)
    assert_array_equal(rows[:, 0], ONE["a"].to_numpy())


def test_small_pages_are_left_to_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "FEWEST_VALUES", 256)
    for name, size in (("small", 100), ("large", 1 << 20)):
        path = tmp_path / f"{name}.parquet"
        parquet.write_table(ONE, path, data_page_size=size, write_batch_size=20)
        rows, _, walked = read(path, ["a"])
        assert walked == [name == "large"]
        assert_array_equal(rows[:, 0], ONE["a"].to_numpy())


def test_pyarrow_begins_with_the_first_row_group_that_is_left(tmp_path, monkeypatch):
    values = np.linspace(0, 1, 500).tolist()
    values[401] = None
    parquet.write_table(with_column(values), tmp_path / "a.parquet", row_group_size=100)
    monkeypatch.setattr(parquet_file, "MOST_ROWS", 50)
    read_from, in_truth = [], ParquetFile._columns

    def told(self, names, groups, n_rows):
        read_from.append(list(groups))
        return in_truth(self, names, groups, n_rows)

    monkeypatch.setattr(ParquetFile, "_columns", told)
    rows, _, walked = read(tmp_path / "a.parquet", ["a"])
    assert_array_equal(rows[:, 0], with_column(values)["a"].to_numpy())
    assert walked == [True] * 8 + [False] * 2
    assert read_from == [[0, 1, 2, 3, 4], [4]]


def test_the_footer_tells_what_pyarrow_tells(tmp_path):
    path = str(tmp_path / "a.parquet")
    table = ONE.append_column("pair", pa.array([{"a": i, "b": [i]} for i in range(500)]))
    parquet.write_table(table, path, row_group_size=77, store_decimal_as_integer=True)
    metadata = parquet.read_metadata(path)
    groups = list(parquet_footer.row_groups(path))
    assert len(groups) == metadata.num_row_groups
    for i, group in enumerate(groups):
        wanted = metadata.row_group(i)
        assert len(group[parquet_pages.CHUNKS]) == wanted.num_columns
        for j, chunk in enumerate(group[parquet_pages.CHUNKS]):
            told, column = chunk[parquet_pages.CHUNK_PLACE], wanted.column(j)
            assert b".".join(told[parquet_pages.PATH]).decode() == column.path_in_schema
            assert told[parquet_pages.FIRST_PAGE] == column.data_page_offset
            assert told[parquet_pages.DICTIONARY] == column.dictionary_page_offset
            assert told[parquet_pages.SIZE] == column.total_compressed_size
            assert told[parquet_pages.CODEC] == parquet_pages.SNAPPY


def with_other_byte(path, table, find, other):
    """Write a table, and change the byte of its footer that ``find`` finds."""
    parquet.write_table(table, path, use_dictionary=False, store_schema=False)
    content = bytearray(path.read_bytes())
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[begin + find(bytes(content[begin:]))] = other
    path.write_bytes(content)


def test_a_codec_that_nobody_knows_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    name_and_codec = b"\x19\x18\x01a\x15"
    with_other_byte(path, ONE.select(["a"]), lambda footer: footer.index(name_and_codec) + 5, 18)
    with pytest.raises(FileError, match="damaged"):
        read(path, ["a"], texts=())


def test_a_column_of_another_type_than_the_schema_tells_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"a": np.linspace(0, 1, 500)})
    double, name = b"\x15\x0a", b"\x18\x01a"
    with_other_byte(  # the schema says INT32
        path, table, lambda footer: footer.rindex(double, 0, footer.index(name)) + 1, 2
    )
    with pytest.raises(FileError, match="damaged"):
        read(path, ["a"], texts=())


def test_a_name_that_is_not_utf8_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(ONE.rename_columns(["size", "grade"]), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"size", b"s\xe7ze"))
    with pytest.raises(FileError, match=r"a\.parquet: not a Parquet file, damaged or cut short"):
        ParquetFile(str(path))


def test_two_columns_of_one_name_are_an_error(tmp_path):
    parquet.write_table(
        pa.table([[1.0], [2.0], [3]], names=["a", "a", "grade"]), tmp_path / "a.parquet"
    )
    with pytest.raises(FileError, match="two columns have the name 'a'; rename one of them"):
        ParquetFile(str(tmp_path / "a.parquet"))


def outcome(path, walk):
    """The rows, or that the file is refused."""
    try:
        return read(path, ["a", "b", "c"], walk=walk)[0].tobytes()
    except FileError:
        return "refused"


@pytest.mark.parametrize("seed", range(8))
def test_damage_is_found_where_pyarrow_finds_it(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "a.parquet"
    outcomes = []
    for _ in range(40):
        n_rows = int(rng.integers(1, 300))
        columns = {
            "a": rng.normal(size=n_rows).astype(np.float32),
            "b": rng.integers(9, size=n_rows),
            "c": np.round(rng.normal(size=n_rows), 1),
            "grade": rng.integers(1, 6, size=n_rows),
        }
        settings = {
            "compression": str(rng.choice(["none", "snappy", "zstd"])),
            "use_dictionary": bool(rng.random() < 0.7),
            "data_page_size": int(rng.choice([100, 1 << 20])),
        }
        parquet.write_table(
            pa.table(columns), path, row_group_size=150, write_batch_size=20, **settings
        )
        content = bytearray(path.read_bytes())
        end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        for place in rng.integers(4, end, size=rng.integers(1, 4)).tolist():
            content[place] = int(rng.integers(256))
        path.write_bytes(content)
        outcomes.append(outcome(path, walk=True))
        assert outcomes[-1] == outcome(path, walk=False)
    assert 0 < outcomes.count("refused") < 40


def test_a_header_that_is_cut_short_is_not_understood(tmp_path):
    parquet.write_table(ONE, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    data = np.frombuffer((tmp_path / "a.parquet").read_bytes()[4:], dtype=np.uint8)
    told = paging.page_header(data[:200])
    assert told[paging.N_VALUES] == 500
    size = told[paging.HEAD]
    assert all(paging.page_header(data[:n])[paging.HEAD] == 0 for n in range(size))
    assert paging.page_header(data[:size])[paging.HEAD] == size


def test_a_header_of_other_types_is_not_understood(tmp_path):
    parquet.write_table(ONE, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    data = np.frombuffer((tmp_path / "a.parquet").read_bytes()[4:204], dtype=np.uint8).copy()
    for other in (0x10, 0x11, 0x16, 0x18, 0x1C, 0x05, 0x95):  # 0x15: the first field, a number
        data[0] = other
        assert paging.page_header(data)[paging.HEAD] == 0


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ([2, 3, 0b11100100, 0b11100100], [0, 1, 2, 3, 0, 1, 2, 3]),
        ([2, 6, 2, 10, 1], [2, 2, 2, 1, 1, 1, 1, 1]),
        ([2, 3, 0b11100100], None),  # the page ends within a group of eight
        ([2, 10, 1], None),  # fewer places than values
        ([2, 16], None),  # a run without its place
        ([2, 0, 1], None),  # a run of none
        ([2, 0x81, 0x82, 0x83, 0x84, 0x85, 0x01, 1], None),  # a run as long as no page
        ([3, 16, 7], None),  # a place behind the dictionary
        ([3, 3, 0, 0, 0b11100000], None),
    ],
)
def test_places_in_a_dictionary(content, values):
    content = np.array(content, dtype=np.uint8)
    memory = np.zeros((1, 64), dtype=np.uint8)
    memory[0, : content.size] = content
    dtypes = (np.uint8, np.uint32, np.float32, np.float64, np.int32, np.int64)
    views = tuple(memory.view(dtype) for dtype in dtypes)
    state = np.zeros((1, paging.N_STATE), dtype=np.int64)
    state[0, paging.N_ENTRIES] = 4
    assert paging.open_page(state, 0, content, 8, paging.CODED, paging.DOUBLES, False) == 0
    out, tile = np.empty((8, 1)), np.empty((1, paging.TILE))
    found = paging.fill(state, views, np.arange(4.0), tile, out, 2.0)
    assert found == (-1 if values is None else np.sum(np.array(values) > 2.0))
    if values is not None:
        assert out[:, 0].tolist() == values


def test_values_that_are_left_are_unusual(tmp_path):
    parquet.write_table(ONE, tmp_path / "a.parquet", row_group_size=300)
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    with parquet_pages.PageWalk(file, str(tmp_path / "a.parquet"), ["a"], [0, 1]) as walk:
        walk.take(499)
        with pytest.raises(parquet_pages.Unusual):
            walk.end()
        walk.take(1)
        walk.end()
        with pytest.raises(parquet_pages.Unusual):
            walk.take(1)


def test_pyarrow_has_a_last_look_where_the_end_is_unusual(tmp_path, monkeypatch):
    parquet.write_table(ONE, tmp_path / "a.parquet")
    looks = []
    in_truth = parquet_pages.PageWalk.end

    def end(self):
        looks.append(self)
        in_truth(self)
        if len(looks) == 2:  # before the only row group, and behind it
            raise parquet_pages.Unusual

    monkeypatch.setattr(parquet_pages.PageWalk, "end", end)
    rows, _, walked = read(tmp_path / "a.parquet", ["a"])
    assert len(looks) == 2
    assert walked == [True]
    assert_array_equal(rows[:, 0], ONE["a"].to_numpy())


def test_rows_that_a_file_promises_but_lacks_are_missed(tmp_path, monkeypatch):
    parquet.write_table(ONE, tmp_path / "a.parquet")
    some = ParquetFile._columns

    def fewer(self, *choices):
        return (batch.slice(0, 100) for batch in some(self, *choices))

    monkeypatch.setattr(ParquetFile, "_columns", fewer)
    with pytest.raises(FileError, match="after row 100: damaged, rows are missing; copy it anew"):
        read(tmp_path / "a.parquet", ["a"])


def test_memory_is_used_again_only_when_no_row_refers_to_it(tmp_path):
    parquet.write_table(ONE, tmp_path / "a.parquet")
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    with parquet_pages.PageWalk(file, str(tmp_path / "a.parquet"), ["a"], [0]) as walk:
        first, _ = walk.take(100)
        some = first[40:50]
        del first
        assert not walk._pool
        walk.take(100)
        assert len(walk._pool) == 1
        assert_array_equal(some[:, 0], ONE["a"].to_numpy()[40:50])
        assert not np.shares_memory(some, walk._pool[0])
        del some
        assert len(walk._pool) == 2
