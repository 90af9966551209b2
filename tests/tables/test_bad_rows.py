"""A bad row is named, or left out and no other row with it, by every reader and command."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from ordspan.commands.evaluate import EvaluateJob, evaluate
from ordspan.commands.predict import PredictJob, predict
from ordspan.commands.train import TrainJob, train
from ordspan.data import stream
from ordspan.tables import lines, text
from ordspan.tables.rows import RowError

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


def lines_of(ending):
    if ending == "csv":
        return [f"{r['a']},{r['w']},{r['g']}".encode() for r in ROWS]
    if ending == "jsonl":
        return [json.dumps(r, ensure_ascii=False).encode() for r in ROWS]
    return [f"{r['g']} qid:{i // 4} 1:{r['a']} 2:1".encode() for i, r in enumerate(ROWS)]


def write(path, *more):
    """The good rows, with more lines in the middle."""
    good, header = lines_of(path.suffix[1:]), [b"a,w,g"] * (path.suffix == ".csv")
    path.write_bytes(b"\n".join([*header, *good[:AT], *more, *good[AT:], b""]))
    return path


def place_in(path):
    """How a message names the line in the middle."""
    return rf"{path.stem}\{path.suffix}, line {AT + 1 + (path.suffix == '.csv')}: "


def settings_for(path):
    return {"n_features": 3} if path.suffix == ".txt" else {"label": "g"}


def check_stream(path, message):
    wanted = settings_for(path) | {"classes": [1, 2, 3, 4]}
    with pytest.raises(RowError, match=message):
        list(stream(path, **wanted))
    batches = stream(path, on_bad_row="skip", **wanted)
    assert (sum(map(len, batches)), batches.skipped) == (len(ROWS), 1)


BAD = [
    ("csv", b"x,ab,2", "column 'a' holds 'x', not a number; correct it, or train with text="),
    ("csv", b"-inf,ab,2", "column 'a' holds -inf"),
    ("csv", b"1e99,ab,2", "column 'a' holds 1e\\+99"),
    ("csv", LONG + b",ab,1", "column 'a' holds inf, which is too large"),
    ("csv", b"1%.5,ab,1", "column 'a' holds '1%.5', not a number"),
    ("csv", b"1_000,ab,2", "column 'a' holds '1_000', not a number"),
    ("csv", "\u0663,ab,2".encode(), "column 'a' holds '\u0663', not a number"),
    ("csv", b"1\r,ab,2", "cannot be split into fields"),
    ("csv", b"1,ab", "2 fields, but the header has 3"),
    ("csv", b"1,ab,2,3", "4 fields, but the header has 3"),
    ("csv", b"1,\xff,2", "byte 3 is not UTF-8"),
    ("csv", b"1,a\0b,1", "byte 4 is a null byte"),
    ("csv", b'1,"ab,2', "a quote is not closed; close it"),
    ("csv", b'1,5" disk,2', "a quote inside an unquoted cell"),
    ("csv", b'1,""a"",2', "a quote inside an unquoted cell"),
    ("csv", b"1,ab,7", "grade '7' is not among"),
    ("csv", b"1,ab,", "the label is empty"),
    ("csv", b"1,ab,4-2", "lower end of '4-2' is above"),
    ("csv", "1,ab,\ufeff2".encode(), "grade"),
    ("jsonl", b'{"a": "x", "w": "ab", "g": 1}', "column 'a' holds 'x', not a number"),
    ("jsonl", b'{"a": 1}', "the label is empty"),
    ("jsonl", b'{"a": 1, "g": 1', "not JSON"),
    ("jsonl", b"[1, 2]", "is not an object"),
    ("jsonl", b'{"a":' + DEEP + b',"w":"ab","g":1}', "nested more than 64 deep"),
    ("jsonl", b'{"a":1,"w":"ab","g":1,"z":' + NESTED + b"}", "nested more than 64 deep"),
    ("jsonl", b'{"a":' + LONG + b',"w":"ab","g":1}', r"holds '9+'\.\.\. \(5,000 characters\)"),
    ("jsonl", b'{"a":1,"w":"\\ud800","g":1}', "half of a surrogate pair"),
    ("jsonl", b'{"a":1,"\\udc00w":"ab","g":1}', "half of a surrogate pair"),
    ("jsonl", b'{"a":1,"w":"\xed\xa0\x80","g":1}', "byte 13 is not UTF-8"),
    ("jsonl", b'{"a":1,"w":"a\0b","g":1}', "not JSON"),
    ("txt", b"x 1:1", "the grade 'x' is not a number"),
    ("txt", b"1 1:z", "'1:z' is not of the form index:value"),
    ("txt", b"1 2:1 1:1", "index 1 in '1:1' does not increase"),
    ("txt", b"1 0:1", "index 0 in '0:1' does not increase; give zero_based=True"),
    ("txt", b"1 qid:1 1:nan", "'feature 1' is empty or NaN"),
    ("txt", b"9 qid:1 1:1", "grade '9' is not among"),
    ("txt", b"1 9:1", "index 9, but there are 3 features"),
    ("txt", b"1 1:1", "no qid after the grade"),
    ("txt", b"1 qid:a 1:1", "'qid:a' is not of the form index:value"),
    ("txt", b"1 qid:1.5 1:1", "'qid:1.5' is not of the form"),
    ("txt", b"1 qid:99999999999999999999 1:1", "'qid:9+' is not of the form"),
    ("txt", b"1 qid:3 qid:4 1:2", "'qid:4' is not of the form"),
    ("txt", b"1qid:3 1:2", "the grade '1qid:3' is not a number"),
    ("txt", b"1 qid:1 1:1e00005:7", "is not of the form"),
    ("txt", b"1 qid:1 9999999999:1", "is larger than 2147483646"),
    ("txt", b"1 qid:1 " + LONG + b":1", r"'9+'\.\.\. \(5,002 characters\) is not of the form"),
    ("txt", b"1 qid:1 1:" + LONG, "holds inf, which is too large"),
    ("txt", b"1 qid:1 1:1\0", "is not of the form"),
]
for odd in ("9" * 5000, "9" * 310, ">" + "9" * 310, "1-" + LONG.decode(), "[" * 3000, "\xa0"):
    BAD += [
        ("csv", f"1,ab,{odd}".encode(), "column 'g' holds .{1,400}$"),
        ("jsonl", json.dumps(ROWS[0] | {"g": odd}).encode(), "column 'g' holds .{1,400}$"),
    ]


@pytest.mark.parametrize(("ending", "line", "message"), BAD, ids=lambda value: repr(value)[:30])
def test_a_bad_line_is_named_or_left_out(tmp_path, monkeypatch, ending, line, message):
    monkeypatch.setattr(text, "BLOCK_BYTES", 100)
    monkeypatch.setattr(lines, "MAX_LINES", 10)
    path = write(tmp_path / f"bad.{ending}", line)
    check_stream(path, place_in(path) + f".*{message}")


@pytest.mark.parametrize(
    ("ending", "line", "is_feature"),
    [
        ("csv", b"1,a\0b,1", True),
        ("csv", b"1,ab,huge", False),
        ("jsonl", b'{"a":1,"w":"\\ud800","g":1}', True),
        ("txt", b"1 qid:1 1:1\0", True),
    ],
)
def test_every_command_names_a_bad_line_or_leaves_it_out(tmp_path, ending, line, is_feature):
    bad, clean = write(tmp_path / f"bad.{ending}", line), write(tmp_path / f"clean.{ending}")
    label, model = None if ending == "txt" else "g", tmp_path / "model"
    train(TrainJob([str(clean)], label=label), model)

    def trained(policy):
        job = TrainJob([str(bad)], label=label, on_bad_row=policy)
        return train(job, tmp_path / "other", overwrite=True)

    def evaluated(policy):
        return evaluate(EvaluateJob([str(bad)], model, label=label, on_bad_row=policy))

    for command in (trained, evaluated):
        with pytest.raises(RowError, match=place_in(bad)):
            command("raise")
        answer = command("skip")
        assert (answer["rows"], answer["skipped"]) == (len(ROWS), 1)
    job = PredictJob([str(bad)], str(model), on_bad_row="raise")
    if is_feature:
        with pytest.raises(RowError, match=place_in(bad)):
            predict(job, tmp_path / "o.csv")
    answer = predict(PredictJob([str(bad)], str(model)), tmp_path / "o.csv")
    assert (answer["rows"], answer["empty"]) == (len(ROWS) + 1, int(is_feature))


@pytest.mark.parametrize("cell", ["\xa0", "  ", "\u2003"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_blank_cell_is_a_missing_number(tmp_path, ending, cell):
    row = json.dumps({"a": cell, "w": "ab", "g": 1}) if ending == "jsonl" else f"{cell},ab,1"
    path = write(tmp_path / f"a.{ending}", row.encode())
    batches = stream(path, label="g")
    X = np.vstack([batch.X for batch in batches])
    assert batches.feature_names[:2] == ["a", "a is missing"]
    assert np.flatnonzero(X[:, 1]).tolist() == [AT]
    with pytest.raises(RowError, match=place_in(path) + "column 'a' is empty"):
        list(stream(path, label="g", missing="error"))


def odd_words(words, at):
    """A column of words, of which one is not UTF-8."""
    cells = [word.encode() for word in words]
    cells.insert(at, b"a\xff")
    column = pa.array(cells, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(cells), column.buffers())


@pytest.mark.parametrize("name", ["w", "g"])
@pytest.mark.parametrize("form", ["parquet", "arrow", "category"])
def test_words_of_parquet_that_are_not_utf8_are_bad(tmp_path, name, form):
    columns = {key: [row[key] for row in ROWS] for key in "aw"}
    columns["g"] = [str(row["g"]) for row in ROWS]
    words, bad = columns[name], {k: [*c[:AT], c[0], *c[AT:]] for k, c in columns.items()}
    bad[name] = odd_words(words, AT)
    if form == "category":
        known = [*dict.fromkeys(words)]
        codes = [known.index(word) for word in words]
        codes.insert(AT, len(known))
        bad[name] = pa.DictionaryArray.from_arrays(codes, odd_words(known, len(known)))
    path = tmp_path / ("bad.parquet" if form == "parquet" else "bad.arrow")
    if form == "parquet":
        parquet.write_table(pa.table(bad), path, row_group_size=15)
    else:
        with ipc.new_file(str(path), pa.table(bad).schema) as writer:
            writer.write_table(pa.table(bad), max_chunksize=15)
    message = rf"bad\.\w+, row {AT + 1}: column '{name}' holds b'a\\xff', which is not UTF-8"
    check_stream(path, message)


def test_words_among_the_numbers_of_a_parquet_column_are_bad(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": ["1,5", "x", "", "2,5"], "g": [1, 2, 1, 2]}), path)
    with pytest.raises(RowError, match=r"row 2: column 'a' holds 'x', not a number"):
        list(stream(path, label="g"))
    batches = stream(path, label="g", on_bad_row="skip")
    assert np.vstack([batch.X for batch in batches]).tolist() == [[1.5, 0], [2, 1], [2.5, 0]]
    assert batches.skipped == 1
    assert any("'1,5' is 1.5" in note for note in batches.notes)
    parquet.write_table(pa.table({"a": [1.5, 2.0, None], "g": [1, 2, 1]}), path)
    with pytest.raises(RowError, match=r"a\.parquet, row 3: column 'a' is empty or NaN"):
        list(stream(path, label="g", missing="error"))
