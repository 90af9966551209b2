"""Options that several commands share, and how their words are read."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli.printing import say

if TYPE_CHECKING:
    from ordspan.files.opening import FileOptions


STDIN = "-"
FEW = 0.01
"""Where a larger share of the rows was skipped, that is told."""


def one_of(*words: str, help: str) -> Any:
    """An option that takes one of some words; another one is wrong usage."""

    def check(given: str | None) -> str | None:
        if given is not None and given not in words:
            raise typer.BadParameter(f"{given!r} is not one of {', '.join(words)}")
        return given

    return typer.Option(help=help, callback=check, autocompletion=lambda: list(words))


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, JSON lines, Parquet, Arrow, Excel or svmlight/LETOR files, the texts also .gz "
        "or .zst; a folder of them, or a pattern in quotes; or one pipe, - for standard input "
        "(CSV or JSON lines).",
    ),
]
Label = Annotated[
    str | None,
    typer.Option(help="Column of grades, or of ranges such as 3-5, >=3, at least 3, [3,5]."),
]
Lower = Annotated[
    str | None,
    typer.Option(
        help="Column of the lowest possible grade; an empty cell is open, and without --upper "
        "all are open above."
    ),
]
Upper = Annotated[
    str | None,
    typer.Option(
        help="Column of the highest possible grade; an empty cell is open, and without --lower "
        "all are open below."
    ),
]
Format = Annotated[
    str | None,
    one_of(
        "csv",
        "jsonl",
        "parquet",
        "arrow",
        "xlsx",
        "svmlight",
        help="csv, jsonl, parquet, arrow, xlsx or svmlight; left out, the name's ending decides.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="What separates the fields of a CSV file; left out, a look at it decides."),
]
Decimal = Annotated[
    str | None,
    one_of(".", ",", help="Decimal sign, . or , in texts; left out, a look at the file decides."),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Of texts, such as utf-8 or cp1252; left out, a look at the file decides."),
]
AllowSkipped = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="With --on-bad-row skip: the share of bad rows that may be left out."
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Where svmlight indices begin; left out, at 0 if 0 occurs.",
        show_default=False,
    ),
]
OnBadRow = Annotated[
    str,
    one_of(
        "raise", "skip", help="raise: end with a message; skip: leave bad rows out, count them."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one machine-readable object.")]


@contextmanager
def opened_pipe(files: list[str]) -> Iterator[list[str]]:
    """The files; a pipe with a name, such as /dev/fd/63, is the standard input meanwhile."""
    pipes = [name for name in files if name != STDIN and is_pipe(name)]
    if not pipes:
        yield files
        return
    if len(files) > 1:
        raise ValueError(f"{pipes[0]} is a pipe, which cannot be mixed with files; give it alone")
    before = sys.stdin
    try:
        with open(pipes[0]) as sys.stdin:
            yield [STDIN]
    finally:
        sys.stdin = before


def is_pipe(name: str) -> bool:
    """Whether a path leads to a pipe or a device, whose bytes come once and in their order."""
    return not Path(name).is_file() and not Path(name).is_dir() and Path(name).exists()


def split_names(given: Sequence[str] | None) -> list[str]:
    """Names of a comma separated list, or of several; quotes protect a comma.

    >>> split_names(["a, b", '"x,y"'])
    ['a', 'b', 'x,y']
    """
    rows = csv.reader(given or [], skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def file_options(
    format: str | None,
    delimiter: str | None,
    decimal: str | None,
    encoding: str | None,
    zero_based: bool | None = None,
    n_features: int = 0,
) -> FileOptions:
    """How to open files, as told on the command line."""
    from ordspan.files.opening import FileOptions

    separator = None if delimiter is None else read_delimiter(delimiter)
    return FileOptions(format, separator, zero_based, n_features, encoding, decimal)


def read_delimiter(text: str) -> str:
    """The character that a user means; a tab has names, as it is hard to type.

    >>> read_delimiter("tab"), read_delimiter(";")
    ('\\t', ';')
    """
    return "\t" if text in ("\\t", "tab") else text


def read_interval(text: str) -> tuple[int, float]:
    """Rows, or seconds, between two checkpoints.

    >>> read_interval("5000"), read_interval("90s"), read_interval("5m")
    ((5000, 0.0), (0, 90.0), (0, 300.0))
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h)?\s*", text)
    if not match or (match[2] is None and "." in match[1]) or float(match[1]) == 0:
        raise ValueError(
            f"{text!r} is neither rows, such as 100000, nor a time, such as 30s, 5m or 1h"
        )
    if match[2] is None:
        return int(match[1]), 0.0
    return 0, float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def checked_interval(given: str) -> str:
    """The words of an interval; others are wrong usage."""
    try:
        read_interval(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return given


def draw(bar: Any, task: Any, told: str, share: float | None) -> None:
    """How far a walk over files has come; without an end where its size is not known."""
    bar.update(task, description=told, completed=share or 0, total=share and 1)


def print_notes(notes: Sequence[str], *, err: bool = False) -> None:
    """What a user may not expect, a line each."""
    for note in notes:
        say(f"Note: {note}.", err=err)


def print_skipped(summary: dict[str, Any]) -> None:
    """How many bad rows were left out, the share where it is more than a few, and some of them."""
    skipped = summary["skipped"]
    if not skipped:
        return
    read = skipped + summary.get("read", summary["rows"])
    share = skipped / read
    if share > FEW:
        told = f"{skipped:,} of {read:,} rows ({share:.1%}) were bad and were skipped"
    else:
        told = f"{skipped:,} bad row{' was' if skipped == 1 else 's were'} skipped"
    say(f"{told}, such as:", color=typer.colors.YELLOW if share > FEW else None)
    for example in summary["skipped_examples"]:
        say(f"  {example}")


def print_json(summary: dict[str, Any]) -> None:
    """One object on one line of standard output."""
    import json

    say(json.dumps(summary))
