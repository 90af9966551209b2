"""Learn ordered grades from exact labels or from ranges, one example at a time."""

import re
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"

# the imports that type checkers read are made only when a name is used
_STUB = (get_data(__name__, "__init__.pyi") or b"").decode()
_HOMES = {name: home for home, name in re.findall(r"from (\S+) import (\w+)", _STUB)}

__all__ = sorted(["__version__", *(name for name, home in _HOMES.items() if home != "ordspan")])


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home == "ordspan":
        return import_module(f"ordspan.{name}")
    if home is None:
        raise AttributeError(f"module 'ordspan' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES})
