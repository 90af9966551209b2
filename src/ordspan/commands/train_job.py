"""What to train, and from which files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ordspan.catalog import PA, learner_parameters
from ordspan.tables.encoder import DEFAULT_HASH_BITS
from ordspan.tables.files import FileOptions, expand, is_svmlight, sizes_of
from ordspan.tables.label_columns import LabelColumns, label_columns
from ordspan.tables.profile import ColumnChoice
from ordspan.tables.rows import LABEL, SKIPPED_SHARE
from ordspan.tables.text import STDIN
from ordspan.wording import hint

OF_MODEL = (
    *("classes", "features", "text", "hashed", "hash_bits", "standardise", "missing", "learner"),
    *("parameters", "zero_based", "n_features"),
)
"""Settings fixed by the model when training continues from one."""


@dataclass(frozen=True)
class TrainJob:
    """What to train, and from which files: everything the model depends on.

    Parameters
    ----------
    files : sequence of str
        Files and folders, or "-" for standard input.
    label, lower, upper, features, drop, text, hashed, hash_bits, standardise, missing, on_bad_row :
        As in `ordspan.data.stream`.
    classes : sequence, optional
        All grades from lowest to highest.
    options : FileOptions
        How to open the files.
    learner : {"pa", "kernel", "svm"}
        Which estimator to train: `ordspan.OrdinalPA`, `ordspan.KernelOrdinalPA` with a budget of
        500 support vectors, or `ordspan.OrdinalSVM`, which needs all rows in memory.
    parameters : dict
        Parameters of that estimator, such as ``{"C": 1.0}``.
    passes : int
        Number of passes over the files.
    shuffle : bool, optional
        Whether to learn the rows in random order; by default, only if they are sorted.
    seed : int
        Seed for shuffling and for ``hold_out``.
    hold_out : float
        Share of the rows to hold out from training and evaluate on at the end.
    allow_skipped : float
        Largest accepted share of skipped rows.
    start : str, optional
        A model file to continue from, with its columns, grades, scaling and learner.
    """

    files: Sequence[str]
    label: str | None = None
    lower: str | None = None
    upper: str | None = None
    classes: Sequence[Any] | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    hashed: Sequence[str] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    standardise: bool = True
    missing: str = "mean"
    on_bad_row: str = "raise"
    options: FileOptions = field(default_factory=FileOptions)
    learner: str = PA
    parameters: Mapping[str, Any] = field(default_factory=dict)
    passes: int = 1
    shuffle: bool | None = None
    seed: int = 0
    hold_out: float = 0.0
    allow_skipped: float = SKIPPED_SHARE
    start: str | None = None

    def __post_init__(self) -> None:
        for name, least in (("passes", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        for name, most in (("hold_out", 0.9), ("allow_skipped", 1.0)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be from 0 to {most}, got {getattr(self, name)}")
        learner_parameters(self.learner, self.parameters)
        if self.start is not None:
            plain, ours = TrainJob(self.files), vars(self) | vars(self.options)
            theirs = vars(plain) | vars(plain.options)
            for name in OF_MODEL:
                if (ours[name] or None) != (theirs[name] or None):  # [] is ()
                    raise ValueError(
                        f"{name} cannot be given with start, because the model decides it"
                    )
        if self.is_pipe:
            if self.passes > 1:
                raise ValueError(
                    "standard input and other pipes can be read only once: passes must be 1"
                )
            if self.shuffle:
                raise ValueError("rows of a pipe cannot be shuffled; shuffle them before")
            if self.hold_out:
                raise ValueError(
                    "standard input and other pipes can be read only once: no rows can be held out"
                )

    @property
    def is_pipe(self) -> bool:
        """Whether the rows come from standard input."""
        return STDIN in self.files

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain values, for the model file."""
        values = asdict(self)
        values["classes"] = (
            None if self.classes is None else [plain_value(grade) for grade in self.classes]
        )
        if self.start is None:
            values["parameters"] = learner_parameters(self.learner, self.parameters)
        return {k: list(v) if isinstance(v, tuple | list) else v for k, v in values.items()}

    def choice(self) -> ColumnChoice:
        """The settings of the feature columns."""
        return ColumnChoice(
            self.features,
            self.drop,
            self.text,
            self.hashed,
            self.hash_bits,
            self.standardise,
            self.missing,
        )

    def label_columns(self) -> LabelColumns:
        """The columns of the labels."""
        columns = label_columns(self.label, self.lower, self.upper)
        files = expand(self.files)
        sizes_of(files)  # raises if a file is missing
        sparse = is_svmlight(files[0], self.options)
        if sparse and columns.names() not in ([], [LABEL]):
            raise ValueError(
                f"{self.files[0]}: svmlight rows start with their grade; name no label column"
            )
        if not columns.names() and not sparse:
            ends = hint("lower= and upper=", "--lower and --upper")
            raise ValueError(f"no label: give {hint('label=', '--label COLUMN')}, or {ends}")
        return columns


def plain_value(value: Any) -> Any:
    """A NumPy scalar as a Python value."""
    return value.item() if hasattr(value, "item") else value
