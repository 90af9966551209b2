"""How messages name a way out, in Python or in a shell, and show what stands in files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What a terminal obeys, changes the order of letters, or is half a letter; but line ends."""
_options: Collection[str] | None = None  # of the command that runs; None in Python


@contextmanager
def in_a_shell(options: Collection[str]) -> Iterator[None]:
    """Within the block, messages propose the options of a command, and no others.

    >>> with in_a_shell(["--drop"]):
    ...     option("--drop age", "drop=['age']"), option("--text age", "text=['age']")
    ('--drop age', '')
    """
    global _options
    before, _options = _options, options
    try:
        yield
    finally:
        _options = before


@dataclass(frozen=True)
class KeepWording:
    """A function that speaks on a worker as it would in this process."""

    function: Callable[..., Any]
    options: Collection[str]

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        with in_a_shell(self.options):
            return self.function(*arguments)


def keep_wording(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function to be sent to workers, whose messages are for the user of this process."""
    return function if _options is None else KeepWording(function, _options)


def option(shell: str, python: str) -> str:
    """An option with its value, or the argument in Python; nothing where the command has it not.

    >>> option("--drop age", "drop=['age']")
    "drop=['age']"
    """
    if _options is None:
        return python
    return shell if shell.split()[0] in _options else ""


def columns_option(name: str, *columns: str, python: str = "") -> str:
    """An option that takes columns.

    >>> columns_option("drop", "my age"), columns_option("hash", "town", python="hashed")
    ("drop=['my age']", "hashed=['town']")
    """
    given = shlex.quote(",".join(f'"{c}"' if "," in c else c for c in columns))
    return option(f"--{name} {given}", f"{python or name}={list(columns)!r}")


def either(*ways: str, start: str = "; ") -> str:
    """The ways out that there are, as the end of a message.

    >>> either("correct it", "", "drop the column")
    '; correct it, or drop the column'
    """
    there = [way for way in ways if way.strip()]
    if len(there) > 1:
        there = [", ".join(there[:-1]), there[-1]]
    return start + ", or ".join(there) if there else ""


def by(verb: str, how: str) -> str:
    """What can be done by an option; nothing where the command does not have it.

    >>> by("leave it out with", "--drop age"), by("leave it out with", "")
    ('leave it out with --drop age', '')
    """
    return f"{verb} {how}" if how else ""


def as_text(text: str) -> str:
    r"""Text in which control characters are written out, so that a terminal shows them.

    >>> print(as_text("\x1b[31mred\u202e"))
    \x1b[31mred\u202e
    """
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
