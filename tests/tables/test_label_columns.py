"""Label columns of files: each end is read, left open, or named if it cannot be right."""

import numpy as np
import pyarrow as pa
import pytest

from commands.tables import write_table
from ordspan import stream

ENDS = {"x": [1, 2, 3, 4], "lo": ["2", None, "5", None], "hi": ["3", "2", None, None]}


def labels_in(path, **columns):
    """Rows and ends of all labels of a file of one feature."""
    batches = stream(path, features=["x"], classes=columns.pop("classes", range(1, 6)), **columns)
    return [[*map(int, row)] for b in batches for row in zip(b.rows, b.lower, b.upper, strict=True)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_empty_end_is_open_and_a_row_without_any_is_left_out(tmp_path, ending):
    path = write_table(pa.table(ENDS), tmp_path / f"a.{ending}")
    assert labels_in(path, lower="lo", upper="hi") == [[1, 2, 3], [2, 1, 2], [3, 5, 5]]
    assert labels_in(path, lower="lo") == [[1, 2, 5], [3, 5, 5]]
    assert labels_in(path, upper="hi") == [[1, 1, 3], [2, 1, 2]]


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ("5", "4", "lo 5 is above hi 4; swap the two columns, or take the lower and the higher"),
        ("", "x", "column 'hi' holds 'x': .*'x' is not among"),
    ],
)
def test_a_label_of_two_columns_that_cannot_be_right_is_named(tmp_path, low, high, message):
    (tmp_path / "a.csv").write_text(f"x,lo,hi\n1,2,3\n2,{low},{high}\n")
    with pytest.raises(ValueError, match=rf"a\.csv, row 2: .*{message}"):
        labels_in(tmp_path / "a.csv", lower="lo", upper="hi")


@pytest.mark.parametrize("column", [[1, 2, 5], [1.0, 2.0, 5.0], ["1", "2", "5"]])
def test_a_grade_is_the_same_in_every_type_of_column(tmp_path, column):
    path = write_table(pa.table({"x": column, "y": column}), tmp_path / "a.parquet")
    assert labels_in(path, label="y") == [[1, 1, 1], [2, 2, 2], [3, 5, 5]]


def test_half_grades_are_found_in_files_too(tmp_path):
    grades = [0.5, 1, 1.5, 2]
    path = write_table(pa.table({"x": range(4), "y": grades}), tmp_path / "a.csv")
    assert np.concatenate([batch.y for batch in stream(path, label="y")]).tolist() == grades
