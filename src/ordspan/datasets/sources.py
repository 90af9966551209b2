"""Sources of data sets that do not ship with the package: a data folder, or the network.

Every file but those of a full MSLR fold has a known SHA-256 and is used only if that matches.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NoReturn

DataDir = str | os.PathLike[str] | None
Found = tuple[Path, str]
"""A file with a verified digest, and where it comes from."""

MSLR_SAMPLE = (
    "mslr_web10k_sample/msn1.fold1.train.5k.txt",
    "mslr_web10k_sample/msn1.fold1.test.5k.txt",
)
RANKEVAL = (
    "https://raw.githubusercontent.com/hpclab/rankeval/6c7d5981c54fde19b882c9a01e095cc67d439e4d/"
    "rankeval/test/data/"
)
URLS = {path: RANKEVAL + path.rpartition("/")[2] for path in MSLR_SAMPLE}
SHA256 = {
    MSLR_SAMPLE[0]: "6d1721de961a35fbaef7085dc5b41e2940f0ddb04bab5f7a8566cf7db4158fa6",
    f"{MSLR_SAMPLE[0]}.gz": "1076088a88b72917280ee3a3488fcdf2ae7283f5cfaeaea6e8c5af9f61bd3b3a",
    MSLR_SAMPLE[1]: "13d3c638edd23e482c38f4316c2680c938c2eaedbe096970ab30a48e364463d3",
    f"{MSLR_SAMPLE[1]}.gz": "e44487c3868560ad20cf6dd37a7aa7218f8e50f0c28b22d738bbac59e18019d2",
}
TIMEOUT = 10.0
"""Seconds without a response before a download is abandoned."""


class DataUnavailable(LookupError):  # noqa: N818 - the name describes the problem
    """The data set is not available: its name, the reason and how to get it.

    Parameters
    ----------
    name : str
        Name of the data set.
    reason : str
        Why it is not available.
    way_to_get_it : str
        What to do about it.

    Examples
    --------
    >>> from ordspan.datasets import DataUnavailable
    >>> print(DataUnavailable("mslr", "no file train.txt", "name its folder with data_dir"))
    mslr: no file train.txt; name its folder with data_dir
    """

    def __init__(self, name: str, reason: str, way_to_get_it: str) -> None:
        super().__init__(name, reason, way_to_get_it)
        self.name, self.reason, self.way_to_get_it = name, reason, way_to_get_it

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}; {self.way_to_get_it}"


class CorruptFile(ValueError):  # noqa: N818
    """The file exists, but its content is not the expected one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.datasets import CorruptFile, mslr
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "train.txt").write_text("not what it was")
    15
    >>> try:
    ...     mslr(data_dir=folder)
    ... except CorruptFile as error:
    ...     print(str(error).split(": ")[0])
    /.../train.txt, row 1
    """


def data_folder(data_dir: DataDir = None) -> Path | None:
    """The given folder, or the one named by ORDSPAN_DATA; it must exist."""
    given = data_dir or os.environ.get("ORDSPAN_DATA")
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(f"the data folder {folder} does not exist or is not a folder")
    return folder


def look_up(name: str, data_dir: DataDir = None) -> Found | None:
    """A file of the data folder, plain or gzipped, with a verified digest, if there is one."""
    folder = data_folder(data_dir)
    for known in (name, f"{name}.gz") if folder else ():
        path = Path(folder or "", known)
        if not path.is_file():
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256[known]:
            raise CorruptFile(
                f"{path} is damaged or another version: its SHA-256 is not {SHA256[known]}; "
                "delete or replace it"
            )
        return path, f"file {known} of the data folder"
    return None


def fetch(name: str) -> Found:
    """A file from the cache, downloaded if it is not there yet.

    Parameters
    ----------
    name : str
        A key of ``URLS``.

    Raises
    ------
    ConnectionError
        The file cannot be downloaded; the message says why.
    """
    try:
        import pooch
        from requests import exceptions
    except ModuleNotFoundError as missing:
        raise ConnectionError(
            f"downloading needs {missing.name}: pip install 'ordspan[experiments]'"
        ) from None
    pooch.get_logger().setLevel("WARNING")
    offline = os.environ.get("ORDSPAN_OFFLINE", "") not in ("", "0")
    web = pooch.HTTPDownloader(timeout=TIMEOUT)
    try:
        cache = pooch.create(
            path=pooch.os_cache("ordspan"),
            env="ORDSPAN_CACHE",
            base_url="",
            registry={known: SHA256[known] for known in URLS},
            urls=URLS,
            retry_if_failed=1,
        )
        path = cache.fetch(name, downloader=_refuse_download if offline else web)
    except (exceptions.ConnectionError, exceptions.Timeout):
        host = URLS[name].split("/")[2]
        raise ConnectionError(f"the download failed: {host} cannot be reached") from None
    except (OSError, ValueError) as fault:  # an HTTP error, another file, or a full disk
        raise ConnectionError(f"the download failed: {' '.join(str(fault).split())}") from None
    return Path(path), f"download of {URLS[name]}"


def _refuse_download(url: str, *target: object) -> NoReturn:
    raise OSError("downloads are disabled by ORDSPAN_OFFLINE")
