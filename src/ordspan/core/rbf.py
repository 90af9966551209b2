"""Compiled: values of the rbf kernel for a block of support vectors at once, eight by eight."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LANES = 64
"""Support vectors are stored in blocks of this size, feature by feature, to be vectorised."""

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723212e-06
ROUND = 6755399441055744.0 + 1023.0
"""1.5 times 2^52, plus 1023: adding it to a number leaves the nearest integer in the lowest bits,
in the form of a float64 exponent."""

EXP_SERIES = (
    2.5100375832561234e-08,
    2.7620075879983367e-07,
    2.7557268480310024e-06,
    2.4801521322368692e-05,
    0.00019841269863040545,
    0.0013888888917196719,
    0.008333333333330065,
    0.041666666666624164,
    0.16666666666666669,
    0.5,
    1.0,
    1.0,
)
"""exp(r) = 1 + r + r^2 q(r), where q is exact at the ten Chebyshev nodes of -ln 2 / 2..ln 2 / 2.

Its relative error is below 4e-17; a Taylor polynomial needs two more terms for that."""

LOWEST_EXPONENT = -708.0
"""Lower exponents are raised to this, exp of which is 3e-308: the result stays a normal number."""

EIGHT, EIGHT_WHOLE = (ir.VectorType(kind, 8) for kind in (ir.DoubleType(), ir.IntType(64)))
"""Vectors of eight lanes, which the compiler splits on processors with narrower registers.

Left alone it uses 4 lanes, even on processors with 8.
"""


def multiply_add(builder, a, b, c):
    """a b + c, fused on processors that can; floats are broadcast to all eight lanes."""
    b, c = (ir.Constant(EIGHT, [x] * 8) if isinstance(x, float) else x for x in (b, c))
    product = builder.fmul(a, b, flags=("contract",))
    return builder.fadd(product, c, flags=("contract",))


def exp_of_eight(builder, power):
    """exp of eight powers that are at most 0, to about one unit in the last place.

    exp(v) = 2^n exp(r), where r is at most ln 2 / 2 in size and has a polynomial. There is no call
    and no branch. Sums must not be reordered: ROUND would cancel.
    """
    lowest = ir.Constant(EIGHT, [LOWEST_EXPONENT] * 8)
    power = builder.select(builder.fcmp_ordered(">", power, lowest), power, lowest)
    rounded = multiply_add(builder, power, LOG2_E, ROUND)
    n = builder.fsub(rounded, ir.Constant(EIGHT, [ROUND] * 8))
    r = multiply_add(builder, n, -LN2_LOW, multiply_add(builder, n, -LN2_HIGH, power))
    series = multiply_add(builder, r, *EXP_SERIES[:2])
    for coefficient in EXP_SERIES[2:]:
        series = multiply_add(builder, series, r, coefficient)
    bits = builder.bitcast(rounded, EIGHT_WHOLE)  # the lowest become the exponent: 2^n
    power_of_two = builder.shl(bits, ir.Constant(EIGHT_WHOLE, [52] * 8))
    return builder.fmul(series, builder.bitcast(power_of_two, EIGHT))


def eight_times(builder, value):
    """One value in all eight lanes."""
    lane = ir.IntType(32)
    first = builder.insert_element(ir.Constant(EIGHT, ir.Undefined), value, ir.Constant(lane, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(lane, 8), [0] * 8))


def rbf_values(block, row, gamma, out):
    """Write exp(-gamma |s - row|^2) to ``out`` for every vector s of a block.

    Exactly 1 for the row itself. The whole block is computed even if it is not full.
    """
    squares = np.square(block - row[:, None]).sum(axis=0)
    out[:LANES] = np.exp(np.fmax(-gamma * squares, LOWEST_EXPONENT))


@overload(rbf_values)
def rbf_values_compiled(block, row, gamma, out):
    """The compiled form."""
    return lambda block, row, gamma, out: write_rbf_values(block, row, gamma, out)


@intrinsic
def write_rbf_values(typing_context, block, row, gamma, out):
    """The compiled form of `rbf_values`, for a whole block at once.

    Each number of the row is loaded once for all vectors, and the exponential series are
    independent, so the processor overlaps them.
    """

    def codegen(context, builder, signature, args):
        lines, numbers, values = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 3)
        )

        def eight_at(array, *places):
            pointer = array.data
            for place in places:
                pointer = builder.gep(pointer, [place])
            return builder.bitcast(pointer, EIGHT.as_pointer())

        firsts = [ir.Constant(ir.IntType(64), first) for first in range(0, LANES, 8)]
        zeros = ir.Constant(EIGHT, [0.0] * 8)
        sums = [cgutils.alloca_once(builder, EIGHT) for _ in firsts]
        for total in sums:
            builder.store(zeros, total)
        with cgutils.for_range(builder, builder.extract_value(numbers.shape, 0)) as loop:
            number = builder.load(builder.gep(numbers.data, [loop.index]))
            line = builder.mul(loop.index, ir.Constant(ir.IntType(64), LANES))
            for first, total in zip(firsts, sums, strict=True):
                vectors = builder.load(eight_at(lines, line, first), align=8)
                away = builder.fsub(vectors, eight_times(builder, number))
                builder.store(multiply_add(builder, away, away, builder.load(total)), total)
        scale = eight_times(builder, builder.fneg(args[2]))
        for first, total in zip(firsts, sums, strict=True):
            power = builder.fmul(builder.load(total), scale)
            builder.store(exp_of_eight(builder, power), eight_at(values, first), align=8)
        return context.get_dummy_value()

    return types.none(block, row, gamma, out), codegen
