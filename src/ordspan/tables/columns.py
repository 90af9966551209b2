"""Which columns of a preview become features: numbers, text, hashed text, or nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.core.scaling import COUNT, MEAN, SPREAD
from ordspan.tables.batch import DATE, LARGEST, NUMBER, OTHER, TEXT
from ordspan.tables.dialect import CURRENCY, is_boolean, is_empty
from ordspan.tables.features import DEFAULT_HASH_BITS, Recipe, Scale
from ordspan.tables.limits import FEATURE_BYTES, check_memory
from ordspan.tables.opening import check_columns
from ordspan.tables.preview import FilePreview, Preview, raise_fault
from ordspan.wording import columns_hint, hint, join_hints

MAX_WORDS = 256
"""Text columns with more distinct values than this are hashed."""
ENOUGH_ROWS = 20
"""With fewer rows a column is not taken for an id."""
ODD_SHARE = 0.1
MOST = 0.99
"""Share of the values that must be different in an id, which some rows may repeat."""
PARTLY, AS_REQUESTED = "not every file has it", "as requested"
HAS_DATES = "it holds dates"
DATES = [
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y"),
    *("%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
]
ID_NAME = re.compile(
    r"(?i:^(id|index|nr|no|row.?(names?|id)?|unnamed.*|column \d+|__index_level_\d+__)$"
    r"|[_ .-](id|nr|no)$)|[a-z]I[dD]$"
)
"""Names of columns that number or name rows, if all their values are different."""
ANNOTATED = ("item", "lower", "upper", "annotator", "seconds", "asked_by")
"""The first columns of a file that ``ordspan annotate`` wrote, of which only the label counts."""
FROM_ANNOTATE = "ordspan annotate added it next to the answer"
UNITS = rf"({CURRENCY}|[%‰])"


class NoFeatureError(ValueError):
    """There is no column to learn from."""


class ColumnChoice(NamedTuple):
    """The columns to learn from, as the user chooses them."""

    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    hashed: Sequence[str] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    standardise: bool = True
    missing: str = "mean"


class ColumnPlan(NamedTuple):
    """The features made of the columns."""

    recipe: Recipe
    scale: Scale
    X: NDArray[np.float64]  # the numbers of all rows of the preview
    left_out: dict[str, str]  # columns, and why
    notes: list[str]


def make_recipe(
    preview: Preview, taken: Sequence[str], choice: ColumnChoice, decimal: str | None
) -> ColumnPlan:
    """Choose the columns of tables that become features, and find their mean and spread.

    Columns in ``taken`` (labels, groups) do not; ``decimal`` is the decimal separator, if given.
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
            left_out |= {name: FROM_ANNOTATE for name in ANNOTATED if name not in outside}
            chosen = [name for name in chosen if name not in left_out]
    words = {*choice.text, *choice.hashed}
    # labels too: their numbers may be written in the same way
    asked = [name for name in (*chosen, *taken) if name not in words]
    for file in preview.files:
        file.read_numbers(asked, decimal, {})
    kinds = {name: _column_kind(preview, name, choice) for name in chosen}
    if choice.features is None:
        left_out |= {n: why for n in chosen if (why := _useless(preview, n, kinds[n]))}
    chosen = [name for name in chosen if name not in left_out]
    _check_usable(preview, {name: kinds[name] for name in chosen}, left_out)
    numbers = tuple(name for name in chosen if kinds[name] == NUMBER)
    columns = [preview.numbers(name) for name in numbers]
    for column in columns:
        _check_units(preview, column.name)
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
        # standard input has no mean to fill in, unless it is learned online
        missing="error" if preview.reader and not choice.standardise else choice.missing,
        dressed=tuple((n, s) for n, s in preview.files[0].decimals.items() if n in numbers),
    )
    remedies = [f"give fewer {hint('hash_bits', '--hash-bits')}"] if hashed else []
    remedies.append(f"leave columns out with {hint('drop=', '--drop NAME')}")
    size = f"{preview.path}: {recipe.n_features:,} features from {len(chosen):,} columns"
    check_memory(size, FEATURE_BYTES * recipe.n_features, join_hints(*remedies))
    return ColumnPlan(recipe, scale_of(X), X, left_out, _notes(preview, recipe, left_out, columns))


