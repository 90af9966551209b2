"""What a newcomer meets first: names, import time behaviour, the command without its extras."""

import subprocess
import sys

import pytest

import ordspan

HEAVY = ("sklearn", "numba", "pandas", "pyarrow", "matplotlib", "plotly", "typer")


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_public_names_are_sorted_and_all_there():
    assert ordspan.__all__ == sorted(ordspan.__all__)
    for name in ordspan.__all__:
        assert getattr(ordspan, name) is not None
    assert set(ordspan.__all__) <= set(dir(ordspan))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ordspan.nonsense


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, ordspan; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"


def test_importing_the_estimators_compiles_nothing():
    code = (
        "from ordspan.core import updates; import ordspan.estimators\n"
        "print([n for n, f in vars(updates).items() if getattr(f, 'signatures', None)])"
    )
    assert run_python(code).stdout.strip() == "[]"


def test_the_command_without_its_extra_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None\nimport ordspan.__main__ as m; m.main()"
    answer = run_python(code)
    assert answer.returncode == 1
    assert answer.stderr.strip() == "the command line needs typer: pip install 'ordspan[cli]'"
