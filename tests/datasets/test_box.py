"""What ships with the package is, number by number, what the original files say."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from pack_data import FILES, ORIGINALS, SURVEYS, bracket, pack, read_original, read_surveys

from ordspan import brackets
from ordspan.datasets import income
from ordspan.datasets.sets import SEXES, unpack_table

ABOUT = json.loads((FILES / "sources.json").read_text(encoding="utf-8"))
DATA = Path(os.environ.get("ORDSPAN_DATA") or Path(__file__).parents[3] / "shared" / "data")


def test_every_packed_file_has_its_source_licence_and_digest():
    packed = {path.stem: path.read_bytes() for path in FILES.glob("*.npz")}
    assert packed.keys() == ABOUT.keys() == ORIGINALS.keys()
    for name, content in packed.items():
        assert hashlib.sha256(content).hexdigest() == ABOUT[name]["sha256"]
        assert all(ABOUT[name][key] for key in ("source", "licence", "cite", "changes"))
    assert sum(map(len, packed.values())) < 1_000_000
    assert len(packed["income"]) < 150_000


def test_a_decimal_number_survives_packing_to_the_last_bit():
    text = "a,b,c\n0.1,-3.38E-05,7\n0.30000,1.5,0\n"
    packed = pack("toy", text)
    assert packed["numbers"].tolist() == [[1, 3], [-338, 15_000_000], [7, 0]]
    values = packed["numbers"].T / packed["units"]
    assert values.tolist() == [[0.1, -3.38e-05, 7.0], [0.3, 1.5, 0.0]]


def original_of(name):
    if not (DATA / ORIGINALS[name]).exists():
        pytest.skip("needs the original files: set ORDSPAN_DATA to their folder")
    return DATA / ORIGINALS[name]


def test_the_table_of_incomes_tells_what_the_surveys_tell():
    folder, table = original_of("income"), income()
    content = b"".join((folder / file).read_bytes() for file in SURVEYS.values())
    assert hashlib.sha256(content).hexdigest() == ABOUT["income"]["original_sha256"]
    rows = list(read_surveys(folder))
    assert len(rows) == len(table["lower"]) == 12_185
    for name in ("survey", "sex", "education", "region"):
        given = [None if row[name] in ("", "-") else row[name] for row in rows]
        assert table[name].tolist() == given
    ends = np.column_stack([table["lower"], table["upper"]])
    np.testing.assert_array_equal(ends, [bracket(row["income"]) for row in rows])


def test_the_brackets_of_the_surveys_are_read_as_they_were_written():
    rows, table = list(read_surveys(original_of("income"))), income()
    texts = np.array([row["income"] for row in rows])
    edges = [10_000, 25_000, 40_000, 50_000, *range(75_000, 225_000, 25_000)]
    expected, classes = brackets(table["lower"], table["upper"])
    for survey in SURVEYS:
        asked = table["survey"] == survey
        y, bands = brackets(np.where(texts == "150000", "$150,000+", texts)[asked], edges=edges)
        np.testing.assert_array_equal(y, expected[asked])
        assert bands.tolist() == classes.tolist()


def test_the_incomes_are_of_nine_surveys_on_three_scales():
    table, scales = income(), {}
    for survey in SURVEYS:
        lower = np.unique(table["lower"][table["survey"] == survey])
        scales.setdefault(tuple(lower / 1000), []).append(survey)
    assert sorted(map(len, scales)) == [4, 5, 10]
    assert sorted(map(len, scales.values())) == [1, 2, 6]
    assert set(table["age"]) <= {"18-29", "30-44", "45-59", "60+", None}


@pytest.mark.parametrize("name", [name for name in ORIGINALS if name != "income"])
def test_values_are_those_of_the_original_file_bit_by_bit(name):
    path = original_of(name)
    text = read_original(path)
    assert hashlib.sha256(text.encode()).hexdigest() == ABOUT[name]["original_sha256"]
    header = name == "parkinson"
    converters = {0: SEXES.__getitem__} if name == "abalone" else None
    original = np.loadtxt(path, delimiter=",", skiprows=int(header), converters=converters)
    names, values, _ = unpack_table(name)
    assert values.flags.c_contiguous  # the order of sums, and so the last bit, depends on it
    assert values.tobytes() == original.tobytes()
    if header:
        assert ",".join(names) == text.partition("\n")[0]
