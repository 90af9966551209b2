"""Checks that protect existing files when a model is written."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ordspan.models.atomic import check_can_write
from ordspan.models.checkpoint import ENDING
from ordspan.models.file import ModelFileError, read_header_and_model
from ordspan.tables.rows import FileError
from ordspan.tables.text import STDIN
from ordspan.wording import hint

OVERWRITE, RESUME = hint("overwrite=True", "--overwrite"), hint("resume=True", "--resume")
START_OVER = f"use the same settings and files, or start over with {OVERWRITE} and without {RESUME}"
"""What to do if a checkpoint belongs to another training."""


def check_model_path(path: Path, inputs: Iterable[str] = ()) -> None:
    """Raise if no model can be written here, or if it would overwrite an input."""
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise FileError(f"{path.parent}: no such folder; create it first, or choose another")
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    for name in (path.name, path.name + ENDING):
        check_can_write(path.with_name(name))
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is not a regular file; give the name of a file")
    for name in inputs:
        if name != STDIN and path.exists() and Path(name).exists() and path.samefile(name):
            raise FileError(f"{path} would overwrite the input of that name; choose another")


def refuse_to_overwrite(path: Path, *, pipe: bool = False, continued: bool = False) -> None:
    """Raise if there is already a model, or a checkpoint that is not ``continued``."""
    checkpoint = path.with_name(path.name + ENDING)
    if checkpoint.exists() and not continued:
        resume = RESUME
        if from_pipe(checkpoint):
            resume = continue_hint(checkpoint, pipe=pipe)
        raise FileError(
            f"{checkpoint} is left from an interrupted training: {resume} continues it, "
            f"{OVERWRITE} starts over"
        )
    if path.exists():
        raise FileError(
            f"{path} already exists: {OVERWRITE} replaces it, {start_hint(path)} and another "
            "output path continues training it"
        )


def is_own_checkpoint(path: Path, start: str | None, *, pipe: bool) -> bool:
    """Whether training starts from the checkpoint that it will replace.

    Refused for files: a resumed run would no longer find the model it started from.
    """
    checkpoint = path.with_name(path.name + ENDING)
    if start is None or not checkpoint.exists() or not Path(start).exists():
        return False
    own = checkpoint.samefile(start)
    if own and not pipe:
        raise FileError(
            f"{checkpoint} would be replaced by the checkpoints of this training; choose another "
            "output path"
        )
    return own


def from_pipe(checkpoint: Path) -> bool:
    """Whether the rows of a checkpoint came from a pipe, which cannot be read again."""
    with suppress(ModelFileError, OSError):
        table = read_header_and_model(checkpoint.read_bytes(), str(checkpoint))[0].table
        return table is not None and STDIN in table.training["settings"]["files"]
    return False


def continue_hint(checkpoint: Path, *, pipe: bool) -> str:
    """How to continue a checkpoint that cannot be resumed, with rows of a pipe or of files."""
    return start_hint(checkpoint) + ("" if pipe else " and another output path")


def no_checkpoint_hint(out: Path, checkpoint: Path | None) -> str:
    """What to do if there is no checkpoint to resume from."""
    if out.exists():
        return (
            f"there is no checkpoint {checkpoint}: {out} is finished. To continue training it, "
            f"give {start_hint(out)} and another output path; to retrain it, leave out {RESUME} "
            f"and give {OVERWRITE}"
        )
    return (
        f"there is no checkpoint {checkpoint}, so there is nothing to resume; leave out {RESUME} "
        f"to start, or continue a finished model with {hint('start=', '--from MODEL')}"
    )


def start_hint(path: Path) -> str:
    """How to continue a model or a checkpoint."""
    return hint(f"start={str(path)!r}", f"--from {shlex.quote(str(path))}")
