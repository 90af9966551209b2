"""Attack for as long as you like: python tests/fuzz/run.py --minutes 10 [--seed 1] [models ...].

Each fuzzer is a module beside this one with a function ``attack(rng, folder)`` that makes one
attack and raises AssertionError, with the facts, where a promise does not hold. A fuzzer runs in a
process of its own, so that a crash is noticed and named by its number; the seed is printed, and
--attack repeats one.
"""

import argparse
import os
import subprocess
import sys
import time
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

HERE = Path(__file__).parent
FUZZERS = sorted(
    path.stem for path in HERE.glob("*.py") if "def attack(" in path.read_text(encoding="utf-8")
)


def one_attack(name: str, seed: int, number: int, folder: Path) -> None:
    """Attack number so-and-so of a seed."""
    try:
        import_module(f"fuzz.{name}").attack(np.random.default_rng([seed, number]), folder)
    except BaseException as error:
        error.add_note(
            f"repeat it: python tests/fuzz/run.py {name} --seed {seed} --attack {number}"
        )
        raise


def attacks(name: str, seed: int, seconds: float, told: Path) -> None:
    """Attack for some seconds, one after the other; ``told`` holds the number of the last."""
    until = time.monotonic() + seconds
    with TemporaryDirectory() as folder, told.open("w") as file:
        for number in count():
            if number and time.monotonic() > until:
                break
            file.seek(0)
            file.write(str(number))
            file.flush()
            one_attack(name, seed, number, Path(folder))


def in_own_process(name: str, seed: int, seconds: float) -> bool:
    """Whether a fuzzer found nothing; what it found is printed."""
    with TemporaryDirectory() as folder:
        told = Path(folder) / "number"
        command = [sys.executable, __file__, name, "--seed", str(seed)]
        command += ["--seconds", str(seconds), "--told", str(told)]
        code = subprocess.run(command, check=False).returncode
        number = told.read_text() if told.exists() else "0"
    end = "nothing found" if code == 0 else f"ended with code {code} in attack {number}"
    print(f"{name}: seed {seed}, {int(number) + 1:,} attacks, {end}", flush=True)
    return code == 0


def main() -> None:
    """Attack by the command line's wish."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*FUZZERS, []], default=[])
    parser.add_argument("--minutes", type=float, default=1.0, help="for all fuzzers together")
    parser.add_argument("--seed", type=int, help="left out, another one each time")
    parser.add_argument("--attack", type=int, help="repeat this attack of the seed")
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--told", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "commands")]
    names = args.names or FUZZERS
    seed = int.from_bytes(os.urandom(4)) if args.seed is None else args.seed
    if args.attack is not None:
        with TemporaryDirectory() as folder:
            one_attack(names[0], seed, args.attack, Path(folder))
    elif args.told is not None:
        attacks(names[0], seed, args.seconds, args.told)
    else:
        seconds = 60.0 * args.minutes / len(names)
        found = [name for name in names if not in_own_process(name, seed, seconds)]
        if found:
            raise SystemExit(f"found something: {', '.join(found)}")


if __name__ == "__main__":
    main()
