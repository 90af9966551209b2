"""What files and options ask for fits into memory, or is refused before anything is written."""

import re

import numpy as np
import pytest

from commands.tables import machine_of, said
from ordspan import stream, train_files

MOST_GRADES = 4096


@pytest.fixture
def small_machine():
    with machine_of(2e9):
        yield


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a.csv"
    cells = np.random.default_rng(0).normal(size=60).round(3)
    path.write_text("a,g\n" + "".join(f"{a},{i % 3}\n" for i, a in enumerate(cells)))
    return path


def test_a_stray_index_is_named_before_it_becomes_features(tmp_path, small_machine):
    path = tmp_path / "a.txt"
    path.write_text("1 1:1\n2 999999999:2\n")
    message = r"a\.txt, row 2: index 999999999 means 999,999,999 features.* 150\.0 GB .* 1\.0 GB"
    assert re.search(message, said("train", path, "--model", tmp_path / "m", code=1))
    assert not (tmp_path / "m").exists()
    batches = stream(path, n_features=5, classes=[1, 2], on_bad_row="skip")  # as the message says
    assert [len(batch) for batch in batches] == [1]
    with pytest.raises(ValueError, match="999,999,999 features would take"):
        stream(path, n_features=999999999)


def test_more_hashed_features_than_fit_are_refused(table, small_machine):
    with pytest.raises(ValueError, match=r"16,777,216 features from 1 columns .* fewer hash_bits"):
        stream(table, label="g", features=["a"], hashed=["a"], hash_bits=24)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("1..99999999999", "has 99,999,999,999 grades, more than the"),
        ("4097..1", "has 4,097 grades, more than the"),
        ("-99999999999..99999999999", "has [0-9,]+ grades, more than the"),
        ("1.." + "9" * 5000, "cannot read the order"),
    ],
)
def test_an_order_of_too_many_grades_is_refused(tmp_path, table, order, message):
    with pytest.raises(ValueError, match=message):
        train_files(table, tmp_path / "m", label="g", classes=order)


@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_labels_of_too_many_grades_are_refused(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    line = "{0},{0}\n" if ending == "csv" else "{0} 1:{0}\n"
    lines = "".join(line.format(i + 0.5) for i in range(MOST_GRADES + 1))
    path.write_text("a,g\n" * (ending == "csv") + lines)
    with pytest.raises(ValueError, match="the labels have 4,097 grades, more than the 4,096"):
        stream(path, label="g" if ending == "csv" else None)
    if ending == "csv":
        with pytest.raises(ValueError, match="the order has 4,097 grades"):
            stream(path, label="g", classes=range(MOST_GRADES + 1))


def test_budgets_that_do_not_fit_are_refused(tmp_path, table, small_machine):
    words = ["train", table, "--label", "g", "--learner", "kernel", "--budget", 10**10]
    message = "10000000000 support vectors of 1 features would take about 80.0 GB.* smaller budget"
    assert re.search(message, said(*words, "--model", tmp_path / "m", code=1))
    assert not (tmp_path / "m").exists()
