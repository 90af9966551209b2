"""The command `ordspan`, which `python -m ordspan` runs as well: its start and its end."""

import os
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType

from ordspan.commands.stopping import is_fragile
from ordspan.wording import report_missing

INTERRUPTED = 130


def main() -> None:
    """Run the command line as the whole process.

    It ends without finalising the interpreter: threads of Polars and pyarrow cannot be stopped,
    and one that needs the interpreter then aborts the process ("terminate called without an active
    exception").
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise it is ignored
        signal.signal(signal.SIGINT, interrupt)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # escape characters the terminal cannot show
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    status = 1
    try:
        with report_missing():
            from ordspan.cli import app
        app(prog_name="ordspan")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:  # before a command starts or after it ends
        os.write(2, b"\nstopped.\n")
        status = INTERRUPTED
    except (ModuleNotFoundError, OSError) as error:  # commands report their own errors
        print(f"error: {error}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # AttributeError: closed at start
            stream.flush()
    os._exit(status)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C: raise, but exit at once where an exception would be swallowed or fatal."""
    if is_fragile(frame):
        os.write(2, b"\nstopped.\n")
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
