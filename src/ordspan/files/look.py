"""A look at files before anything is learned: what their columns hold, and in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.core.scaling import COUNT, MEAN, SPREAD
from ordspan.files.batch import LARGEST, NUMBER, OTHER, TEXT, UNTYPED, Faults, FileError
from ordspan.files.dialect import as_numbers, decimal_signs, is_empty, plain_numbers
from ordspan.files.features import DEFAULT_HASH_BITS, Recipe, Scale
from ordspan.files.opening import FileOptions, check_columns, open_file
from ordspan.files.tables import matrix_of, words_of
from ordspan.files.text import STDIN
from ordspan.wording import by, columns_option, either, option

LOOK_BYTES = 1 << 25
"""Larger files are not looked at as a whole, but at places spread over them."""
MOST_WORDS = 256
"""Columns with more different words than these are hashed."""
ENOUGH_ROWS = 20
"""Fewer rows do not show that a column is an id."""
N_CHUNKS, CHUNK_ROWS = 32, 10
SORTED_SHARE = 0.03
"""Rows are sorted where chunks of neighbours explain so much of the variance of some column."""
CHANCE = 5 * np.sqrt(2 * N_CHUNKS)
RUN_SHARE = 0.2
"""Labels come in runs where a row has its neighbour's label by so much more than by chance."""
DRESSED_SHARE = 0.1
DATE = "date"
ID_NAME = re.compile(
    r"(?i:^(id|index|nr|no|row.?(names?|id)?|unnamed.*)$|[_ .-](id|nr|no)$)|[a-z]I[dD]$"
)
"""Names of columns that count or name rows, where all their values are different."""


class Choice(NamedTuple):
    """What a user says of the columns to learn from."""

    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    hashed: Sequence[str] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    standardise: bool = True
    missing: str = "mean"


@dataclass
class Look:
    """Rows spread over files, or all of them, and what the formats tell of their columns."""

    path: str
    names: list[str]
    kinds: dict[str, str]
    table: pl.DataFrame
    whole: bool
    delimiter: str = ""
    notes: list[str] = field(default_factory=list)
    reader: Any = None  # of standard input, which can be read only once
    fault: str = ""  # of the first bad row
    files: list[Look] = field(default_factory=list)  # the others, where there are several

    def check(self, needed: Sequence[str]) -> None:
        """Refuse files in which a needed column is missing."""
        for look in (self, *self.files):
            check_columns(look.path, look.names, needed)


