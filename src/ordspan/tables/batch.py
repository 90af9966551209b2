"""Batches of rows from a file, and what to do with bad rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.wording import hint

POLICIES = ("raise", "skip", "keep", "refuse")
KEEP, REFUSE = POLICIES[2:]
LARGEST = np.float64(1e90)
"""Larger numbers are refused: the squared norm of a row would overflow."""

N_EXAMPLES = 5
SKIPPED_SHARE = 0.2
"""Largest share of bad rows that is accepted by default."""
INFER_ROWS = 500
"""Rows at the beginning of a file from which the types of its columns are inferred."""
NUMBER, TEXT, DATE, OTHER, UNTYPED = "number", "text", "date", "other", "untyped"
EMPTY = (
    *("", "NA", "N/A", "n/a", "n.a.", "NaN", "nan", "null", "NULL", "None", "none", "<NA>"),
    *("?", "-", "–", ".", "#N/A", "#NV", "#NULL!", "#DIV/0!", "#VALUE!", "#WERT!", "#REF!", "NaT"),
)
"""Cells that stand for a missing number."""

LABEL, GROUP = "label", "qid"
"""The columns of svmlight rows besides their features."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count read from a file, limited so that a forged one cannot overflow."""

Faults = dict[int, str]
"""What is wrong with the bad rows of a batch, by position."""


class FileError(ValueError):
    """A file that cannot be read; the message has the place, the reason and a remedy."""


class RowError(ValueError):
    """A row of a file that cannot be used; the message has its place, its value and a remedy."""


class Cursor(NamedTuple):
    """A position in files: passes, files, and rows of a file or of a pass that are done."""

    epoch: Count = 0
    file: Count = 0
    row: Count = 0