def _column_kind(preview: Preview, name: str, choice: ColumnChoice) -> str:
    """The kind of a column in all files together."""
    kinds = {file.kinds[name] for file in preview.files}
    if name in (*choice.text, *choice.hashed):
        return TEXT
    for unusable in (OTHER, DATE):
        if unusable in kinds:
            return unusable
    if kinds == {NUMBER}:
        return NUMBER
    if any(name not in file.numbers for file in preview.files if file.table.height):
        return TEXT  # typed as text
    values = preview.numbers(name)
    n_numbers = int(values.is_not_nan().sum())
    if values.is_nan().any() and is_boolean(preview.text([name])[name].str.strip_chars()).any():
        return TEXT  # booleans among other values
    n_filled = len(values) - values.null_count()
    # a stray word among numbers is reported, instead of turning the column into text
    if 2 * n_numbers < n_filled or (n_filled == 0 and kinds == {TEXT}):
        cells = preview.text([name])[name]
        return DATE if _are_dates(cells.filter(~is_empty(cells.str.strip_chars()))) else TEXT
    if kinds != {TEXT} or not n_filled:
        return NUMBER
    # typed as text: codes such as 01234 stay text, measures such as 1.5 or 1,5 do not
    cells = preview.text([name])[name].str.strip_chars()
    n_odd = int(cells.str.contains(r"^[-+]?[0-9]+$").not_().sum())
    encode_column = cells.str.contains(r"^[-+]?0[0-9]").any() or cells.n_unique() <= MAX_WORDS
    return NUMBER if n_odd >= ODD_SHARE * n_filled or not encode_column else TEXT


def _are_dates(words: pl.Series) -> bool:
    """Whether most of the first values are dates in one format, perhaps with a time.

    >>> _are_dates(pl.Series(["3 May 1999", "4 Jun 2001"])), _are_dates(pl.Series(["May", "Ulm"]))
    (True, False)
    """
    some = words[:100].str.strip_chars()
    dates = some.str.replace(r"[T ]\d{1,2}:\d{2}.*$", "")
    found = [dates.str.to_date(form, strict=False).is_not_null().sum() for form in DATES]
    return bool(len(some)) and max(found) >= 0.9 * len(some)


def _useless(preview: Preview, name: str, kind: str) -> str:
    """Why a column is useless: it holds dates, is an id, or is empty."""
    if kind == DATE:
        return HAS_DATES
    n_rows = sum(file.table.height for file in preview.files)
    if kind == NUMBER:
        values = preview.numbers(name).drop_nulls()
    else:
        cells = preview.text([name])[name]
        values = cells.filter(~is_empty(cells.str.strip_chars()))
    if values.is_empty():
        return "it has no values"
    if len(values) < max(n_rows, ENOUGH_ROWS):
        return ""
    n_different = values.n_unique()
    every = "every" if n_different == n_rows else "nearly every"
    enough = n_rows if preview.reader else MOST * n_rows  # few rows of a pipe are known
    like_id = f"{every} value is different, like an id" if n_different >= enough else ""
    if kind != NUMBER:
        return like_id if kind == TEXT else ""
    if not (values % 1 == 0).all():
        return ""
    steps = values.diff().drop_nulls()
    if (steps == 1).sum() >= MOST * len(steps):
        return "it numbers the rows"
    return like_id if ID_NAME.search(name) else ""


def _check_usable(preview: Preview, kinds: dict[str, str], left_out: dict[str, str]) -> None:
    """Refuse columns that are neither numbers nor text, and files without a usable column."""
    for name, kind in kinds.items():
        if kind in (OTHER, DATE):
            what = "dates" if kind == DATE else "neither numbers nor text"
            raise ValueError(
                f"{preview.path}: column {name!r} holds {what}; leave it out with "
                f"{columns_hint('drop', name)}, or treat it as text with "
                f"{columns_hint('text', name)}"
            )
    if not kinds:
        why = first_few([f"{name}: {reason}" for name, reason in left_out.items()])
        anyway = hint("features=", "--features NAME")
        why = f" ({why}); to use one anyway give {anyway}" if why else ""
        raise NoFeatureError(f"{preview.path}: no column is left to learn from{why}")


