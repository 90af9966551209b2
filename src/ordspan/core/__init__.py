"""Numbers in, numbers out: measures, and the compiled steps and walks.

NumPy and Numba only. The step of the paper is in `exact`; `walks` applies a step to rows.
"""
