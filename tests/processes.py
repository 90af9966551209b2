"""Code in a process of its own, for tests where a process is the point."""

import os
import subprocess
import sys
from contextlib import suppress

COMMAND = "from ordspan.__main__ import main; main()"


def start(*words, code=COMMAND, **more):
    """Begin to run code, by default the command, with words as its arguments."""
    command = [sys.executable, "-c", code, *map(str, words)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, text=True, **pipes | more)


def run(*words, **more):
    """Run to the end; the exit code and what was written."""
    with start(*words, **more) as process:
        stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def read_terminal(terminal):
    """The bytes that are written to a terminal, which is closed; Linux ends it by an error."""
    parts = []
    with suppress(OSError):
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts)
