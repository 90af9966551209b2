"""Downloads are tried against a server on this machine; no test reaches beyond it."""

import gc
import gzip
import hashlib
import pickle
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ordspan import datasets
from ordspan.datasets import CorruptFile, DataUnavailable, sources
from ordspan.datasets.sources import data_folder, fetch, look_up

CONTENT = b"1,2,3\n4,5,6\n" * 50_000
PATH = "toy/toy.data"

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of failed requests


def sha256(content):
    return hashlib.sha256(content).hexdigest()


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
    """A cache of its own, and no settings of the person who runs the tests."""
    for name in ("ORDSPAN_DATA", "ORDSPAN_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ORDSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(sources.SHA256, PATH, sha256(CONTENT))
    monkeypatch.setitem(sources.SHA256, f"{PATH}.gz", sha256(gzip.compress(CONTENT, mtime=0)))
    return tmp_path / "cache"


@pytest.fixture
def server(monkeypatch):
    pytest.importorskip("pooch", reason="needs pooch: pip install 'ordspan[experiments]'")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    gc.freeze()  # what is there already need not be looked at
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}/toy.data"
        monkeypatch.setattr(sources, "URLS", dict.fromkeys((PATH, *sources.MSLR_SAMPLE), url))
        yield running
        running.release.set()
        running.shutdown()
        thread.join()
        gc.collect()  # their sockets are closed here, not in a later test
        gc.unfreeze()


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def put(folder, content=CONTENT, path=PATH):
    file = folder / path
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return file


# ---- the data folder -------------------------------------------------------------------------


def test_the_argument_comes_before_the_environment(tmp_path, monkeypatch):
    given, named = tmp_path / "given", tmp_path / "named"
    given.mkdir()
    named.mkdir()
    assert data_folder() is None
    monkeypatch.setenv("ORDSPAN_DATA", str(named))
    assert data_folder() == named
    assert data_folder(given) == given


def test_a_data_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(NotADirectoryError, match=r"the data folder .*typo does not exist"):
        look_up(PATH, tmp_path / "typo")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_file_of_the_data_folder_may_be_gzipped(tmp_path, ending):
    content = gzip.compress(CONTENT, mtime=0) if ending else CONTENT
    path = put(tmp_path, content, PATH + ending)
    assert look_up(PATH, tmp_path) == (path, f"file {PATH}{ending} of the data folder")
    assert look_up(PATH) is None


def test_a_damaged_file_is_refused_with_its_path_and_the_digest(tmp_path):
    path = put(tmp_path, bytes([CONTENT[0] ^ 1]) + CONTENT[1:])
    with pytest.raises(CorruptFile) as refusal:
        look_up(PATH, tmp_path)
    assert str(path) in str(refusal.value)
    assert sha256(CONTENT) in str(refusal.value)


# ---- the network -----------------------------------------------------------------------------


def test_a_good_answer_is_stored_and_not_asked_for_again(server, cache):
    server.will_answer((200, CONTENT))
    for _ in range(2):
        path, source = fetch(PATH)
        assert path.read_bytes() == CONTENT
        assert source.startswith("download of http://127.0.0.1")
        assert files_in(cache) == [cache / PATH]
        assert server.n_requests == 1


def test_a_damaged_copy_in_the_cache_is_replaced(server, cache):
    put(cache, b"damaged")
    server.will_answer((200, CONTENT))
    assert fetch(PATH)[0].read_bytes() == CONTENT


def test_a_passing_fault_is_tried_again(server):
    server.will_answer((500, b""), (200, CONTENT))
    assert fetch(PATH)[0].read_bytes() == CONTENT
    assert server.n_requests == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, b"gone"), "404 Client Error: Not Found"),
        ((200, CONTENT[:50], 5000), "50 bytes read"),
        ("silence", "127.0.0.1:[0-9]+ cannot be reached"),
        ((200, b"<html>please log in</html>"), sha256(CONTENT)),
    ],
)
def test_a_broken_answer_is_reported_in_one_line_and_leaves_nothing(
    server, cache, monkeypatch, answer, reason
):
    server.will_answer(answer)
    if answer == "silence":
        monkeypatch.setattr(sources, "TIMEOUT", 0.3)
    with pytest.raises(ConnectionError, match=f"^the download failed: .*{reason}") as failure:
        fetch(PATH)
    assert "\n" not in str(failure.value)
    assert files_in(cache) == []


def test_offline_only_the_cache_is_asked(server, cache, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    with pytest.raises(ConnectionError, match="disabled by ORDSPAN_OFFLINE"):
        fetch(PATH)
    (cache / PATH).write_bytes(CONTENT)
    assert fetch(PATH)[0] == cache / PATH
    assert server.n_requests == 0


def test_a_cache_that_cannot_be_written_is_reported(server, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(ConnectionError, match=r"the download failed: .*cache"):
        fetch(PATH)


def test_without_pooch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ConnectionError, match=r"needs pooch: pip install 'ordspan\[experiments\]'"):
        fetch(sources.MSLR_SAMPLE[0])


# ---- MSLR ------------------------------------------------------------------------------------

ROWS = "".join(
    f"{grade} qid:1 " + " ".join(f"{column}:{grade * column}" for column in range(1, 137)) + "\n"
    for grade in range(5)
).encode()


def test_the_sample_is_downloaded_where_no_folder_has_it(server, cache, tmp_path, monkeypatch):
    for path in sources.MSLR_SAMPLE:
        monkeypatch.setitem(sources.SHA256, path, sha256(ROWS))
    server.will_answer((200, ROWS))
    dataset = datasets.load_dataset("mslr", tmp_path)
    assert dataset.ranks.tolist() == [1, 2, 3, 4, 5] * 2
    assert dataset.source.startswith("sample of 10,000 rows: download of http://127.0.0.1")
    assert {path.name for path in files_in(cache)} == {
        path.rpartition("/")[2] for path in sources.MSLR_SAMPLE
    }


def test_without_mslr_the_message_names_page_files_and_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    with pytest.raises(DataUnavailable) as failure:
        datasets.load_dataset("mslr", tmp_path)
    error = pickle.loads(pickle.dumps(failure.value))  # as a worker passes it on
    message = str(error)
    assert message == f"mslr: {error.reason}; {error.way_to_get_it}"
    assert message.startswith(f"mslr: no train.txt and no {sources.MSLR_SAMPLE[0]} in {tmp_path}")
    assert "https://www.microsoft.com/en-us/research/project/mslr/" in message
    for name in ("train.txt, vali.txt and test.txt", "mslr_web10k_sample", *sources.MSLR_SAMPLE):
        assert name.rpartition("/")[2] in error.way_to_get_it
    assert "\n" not in message
