"""Files as users have them: each gives the model of its clean twin, or is refused by name."""

import csv
import gzip
import io
import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tables import ask

TOWNS = ["Köln", "Ulm", "Graz", "Bern"]
N = 240


def people(n=N, seed=0):
    """Clean rows: two numbers, one of them in the thousands, a word, and a grade made of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n) + 0.5
    income = rng.uniform(900, 9000, n).round(2)
    town = rng.integers(0, len(TOWNS), n)
    score = (age - 54) / 20 + (income - 5000) / 2500 + 0.3 * town + rng.normal(0, 0.4, n)
    return pl.DataFrame(
        {
            "age": age,
            "income": income,
            "town": [TOWNS[i] for i in town],
            "grade": np.digitize(score, [-1, 0.4, 1.6]) + 1,
        }
    )


CLEAN = people()


def written(frame, delimiter=",", end="\n", **cells):
    """A text of separated values; ``cells`` says how the numbers of a column are written."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(frame.columns)
    for row in frame.iter_rows():
        values = zip(frame.columns, row, strict=True)
        writer.writerow([cells[n](v) if n in cells else v for n, v in values])
    return text.getvalue()


def with_comma(value):
    return f"{value:.2f}".replace(".", ",")


def grouped(group, decimal):
    """Thousands set apart, and another decimal separator."""
    signs = str.maketrans({",": group, ".": decimal})
    return lambda value: f"{value:,.2f}".translate(signs)


def german(frame=CLEAN, **more):
    numbers = {"age": with_comma, "income": grouped(".", ",")}
    return written(frame, ";", "\r\n", **numbers | more)


def quoted(frame):
    """As R's write.csv does it: words in quotes, and the row's number in a column without name."""
    lines = ["," + ",".join(f'"{name}"' for name in frame.columns)]
    for number, (age, income, town, grade) in enumerate(frame.iter_rows(), start=1):
        lines.append(f'"{number}",{age},{income},"{town}",{grade}')
    return "\n".join(lines) + "\n"


TEXTS = {
    "German Excel": german().encode(),
    "German Excel with a sep= line": b"sep=;\r\n" + german().encode(),
    "Excel's Unicode text, UTF-16": written(CLEAN, "\t", "\r\n").encode("utf-16"),
    "UTF-16, the other order of bytes": b"\xfe\xff" + german().encode("utf-16-be"),
    "Windows-1252": german().encode("cp1252"),
    "a byte-order mark": b"\xef\xbb\xbf" + written(CLEAN).encode(),
    "line ends of Windows": written(CLEAN, end="\r\n").encode(),
    "line ends of an old Mac": written(CLEAN, end="\r").encode(),
    "tabs": written(CLEAN, "\t").encode(),
    "bars": written(CLEAN, "|").encode(),
    "semicolons and points": written(CLEAN, ";").encode(),
    "trailing empty columns": written(CLEAN).replace("\n", ",,\n").encode(),
    "blank lines": ("\n\n" + written(CLEAN).replace("\n", "\n\n", 40)).encode(),
    "an index of pandas": CLEAN.to_pandas().to_csv().encode(),
    "row names of R": quoted(CLEAN).encode(),
    "dollars": written(CLEAN, income=lambda v: f"${v:,.2f}").encode(),
    "euros behind": written(CLEAN, ";", income=lambda v: f"{grouped('.', ',')(v)} €").encode(),
    "per cent": written(CLEAN, age=lambda v: f"{v} %").encode(),
    "French": written(CLEAN, ";", age=with_comma, income=grouped("\u202f", ",")).encode(),
    "no-break spaces": written(CLEAN, ";", age=with_comma, income=grouped("\xa0", ",")).encode(),
    "Swiss": written(CLEAN, ";", income=grouped("’", ".")).encode(),
    "thousands with commas": written(CLEAN, income=grouped(",", ".")).encode(),
    "spaces around the cells": written(CLEAN, age=lambda v: f" {v} ").encode(),
    "an id": written(
        CLEAN.with_columns(id=pl.Series([f"u-{i * 7919}" for i in range(N)]))
    ).encode(),
    "an id of numbers": written(
        CLEAN.with_columns(id=pl.Series(range(10_000, 10_000 + N)))
    ).encode(),
    "a shuffled id": written(
        CLEAN.with_columns(customer_id=pl.Series(np.random.default_rng(1).permutation(N)))
    ).encode(),
    "an empty column": written(CLEAN.with_columns(note=pl.lit(""))).encode(),
}
"""Each of these means the clean rows."""


