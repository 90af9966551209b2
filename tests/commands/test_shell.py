"""What a shell sees: exit codes, one-line reasons, and text that no terminal obeys."""

import os
import re
import sys

import pytest

from commands.tables import GRADES, ask, ratings, said, trained, write_table
from ordspan import __version__, load
from processes import COMMAND, read_terminal, run, start

POSIX = pytest.mark.skipif(os.name != "posix", reason="links, signals and devices of POSIX")
FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
TRAIN = ("--label", "grade", "--grades", ",".join(GRADES))
EVIL = "\x1b]0;owned\x07\x1b[31m[red]x[/red][/]\u202e"
SHOWN = "\\x1b]0;owned\\x07\\x1b[31m[red]x[/red][/]\\u202e"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shell")


@pytest.fixture(scope="module")
def rows(folder):
    return write_table(ratings(), folder / "rows.csv")


@pytest.fixture(scope="module")
def model(folder):
    return trained(folder)


@POSIX
def test_what_cannot_be_written_is_refused_before_the_rows_are_read(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    locked = "/proc" if os.geteuid() == 0 else tmp_path / "locked"
    (tmp_path / "unread.csv").touch()  # an empty file would be refused
    unread = ("train", tmp_path / "unread.csv", *TRAIN)
    for words, reason in (
        ((*unread, "--model", tmp_path / ("m" * 245)), "File name too long"),
        ((*unread, "--model", f"{locked}/m"), ""),
        (("reproduce", "--out", f"{locked}/m"), ""),
        (("reproduce", "--out", f"{locked}/m/n"), ""),
    ):
        printed = said(*words, code=1)
        assert re.fullmatch(
            rf"error: .*/[mn]+(\.checkpoint)?: cannot be written \({reason}.*\n", printed
        )


@FULL
@pytest.mark.parametrize("command", ["train", "predict", "--help"])
def test_no_room_behind_standard_output_is_told_in_one_line(rows, model, tmp_path, command):
    words = {
        "train": [rows, *TRAIN, "--model", tmp_path / "m"],
        "predict": [rows, "--model", model],
    }
    with open("/dev/full", "w") as full:
        answer = run(command, *words.get(command, []), stdout=full)
    assert answer.returncode == 1
    assert re.fullmatch(r"error: .*No space left on device.*\n", answer.stderr)
    if command == "train":
        assert load(tmp_path / "m").classes_.tolist() == GRADES


INTERRUPTED_IMPORT = """
import signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "MODULE":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""


@POSIX
@pytest.mark.parametrize("module", ["ordspan.cli", "typer", "polars"])
def test_ctrl_c_before_the_work_begins_leaves_no_traceback(rows, tmp_path, module):
    code = INTERRUPTED_IMPORT.replace("MODULE", module) + COMMAND
    answer = run("train", rows, *TRAIN, "--model", tmp_path / "m", code=code)
    assert (answer.returncode, answer.stderr) == (130, "\nstopped.\n")


LATE_THREAD = """
import io, time
import pyarrow as pa
from pyarrow import csv

class Slow(io.RawIOBase):
    reads = 0
    def readable(self):
        return True
    def read(self, size=-1):
        self.reads += 1
        time.sleep(0.3 * (self.reads > 2))
        return b"a,b\\n" + b"1,2\\n" * 1000

reader = csv.open_csv(pa.PythonFile(Slow(), mode="r"), csv.ReadOptions(block_size=1000))
"""


def test_threads_of_libraries_that_still_run_do_not_abort_the_end():
    answer = run("--version", code=LATE_THREAD + COMMAND)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == f"ordspan {__version__}\n"


def test_a_terminal_without_the_letters_shows_their_numbers(tmp_path):
    data, model = tmp_path / "größe.csv", tmp_path / "mö"
    data.write_text("größe,grade\n" + "1,kälter\n2,wärmer\n" * 50, encoding="utf-8")
    said("train", data, "--label", "grade", "--grades", "kälter,wärmer", "--model", model)
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    answer = run("evaluate", data, "--model", model, env=os.environ | ascii_only)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "k\\xe4lter |" in answer.stdout
    lines = [line for line in answer.stdout.splitlines() if line[:1] in "+|"]
    assert len({len(line) for line in lines[-6:]}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
def test_a_file_whose_name_is_not_utf8_is_predicted_and_named(rows, model, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    os.link(rows, path)
    assert f"{tmp_path}/\\xff.csv,2," in said("predict", path, "--model", model, "--where")


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A file with control characters wherever a user can write, and a model of it."""
    folder = tmp_path_factory.mktemp("evil")
    data, model = folder / f"{EVIL.replace('/', '')}.csv", folder / "[red]m[]\x1b[2J"
    data.write_text(f"{EVIL}size,grade,{EVIL}\n" + f"1,{EVIL},{EVIL}\n9,high,b\n" * 50)
    bad = folder / "bad.csv"
    bad.write_text(data.read_text() + f"{EVIL},high,a\n1,{EVIL}unknown,b\n")
    printed = said("train", data, "--label", "grade", "--grades", f"{EVIL},high", "--model", model)
    assert f"Written to {folder}/[red]m[]\\x1b[2J." in printed
    return {"data": data, "model": model, "bad": bad, "page": folder / "page.html"}


COMMANDS = [
    # of a command line: {data}, {model} and {evil} stand for their names
    "train {data} --label grade --model {model}",
    "train {data} --label {evil}no --model {model}2",
    "train {data} --model {model} --format {evil}",
    "info {model}",
    "info {model}none",
    "evaluate {data} --model {model}",
    "evaluate {data} --model {model} --label {evil}no",
    "evaluate {bad} --model {model}",
    "evaluate {bad} --model {model} --on-bad-row skip",
    "predict {data} --model {model} --keep {evil}no",
    "predict {data} --model {model} --out {evil}out",
    "export {model} {model}.x",
    "{evil}",
    "reproduce --out {data}",
    "reproduce --datasets {evil}",
]


@pytest.mark.parametrize("line", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(evil, line):
    answer = ask(*(word.format(**evil, evil=EVIL) for word in line.split()))
    assert isinstance(answer.exception, SystemExit | None)
    assert not OBEYED.search(answer.output), answer.output
    assert "\\x1b" in answer.output


def test_the_page_of_an_evaluation_shows_names_as_text(evil):
    said("evaluate", evil["data"], "--model", evil["model"], "--html", evil["page"])
    text = evil["page"].read_text(encoding="utf-8")
    assert not {"\x1b", "\u202e"} & {*text}
    assert SHOWN in text


@POSIX
def test_predictions_on_a_terminal_are_shown_as_text(evil):
    ours, theirs = os.openpty()
    with start("predict", evil["data"], "--model", evil["model"], stdout=theirs) as process:
        os.close(theirs)
        seen = read_terminal(ours)
    assert process.returncode == 0
    assert SHOWN.encode() in seen
    assert b"\x1b" not in seen
