"""Compiled reading of numbers against Python's own float, to the bit, or not at all."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordspan.tables import svmlight_numbers as parsing


def read(text):
    return parsing.read_number(np.frombuffer(text.encode() + b"\n", dtype=np.uint8), 0)


@pytest.mark.parametrize(
    "text",
    ["0", "-0", "7", "+3.", ".5", "-12.75", "1e5", "2.5E-3", "9007199254740992", "0.1", "1e22",
     "00012.50", "123456789.123", "1e-22", "4.35", "0.000001", "0.12345678901234567",
     "-123456789.12345678", "0.00012345678901234567", "1.7976931348623157e5",
     "899999999999999999", "2.2250738585072014e-5"],
)  # fmt: skip
def test_plain_numbers_are_the_nearest_double(text):
    value, end, plain = read(text)
    assert plain
    assert end == len(text)
    assert np.float64(value).tobytes() == np.float64(text).tobytes()


@pytest.mark.parametrize(
    "text",
    ["", "-", ".", "x", "e5", "1e", "1e23", "1e-23", "9007199254740993", "0." + "1" * 19,
     "1" * 40, "nan", "inf", "NaN", "1e99999"],
)  # fmt: skip
def test_anything_else_is_left_to_others(text):
    _, end, plain = read(text)
    assert not plain or end < len(text)


@given(st.integers(10**15, 10**18 - 1), st.integers(-22, 22), st.integers(0, 18))
def test_long_numbers_are_the_nearest_double_or_left_alone(digits, power, point):
    text = str(digits)
    text = f"{text[: len(text) - point]}.{text[len(text) - point :]}e{power}"
    value, end, plain = read(text)
    assert end == len(text)
    if plain:
        assert np.float64(value).tobytes() == np.float64(text).tobytes()
    elif -22 <= power - point <= 22:  # only what lies between two doubles is left in doubt
        near, gap = Fraction(float(text)), Fraction(float(np.spacing(float(text))))
        assert abs(Fraction(text) - near) in (gap / 2, gap / 4)  # below a power of two it is half


def svmlight(content, first=1):
    data = np.frombuffer(content, dtype=np.uint8)
    n, entries = content.count(b"\n"), content.count(b":")
    answers = []
    for walk in (parsing.read_svmlight_lines, parsing.read_svmlight_lines.py_func):
        arrays = (
            np.zeros(n),
            np.full(n, -1),
            np.zeros(n + 1, np.int32),
            np.zeros(entries, np.int32),
            np.zeros(entries),
        )
        answers.append((walk(data, first, *arrays), *(a.tolist() for a in arrays)))
    assert answers[0] == answers[1]
    return answers[0]


def test_svmlight_lines_become_a_csr_matrix():
    text = b"# about\n2 qid:7 1:0.5 3:-2 # tail\n\n0 2:1\r\n1\n"
    n, grades, queries, starts, columns, values = svmlight(text)
    assert n == 3
    assert (grades[:3], queries[:3], starts[:4]) == ([2, 0, 1], [7, -1, -1], [0, 2, 3, 3])
    assert (columns[:3], values[:3]) == ([0, 2, 1], [0.5, -2, 1])


@pytest.mark.parametrize(
    "line", [b"x 1:1", b"1 1:x", b"1 0:1", b"1 2:1 2:1", b"1 1", b"1 qid:a", b"1 q", b"1 1:1 qid:3",
             b"1 99999999999:1", b"1 a:1"]
)  # fmt: skip
def test_an_svmlight_line_that_is_not_plain_stops_the_walk(line):
    assert svmlight(line + b"\n")[0] == -1
