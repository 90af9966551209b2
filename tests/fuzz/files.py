"""Damaged files of every format: an error that names the file, or the rows as they stand."""

import re
from functools import cache
from pathlib import Path

import numpy as np
from files_to_train import FORMATS, make_rows, write_rows

from ordspan import stream
from tables import ask

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
NUMBER = rb"-?[0-9]{1,9}(?:\.[0-9]{1,9})?"
PLAIN = re.compile(rb"(%b),(%b),(%b),([1-4])" % (NUMBER, NUMBER, NUMBER))


def attack(rng, folder: Path) -> None:
    """One damaged file: train from it, predict it, and look at its rows."""
    ending = str(rng.choice(FORMATS))
    path, model = folder / f"rows.{ending}", folder / f"whole-{ending}"
    path.write_bytes(whole(ending, folder))
    label = ["--grades", "1..4", *([] if ending == "txt" else ["--label", "grade"])]
    if not model.exists():
        refused_or_done(path, "train", path, *label, "--model", model)
    path.write_bytes(content := damaged(rng, path.read_bytes()))
    policy = ["--on-bad-row", str(rng.choice(["raise", "skip"])), "--allow-skipped", 1]
    refused_or_done(path, "train", path, *label, *policy, "--model", folder / "m", "--overwrite")
    refused_or_done(
        path, "predict", path, "--model", model, "--out", folder / "out.csv", "--overwrite"
    )
    lines_stay_lines = not set(content) & set(b'\r"\x00\x0b\x0c')
    if content.startswith(b"x0,x1,x2,grade\n") and lines_stay_lines:
        check_rows(path, content)


def refused_or_done(path, *words) -> None:
    """Run a command that ends with a model, or with an error that names the file."""
    answer = ask(*words)
    assert isinstance(answer.exception, SystemExit | None), answer.exception
    assert answer.exit_code == 0 or path.name in answer.output, answer.output


def check_rows(path, content) -> None:
    """Lines that are easy to read must have been read, and as they stand."""
    how = {"delimiter": ",", "decimal": ".", "encoding": "utf-8", "missing": "error"}
    how |= {"features": ["x0", "x1", "x2"], "classes": [1, 2, 3, 4], "on_bad_row": "skip"}
    try:
        batches = list(stream(path, label="grade", **how, standardise=False))
    except ValueError as error:
        if path.name not in str(error):
            raise AssertionError("an error without a place") from error
        return
    found = {}
    for batch in batches:
        assert np.isfinite(batch.X).all()
        found |= dict(zip(batch.rows.tolist(), zip(batch.X, batch.lower, strict=True), strict=True))
    rows = [line for line in content.split(b"\n")[1:] if line]
    for number, line in enumerate(rows, start=1):
        if plain := PLAIN.fullmatch(line):
            values, grade = found[number]
            assert [*values, grade] == [float(cell) for cell in plain.groups()], line


def damaged(rng, content: bytes) -> bytes:
    """A file with one to four places changed, often near its end, where Parquet has its footer."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        first = max(0, len(changed) - 900) if rng.random() < 0.5 else 0
        place, size = int(rng.integers(first, len(changed) + 1)), int(rng.integers(1, 30))
        what = rng.integers(6)
        if what == 0:
            changed[place : place + size] = b""
        elif what == 1:
            changed[place:place] = changed[place : place + size]
        elif what == 2:
            changed[place : place + 1] = bytes([rng.integers(256)])
        elif what == 3 and rng.random() < 0.2:
            del changed[place:]
        else:
            changed[place:place] = HOSTILE[rng.integers(len(HOSTILE))]
    return bytes(changed)


@cache
def whole(ending: str, folder: Path) -> bytes:
    """A file without a fault."""
    content = write_rows(folder, ending, *make_rows(30)).read_bytes()
    return content.replace(b'"', b"") if ending == "csv" else content
