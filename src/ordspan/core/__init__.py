"""Numbers in, numbers out: labels, losses and the compiled updates. NumPy and Numba only."""
