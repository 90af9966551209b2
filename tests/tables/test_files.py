"""What a file or a choice of columns cannot give is refused by name; JSON as it is written."""

import gzip

import numpy as np
import pyarrow as pa
import pytest

from ordspan import stream

TOWNS = ["Pune", "Turku", "Graz, A"]
CSV = b"size,town,grade\n" + b"".join(
    b'%.4f,"%s",%d\n' % (np.sin(i), TOWNS[i % 3].encode(), 1 + i % 5) for i in range(500)
)
GZ, ZST = gzip.compress(CSV), pa.compress(CSV, "zstd", asbytes=True)

ENDLESS = gzip.compress(b"a" * 68_000_000, 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.csv.gz", GZ[: len(GZ) // 2], "damaged or truncated"),
        ("not.csv.gz", b"a,grade\n1,2\n", "damaged"),
        ("cut.csv.zst", ZST[: len(ZST) // 2], "damaged or truncated"),
        ("empty.txt", b"\n# nothing\n", "no line has a feature, index:value"),
        ("empty.jsonl", b"\n", "the file is empty"),
        ("array.jsonl", b'[\n{"a": 1}\n]\n', "holds a JSON array; give one object per line"),
        ("twice.csv", b"a,grade,grade\n1,2,3\n", r"no column 'grade'.*grade \(1\)"),
        ("thrice.csv", b"a,a,a (1),grade\n1,2,3,1\n", r"more than one column is named 'a \(1\)'"),
        ("date.csv", b"d,grade\n2020-01-01,1\n", "no column is left to learn from .d: dates"),
        ("long.csv.gz", ENDLESS, "a line of more than .* MB begins with 'a+'; is a quote not"),
    ],
)
def test_a_damaged_or_foreign_file_is_reported(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(stream(tmp_path / name, label="grade", classes=[1, 2, 3, 4, 5]))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"label": "grade", "lower": "size"}, "either a label column, or"),
        ({"label": "grade", "hash_bits": 99}, "hash_bits must be in"),
        ({"label": "grade", "format": "xls"}, "unknown format 'xls'"),
        ({"label": "grade", "batch_size": 9}, "unknown option of stream 'batch_size'; choose"),
        (
            {"label": "grade", "on_bad_row": "ask"},
            "unknown on_bad_row 'ask'; choose one of raise, skip",
        ),
        ({"label": "grade", "features": ["grade"]}, "no column is left"),
        ({"paths": "nowhere.csv"}, r"nowhere\.csv: no such file"),
        ({"paths": []}, "no files given"),
        ({"paths": ["a.csv", "b.csv", "./a.csv"]}, r"a\.csv is given twice"),
    ],
)
def test_a_wrong_choice_is_reported(tmp_path, choice, message):
    (tmp_path / "a.csv").write_bytes(CSV)
    with pytest.raises(ValueError, match=message):
        stream(**{"paths": tmp_path / "a.csv"} | choice)


def test_each_word_is_hashed_as_it_stands_to_one_place_and_sign(tmp_path):
    words = ["01234", "1234", "1234.0", *TOWNS] * 9
    (tmp_path / "a.csv").write_text("a,g\n" + "".join(f'"{w}",{len(w) % 2}\n' for w in words))
    (batch,) = stream(tmp_path / "a.csv", label="g", hashed=["a"], hash_bits=12)
    X = batch.X.toarray()
    assert (np.abs(X).sum(axis=1) == 1).all()
    assert {-1.0, 1.0} == set(X[X != 0])
    assert len(np.unique(X, axis=0)) == 6


def test_a_pattern_is_the_files_of_it_and_endings_may_be_upper_case(tmp_path):
    (tmp_path / "A.TSV").write_text("a\tg\n1\t1\n2\t2\n")
    (tmp_path / "B.CSV.GZ").write_bytes(gzip.compress(b"a,g\n3,1\n4,2\n"))
    for name in ("c.csv", ".hidden.csv", "~$c.csv", "notes.md"):
        (tmp_path / name).write_text("a,g\n5,1\n")
    for paths, numbers in ((tmp_path, [1, 2, 3, 4, 5]), (tmp_path / "*[CV]*", [1, 2, 3, 4])):
        rows = stream(paths, label="g", classes=[1, 2])
        assert [x for batch in rows for x in batch.X[:, 0]] == numbers
    with pytest.raises(ValueError, match=r"z\*: no files that end in"):
        stream(tmp_path / "z*", label="g")


def test_json_that_is_read_slowly_gives_the_same_words(tmp_path):
    rows = [
        '{"w": 3.0, "g": 1}',
        '{"w": [1, 2.50], "g": 1}',
        '{"w": true, "g": 2}',
        '{"w": null, "g": 2}',
        "   ",
        '{"w": "NaN: \\\\\\"NaN", "g": 1}',
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
