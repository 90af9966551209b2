"""A profile of files before learning: kinds of columns, scale, order of rows, grades, notes."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from ordspan.core.scaling import COUNT, MEAN, N_STATE_ROWS, SPREAD
from ordspan.labels.amounts import EDGES
from ordspan.labels.forms import OPEN
from ordspan.labels.grades import ALL_GRADES, MAX_LABELS, check_grades
from ordspan.labels.text import LabelReader
from ordspan.tables.encoder import DEFAULT_HASH_BITS, LARGEST, Encoder, Recipe, frequent_terms
from ordspan.tables.files import FileOptions, check_columns
from ordspan.tables.formats import Table
from ordspan.tables.label_columns import NO_LABEL, LabelColumns
from ordspan.tables.numbers import as_numbers, is_boolean, is_empty, why_formatted, without_codes
from ordspan.tables.rows import BEGINNING, FEATURE_BYTES, FileError, check_memory
from ordspan.tables.svmlight import find_extent
from ordspan.tables.text import STDIN
from ordspan.wording import closest, columns_hint, first_few, hint, join_hints, plural

WHOLE_BYTES, SAMPLE_BYTES = 1 << 25, 1 << 23
"""Files up to the first size are read completely; of larger ones a sample of the second size."""
MAX_WORDS = 256  # text columns with more distinct values than this are hashed
WORD, SOME_CELLS = r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}'’]+", 10_000
ENOUGH_WORDS = 4  # a cell, on average; names and most addresses have fewer
ENOUGH_ROWS = 20  # with fewer rows a column is not taken for an id
ODD_SHARE = 0.1
MOST = 0.99  # share of the values that must be different in an id, which some rows may repeat
NEAR = 2.0  # the usual step from a row's number to the next, at most: some rows may be gone
NUMBER, WORDS, SENTENCES = "number", "words", "sentences"
PARTLY, AS_REQUESTED = "not in every file", "as requested"
HAS_DATES, NEITHER = "dates", "neither numbers nor text: flatten nested values"
DAY, MONTH, YEAR = "(0?[1-9]|[12][0-9]|3[01])", "(0?[1-9]|1[0-2])", "([0-9]{2}|[0-9]{4})"
DATE = (
    rf"^([0-9]{{4}}[-/.]{MONTH}([-/.]{DAY})?|{DAY}[-/.]{DAY}[-/.]{YEAR}"
    rf"|{DAY}\.?[ -]\p{{L}}{{3,9}}\.?[ -]{YEAR}|\p{{L}}{{3,9}}\.? {DAY}, [0-9]{{4}})"
    r"([T ][0-9]{1,2}:[0-9]{2}.*)?$"
)
"""Such as 2020-01-31, 2020-01, 31.1.20, 3 May 2020 or May 3, 2020, perhaps with a time."""
ID_NAME = re.compile(
    r"(?i:^(id|index|nr|no|lfd|case|respondent|row.?(names?|id)?|unnamed.*|column \d+"
    r"|__index_level_\d+__)$|([_ .-](id|nr|no|number)|nummer)\.?$)|[a-z]I[dD]$"
)
"""Names of columns that number or name rows, if all their values are different."""
ANNOTATED = ["item", "lower", "upper", "annotator", "seconds", "asked_by"]
"""The first columns of a file that ``ordspan annotate`` wrote, of which only the label counts."""
FROM_ANNOTATE = "added by ordspan annotate beside the answer"
CHUNK, ALIKE = 10, 0.05
"""Rows of a chunk are neighbours, and alike if they correlate by more than ALIKE."""
CHANCE = 5.0  # standard deviations of the correlation in random order
N_CODES = 3  # codes for no answer beside each other, such as 97, 98 and 99
RUN_SHARE = 0.2  # values come in runs if neighbours agree by this much more than by chance
MAX_CELLS = 1 << 22  # values of svmlight rows that are checked for their order
UNLABELLED = LabelColumns()


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

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The choice of some options, in which a single column may be given by its name alone."""
        names = {n: [v] for n, v in options.items() if isinstance(v, str) and n != "missing"}
        return cls(**dict(options) | names)


