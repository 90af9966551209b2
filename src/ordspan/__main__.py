"""The command `ordspan`, also as `python -m ordspan`."""

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

INTERRUPTED = 130
FRAGILE = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "llvmlite", "numba")
"""What imports modules, or loads compiled code."""

status = 1  # of the process, unless it ends as it should


def main() -> None:
    """Run the command line, as all that this process does."""
    global status
    atexit.register(leave)  # the first to be registered is the last to be called
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, interrupt)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # letters that a terminal does not have are shown by their number
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        run_app()
    except KeyboardInterrupt:  # before a command has begun, or after it has ended
        os.write(2, b"\nstopped.\n")
        status = INTERRUPTED
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left to do is to leave


def run_app() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from ordspan.cli import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich", "click"):
            raise
        sys.exit(f"the command line needs {missing.name}: pip install 'ordspan[cli]'")
    try:
        app(prog_name="ordspan")
    except OSError as error:  # help finds no room; the commands report their own errors
        from ordspan.cli.app import settle_output

        settle_output()
        sys.exit(f"error: {error if error.strerror is None else error.strerror}")


def interrupt(number: int, frame: FrameType | None) -> None:
    """Answer Ctrl-C: raise, but leave at once where an exception would be swallowed or fatal."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in FRAGILE:
            os.write(2, b"\nstopped.\n")
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def leave() -> None:
    """End the process without tearing the interpreter down.

    The threads of Polars and pyarrow cannot be ended, and one that needs the interpreter while it
    is torn down aborts the process ("terminate called without an active exception").
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # AttributeError: closed from the beginning
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
