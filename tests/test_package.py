"""What a newcomer meets first: the names, and no compiling before there is work."""

import subprocess
import sys

import pytest

import ordspan


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_public_names_are_sorted_and_all_there():
    assert ordspan.__all__ == sorted(ordspan.__all__)
    for name in ordspan.__all__:
        assert getattr(ordspan, name) is not None
    assert set(ordspan.__all__) <= set(dir(ordspan))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ordspan.nonsense


def test_importing_the_estimators_compiles_nothing():
    code = (
        "from ordspan.core import updates; import ordspan.estimators\n"
        "print([n for n, f in vars(updates).items() if getattr(f, 'signatures', None)])"
    )
    assert run_python(code).stdout.strip() == "[]"