class Profile:
    """What samples of files tell about their columns: of the rows with a label, if it is known.

    Of each file it has about ``size`` bytes; of standard input, the first rows.
    """

    def __init__(
        self, files: Sequence[Table], size: int = 0, columns: LabelColumns = UNLABELLED
    ) -> None:
        self.files, self.columns, self.whole, self.n_read = files, columns, True, 0
        self.path, names = files[0].path, columns.names()
        self.is_pipe = self.path == STDIN
        self.samples: list[tuple[Table, pl.DataFrame]] = []
        self.no_answers = Counter[str]()  # cells that mean no answer, by column
        for file in files:
            cells, whole = file.sample(size)
            table = without_codes(cells, file.na)
            gone = {c.name: c.null_count() - cells[c.name].null_count() for c in table}
            self.no_answers.update(gone)
            if names and table.height and {*names} <= {*table.columns}:
                is_open = pl.all_horizontal(pl.all().str.strip_chars().is_in(OPEN))
                labels = columns.texts(table, file.decimal, file.path)
                table = table.filter(~labels.select(is_open).to_series())
            self.samples.append((file, table))
            self.whole &= whole
            self.n_read += cells.height
        self.n_rows = sum(table.height for _, table in self.samples)
        if not self.n_rows:
            fault = next((file.fault for file in files if file.fault), "")
            if self.n_read:
                fault = f"{self.path}: no row has a label in {' and '.join(names)}"
            raise FileError(fault or f"{self.path}: there is a header but no rows")
        self.problems: list[str] = []  # all are told at once
        self.numbers = cache(self._read_numbers)

    def refuse_problems(self) -> None:
        """Raise if there are problems, with all of them."""
        if len(self.problems) == 1:
            raise FileError(self.problems[0])
        if self.problems:
            listed = "".join(f"\n{n}. {what}" for n, what in enumerate(self.problems, 1))
            raise FileError(f"{self.path}: {len(self.problems)} problems{listed}")

    def cells(self, name: str) -> pl.Series:
        """A column of all files as stripped text."""
        return pl.concat([table[name].cast(str).str.strip_chars() for _, table in self.samples])

    def words(self, name: str) -> pl.Series:
        """The cells that are not empty."""
        cells = self.cells(name)
        return cells.filter(~is_empty(cells))

    def _read_numbers(self, name: str) -> tuple[pl.Series, int]:
        """A column of all files as numbers, null where there is none; how many cells are words."""
        parts = [as_numbers(t[name], f.decimal) for f, t in self.samples if t.height]
        values, stray = zip(*parts, strict=True)
        return pl.concat(values), int(pl.concat(stray).sum())

    def n_missing(self, name: str) -> int:
        """Number of missing cells in a column of numbers."""
        values, n_stray = self.numbers(name)
        return values.null_count() - n_stray

    def kind(self, name: str) -> str:
        """Whether a column is made of numbers, words or sentences, or why it cannot be used."""
        if any(name not in file.names for file in self.files):
            return PARTLY
        dtypes = [table[name].dtype for _, table in self.samples if name in table.columns]
        if len(dtypes) < len(self.files) or any(t.is_nested() or t == pl.Binary for t in dtypes):
            return NEITHER
        if any(dtype.is_temporal() for dtype in dtypes):
            return HAS_DATES
        if all(dtype.is_numeric() or dtype in (pl.Boolean, pl.Null) for dtype in dtypes):
            return NUMBER
        if any(isinstance(dtype, pl.Categorical | pl.Enum) for dtype in dtypes):
            return WORDS
        values, n_stray = self.numbers(name)
        n_numbers = values.count()
        if n_stray > n_numbers:  # a stray word among numbers is reported, and stays a number
            cells = self.words(name)[:SOME_CELLS]
            if are_sentences(cells):
                return SENTENCES
            n_odd = int(cells.str.contains(DATE).not_().sum())
            return HAS_DATES if n_odd <= ODD_SHARE * len(cells) else why_formatted(cells) or WORDS
        if n_stray and is_boolean(self.cells(name)).any():
            return WORDS  # booleans among other words
        if not n_numbers or not all(file.typed for file in self.files):
            return NUMBER
        # typed as text: few whole numbers, or codes such as 01234, stay words
        cells = self.cells(name)
        if cells.str.contains(r"[0-9][.,]").any():
            return NUMBER
        codes = cells.n_unique() <= MAX_WORDS or cells.str.contains(r"^[-+]?0[0-9]").any()
        return WORDS if codes else NUMBER

    def why_useless(self, name: str, kind: str) -> str:
        """Why a column cannot help: it is empty, an id, or numbers the rows."""
        if name in ANNOTATED and all(f.names[: len(ANNOTATED)] == ANNOTATED for f in self.files):
            return FROM_ANNOTATE
        if kind not in (NUMBER, WORDS):
            return kind if kind in (PARTLY, HAS_DATES, NEITHER) else ""
        is_number = kind == NUMBER
        values = self.numbers(name)[0].drop_nulls() if is_number else self.words(name)
        if values.is_empty():
            return "no values"
        enough = max(MOST * self.n_rows, ENOUGH_ROWS)
        if len(values) < enough or (is_number and (values % 1 != 0).any()):
            return ""
        # in each file anew, perhaps
        if is_number and _is_count(values, NEAR * self.n_read / self.n_rows):
            return "numbers the rows"
        share = values.n_unique() / self.n_rows
        least = 1 if self.is_pipe else MOST  # few rows of a pipe are known
        if share < least or (is_number and not ID_NAME.search(name)):
            return ""
        return f"{'every' if share == 1 else 'nearly every'} value is different, like an id"

    def find_words(self) -> Counter[str]:
        """The values of the label columns, and how often each occurs.

        The files are read for it, unless the samples are all rows, or are to be cut into parts.
        """
        columns, words = self.columns, Counter[str]()
        labels = pl.concat([columns.texts(t, f.decimal, f.path) for f, t in self.samples])
        columns.refuse_amounts(labels, self.path)
        if self.whole or columns.parts:  # a sample is enough for equal parts
            words = columns.count_words(labels)
        elif self.is_pipe:
            way_out = EDGES if columns.brackets else ALL_GRADES
            raise ValueError(
                f"standard input and other pipes can be read only once: give the grades, {way_out}"
            )
        else:
            for file in self.files:
                for block in file.blocks(dict.fromkeys(columns.names(), pl.String()), BEGINNING):
                    good = block.only(np.delete(np.arange(len(block)), list(block.faults)))
                    table = without_codes(good.table, file.na)
                    labels = columns.texts(table, file.decimal, file.path)
                    words.update(columns.count_words(labels))
                    check_grades(len(words), f"{file.path}: the label has", MAX_LABELS)
        return words

    def order(self) -> Sequence[Any]:
        """The grades from lowest to highest, if a label column has an ordered type."""
        columns = self.columns
        names = [] if columns.brackets or columns.parts else columns.names()
        orders = [(f.path, f.orders[n]) for f in self.files for n in names if n in f.orders]
        for path, order in orders:
            if order != orders[0][1]:
                raise FileError(
                    f"{orders[0][0]} and {path} have different orders of the grades, "
                    f"{orders[0][1]} and {order}; give the right one with {ALL_GRADES}"
                )
        return orders[0][1] if orders else ()

    def sorted_by(self, recipe: Recipe, grades: LabelReader) -> str:
        """What neighbouring rows are alike in, or nothing."""
        read = [self.columns.read(grades, t, f.decimal, f.path)[:2] for f, t in self.samples]
        lower, upper = np.concatenate(read, axis=1)
        numbers = {repr(name): self.numbers(name)[0] for name in recipe.numbers}
        words = {repr(name): self.cells(name) for name in recipe.texts}
        rows = pl.DataFrame({"their labels": lower + upper} | numbers | words)
        return find_sort_key(rows.filter(lower != NO_LABEL))

    def notes(self, recipe: Recipe, left_out: Mapping[str, str]) -> list[str]:
        """What may surprise the user."""
        reasons: dict[str, list[str]] = {}
        for name, why in left_out.items():
            if why != AS_REQUESTED:
                reasons.setdefault(why, []).append(repr(name))
        texts = [t[n] for n in recipe.numbers for _, t in self.samples if t[n].dtype == pl.String]
        zeros = sorted({c.name for c in texts if c.str.contains(r"^\s*0[0-9]+\s*$").any()})
        gone = [f"{name} ({count:,})" for name, count in self.no_answers.items() if count]
        if (na := self.files[0].na) and not gone:
            gone = [f"no cell holds {' or '.join(map(repr, sorted(na)))}"]
        marked = [f"{n} ({self.n_missing(n) / self.n_rows:.1%})" for n in recipe.missing_indicators]
        told: dict[str, Sequence[str]] = {
            "read as numbers, with leading zeros: {}; if these are codes, give {text}": zeros,
            "left out {}": [f"{first_few(some)} ({why})" for why, some in reasons.items()],
            "codes for no answer: {}": gone,
            "missing numbers are filled with the column's mean and marked: {}": marked,
            "text, one feature per value: {}": [f"{n} ({len(words)})" for n, words in recipe.words],
            "text, hashed: {}": recipe.hashed,
            "sentences, learned as words and pairs of words: {}; if each cell is one category, "
            "give {text}": list(dict(recipe.sentences)),
        }
        notes = [
            form.format(first_few(items), text=columns_hint("text", *items))
            for form, items in told.items()
            if items
        ]
        for name in recipe.numbers:
            notes += _note_on_nines(name, self.numbers(name)[0].drop_nulls().to_numpy())
        return notes

    def plan(self, taken: Sequence[str], choice: ColumnChoice) -> tuple[Encoder, dict[str, str]]:
        """Choose the columns that become features, and find their mean and spread.

        Columns in ``taken`` (labels, groups) do not. Also why columns are left out. The caller
        refuses the problems that the profile then has.
        """
        needed = [*taken, *(choice.features or ()), *choice.text, *choice.hashed]
        there = list(dict.fromkeys(name for file in self.files for name in file.names))
        check_columns(self.path, there, [*needed, *choice.drop])
        for file in self.files:
            names = [code.rpartition(":")[0] for code in file.na]
            misspelled = [name for name in names if name and closest(name, file.names)]
            check_columns(file.path, file.names, [*needed, *misspelled])
        kinds = {
            name: WORDS if name in (*choice.text, *choice.hashed) else self.kind(name)
            for name in dict.fromkeys(choice.features or there)
            if name not in (*taken, *choice.drop)
        }
        useless = {name: self.why_useless(name, kind) for name, kind in kinds.items()}
        left_out = {n: why for n, why in useless.items() if why and choice.features is None}
        chosen = [name for name in kinds if name not in left_out]
        self.problems += [
            f"{self.path}: column {name!r} cannot be a feature ({kinds[name]}); leave it out with "
            f"{columns_hint('drop', name)}, or take it as words with {columns_hint('text', name)}"
            for name in chosen
            if kinds[name] not in (NUMBER, WORDS, SENTENCES)
        ]
        if not chosen:
            why = first_few([f"{name}: {reason}" for name, reason in left_out.items()])
            anyway = hint("features=", "--features NAME")
            why = f" ({why}); to use one anyway give {anyway}" if why else ""
            raise NoFeatureError(f"{self.path}: no column is left to learn from{why}")
        numbers, texts, sentences = (
            [name for name in chosen if kinds[name] == kind] for kind in (NUMBER, WORDS, SENTENCES)
        )
        marked = [n for n in numbers if choice.missing == "mean" and self.n_missing(n)]
        distinct = {name: self.cells(name).fill_null("").unique().sort() for name in texts}
        most = 0 if self.is_pipe else MAX_WORDS  # the words of a pipe are not known beforehand
        one_hot = [n for n in texts if n not in choice.hashed and len(distinct[n]) <= most]
        recipe = Recipe(
            tuple(numbers),
            tuple(marked),
            tuple((name, tuple(distinct[name])) for name in one_hot),
            tuple(name for name in texts if name not in one_hot),
            choice.hash_bits,
            tuple((name, frequent_terms(self.cells(name))) for name in sentences),
            standardise=choice.standardise,
            # standard input has no mean to fill in, unless it is learned online
            missing="error" if self.is_pipe and not choice.standardise else choice.missing,
        )
        remedies = [f"give fewer {hint('hash_bits', '--hash-bits')}"] if recipe.hashed else []
        remedies.append(f"leave columns out with {hint('drop=', '--drop NAME')}")
        left_out |= {n: AS_REQUESTED for n in there if n not in (*taken, *kinds)}
        size = f"{self.path}: {recipe.n_features:,} features from {len(chosen):,} columns"
        check_memory(size, FEATURE_BYTES * recipe.n_features, join_hints(*remedies))
        encoder = Encoder(recipe)
        if not self.is_pipe:
            for place, name in enumerate(numbers):
                encoder.state[:, place] = scale_of(self.numbers(name)[0])
        return encoder, left_out