def model_of(folder, path, *words):
    """What train and info say of a file, without an option beyond --label."""
    model = folder / f"{path.name}.ordspan"
    answer = ask("train", path, "--label", "grade", "--model", model, *words, "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(ask("info", model, "--json").output)
    return model, json.loads(answer.output), told


@cache
def clean_twin():
    """The clean rows in a file, with a model of them beside it."""
    path = Path(tempfile.mkdtemp()) / "clean.csv"
    path.write_text(written(CLEAN))
    model_of(path.parent, path)
    return path


@cache
def clean_info():
    model = clean_twin().with_name("clean.csv.ordspan")
    return json.loads(ask("info", model, "--json").output)


def assert_same(folder, path, *words):
    """The model of a file is that of its clean twin, and grades the clean rows alike."""
    clean = clean_twin()
    model, summary, told = model_of(folder, path, *words)
    twin, expected = clean.with_name("clean.csv.ordspan"), clean_info()
    assert told["columns"]["numbers"] == expected["columns"]["numbers"]
    assert told["columns"]["words"] == expected["columns"]["words"]
    for mine, theirs in zip(told["weights"], expected["weights"], strict=True):
        assert mine["feature"] == theirs["feature"]
        numbers = [[row[k] or 0.0 for k in ("weight", "mean", "spread")] for row in (mine, theirs)]
        np.testing.assert_allclose(*numbers, rtol=1e-9, atol=1e-12)
    graded = [
        ask("predict", path, "--model", model).output,
        ask("predict", clean, "--model", twin).output,
        ask("predict", clean, "--model", model).output,  # in another dress
    ]
    ranks = [[row["rank"] for row in csv.DictReader(text.splitlines())] for text in graded]
    assert ranks[0] == ranks[1] == ranks[2]
    assert len(ranks[0]) == N
    return summary


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_gives_the_model_of_its_clean_twin(tmp_path, name):
    (tmp_path / "messy.csv").write_bytes(TEXTS[name])
    assert_same(tmp_path, tmp_path / "messy.csv")


def test_packed_texts_give_the_same_model(tmp_path):
    (tmp_path / "messy.csv.gz").write_bytes(gzip.compress(german().encode("utf-16")))
    assert_same(tmp_path, tmp_path / "messy.csv.gz")
    with pa.output_stream(tmp_path / "messy.csv.zst", compression="zstd") as file:
        file.write(german().encode("cp1252"))
    assert_same(tmp_path, tmp_path / "messy.csv.zst")


def test_other_formats_give_the_same_model(tmp_path):
    CLEAN.write_parquet(tmp_path / "a.parquet")
    CLEAN.with_columns(pl.col("town").cast(pl.Categorical())).write_ipc(tmp_path / "a.arrow")
    CLEAN.write_ndjson(tmp_path / "a.jsonl")
    dressed = CLEAN.with_columns(
        age=pl.col("age").map_elements(with_comma, pl.String()),
        income=pl.col("income").map_elements(grouped(".", ","), pl.String()),
    )
    dressed.write_parquet(tmp_path / "words.parquet")
    dressed.write_ndjson(tmp_path / "words.jsonl")
    for name in ("a.parquet", "a.arrow", "a.jsonl", "words.parquet", "words.jsonl"):
        assert_same(tmp_path, tmp_path / name)


def test_an_excel_workbook_gives_the_same_model(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    for row in ([*CLEAN.columns], *CLEAN.rows()):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert_same(tmp_path, tmp_path / "a.xlsx")


def test_what_was_done_is_said_once(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"sep=;\r\n" + german().encode("cp1252"))
    told = ask("train", tmp_path / "a.csv", "--label", "grade", "--model", tmp_path / "m").output
    assert told.count("read as Windows-1252") == 1
    assert told.count("fields are separated by ';'") == 1
    assert told.count("read as numbers: age (") == 1
    (tmp_path / "b.csv").write_bytes(TEXTS["an id"])
    told = ask("train", tmp_path / "b.csv", "--label", "grade", "--model", tmp_path / "n").output
    assert "left out 'id': every value is different" in told


def test_decimal_signs_and_separators_can_be_told(tmp_path):
    # no cell shows whether 1,234 is large or small
    rows = "".join(f"{i % 7 + 1},{100 + i};{i % 3 + 1}\n" for i in range(90))
    (tmp_path / "a.csv").write_text("x;grade\n" + rows)
    means = {}
    for sign in (None, ",", "."):
        words = [] if sign is None else ["--decimal", sign, "--delimiter", ";", "--overwrite"]
        _, _, told = model_of(tmp_path, tmp_path / "a.csv", *words)
        means[sign] = told["weights"][0]["mean"]
    values = [(i % 7 + 1) + (100 + i) / 1000 for i in range(90)]
    assert means[","] == pytest.approx(np.mean(values))
    assert means["."] == pytest.approx(1000 * np.mean(values))
    assert means[None] == means[","]  # semicolons go with decimal commas


REFUSED = {
    "UTF-32": (written(CLEAN).encode("utf-32"), "is in UTF-32"),
    "UTF-16 without a mark": (written(CLEAN).encode("utf-16-le"), "UTF-16 without a byte-order"),
    "no text": (b"%PDF-1.7" + bytes(100), "contains null bytes"),
    "a workbook named .csv": (b"PK\x03\x04" + bytes(100), "this is an Excel workbook (.xlsx)"),
    "Parquet named .csv": (b"PAR1" + bytes(100), "this is a Parquet file (.parquet)"),
    "thousands or decimals": (
        written(CLEAN, age=lambda v: f"{1000 + v:.0f}"[:1] + "." + f"{1000 + v:.0f}"[1:])
        .replace("grade\n", "grade\n7,1,Ulm,1\n" * 20, 1)
        .replace("7,1,", "700,1,")
        .encode(),
        "which may mean 1.",
    ),
    "units that differ": (
        written(CLEAN, income=lambda v: f"${v}" if v > 5000 else f"€{v}").encode(),
        "column 'income' mixes units",
    ),
    "damaged UTF-8": (
        written(CLEAN).encode().replace(b"\n", b"\xff\n", 60)[:-1],
        "is not UTF-8; save it as UTF-8",
    ),
    "dates": (
        written(
            CLEAN.with_columns(
                born=pl.date_range(pl.date(1950, 1, 1), pl.date(1950, 8, 28), eager=True)[:N]
            )
        ).encode(),
        "column 'born' holds dates; leave it out with --drop born",
    ),
    "a header only": (b"age,grade\n", "the file has a header but no rows"),
    "no header": (b"1,2\n2,3\n", "no column 'grade'; the columns are 1, 2"),
    "Low beside low": (
        written(
            CLEAN.with_columns(grade=pl.Series(["low", "high", "low", "Low"] * (N // 4)))
        ).encode(),
        "did you mean 'low'",
    ),
    "named grades": (
        written(CLEAN.with_columns(grade=pl.Series(["low", "high"] * (N // 2)))).encode(),
        "their order must be given: --grades lowest,...,highest",
    ),
    "a stray word": (
        written(CLEAN).replace("\n", "\nforty,1000,Ulm,2\n", 1).encode(),
        "line 2: column 'age' holds 'forty', not a number; correct it, or treat the column as text",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path, name):
    content, told = REFUSED[name]
    (tmp_path / "a.csv").write_bytes(content)
    answer = ask("train", tmp_path / "a.csv", "--label", "grade", "--model", tmp_path / "m")
    assert answer.exit_code == 1
    assert told in answer.output
    assert "Traceback" not in answer.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]


def test_an_unknown_ending_says_what_can_be_read(tmp_path):
    (tmp_path / "a.sav").write_bytes(b"$FL2")
    answer = ask("train", tmp_path / "a.sav", "--label", "grade", "--model", tmp_path / "m")
    assert answer.exit_code == 1
    assert ".csv" in answer.output
    assert ".parquet" in answer.output
    assert "--format csv|jsonl|parquet" in answer.output
