"""Parquet and svmlight files as blocks: one file, one block, read where it is needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.datasets import load_svmlight_file

PARQUET = (".parquet", ".pq")
SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".txt", ".dat")
PACKED = (".gz", ".bz2")


class FileOptions(NamedTuple):
    """How to read a file: which columns are what, and of svmlight the width of the rows."""

    label: str | None = None
    lower: str | None = None
    upper: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    n_features: int | None = None
    zero_based: bool = True

    @property
    def label_columns(self) -> list[str]:
        """The column of exact labels, or the two of intervals."""
        return [name for name in (self.label, self.lower, self.upper) if name is not None]


class Seen(NamedTuple):
    """What a look at a file tells before it is learned from."""

    columns: list[str] | None  # names of the features; svmlight has none
    n_columns: int
    first_column: int  # lowest column number that occurs, in svmlight
    labels: Any


def is_svmlight(path: str) -> bool:
    """Whether a file's name is one of an svmlight file; else it is a Parquet file."""
    name = path
    for ending in PACKED:
        name = name.removesuffix(ending)
    if name.endswith(SVMLIGHT):
        return True
    if path.endswith(PARQUET):
        return False
    raise ValueError(
        f"{path}: the name of a file of rows ends in {', '.join((*PARQUET, *SVMLIGHT))}"
    )


def list_files(where: Any) -> list[str]:
    """The files of a folder in the order of their names, or those of a list as given."""
    if isinstance(where, str | os.PathLike):
        folder = Path(where)
        if not folder.exists():
            raise FileNotFoundError(f"{folder} does not exist; give a folder or a list of files")
        inside = sorted(folder.iterdir()) if folder.is_dir() else [folder]
        paths = [str(path.absolute()) for path in inside if path.name[0] not in "._"]
    else:
        paths = [os.path.abspath(path) for path in where]  # workers may stand in another folder
    if not paths:
        raise ValueError(f"{where} holds no file to learn from")
    if len({is_svmlight(path) for path in paths}) > 1:
        raise ValueError("the files are Parquet and svmlight mixed; give those of one kind")
    return paths


def check_options(options: FileOptions, *, svmlight: bool) -> None:
    """Refuse options that do not say where the labels are."""
    named = options.label_columns
    if svmlight and (named or options.features is not None or options.drop):
        raise ValueError(
            "svmlight files have no column names, and the label comes first: leave out label=, "
            "lower=, upper=, features= and drop="
        )
    pair = options.lower is not None and options.upper is not None
    if not svmlight and not (pair and len(named) == 2) and named != [options.label]:
        raise ValueError(
            "name the column of the labels with label=, or the two of interval labels with "
            "lower= and upper="
        )


def read_file(path: str, options: FileOptions) -> tuple[Any, Any]:
    """Rows and labels of one file: a data frame of a Parquet file, CSR of an svmlight file."""
    if is_svmlight(path):
        return load_svmlight_file(
            path, n_features=options.n_features, zero_based=options.zero_based
        )
    import pyarrow.parquet as pq

    features = _feature_columns(pq.read_schema(path).names, options, path)
    frame = pq.read_table(path, columns=[*features, *options.label_columns]).to_pandas()
    return frame[features], _labels_of(frame, options)


def look_at_file(path: str, options: FileOptions) -> Seen:
    """The columns and labels of a file; of a Parquet file no other column is read."""
    if is_svmlight(path):
        X, y = load_svmlight_file(path, zero_based=True)
        lowest = int(X.indices.min()) if X.nnz else 1
        return Seen(None, X.shape[1], lowest, y)
    import pyarrow.parquet as pq

    features = _feature_columns(pq.read_schema(path).names, options, path)
    frame = pq.read_table(path, columns=options.label_columns).to_pandas()
    return Seen(features, len(features), 0, _labels_of(frame, options))


def _feature_columns(names: list[str], options: FileOptions, path: str) -> list[str]:
    """All columns but labels and dropped ones, or those asked for."""
    asked = [*options.label_columns, *(options.features or ()), *options.drop]
    for name in asked:
        if name not in names:
            raise ValueError(f"{path} has no column {name!r}; it has {', '.join(names)}")
    left_out = {*options.label_columns, *options.drop}
    return [n for n in (options.features or names) if n not in left_out]


def _labels_of(frame: Any, options: FileOptions) -> Any:
    return frame[options.label] if options.label is not None else frame[options.label_columns]
