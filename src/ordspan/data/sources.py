"""Where the files of the public data sets come from: a folder, the cache, the network, a package.

Every file but the full MSLR fold has a known SHA-256, and nothing is handed on before it matches.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

Progress = Callable[[int, int | None], object]
"""Called as ``progress(done_bytes, total_bytes_or_None)`` while a download runs."""

TIMEOUT = 5.0
"""Seconds of silence after which a connection or an answer is given up."""
DEADLINE = 300.0
"""Seconds after which even a trickling answer is given up."""
RETRIES = 2
BACKOFF = 0.5
"""Seconds before the first retry; twice as long before the second."""
MAX_BYTES = 64 << 20
"""Far above the 2 MB of the largest file: stops an endless answer from filling the disk."""
CHUNK = 1 << 16
TRANSIENT_STATUS = (408, 425, 429, 500, 502, 503, 504)


class PublicFile(NamedTuple):
    """A file of a public data set: its place in a data folder, its sum, and its archive."""

    path: str
    sha256: str
    url: str = ""


# The sums are those of the files in the archives; ``fingerprint`` says how they are taken.
FILES = {
    "abalone": PublicFile(
        "abalone/abalone.data",
        "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
        "https://archive.ics.uci.edu/static/public/1/abalone.zip",
    ),
    "california": PublicFile(
        "california_housing/cal_housing.data",
        "a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214",
        "https://ndownloader.figshare.com/files/5976036",
    ),
    "parkinson": PublicFile(
        "parkinsons_telemonitoring/parkinsons_updrs.data",
        "cacdc7007846c68ca852cb3dbb43b1f68b7a9edefa2336f965f6610551cd30e6",
        "https://archive.ics.uci.edu/static/public/189/parkinsons+telemonitoring.zip",
    ),
    "mslr-sample-train": PublicFile(
        "mslr_web10k_sample/msn1.fold1.train.5k.txt.gz",
        "1076088a88b72917280ee3a3488fcdf2ae7283f5cfaeaea6e8c5af9f61bd3b3a",
    ),
    "mslr-sample-test": PublicFile(
        "mslr_web10k_sample/msn1.fold1.test.5k.txt.gz",
        "e44487c3868560ad20cf6dd37a7aa7218f8e50f0c28b22d738bbac59e18019d2",
    ),
    "era": PublicFile(
        "ordinal_bendavid/era.csv",
        "df8a5074fa12f09786d984e98557bb72bbd8e9b053764f5319fca087a3df5ebd",
    ),
    "esl": PublicFile(
        "ordinal_bendavid/esl.csv",
        "9476ac858e1234dc470dc703aea924ca594e7f975d086ffedb66de72ffc02611",
    ),
    "lev": PublicFile(
        "ordinal_bendavid/lev.csv",
        "3425228f1e7c88c68fb4791fe72add8764daea4b429aa1d622e193f121f5b67f",
    ),
    "swd": PublicFile(
        "ordinal_bendavid/swd.csv",
        "25eaafb516497539db2bd9b03868fd38dbefd5c35856661c51fe63e4869fcf79",
    ),
}

MSLR_WAY = (
    "get MSLR-WEB10K from https://www.microsoft.com/en-us/research/project/mslr/, put train.txt, "
    "vali.txt and test.txt of its Fold1 into a folder and name that with data_dir or ORDSPAN_DATA"
)


class DataUnavailable(LookupError):  # noqa: N818 - the name says what is the matter
    """A data set that cannot be had here: its name, the reason and the way to get it.

    Parameters
    ----------
    name : str
        Name of the data set.
    reason : str
        Why it cannot be had.
    way_to_get_it : str
        What to do about it.

    Examples
    --------
    >>> from ordspan.data import DataUnavailable
    >>> print(DataUnavailable("mslr", "no file train.txt", "name its folder with data_dir"))
    mslr: no file train.txt; name its folder with data_dir
    """

    def __init__(self, name: str, reason: str, way_to_get_it: str) -> None:
        super().__init__(name, reason, way_to_get_it)
        self.name, self.reason, self.way_to_get_it = name, reason, way_to_get_it

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}; {self.way_to_get_it}"


class CorruptFile(ValueError):  # noqa: N818
    """A file that is there but is not what it should be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.data import CorruptFile, abalone
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "abalone").mkdir()
    >>> (folder / "abalone" / "abalone.data").write_text("not what it was")
    15
    >>> try:
    ...     abalone(data_dir=folder)
    ... except CorruptFile as error:
    ...     print(str(error).split(": ")[0])
    /.../abalone/abalone.data is damaged or another version
    """


class BrokenAnswer(Exception):  # noqa: N818
    """A download that failed; ``transient`` when trying again may help."""

    def __init__(self, reason: str, *, transient: bool = False) -> None:
        super().__init__(reason)
        self.transient = transient


@dataclass(frozen=True)
class Found:
    """The checked content of a file, and in words where it came from."""

    content: bytes
    source: str
    path: Path | None = None  # where it lies, if it is a file in a folder


def fingerprint(content: bytes, name: str) -> str:
    """SHA-256 of a file; of text with LF line ends and one at the end, as copies differ in these.

    >>> fingerprint(b"1,2\\r\\n3,4", "a.data") == fingerprint(b"1,2\\n3,4\\n", "a.data")
    True
    """
    if not name.endswith(".gz"):
        content = content.replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n"
    return hashlib.sha256(content).hexdigest()


def usual_cache(platform: str, env: Mapping[str, str]) -> Path:
    """The cache folder: ORDSPAN_CACHE, else where the platform keeps such things."""
    if env.get("ORDSPAN_CACHE"):
        return Path(env["ORDSPAN_CACHE"]).expanduser()
    if platform == "win32":
        return Path(env.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ordspan"
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ordspan"


def folders(data_dir: str | os.PathLike[str] | None = None) -> list[tuple[str, Path]]:
    """The folders to look in, first to last, each with its name in words.

    Parameters
    ----------
    data_dir : path, optional
        Folder with the data; left out, the one ORDSPAN_DATA names, if any. One that does not
        exist is refused, so that a slip of the pen does not start a download.
    """
    found = [("cache folder", usual_cache(sys.platform, os.environ))]
    given = data_dir or os.environ.get("ORDSPAN_DATA")
    if not given:
        return found
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(f"the data folder {folder} does not exist or is not a folder")
    return [("data folder", folder), *found]


def look_up(name: str, data_dir: str | os.PathLike[str] | None = None) -> Found | None:
    """The first copy of a file in the folders, its sum checked; None when there is none."""
    wanted = FILES[name]
    for where, folder in folders(data_dir):
        path = folder / wanted.path
        if path.is_file():
            content = path.read_bytes()
            if fault := wrong_sum(content, wanted):
                raise CorruptFile(f"{path} {fault}; delete or replace it")
            return Found(content, f"file {wanted.path} of the {where}", path)
    return None


def wrong_sum(content: bytes, wanted: PublicFile) -> str:
    """What is wrong with the sum of a content; empty when nothing is."""
    found = fingerprint(content, wanted.path)
    if found == wanted.sha256:
        return ""
    return f"is damaged or another version: SHA-256 {found}, expected {wanted.sha256}"


def find_fold(
    parts: tuple[str, ...], data_dir: str | os.PathLike[str] | None = None
) -> tuple[Path, ...]:
    """The files of a full MSLR fold in the first folder that has one; empty when none has."""
    for _, folder in folders(data_dir):
        for fold in (folder, folder / "Fold1", folder / "MSLR-WEB10K" / "Fold1"):
            missing = [part for part in parts if not (fold / part).is_file()]
            if not missing:
                return tuple(fold / part for part in parts)
            if len(missing) < len(parts):  # half a fold is a mistake, not a reason to look on
                reason = f"{fold} has no {' and no '.join(missing)}"
                raise DataUnavailable("mslr", reason, MSLR_WAY)
    return ()


def find(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Found:
    """The content of a public file from the first place that has it.

    Parameters
    ----------
    name : str
        A key of ``FILES`` with an address.
    data_dir : path, optional
        Folder to look in first; left out, the one ORDSPAN_DATA names, if any. The cache folder,
        the network (unless ORDSPAN_OFFLINE is set) and installed packages follow.
    progress : callable, optional
        Called with the bytes done and the bytes in all, or None, while a download runs.

    Returns
    -------
    Found
        Content and source.

    Raises
    ------
    CorruptFile
        A file is there, but its sum is wrong.
    DataUnavailable
        No place has it.
    """
    here = look_up(name, data_dir)
    if here is not None:
        return here
    try:
        return Found(fetch(name, progress), f"download from {FILES[name].url}")
    except BrokenAnswer as fault:
        packaged = _abalone_of_scikit_lego() if name == "abalone" else None
        if packaged is not None:
            return packaged
        raise _unavailable(name, data_dir, str(fault)) from None


def _unavailable(
    name: str, data_dir: str | os.PathLike[str] | None, reason: str
) -> DataUnavailable:
    wanted = FILES[name]
    places = " or ".join(str(folder) for _, folder in folders(data_dir))
    return DataUnavailable(
        name,
        f"no {wanted.path} in {places}, and {reason}",
        f"get it from {wanted.url} and unpack it to that place in a folder named with data_dir "
        "or ORDSPAN_DATA",
    )


def fetch(name: str, progress: Progress | None = None) -> bytes:
    """Download a file into the cache, trying again after a passing fault; its checked content."""
    if os.environ.get("ORDSPAN_OFFLINE", "") not in ("", "0"):
        raise BrokenAnswer("the network is switched off by ORDSPAN_OFFLINE")
    for attempt in range(RETRIES + 1):
        try:
            return _fetch_once(FILES[name], progress)
        except BrokenAnswer as fault:
            if not fault.transient or attempt == RETRIES:
                raise
        time.sleep(BACKOFF * 2**attempt)
    raise AssertionError("unreachable")


def _fetch_once(wanted: PublicFile, progress: Progress | None) -> bytes:
    target = usual_cache(sys.platform, os.environ) / wanted.path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Within the cache, so that the last move is a rename: a file is there whole or not at all.
        with tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent) as workplace:
            archive, member = Path(workplace, "archive"), Path(workplace, "member")
            _save_answer(wanted.url, archive, progress)
            content = _member(archive, target.name)
            if fault := wrong_sum(content, wanted):
                raise BrokenAnswer(f"{target.name} from {wanted.url} {fault}")
            member.write_bytes(content)
            member.replace(target)
    except OSError as error:  # a full disk, a cache folder that cannot be written
        raise BrokenAnswer(f"the download failed: {error}") from None
    return content


def _save_answer(url: str, target: Path, progress: Progress | None) -> None:
    """Stream the answer into a file; every fault becomes a BrokenAnswer in words."""
    # Here, because they are slow to import and most runs never download.
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    request = Request(url, headers={"User-Agent": "ordspan"})
    try:
        with urlopen(request, timeout=TIMEOUT) as answer, target.open("wb") as out:
            _copy(answer, out, progress)
    except HTTPError as fault:
        fault.close()
        reason = f"{url} answered {fault.code} {fault.reason}"
        raise BrokenAnswer(reason, transient=fault.code in TRANSIENT_STATUS) from None
    except URLError as fault:
        # Not tried again: a machine without a network should move on at once.
        raise BrokenAnswer(f"{url} cannot be reached: {fault.reason}") from None
    except TimeoutError:
        raise BrokenAnswer(f"{url} did not answer in time", transient=True) from None
    except (HTTPException, ConnectionError) as fault:
        reason = f"{url} broke off: {type(fault).__name__} {fault}"
        raise BrokenAnswer(reason, transient=True) from None


def _copy(answer: Any, out: IO[bytes], progress: Progress | None) -> None:
    length = answer.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    done, stop = 0, time.monotonic() + DEADLINE
    # read1 returns what has come: read would wait for a full chunk and outlive the deadline
    while chunk := answer.read1(CHUNK):
        out.write(chunk)
        done += len(chunk)
        if progress is not None:
            progress(done, total)
        if done > MAX_BYTES:
            raise BrokenAnswer(f"the server sent more than {MAX_BYTES} bytes")
        if time.monotonic() > stop:
            raise TimeoutError
    if total is not None and done != total:
        raise BrokenAnswer(f"the answer broke off after {done} of {total} bytes", transient=True)


def _member(archive: Path, name: str) -> bytes:
    """The file of that name in a zip or tar archive, in whatever folder it lies there."""
    import tarfile
    import zipfile
    import zlib

    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                return zipped.open(_named(zipped.namelist(), name)).read(MAX_BYTES)
        with tarfile.open(archive) as tarred:
            content = tarred.extractfile(_named(tarred.getnames(), name))
            return content.read(MAX_BYTES) if content else b""
    except tarfile.ReadError:
        raise BrokenAnswer("the answer is not a zip or tar archive") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, LookupError, RuntimeError) as fault:
        raise BrokenAnswer(f"the archive is damaged: {fault}") from None


def _named(members: list[str], name: str) -> str:
    for member in members:
        if PurePosixPath(member).name == name:
            return member
    raise LookupError(f"no {name} among {', '.join(members[:5])}")


def _abalone_of_scikit_lego() -> Found | None:
    """Abalone as scikit-lego ships it; None when that is not installed or ships another one."""
    import zipfile
    from importlib.util import find_spec

    spec = find_spec("sklego")  # finds the package without importing it
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "data", "abalone.zip")
        if path.is_file():
            with zipfile.ZipFile(path) as zipped:
                lines = zipped.read(zipped.namelist()[0]).decode().splitlines()
            content = "\n".join(map(_as_printed, lines[1:])).encode()  # the first is a header
            if not wrong_sum(content, FILES["abalone"]):
                return Found(content, "copy inside the installed package scikit-lego")
    return None


def _as_printed(line: str) -> str:
    """A row with the rounding noise of its numbers taken off.

    >>> _as_printed("M,0.10099999999999999,15")
    'M,0.101,15'
    """
    sex, *numbers = line.split(",")
    return ",".join([sex, *(f"{float(number):.12g}" for number in numbers)])
