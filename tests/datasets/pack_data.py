"""Pack the original files of the public data sets into the package.

    python tests/datasets/pack_data.py FOLDER

FOLDER holds the files named in ``ORIGINALS``, as their archives have them. Every decimal number is
stored as a whole number of its column's smallest unit, so nothing is rounded. The surveys become
one table, each column as codes of its distinct words.
"""

import csv
import hashlib
import json
import re
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np

FILES = Path(__file__).parents[2] / "src" / "ordspan" / "datasets" / "files"
ORIGINALS = {
    "abalone": "abalone/abalone.data",
    "california": "california_housing/cal_housing.data",
    "parkinson": "parkinsons_telemonitoring/parkinsons_updrs.data",
    "income": "fivethirtyeight_surveys",
}
NAMES = {  # of the files without a header, as their descriptions have them
    "abalone": "sex,length,diameter,height,whole_weight,shucked_weight,viscera_weight,"
    "shell_weight,rings",
    "california": "longitude,latitude,housingMedianAge,totalRooms,totalBedrooms,population,"
    "households,medianIncome,medianHouseValue",
}
SEXES = {"M": "1", "F": "-1", "I": "0"}
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
QUESTIONS = {  # the columns of the table, and their names in the files
    "sex": ("Gender", "What is your gender?", "gender"),
    "age": ("Age", "ppage"),
    "education": ("Education", "educ"),
    "region": ("Location (Census Region)", "US Region"),
    "income": (
        "Household Income",
        "How much total combined money did all members of your HOUSEHOLD earn last year?",
        "income_cat",
    ),
}
NO_ANSWER = ("", "-", "Response", "Prefer not to answer")
TOP_BAND = {"150000": "$150,000+"}  # as flying-etiquette.csv writes it


def read_original(path):
    """The text with LF line ends and one at the end, as copies differ in these."""
    return path.read_text(encoding="utf-8").rstrip("\n") + "\n"


def pack(name, text):
    """Names, whole numbers (a row for each column) and units of a comma separated text."""
    lines = text.split()
    header = NAMES[name] if name in NAMES else lines.pop(0)
    columns = zip(*(line.split(",") for line in lines), strict=True)
    cells = [[Decimal(SEXES.get(cell, cell)).normalize() for cell in column] for column in columns]
    decimals = [max(0, *(-cell.as_tuple().exponent for cell in column)) for column in cells]
    numbers = [
        [int(cell.scaleb(places)) for cell in column]
        for column, places in zip(cells, decimals, strict=True)
    ]
    return {
        "names": np.array(header.split(",")),
        "numbers": np.array(numbers, dtype=np.int32),  # refuses a number that does not fit
        "units": np.array([10**places for places in decimals], dtype=np.int64),
    }


def read_surveys(folder):
    """Survey, sex, age, education, region and income of everybody who told the income, as text."""
    for survey, file in SURVEYS.items():
        with Path(folder, file).open(encoding="latin-1", newline="") as lines:
            for row in csv.DictReader(lines):
                answers = {
                    name: next((row[question] for question in questions if question in row), "")
                    for name, questions in QUESTIONS.items()
                }
                if answers["income"] not in NO_ANSWER:
                    yield {"survey": survey} | answers


def age_band(text):
    """One of the four bands in which eight surveys ask for the age; the ninth has years."""
    years = int(re.search("[0-9]+", text)[0]) + text.startswith(">")
    return next(band for start, band in AGE_BANDS.items() if years >= start)


AGE_BANDS = {60: "60+", 45: "45-59", 30: "30-44", 18: "18-29"}


def bracket(text):
    """Ends of a half-open bracket of dollars.

    >>> bracket("$25,000 - $49,999"), bracket("Less than $40k"), bracket("$125k or more")
    ((25000.0, 50000.0), (0.0, 40000.0), (125000.0, inf))
    """
    text = TOP_BAND.get(text, text)
    unit = 1000 if "k" in text else 1
    amounts = [unit * float(part.replace(",", "")) for part in re.findall("[0-9][0-9,]*", text)]
    if len(amounts) == 2:
        low, high = amounts
        return low, high if unit == 1000 else high + 1
    return (0.0, amounts[0]) if text.startswith("Less") else (amounts[0], np.inf)


def pack_surveys(rows):
    """The distinct words of each column of the table, and which of them every row has."""
    columns = {name: [] for name in ("survey", *QUESTIONS, "lower", "upper") if name != "income"}
    for row in rows:
        values = {name: "" if text in NO_ANSWER else text for name, text in row.items()}
        values["lower"], values["upper"] = bracket(values.pop("income"))
        values["age"] = values["age"] and age_band(values["age"])
        for name, value in values.items():
            columns[name].append(value)
    packed = {name: np.unique(column, return_inverse=True) for name, column in columns.items()}
    codes = np.array([codes for _, codes in packed.values()], dtype=np.uint8)
    return {"codes": codes} | {name: words for name, (words, _) in packed.items()}


def main(folder):
    sources = FILES / "sources.json"
    about = json.loads(sources.read_text(encoding="utf-8"))
    for name, path in ORIGINALS.items():
        packed = FILES / f"{name}.npz"
        if name == "income":
            files = (Path(folder, path, file) for file in SURVEYS.values())
            original = b"".join(file.read_bytes() for file in files)
            np.savez_compressed(packed, **pack_surveys(read_surveys(Path(folder, path))))
        else:
            original = read_original(Path(folder, path)).encode()
            np.savez_compressed(packed, **pack(name, original.decode()))
        about[name]["original_sha256"] = hashlib.sha256(original).hexdigest()
        about[name]["sha256"] = hashlib.sha256(packed.read_bytes()).hexdigest()
    sources.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
