"""What is shipped, what importing costs, and what is said where an extra is missing."""

import email
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import ordspan
from processes import COMMAND, run

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MODULES = {"prometheus-client": "prometheus_client", "ordspan": None}
SHIPPED = (".py", ".pyi", ".html", ".css", ".js", ".svg", ".toml", ".typed")


def needs(extra):
    """The modules that an extra installs."""
    found = [
        re.match(r"([\w-]+)(?:\[(.*)\])?", need) for need in PROJECT["optional-dependencies"][extra]
    ]
    names = {MODULES.get(need[1], need[1]) for need in found}
    others = [name for need in found if need[1] == "ordspan" for name in need[2].split(",")]
    return names.union(*map(needs, others)) - {None}


EXTRAS = {*needs("all"), "pandas"}  # what only an extra installs


def without(names, code):
    """Code for a process in which some packages are not installed."""
    return f"import sys; sys.modules.update(dict.fromkeys({[*names]}))\n{code}"


def printed(*words, **more):
    """What code prints in a new process, without a complaint."""
    result = run(*words, **more)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.strip()


BUILD = """
import sys, warnings
warnings.simplefilter("error")
from hatchling.build import build_sdist, build_wheel
build_wheel(sys.argv[1]), build_sdist(sys.argv[1])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the sdist, and what builds another from the sdist."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    printed(folder, code=BUILD, cwd=ROOT)
    with tarfile.open(folder / f"ordspan-{ordspan.__version__}.tar.gz") as sdist:
        sdist.extractall(folder / "sdist", filter="data")
    printed(folder / "sdist", code=BUILD, cwd=next((folder / "sdist").iterdir()))
    return folder


def test_the_wheel_holds_the_package_and_what_it_needs(built):
    with zipfile.ZipFile(built / f"ordspan-{ordspan.__version__}-py3-none-any.whl") as wheel:
        contents = {name: wheel.read(name) for name in wheel.namelist()}
    shipped = {name for name in contents if ".dist-info/" not in name}
    source = [path for path in (ROOT / "src").rglob("*") if path.suffix in SHIPPED]
    source += (ROOT / "src/ordspan/datasets/files").iterdir()
    assert shipped == {path.relative_to(ROOT / "src").as_posix() for path in source}
    assert sum(path.stat().st_size for path in built.glob("*.whl")) < 1_200_000
    about = f"ordspan-{ordspan.__version__}.dist-info"
    needed = email.message_from_bytes(contents[f"{about}/METADATA"]).get_all("Requires-Dist")
    assert {need for need in needed if "extra ==" not in need} == set(PROJECT["dependencies"])
    assert f"{about}/licenses/LICENSE" in contents
    assert b"ordspan = ordspan.__main__:main" in contents[f"{about}/entry_points.txt"]
    with zipfile.ZipFile(next((built / "sdist").glob("*.whl"))) as again:
        assert {name: again.read(name) for name in again.namelist()} == contents


def test_importing_takes_less_than_a_second_and_neither_it_nor_training_loads_much(tmp_path):
    (tmp_path / "a.csv").write_text("a,g\n" + "1,1\n2,2\n" * 20)
    code = f"""
import sys, time
start = time.process_time()
import ordspan
assert time.process_time() - start < 1.0
print({{*{[*EXTRAS, "sklearn", "numba"]}}} & {{*sys.modules}})
ordspan.train_files("a.csv", "m", label="g")
ordspan.evaluate_files("a.csv", "m")
import ordspan.datasets
heavy = ["sklearn", "pandas", "pyarrow", "scipy.sparse", "pooch", "requests", "urllib.request"]
print({{*heavy}} & {{*sys.modules}})
"""
    assert printed(code=code, cwd=tmp_path) == "set()\nset()"


def test_without_any_extra_it_fits_saves_and_loads_and_compiles_nothing_before(tmp_path):
    code = """
import sys, numpy as np
from ordspan import OrdinalPA, OrdinalSVM, coarsen, load, parse_intervals, save
import ordspan.core.exact
assert not ordspan.core.exact.exact_step.signatures
X = np.random.default_rng(0).normal(size=(60, 2))
y = np.digitize(X[:, 0], [-0.5, 0.5]) + 1
for model in (OrdinalPA(random_state=0), OrdinalSVM()):
    model.fit(X, coarsen(y, 0.5, random_state=0))
    save(model, "model.safetensors")
    assert (load("model.safetensors").predict(X) == model.predict(X)).all()
    assert (model.predict(X) == y).mean() > 0.7
print(parse_intervals(["1-2", 3]).tolist())
"""
    assert printed(code=without(EXTRAS, code), cwd=tmp_path) == "[[1, 2], [3, 3]]"


TRAIN = "ordspan train a.csv --label g --model m"
EVALUATE = "ordspan evaluate a.csv --model m --html page.html"
REPRODUCE = "ordspan reproduce --datasets synthetic --runs 1 --trials 20 --out x"
DRAW = "ordspan.plot.ConfusionDistanceDisplay.from_predictions([1, 2], [1, 2])"
READERS = ("train_files", "predict_files", "evaluate_files", "stream")
MISSING = [
    # the package, what is asked for, and the extra; each is there when the next is missing
    ("polars", TRAIN, "cli"),
    *(("polars", f"ordspan.{name}('a.csv')", "cli") for name in READERS),
    ("filelock", TRAIN, "cli"),
    ("matplotlib", EVALUATE, "cli"),
    ("matplotlib", REPRODUCE, "cli"),
    ("matplotlib", DRAW, "plot"),
    ("river", "ordspan.river", "river"),
    ("dask", "ordspan.distributed", "dask"),
]
ASK_WITHOUT = """
import shlex, sys
import ordspan
from ordspan.cli import app
for package, asked in zip(sys.argv[1::2], sys.argv[2::2]):
    sys.modules[package] = None
    try:
        print(eval(asked) if not asked.startswith("ordspan ") else app(shlex.split(asked)[1:]))
    except ImportError as error:
        print(error, file=sys.stderr)
    except SystemExit as end:
        assert end.code == 1
    del sys.modules[package]
"""


def test_a_missing_extra_is_told_in_one_line_with_the_way_out(tmp_path):
    (tmp_path / "a.csv").write_text("a,g\n1,1\n2,2\n")
    asked = [word for package, words, _ in MISSING for word in (package, words)]
    result = run(*asked, code=ASK_WITHOUT, cwd=tmp_path)
    for line, (package, words, extra) in zip(result.stderr.splitlines(), MISSING, strict=True):
        who = "ConfusionDistanceDisplay" if words == DRAW else "this"
        assert (
            line.removeprefix("error: ") == f"{who} needs {package}: pip install 'ordspan[{extra}]'"
        )
        assert package in needs(extra)
    result = run("--version", code=without(["typer"], COMMAND))
    assert result.stderr == "error: this needs typer: pip install 'ordspan[cli]'\n"
    assert result.returncode == 1
