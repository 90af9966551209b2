"""A bad row is named by every command, or left out by each, and no other row with it."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from ordspan.commands.evaluate import EvaluateJob, evaluate
from ordspan.commands.predict import PredictJob, predict
from ordspan.commands.train import TrainJob, train
from ordspan.data import stream
from ordspan.files.batch import RowError

rng = np.random.default_rng(5)
ROWS = [
    {"a": round(float(a), 3), "w": str(w), "g": int(g)}
    for a, w, g in zip(
        rng.normal(size=40), rng.choice(["ab", "cé"], 40), rng.integers(1, 4, 40), strict=True
    )
]
AT = 20
LONG = b"9" * 5000
DEEP = b"[" * 100_000
NESTED = b'{"k":' * 400 + b"1" + b"}" * 400


def lines_of(ending):
    if ending == "csv":
        return [f"{r['a']},{r['w']},{r['g']}".encode() for r in ROWS]
    if ending == "jsonl":
        return [json.dumps(r, ensure_ascii=False).encode() for r in ROWS]
    return [f"{r['g']} qid:{i // 4} 1:{r['a']} 2:1".encode() for i, r in enumerate(ROWS)]


def write(path, lines):
    header = [b"a,w,g"] * (path.suffix == ".csv")
    path.write_bytes(b"\n".join([*header, *lines, b""]))
    return str(path)


def check(clean, bad, message, *, feature=True):
    """Every command names the row, or leaves it out; predictions need a feature to be bad."""
    folder, label = clean.parent, "g" if clean.suffix != ".txt" else None
    train(TrainJob([str(clean)], label=label), folder / "model")

    def streamed(policy):
        batches = stream(bad, label=label, on_bad_row=policy)
        return {"rows": sum(map(len, batches)), "skipped": batches.skipped}

    def trained(policy):
        job = TrainJob([str(bad)], label=label, on_bad_row=policy)
        return train(job, folder / "other", overwrite=True)

    def evaluated(policy):
        return evaluate(EvaluateJob([str(bad)], folder / "model", label=label, on_bad_row=policy))

    for command in (streamed, trained, evaluated):
        with pytest.raises(RowError, match=message):
            command("raise")
        answer = command("skip")
        assert (answer["rows"], answer["skipped"]) == (len(ROWS), 1)
    if feature:
        with pytest.raises(RowError, match=message):
            predict(
                PredictJob([str(bad)], str(folder / "model"), on_bad_row="raise"), folder / "o.csv"
            )
        answer = predict(PredictJob([str(bad)], str(folder / "model")), folder / "o.csv")
        assert (answer["rows"], answer["empty"]) == (len(ROWS) + 1, 1)


@pytest.mark.parametrize(
    ("ending", "line", "message"),
    [
        ("csv", b"1,a\0b,1", "byte 4 is a null byte"),
        ("csv", LONG + b",ab,1", "column 'a' holds inf, which is too large"),
        (
            "jsonl",
            b'{"a":' + DEEP + b"]" * 100_000 + b',"w":"ab","g":1}',
            "nested more than 64 deep",
        ),
        ("jsonl", b'{"a":1,"w":"ab","g":1,"z":' + NESTED + b"}", "nested more than 64 deep"),
        ("jsonl", b'{"a":' + LONG + b',"w":"ab","g":1}', r"holds '9+'\.\.\. \(5,000 characters\)"),
        ("jsonl", b'{"a":1,"w":"\\ud800","g":1}', "half of a surrogate pair"),
        ("jsonl", b'{"a":1,"w":"\xed\xa0\x80","g":1}', "byte 13 is not UTF-8"),
        ("jsonl", b'{"a":1,"\\udc00w":"ab","g":1}', "half of a surrogate pair"),
        ("jsonl", b'{"a":1,"w":"a\0b","g":1}', "not JSON"),
        ("csv", b"1%.5,ab,1", "column 'a' holds '1%.5', not a number"),
        ("txt", b"1 qid:99999999999999999999 1:1", "'qid:9+' is not of the form"),
        ("txt", b"1 qid:1.5 1:1", "'qid:1.5' is not of the form"),
        ("txt", b"1 qid:1 " + LONG + b":1", r"'9+'\.\.\. \(5,002 characters\) is not of the form"),
        ("txt", b"1 qid:1 1:" + LONG, "holds inf, which is too large"),
        ("txt", b"1 qid:1 1:1\0", "is not of the form"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_bad_line_is_named_or_left_out_by_every_command(tmp_path, ending, line, message):
    lines = lines_of(ending)
    write(tmp_path / f"clean.{ending}", lines)
    write(tmp_path / f"bad.{ending}", [*lines[:AT], line, *lines[AT:]])
    number = AT + 1 + (ending == "csv")
    message = rf"bad\.{ending}, line {number}: .*{message}"
    check(tmp_path / f"clean.{ending}", tmp_path / f"bad.{ending}", message)


@pytest.mark.parametrize(
    "label",
    ["9" * 5000, "9" * 310, ">" + "9" * 310, "1-" + "9" * 5000, "[" * 3000, "\xa0", "1e400"],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_an_odd_label_is_a_fault_of_its_row(tmp_path, ending, label):
    lines = lines_of(ending)
    row = json.dumps({"a": 1, "w": "ab", "g": label}) if ending == "jsonl" else f"1,ab,{label}"
    write(tmp_path / f"clean.{ending}", lines)
    write(tmp_path / f"bad.{ending}", [*lines[:AT], row.encode(), *lines[AT:]])
    message = rf"bad\.{ending}, line {AT + 1 + (ending == 'csv')}: column 'g' holds .{{1,400}}$"
    check(tmp_path / f"clean.{ending}", tmp_path / f"bad.{ending}", message, feature=False)


@pytest.mark.parametrize("cell", ["\xa0", "  ", "\u2003"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_blank_cell_is_a_missing_number(tmp_path, ending, cell):
    lines = lines_of(ending)
    row = json.dumps({"a": cell, "w": "ab", "g": 1}) if ending == "jsonl" else f"{cell},ab,1"
    path = write(tmp_path / f"a.{ending}", [*lines[:AT], row.encode(), *lines[AT:]])
    batches = stream(path, label="g")
    X = np.vstack([batch.X for batch in batches])
    assert batches.feature_names[:2] == ["a", "a is missing"]
    assert np.flatnonzero(X[:, 1]).tolist() == [AT]
    message = rf"a\.{ending}, line {AT + 1 + (ending == 'csv')}: column 'a' is empty"
    with pytest.raises(RowError, match=message):
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
    clean = pa.table(
        {key: [row[key] for row in ROWS] for key in "aw"} | {"g": [str(row["g"]) for row in ROWS]}
    )
    bad = {
        key: [*column[:AT], column[0], *column[AT:]] for key, column in clean.to_pydict().items()
    }
    bad[name] = odd_words(clean[name].to_pylist(), AT)
    if form == "category":
        words = [*dict.fromkeys(clean[name].to_pylist())]
        codes = [words.index(word) for word in clean[name].to_pylist()]
        codes.insert(AT, len(words))
        bad[name] = pa.DictionaryArray.from_arrays(codes, odd_words(words, len(words)))
    parquet.write_table(clean, tmp_path / "clean.parquet")
    path = tmp_path / ("bad.parquet" if form == "parquet" else "bad.arrow")
    if form == "parquet":
        parquet.write_table(pa.table(bad), path, row_group_size=15)
    else:
        with ipc.new_file(str(path), pa.table(bad).schema) as writer:
            writer.write_table(pa.table(bad), max_chunksize=15)
    message = rf"bad\.\w+, row {AT + 1}: column '{name}' holds b'a\\xff', which is not UTF-8"
    check(tmp_path / "clean.parquet", path, message, feature=name == "w")


def test_a_text_with_many_null_bytes_is_refused_as_such(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("a,g\n1,2\n".encode("utf-16-le"))
    with pytest.raises(ValueError, match=r"a\.csv: contains null bytes.*utf-16-le"):
        stream(path, label="g")
