"""What ships with the package is, number by number, what the original files say."""

import csv
import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from ordspan.datasets import income
from ordspan.datasets.sets import FILES, SEXES, unpack_table

ABOUT = json.loads((FILES / "sources.json").read_text(encoding="utf-8"))
DATA = Path(os.environ.get("ORDSPAN_DATA") or Path(__file__).parents[3] / "shared" / "data")
ORIGINALS = {
    "abalone": "abalone/abalone.data",
    "california": "california_housing/cal_housing.data",
    "parkinson": "parkinsons_telemonitoring/parkinsons_updrs.data",
    "income": "fivethirtyeight_surveys",
}
SURVEYS = {  # the name of each survey in the table, and its file
    "comma": "comma-survey.csv",
    "flying": "flying-etiquette.csv",
    "food": "food-world-cup-data.csv",
    "nonvoters": "nonvoters_data.csv",
    "sleeping": "sleeping-alone-data.csv",
    "star wars": "StarWars.csv",
    "steak": "steak-risk-survey.csv",
    "thanksgiving": "thanksgiving-2015-poll-data.csv",
    "weather": "weather-check.csv",
}
LAST_YEAR = "How much total combined money did all members of your HOUSEHOLD earn last year?"
QUESTIONS = {  # the columns of the table, and their names in the files
    "sex": ("Gender", "What is your gender?", "gender"),
    "age": ("Age", "ppage"),
    "education": ("Education", "educ"),
    "region": ("Location (Census Region)", "US Region"),
    "income": ("Household Income", LAST_YEAR, "income_cat"),
}
NO_ANSWER = ("", "-", "Response", "Prefer not to answer")
AGE_BANDS = {60: "60+", 45: "45-59", 30: "30-44", 18: "18-29"}


def original_of(name):
    if not (DATA / ORIGINALS[name]).exists():
        pytest.skip("needs the original files: set ORDSPAN_DATA to their folder")
    return DATA / ORIGINALS[name]


def test_every_packed_file_has_its_source_licence_and_digest():
    packed = {path.stem: path.read_bytes() for path in FILES.glob("*.npz")}
    assert packed.keys() == ABOUT.keys() == ORIGINALS.keys()
    for name, content in packed.items():
        assert hashlib.sha256(content).hexdigest() == ABOUT[name]["sha256"]
        assert all(ABOUT[name][key] for key in ("source", "licence", "cite", "changes"))
    assert sum(map(len, packed.values())) < 1_000_000
    assert len(packed["income"]) < 150_000


@pytest.mark.parametrize("name", [name for name in ORIGINALS if name != "income"])
def test_values_are_those_of_the_original_file_bit_by_bit(name):
    path = original_of(name)
    text = path.read_text(encoding="utf-8").rstrip("\n") + "\n"  # copies differ in line ends
    assert hashlib.sha256(text.encode()).hexdigest() == ABOUT[name]["original_sha256"]
    header = name == "parkinson"
    converters = {0: SEXES.__getitem__} if name == "abalone" else None
    original = np.loadtxt(path, delimiter=",", skiprows=int(header), converters=converters)
    names, values, _ = unpack_table(name)
    assert values.flags.c_contiguous  # the order of sums, and so the last bit, depends on it
    assert values.tobytes() == original.tobytes()
    if header:
        assert ",".join(names) == text.partition("\n")[0]


@pytest.fixture(scope="module")
def answers():
    """The survey and the answers of everybody who told the income, as text."""
    folder, rows = original_of("income"), []
    content = b"".join((folder / file).read_bytes() for file in SURVEYS.values())
    assert hashlib.sha256(content).hexdigest() == ABOUT["income"]["original_sha256"]
    for survey, file in SURVEYS.items():
        with (folder / file).open(encoding="latin-1", newline="") as lines:
            for row in csv.DictReader(lines):
                told = {"survey": survey}
                for name, questions in QUESTIONS.items():
                    told[name] = next((row[asked] for asked in questions if asked in row), "")
                if told["income"] not in NO_ANSWER:
                    rows.append(told)
    return rows


def age_band(text):
    """One of the four bands in which eight surveys ask for the age; the ninth has years."""
    years = int(re.search("[0-9]+", text)[0]) + text.startswith(">")
    return next(band for start, band in AGE_BANDS.items() if years >= start)


def test_the_table_of_incomes_tells_what_the_surveys_tell(answers):
    table = income()
    assert len(answers) == len(table["lower"]) == 12_185
    for name in ("survey", "sex", "age", "education", "region"):
        told = [None if row[name] in NO_ANSWER else row[name] for row in answers]
        if name == "age":
            told = [text and age_band(text) for text in told]
        assert table[name].tolist() == told
