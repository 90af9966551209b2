"""Atomic writes: files appear complete or not at all."""

from __future__ import annotations

import errno
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = f".ordspan-{re.sub(r'[^A-Za-z0-9]+', '-', platform.node())}-"
"""Prefix of temporary files, with the host: not every shared folder shares its locks."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically."""
    with opened_atomically(path) as file:
        file.write(content)


@contextmanager
def opened_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that replaces ``path`` when the block succeeds, and not before.

    Temporary file, fsync, rename; an error or an interrupt leaves nothing behind, and leftovers of
    a killed process are removed by the next one that writes there. A link stays a link: its target
    is replaced.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.exists():
        raise FileNotFoundError(
            f"there is no folder {path.parent} to write {path.name} to; create it first"
        )
    remove_leftovers(path.parent)
    handle, temporary = _temporary_file(path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # while holding the lock
                _rename(temporary, path)
        if fcntl is None:  # Windows cannot rename an open file
            _rename(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def check_can_write(path: Path) -> None:
    """Raise, before there is work to lose, if a file could not be written."""
    real = Path(os.path.realpath(path))
    try:
        real.exists()  # fails if the name is too long
        if real.is_symlink():  # a loop
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        handle, temporary = _temporary_file(real.parent)
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}); choose another name or folder"
        raise type(error)(message) from None
    os.close(handle)
    os.unlink(temporary)


@cache
def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes on this machine, once per process."""
    if fcntl is None:
        return
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError), open(path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer lives
            path.unlink()


def _temporary_file(folder: Path) -> tuple[int, str]:
    """A new file, open and locked, and its name; the lock ends with the process."""
    while True:
        try:
            handle, name = tempfile.mkstemp(dir=folder, prefix=PREFIX)
        except OSError as error:
            error.filename = str(folder)  # the temporary name would only puzzle
            raise
        if fcntl is not None:
            with suppress(OSError):  # without locks, leftovers are not removed either
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink == 0:  # taken for a leftover before it was locked
                os.close(handle)
                continue
        return handle, name


def _rename(temporary: str, path: Path) -> None:
    os.chmod(temporary, 0o666 & ~_umask())
    os.replace(temporary, path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; Windows cannot open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
