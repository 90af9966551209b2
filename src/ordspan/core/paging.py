"""Compiled: pages of Parquet columns as rows of a matrix.

The words of the format (`page header, run, definition level`_) are those of its specification.
Whatever is not of the plain kind ends with a refusal, never with a guess: such pages are left to
another reader.

.. _page header, run, definition level: https://parquet.apache.org/docs/file-format/
"""

import numpy as np

from ordspan.core.compiling import compiled, prefetch, without_refcount

N_HEADER = 7
PAGE, UNPACKED, PACKED, N_VALUES, ENCODING, LEVELS, HEAD = range(N_HEADER)
"""What a page header tells: the kind of page, its bytes before and after packing, its values, how
they and their levels are written, and its own size, 0 for a header that is not understood."""

DATA_PAGE, DICTIONARY_PAGE = 0, 2
PLAIN, OLD_CODED, RUNS, CODED = 0, 2, 3, 8
"""Encodings: values as they are, places in a dictionary by their old name, runs of equal small
numbers, places in a dictionary."""

N_STATE = 10
AT, END, LEFT, KIND, WIDTH, RUN, BIT, SAME, FIRST, N_ENTRIES = range(N_STATE)
"""Where a column stands in its page: byte, end and values left, what the values are and their
bits, values left in the run and its bit or (if it is -1) its one value; and its dictionary."""

PLACES, SINGLES, DOUBLES, SHORTS, LONGS = range(5)
"""What a page holds: places in a dictionary, or floats or whole numbers of four or eight bytes."""

NOTHING, TRUE, FALSE, I32, I64, TEXT, STRUCT = 0, 1, 2, 5, 6, 8, 12
IN_PAGE, IN_DATA, IN_DICTIONARY, IN_STATISTICS = range(4)
FIELDS = np.array(
    [
        [NOTHING, I32, I32, I32, I32, STRUCT, NOTHING, STRUCT, NOTHING],
        [NOTHING, I32, I32, I32, I32, STRUCT, NOTHING, NOTHING, NOTHING],
        [NOTHING, I32, I32, TRUE, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING],
        [NOTHING, TEXT, TEXT, I64, I64, TEXT, TEXT, TRUE, TRUE],
    ]
)
"""Fields of a page header, by the struct they are in and their number."""

TILE = 128
"""Rows that are gathered from all columns before they are written: few enough for the cache."""

LINE, WIDEST = 64, 32
"""Bytes of a line of the cache, bits of a place in a dictionary."""


@compiled
def varint(data, at):
    """A number of seven bits a byte, and where it ends; -1 where it does not."""
    number, shift = 0, 0
    while at < data.size and shift < 63:
        byte = np.int64(data[at])
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number, at
        shift += 7
    return 0, -1


@compiled
def page_header(data):
    """What the page header at the beginning of ``data`` tells; -1 for what it does not tell."""
    told = np.full(N_HEADER, -1, dtype=np.int64)
    told[LEVELS] = told[HEAD] = 0
    struct, outer = IN_PAGE, np.zeros(FIELDS.shape[0], dtype=np.int64)
    at = field = 0
    while 0 <= at < data.size:
        step, kind = np.int64(data[at]) >> 4, np.int64(data[at]) & 15
        at += 1
        if step == 0 and kind == 0:  # the end of a struct
            if struct == IN_PAGE:
                told[HEAD] = at
                return told
            field = outer[struct]
            struct = IN_DATA if struct == IN_STATISTICS else IN_PAGE
            continue
        field += step
        if step == 0 or field >= FIELDS.shape[1]:
            return told
        if FIELDS[struct, field] != (TRUE if kind == FALSE else kind):
            return told
        if kind == STRUCT:
            inner = IN_STATISTICS
            if struct == IN_PAGE:
                inner = IN_DATA if field == 5 else IN_DICTIONARY
            outer[inner] = field
            struct, field = inner, 0
        elif kind == TEXT:
            length, at = varint(data, at)
            if at >= 0:
                at += length
        elif kind in (I32, I64):
            zigzag, at = varint(data, at)
            number = (zigzag >> 1) ^ -(zigzag & 1)
            if struct == IN_PAGE and field <= 3:
                told[PAGE + field - 1] = number
            elif struct in (IN_DATA, IN_DICTIONARY) and field <= 3:
                told[N_VALUES + field - 1] = number
    return told


@compiled
def after_levels(data, n_values):
    """Where the definition levels end, if they say that no value is missing; otherwise -1."""
    if data.size < 4:
        return -1
    end = 4 + (
        np.int64(data[0])
        | np.int64(data[1]) << 8
        | np.int64(data[2]) << 16
        | np.int64(data[3]) << 24
    )
    if end > data.size:
        return -1
    at, n = 4, 0
    levels = data[:end]
    while n < n_values:
        run, at = varint(levels, at)
        if at < 0:
            return -1
        if run & 1:
            for _ in range(run >> 1):
                there = (1 << min(8, n_values - n)) - 1
                if at >= end or levels[at] & there != there:
                    return -1
                at += 1
                n = min(n + 8, n_values)
        else:
            if at >= end or levels[at] != 1 or run == 0:
                return -1
            at += 1
            n += run >> 1
    return end


