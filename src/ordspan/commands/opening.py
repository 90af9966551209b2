"""A model and the files it is to grade: opened, checked against each other, and how far read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ordspan.commands.train import _share_of_file, _size
from ordspan.core.labels import shown
from ordspan.data.files.grades import Grades
from ordspan.data.files.lines import PACKED, STDIN, FileError
from ordspan.data.files.reading import FileOptions, Position, format_of
from ordspan.modelfile import load
from ordspan.tabular import TabularModel


def open_model(path: str | Path) -> TabularModel:
    """The model that ``ordspan train`` wrote; anything else is refused."""
    if not Path(path).is_file():
        raise FileError(f"{path}: no such model file; ordspan train writes one")
    model = load(path)
    if not isinstance(model, TabularModel):
        raise ValueError(
            f"{path} holds {type(model).__name__} as saved from Python, which knows no columns of "
            "files; use it in Python with ordspan.load, or write a model with ordspan train"
        )
    return model


def options_for(
    model: TabularModel, files: Sequence[str], format: str | None, delimiter: str | None
) -> FileOptions:
    """How to open files for a model: as told, or as their names tell, or as in training."""
    if format is None:
        try:
            format_of(files[0], FileOptions())
        except FileError:
            format = model.options.format  # still None where that was not told either
    return FileOptions(
        format,
        model.options.delimiter if delimiter is None else delimiter,
        model.recipe.zero_based,
        model.recipe.n_sparse,
    )


class KnownGrades(Grades):
    """Ranks of labels for a model that is trained: its grades are what they are."""

    def rank(self, word: str) -> int:
        """The rank of one grade."""
        try:
            return super().rank(word)
        except ValueError:
            raise ValueError(
                f"grade {word.strip()!r} is not among the model's {shown(self.classes)}; correct "
                "it, leave such rows out with --on-bad-row skip, or train with it in --order"
            ) from None


def check_out(path: Path, option: str, taken: Sequence[str | Path]) -> None:
    """Refuse a place that cannot be written to, or where something else would be lost."""
    if not path.resolve().parent.is_dir():
        raise FileError(f"{path.parent}: no such folder; make it first, or choose another {option}")
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    for name in taken:
        if str(name) != STDIN and path.resolve() == Path(name).resolve():
            raise FileError(f"{option} {path} would overwrite {name}; choose another name")


def sizes_of(files: Sequence[str]) -> list[int]:
    """Bytes of every file, 0 for standard input; a missing one is refused."""
    return [0 if path == STDIN else _size(path) for path in files]


def share_read(files: Sequence[str], sizes: Sequence[int], position: Position) -> float | None:
    """How much of the files lies before a position; None where that cannot be known."""
    if any(path == STDIN or path.endswith(PACKED) for path in files):
        return None
    done = sum(sizes[: position.file]) + _share_of_file(files[position.file], position.start)
    return done / max(1, sum(sizes))
