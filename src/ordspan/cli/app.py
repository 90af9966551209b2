"""How every command runs: options from its job, progress, errors, and lines and tables printed.

Commands import what is heavy. Control characters are escaped in what is printed.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ordspan.commands import jobs
from ordspan.wording import as_text, in_words, install_hint

MISTAKE, INTERRUPTED = 1, 130
PIPED_WIDTH = 160
"""Line width if standard output is not a terminal."""
COMPILING = "Compiling for this processor; only the first time."
METAVARS: dict[Any, str] = {list[str]: "NAMES", Path: "FILE", str: "TEXT", int: "N", float: "X"}
Update = Callable[[str, float, float | None], None]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


class Command(TyperCommand):
    """A command whose help has its options in groups, and reads well in 80 columns."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, group by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            plain = "Arguments" if one.param_type_name == "argument" else "Options"
            if record := one.get_help_record(ctx):
                group = getattr(one, "rich_help_panel", None) or plain
                heading = record[0].partition(" <")[0]  # without a type in Python's words
                groups.setdefault(group, []).append((heading, record[1]))
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        import ordspan

        say(f"ordspan {ordspan.__version__}")
        raise typer.Exit


VERSION = typer.Option(
    "--version", callback=show_version, is_eager=True, help="Show the version and exit."
)


@app.callback()
def ordspan_command(version: Annotated[bool, VERSION] = False) -> None:
    """Learn ordered grades from exact labels or from ranges."""


def command(kind: type[jobs.Job], example: str, if_stopped: str = "") -> Callable[[Any], Any]:
    """Make a command whose options are those of a job, and --json.

    The function gets the job and whether to print JSON. Its errors are printed as messages, and
    ``if_stopped`` after Ctrl-C.
    """
    about = jobs.options_of(kind)

    def register(run: Callable[[Any, bool], None]) -> Any:
        def body(*, context: typer.Context, json: AsJson = False, **values: Any) -> None:
            with report_errors(if_stopped):
                given = {}
                for name, value in values.items():
                    source = context.get_parameter_source(name)
                    if source is not None and source.name == "COMMANDLINE":
                        given[name] = value
                        if about[name].shell == list[str] and not about[name].argument:
                            given[name] = [word for text in value for word in jobs.read_list(text)]
                run(jobs.make_job(kind, given), json)

        first, last, _ = signature(body).parameters.values()
        parameters = [first, *map(as_parameter, about.values()), last]
        body.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        body.__annotations__ = {one.name: one.annotation for one in parameters}
        epilog = f"\b\nExample: ordspan {run.__name__} {example}"  # on one line, to be copied
        app.command(run.__name__, cls=Command, help=run.__doc__, epilog=epilog)(body)
        return run

    return register


def prints(kind: type[jobs.Job], example: str, if_stopped: str = "") -> Any:
    """Make a command of the function of the same name in `ordspan.commands`.

    The function that is decorated prints the summary, in plain values, that it returns.
    """

    def register(show: Callable[[dict[str, Any]], None]) -> None:
        def run(job: Any, json: bool) -> None:
            to_stdout = getattr(job, "out", None) == jobs.STDOUT
            if json and to_stdout:
                raise typer.BadParameter("--json writes to standard output, so give --out a file")
            work = getattr(import_module(f"ordspan.commands.{show.__name__}"), show.__name__)
            if isinstance(job, jobs.FileJob):
                # a bar would be mixed with rows on the terminal
                with progress_bar(hidden=to_stdout and sys.stdout.isatty()) as update:
                    summary = work(job, report=partial(report_rows, update))
            else:
                summary = work(job)
            tell(summary, json) if json else show(summary)

        run.__name__, run.__doc__ = show.__name__, show.__doc__
        command(kind, example, if_stopped)(run)

    return register


