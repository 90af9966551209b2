"""Processes forked from one that has imported what takes long: whole processes, started quickly.

Run as a script, this file is the process they are forked from. Code that comes to its end leaves at
once: functions registered with atexit are not called.
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress

COMMAND = "from ordspan.__main__ import main; main()"


class Fork:
    """A running process; like Popen, but no child of this one."""

    def __init__(self, report, *written):
        self._report, self._written = os.fdopen(report), written
        self.returncode = self.seconds = None  # seconds of processor time
        self.stdout = self.stderr = ""  # known at its end
        pid = self._report.readline()
        assert pid, "the process to fork from has ended: did its preload fail?"
        self.pid = int(pid)

    def wait(self, timeout=300):
        """The exit code, None if it still runs after ``timeout`` seconds."""
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            code, seconds = self._report.readline().split()
            self.returncode, self.seconds = int(code), float(seconds)
            self.stdout, self.stderr = map(read_all, self._written)
            self._report.close()
        return self.returncode

    def send_signal(self, number):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(self.pid, number)

    def communicate(self, timeout=300):
        """What it wrote, where no file was given for it; a process that does not end is killed."""
        if self.wait(timeout) is None:
            self.send_signal(signal.SIGKILL)
            self.wait()
            raise AssertionError(f"not at its end after {timeout} seconds: {self.stderr}")
        return self.stdout, self.stderr


def read_all(file):
    with file:
        file.seek(0)
        return file.read()


class Forks:
    """Starts processes that have run the code of ``preload`` already."""

    def __init__(self, preload, search=()):
        self._ours, theirs = socket.socketpair()
        command = [sys.executable, __file__, str(theirs.fileno()), preload]
        env = os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, search), *sys.path])}
        self._server = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=env
        )
        theirs.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._ours.close()
        self._server.wait()

    def start(self, *words, code=COMMAND, cwd=None, env=None, stdin=None, stdout=None, stderr=None):
        """Begin to run code, by default the command, with words as its arguments."""
        asked = {
            "words": [str(word) for word in words],
            "code": code,
            "cwd": str(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
        }
        written = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]  # noqa: SIM115
        report, theirs = os.pipe()
        with open(os.devnull) as nothing:
            given = [
                nothing if stdin is None else stdin,
                stdout or written[0],
                stderr or written[1],
            ]
            fds = [file if isinstance(file, int) else file.fileno() for file in given]
            socket.send_fds(self._ours, [json.dumps(asked).encode(), b"\n"], [theirs, *fds])
        os.close(theirs)
        return Fork(report, *written)

    @contextmanager
    def fed(self, *words, **more):
        """Begin to run code; the process, and a file that is its standard input."""
        read, write = os.pipe()
        with os.fdopen(write, "wb") as stdin:
            process = self.start(*words, stdin=read, **more)
            os.close(read)
            yield process, stdin

    def run(self, *words, timeout=300, **more):
        """Run to the end; the exit code and what was written."""
        process = self.start(*words, **more)
        stdout, stderr = process.communicate(timeout)
        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def serve(connection):
    """Fork a process for each request; returns in these, with the request."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)  # one byte for each signal
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    reports = {}
    while True:
        if woken in select.select([connection, woken], [], [])[0]:
            os.read(woken, 1024)
            report_ended(reports)
            continue
        message, fds, _, _ = socket.recv_fds(connection, 1 << 20, 4)
        if not message:
            os._exit(0)
        while not message.endswith(b"\n"):
            message += connection.recv(1 << 20)
        report, *standard = fds
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.close()
            os.close(report)
            return json.loads(message), standard
        tell(report, child)
        reports[child] = report
        for fd in standard:
            os.close(fd)


def tell(report, *words):
    with suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(report, (" ".join(map(str, words)) + "\n").encode())


def report_ended(reports):
    """Write the exit code and the seconds of processes that have ended."""
    while reports:
        child, status, usage = os.wait4(-1, os.WNOHANG)
        if not child:
            return
        report = reports.pop(child)
        tell(report, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
        os.close(report)


def become(asked, standard):
    """Take over what a new process is given by whoever starts it."""
    for number, fd in enumerate(standard):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv[:] = ["-c", *asked["words"]]
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        how = {"encoding": "utf-8", "closefd": False}
        if name == "stderr":
            how |= {"buffering": 1, "errors": "backslashreplace"}  # as Python has it
        setattr(sys, name, open(number, mode, **how))  # noqa: SIM115


if __name__ == "__main__":
    del sys.path[0]
    exec(sys.argv[2], {})
    gc.freeze()  # what is collected in a fork is copied first
    request, files = serve(socket.socket(fileno=int(sys.argv[1])))
    become(request, files)
    exec(request["code"], {"__name__": "__main__"})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # to take apart all that was imported would take longer than the work
