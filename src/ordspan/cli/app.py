"""The command line app. Heavy imports are deferred to the commands that need them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from ordspan.cli.printing import say
from ordspan.wording import as_text, install_hint

MISTAKE, INTERRUPTED = 1, 130
COMPILING = "Compiling for this processor; only the first time."
UsageError: Any = typer.BadParameter.__base__  # of click, or of the copy vendored by typer


class Commands(TyperGroup):
    """The commands; usage errors escape control characters."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments before the name of a command."""
        with _escape_usage_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _escape_usage_errors():
            return super().invoke(ctx)


@contextmanager
def _escape_usage_errors() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        error.message = as_text(error.message)
        raise


app = typer.Typer(
    name="ordspan",
    cls=Commands,
    help="Learn ordered grades from exact labels or from ranges.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        import ordspan

        say(f"ordspan {ordspan.__version__}")
        raise typer.Exit


@app.callback()
def ordspan_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Learn ordered grades from exact labels or from ranges."""


@contextmanager
def report_errors(hint: str | Callable[[], str] = "") -> Iterator[None]:
    """Print user errors, missing extras and full disks as messages, not tracebacks.

    ``hint`` is printed after Ctrl-C. A closed pipe (``| head``) ends the command quietly.
    """
    try:
        yield
    except KeyboardInterrupt:
        text = hint if isinstance(hint, str) else hint()
        say(f"\nstopped. {text}".rstrip(), err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        flush_output()
        raise typer.Exit from None
    except ModuleNotFoundError as missing:
        _exit_with(install_hint(missing.name))
    except MemoryError as error:
        _exit_with(f"error: not enough memory ({error})")
    except (ValueError, OSError, LookupError) as error:
        notes = (f". {note}" for note in getattr(error, "__notes__", ()))
        _exit_with(f"error: {error}" + "".join(notes))


def _exit_with(reason: str) -> NoReturn:
    """Print a reason on one line and exit."""
    say(reason.replace("\n", " "), err=True, color=typer.colors.RED)
    flush_output()
    raise typer.Exit(MISTAKE) from None


def flush_output() -> None:
    """Flush standard output; if that fails, redirect it to the null device.

    Otherwise Python would flush again at exit, fail and change the exit code.
    """
    if sys.stdout is None:  # closed by the parent process
        return
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def progress_bar(*, counted: bool = True) -> Any:
    """A progress bar with the remaining time, which draws nothing without a terminal.

    Long compilations are announced above it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from ordspan.clock import compiling

    bar = Bar(
        TextColumn("{task.description:<28}"),
        BarColumn(),
        *([MofNCompleteColumn()] if counted else []),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    if not bar.disable:
        compiling.announce(lambda: bar.console.print(COMPILING, soft_wrap=True))
    return bar
