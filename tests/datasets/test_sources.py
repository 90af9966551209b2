"""MSLR from a folder or a download, tried against a server on this machine."""

import gc
import gzip
import hashlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ordspan.datasets import CorruptFile, DataUnavailable, letor, load_dataset
from ordspan.datasets.letor import MSLR_SAMPLE

ROWS = "".join(
    f"{grade} qid:1 " + " ".join(f"{column}:{grade * column}" for column in range(1, 137)) + "\n"
    for grade in range(5)
).encode()
PACKED = gzip.compress(ROWS, mtime=0)

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of failed requests


class Handler(BaseHTTPRequestHandler):
    """Gives the scripted answer: status, content and announced length; or none at all."""

    def do_GET(self):
        self.server.n_requests += 1
        if self.server.answer == "silence":
            self.server.release.wait(5)
            return
        status, body, length = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, other files, and no settings of the person who runs the tests."""
    for name in ("ORDSPAN_DATA", "ORDSPAN_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ORDSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in MSLR_SAMPLE:
        monkeypatch.setitem(letor.SHA256, name, hashlib.sha256(ROWS).hexdigest())
        monkeypatch.setitem(letor.SHA256, f"{name}.gz", hashlib.sha256(PACKED).hexdigest())
    return tmp_path / "cache"


@pytest.fixture
def server(monkeypatch):
    pytest.importorskip("pooch", reason="needs pooch: pip install 'ordspan[experiments]'")
    gc.freeze()  # what is there already need not be looked at
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        running.answer, running.n_requests = (200, ROWS, len(ROWS)), 0
        running.release = threading.Event()
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        monkeypatch.setattr(letor, "RANKEVAL", f"http://127.0.0.1:{running.server_port}/")
        yield running
        running.release.set()
        running.shutdown()
        thread.join()
        gc.collect()  # their sockets are closed here, not in a later test
        gc.unfreeze()


def put(folder, content, ending=""):
    for name in MSLR_SAMPLE:
        path = folder / f"{name}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.mark.parametrize(("content", "ending"), [(ROWS, ""), (PACKED, ".gz")])
def test_a_file_of_the_data_folder_may_be_gzipped(tmp_path, monkeypatch, content, ending):
    given, named = put(tmp_path / "given", content, ending), tmp_path / "named"
    named.mkdir()
    monkeypatch.setenv("ORDSPAN_DATA", str(named))  # the argument comes first
    dataset = load_dataset("mslr", given)
    assert dataset.ranks.tolist() == [1, 2, 3, 4, 5] * 2
    assert dataset.source.endswith(f"file {MSLR_SAMPLE[1]}{ending} of the data folder")


def test_a_data_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(NotADirectoryError, match=r"the data folder .*typo does not exist"):
        load_dataset("abalone", tmp_path / "typo")


def test_a_damaged_file_is_refused_with_its_path_and_the_digest(tmp_path):
    folder = put(tmp_path, b"damaged")
    with pytest.raises(CorruptFile) as refusal:
        load_dataset("mslr", folder)
    assert str(folder / MSLR_SAMPLE[0]) in str(refusal.value)
    assert letor.SHA256[MSLR_SAMPLE[0]] in str(refusal.value)


def test_the_sample_is_downloaded_once_where_no_folder_has_it(server, cache, tmp_path):
    put(cache, b"a damaged copy")
    for _ in range(2):
        dataset = load_dataset("mslr", tmp_path)
        assert dataset.ranks.tolist() == [1, 2, 3, 4, 5] * 2
        assert dataset.source.startswith("sample of 10,000 rows: download of http://127.0.0.1")
        assert server.n_requests == 2
    assert set(cache.rglob("*.txt")) == {cache / name for name in MSLR_SAMPLE}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, b"gone", 4), "404 Client Error: Not Found"),
        ((200, ROWS[:50], 5000), "50 bytes read"),
        ("silence", "127.0.0.1:[0-9]+ cannot be reached"),
        ((200, b"<html>please log in</html>", 26), hashlib.sha256(ROWS).hexdigest()),
    ],
)
def test_a_broken_answer_is_reported_in_one_line_and_leaves_nothing(
    server, cache, monkeypatch, answer, reason
):
    server.answer = answer
    monkeypatch.setattr(letor, "TIMEOUT", 0.3)
    with pytest.raises(DataUnavailable, match=f"the download failed: .*{reason}") as failure:
        load_dataset("mslr")
    assert "\n" not in str(failure.value)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_offline_only_the_cache_is_asked(server, cache, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    with pytest.raises(DataUnavailable, match="disabled by ORDSPAN_OFFLINE"):
        load_dataset("mslr")
    put(cache, ROWS)
    assert load_dataset("mslr").ranks.size == 10
    assert server.n_requests == 0


def test_a_cache_that_cannot_be_written_is_reported(server, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataUnavailable, match=r"the download failed: .*cache"):
        load_dataset("mslr")


def test_without_pooch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataUnavailable, match=r"needs pooch: pip install 'ordspan\[experiments\]'"):
        load_dataset("mslr")


def test_without_mslr_the_message_names_page_files_and_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    with pytest.raises(DataUnavailable) as failure:
        load_dataset("mslr", tmp_path)
    message = str(failure.value)
    assert message.startswith(f"no train.txt and no {MSLR_SAMPLE[0]} in {tmp_path}")
    assert "https://www.microsoft.com/en-us/research/project/mslr/" in message
    for name in ("train.txt of its Fold1", "mslr_web10k_sample", *MSLR_SAMPLE):
        assert name.rpartition("/")[2] in message
    assert "\n" not in message
