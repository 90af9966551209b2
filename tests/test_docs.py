"""The reference is whole: every public name is listed in it and shown at work.

That every parameter has words is checked by `make docs`, for all that is listed.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object

import ordspan

API = Path(__file__).parents[1] / "docs" / "api.rst"
ROOMS = ["ordspan", *(f"ordspan.{room}" for room in ordspan._ROOMS)]
NEEDS_FILES = {
    "abalone",
    "california",
    "era",
    "esl",
    "lev",
    "mslr",
    "parkinson",
    "swd",
}  # tests have no data sets to show


def public_things():
    """Every public class and function once, under the first room that has it."""
    found = {}
    for room in map(import_module, ROOMS):
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found.setdefault(thing, f"{room.__name__}.{name}")
    return [pytest.param(thing, name, id=name) for thing, name in found.items()]


def listed_names():
    """The names that the reference lists, each with its module."""
    module = None
    for line in API.read_text().splitlines():
        found = re.match(r"\.\. currentmodule:: (\S+)|   (\w+)$", line)
        if found and found[1]:
            module = found[1]
        elif found:
            yield f"{module}.{found[2]}"


@pytest.mark.parametrize(("thing", "name"), public_things())
def test_every_public_name_is_in_the_reference(thing, name):
    assert name in set(listed_names()), f"list {name} in docs/api.rst"


@pytest.mark.parametrize(("thing", "name"), public_things())
def test_every_public_name_is_shown_at_work(thing, name):
    if thing.__name__ not in NEEDS_FILES:
        examples = get_doc_object(thing)["Examples"]
        assert any(">>>" in line for line in examples), f"{name} has no example"
