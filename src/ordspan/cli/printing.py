"""Printing for all commands; control characters are escaped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import typer

from ordspan.wording import as_text

PIPED_WIDTH = 160
"""Line width if standard output is not a terminal."""


class PrintError(OSError):
    """Writing to standard output failed."""


def say(line: str = "", *, err: bool = False, color: str | None = None) -> None:
    """Print a line."""
    text = typer.style(as_text(line), fg=color) if color else as_text(line)
    # a failure of standard error cannot be reported anywhere
    with suppress(OSError) if err else _standard_output():
        typer.echo(text, file=sys.stderr if err else sys.stdout)


def show(*tables: Any) -> None:
    """Print Rich tables, and lines without wrapping."""
    console = _console_class()(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    with _standard_output():
        for table in tables:
            console.print(table, soft_wrap=isinstance(table, str))


def table(title: str, heads: Iterable[str], rows: Iterable[Iterable[str]], *left: str) -> Any:
    """A Rich table for `show`; columns are numbers, to the right, except those named ``left``."""
    from rich import box
    from rich.table import Table

    made = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    for head in heads:
        made.add_column(head, justify="left" if head in left else "right", overflow="fold")
    made.show_header = any(column.header for column in made.columns)
    for row in rows:
        made.add_row(*row)
    return made


@contextmanager
def _standard_output() -> Iterator[None]:
    """Name standard output in errors."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"standard output: {error.strerror}; free some space, or write elsewhere"
        raise PrintError(message) from None


@cache
def _console_class() -> Any:
    """A Rich console that escapes control characters, imported lazily."""
    from rich.console import Console
    from rich.text import Text

    class TextConsole(Console):
        def render_str(self, text: str, **more: Any) -> Text:
            # escape first, so that column widths are right
            known = as_text(text).encode(self.encoding, "backslashreplace").decode(self.encoding)
            return super().render_str(known, **more)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return TextConsole


FEW = 0.01
"""If a larger share of the rows was skipped, the share is printed."""


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
    say(json.dumps(summary))