def as_parameter(about: jobs.Option) -> Parameter:
    """An option as a parameter for Typer."""
    kind, default = about.shell, about.default
    metavar = about.metavar or "|".join(about.words) or METAVARS.get(kind)
    how: dict[str, Any] = {"help": about.help, "metavar": metavar, "rich_help_panel": about.group}
    how |= {"min": about.least, "max": about.most, "path_type": str}  # Path("") would be "."
    flags = about.names if default is False else about.flags
    made = typer.Argument(**how) if about.argument else typer.Option(*flags, **how)
    if default is None or default == ():
        kind, default = kind | None, None
    annotation: Any = Annotated[kind, made]
    return Parameter(about.name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


@contextmanager
def report_errors(if_stopped: str = "") -> Iterator[None]:
    """Print user errors, missing extras and full disks as messages, not tracebacks.

    A closed pipe (``| head``) ends the command quietly.
    """
    try:
        yield
    except KeyboardInterrupt as stopped:
        say(f"\nstopped. {with_notes(stopped) or if_stopped}".rstrip(), err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise typer.Exit from None
    except (ImportError, MemoryError, RecursionError, ValueError, OSError, LookupError) as error:
        reason = with_notes(error) or "not enough memory"
        if isinstance(error, ModuleNotFoundError):
            reason = install_hint(error.name)
        try:
            say(f"error: {reason}".replace("\n", " "), err=True, color=typer.colors.RED)
        except MemoryError:  # text that needs none
            os.write(2, b"error: not enough memory\n")
        raise typer.Exit(MISTAKE) from None


def with_notes(error: BaseException) -> str:
    """The message of an error, and what was noted since."""
    name = error.filename if isinstance(error, OSError) else None
    text = str(error) if name is None else f"{name}: {error.strerror}"  # type: ignore[attr-defined]
    return ". ".join(filter(None, (text, *getattr(error, "__notes__", ()))))


@contextmanager
def progress_bar(*, counted: bool = False, hidden: bool = False) -> Iterator[Update]:
    """A progress bar with the remaining time, which draws nothing without a terminal.

    It is moved by what is being done, how much is done, and of how much. Long compilations are
    announced above it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from ordspan.clock import compiling

    columns = [TextColumn("{task.description:<28}"), BarColumn(), TimeRemainingColumn()]
    if counted:
        columns.insert(2, MofNCompleteColumn())
    bar = Bar(*columns, console=Console(stderr=True), disable=hidden or not sys.stderr.isatty())
    if not bar.disable:
        compiling.announce(lambda: bar.console.print(COMPILING, soft_wrap=True))
    with bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )


def report_rows(update: Update, rows: int, mae: float | None, share: float | None) -> None:
    """Draw the rows done, their MAE and the share of the work."""
    update(f"{rows:,} rows" + ("" if mae is None else f", MAE {mae:.3f}"), share or 0, share and 1)


def say(line: str = "", *, err: bool = False, color: str | None = None) -> None:
    """Print a line with control characters escaped; one that fails on standard error is lost."""
    with suppress(OSError) if err else nullcontext():  # cannot be reported anywhere
        typer.secho(as_text(line), err=err, fg=color, reset=color is not None)


def in_terminal(value: Any) -> str:
    """A plain value as it is shown, so that the widths of columns are right."""
    encoding = sys.stdout.encoding or "utf-8"
    return as_text(in_words(value)).encode(encoding, "backslashreplace").decode(encoding)


def print_table(
    title: str, heads: Iterable[str], rows: Iterable[Iterable[Any]], *left: str
) -> None:
    """Print plain values; columns are numbers, to the right, except those named ``left``."""
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
    typer.echo(printed.get(), nl=False)


def print_notes(summary: dict[str, Any], *, err: bool = False) -> None:
    """Print how many bad rows were skipped, with examples, and what else may surprise a user."""
    if skipped := summary.get("skipped"):
        read = skipped + summary.get("read", summary["rows"])
        share = f"{skipped:,} of {read:,} ({skipped / read:.1%})"
        say(f"Bad rows skipped: {share}, such as:", color=typer.colors.YELLOW)
        for example in summary["skipped_examples"]:
            say(f"  {example}")
    for note in summary["notes"]:
        say(f"Note: {note}.", err=err)


def tell(summary: dict[str, Any], as_json: bool, *lines: str) -> None:
    """Print a summary, for programs as JSON, for people in words."""
    say(json.dumps(summary) if as_json else "\n".join(lines))
