"""Writing files: complete or not at all, and by one process at a time."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

from ordspan.tables.rows import FileError

NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def report_full_disk(path: str | Path) -> Iterator[None]:
    """Report which file filled the disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise OSError(f"{path}: {error.strerror}; free some space, or write elsewhere") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file")
    with opened_atomically(path) as file:
        file.write(content)


@contextmanager
def opened_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that replaces ``path`` when the block succeeds, and not before.

    Temporary file, fsync, rename; of several writers at once, the last one wins. An error or an
    interrupt leaves nothing behind; a killed process leaves its temporary file, ``*.partial``,
    which may be deleted. A link stays a link: its target is replaced.
    """
    file = _temporary_file(path)
    try:
        with report_full_disk(path), file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        real = os.path.realpath(path)
        os.replace(file.name, real)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise
    if os.name == "posix":  # make the rename itself durable; Windows cannot open folders
        folder = os.open(os.path.dirname(real), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def check_can_write(path: Path) -> None:
    """Raise, before there is work to lose, if a file could not be written."""
    with _temporary_file(path) as file:
        pass
    os.unlink(file.name)


def _temporary_file(path: Path) -> IO[bytes]:
    """A new file beside a file, with a name of its own and the usual permissions."""
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    temporary = os.path.join(folder, f"{name[:50]}.{token_hex(8)}.partial")
    try:
        with suppress(FileNotFoundError):
            os.stat(real)  # fails if the name is too long, or a loop of links
        return open(temporary, "xb")
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}); choose another name or folder"
        raise type(error)(message) from None


@contextmanager
def sole_writer(path: Path, state: str = "being trained") -> Iterator[None]:
    """Raise if another process is training the model at this path.

    The system releases the lock of a killed process.
    """
    from filelock import FileLock, Timeout

    real = Path(os.path.realpath(path))  # several links may point to one model
    name = real.with_name(f".{real.name}.lock")
    try:
        with FileLock(name, timeout=0):
            try:
                yield
            finally:
                with suppress(OSError):  # Windows cannot remove an open file
                    name.unlink()  # while it is ours
    except Timeout:
        raise FileError(
            f"{path} is {state} by another process; wait for it, or choose another path"
        ) from None
