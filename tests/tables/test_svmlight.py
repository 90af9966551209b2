"""svmlight lines: every number is the double that Python reads, compiled or not."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from ordspan import stream
from ordspan.tables import svmlight_numbers as parsing

PLAIN = ["0", "-0", "7", "+3.", ".5", "-12.75", "1e5", "2.5E-3", "9007199254740992", "0.1", "1e22"]
PLAIN += ["00012.50", "123456789.123", "1e-22", "4.35", "0.000001"]
ODD = ["1e23", "1e-23", "9007199254740993", "0." + "1" * 19, "1" * 40, "0.12345678901234567"]
ODD += ["1e-400"]


@given(st.integers(0, 10**18), st.integers(-25, 25), st.integers(0, 18))
def test_a_number_is_the_nearest_double_or_left_to_python(digits, power, point):
    text = f"{digits:019}"
    text = f"{text[: 19 - point].lstrip('0')}.{text[19 - point :]}e{power}"
    value, _ = parsing.read_number(np.frombuffer(text.encode() + b"\n", dtype=np.uint8), 0)
    if not np.isnan(value):
        assert np.float64(value).tobytes() == np.float64(text).tobytes()


def test_the_numbers_of_a_file_are_those_of_python(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{i % 2} 1:{x}\n" for i, x in enumerate(PLAIN + ODD)))
    (batch,) = stream(tmp_path / "a.txt", classes=[0, 1])
    assert batch.X.toarray()[:, 0].tolist() == [float(number) for number in PLAIN + ODD]


def test_grades_may_have_many_digits(tmp_path):
    grades = ["9.300000000000001", "1." + "0" * 30, "2"]
    (tmp_path / "a.txt").write_text("".join(f"{grade} 1:1\n" for grade in grades))
    (batch,) = stream(tmp_path / "a.txt", classes=[1, 2, 9.3])
    assert batch.y.tolist() == [9.3, 1, 2]


def test_only_spaces_and_tabs_separate_numbers(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:1\x0b2:2\n2 2:1\n")
    with pytest.raises(ValueError, match=r"row 1: .* is not of the form index:value"):
        list(stream(tmp_path / "a.txt", classes=[1, 2]))


def test_a_file_is_what_scikit_learn_reads(tmp_path):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((500, 9)) < 0.4, rng.normal(size=(500, 9)), 0.0)
    queries = 123456789012345601 + np.sort(rng.integers(0, 30, 500))  # too long for a double
    path = tmp_path / "a.txt"
    dump_svmlight_file(
        X, rng.integers(0, 5, 500), str(path), zero_based=False, query_id=queries, comment="x"
    )
    expected = load_svmlight_file(str(path), query_id=True)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(path.read_bytes().replace(b" ", b"\t")))
    for name in ("a.txt", "b.txt.gz"):
        batches = stream(tmp_path / name)
        (batch,) = batches
        np.testing.assert_array_equal(batch.X.toarray(), expected[0].toarray())
        np.testing.assert_array_equal(batch.y, expected[1])
        np.testing.assert_array_equal(batch.group, queries)
        assert batches.feature_names[0] == "feature 1"


def test_a_line_may_have_no_query(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:1 # qid:7\n2 1:2\n1 qid:1 1:1\nx 1:1\n")
    batches = stream(tmp_path / "a.txt", classes=[1, 2], on_bad_row="skip")
    groups = [[None] * len(b) if b.group is None else b.group.tolist() for b in batches]
    assert [v if v == v else None for group in groups for v in group] == [None, None, 1]
    assert batches.skipped == 1


@pytest.mark.parametrize(
    ("index", "zero", "first"),
    [(0, None, [0, 5, 0, 7]), (0, True, [0, 5, 0, 7]), (1, False, [5, 0, 7])],
)
def test_indices_begin_at_0_if_0_occurs_in_any_file(tmp_path, index, zero, first):
    (tmp_path / "a.txt").write_text("1 1:5 3:7\n")
    (tmp_path / "b.txt").write_text(f"2 {index}:1\n")
    batch = next(iter(stream(tmp_path, classes=[1, 2], zero_based=zero)))
    assert batch.X.toarray().tolist() == [first]
