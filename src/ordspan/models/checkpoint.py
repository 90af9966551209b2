"""Checkpoints of training: model files with progress, protected by a lock."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar

import msgspec

from ordspan.models.atomic import check_can_write, write_atomically
from ordspan.models.file import ModelFileError, Note, read_header_and_model, to_bytes
from ordspan.tables.files import Identity
from ordspan.tables.rows import Count, FileError

P = TypeVar("P")

ENDING = ".checkpoint"
GROUPS = ("parameters", "options")  # settings with settings in them, which are compared one by one


class Rounds(msgspec.Struct):
    """Progress of training on Dask."""

    seed: int | None
    rounds: list[tuple[Count, Count, Count, float]]


def progress_in(note: Note, kind: type[P], name: str) -> P:
    """Progress stored in a checkpoint."""
    try:
        return msgspec.convert(note.progress, kind)
    except msgspec.ValidationError as error:
        raise ModelFileError(
            f"{name} does not contain valid progress ({error}); start over"
        ) from None


class Checkpoint:
    """A file that is replaced as training proceeds; without a path, does nothing.

    Parameters
    ----------
    path : path-like or None
        The file, which is also a valid model file.
    settings : dict
        Plain values that must match when training resumes.
    files : sequence of Identity
        The training files, which must be unchanged.
    remedy : str
        What to do on a mismatch, for messages.
    """

    def __init__(
        self, path: Any, settings: dict[str, Any], files: Sequence[Identity], remedy: str
    ) -> None:
        self.path = None if path is None else Path(path)
        self.remedy = remedy
        settings = settings | {
            f"{what} of {name}": value
            for name, *state in files
            for what, value in zip(("size", "modification time", "content"), state, strict=True)
        }
        if self.path is not None:
            check_can_write(self.path)
            # through JSON: fails now, not after hours of work, and compares as read from a file
            settings = json.loads(json.dumps(msgspec.to_builtins(settings)))
        self._note = Note(settings, {})

    def write(self, model: Any, progress: Any) -> None:
        """Write the model and its progress atomically."""
        if self.path is not None:
            self._note.progress = msgspec.to_builtins(progress)
            write_atomically(self.path, to_bytes(model, self._note))

    def read(self, kind: type, progress: type[P]) -> tuple[Any, P] | None:
        """The last model and progress; None if there is no file."""
        if self.path is None or not self.path.exists():
            return None
        header, model = read_header_and_model(self.path.read_bytes(), str(self.path))
        note = header.checkpoint
        if note is None:
            raise ModelFileError(
                f"{self.path} is a model file, but not a checkpoint; {self.remedy}"
            )
        self._refuse_other_settings(note.settings, self._note.settings)
        if type(model) is not kind:
            raise ModelFileError(f"{self.path} is a checkpoint of another training; {self.remedy}")
        return model, progress_in(note, progress, str(self.path))

    def remove(self) -> None:
        """Delete the file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _refuse_other_settings(self, then: dict[str, Any], now: dict[str, Any]) -> None:
        for key in sorted(then.keys() | now.keys()):
            old, new = then.get(key), now.get(key)
            if key in GROUPS and isinstance(old, dict) and isinstance(new, dict):
                self._refuse_other_settings(old, new)
            elif old != new:
                raise ValueError(
                    f"the checkpoint {self.path} was made with {key} = {short(old)}, "
                    f"now it is {short(new)}; {self.remedy}"
                )


@contextmanager
def sole_writer(path: Path, state: str = "being trained") -> Iterator[None]:
    """Raise if another process is training the model at this path.

    The system releases the lock of a killed process.
    """
    from filelock import FileLock, Timeout

    real = Path(os.path.realpath(path))  # several links may point to one model
    lock = FileLock(real.with_name(f".{real.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise FileError(
            f"{path} is {state} by another process; wait for it, or choose another path"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove an open file
            Path(lock.lock_file).unlink()  # while it is ours
        lock.release()
