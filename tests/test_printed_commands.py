"""Every command that the README and the guide print is run as printed."""

import re
import shlex
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import ask

reproduce = sys.modules["ordspan.cli.reproduce"]  # the module, which its function hides
ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/files.md", "docs/probabilities.md", "docs/reproduce.md")
INSTALLED = ("pip", "make")  # by whoever runs these tests


def printed(page):
    """The commands in the blocks of a page that are not Python, one list for each block."""
    fenced = r"^```([^\n]*)\n(.*?)^```$"
    found = re.findall(fenced, (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    blocks = [text.splitlines() for language, text in found if not language]
    return [[line for line in b if line.split()[0] not in INSTALLED] for b in blocks]


def run_scripts(page):
    """Run the Python blocks of a page that are scripts, not doctests: they write its files."""
    found = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    for text in found:
        if not text.startswith(">>>"):
            exec(text, {})


def reviews(n=400, seed=0):
    """Rows with an id, numbers, a word and stars."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(3)
    stars = np.digitize(X.sum(axis=1) + rng.normal(0, 0.3, n), [-1, -0.3, 0.3, 1]) + 1
    town = rng.choice(["Ulm", "Graz"], n)
    ids = [f"r{seed}-{i}" for i in range(n)]
    return pd.DataFrame({"id": ids, "size": X[:, 0], "age": X[:, 1], "town": town, "stars": stars})


def few_runs(run_plan, plan, *more):
    """Run a plan that is as asked for, only smaller."""
    assert plan["runs"] in (10, 100)
    assert plan["trials"] == 7000
    run_plan(plan | {"runs": 2, "trials": 100}, *more)


BLOCKS = [(page, i) for page in PAGES for i, block in enumerate(printed(page)) if block]


def test_the_pages_do_print_commands():
    text = "\n".join(line for page in PAGES for block in printed(page) for line in block)
    for command in ("train", "evaluate", "predict", "reproduce"):
        assert f"ordspan {command} " in text


@pytest.mark.parametrize(("page", "number"), BLOCKS)
def test_commands_run_as_printed(tmp_path, monkeypatch, page, number):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(["ratings", "held-out", "new", "october", "november"]):
        reviews(seed=seed).to_csv(f"{name}.csv", index=False)
    run_scripts(page)
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    # the whole way, but with few runs: a hundred of 7,000 trials take half a minute
    monkeypatch.setattr(reproduce, "run_plan", partial(few_runs, reproduce.run_plan))
    for line in printed(page)[number]:
        program, *words = shlex.split(line, comments=True)
        assert program == "ordspan", line
        answer = ask(*words)
        assert answer.exit_code == 0, f"{line}\n{answer.output}"