def look_at(files: Sequence[str], options: FileOptions, size: int = LOOK_BYTES) -> Look:
    """Look at tables; of standard input at its first rows."""
    if files[0] == STDIN:
        reader = open_file(STDIN, options)
        look = _look(reader)
        look.table, look.whole, look.reader = reader.head(), False, reader
        look.fault = reader.fault
        return look
    sizes = [Path(path).stat().st_size for path in files]
    looks = []
    for path, bytes_of_file in zip(files, sizes, strict=True):
        reader = open_file(path, options)
        looks.append(_look(reader))
        share = max(size // 64, round(size * bytes_of_file / max(1, sum(sizes))))
        looks[-1].table, looks[-1].whole = reader.sample(share)
        looks[-1].fault = reader.fault
    return merged(looks)


def _look(reader: Any) -> Look:
    delimiter = getattr(reader, "delimiter", "")
    return Look(
        reader.path, reader.names, reader.kinds(), pl.DataFrame(), True, delimiter, reader.notes
    )


def merged(looks: Sequence[Look]) -> Look:
    """Looks at several files as one, with the columns of the first that all of them have."""
    first = looks[0]
    first.files = list(looks[1:])
    for look in first.files:
        first.whole &= look.whole
        first.fault = first.fault or look.fault
        for name, kind in first.kinds.items():
            other = look.kinds.get(name, kind)
            if other != kind:
                first.kinds[name] = OTHER if OTHER in (kind, other) else UNTYPED
    filled = [look.table for look in looks if not look.table.is_empty()] or [first.table]
    shared = [n for n in first.table.columns if all(n in table.columns for table in filled)]
    first.table = joined([table.select(shared) for table in filled])
    for look in first.files:
        look.table = first.table[:0]  # no longer needed
    return first


class SparseLook(NamedTuple):
    """What a look at svmlight rows finds: spread of the values present, and the grades in order."""

    state: NDArray[np.float64]
    grades: NDArray[np.float64]


def look_at_sparse(
    files: Sequence[str], options: FileOptions, size: int = LOOK_BYTES
) -> SparseLook:
    """Look at rows spread over svmlight files."""
    sizes = [Path(path).stat().st_size for path in files]
    scale, grades = Scale(options.n_features), [np.empty(0)]
    for path, bytes_of_file in zip(files, sizes, strict=True):
        share = max(size // 64, round(size * bytes_of_file / max(1, sum(sizes))))
        for rows in open_file(path, options).sample(share):
            rows.X.data[~(np.abs(rows.X.data) <= LARGEST)] = 0.0
            scale.learn(rows.X)
            grades.append(rows.grades[np.isfinite(rows.grades)])
    return SparseLook(scale.state, np.concatenate(grades))


def merged_sparse(looks: Sequence[SparseLook]) -> SparseLook:
    """Looks at several files as one."""
    state = sum((look.state for look in looks[1:]), looks[0].state)
    return SparseLook(state, np.concatenate([look.grades for look in looks]))


def joined(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Tables one below the other, with the columns of the first; types may differ."""
    if len(tables) == 1:
        return tables[0]
    names = tables[0].columns
    for name in names:
        kinds = {table.schema.get(name) for table in tables}
        if pl.String() in kinds and len(kinds) > 1:
            tables = [table.with_columns(pl.col(name).cast(pl.String())) for table in tables]
    try:
        return pl.concat([table.select(names) for table in tables], how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise FileError(f"the files differ in the types of their columns ({error})") from None


class Found(NamedTuple):
    """What a look makes of the columns."""

    recipe: Recipe
    scale: Scale
    X: NDArray[np.floating]  # the numbers of all rows that were looked at
    left_out: dict[str, str]  # columns, and why
    notes: list[str]


def make_recipe(look: Look, taken: Sequence[str], choice: Choice, told: str | None) -> Found:
    """Which columns of tables are features, and how; mean and spread of the numbers.

    Columns in ``taken`` (labels, groups) are not; ``told`` is the decimal sign, if told.
    """
    check_columns(
        look.path,
        look.names,
        [*taken, *(choice.features or ()), *choice.drop, *choice.text, *choice.hashed],
    )
    if look.table.is_empty():
        raise FileError(look.fault or f"{look.path}: there is a header, but no row under it")
    outside = {*taken, *choice.drop}
    chosen = [n for n in (choice.features or look.names) if n not in outside]
    look.check([*taken, *chosen])
    kinds, signs = _kinds(look, chosen, choice, told)
    left_out: dict[str, str] = {}
    if choice.features is None:
        left_out = {n: why for n in chosen if (why := _useless(look.table[n], kinds[n], n))}
    chosen = [name for name in chosen if name not in left_out]
    if not chosen:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        told = by("to learn from one all the same give", option("--features NAME", "features="))
        why = f" ({why}){either(told)}" if why else ""
        raise ValueError(f"{look.path}: no column is left to learn from{why}")
    numbers = tuple(name for name in chosen if kinds[name] == NUMBER)
    dressed = {name: signs[name] for name in numbers if name in signs}
    faults = Faults()
    whole = matrix_of(look.table, numbers, faults, dressed)
    X = np.delete(whole, list(faults), axis=0).astype(np.float64)
    gaps = tuple(n for j, n in enumerate(numbers) if np.isnan(X[:, j]).any())
    X[~(np.abs(X) <= LARGEST)] = np.nan
    words, hashed = _vocabularies(look, [n for n in chosen if kinds[n] == TEXT], choice)
    pipe = look.reader is not None
    recipe = Recipe(
        numbers,
        gaps if choice.missing == "mean" else (),
        words,
        hashed,
        choice.hash_bits,
        standardise=choice.standardise,
        # a pipe has no mean to fill in, unless it is learned on the way
        missing="error" if pipe and not choice.standardise else choice.missing,
        dressed=tuple(dressed.items()),
    )
    notes = [*look.notes, *_notes(look, recipe, left_out, dressed, X)]
    return Found(recipe, scale_of(X), whole, left_out, notes)


def _kinds(
    look: Look, chosen: Sequence[str], choice: Choice, told: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """What each column holds, and the decimal signs of those written as words."""
    words = {*choice.text, *choice.hashed}
    kinds = {name: TEXT if name in words else look.kinds[name] for name in chosen}
    asked = [n for n in chosen if n not in words and look.table.schema.get(n) == pl.String()]
    untyped = [name for name in asked if kinds[name] == UNTYPED]
    plain, n_points = plain_numbers(look.table, untyped if told != "," else [])
    look.table = look.table.with_columns(plain)
    kinds |= dict.fromkeys(plain.columns, NUMBER)
    columns = [look.table[name] for name in asked if name not in plain.columns]
    signs = decimal_signs(columns, told, "," if look.delimiter == ";" else ".", {}, n_points)
    for column in columns:
        name, sign, is_untyped = column.name, signs[column.name], column.name in untyped
        cells = column.str.strip_chars()
        filled = ~is_empty(cells)
        n_filled = int(filled.sum())
        as_is = cells.cast(pl.Float64(), strict=False).is_not_null()
        numbers = as_numbers(column, sign).is_not_null() & filled
        odd = numbers & ~as_is if sign == "." else cells.str.contains("[^0-9]")
        n_odd = int(odd.sum())
        # a stray word among numbers is found and told, instead of turning the column into words
        mostly = 2 * int(numbers.sum()) >= n_filled
        if is_untyped:
            kinds[name] = NUMBER if mostly else TEXT
        elif n_filled and mostly and n_odd >= DRESSED_SHARE * n_filled:
            kinds[name] = NUMBER
        if kinds[name] == TEXT and is_untyped and _are_dates(cells.filter(filled)):
            kinds[name] = DATE
        if kinds[name] != NUMBER or (not n_odd and is_untyped):
            del signs[name]
    for name, kind in kinds.items():
        if kind in (OTHER, DATE):
            what = "dates" if kind == DATE else "neither numbers nor words"
            raise ValueError(
                f"{look.path}: column {name!r} holds {what}"
                + either(
                    by("leave it out with", columns_option("drop", name)),
                    by("take it as words with", columns_option("text", name)),
                )
            )
    return kinds, signs


def _are_dates(words: pl.Series) -> bool:
    """Whether Polars finds dates in a column."""
    text = pl.DataFrame({"date": words[:100]}).write_csv().encode()
    found = pl.read_csv(text, try_parse_dates=True, infer_schema_length=None)
    return bool(found.to_series().dtype.is_temporal())


def _useless(column: pl.Series, kind: str, name: str) -> str:
    """Why a column cannot help: it is an id, or empty."""
    n_rows = len(column)
    filled = column.drop_nulls()
    if column.dtype == pl.String:
        filled = filled.filter(~is_empty(filled.str.strip_chars()))
    if filled.is_empty():
        return "there is no value in it"
    if len(filled) < max(n_rows, ENOUGH_ROWS):
        return ""
    if kind == TEXT:
        return "every value is different, as of an id" if filled.n_unique() == n_rows else ""
    values = filled if filled.dtype != pl.String else filled.cast(pl.Float64(), strict=False)
    if not values.dtype.is_numeric() or values.is_null().any() or (values % 1 != 0).any():
        return ""
    steps = values.cast(pl.Float64()).diff().drop_nulls()
    if (steps == 1).sum() >= 0.99 * len(steps):
        return "it counts the rows"
    if ID_NAME.search(name) and values.n_unique() == n_rows:
        return "every value is different, as of an id"
    return ""


def _vocabularies(
    look: Look, names: Sequence[str], choice: Choice
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]:
    """Columns with few words, with these words, and the columns to hash.

    The words that come through a pipe are not known beforehand, so they are hashed.
    """
    words, hashed = [], []
    for name in names:
        column = words_of(look.table, [name]).to_series()
        known = column.cast(pl.String()).fill_null("").unique()
        if name in choice.hashed or look.reader is not None or len(known) > MOST_WORDS:
            hashed.append(name)
        else:
            words.append((name, tuple(known.sort().to_list())))
    return tuple(words), tuple(hashed)


def scale_of(X: NDArray[np.float64]) -> Scale:
    """Mean and spread of columns of numbers, gaps left out."""
    scale = Scale(X.shape[1])
    if not X.size:
        return scale
    known = ~np.isnan(X)
    count = known.sum(axis=0)
    least = np.maximum(count, 1)
    mean = np.where(known, X, 0.0).sum(axis=0) / least
    spread = (np.where(known, X - mean, 0.0) ** 2).sum(axis=0)
    highest = np.where(known, X, -np.inf).max(axis=0)
    constant = highest == np.where(known, X, np.inf).min(axis=0)
    scale.state[COUNT] = count
    scale.state[MEAN] = np.where(constant, highest, mean)
    scale.state[SPREAD] = np.where(constant, 0.0, spread)
    return scale


def _notes(
    look: Look,
    recipe: Recipe,
    left_out: Mapping[str, str],
    dressed: Mapping[str, str],
    X: NDArray[np.floating],
) -> list[str]:
    """What was done with the columns that a user may not expect."""
    notes = [f"left out {name!r}: {why}" for name, why in left_out.items()]
    read = []
    for name, sign in dressed.items():
        cells = look.table[name].drop_nulls()
        odd = cells.filter(cells.str.strip_chars().cast(pl.Float64(), strict=False).is_null())
        values = as_numbers(odd, sign).drop_nulls()
        if len(values):
            example = odd.filter(as_numbers(odd, sign).is_not_null())[0]
            read.append(f"{name} ({example!r} is {values[0]:g})")
    if read:
        notes.append(f"read as numbers: {_few(read)}")
    if recipe.gaps:
        shares = [np.isnan(X[:, recipe.numbers.index(name)]).mean() for name in recipe.gaps]
        told = [f"{name} ({s:.1%})" for name, s in zip(recipe.gaps, shares, strict=True)]
        notes.append(f"missing numbers are filled by the column's mean, and marked: {_few(told)}")
    if recipe.words:
        told = [f"{name} ({len(words)})" for name, words in recipe.words]
        notes.append(f"words, each a feature: {_few(told)}")
    if recipe.hashed:
        notes.append(f"words, hashed: {_few(recipe.hashed)}")
    return notes


def _few(words: Sequence[str], most: int = 8) -> str:
    more = f", and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def comes_sorted(
    columns: Sequence[tuple[str, NDArray[Any]]], lower: NDArray[Any], upper: NDArray[Any]
) -> str:
    """By what rows are sorted, or in runs, judged by neighbours; nothing where they are mixed."""
    if lower.size < 2 * CHUNK_ROWS:
        return ""
    same = np.mean((lower[1:] == lower[:-1]) & (upper[1:] == upper[:-1]))
    _, counts = np.unique(np.stack([lower, upper]), axis=1, return_counts=True)
    by_chance = np.square(counts / lower.size).sum()
    if counts.size == 1 or (same - by_chance) / (1 - by_chance) > RUN_SHARE:
        return "labels"
    for name, values in [("labels", (lower + upper) / 2), *columns]:
        least = max(SORTED_SHARE, CHANCE / lower.size)  # small files show more by chance
        if _explained(np.asarray(values, dtype=np.float64)) > least:
            return name
    return ""


def _explained(values: NDArray[np.float64]) -> float:
    """Share of the variance of a column that chunks of neighbours explain, less that by chance.

    >>> round(_explained(np.arange(1000.0)), 2)
    1.0
    """
    values = values[np.isfinite(values)]
    n = values.size
    n_chunks = min(N_CHUNKS, n // CHUNK_ROWS)
    if n_chunks < 2 or values.max() == values.min():
        return 0.0
    values = (values - values.mean()) / max(np.abs(values).max(), np.finfo(float).tiny)
    total = np.square(values).sum()
    starts = np.linspace(0, n, n_chunks + 1).astype(int)[:-1]
    sums = np.add.reduceat(values, starts)
    between = (np.square(sums) / np.diff([*starts, n])).sum()
    within = max(total - between, 0.0) / (n - n_chunks)
    return float((between - (n_chunks - 1) * within) / (total + within)) if total else 0.0
