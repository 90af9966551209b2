"""The suite keeps attacking: every fuzzer for some seconds, always with the same seed.

`make fuzz MINUTES=n` draws another seed each time, and goes on for as long as you like.
"""

import subprocess
import sys

import pytest

from fuzz.run import FUZZERS, HERE

MINUTES, SEED = "0.05", "1"


@pytest.mark.parametrize("name", [name for name in FUZZERS if not name.endswith("_kills")])
def test_nothing_hostile_gets_through(name):
    """Killed workers and servers have tests of their own, with the same fuzzers."""
    command = [sys.executable, HERE / "run.py", name, "--minutes", MINUTES, "--seed", SEED]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr  # has the seed, and how to repeat it
