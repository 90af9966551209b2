"""Compiled: sentences as words and pairs of words, hashed into a table of features.

A token is a word, a run of signs such as ``!!`` or ``:)``, or one Chinese or Japanese character.
Cells are UTF-8 in lower case, one after the other in ``text``; each ends where ``ends`` says.
"""

from math import sqrt

import numpy as np

from ordspan.core.compiling import compiled

SPACE, LETTER, SIGN, IDEOGRAPH = range(4)
ASCII = np.full(128, SIGN)
ASCII[[c for c in range(128) if chr(c).isalnum() or c == ord("_")]] = LETTER
ASCII[[*range(33), *b".,\x7f"]] = SPACE
APOSTROPHE, CURLY_APOSTROPHE = 0x27, 0x2019
PRIME, OFFSET = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # of FNV-1a
GOLDEN, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
PAIR = 0.5  # what a pair counts, next to 1 of a word
SQ_NORM = 10.0
"""Squared norm of the features of a sentence: it counts as much as ten standardised numbers."""


@compiled
def character(text, at):
    """Code point, kind and number of bytes of a character; apostrophes are alike."""
    code = np.int64(text[at])
    if code < 0x80:
        return code, ASCII[code], 1
    size = 2 if code < 0xE0 else 3 if code < 0xF0 else 4
    code &= 0x7F >> size
    for i in range(at + 1, at + size):
        code = code << 6 | (np.int64(text[i]) & 0x3F)
    if code == CURLY_APOSTROPHE:
        return APOSTROPHE, SPACE, size
    if code < 0xC0 or 0x2000 <= code < 0x2070 or 0x3000 <= code < 0x3040:
        return code, SPACE, size  # punctuation
    if 0x20A0 <= code < 0x2C00 or 0xFE00 <= code < 0xFE10 or 0x1F000 <= code < 0x1FB00:
        return code, SIGN, size  # symbols, variants of them, pictures
    return code, IDEOGRAPH if 0x3040 <= code < 0xA000 else LETTER, size


@compiled
def next_token(text, at, end):
    """Start, end and hash of the next token of a cell; start and end are equal if none is left."""
    start, kind, hashed = at, SPACE, OFFSET
    while at < end:
        code, now, size = character(text, at)
        if code == APOSTROPHE and kind == LETTER and at + size < end:  # don't, but not 'this'
            now = LETTER if character(text, at + size)[1] == LETTER else now
        if kind == SPACE:
            start, kind = at, now
        elif now != kind or kind == IDEOGRAPH:
            return start, at, hashed
        if kind != SPACE:
            hashed = (hashed ^ np.uint64(code)) * PRIME
        at += size
    return (at if kind == SPACE else start), at, hashed


@compiled
def place_of(hashed, seed, bits):
    """Place of a word or a pair in a table of ``2 ** bits`` features."""
    mixed = (hashed ^ seed) * GOLDEN
    return np.int32(((mixed ^ mixed >> HALF) * GOLDEN) >> np.uint64(64 - bits))


@compiled
def hash_sentences(text, ends, seed, bits):
    """Words and pairs of each cell as the arrays of a CSR matrix: values, columns, starts.

    A value is the root of the count, and the squared norm of a row is SQ_NORM. Columns are sorted,
    each at most once in a row.
    """
    columns = np.empty(2 * text.size, dtype=np.int32)
    values = np.empty(columns.size)
    starts = np.zeros(ends.size + 1, dtype=np.int32)
    at = size = 0
    for row in range(ends.size):
        n, before = size, np.uint64(0)
        while True:
            start, at, hashed = next_token(text, at, ends[row])
            if start == at:
                break
            columns[n] = place_of(hashed, seed, bits) << 1
            n += 1
            if before:
                columns[n] = place_of(before * PRIME ^ hashed, seed, bits) << 1 | 1
                n += 1
            before = hashed
        columns[size:n].sort()
        total, last = 0.0, -1
        for k in range(size, n):
            count, column = PAIR if columns[k] & 1 else 1.0, columns[k] >> 1
            total += count
            if column == last:
                values[size - 1] += count
            else:
                columns[size], values[size], last = column, count, column
                size += 1
        for k in range(starts[row], size):
            values[k] = sqrt(SQ_NORM * values[k] / total)
        starts[row + 1] = size
    return values[:size].copy(), columns[:size].copy(), starts


@compiled
def token_ends(text, ends):
    """Start, end and cell of every token."""
    spans = np.empty((text.size, 3), dtype=np.int64)
    at = size = 0
    for row in range(ends.size):
        while True:
            start, at, _ = next_token(text, at, ends[row])
            if start == at:
                break
            spans[size, 0], spans[size, 1], spans[size, 2] = start, at, row
            size += 1
    return spans[:size].copy()


@compiled
def term_places(text, ends, seed, bits):
    """Place in the table of each cell, which is one word or one pair."""
    places = np.empty(ends.size, dtype=np.int32)
    at = 0
    for row in range(ends.size):
        _, at, hashed = next_token(text, at, ends[row])
        start, at, second = next_token(text, at, ends[row])
        places[row] = place_of(hashed if start == at else hashed * PRIME ^ second, seed, bits)
        at = ends[row]
    return places
