"""Options of commands that are not made from a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli.app import AsJson, one_of, opened_pipe
from ordspan.cli.printing import print_json, print_notes, print_skipped
from ordspan.commands import jobs

if TYPE_CHECKING:
    from ordspan.tables.files import FileOptions

__all__ = ["AsJson", "opened_pipe", "print_json", "print_notes", "print_skipped"]

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help=jobs.FILES_HELP)]
TrainedModel = Annotated[Path, typer.Option(help=jobs.TRAINED_HELP)]
Label = Annotated[str | None, typer.Option(help=jobs.LABEL_HELP)]
Lower = Annotated[str | None, typer.Option(help=jobs.LOWER_HELP)]
Upper = Annotated[str | None, typer.Option(help=jobs.UPPER_HELP)]
Format = Annotated[str | None, typer.Option(callback=one_of(jobs.FORMATS))]
Delimiter = Annotated[str | None, typer.Option()]
Decimal = Annotated[str | None, typer.Option(callback=one_of((".", ",")))]
Encoding = Annotated[str | None, typer.Option()]
AllowSkipped = Annotated[float, typer.Option(min=0, max=1, help=jobs.SKIPPED_HELP)]
OnBadRow = Annotated[str, typer.Option(callback=one_of(("raise", "skip")), help=jobs.BAD_ROW_HELP)]


def file_options(
    format: str | None, delimiter: str | None, decimal: str | None, encoding: str | None
) -> FileOptions:
    """How to open files."""
    return jobs.OpeningJob(
        format=format, delimiter=delimiter, decimal=decimal, encoding=encoding
    ).options


def draw(bar: Any, task: Any, text: str, share: float | None) -> None:
    """Update a progress bar; ``share`` is None if the total size is unknown."""
    bar.update(task, description=text, completed=share or 0, total=share and 1)
