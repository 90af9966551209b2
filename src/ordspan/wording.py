"""Words of messages: remedies in Python and in a shell, missing extras, text shown safely."""

import csv
import io
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from numpy.typing import NDArray

CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, text direction marks and lone surrogates, but not line breaks."""
PACKAGES = {
    "cli": ("typer", "rich", "polars", "pyarrow", "filelock", "matplotlib"),
    "survey": ("pyreadstat",),
    "xlsx": ("fastexcel", "xlsxwriter"),
    "onnx": ("onnx",),
    "river": ("river",),
    "dask": ("dask", "distributed"),
    "serve": ("starlette", "uvicorn", "prometheus_client"),
}
EXTRAS = {package: extra for extra, packages in PACKAGES.items() for package in packages}
"""The extra that installs an optional package; all others are in experiments."""


SHOWN, LONGEST_SHOWN = 60, 200
"""Characters of a cell shown in a message if it is longer than LONGEST_SHOWN."""
N_SHOWN = 8
ROUNDING = 1e-12
MIN_SIMILARITY = 0.65
"""Similarity from which a name is suggested in place of an unknown one."""


def hint(python: str, shell: str) -> str:
    """A setting as an argument in Python and as an option of a command.

    >>> hint("drop=['age']", "--drop age")
    "drop=['age'] (--drop age)"
    """
    return f"{python} ({shell})"


def columns_hint(name: str, *columns: str) -> str:
    """A setting whose value is a list of columns.

    >>> print(columns_hint("drop", "my age", "a,b"))
    drop=['my age', 'a,b'] (--drop 'my age,"a,b"')
    """
    return hint(f"{name}={list(columns)!r}", f"--{name} {shell_list(columns)}")


def comma_list(names: Iterable[str]) -> str:
    """Names separated by commas; one that contains a comma is quoted.

    >>> print(comma_list(["my age", "a,b"]))
    my age,"a,b"
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def shell_list(names: Iterable[str]) -> str:
    """Names as one word of a shell, separated by commas.

    >>> print(shell_list(["Don't know"]))
    "Don't know"
    """
    line = comma_list(names)
    plain = "'" not in line or set(line) & set('"$`\\!')
    return shlex.quote(line) if plain else f'"{line}"'


def join_hints(*hints: str) -> str:
    """Remedies as the end of a message.

    >>> join_hints("correct it", "drop the column")
    '; correct it, or drop the column'
    """
    return "; " + ", or ".join(hints)


def install_hint(module: str | None) -> str:
    """How to install an optional package that is missing.

    >>> install_hint("polars.series")
    "this needs polars: pip install 'ordspan[cli]'"
    """
    name = (module or "").partition(".")[0]
    return f"this needs {name}: pip install 'ordspan[{EXTRAS.get(name, 'experiments')}]'"


@contextmanager
def report_missing() -> Iterator[None]:
    """Say how to install an optional package that is missing, as a context or a decorator."""
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
    return CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def shown(values: NDArray[Any]) -> str:
    """A few values for an error message.

    >>> import numpy as np
    >>> shown(np.arange(20))
    '[0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all]'
    """
    head = ", ".join(repr(v) for v in values[:N_SHOWN].tolist())
    more = "" if len(values) <= N_SHOWN else f", ... {len(values)} in all"
    return f"[{head}{more}]"


def brief(value: Any) -> str:
    """A value for a message; only the beginning of a very long one.

    >>> brief("low"), brief("9" * 5000)[-28:]
    ("'low'", "99999'... (5,000 characters)")
    """
    whole = value if isinstance(value, str) else repr(value)
    if len(whole) <= LONGEST_SHOWN:
        return repr(value)
    return f"{whole[:SHOWN]!r}... ({len(whole):,} characters)"


def in_words(value: Any, scale: float = 1.0) -> str:
    """A plain value for people: six digits of a number, what rounding left over as 0.

    >>> in_words(0.123456789), in_words("PA-I"), in_words([2, 0.5]), in_words(8.7e-19)
    ('0.123457', 'PA-I', '2, 0.5', '0')
    >>> in_words({"C": 1.0, "kernel": None}), in_words([*range(1000)])[-29:]
    ('C=1', '6, 7, ..., 999 (1,000 in all)')
    >>> print(in_words(["no, never", "yes"]))
    "no, never", yes
    """
    if isinstance(value, dict):
        texts = {name: in_words(one) for name, one in value.items()}
        return ", ".join(f"{name}={text}" for name, text in texts.items() if text)
    if isinstance(value, list | tuple):
        if len(value) <= N_SHOWN + 1:
            words = (comma_list([v]) if isinstance(v, str) else in_words(v) for v in value)
            return ", ".join(words)
        return f"{in_words(value[:N_SHOWN])}, ..., {in_words(value[-1])} ({len(value):,} in all)"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) >= ROUNDING * scale else "0"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def first_few(words: Sequence[str], most: int = 8) -> str:
    """The first items of a long list.

    >>> first_few(["a", "b", "c"], 2)
    'a, b, and 1 more'
    """
    more = f", and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def plural(count: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "word"), plural(2000, "word")
    ('1 word', '2,000 words')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def closest(word: str, names: Iterable[str]) -> str:
    """The name that may be meant by a word, or nothing.

    >>> closest("Carier", ["stars", "carrier"]), closest("x", ["stars"])
    ('carrier', '')
    """
    folded = {fold(name): name for name in names}
    similar = get_close_matches(fold(word), folded, n=1, cutoff=MIN_SIMILARITY)
    return folded[similar[0]] if similar else ""


def fold(word: str) -> str:
    """A word in lower case without spaces."""
    return "".join(word.casefold().split())


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices, and list them."""
    if value not in (allowed := list(choices)):
        raise ValueError(f"unknown {name} {value!r}; choose one of {', '.join(allowed)}")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the user's line, not of one in this or another library."""
    frame, level = sys._getframe(1), 2
    # code given to exec may have no name
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(("ordspan", "sklearn")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