BEGINNING = Cursor()


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of one file.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Features.
    table : polars.DataFrame
        Text columns, labels and columns to keep, as in the file.
    lines : array of shape (n,)
        The line, or the row from 1, that messages give for each row.
    rows : array of shape (n,)
        The position of each row among all rows of its file, from 0; bad rows count.
    path, unit : str
        The file, and whether ``lines`` counts lines or rows.
    cursor : Cursor
        Where the batch begins; a part of a batch keeps the cursor of the whole.
    done : int
        Rows of the whole batch before this part of it.
    skipped : int
        Bad rows that were skipped before ``cursor``.
    share : float
        How much of the file has been read, from 0 to 1.
    lower, upper : arrays of shape (n,), optional
        Ranks of the labels, if there are any.
    classes : array, optional
        The grades of the ranks.
    group_column : str, optional
        Column with the group (query) of each row.
    keep : tuple of str
        Columns to keep.
    faults : dict
        What is wrong with bad rows, if they are kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.data import stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,size,grade\\n7,0.5,1\\n8,1.5,1-2\\n")
    >>> batch = next(iter(stream(path, label="grade", drop=["id"], keep=["id"])))
    >>> batch.X.tolist(), batch.y.tolist(), batch.kept["id"].to_list()
    ([[0.5], [1.5]], [[1, 1], [1, 2]], ['7', '8'])
    """

    X: Any
    table: Any
    lines: NDArray[np.int64]
    rows: NDArray[np.int64]
    path: str
    unit: str = "line"
    cursor: Cursor = BEGINNING
    done: int = 0
    skipped: int = 0
    share: float = 0.0
    lower: Ranks | None = None
    upper: Ranks | None = None
    classes: NDArray[Any] | None = None
    group_column: str | None = None
    keep: tuple[str, ...] = ()
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

    @property
    def group(self) -> NDArray[Any] | None:
        """The group (query) of each row, if there is one."""
        if self.group_column is None or self.group_column not in self.table.columns:
            return None
        return self.table[self.group_column].to_numpy()

    @property
    def kept(self) -> Any:
        """The columns to keep, as a polars.DataFrame."""
        return self.table.select(self.keep)

    def where(self, row: int) -> str:
        """File and line of a row, for a message.

        Parameters
        ----------
        row : int
            Its position in the batch.

        Returns
        -------
        str
            Such as "ratings.csv, line 7".
        """
        return f"{self.path}, {self.unit} {self.lines[row]}"

    def part(self, begin: int, end: int) -> Batch:
        """Consecutive rows of the batch.

        Parameters
        ----------
        begin, end : int
            Positions of the first row and of the one after the last.

        Returns
        -------
        Batch
            Those rows.
        """
        if begin == 0 and end >= len(self):
            return self
        return replace(self.only(slice(begin, end)), done=self.done + begin)

    def without(self, faults: Faults, bad: BadRows) -> Batch:
        """The batch without its bad rows.

        Parameters
        ----------
        faults : dict
            What is wrong with each of them.
        bad : BadRows
            Receives each of them, in order.

        Returns
        -------
        Batch
            The remaining rows.
        """
        if not faults:
            return self
        for row in sorted(faults):
            bad.add(f"{self.where(row)}: {faults[row]}")
        if bad.policy == KEEP:
            blank = self.X.copy()
            if hasattr(blank, "indptr"):
                blank.data[~np.isfinite(blank.data)] = 0.0
            else:
                blank[sorted(faults)] = 0.0
            return replace(self, X=blank, faults=faults)
        return self.only(np.setdiff1d(np.arange(len(self)), list(faults)))

    def only(self, rows: Any) -> Batch:
        """Some rows of the batch.

        Parameters
        ----------
        rows : slice, indices or mask
            Which rows.

        Returns
        -------
        Batch
            Those rows.
        """
        if isinstance(rows, np.ndarray) and rows.dtype.kind == "b":
            if rows.all():
                return self
            rows = np.flatnonzero(rows)
        return replace(
            self,
            X=self.X[rows],
            table=self.table[rows] if self.table.width else self.table,
            lines=self.lines[rows],
            rows=self.rows[rows],
            lower=None if self.lower is None else self.lower[rows],
            upper=None if self.upper is None else self.upper[rows],
        )

    def after(self) -> tuple[Cursor, int]:
        """The position after the batch, and how many bad rows were skipped before it.

        Returns
        -------
        tuple
            A cursor and a count.
        """
        end = int(self.rows[-1]) + 1
        bad = end - self.cursor.row - self.done - len(self)
        return self.cursor._replace(row=end), self.skipped + bad


@dataclass
class BadRows:
    """What to do with bad rows: raise an error, skip them, or keep them; counts them."""

    policy: str = "raise"
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            known = " or ".join(POLICIES[:2])
            raise ValueError(f"on_bad_row must be {known}, got {self.policy!r}")

    def add(self, message: str) -> None:
        """Handle a bad row according to the policy."""
        if self.policy == "raise":
            skip = hint("on_bad_row='skip'", "--on-bad-row skip")
            raise RowError(f"{message}; skip such rows with {skip}")
        if self.policy == REFUSE:
            raise RowError(message)
        self.count += 1
        if len(self.examples) < N_EXAMPLES:
            self.examples.append(message)

    def check(self, used: int, allowed: float) -> None:
        """Raise if more than the allowed share of the rows was skipped."""
        total = self.count + used
        if total and self.count > allowed * total:
            share = self.count / total
            enough = f"{min(1.0, ceil(share * 100) / 100):g}"
            allow = hint(f"allow_skipped={enough}", f"--allow-skipped {enough}")
            raise FileError(
                f"{self.count:,} of {total:,} rows ({share:.1%}) cannot be used; the first: "
                f"{self.examples[0]}. Fix the rows, or accept this with {allow}"
            )

    def summary(self) -> str:
        """How many rows were skipped, and why the first was."""
        first = f", the first: {self.examples[0]}" if self.examples else ""
        return f"{self.count} skipped{first}"


def first_duplicate(names: Iterable[str]) -> str | None:
    """The first name that occurs more than once.

    >>> first_duplicate(["a", "b", "a"]), first_duplicate(["a", "b"])
    ('a', None)
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)
