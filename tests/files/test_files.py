"""Files as streams: every format gives the same rows, and a bad row is named or left out."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction import FeatureHasher
from sklearn.preprocessing import StandardScaler

from ordspan.data import stream
from ordspan.files import arrow_file, text
from ordspan.files.batch import FileError, RowError
from ordspan.files.grades import plain_word

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
    monkeypatch.setattr(arrow_file, "MAX_ROWS", 37)


def write(frame, path):
    name = path.name
    if name.endswith(".parquet"):
        parquet.write_table(pa.Table.from_pandas(frame), path, row_group_size=90)
        return path
    if ".jsonl" in name:
        text = "".join(json.dumps(row) + "\n" for row in frame.to_dict("records"))
    else:
        text = frame.to_csv(index=False, sep="\t" if ".tsv" in name else ",")
    content = text.encode()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    path.write_bytes(content)
    return path


def write_zstd(frame, path):
    with pa.output_stream(path, compression="zstd") as packed:
        packed.write(frame.to_csv(index=False).encode())
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
    path = tmp_path / name
    write_zstd(FRAME, path) if name.endswith(".zst") else write(FRAME, path)
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


@pytest.mark.parametrize("packed", [False, True])
def test_svmlight_is_what_scikit_learn_reads(tmp_path, packed):
    X = np.where(rng.random((N, 9)) < 0.4, rng.normal(size=(N, 9)), 0.0)
    grades, queries = rng.integers(0, 5, N), np.sort(rng.integers(0, 30, N))
    path = tmp_path / "a.txt"
    dump_svmlight_file(X, grades, str(path), zero_based=False, query_id=queries, comment="x")
    expected = load_svmlight_file(str(path), query_id=True)
    if packed:
        path = tmp_path / "a.txt.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.txt").read_bytes()))
    batches = stream(path)
    read, y = gathered(batches)
    np.testing.assert_array_equal(read, expected[0].toarray())
    np.testing.assert_array_equal(y, expected[1])
    np.testing.assert_array_equal(np.concatenate([b.group for b in batches]), expected[2])
    assert batches.feature_names[0] == "feature 1"


def test_words_are_hashed_as_scikit_learn_does(tmp_path):
    hashed = {"hashed": ["town", "query"], "hash_bits": 5}
    X, _ = gathered(stream(write(FRAME, tmp_path / "a.csv"), label="grade", **hashed))
    hasher = FeatureHasher(32, input_type="string")
    words = [
        [f"town={town}", f"query={query}"]
        for town, query in zip(FRAME["town"], FRAME["query"], strict=True)
    ]
    np.testing.assert_array_equal(X[:, :2], FRAME[["size", "age"]])
    np.testing.assert_array_equal(X[:, 2:], hasher.transform(words).toarray())


def test_numbers_of_files_are_standardised_by_all_rows(tmp_path):
    path = write(FRAME, tmp_path / "a.csv")
    batches = stream(path, label="grade", features=["size", "age"], standardise=True)
    values = FRAME[["size", "age"]].to_numpy()
    for _ in range(2):
        X, _ = gathered(batches)
        np.testing.assert_allclose(X, StandardScaler().fit_transform(values), atol=1e-10)


def test_numbers_of_a_pipe_are_standardised_by_the_rows_up_to_each(tmp_path, monkeypatch):
    content = write(FRAME, tmp_path / "a.csv").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    wanted = {"features": ["size", "age"], "standardise": True, "classes": sorted(set(FRAME.grade))}
    X, _ = gathered(stream("-", label="grade", **wanted))
    values = FRAME[["size", "age"]].to_numpy()
    for i in (1, 50, N - 1):
        expected = StandardScaler().fit(values[: i + 1]).transform(values[i : i + 1])
        np.testing.assert_allclose(X[i : i + 1], expected, atol=1e-12)


def test_ranges_come_as_pairs_and_rows_without_labels_as_none(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,g\n1,low\n2,low-mid\n3,>=mid\n")
    (batch,) = stream(path, label="g", classes=["low", "mid", "high"])
    assert batch.y.tolist() == [["low", "low"], ["low", "mid"], ["mid", "high"]]
    (batch,) = stream(path, features=["a"])
    assert batch.y is None


def test_windows_line_ends_blank_lines_and_a_byte_order_mark_do_no_harm(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfa,g\r\n1,1\r\n\r\n2,2\r\n3,x\r\n")
    batches = stream(path, label="g", classes=[1, 2], on_bad_row="skip")
    X, y = gathered(batches)
    assert (X.ravel().tolist(), y.tolist(), batches.skipped) == ([1.0, 2.0], [1, 2], 1)
    with pytest.raises(RowError, match="line 5: column 'g' holds 'x': grade 'x'"):
        list(stream(path, label="g", classes=[1, 2]))


GOOD = "".join(f"{i},{i % 3}.5,{i % 4 + 1}\n" for i in range(200))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x,1,2", "column 'a' holds 'x', not a number"),
        (b"1,-inf,2", "column 'b' holds -inf"),
        (b"1,1e99,2", "column 'b' holds 1e\\+99"),
        (b"1,1,7", "grade '7' is not among"),
        (b"1,1,", "the label is empty"),
        (b"1,1,4-2", "lower end of '4-2' is above"),
        (b"1,1", "2 fields, but the header has 3"),
        (b"1,1,2,3", "4 fields, but the header has 3"),
        (b"1,\xff,2", "byte 3 is not UTF-8"),
        (b'1,"1,2', "a quote is not closed; close it"),
        (b"1_000,1,2", "column 'a' holds '1_000', not a number"),
        (b"1,1\r,2", "cannot be split into fields"),
    ],
)
def test_a_bad_line_is_named_or_skipped(tmp_path, line, message):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b,g\n" + GOOD.encode() + line + b"\n" + GOOD.encode())
    wanted = {"label": "g", "classes": [1, 2, 3, 4]}
    with pytest.raises(RowError, match=rf"a\.csv, line 202: .*{message}"):
        list(stream(path, **wanted))
    batches = stream(path, on_bad_row="skip", **wanted)
    assert sum(len(b.y) for b in batches) == 400
    assert batches.skipped == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x 1:1", "the grade 'x' is not a number"),
        (b"1 1:z", "'1:z' is not of the form index:value"),
        (b"1 2:1 1:1", "index 1 in '1:1' does not increase"),
        (b"1 0:1", "index 0 in '0:1' does not increase; give zero_based=True"),
        (b"1 qid:1 1:nan", "'feature 1' is empty or NaN"),
        (b"9 qid:1 1:1", "grade '9' is not among"),
        (b"1 9:1", "index 9, but there are 3 features"),
        (b"1 1:1", "no qid after the grade"),
        (b"1 qid:a 1:1", "'qid:a' is not of the form index:value"),
        (b"1 qid:1 9999999999:1", "is larger than 2147483646"),
    ],
)
def test_a_bad_svmlight_line_is_named_or_skipped(tmp_path, line, message):
    path = tmp_path / "a.txt"
    good = "".join(f"{i % 3} qid:{i} 1:{i} 3:0.5\n" for i in range(100)).encode()
    path.write_bytes(b"# about\n" + good + line + b"\n" + good)
    wanted = {"classes": [0, 1, 2], "n_features": 3}
    with pytest.raises(RowError, match=rf"a\.txt, line 102: .*{message}"):
        list(stream(path, **wanted))
    batches = stream(path, on_bad_row="skip", **wanted)
    assert sum(len(b.y) for b in batches) == 200
    assert batches.skipped == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": "x", "g": 1}', "column 'a' holds 'x', not a number"),
        ('{"a": 1}', "the label is empty"),
        ('{"a": 1, "g": 1', "not JSON"),
        ("[1, 2]", "is not an object"),
    ],
)
def test_a_bad_json_line_is_named_or_skipped(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    good = "".join(f'{{"a": {i * i}, "g": [1, {i % 2 + 1}]}}\n' for i in range(100))
    path.write_text(good + line + "\n" + good)
    with pytest.raises(RowError, match=rf"a\.jsonl, line 101: .*{message}"):
        list(stream(path, label="g", classes=[1, 2]))
    batches = stream(path, label="g", classes=[1, 2], on_bad_row="skip")
    assert sum(len(b.y) for b in batches) == 200
    assert batches.skipped == 1


def test_categories_of_parquet_are_words(tmp_path):
    frame = pd.DataFrame(
        {
            "x": np.arange(40.0) ** 2,
            "town": pd.Categorical(["a", "b", None, "c"] * 10),
            "g": pd.Categorical(["low", "mid"] * 20),
        }
    )
    path = write(frame, tmp_path / "a.parquet")
    batches = stream(path, label="g", classes=["low", "mid"])
    X, y = gathered(batches)
    assert batches.feature_names == ["x", "town is missing", "town = a", "town = b", "town = c"]
    assert X[:4, 1:].tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert y.tolist() == ["low", "mid"] * 20


def test_a_bad_parquet_row_is_named(tmp_path):
    frame = FRAME.copy()
    frame.loc[123, "size"] = np.nan
    path = write(frame, tmp_path / "a.parquet")
    with pytest.raises(RowError, match=r"a\.parquet, row 124: column 'size' is empty or NaN"):
        list(stream(path, label="grade", missing="error"))


def test_words_among_the_numbers_of_a_parquet_column_are_named_or_skipped(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {"a": ["1,5", "x", "", "2,5"], "g": [1, 2, 1, 2]}
    parquet.write_table(pa.table(columns), path)
    wanted = {"label": "g", "classes": [1, 2]}
    with pytest.raises(RowError, match=r"row 2: column 'a' holds 'x', not a number"):
        list(stream(path, **wanted))
    batches = stream(path, on_bad_row="skip", **wanted)
    assert gathered(batches)[0].tolist() == [[1.5, 0], [2, 1], [2.5, 0]]
    assert batches.skipped == 1
    assert any("'1,5' is 1.5" in note for note in batches.notes)


def damaged(tmp_path):
    """Files that cannot be read, and the message for each."""
    whole = gzip.compress(("a,g\n" + "1,2\n3,4\n" * 5000).encode())
    table = write(FRAME, tmp_path / "whole.parquet").read_bytes()
    packed = write_zstd(pd.concat([FRAME] * 20), tmp_path / "whole.csv.zst").read_bytes()
    return {
        "cut.csv.gz": (whole[: len(whole) // 2], "damaged or truncated"),
        "not.csv.gz": (b"a,g\n1,2\n", "damaged"),
        "cut.csv.zst": (packed[: len(packed) // 2], "damaged or truncated"),
        "cut.parquet": (table[: len(table) // 2], "not a Parquet file, or damaged or truncated"),
        "middle.parquet": (table[:200] + bytes(300) + table[500:], "damaged"),
        "empty.csv": (b"", "the file is empty"),
        "header.csv": (b"a,g\n", "has a header but no rows"),
        "empty.txt": (b"\n# nothing\n", "the file is empty"),
        "empty.jsonl": (b"\n", "the file is empty"),
        "twice.csv": (b"a,a\n1,2\n", "more than one column is named 'a'"),
        "words.csv": (b"\xff\xc3\xbc,g\n1,2\n", "line 1: byte 1 is not UTF-8"),
        "date.csv": (b"d,g\n2020-01-01,1\n", "column 'd' holds dates; leave it out with drop="),
        "unknown.xyz": (b"1", "unknown ending '.xyz'"),
    }


DAMAGED = (
    *("cut.csv.gz", "not.csv.gz", "cut.csv.zst", "cut.parquet", "middle.parquet"),
    *("empty.csv", "header.csv", "empty.txt", "empty.jsonl"),
    *("twice.csv", "words.csv", "date.csv", "unknown.xyz"),
)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_or_foreign_file_is_reported(tmp_path, name):
    content, message = damaged(tmp_path)[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(
            stream(tmp_path / name, label="grade" if "parquet" in name else "g", classes=[1, 2, 4])
        )


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
        ({"label": "town"}, "the grades are names"),
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
    with pytest.raises(FileError, match="line 1: longer than 2000 bytes; is this a text file"):
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


def test_a_peek_does_not_count_as_a_pass(tmp_path):
    path = write(FRAME, tmp_path / "a.csv")
    fresh, peeked = (
        stream(path, label="grade", features=["size", "age"], standardise=True) for _ in range(2)
    )
    next(iter(peeked))
    np.testing.assert_array_equal(gathered(fresh)[0], gathered(peeked)[0])


def test_tabs_may_separate_the_words_of_svmlight_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1\tqid:1\t1:0.5\t3:2\n2\tqid:1\t2:1\n")
    (batch,) = stream(path)
    assert batch.X.toarray().tolist() == [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    "line", ["1qid:3 1:2", "1 qid:3 qid:4 1:2", "1 qid:1e2 1:1", "1 qid:1 1:1e00005:7"]
)
def test_an_odd_svmlight_line_is_refused_by_either_way(tmp_path, line):
    for more in ("", "x 1:1\n"):  # which sends the block the slow way
        (tmp_path / "a.txt").write_text(f"1 qid:1 1:1\n{line}\n{more}2 qid:1 1:1\n")
        batches = stream(tmp_path / "a.txt", classes=[1, 2], n_features=7, on_bad_row="skip")
        assert sum(map(len, batches)) == 2


@pytest.mark.parametrize("size", [14, 700])
def test_the_first_line_decides_whether_there_are_queries(tmp_path, monkeypatch, size):
    monkeypatch.setattr(text, "BLOCK_BYTES", size)
    (tmp_path / "a.txt").write_text("1 1:1 # qid:7\n2 1:2\n1 qid:1 1:1\nx 1:1\n")
    batches = stream(tmp_path / "a.txt", classes=[1, 2], on_bad_row="skip")
    assert sum(map(len, batches)) == 2
    assert batches.skipped == 2
    with pytest.raises(
        RowError, match="line 3: a qid after the grade, but the lines before have none"
    ):
        list(stream(tmp_path / "a.txt", classes=[1, 2]))


@pytest.mark.parametrize("zero", [None, False, True])
def test_indices_begin_at_0_if_0_occurs_in_any_file(tmp_path, zero):
    (tmp_path / "a.txt").write_text("1 1:5 3:7\n")
    (tmp_path / "b.txt").write_text("2 0:1\n" if zero is not False else "2 1:1\n")
    batches = stream(tmp_path, classes=[1, 2], zero_based=zero)
    X, _ = gathered(batches)
    assert X.shape[1] == (3 if zero is False else 4)
    assert X[0].tolist() == ([5, 0, 7] if zero is False else [0, 5, 0, 7])


def test_json_that_is_read_slowly_gives_the_same_words(tmp_path):
    rows = [
        '{"w": 3.0, "g": 1}',
        '{"w": [1, 2.50], "g": 1}',
        '{"w": true, "g": 2}',
        '{"w": 1e400, "g": 2}',
        '{"w": null, "g": 2}',
        "   ",
        '{"w": "ü", "w": "b", "g": 1}',
    ]
    words = []
    for more in ("", '{"w": "x", "g": "\\ud800"}\n'):
        (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n" + more)
        batches = stream(
            tmp_path / "a.jsonl",
            label="g",
            classes=[1, 2],
            text=["w"],
            keep=["w"],
            on_bad_row="skip",
        )
        words.append([word for batch in batches for word in batch.kept["w"]])
        assert batches.skipped == bool(more)
    assert words[0] == words[1]
    assert words[0][-1] == "ü"


def test_whole_numbers_are_grades_to_the_last_digit():
    assert plain_word("9007199254740993") == "9007199254740993"
    assert plain_word("1_0") == "1_0"


def test_an_escaped_backslash_is_no_half_of_a_pair(tmp_path):
    rows = '{"w": "C:\\\\ud800", "g": 1}\n{"w": "\\ud83d\\ude00", "g": 2}\n'
    (tmp_path / "a.jsonl").write_text(rows)
    (batch,) = stream(tmp_path / "a.jsonl", label="g", classes=[1, 2], keep=["w"])
    assert batch.kept["w"].to_list() == ["C:\\ud800", "\U0001f600"]


def test_a_very_long_number_of_json_is_kept_as_it_is(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 123456789012345678901234567890, "a": 1}\n')
    (batch,) = stream(tmp_path / "a.jsonl", features=["a"], keep=["id"])
    assert batch.kept["id"].to_list() == ["123456789012345678901234567890"]
