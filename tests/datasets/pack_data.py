"""Pack the original files of three public data sets into the package.

    python tests/datasets/pack_data.py FOLDER

FOLDER holds the files named in ``ORIGINALS``, as their archives have them. Every decimal number is
stored as a whole number of its column's smallest unit, so nothing is rounded.
"""

import hashlib
import json
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np

FILES = Path(__file__).parents[2] / "src" / "ordspan" / "datasets" / "files"
ORIGINALS = {
    "abalone": "abalone/abalone.data",
    "california": "california_housing/cal_housing.data",
    "parkinson": "parkinsons_telemonitoring/parkinsons_updrs.data",
}
NAMES = {  # of the files without a header, as their descriptions have them
    "abalone": "sex,length,diameter,height,whole_weight,shucked_weight,viscera_weight,"
    "shell_weight,rings",
    "california": "longitude,latitude,housingMedianAge,totalRooms,totalBedrooms,population,"
    "households,medianIncome,medianHouseValue",
}
SEXES = {"M": "1", "F": "-1", "I": "0"}


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


def main(folder):
    sources = FILES / "sources.json"
    about = json.loads(sources.read_text(encoding="utf-8"))
    for name, path in ORIGINALS.items():
        packed, text = FILES / f"{name}.npz", read_original(Path(folder, path))
        np.savez_compressed(packed, **pack(name, text))
        about[name]["original_sha256"] = hashlib.sha256(text.encode()).hexdigest()
        about[name]["sha256"] = hashlib.sha256(packed.read_bytes()).hexdigest()
    sources.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
