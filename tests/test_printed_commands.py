"""Every command that the README and the guide print is run as printed."""

import os
import shlex
import sys
from functools import partial, partialmethod

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from tables import ask

from printed import blocks

reproduce = sys.modules["ordspan.cli.reproduce"]  # the module, which its function hides
PAGES = ("README.md", "docs/files.md", "docs/probabilities.md", "docs/reproduce.md")
INSTALLED = ("pip", "make")  # by whoever runs these tests


def printed(page):
    """The commands in the blocks of a page that have no language, one list for each block."""
    found = [text.splitlines() for text in blocks(page)]
    return [[line for line in block if line.split()[0] not in INSTALLED] for block in found]


def run_scripts(page):
    """Run the Python blocks of a page that are scripts, not doctests: they write its files."""
    for text in blocks(page, "python"):
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


def one_format(figure, savefig, path, **more):
    """Save a figure in one of its three formats; tests of figures look at all of them."""
    if path.suffix == ".svg":
        savefig(figure, path, **more)


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
    monkeypatch.setattr(Figure, "savefig", partialmethod(one_format, Figure.savefig))
    for line in printed(page)[number]:
        program, *words = shlex.split(line, comments=True)
        assert program == "ordspan", line
        answer = ask(*words)
        assert answer.exit_code == 0, f"{line}\n{answer.output}"


@pytest.mark.skipif(os.name != "posix", reason="forks processes")
def test_the_commands_for_rows_that_keep_coming_run_as_printed(bare, tmp_path):
    commands = blocks("docs/streaming.md", "sh")
    assert len(commands) == 3
    houses = reviews(n=60).rename(columns={"stars": "price"}).drop(columns="id")
    houses.to_csv(tmp_path / "new.csv", index=False)

    def shell(command):
        *producer, words = command.split("|")
        assert producer in ([], ["producer "])
        program, *words = shlex.split(words)
        assert program == "ordspan"
        with bare.fed(*words, cwd=tmp_path) as (process, stdin):
            stdin.write((tmp_path / "new.csv").read_bytes() + b"oops\n" if producer else b"")
        process.communicate()
        return process.returncode, sorted(file.name for file in tmp_path.glob("live*"))

    stopped = commands[0].replace("--on-bad-row skip ", "")
    assert shell(stopped) == (1, ["live.ordspan.checkpoint"])
    assert shell(commands[1]) == (0, ["live.ordspan.checkpoint"])
    assert len(pd.read_csv(tmp_path / "graded.csv")) == 60
    assert shell(commands[2]) == (0, ["live.ordspan"])
