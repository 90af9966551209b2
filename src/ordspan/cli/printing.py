"""All that the commands print; what came from files is shown as text, whatever is in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import typer

from ordspan.wording import as_text

PIPED_WIDTH = 160
"""Where nobody looks, lines may be longer than a terminal's."""


class PrintError(OSError):
    """Standard output takes no more."""


def say(line: str = "", *, err: bool = False, color: str | None = None) -> None:
    """Print a line."""
    text = typer.style(as_text(line), fg=color) if color else as_text(line)
    # an error that standard error cannot take has no other place to be said
    with suppress(OSError) if err else _standard_output():
        typer.echo(text, file=sys.stderr if err else sys.stdout)


def show(*tables: Any) -> None:
    """Print tables of Rich, and lines between them, which are not cut."""
    console = _console_class()(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    with _standard_output():
        for table in tables:
            console.print(table, soft_wrap=isinstance(table, str))


@contextmanager
def _standard_output() -> Iterator[None]:
    """An error in printing names standard output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        told = f"standard output: {error.strerror}; make room, or write elsewhere"
        raise PrintError(told) from None


@cache
def _console_class() -> Any:
    """Rich's console, imported when it is needed, through which every cell passes as text."""
    from rich.console import Console
    from rich.text import Text

    class TextConsole(Console):
        def render_str(self, text: str, **more: Any) -> Text:
            # letters that the terminal does not have take as much room as their numbers
            known = as_text(text).encode(self.encoding, "backslashreplace").decode(self.encoding)
            return super().render_str(known, **more)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return TextConsole
