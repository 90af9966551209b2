"""CSV against Python's own reader: the same cells, however the file is cut."""

import csv
import io
from unittest.mock import Mock, patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands.tables import Trickle
from ordspan import stream

CELLS = st.text(st.sampled_from(list('ab ,;"\n\r01.5é')), max_size=6)


def written(rows, line_end):
    """The rows as a CSV text; the last column is never empty, so no row looks blank."""
    lines = io.StringIO()
    quoting = csv.QUOTE_ALL if any("\r" in cell for row in rows for cell in row) else 0
    csv.writer(lines, lineterminator=line_end, quoting=quoting).writerows([["w", "x", "g"], *rows])
    return lines.getvalue().encode()


@settings(max_examples=100, deadline=None)
@example(rows=[("a", "", "1")], line_end="\n", size=4, above=0)  # the header in pieces
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, st.sampled_from("1234")), min_size=1, max_size=12),
    line_end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(4, 60),
    above=st.sampled_from([0, 600]),
)
def test_cells_are_those_of_pythons_reader(rows, line_end, size, above):
    """Also in a pipe that gives a few bytes at a time, whose first rows are read at once."""
    rows = [("a", "", "1")] * above + rows
    how = {"delimiter": ",", "decimal": ".", "features": ["g"], "keep": ["w", "x", "g"]}
    with patch("sys.stdin", Mock(buffer=Trickle(written(rows, line_end), size))):
        batches = list(stream("-", format="csv", **how))
    found = [tuple(cell or "" for cell in row) for batch in batches for row in batch.kept.rows()]
    assert found == rows
    numbers = np.concatenate([batch.rows for batch in batches])
    assert numbers.tolist() == list(range(1, len(rows) + 1))


def test_a_header_may_span_lines_and_a_word_may_be_na(tmp_path):
    (tmp_path / "a.csv").write_text('"a\nb",w,g\n1,NA,1\n2,,2\n')
    (batch,) = stream(tmp_path / "a.csv", label="g", text=["w"], keep=["w"])
    assert batch.kept["w"].to_list() == ["NA", None]
    assert batch.rows.tolist() == [1, 2]


MORE = "more fields than the 3 of the header"


@pytest.mark.parametrize(
    ("content", "row", "message", "left"),
    [
        (b"x,10,1\ny,1,000,2\nz,30,2\n", 2, MORE, [10, 30]),
        (b"x,10,1\ny,1,0,2\nz,3\n", 2, MORE, [10]),
        (b'5" disk,1,1\n"a b",2,2\nx,3,2,1\n', 3, MORE, [1, 2]),
        (b'x,1,1\n"a" b" c",2,2\n"u",3,2\nx,y,2\n', 4, "column 'a' holds 'y'", [1, 2, 3]),
        (b"\r\nx,1,1\r\n\r\n\r\nx,y,2\r\n", 2, "column 'a' holds 'y'", [1]),
        (b"x,1,1\n,,\nx,y,2\n", 3, "column 'a' holds 'y'", [1]),
        (b"\xc3\xa9,1,1\n\xe9,2,2\n1,2,3,4\n", 3, MORE, [1, 2]),
    ],
)
def test_an_odd_row_is_the_only_one_to_go(tmp_path, content, row, message, left):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,a,g\n" + content)
    wanted = {"label": "g", "classes": [0, 1, 2], "features": ["a"]}
    with pytest.raises(ValueError, match=rf"a\.csv, row {row}: .*{message}"):
        list(stream(path, **wanted))
    batches = stream(path, on_bad_row="skip", **wanted)
    assert np.concatenate([batch.X[:, 0] for batch in batches]).tolist() == left


def test_kept_numbers_stay_as_they_are_written(tmp_path):
    (tmp_path / "a.csv").write_text('a,g\n1.50,1\n 2,2\n12345678901234567890,1\n"+4",1\n1e3,2\n')
    batches = list(stream(tmp_path / "a.csv", label="g", classes=[1, 2], keep=["a"]))
    kept = [word for batch in batches for word in batch.kept["a"]]
    assert kept == ["1.50", " 2", "12345678901234567890", "+4", "1e3"]
    X = np.concatenate([batch.X.ravel() for batch in batches])
    assert X.tolist() == [1.5, 2.0, 12345678901234567890.0, 4, 1000]


def test_columns_are_judged_by_many_rows_however_they_come(tmp_path):
    (tmp_path / "a.csv").write_text("t,x,g\n5,a,1\n" + "red,2,1\nblue,3,2\n" * 40)
    names = stream(tmp_path / "a.csv", label="g", classes=[1, 2]).feature_names
    assert [name for name in names if "missing" not in name] == [
        "x",
        "t = 5",
        "t = blue",
        "t = red",
    ]
