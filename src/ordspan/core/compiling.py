"""One decorator for every compiled function, and hints to the compiler that Numba lacks."""

import warnings
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import FunctionType

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.caching import FunctionCache, NullCache
from numba.extending import intrinsic, overload

FAST = {"reassoc", "contract", "nsz"}
"""Fast-math flags: reordered sums vectorise, while NaN and infinity stay detectable."""


def digest_of(folder: Path) -> str:
    """Digest of all Python files of a folder; empty where there are none, as in a zip archive."""
    files = sorted(file for file in folder.glob("*.py") if file.name[0] != ".")
    parts = [file.name.encode() + sha256(file.read_bytes()).digest() for file in files]
    return sha256(b"".join(parts)).hexdigest() if parts else ""


SOURCE_STAMP = digest_of(Path(__file__).parent)


@cache
def warn_of_no_cache(reason):
    """Warn that compiled code is not kept; once, as one reason holds for all."""
    warnings.warn(
        "compiled code cannot be kept on disk, so every process compiles anew, which takes seconds "
        f"({reason}); set NUMBA_CACHE_DIR to a folder that can be written to",
        RuntimeWarning,
        stacklevel=2,
    )


class MemoryCache(NullCache):
    """The cache where there is no folder for one."""

    def save_overload(self, sig, data):
        """Warn, now that compiling has taken its time; importing alone has cost nothing."""
        warn_of_no_cache("no folder for it can be written to")


class FolderCache(FunctionCache):
    """Numba's cache of a function on disk; one that cannot be read or written is done without.

    Numba's own notices an edit in the function's own file only. Its stamp is replaced by the digest
    of this whole folder, so that an edited helper in another file is noticed too.
    """

    def __init__(self, function):
        super().__init__(function)
        if SOURCE_STAMP:
            self._cache_file._source_stamp = SOURCE_STAMP

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
        """Keep compiled code, if the disk takes it."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            warn_of_no_cache(error.strerror)


def cache_for(function):
    """The cache of a function: on disk if there is a place for it."""
    try:
        return FolderCache(function)
    except RuntimeError:  # Numba has tried all folders it knows
        return MemoryCache()


def compiled(function=None, **options):
    """Compile a function on its first call, release the GIL in it, and cache it on disk.

    ``inline="always"`` compiles a function as a part of its callers, which halves the time to
    compile one that is small or has a single caller. It loses fast-math flags, and does not do for
    a function that chooses by whether an argument is None.
    """
    if function is None:
        return partial(compiled, **options)
    defaults = {"nogil": True, "no_cfunc_wrapper": True}
    dispatcher = njit(**{**defaults, **options})(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT is set
        function.py_func = function
    else:
        dispatcher._cache = cache_for(function)
    return dispatcher


def specialised(template, name, functions, **options):
    """Compile a copy of a plain function in which some global names stand for other functions.

    Numba does not cache functions that take others as arguments or close over them; those it finds
    among the globals it does.
    """
    full_name = f"{template.__name__}_{name.lower()}"
    copy = FunctionType(template.__code__, {**template.__globals__, **functions}, full_name)
    copy.__qualname__, copy.__doc__ = full_name, template.__doc__
    return compiled(copy, **options)


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


@intrinsic
def prefetch_to_second_level(typing_context, array, place):
    """Prefetch an element, counted through all rows of an array, into the second-level cache."""

    def codegen(context, builder, signature, args):
        view = context.make_array(array)(context, builder, args[0])
        small, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(view.data, [args[1]]), pointer)
        arguments = ir.FunctionType(ir.VoidType(), [pointer, small, small, small])
        call = cgutils.get_or_insert_function(builder.module, arguments, "llvm.prefetch.p0i8")
        to_read, second_level, data = (ir.Constant(small, value) for value in (0, 2, 1))
        builder.call(call, [place, to_read, second_level, data])
        return context.get_dummy_value()

    return types.void(array, place), codegen


def prefetch(array, place):
    """Prefetch an element of an array that will be needed soon; it need not exist."""


@overload(prefetch)
def prefetch_compiled(array, place):
    """The compiled form; no-op in plain Python."""
    return lambda array, place: prefetch_to_second_level(array, place)
