"""One decorator for every compiled function, and hints to the compiler that Numba lacks."""

import warnings
from collections.abc import Iterable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import FunctionType

from numba import njit, types
from numba.core import cgutils
from numba.core.caching import FunctionCache, NullCache
from numba.extending import intrinsic, overload

FAST = {"reassoc", "contract", "nsz"}
"""Fast-math flags: reordered sums vectorise, while NaN and infinity stay detectable."""


def digest_of(files: Iterable[Path]) -> str:
    """Digest of source files; empty if there are none, as in a zip archive."""
    parts = [file.name.encode() + sha256(file.read_bytes()).digest() for file in files]
    return sha256(b"".join(parts)).hexdigest() if parts else ""


SOURCE_STAMP = digest_of(sorted(Path(__file__).parent.glob("[!.]*.py")))


@cache
def warn_of_no_cache(reason):
    """Warn, once per reason, that compiled code is not cached."""
    warnings.warn(
        f"compiled code cannot be cached on disk ({reason}), so every process compiles it again, "
        "which takes seconds; set NUMBA_CACHE_DIR to a writable folder",
        RuntimeWarning,
        stacklevel=2,
    )


class MemoryCache(NullCache):
    """Stand-in for the cache where no folder is writable."""

    def save_overload(self, sig, data):
        """Warn after compiling, not on import, which compiles nothing."""
        warn_of_no_cache("no cache folder is writable")


class FolderCache(FunctionCache):
    """Numba's on-disk cache of a function; one that cannot be read or written is ignored.

    Numba notices edits to the function's own file only. Its stamp is replaced by a digest of this
    whole folder, and of the function's own file if that is elsewhere, so that edits to helpers in
    other files are noticed too.
    """

    def __init__(self, function, source):
        super().__init__(function)
        if SOURCE_STAMP:
            own = Path(source or function.__code__.co_filename)
            inside = own.parent == Path(__file__).parent
            self._cache_file._source_stamp = SOURCE_STAMP + ("" if inside else digest_of([own]))

    def load_overload(self, sig, target_context):
        """Compiled code, or None."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None
        except (AttributeError, ImportError):  # an index of another version, whose names are gone
            self.flush()
            return None

    def save_overload(self, sig, data):
        """Save compiled code; warn if that fails."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            warn_of_no_cache(error.strerror)


def compiled(function=None, *, source=None, **options):
    """Compile a function on its first call, release the GIL in it, and cache it on disk.

    ``inline="always"`` compiles a function as a part of its callers, which halves the compile time
    of one that is small or has a single caller. It loses fast-math flags, and does not work for a
    function that branches on whether an argument is None. ``source`` is the file that decides
    whether cached code is still valid, besides those of this folder; by default the function's own.
    """
    if function is None:
        return partial(compiled, source=source, **options)
    defaults = {"nogil": True, "no_cfunc_wrapper": True}
    dispatcher = njit(**{**defaults, **options})(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT is set
        function.py_func = function
        return function
    try:
        dispatcher._cache = FolderCache(function, source)
    except RuntimeError:  # Numba has tried all folders it knows
        dispatcher._cache = MemoryCache()
    return dispatcher


# One walk that branches on its rule takes 1.7 times as long a step, and 5.6 s instead of 3.6 s to
# compile for the first fit.
def specialised(template, name, functions, **options):
    """Compile a copy of a plain function in which some global names refer to other functions.

    Numba does not cache functions that take others as arguments or close over them; it does cache
    functions that find others among their globals.
    """
    full_name = f"{template.__name__}_{name.lower()}"
    copy = FunctionType(template.__code__, {**template.__globals__, **functions}, full_name)
    copy.__qualname__, copy.__doc__ = full_name, template.__doc__
    return compiled(copy, **options)


# Counted, a step takes 2 times as long at 8 features and 5 ranks, 1.4 times at 136 features.
@intrinsic
def null_owner(typing_context, array):
    """The same array with its owner set to null."""

    def codegen(context, builder, signature, args):
        view = context.make_array(array)(context, builder, args[0])
        for owner in ("meminfo", "parent"):
            setattr(view, owner, cgutils.get_null_value(getattr(view, owner).type))
        return view._getvalue()

    return array(array), codegen


def without_refcount(array):
    """A view without reference counting, which would cost more than a step does.

    For arguments only: the caller keeps them alive.
    """
    return array


@overload(without_refcount)
def without_refcount_compiled(array):
    """The compiled form; no-op in plain Python, and for arguments that are None."""
    if array is types.none:
        return lambda array: None
    return lambda array: null_owner(array)
