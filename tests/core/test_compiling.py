"""The cache of compiled functions: used by the next process, and not after an edit anywhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ordspan
from ordspan.core.compiling import digest_of

PROGRAM = """
import numpy as np
from ordspan.core import memory, walks
state = memory.new_memory(memory.PRANK, 1.0, 1, 3, False)
walks.PRANK.learn_one(state, np.array([1.0]), None, 1, 1)
hits = sum(walks.PRANK.learn_one.stats.cache_hits.values())
print(memory.model_of(state).edges[1:-1].tolist(), hits)
"""


def learn_in_a_fresh_process(folder):
    """Thresholds after one trial, and whether the compiled walk came from the cache."""
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_compiled_walk_is_cached_until_a_helper_in_another_file_is_edited(tmp_path):
    package = Path(ordspan.__file__).parent
    shutil.copytree(package, tmp_path / "ordspan", ignore=shutil.ignore_patterns("__pycache__"))
    assert learn_in_a_fresh_process(tmp_path) == "[1.0, 1.0] 0"
    assert learn_in_a_fresh_process(tmp_path) == "[1.0, 1.0] 1"
    helper = tmp_path / "ordspan" / "core" / "exact.py"
    source = helper.read_text("utf-8")
    assert source.count("new = sign * min(old") == 1
    helper.write_text(source.replace("new = sign * min(old", "new = 7.0 * sign * min(old"), "utf-8")
    assert learn_in_a_fresh_process(tmp_path) == "[7.0, 7.0] 0"


def test_the_digest_notices_content_and_names(tmp_path):
    assert digest_of(tmp_path) == ""
    (tmp_path / "one.py").write_text("1")
    digests = {digest_of(tmp_path)}
    (tmp_path / "one.py").write_text("2")
    digests.add(digest_of(tmp_path))
    (tmp_path / "one.py").rename(tmp_path / "two.py")
    digests.add(digest_of(tmp_path))
    assert len(digests) == 3
