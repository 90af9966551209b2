"""Printing for all commands; control characters are escaped."""

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import typer

from ordspan.wording import as_text

PIPED_WIDTH = 160
"""Line width if standard output is not a terminal."""


def say(line: str = "", *, err: bool = False, color: str | None = None) -> None:
    """Print a line with control characters escaped; one that fails on standard error is lost."""
    text = typer.style(as_text(line), fg=color) if color else as_text(line)
    if err:
        with suppress(OSError):  # a failure of standard error cannot be reported anywhere
            typer.echo(text, err=True)
    else:
        write(f"{text}\n")


def write(text: str) -> None:
    """Write to standard output, which an error names."""
    try:
        typer.echo(text, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"standard output: {error.strerror}; free some space, or write elsewhere"
        raise OSError(message) from None


def in_terminal(text: str) -> str:
    """Text as it is shown, so that the widths of columns are right."""
    encoding = sys.stdout.encoding or "utf-8"
    return as_text(text).encode(encoding, "backslashreplace").decode(encoding)


def print_table(
    title: str, heads: Iterable[str], rows: Iterable[Iterable[str]], *left: str
) -> None:
    """Print a table; columns are numbers, to the right, except those named ``left``."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=in_terminal(title) or None, title_justify="left", box=box.SIMPLE_HEAD)
    for head in heads:
        justify: Any = "left" if head in left else "right"
        table.add_column(in_terminal(head), justify=justify, overflow="fold")
    table.show_header = any(column.header for column in table.columns)
    for row in rows:
        table.add_row(*map(in_terminal, row))
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    with console.capture() as printed:
        console.print(table)
    write(printed.get())


def print_notes(notes: Sequence[str], *, err: bool = False) -> None:
    """Print what a user may not expect, one note per line."""
    for note in notes:
        say(f"Note: {note}.", err=err)


def print_skipped(summary: dict[str, Any]) -> None:
    """Print how many bad rows were skipped, with examples."""
    if skipped := summary["skipped"]:
        read = skipped + summary.get("read", summary["rows"])
        share = f"{skipped:,} of {read:,} ({skipped / read:.1%})"
        say(f"Bad rows skipped: {share}, such as:", color=typer.colors.YELLOW)
        for example in summary["skipped_examples"]:
            say(f"  {example}")


def tell(summary: dict[str, Any], as_json: bool, *lines: str) -> None:
    """Print a summary, for programs as JSON, for people in words."""
    for line in [json.dumps(summary)] if as_json else lines:
        say(line)
