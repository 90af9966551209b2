"""Attack for as long as you like: python tests/fuzz/run.py --minutes 10 [--seed 1] [models ...].

Each fuzzer is a module beside this one with a function ``attack(rng, folder)`` that makes one
attack and raises where a promise does not hold. The way to repeat an attack is printed before it.
"""

import argparse
import os
import signal
import sys
import time
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

HERE = Path(__file__).parent
FUZZERS = sorted(
    path.stem for path in HERE.glob("*.py") if "\ndef attack(" in path.read_text(encoding="utf-8")
)


def attacks(name: str, seed: int, seconds: float, first: int = 0, least: int = 1) -> int:
    """Attack for some seconds, not counting the first attack, which compiles; how often.

    However short the time, there are at least so many attacks.
    """
    fuzzer, until = import_module(f"fuzz.{name}"), None
    with TemporaryDirectory() as folder:
        for number in count(first):
            print(f"\r{name} --seed {seed} --only {number}", end="", flush=True)
            fuzzer.attack(np.random.default_rng([seed, number]), Path(folder))
            until = until or time.monotonic() + seconds
            if time.monotonic() >= until and number - first + 1 >= least:
                return number - first + 1
    raise AssertionError


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="for all fuzzers together")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--attacks", type=int, metavar="N", help="N attacks each, however long")
    parser.add_argument("--only", type=int, metavar="N", help="repeat attack N of the seed")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "commands")]
    names = args.names or FUZZERS
    if unknown := set(names) - set(FUZZERS):
        parser.error(f"no fuzzer {min(unknown)}; there are {', '.join(FUZZERS)}")
    counted = args.only is not None or args.attacks is not None
    seconds = 0.0 if counted else 60.0 * args.minutes / len(names)
    least = 1 if args.only is not None else args.attacks or 1
    for name in names:
        n = attacks(name, args.seed, seconds, args.only or 0, least)
        print(f": {n:,} attacks, nothing found")
