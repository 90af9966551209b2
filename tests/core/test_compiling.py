"""The cache of compiled functions: used by the next process, but not after an edit.

Without a place for it, and without the compiler, the library works too, slowly.
"""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from whole_library import results

import ordspan

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
from ordspan.core.calibration import UNIT, new_state
from ordspan.core.ranges import find_ranges
state, low, high = new_state(2, np.array([0.9]), False), np.zeros(1, int), np.zeros(1, int)
state[UNIT] = 1.0
find_ranges(state, 2.0, np.array([1.0]), np.array([2]), low, high)
print(low[0], high[0], sum(find_ranges.stats.cache_hits.values()))
"""


def copy_package(folder):
    """A copy of the package that nothing has been cached for."""
    package = Path(ordspan.__file__).parent
    shutil.copytree(package, folder / "ordspan", ignore=shutil.ignore_patterns("__pycache__"))


def run_in(folder, program, **environment):
    """Run a program with the copy of the package in a folder; both its outputs."""
    own = {
        "PYTHONPATH": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=os.environ | own | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), done.stderr.strip()


def range_in_a_fresh_process(folder):
    """A range, and whether the compiled function came from the cache."""
    return run_in(folder, PROGRAM)[0]


def test_a_compiled_function_is_cached_until_a_helper_in_another_file_is_edited(tmp_path):
    copy_package(tmp_path)
    assert range_in_a_fresh_process(tmp_path) == "1 2 0"
    assert range_in_a_fresh_process(tmp_path) == "1 2 1"
    helper = tmp_path / "ordspan" / "core" / "calibration.py"
    source = helper.read_text("utf-8")
    assert source.count("return max(-MAX_SCORE") == 1
    helper.write_text(source.replace("return max(-MAX_SCORE", "return 7 * max(-MAX_SCORE"), "utf-8")
    assert range_in_a_fresh_process(tmp_path) == "2 2 0"


def test_a_cache_whose_classes_were_renamed_since_is_begun_anew(tmp_path):
    """As another version of the package has left it, in the folder where this one is installed."""
    copy_package(tmp_path)
    range_in_a_fresh_process(tmp_path)
    indices = list((tmp_path / "cache").rglob("*.nbi"))
    for path in indices:
        version = pickle.loads(path.read_bytes())
        path.write_bytes(pickle.dumps(version) + b"cordspan.core.memory\nGone\n.")
    assert indices
    assert range_in_a_fresh_process(tmp_path) == "1 2 0"
    assert range_in_a_fresh_process(tmp_path) == "1 2 1"


USES_TWO_FUNCTIONS = """
import numpy as np
from ordspan.core.ranking import rank_near
from ordspan.core.rows import row_fits
BETWEEN
print(rank_near(np.array([-np.inf, 0.0, np.inf]), 1.0, 1), row_fits(np.ones(2), None, 2))
"""


def test_without_a_folder_for_the_cache_it_compiles_in_memory_and_warns_once(tmp_path):
    copy_package(tmp_path)
    no_folder = tmp_path / "file"  # no folder can be made in it, not even by root
    no_folder.touch()
    (tmp_path / "ordspan" / "core" / "__pycache__").touch()
    places = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "LOCALAPPDATA")
    nowhere = dict.fromkeys(places, str(no_folder))
    between = "import sys; from ordspan import OrdinalPA; print('imported', file=sys.stderr)"
    program = USES_TWO_FUNCTIONS.replace("BETWEEN", between)
    printed, warned = run_in(tmp_path, program, **nowhere)
    assert printed == "2 True"
    assert warned.startswith("imported")
    assert warned.count("NUMBA_CACHE_DIR") == 1


def test_a_cache_folder_that_stops_taking_files_is_done_without(tmp_path):
    copy_package(tmp_path)
    cache = tmp_path / "cache"
    between = f"import shutil; shutil.rmtree({str(cache)!r}); open({str(cache)!r}, 'w').close()"
    printed, warned = run_in(tmp_path, USES_TWO_FUNCTIONS.replace("BETWEEN", between))
    assert printed == "2 True"
    assert warned.count("NUMBA_CACHE_DIR") == 1


def test_without_the_compiler_everything_works_and_says_the_same(tmp_path):
    (tmp_path / "plain").mkdir()
    here = (str(Path(ordspan.__file__).parents[1]), str(Path(__file__).parent))
    program = f"import whole_library; whole_library.show_results({str(tmp_path / 'plain')!r})"
    own = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(here)}
    plain = json.loads(run_in(tmp_path, program, **own)[0])
    compiled = results(tmp_path)
    assert plain.keys() == compiled.keys()
    for name, numbers in compiled.items():
        np.testing.assert_allclose(plain[name], numbers, rtol=1e-7, atol=1e-9, err_msg=name)
