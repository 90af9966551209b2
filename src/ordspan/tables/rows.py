"""What reading files shares: batches, positions, errors, bad rows, the check of memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.wording import hint

KEEP, REFUSE = "keep", "refuse"
N_EXAMPLES = 5
FEATURE_BYTES = 150  # while a linear model is trained: scales, weights, averages, and copies

LABEL, GROUP = "label", "qid"  # the columns of svmlight rows besides their features

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count read from a file, limited so that a forged one cannot overflow."""

BY_ROW = ("X", "table", "rows", "lower", "upper", "group", "kept")  # columns of a batch
Faults = dict[int, str]  # what is wrong with the bad rows of a batch, by position


class FileError(ValueError):
    """A file or a row that cannot be used; the message has the place, the reason and a remedy."""


@contextmanager
def damage_reported(
    path: str, what: str, *errors: Any, kind: Any = FileError, remedy: str = "copy it again"
) -> Iterator[None]:
    """Report errors of what reads a file as a `FileError`, or as one of another kind."""
    try:
        yield
    except errors as error:
        why = str(error).partition("\n")[0]
        raise kind(f"{path}: {what} ({why}); {remedy}") from None


class Cursor(NamedTuple):
    """A position in files: where to seek, and the rows that are done."""

    epoch: Count = 0  # passes that are done
    file: Count = 0
    byte: Count = 0  # where a block of the file begins
    before: Count = 0  # rows of the file before that byte
    row: Count = 0  # rows of the file, or of a pass in another order, that are done


BEGINNING = Cursor()


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of one file.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Features; numbers as in the file, if the batch does not come from `ordspan.stream`.
    table : polars.DataFrame
        Text columns, labels and columns to keep, without codes for no answer.
    rows : array of shape (n,)
        The number of each row in its file, from 1; bad rows count, blank lines and headers do not.
    path : str
        The file.
    share : float, optional
        How much of the files has been read, from 0 to 1; None for standard input. The space that
        staged rows will need is estimated by it.
    after : Cursor
        The position after the batch.
    lower, upper : arrays of shape (n,), optional
        Ranks of the labels, if there are any.
    classes : array, optional
        The grades of the ranks.
    group : array of shape (n,), optional
        The group (query) of each row.
    kept : polars.DataFrame, optional
        The columns to keep, as in the file.
    faults : dict
        What is wrong with bad rows, if they are kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan import stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,size,grade\\n7,0.5,1\\n8,1.5,1-2\\n")
    >>> batch = next(iter(stream(path, label="grade", drop=["id"], keep=["id"])))
    >>> batch.X.tolist(), batch.y.tolist(), batch.kept["id"].to_list()
    ([[0.5], [1.5]], [[1, 1], [1, 2]], ['7', '8'])
    """

    X: Any
    table: Any
    rows: NDArray[np.int64]
    path: str
    share: float | None = 0.0
    after: Cursor = BEGINNING
    lower: Ranks | None = None
    upper: Ranks | None = None
    classes: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    kept: Any = None
    faults: Faults = field(default_factory=dict)

    def __len__(self) -> int:
        return self.rows.size

    @property
    def y(self) -> NDArray[Any] | None:
        """Labels in the user's grades, (n,) if all are exact, else (n, 2); None without labels."""
        if self.lower is None or self.upper is None or self.classes is None:
            return None
        if np.array_equal(self.lower, self.upper):
            return self.classes[self.lower - 1]
        return self.classes[np.column_stack([self.lower, self.upper]) - 1]

    def where(self, row: int) -> str:
        """File and row number of a row, for a message.

        Parameters
        ----------
        row : int
            Its position in the batch.

        Returns
        -------
        str
            Such as "ratings.csv, row 7".
        """
        return f"{self.path}, row {self.rows[row]}"

    def only(self, rows: Any) -> Batch:
        """The batch cut to some of its rows.

        Parameters
        ----------
        rows : slice, indices or mask
            Which rows.

        Returns
        -------
        Batch
            Those rows.
        """
        if isinstance(rows, np.ndarray) and rows.dtype == bool:
            rows = np.flatnonzero(rows)
        columns = ((name, getattr(self, name)) for name in BY_ROW)
        # a frame without columns has no rows either
        cut: Any = {n: c[rows] for n, c in columns if getattr(c, "width", c is not None)}
        return replace(self, **cut)


@dataclass
class BadRows:
    """Bad rows, counted. The policy is to skip or KEEP them, or to "raise" an error.

    REFUSE raises one that does not advise to skip the row.
    """

    policy: Annotated[str, msgspec.Meta(pattern="^(raise|skip|keep|refuse)$")] = "raise"
    count: Count = 0
    examples: list[str] = field(default_factory=list)

    def take_from(self, batch: Batch, faults: Faults) -> Batch:
        """The batch without its bad rows, or with the reasons where they are kept."""
        if not faults:
            return batch
        messages = [f"{batch.where(row)}: {faults[row]}" for row in sorted(faults)]
        if self.policy in ("raise", REFUSE):
            skip = hint("on_bad_row='skip'", "--on-bad-row skip")
            way_out = f"; skip such rows with {skip}" if self.policy == "raise" else ""
            raise FileError(messages[0] + way_out)
        self.count += len(messages)
        self.examples += messages[: N_EXAMPLES - len(self.examples)]
        if self.policy == KEEP:
            return replace(batch, faults=faults)
        return batch.only(np.delete(np.arange(len(batch)), list(faults)))

    def check(self, used: int, allowed: float) -> None:
        """Raise if more than the allowed share of the rows was skipped, or all of them."""
        total = self.count + used
        if self.count and (self.count > allowed * total or not used):
            share = self.count / total
            enough = f"{min(1.0, ceil(share * 100) / 100):g}"
            allow = hint(f"allow_skipped={enough}", f"--allow-skipped {enough}")
            accept = f", or accept this with {allow}" if used else ""
            raise FileError(
                f"{self.count:,} of {total:,} rows ({share:.1%}) cannot be used; the first: "
                f"{self.examples[0]}. Fix the rows{accept}"
            )


def check_memory(what: str, n_bytes: float, remedy: str) -> None:
    """Raise if something needs more than half of the memory of the machine or its container.

    >>> check_memory("a.txt: 10 features", 1500, "; use fewer")
    """
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        memory = 8 << 30
    with suppress(OSError, ValueError):  # no container, or no limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    if n_bytes > memory / 2:
        raise FileError(
            f"{what} would take about {n_bytes / 1e9:,.1f} GB of memory, more than the limit of "
            f"{memory / 2e9:,.1f} GB, half of the memory{remedy}"
        )
