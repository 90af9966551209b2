"""Network code is tried against a server on this machine; no test reaches beyond it."""

import io
import pickle
import socket
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from ordspan.data import sources
from ordspan.data.sources import CorruptFile, DataUnavailable, PublicFile, find, fingerprint

CONTENT = b"1,2,3\n4,5,6\n" * 500
PATH = "toy/toy.data"


def zipped(content=CONTENT, member="toy.data"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("read.me", "a toy")
        archive.writestr(member, content)
    return out.getvalue()


def tarred(content=CONTENT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        entry = tarfile.TarInfo("Folder/toy.data")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


class Server(ThreadingHTTPServer):
    """Gives the scripted answers in turn, the last one again and again."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.n_requests, self.release = [], 0, threading.Event()

    def will_answer(self, *answers):
        self.answers = list(answers)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        answers = self.server.answers
        answer = answers[min(self.server.n_requests, len(answers) - 1)]
        self.server.n_requests += 1
        if answer == "silence":
            self.server.release.wait(5)
            return
        status, body, length = (*answer, len(answer[1]))[:3]
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, short waits, and no settings of the person who runs the tests."""
    for name in ("ORDSPAN_DATA", "ORDSPAN_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ORDSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(sources, "TIMEOUT", 0.3)
    monkeypatch.setattr(sources, "BACKOFF", 0.01)
    return tmp_path / "cache"


@pytest.fixture
def server(monkeypatch):
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}/toy.zip"
        toy = PublicFile(PATH, fingerprint(CONTENT, PATH), url)
        monkeypatch.setitem(sources.FILES, "toy", toy)
        yield running
        running.release.set()
        running.shutdown()
        thread.join()


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def put(folder, content=CONTENT):
    path = folder / PATH
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


# ---- sums ------------------------------------------------------------------------------------


def test_line_ends_do_not_change_the_sum_of_a_text():
    unix, windows, bare = b"a\nb\n", b"a\r\nb\r\n", b"a\r\nb"
    assert len({fingerprint(text, "x.data") for text in (unix, windows, bare)}) == 1
    assert fingerprint(unix, "x.data") != fingerprint(b"a\nc\n", "x.data")


def test_bytes_of_a_packed_file_count_as_they_are():
    assert fingerprint(b"a\r\n", "x.gz") != fingerprint(b"a\n", "x.gz")


# ---- the order of the places -----------------------------------------------------------------


def test_the_given_folder_comes_before_the_cache_and_the_network(server, cache, tmp_path):
    put(tmp_path / "mine")
    put(cache)
    assert find("toy", tmp_path / "mine").source == f"file {PATH} of the data folder"
    assert find("toy").source == f"file {PATH} of the cache folder"
    assert server.n_requests == 0


def test_the_argument_comes_before_the_environment(server, tmp_path, monkeypatch):
    put(tmp_path / "argument")
    put(tmp_path / "environment", b"damaged")
    monkeypatch.setenv("ORDSPAN_DATA", str(tmp_path / "environment"))
    assert find("toy", tmp_path / "argument").content == CONTENT
    with pytest.raises(CorruptFile):
        find("toy")


def test_a_data_folder_without_the_file_leads_on(server, tmp_path):
    server.will_answer((200, zipped()))
    assert find("toy", tmp_path).source.startswith("download from http://127.0.0.1")


def test_a_data_folder_that_does_not_exist_is_refused(server, tmp_path):
    with pytest.raises(NotADirectoryError, match=r"the data folder .*typo does not exist"):
        find("toy", tmp_path / "typo")
    assert server.n_requests == 0


@pytest.mark.parametrize("place", ["mine", "cache"])
def test_a_damaged_file_is_refused_by_name_and_both_sums(server, tmp_path, place):
    damaged = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]
    path = put(tmp_path / place, damaged)
    (tmp_path / "mine").mkdir(exist_ok=True)
    with pytest.raises(CorruptFile) as refusal:
        find("toy", tmp_path / "mine")
    for part in (str(path), fingerprint(CONTENT, PATH), fingerprint(damaged, PATH)):
        assert part in str(refusal.value)
    assert server.n_requests == 0


def test_the_cache_folder_follows_the_habits_of_the_platform():
    home = Path.home()
    assert sources.usual_cache("linux", {}) == home / ".cache" / "ordspan"
    assert sources.usual_cache("linux", {"XDG_CACHE_HOME": "/x"}) == Path("/x/ordspan")
    assert sources.usual_cache("win32", {"LOCALAPPDATA": "/local"}) == Path("/local/ordspan")
    assert sources.usual_cache("win32", {}) == home / "AppData" / "Local" / "ordspan"
    assert sources.usual_cache("linux", {"ORDSPAN_CACHE": "~/here"}) == home / "here"


# ---- the network -----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [zipped(), zipped(member="deep/toy.data"), tarred()])
def test_a_good_answer_is_stored_and_not_asked_for_again(server, cache, body):
    server.will_answer((200, body))
    assert find("toy").content == CONTENT
    assert files_in(cache) == [cache / PATH]
    assert find("toy").source == f"file {PATH} of the cache folder"
    assert server.n_requests == 1


def test_other_line_ends_in_the_archive_are_the_same_file(server):
    content = CONTENT.replace(b"\n", b"\r\n").rstrip()
    server.will_answer((200, zipped(content)))
    assert find("toy").content == content


@pytest.mark.parametrize("total_known", [True, False])
def test_progress_ends_at_the_whole(server, total_known):
    body = zipped()
    server.will_answer((200, body, len(body) if total_known else None))
    seen = []
    find("toy", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(body), len(body) if total_known else None)
    assert seen == sorted(seen)


@pytest.mark.parametrize("fault", [(500, b""), (503, b""), (200, zipped()[:50], 5000), "silence"])
def test_a_passing_fault_is_tried_again(server, fault):
    server.will_answer(fault, fault, (200, zipped()))
    assert find("toy").content == CONTENT
    assert server.n_requests == 3


@pytest.mark.parametrize(
    ("answer", "reason", "n_requests"),
    [
        ((404, b"gone"), "answered 404 Not Found", 1),
        ((403, b""), "answered 403 Forbidden", 1),
        ((500, b""), "answered 500", 3),
        ((200, zipped()[:50], 5000), "broke off after 50 of 5000 bytes", 3),
        ("silence", "did not answer in time", 3),
        ((200, b"<html>please log in</html>"), "not a zip or tar archive", 1),
        ((200, b""), "not a zip or tar archive", 1),
        ((200, zipped(b"other")), "is damaged or another version: SHA-256", 1),
        ((200, zipped(member="other.data")), "no toy.data among read.me, other.data", 1),
    ],
)
def test_a_broken_answer_is_told_in_one_line_and_leaves_nothing(
    server, cache, answer, reason, n_requests
):
    server.will_answer(answer)
    with pytest.raises(DataUnavailable) as failure:
        find("toy")
    message = str(failure.value)
    assert message.startswith(f"toy: no {PATH} in {cache}, and ")
    assert reason in message
    assert "; get it from http://127.0.0.1" in message
    assert "\n" not in message
    assert files_in(cache) == []
    assert server.n_requests == n_requests


def test_an_endless_answer_is_cut_off(server, cache, monkeypatch):
    monkeypatch.setattr(sources, "MAX_BYTES", 1000)
    server.will_answer((200, bytes(100_000), None))
    with pytest.raises(DataUnavailable, match="sent more than 1000 bytes"):
        find("toy")
    assert files_in(cache) == []


def test_a_trickling_answer_ends_at_the_deadline(server, monkeypatch):
    monkeypatch.setattr(sources, "DEADLINE", -1.0)
    server.will_answer((200, zipped()))
    with pytest.raises(DataUnavailable, match="did not answer in time"):
        find("toy")


def test_a_closed_port_is_not_tried_again(server, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    monkeypatch.setitem(sources.FILES, "toy", sources.FILES["toy"]._replace(url=url))
    monkeypatch.setattr(sources, "BACKOFF", 1e9)  # a second try would hang here
    with pytest.raises(DataUnavailable, match="cannot be reached"):
        find("toy")


def test_offline_asks_nobody(server, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    with pytest.raises(DataUnavailable, match="switched off by ORDSPAN_OFFLINE"):
        find("toy")
    assert server.n_requests == 0


def test_a_cache_that_cannot_be_written_is_told(server, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataUnavailable, match=r"the download failed: .*cache"):
        find("toy")


def test_the_error_survives_a_process_border():
    error = pickle.loads(pickle.dumps(DataUnavailable("toy", "why", "how")))
    assert str(error) == "toy: why; how"
    assert (error.name, error.reason, error.way_to_get_it) == ("toy", "why", "how")


# ---- installed packages ----------------------------------------------------------------------


@pytest.mark.skipif(find_spec("sklego") is None, reason="scikit-lego is not installed")
def test_scikit_lego_has_abalone_to_the_last_digit(monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    found = find("abalone")
    assert found.source == "copy inside the installed package scikit-lego"
    wanted = sources.FILES["abalone"]
    assert fingerprint(found.content, wanted.path) == wanted.sha256


def test_abalone_without_any_copy_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataUnavailable, match=r"get it from https://archive\.ics\.uci\.edu"):
        find("abalone")