def _is_count(values: pl.Series, step: float) -> bool:
    """Whether whole numbers rise, or fall, from nearly every row to the next, by few at once.

    A sorted measure does not: where its values lie so close, some are equal.

    >>> _is_count(pl.Series([4, 5, 7, 8, 11]), 2.0), _is_count(pl.Series([4, 5, 5, 7, 8]), 2.0)
    (True, False)
    """
    steps = np.diff(values.to_numpy())
    one_way = max((steps > 0).mean(), (steps < 0).mean())
    return bool(one_way >= MOST and np.median(np.abs(steps)) <= step)


def are_sentences(cells: pl.Series) -> bool:
    """Whether cells have several words each, and seldom the same ones.

    A few distinct cells are categories, however long.

    >>> are_sentences(pl.Series(["it broke after a week", "would buy it again any time"]))
    True
    >>> are_sentences(pl.Series(["Ada Lovelace", "Alan M. Turing"]))
    False
    """
    several = int(cells.str.count_matches(WORD).sum()) >= ENOUGH_WORDS * len(cells)
    return several and cells.n_unique() > min(MAX_WORDS, len(cells) / 2)


def scale_of(column: pl.Series) -> NDArray[np.float64]:
    """Mean and spread of a column, ignoring missing values, as a column of an encoder's state."""
    state = np.zeros(N_STATE_ROWS)
    values = column.filter(column.abs() <= LARGEST).to_numpy()
    if values.size:
        mean = values.mean() if values.min() < values.max() else values[0]
        state[[COUNT, MEAN, SPREAD]] = values.size, mean, np.square(values - mean).sum()
    return state


