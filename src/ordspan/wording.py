"""Messages that suggest a remedy, as Python arguments or shell options, and show text safely."""

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
"""Control characters, text direction marks and lone surrogates, but not line breaks."""
EXTRAS = {
    "polars": "cli",
    "pyarrow": "cli",
    "filelock": "cli",
    "plotly": "cli",
    "fastexcel": "xlsx",
    "onnx": "onnx",
    "dask": "dask",
    "distributed": "dask",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
}
"""The extra that installs an optional package; all others are in experiments."""
_options: Collection[str] | None = None  # of the running command; None in Python


@contextmanager
def in_a_shell(options: Collection[str]) -> Iterator[None]:
    """Within the block, messages suggest only the options of a command.

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
    """A function whose messages on a worker are worded as in this process."""

    function: Callable[..., Any]
    options: Collection[str]

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        with in_a_shell(self.options):
            return self.function(*arguments)


def keep_wording(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function to send to workers, with messages worded for the user of this process."""
    return function if _options is None else KeepWording(function, _options)


def option(shell: str, python: str) -> str:
    """An option with its value, or the Python argument; empty if the command lacks the option.

    >>> option("--drop age", "drop=['age']")
    "drop=['age']"
    """
    if _options is None:
        return python
    return shell if shell.split()[0] in _options else ""


def columns_option(name: str, *columns: str, python: str = "") -> str:
    """An option whose value is a list of columns.

    >>> columns_option("drop", "my age"), columns_option("hash", "town", python="hashed")
    ("drop=['my age']", "hashed=['town']")
    """
    given = shlex.quote(",".join(f'"{c}"' if "," in c else c for c in columns))
    return option(f"--{name} {given}", f"{python or name}={list(columns)!r}")


def either(*ways: str, start: str = "; ") -> str:
    """The remedies that are not empty, as the end of a message.

    >>> either("correct it", "", "drop the column")
    '; correct it, or drop the column'
    """
    there = [way for way in ways if way.strip()]
    if len(there) > 1:
        there = [", ".join(there[:-1]), there[-1]]
    return start + ", or ".join(there) if there else ""


def by(verb: str, how: str) -> str:
    """A remedy that uses an option; empty if the command lacks the option.

    >>> by("leave it out with", "--drop age"), by("leave it out with", "")
    ('leave it out with --drop age', '')
    """
    return f"{verb} {how}" if how else ""


def install_hint(module: str | None) -> str:
    """How to install an optional package that is missing.

    >>> install_hint("polars.series")
    "this needs polars: pip install 'ordspan[cli]'"
    """
    name = (module or "").partition(".")[0]
    return f"this needs {name}: pip install 'ordspan[{EXTRAS.get(name, 'experiments')}]'"


@contextmanager
def report_missing() -> Iterator[None]:
    """Say how to install an optional package that is missing; also a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRAS:
            raise
        raise ModuleNotFoundError(install_hint(error.name), name=error.name) from None


def as_text(text: str) -> str:
    r"""Text with control characters escaped, so that a terminal shows them.

    >>> print(as_text("\x1b[31mred\u202e"))
    \x1b[31mred\u202e
    """
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
