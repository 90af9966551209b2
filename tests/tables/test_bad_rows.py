"""A bad row is named, or left out and no other row with it, by every reader and command."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands.tables import said, summary
from ordspan import stream

rng = np.random.default_rng(5)
ROWS = [
    {"a": round(float(a), 3), "w": str(w), "g": int(g)}
    for a, w, g in zip(
        rng.normal(size=40), rng.choice(["ab", "cé"], 40), rng.integers(1, 5, 40), strict=True
    )
]
AT = 20
LONG = b"9" * 5000
DEEP = b"[" * 100_000 + b"]" * 100_000
NESTED = b'{"k":' * 400 + b"1" + b"}" * 400


def lines_of(ending, wide):
    rows = [row | {"w": row["w"] + "é" * (wide // 2)} for row in ROWS]
    if ending == "csv":
        return [f"{r['a']},{r['w']},{r['g']}".encode() for r in rows]
    if ending == "jsonl":
        return [json.dumps(r, ensure_ascii=False).encode() for r in rows]
    cells = [f"{r['g']} qid:{i // 4} 1:{r['a']} 2:1" for i, r in enumerate(rows)]
    return [f"{cell} # {r['w']}".encode() for cell, r in zip(cells, rows, strict=True)]


def write(path, *more, wide=0):
    """The good rows, with more lines in the middle; wide ones make more than one block."""
    good, header = lines_of(path.suffix[1:], wide), [b"a,w,g"] * (path.suffix == ".csv")
    path.write_bytes(b"\n".join([*header, *good[:AT], *more, *good[AT:], b""]))
    return path


def settings_for(path):
    wanted = {"n_features": 3} if path.suffix == ".txt" else {"label": "g"}
    return wanted | {"classes": [1, 2, 3, 4]}


def check_stream(path, message, **more):
    place = rf"{path.stem}\{path.suffix}, row {AT + 1}: "
    how = settings_for(path) | ({} if path.suffix == ".txt" else more)
    with pytest.raises(ValueError, match=place + f".*{message}"):
        list(stream(path, **how))
    batches = stream(path, on_bad_row="skip", **how)
    assert (sum(map(len, batches)), batches.skipped) == (len(ROWS), 1)


BAD = [
    ("csv", b"x,ab,2", "column 'a' holds 'x', not a number; correct it, give na="),
    ("csv", b"-inf,ab,2", "column 'a' holds -inf"),
    ("csv", b"1e99,ab,2", "column 'a' holds 1e\\+99"),
    ("csv", LONG + b",ab,1", "column 'a' holds inf, which is too large"),
    ("csv", b"1_000,ab,2", "column 'a' holds '1_000', not a number"),
    ("csv", "\u0663,ab,2".encode(), "column 'a' holds '\u0663', not a number"),
    ("csv", b"1,ab,2,3,4,,", "more fields than the 3 of the header, from '3' on"),
    ("csv", b"1,ab,,4", "more fields than the 3 of the header, from '4' on"),
    ("csv", b"1,ab,7", "grade '7' is not among"),
    ("csv", b"1,ab,4-2", "lower end of '4-2' is above"),
    ("csv", "1,ab,\ufeff2".encode(), "grade"),
    ("jsonl", b'{"a": "x", "w": "ab", "g": 1}', "column 'a' holds 'x', not a number"),
    ("jsonl", b'{"a": 1, "g": 1', "not a JSON object"),
    ("jsonl", b'{"a":Infinity,"w":"ab","g":1}', "not a JSON object with a value, or null"),
    ("jsonl", b"[1, 2]", "'\\[1, 2\\]' is not a JSON object with a value, or null, for each"),
    ("jsonl", b'{"a":' + DEEP + b',"w":"ab","g":1}', "not a JSON object"),
    ("jsonl", b'{"a":' + LONG + b',"w":"ab","g":1}', "not a JSON object"),
    ("jsonl", b'{"a":1,"\\udc00w":"ab","g":1}', "not a JSON object .* surrogate"),
    ("txt", b"x 1:1", "the grade 'x' is not a number"),
    ("txt", b"1 2:1 1:1", "'1:1' is not of the form .* indices that rise from 1 to at most 3"),
    ("txt", b"1 2:1 2:1", "'2:1' is not of the form index:value, with indices that rise"),
    ("txt", b"1 0:1", "'0:1' is not of the form .* from 1 to at most 3; give zero_based=True"),
    ("txt", b"1 qid:1 1:nan", "'feature 1' is empty or NaN"),
    ("txt", b"9 qid:1 1:1", "grade '9' is not among"),
    ("txt", b"1 9:1", "'9:1' is not of the form index:value, .* to at most 3"),
    ("txt", b"1 qid:99999999999999999999 1:1", "'qid:9+' is not of the form"),
    ("txt", b"1 qid:3 qid:4 1:2", "'qid:4' is not of the form"),
    ("txt", b"1qid:3 1:2", "the grade '1qid:3' is not a number"),
    ("txt", b"1 qid:1 9999999999:1", "'9+:1' is not of the form index:value, .* to at most 3"),
    ("txt", b"1 qid:1 " + LONG + b":1", r"'9+'\.\.\. \(5,002 characters\) is not of the form"),
    ("txt", b"1 qid:1 1:" + LONG, "holds inf, which is too large"),
]
for odd in ("1", "a:1", "1:z", "1:", "1:-", "1:.", "1:e5", "1:1e", "1:1x", "qid:a", "q"):
    BAD.append(("txt", f"1 {odd}".encode(), f"'{odd}' is not of the form"))
for odd in ("9" * 5000, ">" + "9" * 310, "1-" + LONG.decode(), "[" * 3000):
    BAD.append(("csv", f"1,ab,{odd}".encode(), "column 'g' holds .{1,400}$"))
    BAD.append(("jsonl", json.dumps(ROWS[0] | {"g": odd}).encode(), "column 'g' holds .{1,400}$"))


@pytest.mark.parametrize(("ending", "line", "message"), BAD, ids=lambda value: repr(value)[:30])
def test_a_bad_line_is_named_or_left_out(tmp_path, ending, line, message):
    check_stream(write(tmp_path / f"bad.{ending}", line), message)


@pytest.mark.parametrize(
    ("ending", "line", "message"),
    [
        ("csv", b"x,ab,2", "column 'a' holds 'x'"),
        ("csv", b"1,ab,2,3", "more fields than the 3 of the header"),
        ("jsonl", b'{"a": 1, "g": 1', "not a JSON object"),
        ("txt", b"1 2:1 1:1", "'1:1' is not of the form .* indices that rise from 1 to at most 3"),
    ],
)
def test_a_bad_line_of_a_large_file_is_named_or_left_out(tmp_path, ending, line, message):
    check_stream(write(tmp_path / f"bad.{ending}", line, wide=450_000), message, features=["a"])


@pytest.mark.parametrize(
    ("ending", "line", "labelled"),
    [
        ("csv", b'1,5" disk,2', True),
        ("csv", b'1,""a"",2', True),
        ("csv", b"1,\xff,2", True),
        ("csv", b"1\r,ab,2", True),
        ("csv", b"NaN,NA,1", True),
        ("csv", b"1,ab,", False),
        ("csv", b"1,ab", False),
        ("csv", b"Total,ab,", False),
        ("csv", b"inf,ab,NA", False),
        ("csv", "1,ab,\xa0".encode(), False),
        ("jsonl", b'{"a":NaN,"w":"ab","g":1}', True),
        ("jsonl", b'{"a":1,"w":"ab","g":NaN}', False),
        ("jsonl", b'{"a":1,"w":"\\ud83d\\ude00","g":1}', True),
        ("jsonl", b'{"a":1,"w":"\xed\xa0\x80","g":1}', True),
        ("jsonl", b'{"g":1}', True),
        ("jsonl", b'{"a": 1}', False),
        ("jsonl", b'{"a": "Total"}', False),
        ("jsonl", b'{"a": 1, "w": "ab", "g": null}', False),
        ("jsonl", '{"a": 1, "w": "ab", "g": "\xa0"}'.encode(), False),
    ],
)
def test_an_odd_line_is_a_row_and_one_without_a_label_is_left_out(tmp_path, ending, line, labelled):
    path = write(tmp_path / f"odd.{ending}", line)
    batches = stream(path, **settings_for(path))
    rows = np.concatenate([batch.rows for batch in batches])
    assert rows.tolist() == [i for i in range(1, len(ROWS) + 2) if labelled or i != AT + 1]


@pytest.mark.parametrize("line", ["", "{"])
def test_of_a_name_twice_in_a_line_the_first_counts_whatever_other_lines_hold(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(f'{{"a":1,"a":500,"g":1}}\n{{"a":2,"g":2}}\n{line}\n')
    batches = stream(tmp_path / "a.jsonl", label="g", features="a", on_bad_row="skip")
    assert np.concatenate([batch.X for batch in batches]).tolist() == [[1], [2]]


@pytest.mark.parametrize("line", [b'1,"ab,2', b'"1,ab,2'])
@pytest.mark.parametrize("wide", [0, 450_000])
def test_an_open_quote_does_not_swallow_the_rows_behind_it(tmp_path, line, wide):
    path = write(tmp_path / "a.csv", line, wide=wide)
    for policy in ("raise", "skip"):
        with pytest.raises(ValueError, match=r"a\.csv.*quote is not closed.*ab,2"):
            list(stream(path, on_bad_row=policy, **settings_for(path)))


@pytest.mark.slow
def test_a_deeply_nested_value_does_not_hang(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"a":1,"w":"ab","g":1,"z":' + NESTED + b"}")
    code = "import sys; from ordspan import stream; "
    code += "print(sum(map(len, stream(sys.argv[1], label='g', on_bad_row='skip'))))"
    command = [sys.executable, "-c", code, str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert int(answer.stdout) in (len(ROWS), len(ROWS) + 1)


@pytest.mark.parametrize(
    ("ending", "line", "is_feature"),
    [
        ("csv", b"1,ab,2,3", True),
        ("csv", b"1,ab,huge", False),
        ("jsonl", b'{"a":"x","w":"ab","g":1}', True),
        ("txt", b"1 qid:1 1:z", True),
    ],
)
def test_every_command_names_a_bad_line_or_leaves_it_out(tmp_path, ending, line, is_feature):
    bad, clean = write(tmp_path / f"bad.{ending}", line), write(tmp_path / f"clean.{ending}")
    label, place = [] if ending == "txt" else ["--label", "g"], f"{bad}, row {AT + 1}: "
    model, out = tmp_path / "model", tmp_path / "o.csv"
    said("train", clean, *label, "--model", model)
    for words in (
        ["train", bad, *label, "--grades", "1..4", "--model", tmp_path / "other"],
        ["train", bad, *label, "--grades", "1..4", "--model", tmp_path / "two", "--passes", 2],
        ["evaluate", bad, "--model", model],
    ):
        assert place in said(*words, code=1)
        answer = summary(*words, "--on-bad-row", "skip")
        assert (answer.get("read", answer["rows"]), answer["skipped"]) == (len(ROWS), 1)
    if is_feature:
        words = ["--model", model, "--on-bad-row", "raise", "--out", out]
        assert place in said("predict", bad, *words, code=1)
    answer = summary("predict", bad, "--model", model, "--out", out)
    assert (answer["rows"], answer["empty"]) == (len(ROWS) + 1, int(is_feature))


@pytest.mark.parametrize("cell", ["\xa0", "  ", "\u2003", "NaN", "NA", "n/a", "?"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_blank_cell_is_a_missing_number(tmp_path, ending, cell):
    row = json.dumps({"a": cell, "w": "ab", "g": 1}) if ending == "jsonl" else f"{cell},ab,1"
    path = write(tmp_path / f"a.{ending}", row.encode())
    batches = stream(path, label="g")
    X = np.vstack([batch.X for batch in batches])
    assert batches.feature_names[:2] == ["a", "a is missing"]
    assert np.flatnonzero(X[:, 1]).tolist() == [AT]
    with pytest.raises(ValueError, match=rf"{path.name}, row {AT + 1}: column 'a' is empty"):
        list(stream(path, label="g", missing="error"))


def test_words_among_the_numbers_of_a_parquet_column_are_bad(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": ["1.5", "x", "", "2.5"], "g": [1, 2, 1, 2]}), path)
    with pytest.raises(ValueError, match=r"row 2: column 'a' holds 'x', not a number"):
        list(stream(path, label="g"))
    batches = stream(path, label="g", on_bad_row="skip")
    assert np.vstack([batch.X for batch in batches]).tolist() == [[1.5, 0], [2, 1], [2.5, 0]]
    assert batches.skipped == 1
    parquet.write_table(pa.table({"a": [1.5, 2.0, None], "g": [1, 2, 1]}), path)
    with pytest.raises(ValueError, match=r"a\.parquet, row 3: column 'a' is empty or NaN"):
        list(stream(path, label="g", missing="error"))
