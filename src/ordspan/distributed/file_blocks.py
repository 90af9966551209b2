"""Files as blocks: one file, one block, read by the workers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from ordspan.core.labels import check_classes
from ordspan.distributed.cluster import Cluster
from ordspan.files.batch import LABEL, BadRows
from ordspan.files.features import DEFAULT_HASH_BITS, Recipe, Scale, prepared, stacked
from ordspan.files.grades import Grades, LabelColumns, classes_of
from ordspan.files.opening import FileOptions, is_sparse
from ordspan.files.reading import RowReader, find_words, make_recipe
from ordspan.files.svmlight import index_base, survey


class Spec(NamedTuple):
    """How a worker reads a file into features and labels."""

    options: FileOptions
    recipe: Recipe
    columns: LabelColumns
    classes: NDArray[Any]
    on_bad_row: str = "raise"

    def reader(self, path: str) -> RowReader:
        """The reader of one file."""
        grades, bad = Grades(self.classes), BadRows(self.on_bad_row)
        return RowReader([path], self.options, self.recipe, self.columns, grades, bad)


def block_names(files: Sequence[str]) -> list[str]:
    """What the blocks are called in messages."""
    return [f"block {number} ({path})" for number, path in enumerate(files)]


def words_of(path: str, options: FileOptions, columns: LabelColumns, policy: str) -> set[str]:
    """The labels in a file, on a worker."""
    return find_words([path], options, columns, BadRows(policy))


def found_by_workers(
    cluster: Cluster,
    paths: Sequence[str],
    options: FileOptions,
    columns: LabelColumns,
    order: Any,
    on_bad_row: str = "raise",
) -> tuple[FileOptions, NDArray[Any]]:
    """What was not told: where svmlight indices begin, the number of features, the grades."""
    names = block_names(paths)
    if is_sparse(paths[0], options):
        columns = LabelColumns(LABEL)
        if not options.n_features:
            extents = cluster.run(survey, [(path,) for path in paths], names, "ordspan-survey")
            zero_based, n_features = index_base(paths[0], extents, options.zero_based)
            options = replace(options, zero_based=zero_based, n_features=n_features)
    if order is not None:
        return options, check_classes(order)
    labels = [(path, options, columns, on_bad_row) for path in paths]
    words = cluster.run(words_of, labels, names, "ordspan-grades")
    return options, classes_of(set().union(*words))


def recipe_of(
    path: str,
    options: FileOptions,
    columns: LabelColumns,
    features: Sequence[str] | None,
    drop: Sequence[str],
) -> Recipe:
    """The features of a file, on a worker; numbers are not standardised."""
    return make_recipe(
        path,
        options,
        taken=columns.names(),
        features=features,
        drop=drop,
        hash_bits=DEFAULT_HASH_BITS,
        standardise=False,
    )[0]


def read_block(
    path: str, spec: Spec, state: NDArray[np.float64] | None = None, named: bool = False
) -> tuple[Any, NDArray[Any]]:
    """Features and labels of a file, on a worker; scaled by the state of a scale, if given."""
    scale = None
    if state is not None:
        scale = Scale(spec.recipe.n_scaled)
        scale.state[...] = state
    parts, ends = [], []
    for batch in spec.reader(path).batches():
        parts.append(prepared(spec.recipe, scale, batch))
        assert batch.lower is not None
        assert batch.upper is not None
        ends.append(np.column_stack([batch.lower, batch.upper]))
    if not parts:
        return np.empty((0, spec.recipe.n_features)), np.empty((0, 2), dtype=spec.classes.dtype)
    X = stacked(parts)
    if named:
        import pandas as pd

        X = pd.DataFrame(X, columns=list(spec.recipe.numbers))
    return X, spec.classes[np.concatenate(ends) - 1]


def delayed_blocks(
    cluster: Cluster, paths: Sequence[str], *how: Any
) -> tuple[list[Any], list[Any]]:
    """Features and labels of every file, to be read when they are needed."""
    read = delayed(read_block, nout=2, pure=False)
    pairs = [
        # workers may stand in another folder
        read(os.path.abspath(path), *how, dask_key_name=f"ordspan-read-block-{i}-{cluster.token}")
        for i, path in enumerate(paths)
    ]
    return [X for X, _ in pairs], [y for _, y in pairs]