def _note_on_nines(name: str, values: NDArray[np.float64]) -> list[str]:
    """A note if a code of nines, such as 99 or -999, is far outside the rest of a column.

    >>> _note_on_nines("age", np.array([20.0, 30, 45, 98, 99]))[0][:62]
    "column 'age' holds 98, 99 in 2 rows, far outside the rest, 20 "
    """
    for end in (values.max(initial=0.0), values.min(initial=0.0)):
        if not re.fullmatch(r"-?99+", f"{end:g}"):
            continue
        codes, rest = (values[(np.abs(values - end) < N_CODES) == near] for near in (True, False))
        low, high = rest.min(initial=np.inf), rest.max(initial=-np.inf)
        if rest.size and min(abs(end - low), abs(end - high)) > high - low:
            some = [f"{code:g}" for code in np.unique(codes)]
            na = columns_hint("na", *(f"{name}:{code}" for code in some))
            return [
                f"column {name!r} holds {', '.join(some)} in {plural(codes.size, 'row')}, far "
                f"outside the rest, {low:g} to {high:g}; if that means no answer, give {na}"
            ]
    return []


def find_sort_key(table: pl.DataFrame) -> str:
    """The first column in which neighbouring rows are alike; empty if the rows are shuffled.

    >>> find_sort_key(pl.DataFrame({"a": [1, 3, 2] * 50, "b": range(150), "c": [0] * 150}))
    'b'
    """
    rows, every = table[: table.height // CHUNK * CHUNK], pl.all()
    ranks = rows.select(every.rank("dense").cast(pl.Float64()))
    deviations = ranks.select((every - every.mean()) / every.std())
    # over the pairs of values in a chunk: 0 in random order, 1 if all rows of a chunk are equal
    chunks = deviations.fill_nan(None).to_numpy().reshape(-1, CHUNK, table.width)
    n = (~np.isnan(chunks)).sum(axis=1)
    products = np.square(np.nansum(chunks, axis=1)) - np.nansum(np.square(chunks), axis=1)
    n_pairs = np.maximum(1, (n * (n - 1)).sum(axis=0) / 2)
    alike = products.sum(axis=0) / 2 / n_pairs > np.maximum(ALIKE, CHANCE / np.sqrt(n_pairs))
    return next((name for name, found in zip(table.columns, alike, strict=True) if found), "")


def are_runs(counts: NDArray[np.int64], n_alike: int) -> bool:
    """Whether neighbours are equal much more often than by chance.

    From the counts of the values, and the number of equal neighbours.
    """
    n_rows = max(1, int(counts.sum()))
    by_chance = float(np.square(counts / n_rows).sum())
    return by_chance < 1 and (n_alike / n_rows - by_chance) / (1 - by_chance) > RUN_SHARE


def check_index_base(files: Sequence[str], recipe: Recipe) -> None:
    """Refuse svmlight files whose first index differs from that in training."""
    extent, here = find_extent(files), int(recipe.zero_based)
    from_one = extent.smallest > 0 and extent.largest == recipe.n_sparse
    if from_one if recipe.zero_based else extent.smallest == 0:
        raise FileError(
            f"{files[0]}: indices start at {here} here, but at {1 - here} in training; number the "
            "features as in training"
        )


def count_features(files: Sequence[str], options: FileOptions) -> FileOptions:
    """The options with the first index and the number of features of svmlight files.

    What was not given is found by a first pass over the files. Indices start at 0 if 0 occurs.
    """
    size, zero_based = options.n_features, options.zero_based
    what, remedies = f"{size:,} features", [f"give a smaller {hint('n_features', '--n-features')}"]
    if not size:
        extent = find_extent(files)
        zero_based = extent.smallest == 0 if zero_based is None else zero_based
        size = extent.largest + zero_based
        if size < 1:
            raise FileError(f"{extent.where}: no line has a feature, index:value")
        what = f"{extent.where}: index {extent.largest} means {size:,} features,"
        bad = f"treat such lines as bad with {hint('n_features=', '--n-features N')}"
        remedies = ["correct it", "number the features from 1", bad]
    check_memory(what, FEATURE_BYTES * size, join_hints(*remedies))
    return replace(options, zero_based=zero_based, n_features=size)


def profile_sparse(files: Sequence[Any], recipe: Recipe) -> tuple[Encoder, str]:
    """Spread of the values present in svmlight files, and what neighbouring rows are alike in.

    Only their common features are checked for their order.
    """
    encoder, size = Encoder(recipe), SAMPLE_BYTES // len(files)
    sample = [rows[:2] for file in files for rows in file.sample_rows(size)]
    if not sample:
        return encoder, ""
    parts, grades = zip(*sample, strict=True)
    X, labels = scipy.sparse.vstack(parts, format="csr"), np.concatenate(grades)
    X.data[~(np.abs(X.data) <= LARGEST)] = 0.0
    encoder.features(X, None, learn=True)
    good = np.isfinite(labels)
    X, labels = X[good].tocsc(), labels[good]
    common = np.argsort(-np.diff(X.indptr), kind="stable")[: MAX_CELLS // max(1, labels.size)]
    names = map(recipe.name_of, common.tolist())
    rows = dict(zip(names, X[:, common].toarray().T, strict=True))
    return encoder, find_sort_key(pl.DataFrame({"their labels": labels} | rows))
