"""The suite keeps attacking: every fuzzer for some seconds, always with the same seed.

`make fuzz MINUTES=n` draws another seed each time, and goes on for as long as you like.
"""

import pytest

from fuzz.run import FUZZERS, attacks


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # what is hostile may be warned of
@pytest.mark.parametrize("name", [name for name in FUZZERS if name != "dask_kills"])
def test_nothing_hostile_gets_through(name):
    """Killed workers of Dask have tests of their own, with the same fuzzer."""
    assert attacks(name, seed=1, seconds=3.0)
