"""Compiled: parse numbers from bytes, for the common kinds of svmlight lines.

The loop reads the common forms at full speed and gives up (returns -1) at anything else: text, very
long numbers, indices that do not increase. The caller then reads the same block line by line, so
the loop affects nothing but the time.

A number is read as a whole number of digits and a power of ten within +-22, which a double holds
exactly. Digits within 2**53 give the nearest double by one multiplication or division (Clinger
1990). Longer ones, up to 18 digits, are multiplied or divided in double-double arithmetic (Dekker
1971), whose error is far below half a unit in the last place; where even that could decide between
two doubles, the number is left to Python. So every result is the nearest double.
"""

import numpy as np

from ordspan.core.compiling import compiled

LARGEST_EXACT = 1 << 53
MAX_DIGITS = 18
LARGEST_POWER = 22
SPLIT = 134217729.0  # 2**27 + 1
DOUBT = 2.0**-95
POWERS = 10.0 ** np.arange(LARGEST_POWER + 1)

NEWLINE, RETURN, SPACE, TAB = 10, 13, 32, 9
PLUS, MINUS, POINT, COLON, HASH = 43, 45, 46, 58, 35
ZERO, NINE, SMALL_E, LARGE_E = 48, 57, 101, 69
LETTERS = (113, 105, 100)  # q, i, d


@compiled
def read_number(data, at):
    """The number that begins at a byte, where it ends, and whether it was plain enough."""
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
        at += 1
    digits = np.int64(0)
    n_digits = 0
    power = np.int64(0)
    begun = first = at
    while ZERO <= data[at] <= NINE:
        digits = digits * 10 + (data[at] - ZERO)
        at += 1
    n_digits = at - begun
    if data[at] == POINT:
        at += 1
        begun = at
        while ZERO <= data[at] <= NINE:
            digits = digits * 10 + (data[at] - ZERO)
            at += 1
        n_digits += at - begun
        power = begun - at
    if data[at] == SMALL_E or data[at] == LARGE_E:
        at, shift, plain = read_power(data, at + 1)
        power += shift
        if not plain:
            return 0.0, at, False
    if n_digits > MAX_DIGITS:
        n_digits -= leading_zeros(data, first)
    if not (0 < n_digits <= MAX_DIGITS and -LARGEST_POWER <= power <= LARGEST_POWER):
        return 0.0, at, False
    if digits > LARGEST_EXACT:
        value, plain = long_number(digits, power)
    else:
        value = np.float64(digits)
        value = value * POWERS[power] if power >= 0 else value / POWERS[-power]
        plain = True
    return -value if negative else value, at, plain


@compiled
def leading_zeros(data, at):
    """Number of leading zeros of a number."""
    n_zeros = 0
    while data[at] == ZERO or data[at] == POINT:
        n_zeros += data[at] == ZERO
        at += 1
    return n_zeros


@compiled
def long_number(digits, power):
    """The double nearest to digits times a power of ten, and whether that is certain."""
    high = np.float64(digits)
    low = np.float64(digits - np.int64(high))
    scale = POWERS[abs(power)]
    if power >= 0:
        value = high * scale
        rest = product_error(high, scale, value) + low * scale
    else:
        value = high / scale
        back = value * scale
        rest = (high - back - product_error(value, scale, back) + low) / scale
    nearest = value + rest
    rest -= nearest - value
    doubt = nearest * DOUBT
    return nearest, nearest + (rest - doubt) == nearest + (rest + doubt)


@compiled
def product_error(a, b, product):
    """The exact rounding error of a product."""
    a_high, b_high = upper_half(a), upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def upper_half(a):
    """The upper 26 bits of a double."""
    raised = a * SPLIT
    return raised - (raised - a)


@compiled
def read_power(data, at):
    """The power of ten after an e: where it ends, its value, and whether it was plain."""
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
        at += 1
    begun = at
    power = np.int64(0)
    while ZERO <= data[at] <= NINE and at < begun + 4:
        power = power * 10 + (data[at] - ZERO)
        at += 1
    return at, -power if negative else power, at > begun


@compiled
def is_end(letter):
    """Whether a token ends before this byte."""
    return letter in (SPACE, NEWLINE, TAB, RETURN, HASH)


@compiled
def read_query(data, at):
    """The query of ``qid:N``, where it ends, and whether it was plain."""
    if data[at + 1] != LETTERS[1] or data[at + 2] != LETTERS[2] or data[at + 3] != COLON:
        return np.int64(0), at, False
    at += 4
    negative = data[at] == MINUS
    at += negative
    query = np.int64(0)
    begun = at
    while ZERO <= data[at] <= NINE and at < begun + 18:
        query = query * 10 + (data[at] - ZERO)
        at += 1
    return -query if negative else query, at, at > begun and is_end(data[at])


@compiled
def read_svmlight_lines(data, first_index, grades, queries, starts, columns, values):
    """Fill the arrays of a CSR matrix from svmlight lines.

    ``data`` ends with a newline. Returns the number of rows, or -1 for lines that are not plain;
    ``queries`` is left alone where a line has no qid, ``starts`` gets one entry more than rows.
    """
    at, row, entry = 0, 0, 0
    while at < data.size:
        if data[at] == NEWLINE or data[at] == HASH:
            while data[at] != NEWLINE:
                at += 1
            at += 1
            continue
        if data[at] == SPACE or data[at] == RETURN or data[at] == TAB:
            at += 1
            continue
        grade, at, plain = read_number(data, at)
        if not (plain and is_end(data[at])):
            return -1
        before = first_index - 1
        is_first = True
        while True:
            while data[at] == SPACE or data[at] == TAB or data[at] == RETURN:
                at += 1
            if data[at] == NEWLINE or data[at] == HASH:
                break
            if data[at] == LETTERS[0]:
                query, at, plain = read_query(data, at)
                if not (plain and is_first):
                    return -1
                queries[row] = query
                is_first = False
                continue
            is_first = False
            index = np.int64(0)
            begun = at
            while ZERO <= data[at] <= NINE and at < begun + 10:
                index = index * 10 + (data[at] - ZERO)
                at += 1
            if at == begun or data[at] != COLON or index <= before or index > 2**31 - 2:
                return -1
            before = index
            value, at, plain = read_number(data, at + 1)
            if not (plain and is_end(data[at])):
                return -1
            columns[entry] = index - first_index
            values[entry] = value
            entry += 1
        grades[row] = grade
        row += 1
        starts[row] = entry
    return row