@compiled
def open_page(state, j, content, n_values, encoding, kind, has_levels):
    """Let a column read from a page; where its values begin, or -1 if it is of another kind."""
    begin = after_levels(content, n_values) if has_levels else 0
    if begin < 0:
        return -1
    size = content.size - begin
    if encoding == PLAIN:
        if n_values * value_size(kind) > size:
            return -1
        state[j, KIND], state[j, AT] = kind, 0
    elif encoding in (CODED, OLD_CODED):
        if size == 0 or content[begin] > WIDEST or state[j, N_ENTRIES] == 0:
            return -1
        state[j, KIND], state[j, AT] = PLACES, 1
        state[j, WIDTH], state[j, RUN] = content[begin], 0
    else:
        return -1
    state[j, END], state[j, LEFT] = size, n_values
    return begin


@compiled
def value_size(kind):
    """Bytes of a value of a plain page."""
    return 8 if kind in (DOUBLES, LONGS) else 4


@compiled
def fill(state, views, entries, tile, out, largest):
    """Write the next values of every column to the rows of ``out``; how many are too large.

    NaN is too large, too. -1 where a page is damaged.

    The pages come as bytes, as words of four and as numbers of each kind. No column may have fewer
    values left in its page than there are rows.
    """
    pages, words, singles, doubles, shorts, longs = views
    state, words, entries = (
        without_refcount(state),
        without_refcount(words),
        without_refcount(entries),
    )
    tile, out = without_refcount(tile), without_refcount(out)
    n_rows, n_columns = out.shape
    n_bad = 0
    for begin in range(0, n_rows, TILE):
        n = min(TILE, n_rows - begin)
        for j in range(n_columns):
            kind, at = state[j, KIND], state[j, AT]
            if kind == PLACES:
                if not look_up(state, words, entries, j, tile, n):
                    return -1
            elif kind == SINGLES:
                copy_values(singles, j, at >> 2, tile, n)
            elif kind == DOUBLES:
                copy_values(doubles, j, at >> 3, tile, n)
            elif kind == SHORTS:
                copy_values(shorts, j, at >> 2, tile, n)
            else:
                copy_values(longs, j, at >> 3, tile, n)
            if kind != PLACES:
                size = n * value_size(kind)
                state[j, AT] += size
                for line in range(0, size, LINE):  # what the tile after the next one needs
                    prefetch(pages, j * pages.shape[1] + at + 2 * size + line)
            state[j, LEFT] -= n
            for i in range(n):
                n_bad += not abs(tile[j, i]) <= largest
        for i in range(n):
            for j in range(n_columns):
                out[np.uint64(begin + i), j] = tile[j, i]
    return n_bad


@compiled
def copy_values(values, j, at, tile, n):
    """The next values of a column as they are."""
    for i in range(n):  # places without a sign: no need to look whether one counts from the end
        tile[j, i] = values[j, np.uint64(at) + np.uint64(i)]


@compiled
def look_up(state, words, entries, j, tile, n):
    """The next values of a column from its dictionary; False where a page is damaged."""
    width, n_entries, first = state[j, WIDTH], state[j, N_ENTRIES], state[j, FIRST]
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    done = 0
    while done < n:
        if state[j, RUN] == 0 and not next_run(state, words, j):
            return False
        count = min(n - done, state[j, RUN])
        bit = state[j, BIT]
        if bit < 0:
            if state[j, SAME] >= n_entries:
                return False
            for i in range(count):
                tile[j, done + i] = entries[first + state[j, SAME]]
        else:
            last, largest, place = np.uint64(n_entries - 1), np.uint64(0), np.uint64(0)
            for i in range(count):
                at = np.uint64(bit) + np.uint64(i) * np.uint64(width)
                k, shift = at >> np.uint64(5), at & np.uint64(31)
                low, high = words[j, k], words[j, k + np.uint64(1)]
                place = ((np.uint64(low) | np.uint64(high) << np.uint64(32)) >> shift) & mask
                largest = max(largest, place)
                place = np.uint64(first) + min(place, last)
                tile[j, np.uint64(done + i)] = entries[place]
            if largest > last:
                return False
            state[j, BIT] += count * width
            for i in range(0, count, LINE // entries.itemsize):  # new words stand one by one
                prefetch(entries, place + np.uint64(count + i))
        state[j, RUN] -= count
        done += count
    return True


@compiled
def next_run(state, words, j):
    """Begin the run of places at which a column stands; False where there is none."""
    at, end, width = state[j, AT], state[j, END], state[j, WIDTH]
    head, shift = np.int64(0), 0
    while True:
        if at >= end or shift > 28:
            return False
        byte = byte_at(words, j, at)
        head |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            break
    if head & 1:  # groups of eight places, bit after bit
        state[j, RUN], state[j, BIT] = (head >> 1) * 8, at * 8
        at += (head >> 1) * width
    else:  # one place, again and again
        state[j, RUN], state[j, BIT], state[j, SAME] = head >> 1, -1, 0
        for shift in range(0, width, 8):
            if at < end:
                state[j, SAME] |= byte_at(words, j, at) << shift
            at += 1
    state[j, AT] = at
    return head > 1 and at <= end


@compiled
def byte_at(words, j, at):
    """One byte of a page that is seen as words of four."""
    return np.int64(words[j, at >> 2] >> np.uint32(8 * (at & 3))) & 255
