"""Attack for as long as you like: python tests/fuzz/run.py --minutes 10 [--seed 1] [models ...].

Each fuzzer is a module beside this one with a function ``attack(rng, folder)`` that makes one
attack and raises where a promise does not hold. A fuzzer runs in a process of its own, so that a
crash is noticed and named by its number; the seed is printed, and --only repeats one attack.
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
    path.stem for path in HERE.glob("*.py") if "\ndef attack(" in path.read_text(encoding="utf-8")
)


def one_attack(name: str, seed: int, number: int, folder: Path) -> None:
    """Attack ``number`` of a seed."""
    rng = np.random.default_rng([seed, number])
    import_module(f"fuzz.{name}").attack(rng, folder)


def attacks(name: str, seed: int, seconds: float, last: Path) -> None:
    """Attack for some seconds, not counting the first attack, which compiles."""
    with TemporaryDirectory() as folder, last.open("w") as file:
        for number in count():
            file.seek(0)
            file.write(str(number))
            file.flush()  # known even if this attack ends the process
            one_attack(name, seed, number, Path(folder))
            if number == 0:
                until = time.monotonic() + seconds
            if time.monotonic() >= until:
                break


def in_own_process(name: str, seed: int, seconds: float) -> bool:
    """Whether a fuzzer found nothing; what it found is printed."""
    with TemporaryDirectory() as folder:
        last = Path(folder) / "number"
        command = [sys.executable, __file__, name, "--seed", str(seed)]
        command += ["--seconds", str(seconds), "--last", str(last)]
        code = subprocess.run(command, check=False).returncode
        number = int(last.read_text()) if last.exists() else 0
    end = "nothing found" if code == 0 else f"ended with code {code}; repeat the last one with"
    print(f"{name}: seed {seed}, {number + 1:,} attacks, {end}", flush=True)
    if code:
        print(f"    python tests/fuzz/run.py {name} --seed {seed} --only {number}", flush=True)
    return code == 0


def main() -> None:
    """Attack as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="for all fuzzers together")
    parser.add_argument("--seed", type=int, help="left out, another one each time")
    parser.add_argument("--only", type=int, metavar="N", help="repeat attack N of the seed")
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--last", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "commands")]
    names = args.names or FUZZERS
    if unknown := set(names) - set(FUZZERS):
        parser.error(f"no fuzzer {min(unknown)}; there are {', '.join(FUZZERS)}")
    seed = int.from_bytes(os.urandom(4)) if args.seed is None else args.seed
    if args.only is not None:
        with TemporaryDirectory() as folder:
            one_attack(names[0], seed, args.only, Path(folder))
    elif args.last is not None:
        attacks(names[0], seed, args.seconds, args.last)
    else:
        seconds = 60.0 * args.minutes / len(names)
        found = [name for name in names if not in_own_process(name, seed, seconds)]
        if found:
            raise SystemExit(f"found something: {', '.join(found)}")


if __name__ == "__main__":
    main()
