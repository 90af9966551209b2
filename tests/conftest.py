import os
from pathlib import Path

import pytest
from hypothesis import settings

from devtools import Browser, Page
from forks import Forks

# threads of BLAS spin while they wait, which costs every process a quarter of a second; no test
# depends on their number
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# attacks and what they fork from: imported by tests, they have none of their own
collect_ignore_glob = ["fuzz/*"]

settings.register_profile("patient", deadline=None)  # machines are busy, and say nothing by it
settings.load_profile("patient")


def pytest_collection_modifyitems(items):
    """Whatever opens a browser is slow."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def data_dir():
    """Folder with the real data sets; tests that need it skip where it does not exist."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ORDSPAN_DATA", beside))
    if not folder.is_dir():
        pytest.skip("needs the real data sets: set ORDSPAN_DATA to their folder")
    return folder


def forks_of(preload):
    if not hasattr(os, "fork"):
        pytest.skip("needs a system that forks processes")
    return Forks(preload)


@pytest.fixture(scope="session")
def bare():
    """Starts processes that have imported what ordspan always needs, without ordspan or extras."""
    with forks_of("import bare; bare.warm_up()") as forks:
        yield forks


@pytest.fixture(scope="session")
def warm():
    """Starts processes that have imported and compiled the commands."""
    with forks_of("import warm_trainer; warm_trainer.warm_up()") as forks:
        yield forks


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A browser for all pages; tests that need it skip where there is none."""
    with Browser(tmp_path_factory.mktemp("chromium") / "profile") as browser:
        yield browser


@pytest.fixture(scope="session")
def tab(browser):
    """A tab for pages of one file: what it has compiled for one serves the next."""
    return Page(browser)
