"""What a shell sees: exit codes, one-line reasons, pipes, and text that no terminal obeys."""

import os
import re
import subprocess
import sys
import threading

import pytest

from commands.tables import GRADES, ask, ratings, trained, write_table
from ordspan import modelfile

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, links and devices of POSIX")
TRAIN = ("--label", "grade", "--grades", ",".join(GRADES))
EVIL = "\x1b]0;owned\x07\x1b[31m[red]x[/red][/]\u202e"
SHOWN = "\\x1b]0;owned\\x07\\x1b[31m[red]x[/red][/]\\u202e"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def run(*words, code="from ordspan.__main__ import main; main()", **more):
    """The command in a process of its own; standard error is read."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shell")


@pytest.fixture(scope="module")
def rows(folder):
    return write_table(ratings(), folder / "rows.csv")


@pytest.fixture(scope="module")
def model(folder):
    return trained(folder)


@posix
def test_a_link_to_a_model_stays_a_link(rows, tmp_path):
    link, target = tmp_path / "latest", tmp_path / "v1"
    link.symlink_to(target)
    assert ask("train", rows, *TRAIN, "--model", link).exit_code == 0
    assert link.is_symlink()
    assert modelfile.load(target).classes_.tolist() == GRADES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "v1"]


@posix
def test_links_that_lead_nowhere_and_pipes_are_not_replaced(rows, model, tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    answer = ask("train", rows, *TRAIN, "--model", tmp_path / "a")
    assert answer.exit_code == 1
    assert "a: cannot be written (Too many levels of symbolic links)" in answer.output
    os.mkfifo(tmp_path / "out.csv")
    answer = ask("predict", rows, "--model", model, "--out", tmp_path / "out.csv")
    assert answer.exit_code == 1
    assert "out.csv is not a regular file" in answer.output
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "out.csv").is_fifo()


@pytest.mark.parametrize("length", [245, 256])
def test_too_long_a_name_is_refused_before_the_rows_are_read(tmp_path, length):
    answer = ask("train", tmp_path / "none.csv", *TRAIN, "--model", tmp_path / ("m" * length))
    assert answer.exit_code == 1
    assert re.fullmatch(r"error: .*cannot be written \(File name too long\).*\n", answer.output)


@posix
def test_a_folder_that_cannot_be_written_is_refused_before_the_rows_are_read(tmp_path):
    where = "/proc" if os.geteuid() == 0 else tmp_path / "locked"
    if os.geteuid() != 0:
        where.mkdir(mode=0o500)
    for words in (
        ("train", tmp_path / "none.csv", *TRAIN, "--model", f"{where}/m"),
        ("reproduce", "--out", f"{where}/m"),
        ("reproduce", "--out", f"{where}/m/n"),
    ):
        answer = ask(*words)
        assert answer.exit_code == 1
        assert re.fullmatch(r"error: .*/[mn]: cannot be written \(.*\n", answer.output)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
def test_a_model_is_written_though_its_summary_finds_no_room(warm, rows, tmp_path):
    with open("/dev/full", "w") as full:
        answer = warm.run("train", rows, *TRAIN, "--model", tmp_path / "m", stdout=full)
    room = "standard output: No space left on device; free some space, or write elsewhere"
    assert answer.stderr == f"error: {room}. The model was written to {tmp_path / 'm'}\n"
    assert answer.returncode == 1
    assert modelfile.load(tmp_path / "m").classes_.tolist() == GRADES


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_that_finds_no_room_ends_in_one_line(warm, word):
    with open("/dev/full", "w") as full:
        answer = warm.run(word, stdout=full)
    assert answer.returncode == 1
    assert re.fullmatch(r"error: .*No space left on device.*\n", answer.stderr)


def test_a_terminal_without_the_letters_shows_their_numbers(tmp_path):
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    data, model = tmp_path / "größe.csv", tmp_path / "mö"
    data.write_text("größe,grade\n" + "1,kälter\n2,wärmer\n" * 50, encoding="utf-8")
    order = ("--label", "grade", "--grades", "kälter,wärmer")
    assert ask("train", data, *order, "--model", model).exit_code == 0
    env, pipe = {**os.environ, **ascii_only}, subprocess.PIPE
    answer = run("evaluate", data, "--model", model, env=env, stdout=pipe)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "k\\xe4lter |" in answer.stdout
    lines = [line for line in answer.stdout.splitlines() if line[:1] in "+|"]
    assert len({len(line) for line in lines[-6:]}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
def test_a_file_whose_name_is_not_utf8_is_predicted_and_named(rows, model, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    os.link(rows, path)
    answer = ask("predict", path, "--model", model, "--where")
    assert answer.exit_code == 0, answer.output
    assert f"{tmp_path}/\\xff.csv,2," in answer.stdout


INTERRUPTED_IMPORT = """
import signal, sys

