"""Files as streams: every format gives the same rows, and a bad row is named or left out."""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from ordspan import stream
from ordspan.tables import formats, text
from ordspan.tables.rows import FileError

N = 500
rng = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "size": rng.normal(size=N).round(4),
        "town": rng.choice(["Pune", "Turku", "Graz, A"], N),
        "age": rng.integers(18, 90, N),
        "grade": rng.integers(1, 6, N),
        "query": np.sort(rng.integers(0, 50, N)),
    }
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks also in small files."""
    monkeypatch.setattr(text, "BLOCK_BYTES", 700)
    monkeypatch.setattr(formats, "MAX_ROWS", 37)


def packed(frame, compression):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression) as file:
        file.write(frame.to_csv(index=False).encode())
    return sink.getvalue().to_pybytes()


def as_parquet(frame):
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pandas(frame), sink, row_group_size=90)
    return sink.getvalue().to_pybytes()


def write(frame, path):
    name = path.name
    if name.endswith(".parquet"):
        path.write_bytes(as_parquet(frame))
    elif ".jsonl" in name:
        rows = "".join(json.dumps(row) + "\n" for row in frame.to_dict("records")).encode()
        path.write_bytes(gzip.compress(rows) if name.endswith(".gz") else rows)
    elif name.endswith((".gz", ".zst")):
        path.write_bytes(packed(frame, "gzip" if name.endswith(".gz") else "zstd"))
    else:
        frame.to_csv(path, index=False, sep="\t" if name.endswith(".tsv") else ",")
    return path


def gathered(batches):
    batches = list(batches)
    X = [b.X.toarray() if hasattr(b.X, "toarray") else b.X for b in batches]
    y = None if batches[0].y is None else np.concatenate([b.y for b in batches])
    return np.vstack(X), y


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "a.csv.zst", "a.jsonl", "a.jsonl.gz", "a.parquet"]
)
def test_every_format_gives_the_same_rows(tmp_path, name):
    path = write(FRAME, tmp_path / name)
    batches = stream(path, label="grade", group="query", keep=["town"], drop=["town"])
    X, y = gathered(batches)
    np.testing.assert_array_equal(X, FRAME[["size", "age"]])
    np.testing.assert_array_equal(y, FRAME["grade"])
    parts = list(batches)  # a second pass
    assert len(parts) > 5
    np.testing.assert_array_equal(
        np.concatenate([p.group for p in parts]).astype(int), FRAME["query"]
    )
    assert pl.concat([p.kept for p in parts])["town"].to_list() == list(FRAME["town"])


def test_a_folder_is_the_files_in_it(tmp_path):
    for i, part in enumerate(np.array_split(np.arange(N), 3)):
        write(FRAME.iloc[part], tmp_path / f"part-{i}.parquet")
    (tmp_path / "notes.md").write_text("not data")
    X, y = gathered(stream(tmp_path, label="grade", drop=["town"]))
    np.testing.assert_array_equal(X, FRAME[["size", "age", "query"]])
    np.testing.assert_array_equal(y, FRAME["grade"])


def test_svmlight_is_what_scikit_learn_reads(tmp_path):
    X = np.where(rng.random((N, 9)) < 0.4, rng.normal(size=(N, 9)), 0.0)
    grades, queries = rng.integers(0, 5, N), np.sort(rng.integers(0, 30, N))
    path = tmp_path / "a.txt"
    dump_svmlight_file(X, grades, str(path), zero_based=False, query_id=queries, comment="x")
    expected = load_svmlight_file(str(path), query_id=True)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(path.read_bytes().replace(b" ", b"\t")))
    for name in ("a.txt", "b.txt.gz"):
        batches = stream(tmp_path / name)
        read, y = gathered(batches)
        np.testing.assert_array_equal(read, expected[0].toarray())
        np.testing.assert_array_equal(y, expected[1])
        np.testing.assert_array_equal(np.concatenate([b.group for b in batches]), expected[2])
        assert batches.feature_names[0] == "feature 1"


def test_each_word_is_hashed_to_one_place_and_sign(tmp_path):
    wanted = {"features": ["town", "age"], "hashed": ["town", "age"], "hash_bits": 12}
    X, _ = gathered(stream(write(FRAME, tmp_path / "a.csv"), label="grade", **wanted))
    assert (np.abs(X).sum(axis=1) == 2).all()
    assert {-1.0, 1.0} == set(X[X != 0])
    n_pairs = len(FRAME[["town", "age"]].drop_duplicates())
    assert 0.95 * n_pairs < len(np.unique(X, axis=0)) <= n_pairs  # few words share a place


def test_ranges_come_as_pairs_and_rows_without_labels_as_none(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,g\n1,low\n2,low-mid\n3,>=mid\n")
    (batch,) = stream(path, label="g", classes=["low", "mid", "high"])
    assert batch.y.tolist() == [["low", "low"], ["low", "mid"], ["mid", "high"]]
    (batch,) = stream(path, features=["a"])
    assert batch.y is None


GZ, ZST, TABLE = packed(FRAME, "gzip"), packed(FRAME, "zstd"), as_parquet(FRAME)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.csv.gz", GZ[: len(GZ) // 2], "damaged or truncated"),
        ("not.csv.gz", b"a,grade\n1,2\n", "damaged"),
        ("cut.csv.zst", ZST[: len(ZST) // 2], "damaged or truncated"),
        ("cut.parquet", TABLE[: len(TABLE) // 2], "not a Parquet file, or damaged or truncated"),
        ("middle.parquet", TABLE[:200] + bytes(300) + TABLE[500:], "damaged"),
        ("empty.csv", b"", "the file is empty"),
        ("header.csv", b"a,grade\n", "has a header but no rows"),
        ("empty.txt", b"\n# nothing\n", "no line has a feature, index:value"),
        ("empty.jsonl", b"\n", "the file is empty"),
        ("twice.csv", b"a,grade,grade\n1,2,3\n", r"no column 'grade'.*grade \(1\)"),
        ("date.csv", b"d,grade\n2020-01-01,1\n", "no column is left to learn from .d: it holds"),
        ("wide.csv", "a,grade\n1,2\n".encode("utf-16-le"), "contains null bytes.*utf-16-le"),
        ("unknown.xyz", b"1", "unknown ending '.xyz'.* give format= "),
    ],
)
def test_a_damaged_or_foreign_file_is_reported(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(stream(tmp_path / name, label="grade", classes=[1, 2, 3, 4, 5]))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"label": "nope"}, "no column 'nope'"),
        ({"label": "grade", "features": ["zz"]}, "no column 'zz'"),
        ({"label": "grade", "drop": ["zz"]}, "no column 'zz'"),
        ({"label": "grade", "lower": "age"}, "either a label column, or"),
        ({"label": "grade", "hash_bits": 99}, "hash_bits must be in"),
        ({"label": "grade", "format": "xls"}, "unknown format 'xls'"),
        ({"label": "grade", "on_bad_row": "ask"}, "on_bad_row must be"),
        ({"label": "town"}, "order of the grades .* is not known"),
        ({"label": "grade", "features": ["grade"]}, "no column is left"),
    ],
)
def test_a_wrong_choice_is_reported(tmp_path, choice, message):
    with pytest.raises(ValueError, match=message):
        list(stream(write(FRAME, tmp_path / "a.csv"), **choice))


def test_no_such_file_and_no_file():
    with pytest.raises(FileError, match=r"nowhere\.csv: no such file"):
        stream("nowhere.csv", label="g")
    with pytest.raises(FileError, match="no files given"):
        stream([], label="g")


def test_a_text_without_line_ends_is_refused_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LONGEST_LINE", 2000)
    (tmp_path / "a.csv").write_bytes(b"a" * 5000)
    with pytest.raises(
        FileError, match=r"a line of more than .* MB begins with 'a+'; is a quote not closed"
    ):
        stream(tmp_path / "a.csv", label="g")


def test_long_query_numbers_are_not_rounded(tmp_path):
    path = tmp_path / "a.txt"
    queries = [123456789012345601 + i for i in range(6)]
    path.write_text("".join(f"{i % 2} qid:{q} 1:1\n" for i, q in enumerate(queries)))
    (batch,) = stream(path)
    assert batch.group.tolist() == queries


def test_words_are_hashed_as_they_stand(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("zip,g\n01234,1\n1234,2\n1234.0,1\n")
    (batch,) = stream(path, label="g", hashed=["zip"], hash_bits=10)
    assert np.unique(batch.X.toarray(), axis=0).shape[0] == 3


@pytest.mark.parametrize("size", [14, 700])
def test_a_line_may_have_no_query(tmp_path, monkeypatch, size):
    monkeypatch.setattr(text, "BLOCK_BYTES", size)
    (tmp_path / "a.txt").write_text("1 1:1 # qid:7\n2 1:2\n1 qid:1 1:1\nx 1:1\n")
    batches = stream(tmp_path / "a.txt", classes=[1, 2], on_bad_row="skip")
    groups = [[None] * len(b) if b.group is None else b.group.tolist() for b in batches]
    assert [v if v == v else None for group in groups for v in group] == [None, None, 1]
    assert batches.skipped == 1


@pytest.mark.parametrize(
    ("index", "zero", "first"),
    [(0, None, [0, 5, 0, 7]), (0, True, [0, 5, 0, 7]), (1, False, [5, 0, 7])],
)
def test_indices_begin_at_0_if_0_occurs_in_any_file(tmp_path, index, zero, first):
    (tmp_path / "a.txt").write_text("1 1:5 3:7\n")
    (tmp_path / "b.txt").write_text(f"2 {index}:1\n")
    assert gathered(stream(tmp_path, classes=[1, 2], zero_based=zero))[0][0].tolist() == first


def test_json_that_is_read_slowly_gives_the_same_words(tmp_path):
    rows = [
        '{"w": 3.0, "g": 1}',
        '{"w": [1, 2.50], "g": 1}',
        '{"w": true, "g": 2}',
        '{"w": 1e400, "g": 2}',
        '{"w": null, "g": 2}',
        "   ",
        '{"w": "ü", "g": 1}',
    ]
    words = []
    for more in ("", '{"w": "x", "g": "\\ud800"}\n'):
        (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n" + more)
        wanted = {"label": "g", "classes": [1, 2], "text": ["w"], "keep": ["w"]}
        batches = stream(tmp_path / "a.jsonl", on_bad_row="skip", **wanted)
        words.append([word for batch in batches for word in batch.kept["w"]])
        assert batches.skipped == bool(more)
    assert words[0] == words[1]
    assert words[0][-1] == "ü"


def test_odd_values_of_json_are_kept_as_they_are(tmp_path):
    rows = '{"w": "C:\\\\ud800", "a": 1}\n{"w": "\\ud83d\\ude00", "a": 2}\n'
    (tmp_path / "a.jsonl").write_text(rows + '{"w": 123456789012345678901234567890, "a": 1}\n')
    (batch,) = stream(tmp_path / "a.jsonl", features=["a"], keep=["w"])
    words = ["C:\\ud800", "\U0001f600", "123456789012345678901234567890"]
    assert batch.kept["w"].to_list() == words
