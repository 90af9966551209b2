"""What is shipped, what importing costs, and what is said where an extra is missing."""

import email
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import ordspan
from bare import EXTRAS
from check_wheel import SHELL, ratings

ROOT = Path(__file__).parents[1]
SOURCE = Path(ordspan.__file__).parent
DATA = "src/ordspan/data/files"
PAGES = (".html", ".css", ".js", ".svg")


def answer(code, *words, cwd=None, path=()):
    """What a new process prints; it must succeed and have nothing to complain about."""
    searched = [str(SOURCE.parent), *map(str, path), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, searched))}
    command = [sys.executable, "-c", code, *map(str, words)]
    return succeeded(
        subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=cwd)
    )


def succeeded(result):
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.strip()


def hiding(names, code):
    """Code for a bare process in which some packages are not installed."""
    return f"import bare; bare.hide({tuple(names)!r})\n{code}"


# -- what is shipped -----------------------------------------------------------------------------

BUILD = """
import sys, warnings
warnings.simplefilter("error")
from hatchling.build import build_sdist, build_wheel
build_wheel(sys.argv[1])
if len(sys.argv) > 2:
    build_sdist(sys.argv[1])
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    """Where the build backend can be imported from, fetched where it is not installed."""
    if importlib.util.find_spec("hatchling"):
        return []
    folder = tmp_path_factory.mktemp("hatchling")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "hatchling"]
    fetched = subprocess.run(install, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip("hatchling, which builds the package, is not installed and cannot be fetched")
    return [folder]


@pytest.fixture(scope="module")
def built(tmp_path_factory, backend):
    """A folder with the wheel and the sdist, built without a word of warning."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs the source tree, not only an installed package")
    folder = tmp_path_factory.mktemp("dist")
    answer(BUILD, folder, "sdist too", cwd=ROOT, path=backend)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    with zipfile.ZipFile(built / f"ordspan-{ordspan.__version__}-py3-none-any.whl") as file:
        yield file


@pytest.fixture(scope="module")
def sdist(built):
    with tarfile.open(built / f"ordspan-{ordspan.__version__}.tar.gz") as file:
        yield file


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    modules = {file.relative_to(source).as_posix() for file in source.rglob("*.py")}
    pages = {
        file.relative_to(source).as_posix()
        for ending in PAGES
        for file in source.rglob(f"*{ending}")
    }
    data = {file.relative_to(source).as_posix() for file in (ROOT / DATA).iterdir()}
    assert shipped == modules | pages | data | {"ordspan/py.typed"}
    packed = {entry.filename: entry.compress_size for entry in wheel.infolist()}
    data_size = sum(packed.pop(name) for name in data)
    assert data_size < 650_000
    assert sum(packed.values()) < 500_000


def test_what_the_wheel_says_of_itself(wheel):
    folder = f"ordspan-{ordspan.__version__}.dist-info"
    about = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert about["Version"] == ordspan.__version__
    assert about["Requires-Python"] == project["requires-python"]
    assert set(about.get_all("Provides-Extra")) == set(project["optional-dependencies"])
    always = {need for need in about.get_all("Requires-Dist") if "extra ==" not in need}
    assert always == set(project["dependencies"])
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()
    assert b"ordspan = ordspan.__main__:main" in wheel.read(f"{folder}/entry_points.txt")


def test_the_wheel_made_from_the_sdist_is_the_same(sdist, wheel, tmp_path, backend):
    sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    answer(BUILD, tmp_path, cwd=unpacked, path=backend)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as again:
        assert sorted(again.namelist()) == sorted(wheel.namelist())
        for name in wheel.namelist():
            assert again.read(name) == wheel.read(name), name


def test_the_sdist_brings_its_tests_and_the_shipped_data_only(sdist):
    names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "tests/naive.py"} <= names
    ours = {name for name in names if name.startswith(("src", "tests", "bench"))}
    data = {name for name in ours if name.startswith(f"{DATA}/")}
    assert {Path(name).name for name in data} == {file.name for file in (ROOT / DATA).iterdir()}
    ours -= data
    models = {name for name in ours if name.startswith("tests/format3/")}  # of earlier versions
    assert {Path(name).suffix for name in models} == {".ordspan"}
    assert {Path(name).suffix for name in ours - models} <= {".py", ".typed", *PAGES}


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/ordspan/__init__.py"
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == ordspan.__version__  # a citation has to say it again


# -- what importing costs ------------------------------------------------------------------------


def test_importing_takes_less_than_a_second_and_loads_nothing_heavy():
    code = f"""
import sys, time
start = time.process_time()
import ordspan
seconds = time.process_time() - start
print([name for name in {(*EXTRAS, "sklearn", "numba")!r} if name in sys.modules])
assert seconds < 1.0, seconds
"""
    assert answer(code) == "[]"


