"""Label columns of tables are read as ranks, with a fault for each row that has none."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from ordspan import stream
from ordspan.labels.text import LabelReader
from ordspan.tables.label_columns import LabelColumns, read_ranks

FIVE = LabelReader(np.arange(1, 6))


def test_an_empty_end_is_open_and_crossed_ends_are_faults():
    table = pl.DataFrame({"lo": ["2", "", "5", ""], "hi": ["3", "2", "4", "x"]})
    lower, upper, faults = read_ranks(FIVE, table, LabelColumns(lower="lo", upper="hi"))
    assert (lower[:2].tolist(), upper[:2].tolist()) == ([2, 1], [3, 2])
    assert "lo 5 is above hi 4" in faults[2]
    assert "'x' is not among" in faults[3]
    lower, upper, faults = read_ranks(FIVE, table[["lo"]], LabelColumns(lower="lo"))
    # a row without any label has rank 0
    assert (lower.tolist(), upper.tolist(), faults) == ([2, 0, 5, 0], [5, 0, 5, 0], {})


@pytest.mark.parametrize("column", [[1, 2, 5], [1.0, 2.0, 5.0], ["1", "2", "5"]])
def test_a_grade_is_the_same_in_every_type_of_column(column):
    lower, upper, faults = read_ranks(
        FIVE, pl.from_arrow(pa.table({"y": column})), LabelColumns("y")
    )
    assert (lower.tolist(), upper.tolist(), faults) == ([1, 2, 5], [1, 2, 5], {})


def test_votes_of_two_people_are_not_to_be_swapped():
    grades, columns = LabelReader(np.array([1, 2, 3])), LabelColumns(None, "anna", "ben")
    for ben, way in (([1, 1, 1], "swap the two columns"), ([1, 3, 3], "take the lower and the")):
        _, _, faults = read_ranks(grades, pl.DataFrame({"anna": [2, 2, 1], "ben": ben}), columns)
        assert way in faults[0]


def written(tmp_path, labels):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    return path


def test_half_grades_are_grades_in_files_too(tmp_path):
    rows = stream(written(tmp_path, [0.5, 1, 1.5, 2]), label="y")
    assert [label for batch in rows for label in batch.y.tolist()] == [0.5, 1, 1.5, 2]


def test_measurements_in_files_are_refused_unless_they_are_listed(tmp_path):
    path = written(tmp_path, [0.37, 1.22, 2, 0.37])
    message = r"column 'y': .*Labels like \[0.37, 1.22\] look like measurements.*--grades"
    with pytest.raises(ValueError, match=message):
        stream(path, label="y")
    rows = stream(path, label="y", classes=[0.37, 1.22, 2])
    assert [label for batch in rows for label in batch.y.tolist()] == [0.37, 1.22, 2, 0.37]
