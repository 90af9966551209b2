import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# threads of BLAS spin while they wait, which costs every process a quarter of a second; no test
# depends on their number
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# the profiler of Dask's workers lists all frames: if garbage with a thread's own data is collected
# meanwhile, Python 3.11.7 waits for a lock that it holds itself, and all threads for it
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")

# attacks: imported by tests, they have none of their own
collect_ignore_glob = ["fuzz/*"]

settings.register_profile("patient", deadline=None)  # CI is slow; deadlines would be flaky
settings.load_profile("patient")


def pytest_collection_modifyitems(items):
    """Whatever opens a browser is slow."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """Processes that tests start listen to Ctrl-C, also if the tests run as a background job."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def data_dir():
    """Folder with the real data sets; tests that need it skip where it does not exist."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ORDSPAN_DATA", beside))
    if not folder.is_dir():
        pytest.skip("needs the real data sets: set ORDSPAN_DATA to their folder")
    return folder


@pytest.fixture(scope="module")
def browser():
    """A browser for the pages of a module; tests that need it skip where there is none.

    Playwright keeps an event loop in this thread, so it ends before other modules need their own.
    """
    driver = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(names)} is on the path")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with (
        driver.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=flags) as browser,
    ):
        yield browser
