"""Compiled: svmlight lines as the arrays of a CSR matrix.

A number is read as a whole number of digits, up to 2**53, and a power of ten within +-22, both of
which a double holds exactly: one multiplication or division gives the nearest double (Clinger
1990). Other numbers are left to Python.
"""

import numpy as np

from ordspan.core.compiling import compiled, without_refcount

LARGEST_EXACT, MAX_DIGITS, LARGEST_POWER = 1 << 53, 18, 22
LARGEST_INDEX = 2**31 - 2
POWERS = 10.0 ** np.arange(LARGEST_POWER + 1)

NEWLINE, RETURN, SPACE, TAB, HASH = b"\n\r \t#"
PLUS, MINUS, POINT, COLON, ZERO, NINE, SMALL_E, LARGE_E = b"+-.:09eE"
QID = tuple(b"qid")


@compiled
def skip_blanks(data, at):
    """The next byte that is not blank; a newline is not."""
    while data[at] == SPACE or data[at] == TAB or data[at] == RETURN:
        at += 1
    return at


@compiled
def is_end(letter):
    """Whether a token ends before this byte."""
    return letter in (SPACE, NEWLINE, TAB, RETURN, HASH)


@compiled
def read_digits(data, at, number):
    """A whole number, continued by the digits at a byte, and where they end."""
    while ZERO <= data[at] <= NINE:
        number = number * 10 + (data[at] - ZERO)
        at += 1
    return number, at


@compiled
def read_number(data, at):
    """The number that begins at a byte, NaN if it is not plain, and where its token ends."""
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
        at += 1
    digits, end = read_digits(data, at, np.int64(0))
    n_digits, power = end - at, np.int64(0)
    if data[end] == POINT:
        begun = end + 1
        digits, end = read_digits(data, begun, digits)
        power = begun - end
        n_digits -= power
    plain = 0 < n_digits <= MAX_DIGITS and digits <= LARGEST_EXACT
    if data[end] == SMALL_E or data[end] == LARGE_E:
        begun = end + 1
        if data[begun] == MINUS or data[begun] == PLUS:
            begun += 1
        shift, end = read_digits(data, begun, np.int64(0))
        power += -shift if data[begun - 1] == MINUS else shift
        plain = plain and 0 < end - begun < 4
    if plain and -LARGEST_POWER <= power <= LARGEST_POWER and is_end(data[end]):
        value = np.float64(digits)
        value = value * POWERS[power] if power >= 0 else value / POWERS[-power]
        return -value if negative else value, end
    while not is_end(data[end]):
        end += 1
    return np.nan, end


@compiled
def read_query(data, at):
    """The query of ``qid:N``, and where it ends: where it begins, if it is of another form."""
    if data[at + 1] != QID[1] or data[at + 2] != QID[2] or data[at + 3] != COLON:
        return np.int64(0), at
    negative = data[at + 4] == MINUS
    begun = at + 4 + negative
    query, end = read_digits(data, begun, np.int64(0))
    plain = 0 < end - begun <= MAX_DIGITS and is_end(data[end])
    return -query if negative else query, end if plain else at


@compiled
def read_lines(data, first, last, grades, queries, starts, columns, values, places, stops):
    """Fill the arrays of a CSR matrix from svmlight lines; returns the number of rows.

    ``data`` ends with a newline, and indices are from ``first`` to ``last``. ``queries`` is left
    alone where a line has no qid, ``starts`` gets one entry more than rows. A number that is not
    plain is NaN; ``places`` has the byte where its cell begins, first those of the values, then
    those of the grades. A row with a cell of another form is empty; ``stops`` has its byte.
    """
    data = without_refcount(data)  # counted, every call would take 2.2 times as long
    at, row, entry = 0, 0, 0
    while at < data.size:
        at = skip_blanks(data, at)
        if data[at] != NEWLINE and data[at] != HASH:
            places[values.size + row] = at
            grades[row], at = read_number(data, at)
            at = skip_blanks(data, at)
            if data[at] == QID[0]:
                query, end = read_query(data, at)
                if end > at:
                    queries[row], at = query, skip_blanks(data, end)
            before = first - 1
            while data[at] != NEWLINE and data[at] != HASH:
                index, end = read_digits(data, at, np.int64(0))
                is_index = 0 < end - at <= MAX_DIGITS and data[end] == COLON
                if not (is_index and before < index <= last):
                    stops[row], entry = at, starts[row]
                    break
                columns[entry], places[entry] = index - first, at
                values[entry], at = read_number(data, end + 1)
                at = skip_blanks(data, at)
                before = index
                entry += 1
            row += 1
            starts[row] = entry
        while data[at] != NEWLINE:
            at += 1
        at += 1
    return row
