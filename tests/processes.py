"""Code in a process of its own, for tests where a process is the point."""

import subprocess
import sys

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
