"""Files as blocks: one block per file, read by the workers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from ordspan.distributed.cluster import Cluster
from ordspan.labels.text import LabelReader
from ordspan.tables.encoder import Encoder, Recipe, stack_rows
from ordspan.tables.files import FileOptions, is_svmlight
from ordspan.tables.label_columns import LabelColumns
from ordspan.tables.profile import Profile, sample_file
from ordspan.tables.reading import RowReader, find_words, sample_sparse
from ordspan.tables.rows import LABEL, BadRows
from ordspan.tables.svmlight import index_base, survey


class Spec(NamedTuple):
    """How workers read files."""

    options: FileOptions
    recipe: Recipe
    columns: LabelColumns
    classes: NDArray[Any]
    on_bad_row: str = "raise"
    decimals: dict[str, str] | None = None  # decimal signs of the files

    def reader(self, path: str) -> RowReader:
        """The reader of one file."""
        grades, bad = LabelReader(self.classes), BadRows(self.on_bad_row)
        reader = RowReader([path], self.options, Encoder(self.recipe), self.columns, grades, bad)
        reader.decimals = self.decimals or {}
        return reader


def block_names(files: Sequence[str]) -> list[str]:
    """Names of the blocks in messages, with the paths that workers see."""
    return [f"block {number} ({os.path.abspath(path)})" for number, path in enumerate(files)]


def words_of(path: str, options: FileOptions, columns: LabelColumns) -> set[str]:
    """The labels in a file; runs on a worker."""
    return find_words([path], options, columns)


class WorkerPreview(NamedTuple):
    """File options, preview and labels found by the workers."""

    options: FileOptions
    samples: Any
    words: set[str] | None


def preview_on_workers(
    cluster: Cluster,
    paths: Sequence[str],
    options: FileOptions,
    columns: LabelColumns,
    classes: Any,
    on_bad_row: str = "raise",
) -> WorkerPreview:
    """Preview files on the workers; also find the labels if their order is not given."""
    names = block_names(paths)
    sparse = is_svmlight(paths[0], options)
    if sparse:
        columns = LabelColumns(LABEL)
        if not options.n_features:
            extents = cluster.run(survey, [(path,) for path in paths], names, "ordspan-survey")
            zero_based, n_features = index_base(paths, extents, options.zero_based)
            options = replace(options, zero_based=zero_based, n_features=n_features)
    if sparse:
        found = cluster.run(
            sample_sparse, [([path], options) for path in paths], names, "ordspan-look"
        )
        states, orders = zip(*found, strict=True)
        samples: Any = sum(states[1:], states[0]), next(filter(None, orders), "")
    else:
        asked = [(path, options, len(paths)) for path in paths]
        samples = cluster.run(sample_file, asked, names, "ordspan-look")
        Profile(samples).check(columns.names())  # here, as workers would log a traceback
    words = None
    if classes is None:
        labels = [(path, options, columns) for path in paths]
        words = set().union(*cluster.run(words_of, labels, names, "ordspan-grades"))
    return WorkerPreview(options, samples, words)


def read_block(
    path: str, spec: Spec, state: NDArray[np.float64], named: bool = False
) -> tuple[Any, NDArray[Any]]:
    """Features, scaled by a given state, and labels of a file; runs on a worker."""
    encoder = Encoder(spec.recipe, np.array(state))
    parts, ends = [], []
    for batch in spec.reader(path).batches():
        parts.append(encoder.features(batch.X, batch.table))
        assert batch.lower is not None
        assert batch.upper is not None
        ends.append(np.column_stack([batch.lower, batch.upper]))
    if not parts:
        return np.empty((0, spec.recipe.n_features)), np.empty((0, 2), dtype=spec.classes.dtype)
    X = stack_rows(parts)
    if named:
        import pandas as pd

        X = pd.DataFrame(X, columns=spec.recipe.feature_names())
    return X, spec.classes[np.concatenate(ends) - 1]


def delayed_blocks(
    cluster: Cluster, paths: Sequence[str], *how: Any
) -> tuple[list[Any], list[Any]]:
    """Features and labels of every file, read lazily."""
    read = delayed(read_block, nout=2, pure=False)
    pairs = [
        # workers may have another working directory
        read(os.path.abspath(path), *how, dask_key_name=f"ordspan-read-block-{i}-{cluster.token}")
        for i, path in enumerate(paths)
    ]
    return [X for X, _ in pairs], [y for _, y in pairs]