module = sys.argv.pop(1)

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from ordspan.__main__ import main
main()
"""


@posix
@pytest.mark.parametrize("module", ["typer", "polars"])
def test_ctrl_c_while_modules_are_imported_leaves_no_traceback(rows, tmp_path, module):
    words = (module, "train", rows, *TRAIN, "--model", tmp_path / "m")
    answer = run(*words, code=INTERRUPTED_IMPORT)
    assert answer.stderr == "\nstopped.\n"
    assert answer.returncode == 130


@posix
def test_ctrl_c_before_a_command_begins_leaves_no_traceback(warm):
    code = """
import signal
import ordspan.__main__ as command

command.run_app = lambda: signal.raise_signal(signal.SIGINT)
command.main()
"""
    answer = warm.run(code=code)
    assert answer.stderr == "\nstopped.\n"
    assert answer.returncode == 130


LATE_THREAD = """
import sys, time
import pyarrow as pa
from pyarrow import csv

class Slow:
    closed = False
    reads = 0
    def read(self, size=-1):
        self.reads += 1
        if self.reads > 2:
            time.sleep(0.3)
        return b"a,b\\n" + b"1,2\\n" * 1000
    def readable(self): return True
    def writable(self): return False
    def seekable(self): return False
    def close(self): pass

reader = csv.open_csv(pa.PythonFile(Slow(), mode="r"), csv.ReadOptions(block_size=1000))
from ordspan.__main__ import main
main()
"""


def test_threads_of_libraries_that_still_run_do_not_abort_the_end(warm):
    answer = warm.run("--version", code=LATE_THREAD)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("ordspan ")


@pytest.fixture
def pipe(tmp_path, rows):
    """A named pipe into which somebody writes the rows."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_bytes(rows.read_bytes()), daemon=True).start()
    return path


@posix
def test_a_named_pipe_is_read_as_standard_input_is(rows, pipe, tmp_path):
    given = {"a": (pipe, None), "b": ("-", rows.read_bytes())}
    for name, (path, piped) in given.items():
        words = (*TRAIN, "--format", "csv", "--model", tmp_path / name)
        answer = ask("train", path, *words, input=piped)
        assert answer.exit_code == 0, answer.output
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@posix
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_named_pipe_is_predicted_and_evaluated(rows, model, pipe, command):
    of_pipe, of_file = (ask(command, path, "--model", model) for path in (pipe, rows))
    assert of_pipe.exit_code == 0, of_pipe.output
    assert of_pipe.stdout.splitlines()[-10:] == of_file.stdout.splitlines()[-10:]


