"""What a look at files makes of their columns: numbers, words, hashed words, or nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.core.scaling import COUNT, MEAN, SPREAD
from ordspan.files.batch import LARGEST, NUMBER, OTHER, TEXT
from ordspan.files.dialect import CURRENCY, is_boolean, is_empty
from ordspan.files.features import DEFAULT_HASH_BITS, Recipe, Scale
from ordspan.files.limits import FEATURE_BYTES, check_memory
from ordspan.files.opening import check_columns
from ordspan.files.preview import FilePreview, Preview, raise_fault
from ordspan.wording import by, columns_option, either, option

MAX_WORDS = 256
"""Columns with more different words than these are hashed."""
ENOUGH_ROWS = 20
"""Fewer rows do not show that a column is an id."""
ODD_SHARE = 0.1
PARTLY, AS_REQUESTED = "not every file has it", "as told"
DATE = "date"
DATES = [
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y"),
    *("%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
]
ID_NAME = re.compile(
    r"(?i:^(id|index|nr|no|row.?(names?|id)?|unnamed.*|column \d+|__index_level_\d+__)$"
    r"|[_ .-](id|nr|no)$)|[a-z]I[dD]$"
)
"""Names of columns that count or name rows, where all their values are different."""
ANNOTATED = ("item", "lower", "upper", "annotator", "seconds", "asked_by")
"""The first columns of a file that ``ordspan annotate`` wrote, of which only the label counts."""
BESIDE = "ordspan annotate wrote it beside the answer"
UNITS = rf"({CURRENCY}|[%‰])"


class NoFeatureError(ValueError):
    """There is no column to learn from."""


class ColumnChoice(NamedTuple):
    """What a user says of the columns to learn from."""

    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    hashed: Sequence[str] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    standardise: bool = True
    missing: str = "mean"


class ColumnPlan(NamedTuple):
    """What a look makes of the columns."""

    recipe: Recipe
    scale: Scale
    X: NDArray[np.float64]  # the numbers of all rows that were looked at
    left_out: dict[str, str]  # columns, and why
    notes: list[str]


def make_recipe(
    preview: Preview, taken: Sequence[str], choice: ColumnChoice, told: str | None
) -> ColumnPlan:
    """Which columns of tables are features, and how; mean and spread of the numbers.

    Columns in ``taken`` (labels, groups) are not; ``told`` is the decimal sign, if told.
    """
    named = [*taken, *(choice.features or ()), *choice.text, *choice.hashed]
    preview.check(named)
    there = dict.fromkeys(name for file in preview.files for name in file.names)
    check_columns(preview.path, there, choice.drop)
    raise_fault(preview)
    outside = {*taken, *choice.drop}
    chosen = list(dict.fromkeys(n for n in choice.features or preview.shared() if n not in outside))
    left_out = {}
    if choice.features is None:
        partly = there.keys() - {*preview.shared(), *choice.drop}
        left_out = dict.fromkeys(sorted(partly), PARTLY)
        if all(tuple(file.names[: len(ANNOTATED)]) == ANNOTATED for file in preview.files):
            left_out |= {name: BESIDE for name in ANNOTATED if name not in outside}
            chosen = [name for name in chosen if name not in left_out]
    words = {*choice.text, *choice.hashed}
    # labels too, whose numbers may be written in the same way
    asked = [name for name in (*chosen, *taken) if name not in words]
    for file in preview.files:
        file.settle(asked, told, {})
    kinds = {name: _kind(preview, name, choice) for name in chosen}
    if choice.features is None:
        left_out |= {n: why for n in chosen if (why := _useless(preview, n, kinds[n]))}
    chosen = [name for name in chosen if name not in left_out]
    _refuse(preview, {name: kinds[name] for name in chosen}, left_out)
    numbers = tuple(name for name in chosen if kinds[name] == NUMBER)
    columns = [preview.numbers(name) for name in numbers]
    for column in columns:
        _refuse_units(preview, column.name)
    X = np.column_stack([c.to_numpy() for c in columns]) if columns else np.empty((0, 0))
    X = np.where(np.abs(X) <= LARGEST, X, np.nan)
    gaps = tuple(column.name for column in columns if column.null_count())
    texts, hashed = _vocabularies(preview, [n for n in chosen if kinds[n] == TEXT], choice)
    recipe = Recipe(
        numbers,
        gaps if choice.missing == "mean" else (),
        texts,
        hashed,
        choice.hash_bits,
        standardise=choice.standardise,
        # a pipe has no mean to fill in, unless it is learned on the way
        missing="error" if preview.reader and not choice.standardise else choice.missing,
        dressed=tuple((n, s) for n, s in preview.files[0].decimals.items() if n in numbers),
    )
    fewer = by("give fewer", option("--hash-bits", "hash_bits")) if hashed else ""
    drop = by("leave columns out with", option("--drop NAME", "drop="))
    told = f"{preview.path}: {recipe.n_features:,} features of {len(chosen):,} columns"
    check_memory(told, FEATURE_BYTES * recipe.n_features, either(fewer, drop))
    return ColumnPlan(recipe, scale_of(X), X, left_out, _notes(preview, recipe, left_out, columns))


def _kind(preview: Preview, name: str, choice: ColumnChoice) -> str:
    """What a column holds, in all files together."""
    kinds = {file.kinds[name] for file in preview.files}
    if name in (*choice.text, *choice.hashed):
        return TEXT
    if OTHER in kinds:
        return OTHER
    if kinds == {NUMBER}:
        return NUMBER
    if any(name not in file.numbers for file in preview.files if file.table.height):
        return TEXT  # a type for words
    values = preview.numbers(name)
    n_numbers = int(values.is_not_nan().sum())
    if values.is_nan().any() and is_boolean(preview.words([name])[name].str.strip_chars()).any():
        return TEXT  # true, false and something else
    n_filled = len(values) - values.null_count()
    # a stray word among numbers is found and told, instead of turning the column into words
    if 2 * n_numbers < n_filled or (n_filled == 0 and kinds == {TEXT}):
        cells = preview.words([name])[name]
        return DATE if _are_dates(cells.filter(~is_empty(cells.str.strip_chars()))) else TEXT
    if kinds != {TEXT} or not n_filled:
        return NUMBER
    # words by their type: codes such as 01234 stay words, measures such as 1.5 or 1,5 do not
    cells = preview.words([name])[name].str.strip_chars()
    n_odd = int(cells.str.contains(r"^[-+]?[0-9]+$").not_().sum())
    encode_column = cells.str.contains(r"^[-+]?0[0-9]").any() or cells.n_unique() <= MAX_WORDS
    return NUMBER if n_odd >= ODD_SHARE * n_filled or not encode_column else TEXT


def _are_dates(words: pl.Series) -> bool:
    """Whether most of the first words are dates in one form, perhaps with a time.

    >>> _are_dates(pl.Series(["3 May 1999", "4 Jun 2001"])), _are_dates(pl.Series(["May", "Ulm"]))
    (True, False)
    """
    some = words[:100].str.strip_chars()
    dates = some.str.replace(r"[T ]\d{1,2}:\d{2}.*$", "")
    found = [dates.str.to_date(form, strict=False).is_not_null().sum() for form in DATES]
    return bool(len(some)) and max(found) >= 0.9 * len(some)


def _useless(preview: Preview, name: str, kind: str) -> str:
    """Why a column cannot help: it is an id, or empty."""
    n_rows = sum(file.table.height for file in preview.files)
    if kind == NUMBER:
        values = preview.numbers(name).drop_nulls()
    else:
        cells = preview.words([name])[name]
        values = cells.filter(~is_empty(cells.str.strip_chars()))
    if values.is_empty():
        return "there is no value in it"
    if len(values) < max(n_rows, ENOUGH_ROWS):
        return ""
    if kind != NUMBER:
        different = kind == TEXT and values.n_unique() == n_rows
        return "every value is different, as of an id" if different else ""
    if not (values % 1 == 0).all():
        return ""
    steps = values.diff().drop_nulls()
    if (steps == 1).sum() >= 0.99 * len(steps):
        return "it counts the rows"
    if ID_NAME.search(name) and values.n_unique() == n_rows:
        return "every value is different, as of an id"
    return ""


def _refuse(preview: Preview, kinds: dict[str, str], left_out: dict[str, str]) -> None:
    """Refuse columns that are neither numbers nor words, and files without a column to use."""
    for name, kind in kinds.items():
        if kind in (OTHER, DATE):
            what = "dates" if kind == DATE else "neither numbers nor words"
            drop, text = columns_option("drop", name), columns_option("text", name)
            raise ValueError(
                f"{preview.path}: column {name!r} holds {what}"
                + either(by("leave it out with", drop), by("take it as words with", text))
            )
    if not kinds:
        why = first_few([f"{name}: {reason}" for name, reason in left_out.items()])
        told = by("to learn from one all the same give", option("--features NAME", "features="))
        why = f" ({why}){either(told)}" if why else ""
        raise NoFeatureError(f"{preview.path}: no column is left to learn from{why}")


def _refuse_units(preview: Preview, name: str) -> None:
    """Refuse a column of numbers in several currencies, or only some of them in per cent."""
    for file in preview.files:
        if name not in file.decimals:
            continue
        cells = file.table[name].filter(file.numbers[name].is_finite().fill_null(value=False))
        units = cells.str.extract(UNITS).unique().to_list()
        real = [unit for unit in units if unit]
        if len(real) > 1 or (real and real[0] in "%‰" and None in units):
            kinds = [cells.filter(cells.str.extract(UNITS).eq_missing(u))[0] for u in units]
            raise ValueError(
                f"{file.path}: column {name!r} mixes units, such as {kinds[0]!r} and {kinds[1]!r}"
                + either(
                    "convert it",
                    by("leave it out with", columns_option("drop", name)),
                )
            )


def _vocabularies(
    preview: Preview, names: Sequence[str], choice: ColumnChoice
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]:
    """Columns with few words, with these words, and the columns to hash.

    The words that come through a pipe are not known beforehand, so they are hashed.
    """
    words, hashed = [], []
    for name in names:
        known = preview.words([name])[name].unique()
        if name in choice.hashed or preview.reader is not None or len(known) > MAX_WORDS:
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
    mean = np.where(known, X, 0.0).sum(axis=0) / np.maximum(count, 1)
    spread = (np.where(known, X - mean, 0.0) ** 2).sum(axis=0)
    highest = np.where(known, X, -np.inf).max(axis=0)
    constant = highest == np.where(known, X, np.inf).min(axis=0)
    scale.state[COUNT] = count
    scale.state[MEAN] = np.where(constant, highest, mean)
    scale.state[SPREAD] = np.where(constant, 0.0, spread)
    return scale


def _notes(
    preview: Preview, recipe: Recipe, left_out: dict[str, str], columns: Sequence[pl.Series]
) -> list[str]:
    """What was done that a user may not expect."""
    notes = []
    for file in preview.files:
        place = f" ({file.path})" if len(preview.files) > 1 else ""
        notes += [note + place for note in file.notes]
        if read := _read_as_numbers(file, recipe):
            notes.append(f"read as numbers{place}: {first_few(read)}")
    notes += [f"left out {name!r}: {why}" for name, why in left_out.items()]
    if recipe.gaps:
        told = [f"{c.name} ({c.null_count() / len(c):.1%})" for c in columns if c.null_count()]
        notes.append(
            f"missing numbers are filled by the column's mean, and marked: {first_few(told)}"
        )
    if recipe.words:
        told = [f"{name} ({len(words)})" for name, words in recipe.words]
        notes.append(f"words, each a feature: {first_few(told)}")
    if recipe.hashed:
        notes.append(f"words, hashed: {first_few(recipe.hashed)}")
    return notes


def _read_as_numbers(file: FilePreview, recipe: Recipe) -> list[str]:
    """Columns of a file that are numbers in other dress, each with an example."""
    read = []
    for name, sign in file.decimals.items():
        if name in recipe.numbers:
            odd = file.table[name].str.strip_chars().str.contains(r"^[-+]?[0-9.]+$").not_()
            odd |= file.table[name].str.contains(".", literal=True) & (sign == ",")
            shown = file.numbers[name].is_finite() & odd
            if (place := shown.arg_max()) is not None and shown[place]:
                read.append(
                    f"{name} ({file.table[name][place]!r} is {file.numbers[name][place]:g})"
                )
    typed = [n for n in recipe.numbers if file.kinds[n] == TEXT and n not in file.decimals]
    return read + typed


def first_few(words: Sequence[str], most: int = 8) -> str:
    """Some words of many.

    >>> first_few(["a", "b", "c"], 2)
    'a, b, and 1 more'
    """
    more = f", and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
