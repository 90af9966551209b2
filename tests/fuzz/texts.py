"""Damaged CSV, JSON lines and svmlight: an error that names the file, or the rows as they stand."""

import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from files_to_train import make_rows

from ordspan.commands.predict import PredictJob, predict
from ordspan.commands.train import TrainJob, train
from ordspan.data import stream

ENDINGS = ("csv", "jsonl", "txt")
NAMES = ("x0", "x1", "x2", "grade")
HOSTILE = tuple(
    text.encode("utf-8", "surrogateescape")
    for text in (
        *("NaN", "inf", "1e999", "-", "+", ".", "1e", "0x1", "1_0", "9" * 400, "1e-400", "٣"),
        *(",", ",,", ";", "\t", " ", "\n", "\r", "\r\n", "\x00", '"', '""', "'", "\\", "#", ":"),
        *("{", "}", "[", "]", "[" * 200, "null", "true", '{"x0":', "\\ud800", "\ufeff", "\u2028"),
        *("1:", ":1", "0:1", "-1:1", "3:1 2:1", "qid:", "qid:1", "qid:99999999999999999999"),
        *("1-3", ">=2", "[1,2]", "at least 2", "5-1", "\udcff", "\udcc3", "\xa0", "\u200b", "\x1b"),
    )
)
PLAIN = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")


def attack(rng, folder: Path) -> None:
    """One damaged file: stream it, and now and then train from it and predict it."""
    ending = str(rng.choice(ENDINGS))
    path = folder / f"rows.{ending}"
    content = damaged(rng, whole(ending))
    path.write_bytes(content)
    label = {} if ending == "txt" else {"label": "grade"}
    policy = str(rng.choice(["raise", "skip"]))
    rows = refused_or(lambda: rows_of(path, policy, label), path)
    if rows is not None:
        check_rows(rows, content, ending, all_of_them=policy == "skip")
    if rng.random() < 0.15:
        job = TrainJob([str(path)], on_bad_row="skip", allow_skipped=1.0, **label)
        refused_or(lambda: train(job, folder / "m", overwrite=True), path)
        model = trained(ending, folder)
        refused_or(lambda: predict(PredictJob([str(path)], model), folder / "out.csv"), path)


def refused_or(use, path):
    """What a use returns, or None where it refuses the file by its name."""
    try:
        return use()
    except ValueError as error:
        if path.name not in str(error):
            raise AssertionError("an error without a place") from error
        return None


def rows_of(path, policy, label):
    """Values and grade of every row that is read, by its line."""
    options = {"n_features": 3, "zero_based": False} if path.suffix == ".txt" else {}
    if path.suffix == ".csv":
        options = {"delimiter": ","}
    batches = stream(
        *(path,),
        classes=[1, 2, 3, 4],
        **label,
        **options,
        features=None if path.suffix == ".txt" else NAMES[:3],
        on_bad_row=policy,
        standardise=False,
        missing="error",
        decimal=None if path.suffix == ".txt" else ".",
        encoding=None if path.suffix == ".txt" else "utf-8",
    )
    found = {}
    for batch in batches:
        X = batch.X.toarray() if path.suffix == ".txt" else batch.X
        assert np.isfinite(X).all()
        for line, x, lower, upper in zip(batch.lines, X, batch.lower, batch.upper, strict=True):
            assert 1 <= lower <= upper <= 4
            found[int(line)] = (*x.tolist(), lower, upper)
    return found


def check_rows(rows, content, ending, all_of_them) -> None:
    """Lines that are easy to read must have been read, and as they stand."""
    if set(content) & set(b'\r"\x00\x0b\x0c') and ending != "jsonl":
        return  # lines may be joined or parted
    for number, line in enumerate(content.split(b"\n"), start=1):
        expected = slow_reading(line, ending)
        if expected is None or (ending == "csv" and number == 1):
            continue
        assert number in rows or not all_of_them, f"line {number} is lost: {line!r}"
        assert rows.get(number, expected) == expected, f"line {number}: {rows[number]} of {line!r}"


def slow_reading(line, ending):
    """Values and grade of a line that nobody could read in another way; else None."""
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        text = line.decode("ascii")
        if ending == "csv":
            values = text.split(",")
        elif ending == "jsonl":
            pairs = json.loads(text, object_pairs_hook=list, parse_float=str, parse_int=str)
            values = [value for name, value in pairs]
            if [name for name, _ in pairs] != [*NAMES]:
                return None
        else:
            grade, *features = text.split(" ")
            pairs = [feature.split(":") for feature in features]
            if [index for index, _ in pairs] != ["1", "2", "3"]:
                return None
            values = [*(value for _, value in pairs), grade]
        if len(values) == 4 and all(map(PLAIN.fullmatch, values)) and values[3] in "1234":
            return (*map(float, values[:3]), int(values[3]), int(values[3]))
    return None


def damaged(rng, content: bytes) -> bytes:
    """A text with one to four places changed."""
    text = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        place, size = int(rng.integers(len(text) + 1)), int(rng.integers(1, 30))
        what = rng.integers(6)
        if what == 0:
            text[place : place + size] = b""
        elif what == 1:
            text[place:place] = text[place : place + size]
        elif what == 2:
            text[place : place + 1] = bytes([rng.integers(256)])
        elif what == 3 and rng.random() < 0.2:
            del text[place:]
        else:
            text[place:place] = HOSTILE[rng.integers(len(HOSTILE))]
    return bytes(text)


@cache
def whole(ending: str) -> bytes:
    """A file without a fault."""
    X, grades = make_rows(30)
    rows = [(*x, int(grade)) for x, grade in zip(X.tolist(), grades, strict=True)]
    if ending == "csv":
        lines = [",".join(NAMES), *(",".join(map(str, row)) for row in rows)]
    elif ending == "jsonl":
        lines = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows]
    else:
        lines = [f"{y} 1:{a} 2:{b} 3:{c}" for a, b, c, y in rows]
    return "".join(f"{line}\n" for line in lines).encode()


@cache
def trained(ending: str, folder: Path) -> str:
    """A model of the file without a fault."""
    path = folder / f"whole.{ending}"
    path.write_bytes(whole(ending))
    label = {} if ending == "txt" else {"label": "grade"}
    train(TrainJob([str(path)], **label), folder / f"model-{ending}")
    return str(folder / f"model-{ending}")
