"""What a newcomer meets first: the public names, each in the reference and shown at work.

That every parameter has words is checked by `make docs`, for all that is listed.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import ordspan

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "api.rst").read_text("utf-8")
ROOMS = ["ordspan", *(f"ordspan.{n}" for n in dir(ordspan) if n not in ordspan.__all__)]
NEEDS_FILES = {"abalone", "california", "mslr", "parkinson"}


def public_things():
    """Every public class and function once, under the first room that has it."""
    found = {}
    for room in map(import_module, ROOMS):
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found.setdefault(thing, f"{room.__name__}.{name}")
    return {name: thing for thing, name in found.items()}


def test_public_names_are_sorted_and_all_there():
    assert ordspan.__all__ == sorted(ordspan.__all__)
    assert set(ordspan.__all__) <= set(dir(ordspan))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ordspan.nonsense


def test_every_public_name_is_in_the_reference():
    listed = set()
    for section in REFERENCE.split(".. currentmodule:: ")[1:]:
        module = section.split()[0]
        listed |= {f"{module}.{name}" for name in re.findall(r"^   (\w+)$", section, re.MULTILINE)}
    assert not public_things().keys() - listed, "list these in docs/api.rst"


def test_every_public_name_is_shown_at_work():
    without = {name for name, thing in public_things().items() if ">>>" not in thing.__doc__}
    assert {name.rpartition(".")[2] for name in without} <= NEEDS_FILES


def test_every_test_that_holds_a_promise_is_there():
    text = (ROOT / "docs" / "promises.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).is_file()] == []
