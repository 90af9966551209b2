"""Install a wheel as a newcomer does and run the README: `python tests/check_wheel.py WHEEL`."""

import os
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from printed import ROOT, blocks

README = ROOT / "README.md"
SHELL = [line for block in blocks("README.md") for line in block.splitlines()]
PLAIN = """\
import subprocess, sys, numpy as np, ordspan
X = np.random.default_rng(0).normal(size=(90, 2))
model = ordspan.OrdinalPA(random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
ordspan.save(model, "m.ordspan")
assert (ordspan.load("m.ordspan").predict(X) == model.predict(X)).all()
command = subprocess.run([sys.executable, "-m", "ordspan", "--help"], stderr=subprocess.PIPE)
assert command.stderr.strip().endswith(b"pip install 'ordspan[cli]'"), command
"""
FILES = """\
import polars as pl
from ordspan.datasets import income
people = pl.DataFrame(income()).with_row_index("id").sample(fraction=1, shuffle=True, seed=0)
people[:9000].write_csv("incomes.csv")
people[9000:11000].write_csv("held-out.csv")
people[11000:].drop("lower", "upper").write_csv("new.csv")
"""
CHECKS = {
    "": [shlex.join(["python", "-W", "error", "-c", PLAIN])],
    "[cli]": [
        shlex.join(["python", "-W", "error", "-m", "doctest", str(README)]),
        shlex.join(["python", "-c", FILES]),
        *SHELL,
    ],
    "[all]": [f"ordspan {name} --help" for name in ("serve", "annotate", "reproduce", "export")],
}


def check(wheel: Path, extra: str, folder: Path) -> None:
    """Install wheels only, with no compiler in reach, and run what the extra is enough for."""
    venv.create(folder / "env", with_pip=True)
    (work := folder / "work").mkdir()
    env = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    env |= {"PATH": f"{folder}/env/bin", "HOME": f"{folder}", "NUMBA_CACHE_DIR": f"{folder}/numba"}
    install = f"pip install --quiet --only-binary :all: {shlex.quote(f'{wheel}{extra}')}"
    for line in ("python -VV", install, "pip freeze", *CHECKS[extra]):
        print("$", line, flush=True)
        subprocess.run(shlex.split(line), cwd=work, env=env, check=True)


if __name__ == "__main__":
    for extra in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            check(Path(sys.argv[1]).resolve(), extra, Path(folder))
