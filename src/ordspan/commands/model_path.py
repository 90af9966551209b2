"""Where a model is written: nothing is lost there by accident."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ordspan.atomic import check_can_write
from ordspan.checkpoint import ENDING
from ordspan.files.batch import FileError
from ordspan.files.text import STDIN
from ordspan.wording import option


def check_model_path(path: Path, inputs: Iterable[str] = ()) -> None:
    """Refuse a place where no model can be written, or where something else would be lost."""
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise FileError(f"{path.parent}: no such folder; make it first, or choose another")
    for name in (path.name, path.name + ENDING):
        check_can_write(path.with_name(name))
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is no ordinary file; give the name of a file")
    for name in inputs:
        if name != STDIN and path.exists() and Path(name).exists() and path.samefile(name):
            raise FileError(f"{path} would overwrite the input of that name; choose another")


def refuse_to_overwrite(path: Path) -> None:
    """Refuse a place where there is a model, or a checkpoint of one."""
    checkpoint = path.with_name(path.name + ENDING)
    anew, start = (
        option("--overwrite", "overwrite=True"),
        option(f"--from {path}", f"start={str(path)!r}"),
    )
    if checkpoint.exists():
        raise FileError(
            f"{checkpoint} is there from a training that was interrupted: "
            f"{option('--resume', 'resume=True')} goes on with it, {anew} begins anew"
        )
    if path.exists():
        raise FileError(
            f"{path} exists already: {anew} replaces it, {start} and another model to write goes "
            "on learning from it"
        )


def no_checkpoint_hint(out: Path, checkpoint: Path | None) -> str:
    """What to do where there is no checkpoint to go on from."""
    resume = option("--resume", "resume")
    start = option(f"--from {out}", f"start={str(out)!r}")
    if out.exists():
        return (
            f"there is no checkpoint {checkpoint}: {out} is finished. To go on learning from it "
            f"give {start} and another model to write; to train it anew leave {resume} out "
            f"and give {option('--overwrite', 'overwrite=True')}"
        )
    return (
        f"there is no checkpoint {checkpoint}, so nothing to resume; leave {resume} out to "
        f"begin, or go on from a finished model with {option('--from MODEL', 'start=')}"
    )


def start_over_hint() -> str:
    """What to do where a checkpoint is of another training."""
    overwrite, resume = option("--overwrite", "overwrite=True"), option("--resume", "resume")
    return f"use the same settings and files, or begin anew with {overwrite} and without {resume}"
