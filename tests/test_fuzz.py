"""The suite keeps attacking: every fuzzer for some seconds, each time with another seed.

`make fuzz MINUTES=n` does the same for as long as you like.
"""

import subprocess
import sys

import pytest

from fuzz.run import FUZZERS, HERE

MINUTES = "0.15"


@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_hostile_gets_through(name):
    command = [sys.executable, HERE / "run.py", name, "--minutes", MINUTES]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr  # has the seed, and how to repeat it
