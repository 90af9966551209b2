"""MSLR from a folder or a download, which is pooch's."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from ordspan.datasets import DataUnavailable, letor, load_dataset
from ordspan.datasets.letor import MSLR_SAMPLE, SHA256


def line(grade=0, query=1, **cells):
    values = {str(column): str(column * query) for column in range(1, 137)}
    values |= {name.lstrip("c"): value for name, value in cells.items()}
    pairs = " ".join(f"{name}:{value}" for name, value in values.items() if value is not None)
    return f"{grade} qid:{query} {pairs} \r\n".encode()


ROWS = b"".join(line(grade, grade + 1) for grade in range(5))
PACKED = gzip.compress(ROWS, mtime=0)


@pytest.fixture(scope="module")
def sample(data_dir):
    """The files of the real sample, which alone pass for it."""
    return {name: gzip.decompress((data_dir / f"{name}.gz").read_bytes()) for name in MSLR_SAMPLE}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, and no settings of the person who runs the tests."""
    for name in ("ORDSPAN_DATA", "ORDSPAN_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ORDSPAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def downloads(monkeypatch):
    """What the internet answers, or the error it fails with, and the addresses that were asked."""
    pooch = pytest.importorskip("pooch", reason="needs pooch: pip install 'ordspan[experiments]'")
    asked = []

    class Downloader:
        answer = None

        def __init__(self, timeout):
            assert timeout == letor.TIMEOUT

        def __call__(self, url, file, pup):
            asked.append(url)
            if isinstance(Downloader.answer, Exception):
                raise Downloader.answer
            names = [name for name in MSLR_SAMPLE if url.endswith(name.rpartition("/")[2])]
            Path(file).write_bytes(Downloader.answer[names[0]])

    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    Downloader.asked = asked
    return Downloader


def put(folder, content, ending=""):
    for name in MSLR_SAMPLE:
        path = folder / f"{name}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[name] if isinstance(content, dict) else content)
    return folder


@pytest.mark.parametrize(("content", "ending"), [(ROWS, ""), (PACKED, ".gz")])
def test_a_file_of_the_data_folder_may_be_gzipped(tmp_path, monkeypatch, content, ending):
    given, named = put(tmp_path / "given", content, ending), tmp_path / "named"
    named.mkdir()
    monkeypatch.setenv("ORDSPAN_DATA", str(named))  # the argument comes first
    dataset = load_dataset("mslr", given)
    assert dataset.ranks.tolist() == [1, 2, 3, 4, 5] * 2
    assert dataset.source.endswith(f"file {MSLR_SAMPLE[1]}{ending} of the data folder")


def test_a_folder_that_does_not_exist_and_a_damaged_file_are_refused(tmp_path):
    with pytest.raises(NotADirectoryError, match=r"the data folder .*typo does not exist"):
        load_dataset("abalone", tmp_path / "typo")
    with pytest.raises(ValueError, match=r"5k\.txt, row 1: the grade 'damaged' is not a number"):
        load_dataset("mslr", put(tmp_path, b"damaged"))


def test_the_sample_is_downloaded_once_where_no_folder_has_it(downloads, cache, tmp_path, sample):
    downloads.answer = sample
    put(cache, b"a damaged copy")
    for _ in range(2):
        dataset = load_dataset("mslr", tmp_path)
        assert dataset.X.shape == (10_000, 136)
        assert dataset.source.startswith("sample of 10,000 rows: download of https://raw.")
        assert len(downloads.asked) == 2
    assert set(cache.rglob("*.txt")) == {cache / name for name in MSLR_SAMPLE}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("HTTPError", "404 Client Error: Not Found"),
        ("ConnectionError", "Not Found"),
        ("Timeout", "Not Found"),
        (OSError(28, "No space left\non device"), "No space left on device"),
        (dict.fromkeys(MSLR_SAMPLE, b"<html>please log in</html>"), SHA256[MSLR_SAMPLE[0]]),
    ],
)
def test_a_broken_answer_is_reported_in_one_line_and_leaves_nothing(
    downloads, cache, answer, reason
):
    if isinstance(answer, str):
        answer = getattr(pytest.importorskip("requests").exceptions, answer)(
            "404 Client Error: Not Found"
        )
    downloads.answer = answer
    with pytest.raises(DataUnavailable, match=f"the download failed: .*{reason}") as failure:
        load_dataset("mslr")
    assert "\n" not in str(failure.value)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_offline_only_the_cache_is_asked(downloads, cache, monkeypatch, sample):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    put(cache, sample)
    assert load_dataset("mslr").ranks.size == 10_000
    assert not downloads.asked


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
    assert "disabled by ORDSPAN_OFFLINE" in message
    assert "https://www.microsoft.com/en-us/research/project/mslr/" in message
    for name in ("train.txt of its Fold1", "mslr_web10k_sample", *MSLR_SAMPLE):
        assert name.rpartition("/")[2] in message
    assert "\n" not in message


@pytest.mark.parametrize("inside", [".", "Fold1", "MSLR-WEB10K/Fold1"])
def test_a_full_fold_is_found_in_three_places_and_wins_over_the_sample(tmp_path, inside):
    small = load_dataset("mslr", put(tmp_path, PACKED, ".gz"))
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    (tmp_path / inside / "train.txt").write_bytes(b"# a comment\n\r\n" + 2 * ROWS)
    fold = load_dataset("mslr", tmp_path)
    assert fold.source == "full fold: train.txt"
    assert fold.ranks.tolist() == small.ranks.tolist() == [1, 2, 3, 4, 5] * 2
    assert fold.X.shape == (10, 136)
    np.testing.assert_allclose(fold.X[:5, 0], np.arange(-2, 3) / np.sqrt(2))
    np.testing.assert_array_equal(fold.X, small.X)


NEEDS = "needs a relevance 0..4 and 136 finite numbers"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line(7), NEEDS),
        (line(1.5), NEEDS),
        (line("x"), "the grade 'x' is not a number"),
        (line(c3="abc"), "'3:abc' is not of the form index:value"),
        (line(c3="nan"), NEEDS),
        (line(c136="inf"), NEEDS),
        (line(c5=None), NEEDS),
        (line(c137="1"), "'137:1' is not of the form index:value, .* from 1 to at most 136"),
        (b"", "the file is empty"),
    ],
)
def test_a_bad_row_or_an_empty_fold_is_named(tmp_path, bad, reason):
    path, place = tmp_path / "train.txt", ", row 4" if bad else ""
    path.write_bytes(3 * line() + bad + line() if bad else b"")
    with pytest.raises(ValueError, match=reason) as refusal:
        load_dataset("mslr", tmp_path)
    assert str(refusal.value).startswith(f"{path}{place}: ")