@posix
@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs descriptors with names")
def test_process_substitution_is_read_and_what_a_pipe_cannot_do_is_said(rows, model, tmp_path):
    command = f"{sys.executable} -m ordspan predict <(cat {rows}) --model {model} --out {{}}"
    out = tmp_path / "out.csv"
    subprocess.run(["bash", "-c", command.format(out)], check=True, capture_output=True)
    assert len(out.read_text().splitlines()) == 301
    read, write = os.pipe()
    try:
        for more, told in (
            (["--passes", "2"], "pipes can be read only once: passes must be 1"),
            ([rows], f"/dev/fd/{read} is a pipe, which cannot be mixed with files; give it alone"),
        ):
            answer = ask("train", f"/dev/fd/{read}", *more, *TRAIN, "--model", tmp_path / "m")
            assert answer.exit_code == 1
            assert told in answer.output
    finally:
        os.close(read)
        os.close(write)


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A file with control characters wherever a user can write, and a model of it."""
    folder = tmp_path_factory.mktemp("evil")
    data, model = folder / f"{EVIL.replace('/', '')}.csv", folder / "[red]m[]\x1b[2J"
    data.write_text(f"{EVIL}size,grade,{EVIL}\n" + f"1,{EVIL},{EVIL}\n9,high,b\n" * 50)
    words = ("train", data, "--label", "grade", "--grades", f"{EVIL},high", "--model", model)
    answer = ask(*words)
    assert answer.exit_code == 0, answer.output
    return data, model, answer.output


COMMANDS = {
    "train": lambda data, model: ("train", data, "--label", "grade", "--model", model),
    "again": lambda data, model: ("train", data, "--label", EVIL + "no", "--model", f"{model}2"),
    "info": lambda data, model: ("info", model),
    "no model": lambda data, model: ("info", f"{model}none"),
    "evaluate": lambda data, model: ("evaluate", data, "--model", model),
    "no label": lambda data, model: ("evaluate", data, "--model", model, "--label", EVIL + "no"),
    "keep": lambda data, model: ("predict", data, "--model", model, "--keep", EVIL + "no"),
    "ending": lambda data, model: ("predict", data, "--model", model, "--out", f"{EVIL}out"),
    "export": lambda data, model: ("export", model, f"{model}.x"),
    "option": lambda data, model: ("info", f"--{EVIL}"),
    "command": lambda data, model: (EVIL,),
    "choice": lambda data, model: ("train", data, "--model", model, "--format", EVIL),
    "folder": lambda data, model: ("reproduce", "--out", data),
    "names": lambda data, model: ("reproduce", "--datasets", EVIL),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(evil, name):
    data, model, _ = evil
    answer = ask(*COMMANDS[name](data, model))
    assert isinstance(answer.exception, SystemExit | None)
    assert not OBEYED.search(answer.output), answer.output
    assert "\\x1b" in answer.output


def test_names_are_shown_in_full_as_text(evil):
    data, model, trained = evil
    assert not OBEYED.search(trained)
    assert f"Written to {model.parent}/[red]m[]\\x1b[2J." in trained
    info, evaluation = (ask(*COMMANDS[name](data, model)).output for name in ("info", "evaluate"))
    assert SHOWN in info
    assert f"{SHOWN}size" in info
    assert SHOWN in evaluation


def test_a_bad_cell_is_shown_as_text(evil, tmp_path):
    data, model, _ = evil
    bad = tmp_path / "bad.csv"
    bad.write_text(data.read_text() + f"{EVIL},high,a\n1,{EVIL}unknown,b\n")
    for policy in ("raise", "skip"):
        answer = ask("evaluate", bad, "--model", model, "--on-bad-row", policy)
        assert not OBEYED.search(answer.output)
        assert SHOWN in answer.output


def test_the_page_of_an_evaluation_shows_names_as_text(evil, tmp_path):
    data, model, _ = evil
    page = tmp_path / "page.html"
    assert ask("evaluate", data, "--model", model, "--html", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert SHOWN in text


@posix
def test_predictions_on_a_terminal_are_shown_as_text(warm, evil):
    data, model, _ = evil
    ours, theirs = os.openpty()
    process = warm.start("predict", data, "--model", model, stdout=theirs)
    os.close(theirs)
    seen = b""
    try:
        while more := os.read(ours, 1 << 16):
            seen += more
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    assert SHOWN.encode() in seen
    assert b"\x1b" not in seen
