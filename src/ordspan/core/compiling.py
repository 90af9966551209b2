"""What the compiled walks tell the compiler and the processor.

A change here is not seen by what Numba has compiled and stored before.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload


@intrinsic
def uncounted(typing_context, array):
    """An array without an owner to be told who uses it."""

    def codegen(context, builder, signature, args):
        view = context.make_array(array)(context, builder, args[0])
        for owner in ("meminfo", "parent"):
            setattr(view, owner, cgutils.get_null_value(getattr(view, owner).type))
        return view._getvalue()

    return array(array), codegen


def borrowed(array):
    """The same array, but nobody counts who uses it: counting costs more than a step.

    For arguments only: the caller of the function holds on to them.
    """
    return array


@overload(borrowed)
def borrowed_in_compiled_code(array):
    """Tell the compiler; plain Python does not count like this."""
    return lambda array: uncounted(array)


@intrinsic
def fetched(typing_context, array, place):
    """Fetch a place of an array, counted through all its rows, into the second cache."""

    def codegen(context, builder, signature, args):
        view = context.make_array(array)(context, builder, args[0])
        small, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(view.data, [args[1]]), pointer)
        arguments = ir.FunctionType(ir.VoidType(), [pointer, small, small, small])
        call = cgutils.get_or_insert_function(builder.module, arguments, "llvm.prefetch.p0i8")
        to_read, second_cache, data = (ir.Constant(small, value) for value in (0, 2, 1))
        builder.call(call, [place, to_read, second_cache, data])
        return context.get_dummy_value()

    return types.void(array, place), codegen


def soon_needed(array, place):
    """Tell the processor that a place of an array will be needed; it need not exist."""


@overload(soon_needed)
def soon_needed_in_compiled_code(array, place):
    """Tell it; plain Python has no word for it."""
    return lambda array, place: fetched(array, place)
