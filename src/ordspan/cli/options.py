"""Options shared by several commands, and how their values are parsed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ordspan.cli.printing import say

if TYPE_CHECKING:
    from ordspan.tables.files import FileOptions


STDIN = "-"
COLUMNS, FILES, LEARNER, RUNNING = "Columns", "Files", "Learner", "Running"
"""Groups of options in the help."""
FEW = 0.01
"""If a larger share of the rows was skipped, the share is printed."""


def one_of(*words: str, help: str, panel: str | None = None) -> Any:
    """An option that accepts only the given words."""

    def check(given: str | None) -> str | None:
        if given is not None and given not in words:
            raise typer.BadParameter(f"{given!r} is not one of {', '.join(words)}")
        return given

    return typer.Option(
        help=help, callback=check, autocompletion=lambda: list(words), rich_help_panel=panel
    )


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, JSON lines, Parquet, Arrow, Excel or svmlight/LETOR files, text files also .gz "
        "or .zst; a folder of them; a quoted glob pattern; or - for standard input (CSV or JSON "
        "lines).",
    ),
]
TrainedModel = Annotated[Path, typer.Option(help="A model written by ordspan train.")]
Label = Annotated[
    str | None,
    typer.Option(
        help="Column of grades, or of ranges such as 3-5, >=3, at least 3, [3,5].",
        rich_help_panel=COLUMNS,
    ),
]
Lower = Annotated[
    str | None,
    typer.Option(
        help="Column with the lowest possible grade. An empty cell means no lower bound; without "
        "--upper, no row has an upper bound.",
        rich_help_panel=COLUMNS,
    ),
]
Upper = Annotated[
    str | None,
    typer.Option(
        help="Column with the highest possible grade. An empty cell means no upper bound; without "
        "--lower, no row has a lower bound.",
        rich_help_panel=COLUMNS,
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
        help="csv, jsonl, parquet, arrow, xlsx or svmlight. By default, from the file extension.",
        panel=FILES,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Field separator of CSV files; detected by default.", rich_help_panel=FILES),
]
Decimal = Annotated[
    str | None,
    one_of(".", ",", help="Decimal sign of text files, . or ,; detected by default.", panel=FILES),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of text files, such as utf-8 or cp1252; detected by default.",
        rich_help_panel=FILES,
    ),
]
AllowSkipped = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="With --on-bad-row skip: the largest share of bad rows to accept.",
        rich_help_panel=FILES,
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="First index in svmlight files. By default 0 if it occurs, otherwise 1.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
OnBadRow = Annotated[
    str,
    one_of(
        "raise",
        "skip",
        help="raise: stop at the first bad row; skip: skip bad rows and count them.",
        panel=FILES,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


@contextmanager
def opened_pipe(files: list[str]) -> Iterator[tuple[list[str], BinaryIO | None]]:
    """The files; a named pipe such as /dev/fd/63 is open and stands for standard input."""
    pipes = [name for name in files if name != STDIN and is_pipe(name)]
    if not pipes:
        yield files, None
        return
    if len(files) > 1:
        raise ValueError(f"{pipes[0]} is a pipe, which cannot be mixed with files; give it alone")
    with open(pipes[0], "rb") as pipe:
        yield [STDIN], pipe


def is_pipe(name: str) -> bool:
    """Whether a path is a pipe or a device, which can be read only once."""
    return not Path(name).is_file() and not Path(name).is_dir() and Path(name).exists()


def split_names(given: Sequence[str] | None) -> list[str]:
    """Names in one or more comma separated lists; quote a name that contains a comma.

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
    """How to open files, from the command line options."""
    from ordspan.tables.files import FileOptions

    separator = None if delimiter is None else read_delimiter(delimiter)
    return FileOptions(format, separator, zero_based, n_features, encoding, decimal)


def read_delimiter(text: str) -> str:
    """The delimiter; a tab can be written as tab or \\\\t.

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
    """Check the value of an option that takes an interval."""
    try:
        read_interval(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return given


def draw(bar: Any, task: Any, text: str, share: float | None) -> None:
    """Update a progress bar; ``share`` is None if the total size is unknown."""
    bar.update(task, description=text, completed=share or 0, total=share and 1)


def print_notes(notes: Sequence[str], *, err: bool = False) -> None:
    """Print what a user may not expect, one note per line."""
    for note in notes:
        say(f"Note: {note}.", err=err)


def print_skipped(summary: dict[str, Any]) -> None:
    """Print how many bad rows were skipped, with examples."""
    skipped = summary["skipped"]
    if not skipped:
        return
    read = skipped + summary.get("read", summary["rows"])
    share = skipped / read
    if share > FEW:
        text = f"{skipped:,} of {read:,} rows ({share:.1%}) were bad and were skipped"
    else:
        text = f"{skipped:,} bad row{' was' if skipped == 1 else 's were'} skipped"
    say(f"{text}, such as:", color=typer.colors.YELLOW if share > FEW else None)
    for example in summary["skipped_examples"]:
        say(f"  {example}")


def print_json(summary: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    import json

    say(json.dumps(summary))