def _check_units(preview: Preview, name: str) -> None:
    """Refuse a column of numbers in several currencies, or with only some in per cent."""
    for file in preview.files:
        if name not in file.decimals:
            continue
        cells = file.table[name].filter(file.numbers[name].is_finite().fill_null(value=False))
        units = cells.str.extract(UNITS).unique().to_list()
        real = [unit for unit in units if unit]
        if len(real) > 1 or (real and real[0] in "%‰" and None in units):
            kinds = [cells.filter(cells.str.extract(UNITS).eq_missing(u))[0] for u in units]
            raise ValueError(
                f"{file.path}: column {name!r} mixes units, such as {kinds[0]!r} and {kinds[1]!r}; "
                f"convert it, or leave it out with {columns_hint('drop', name)}"
            )


def _vocabularies(
    preview: Preview, names: Sequence[str], choice: ColumnChoice
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]:
    """Text columns with few distinct values, with these values, and the columns to hash.

    The values in standard input are not known beforehand, so they are hashed.
    """
    words, hashed = [], []
    for name in names:
        known = preview.text([name])[name].unique()
        if name in choice.hashed or preview.reader is not None or len(known) > MAX_WORDS:
            hashed.append(name)
        else:
            words.append((name, tuple(known.sort().to_list())))
    return tuple(words), tuple(hashed)


def scale_of(X: NDArray[np.float64]) -> Scale:
    """Mean and spread of numeric columns, ignoring missing values."""
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
    """What the user may not expect."""
    notes = file_notes(preview, recipe)
    if codes := [name for name in recipe.numbers if _has_leading_zeros(preview, name)]:
        notes.append(
            f"read as numbers, with leading zeros: {first_few(codes)}; if these are codes, give "
            + columns_hint("text", *codes)
        )
    if left_out:
        notes.append(f"left out {describe_left_out(left_out)}")
    if recipe.gaps:
        gaps = [f"{c.name} ({c.null_count() / len(c):.1%})" for c in columns if c.null_count()]
        notes.append(
            f"missing numbers are filled with the column's mean and marked: {first_few(gaps)}"
        )
    if recipe.words:
        sizes = [f"{name} ({len(words)})" for name, words in recipe.words]
        notes.append(f"text, one feature per value: {first_few(sizes)}")
    if recipe.hashed:
        notes.append(f"text, hashed: {first_few(recipe.hashed)}")
    return notes


def describe_left_out(left_out: Mapping[str, str]) -> str:
    """Columns that are not learned from, by reason, in one sentence.

    >>> describe_left_out({"id": "it numbers the rows", "a": "it has no values"})
    "'id' (it numbers the rows); 'a' (it has no values)"
    """
    names: dict[str, list[str]] = {}
    for name, why in left_out.items():
        names.setdefault(why, []).append(repr(name))
    return "; ".join(f"{first_few(some)} ({why})" for why, some in names.items())


def file_notes(preview: Preview, recipe: Recipe) -> list[str]:
    """How the files are written and their numbers were read, where that is not obvious."""
    notes = []
    for file in preview.files:
        place = f" ({file.path})" if len(preview.files) > 1 else ""
        notes += [note + place for note in file.notes]
        if read := _read_as_numbers(file, recipe):
            notes.append(f"read as numbers{place}: {first_few(read)}")
    return notes


def _has_leading_zeros(preview: Preview, name: str) -> bool:
    """Whether numbers in text are written like codes, such as 01234."""
    return any(
        file.kinds[name] != NUMBER
        and file.table[name].cast(pl.String()).str.contains(r"^\s*0[0-9]+\s*$").any()
        for file in preview.files
    )


def _read_as_numbers(file: FilePreview, recipe: Recipe) -> list[str]:
    """Columns of a file whose numbers are formatted as text, each with an example."""
    read = []
    for name, decimal in file.decimals.items():
        if name in recipe.numbers:
            odd = file.table[name].str.strip_chars().str.contains(r"^[-+]?[0-9.]+$").not_()
            odd |= file.table[name].str.contains(".", literal=True) & (decimal == ",")
            shown = file.numbers[name].is_finite() & odd
            if (place := shown.arg_max()) is not None and shown[place]:
                read.append(
                    f"{name} ({file.table[name][place]!r} is {file.numbers[name][place]:g})"
                )
    typed = [n for n in recipe.numbers if file.kinds[n] == TEXT and n not in file.decimals]
    return read + typed


def first_few(words: Sequence[str], most: int = 8) -> str:
    """The first items of a long list.

    >>> first_few(["a", "b", "c"], 2)
    'a, b, and 1 more'
    """
    more = f", and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