def test_importing_the_estimators_loads_no_extra(bare):
    code = f"""
import sys, ordspan.estimators
print([name for name in {EXTRAS!r} if name in sys.modules])
"""
    assert succeeded(bare.run(code=code)) == "[]"


def test_without_any_extra_it_fits_saves_and_loads(bare, tmp_path):
    code = """
import numpy as np
from ordspan import OrdinalPA, OrdinalSVM, coarsen, load, save
X = np.random.default_rng(0).normal(size=(60, 2))
y = np.digitize(X[:, 0], [-0.5, 0.5]) + 1
for model in (OrdinalPA(random_state=0), OrdinalSVM()):
    model.fit(X, coarsen(y, 0.5, random_state=0))
    save(model, "model.safetensors")
    assert (load("model.safetensors").predict(X) == model.predict(X)).all()
    assert (model.predict(X) == y).mean() > 0.7
print("fits")
"""
    assert succeeded(bare.run(code=hiding(EXTRAS, code), cwd=tmp_path)) == "fits"


def test_training_from_a_csv_file_and_evaluating_load_no_other_library(tmp_path):
    (tmp_path / "a.csv").write_text("a,g\n1,1\n2,2\n" * 1 + "1,1\n2,2\n" * 20)
    code = """
import sys
from ordspan.commands.evaluate import EvaluateJob, evaluate
from ordspan.commands.train import TrainJob, train
train(TrainJob(["a.csv"], label="g"), "m")
evaluate(EvaluateJob(["a.csv"], "m"))
print([name for name in ("sklearn", "pandas", "pyarrow", "scipy.sparse") if name in sys.modules])
"""
    assert answer(code, cwd=tmp_path) == "[]"


def test_the_module_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "ordspan", "--version"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout.strip()) == (0, f"ordspan {ordspan.__version__}")


# -- what is said where an extra is missing ------------------------------------------------------

COMMAND = "import sys, ordspan.__main__ as m; sys.argv[0] = 'ordspan'; m.main()"
TRAIN = ("train", "a.csv", "--label", "g", "--model", "m")
EVALUATE = ("evaluate", "a.csv", "--model", "m", "--html", "page.html")
REPRODUCE = ("reproduce", "--datasets", "synthetic", "--runs", "1", "--trials", "20", "--out", "x")

MISSING = [
    # the package that is missing, what is asked for, and the last line of the answer
    ("typer", COMMAND, ("--version",), "the command line needs typer: pip install 'ordspan[cli]'"),
    ("polars", COMMAND, TRAIN, "this needs polars: pip install 'ordspan[cli]'"),
    ("filelock", COMMAND, TRAIN, "this needs filelock: pip install 'ordspan[cli]'"),
    ("plotly", COMMAND, EVALUATE, "this needs plotly: pip install 'ordspan[cli]'"),
    ("pyarrow", COMMAND, REPRODUCE, "this needs pyarrow: pip install 'ordspan[cli]'"),
    ("matplotlib", COMMAND, REPRODUCE, "this needs matplotlib: pip install 'ordspan[experiments]'"),
    (
        "river",
        "import ordspan.river",
        (),
        "ModuleNotFoundError: ordspan.river needs river: pip install 'ordspan[river]'",
    ),
]


@pytest.mark.parametrize(("package", "code", "words", "line"), MISSING, ids=lambda v: str(v)[:10])
def test_a_missing_extra_is_told_in_one_line_with_the_way_out(
    bare, package, code, words, line, tmp_path
):
    (tmp_path / "a.csv").write_text("a,g\n1,1\n2,2\n")
    result = bare.run(*words, code=hiding([package], code), cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.strip().splitlines()[-1] == line
    if code is COMMAND:
        assert "Traceback" not in result.stderr
    extra = re.search(r"ordspan\[(.*)\]", line)[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = project["optional-dependencies"][extra]
    assert package in {re.match(r"[\w-]+", need)[0] for need in needs}


RUN_ALL = """
import shlex, sys
from ordspan.cli import app

for line in sys.argv[1:]:
    program, *words = shlex.split(line)
    assert program == "ordspan"
    try:
        app(words, prog_name="ordspan")
    except SystemExit as end:
        assert end.code == 0, line
"""


def test_the_extra_cli_is_enough_for_the_commands_of_the_readme(bare, tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cli = {re.match(r"[\w-]+", need)[0] for need in project["optional-dependencies"]["cli"]}
    for seed, name in enumerate(["ratings", "october", "new"]):
        (tmp_path / f"{name}.csv").write_text(ratings(seed))
    assert SHELL
    result = bare.run(*SHELL, code=hiding({*EXTRAS} - cli, RUN_ALL), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "graded.csv").read_text().count("\n") == 401
