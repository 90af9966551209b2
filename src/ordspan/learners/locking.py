"""Locks for objects that several threads may change at once."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import ref

_locks: dict[int, tuple[Any, ref[Any]]] = {}  # by id of the object
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)  # the thread that holds one is not forked


def lock_of(thing: Any) -> Any:
    """The lock of an object, the same for as long as it lives.

    It is not part of the object, so copies and pickles get their own.

    >>> class Model: ...
    >>> model = Model()
    >>> lock_of(model) is lock_of(model)
    True
    """
    number = id(thing)
    try:
        return _locks[number][0]
    except KeyError:
        alive = ref(thing, lambda _: _locks.pop(number, None))  # before the id is reused
        return _locks.setdefault(number, (RLock(), alive))[0]
