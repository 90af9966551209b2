"""The command `ordspan`, which `python -m ordspan` runs as well: its start and its end."""

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from ordspan.commands.stopping import is_fragile

INTERRUPTED = 130
status = 1  # exit status unless the command ends normally


def main() -> None:
    """Run the command line as the whole process."""
    global status
    atexit.register(leave)  # registered first, called last
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise it is ignored
        signal.signal(signal.SIGINT, interrupt)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # escape characters the terminal cannot show
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        run_app()
    except KeyboardInterrupt:  # before a command starts or after it ends
        os.write(2, b"\nstopped.\n")
        status = INTERRUPTED
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore Ctrl-C during exit


def run_app() -> None:
    """Run the command line, or name the extra to install."""
    try:
        from ordspan.cli import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich", "click"):
            raise
        sys.exit(f"the command line needs {missing.name}: pip install 'ordspan[cli]'")
    try:
        app(prog_name="ordspan")
    except OSError as error:  # from printing help; commands report their own errors
        from ordspan.cli.app import flush_output

        flush_output()
        sys.exit(f"error: {error if error.strerror is None else error.strerror}")


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C: raise, but exit at once where an exception would be swallowed or fatal."""
    if is_fragile(frame):
        os.write(2, b"\nstopped.\n")
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


def leave() -> None:
    """Exit without finalising the interpreter.

    Threads of Polars and pyarrow cannot be stopped, and one that needs the interpreter during
    finalisation aborts the process ("terminate called without an active exception").
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # AttributeError: closed at start
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
