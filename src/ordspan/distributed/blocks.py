"""Rows and labels as blocks on a cluster, from Dask collections or files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from ordspan.distributed.cluster import Cluster
from ordspan.distributed.file_blocks import Spec, block_names, delayed_blocks, preview_on_workers
from ordspan.labels.ranks import distinct, find_classes, read_labels, refuse_missing
from ordspan.tables.files import FileOptions, Identity, expand, format_of, identity, is_svmlight
from ordspan.tables.label_columns import LabelColumns, label_columns
from ordspan.tables.profile import AS_REQUESTED, PARTLY, ColumnChoice, Profile
from ordspan.tables.reading import open_rows
from ordspan.tables.rows import FileError
from ordspan.wording import shown, warn


class Blocks(NamedTuple):
    """Rows and labels of every block, computed on the workers, with their metadata."""

    rows: list[Any]  # delayed, or futures if persisted
    labels: list[Any]
    names: list[str]  # for messages
    marks: list[Any]  # row counts, to recognise the blocks of a checkpoint
    sample: Any  # one row of zeros with the right columns
    classes: NDArray[Any]
    files: Sequence[str] = ()
    identities: Sequence[Identity] = ()  # to recognise the files of a checkpoint


class FileColumns(NamedTuple):
    """Roles of the columns in files."""

    label: str | None = None
    lower: str | None = None
    upper: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()

    def labels(self) -> LabelColumns:
        """The columns of the labels."""
        return label_columns(self.label, self.lower, self.upper)


def is_frame(collection: Any) -> bool:
    """Whether a collection is a Dask data frame, without importing dask.dataframe."""
    return dask.is_dask_collection(collection) and hasattr(collection, "to_dask_array")


def whole_rows(X: Any) -> Any:
    """A Dask array with one block of columns."""
    if X.ndim != 2 or np.isnan(X.shape[1]):
        raise ValueError(
            f"X must be 2-dimensional with a known number of columns, got shape {X.shape}"
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def blocks_of(
    cluster: Cluster, X: Any, y: Any, given: Any, columns: FileColumns, *, identified: bool = False
) -> Blocks:
    """The blocks of Dask collections or files, with the grades of their labels.

    With ``identified``, a checkpoint can recognise the files.
    """
    if dask.is_dask_collection(X):
        if columns != FileColumns():
            raise ValueError(
                "label=, lower=, upper=, features= and drop= are for files; select the columns "
                "of a Dask collection first, and give the labels as y"
            )
        return _from_collections(cluster, X, y, given)
    if isinstance(X, np.ndarray) or hasattr(X, "columns") or hasattr(X, "tocsr"):
        raise TypeError(
            f"X is a local {type(X).__name__}; give a Dask collection, such as "
            "dask.array.from_array(X, chunks=...), or files, or call estimator.fit"
        )
    if y is not None:
        raise ValueError("files contain their labels: leave out y, and name the column with label=")
    blocks = _from_files(cluster, [X] if isinstance(X, str | os.PathLike) else X, given, columns)
    if not identified:
        return blocks
    paths = [(path,) for path in blocks.files]
    found = cluster.run(identity, paths, blocks.names, "ordspan-identity")
    return blocks._replace(identities=found)


def _from_collections(cluster: Cluster, X: Any, y: Any, given: Any) -> Blocks:
    if not dask.is_dask_collection(y):
        raise TypeError(
            f"y is a {type(y).__name__}; with a Dask X, y must be a Dask collection too"
        )
    X = X if is_frame(X) else whole_rows(X)
    y = _labels_beside(X, y)
    rows, labels = _pieces(X), _pieces(y)
    if len(rows) != len(labels):
        raise ValueError(
            f"X has {len(rows)} blocks and y has {len(labels)}; split both the same way, for "
            "example with repartition or rechunk"
        )
    sizes = [None] * len(rows) if is_frame(X) else _sizes(X)
    names = [f"block {number}" for number in range(len(rows))]
    rows, labels = _kept(cluster, rows, labels)
    unknown = [(part,) for part in labels] if given is None else []
    looks = cluster.run(_distinct_labels, unknown, names, "ordspan-labels")
    classes = _union(looks, names, given)
    return Blocks(rows, labels, names, sizes, _zero_row(X), classes)


def _kept(
    cluster: Cluster, rows: Sequence[Delayed], labels: Sequence[Delayed]
) -> tuple[list[Any], list[Any]]:
    """Persist rows and labels in one call, so that shared inputs are computed once."""
    both = cluster.keep([*rows, *labels])
    return both[: len(rows)], both[len(rows) :]


def _labels_beside(X: Any, y: Any) -> Any:
    """Labels with the same chunks as the rows, if known."""
    if is_frame(X) or is_frame(y):
        return y
    if y.ndim == 2:
        y = whole_rows(y)
    rows, labels = X.chunks[0], y.chunks[0]
    if np.isnan(rows).any() or np.isnan(labels).any() or rows == labels:
        return y
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, but y has {y.shape[0]} labels")
    return y.rechunk({0: rows})


def _pieces(collection: Any) -> list[Delayed]:
    """The blocks of a collection."""
    # not optimised: X and y would no longer share inputs, and Dask could fuse different numbers
    # of Parquet files for X and for y
    pieces = collection.to_delayed(optimize_graph=False)
    return pieces.ravel().tolist() if isinstance(pieces, np.ndarray) else pieces


def _sizes(X: Any) -> list[int | None]:
    return [None if np.isnan(size) else int(size) for size in X.chunks[0]]


def _zero_row(X: Any) -> Any:
    """One row of zeros with the columns of X."""
    if isinstance(X, da.Array):
        return np.zeros((1, X.shape[1]))
    return _named_sample(list(X.columns))


def _named_sample(columns: list[Any]) -> Any:
    import pandas as pd

    return pd.DataFrame(np.zeros((1, len(columns))), columns=columns)


def _from_files(cluster: Cluster, X: Any, given: Any, columns: FileColumns) -> Blocks:
    files = [
        os.path.abspath(path) for path in expand(X)
    ]  # workers may have another working directory
    _check_formats(files)
    names, labels = block_names(files), columns.labels()
    if not labels.names() and not is_svmlight(files[0], FileOptions()):
        raise ValueError(
            "name the label column with label=, or the two columns of ranges with lower= and upper="
        )
    found = preview_on_workers(cluster, files, FileOptions(), labels, given)
    reader = open_rows(
        files,
        found.options,
        labels,
        ColumnChoice(columns.features, columns.drop, standardise=False),
        classes=given,
        on_bad_row="raise",
        samples=found.samples,
        words=found.words,
    )
    for name, why in reader.left_out.items():
        if why == PARTLY:
            Profile(found.samples).check([name])
        if why != AS_REQUESTED:
            warn(f"left out {name!r}: {why}")
    assert reader.grades is not None
    recipe, classes = reader.recipe, reader.grades.classes
    if changed := [*recipe.missing_indicators, *recipe.texts]:
        warn(
            f"gaps were filled or words encoded in {shown(np.array(changed))}: the estimator "
            "expects columns with that done, not those of the files; for a model that does it "
            "itself, use ordspan.train_files(..., dask=client)"
        )
    rows, answers = delayed_blocks(
        cluster,
        files,
        Spec(found.options, recipe, reader.columns, classes, decimals=reader.decimals),
        reader.encoder.state,
        recipe.dense,
    )
    sample = np.zeros((1, recipe.n_features))
    if recipe.dense:
        sample = _named_sample(recipe.feature_names())
    return Blocks(*_kept(cluster, rows, answers), names, [], sample, classes, files)


def _check_formats(files: Sequence[str]) -> None:
    """Refuse names without a known ending, which may be those of missing folders."""
    for path in files:
        try:
            format_of(path, FileOptions())
        except FileError:
            if not os.path.exists(path):
                raise FileError(f"{path}: no such file or folder") from None
            raise FileError(
                f"{path}: the format does not follow from the ending of the name; rename the "
                "file, or use ordspan.train_files(..., format=..., dask=client)"
            ) from None


class DistinctLabels(NamedTuple):
    """The distinct labels of a block, and their order if known."""

    found: NDArray[Any]
    order: NDArray[Any] | None


def _distinct_labels(y: Any) -> DistinctLabels:
    labels, order = read_labels(y)
    refuse_missing(labels)
    return DistinctLabels(distinct(labels), order)


def _union(looks: list[DistinctLabels], names: list[str], given: Any) -> NDArray[Any]:
    """The grades of all blocks, by the rules of ``fit``."""
    orders = [
        (n, look.order) for n, look in zip(names, looks, strict=False) if look.order is not None
    ]
    for name, order in orders[1:]:
        if given is None and not np.array_equal(order, orders[0][1]):
            raise ValueError(
                f"{name}: the order of its grades {shown(order)} differs from that of "
                f"{orders[0][0]}, {shown(orders[0][1])}; give classes=[...]"
            )
    parts = [look.found for look in looks if look.found.size]
    found = np.unique(np.concatenate(parts)) if parts else np.empty(0)
    return find_classes(found, orders[0][1] if orders else None, given)
