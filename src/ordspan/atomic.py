"""Files that appear whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by another content at once."""
    with opened_atomically(path) as file:
        file.write(content)


@contextmanager
def opened_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes the name ``path`` when the block ends well, and not before.

    Temporary file, fsync, rename; an error or an interrupt leaves nothing behind.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where folders can be opened (not on Windows)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
