"""The suite keeps attacking: every fuzzer for some seconds, always with the same seed.

`make fuzz MINUTES=n` draws another seed each time, and goes on for as long as you like.
"""

import subprocess
import sys

import pytest

from fuzz.run import FUZZERS, HERE, attacks

pytestmark = pytest.mark.slow

SECONDS, SEED = 3.0, 1


@pytest.mark.filterwarnings("default")  # what is hostile may be warned of
@pytest.mark.parametrize("name", [name for name in FUZZERS if not name.endswith("_kills")])
def test_nothing_hostile_gets_through(name, tmp_path):
    """Killed workers and servers have tests of their own, with the same fuzzers."""
    last = tmp_path / "number"
    try:
        attacks(name, SEED, SECONDS, last)
    except BaseException as error:  # a panic of Polars is no Exception
        error.add_note(f"python tests/fuzz/run.py {name} --seed {SEED} --only {last.read_text()}")
        raise


def test_an_attack_runs_in_a_process_of_its_own_and_is_counted():
    command = [sys.executable, HERE / "run.py", "texts", "--minutes", "0.002", "--seed", str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"texts: seed {SEED}," in done.stdout
    assert "nothing found" in done.stdout
