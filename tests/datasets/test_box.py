"""What ships with the package is, number by number, what the original files say."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from pack_data import FILES, ORIGINALS, pack, read_original

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


def test_a_decimal_number_survives_packing_to_the_last_bit():
    text = "a,b,c\n0.1,-3.38E-05,7\n0.30000,1.5,0\n"
    packed = pack("toy", text)
    assert packed["numbers"].tolist() == [[1, 3], [-338, 15_000_000], [7, 0]]
    values = packed["numbers"].T / packed["units"]
    assert values.tolist() == [[0.1, -3.38e-05, 7.0], [0.3, 1.5, 0.0]]


@pytest.mark.parametrize("name", ORIGINALS)
def test_values_are_those_of_the_original_file_bit_by_bit(name):
    path = DATA / ORIGINALS[name]
    if not path.is_file():
        pytest.skip("needs the original files: set ORDSPAN_DATA to their folder")
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
