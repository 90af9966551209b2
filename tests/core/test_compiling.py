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
import scipy.sparse as sp

import ordspan

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
from ordspan.learners import LinearLearner
from ordspan.core.walks import score_one
learner = LinearLearner(1, 2)
learner.model.weights[:] = 2.0
print(learner.latent_one(np.ones(1)), sum(score_one.stats.cache_hits.values()))
"""
SCA_PROGRAM = """
from ordspan.learners import LinearLearner
learner = LinearLearner(1, 2, "PA", solver="sca")
learner.learn_many([[1.0]], [1])
print(*learner.weights, sum(learner.walks.walk.stats.cache_hits.values()))
"""
USES_TWO_FUNCTIONS = """
import numpy as np
from ordspan.core.exact import limits
from ordspan.core.rows import row_fits
BETWEEN
print(limits(0, 1.0)[0], row_fits(np.ones(2), None, 2))
"""


def copy_package(folder):
    """A copy of the package that nothing has been cached for."""
    package = Path(ordspan.__file__).parent
    shutil.copytree(package, folder / "ordspan", ignore=shutil.ignore_patterns("__pycache__"))


def run_in(folder, program, **environment):
    """Run a program with the copy of the package in a folder; both its outputs."""
    own = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    own |= {"PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize(
    ("program", "file", "old", "new", "printed"),
    [
        (PROGRAM, "core/rows.py", "score += weights", "score += 7 * weights", ("2.0", "14.0")),
        (SCA_PROGRAM, "experiments/sca.py", "0.0, 1.0 + sign", "0.0, 2.0 + sign", ("-0.5", "-1.0")),
    ],
    ids=["a helper in another file", "a step in another folder"],
)
def test_compiled_code_is_cached_until_what_it_calls_is_edited(
    tmp_path, program, file, old, new, printed
):
    copy_package(tmp_path)
    before, after = printed
    assert [run_in(tmp_path, program)[0] for _ in range(2)] == [f"{before} 0", f"{before} 1"]
    edited = tmp_path / "ordspan" / file
    source = edited.read_text("utf-8")
    assert source.count(old) == 1
    edited.write_text(source.replace(old, new), "utf-8")
    assert run_in(tmp_path, program)[0] == f"{after} 0"


def test_a_cache_whose_classes_were_renamed_since_is_begun_anew(tmp_path):
    """As another version of the package has left it, in the folder where this one is installed."""
    copy_package(tmp_path)
    run_in(tmp_path, PROGRAM)
    indices = list((tmp_path / "cache").rglob("*.nbi"))
    for path in indices:
        version = pickle.loads(path.read_bytes())
        path.write_bytes(pickle.dumps(version) + b"cordspan.core.state\nGone\n.")
    assert indices
    assert [run_in(tmp_path, PROGRAM)[0] for _ in range(2)] == ["2.0 0", "2.0 1"]


@pytest.mark.parametrize("since", ["the start", "the first function"])
def test_without_a_folder_for_the_cache_it_compiles_in_memory_and_warns_once(tmp_path, since):
    copy_package(tmp_path)
    no_folder = tmp_path / "file"  # no folder can be made in it, not even by root
    no_folder.touch()
    (tmp_path / "ordspan" / "core" / "__pycache__").touch()
    places = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "LOCALAPPDATA")
    nowhere = dict.fromkeys(places, str(no_folder)) if since == "the start" else {}
    gone = f"import shutil; shutil.rmtree({str(tmp_path / 'cache')!r}, ignore_errors=True);"
    gone += f"open({str(tmp_path / 'cache')!r}, 'w').close()"
    printed, warned = run_in(tmp_path, USES_TWO_FUNCTIONS.replace("BETWEEN", gone), **nowhere)
    assert printed == "1.0 True"
    assert warned.count("NUMBA_CACHE_DIR") == 1


MODELS = {
    "exact": ("OrdinalPA", {}),
    "printed": ("OrdinalPA", {"variant": "PA", "solver": "sca", "balanced": False}),
    "PRank": ("PRank", {}),
    "classes": ("MulticlassPA", {}),
    "SVM": ("OrdinalSVM", {"max_iter": 20}),
    "rbf": ("KernelOrdinalPA", {"budget": 10}),
    "poly": ("KernelOrdinalPA", {"kernel": "poly", "coef0": 1.0}),
}


def whole_library(folder):
    """Every compiled walk once, on a few rows: numbers by the name of what found them."""
    rng, found = np.random.default_rng(0), {}
    X = rng.standard_normal((40, 3)) * rng.integers(0, 2, (40, 3))
    ranks = np.clip(np.round(X[:, 0] + 2), 1, 3).astype(int)
    y = np.column_stack([ranks, np.minimum(ranks + np.arange(40) % 2, 3)])
    for name, (kind, given) in MODELS.items():
        for rows in (X, sp.csr_array(X)):
            model = getattr(ordspan, kind)(random_state=0, **({"max_iter": 2} | given)).fit(rows, y)
            if hasattr(model, "partial_fit"):
                model.partial_fit(rows, y)
            found[f"{name} {type(rows).__name__}"] = model.decision_function(rows)
        one = [model.learner_.learn_one(X[0], 1), model.learner_.predict_one(X[0])]
        found[f"{name} one"] = [*one, *model.learner_.thresholds]
    table = "a,b,word,grade\n"
    table += "".join(f"{x[0]},{x[1]},w{x[2] > 0},{k}\n" for x, k in zip(X, ranks, strict=True))
    lines = "".join(f"{k} 1:{x[0]} 3:{x[2]}\n" for x, k in zip(X, ranks, strict=True))
    for name, text, options in (("a.csv", table, {"label": "grade"}), ("a.svm", lines, {})):
        Path(folder, name).write_text(text)
        ordspan.train_files(Path(folder, name), Path(folder, f"{name}.ordspan"), **options)
        found[name] = ordspan.load(Path(folder, f"{name}.ordspan")).estimator.coef_
    return {name: np.ravel(numbers).tolist() for name, numbers in found.items()}


@pytest.mark.filterwarnings("ignore")
def test_without_the_compiler_everything_works_and_says_the_same(tmp_path):
    (tmp_path / "plain").mkdir()
    here = (str(Path(ordspan.__file__).parents[1]), str(Path(__file__).parent))
    program = "import json, test_compiling as t; "
    program += f"print(json.dumps(t.whole_library({str(tmp_path / 'plain')!r})))"
    own = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(here)}
    plain, compiled = json.loads(run_in(tmp_path, program, **own)[0]), whole_library(tmp_path)
    assert plain.keys() == compiled.keys()
    for name, numbers in compiled.items():
        np.testing.assert_allclose(plain[name], numbers, rtol=1e-7, atol=1e-9, err_msg=name)
