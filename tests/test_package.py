"""What a newcomer meets first: the names, and no compiling before there is work."""

import pytest

import ordspan


def test_public_names_are_sorted_and_all_there():
    assert ordspan.__all__ == sorted(ordspan.__all__)
    for name in ordspan.__all__:
        assert getattr(ordspan, name) is not None
    assert set(ordspan.__all__) <= set(dir(ordspan))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ordspan.nonsense


def test_importing_the_estimators_compiles_nothing(bare):
    code = (
        "import sys, ordspan.estimators\n"
        "core = [m for n, m in sys.modules.items() if n.startswith('ordspan.core.')]\n"
        "functions = {n: f for m in core for n, f in vars(m).items() if hasattr(f, 'signatures')}\n"
        "assert 'exact_step' in functions\n"
        "print([n for n, f in functions.items() if f.signatures])"
    )
    assert bare.run(code=code).stdout.strip() == "[]"
