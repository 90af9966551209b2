"""Imported once by the process that workers are forked from: all is imported and compiled.

Polars is imported, but not used: it cannot be used again after a fork.
"""

import dask.array
import dask.dataframe  # noqa: F401
import numpy as np

import ordspan.commands.train_dask
import ordspan.experiments.runner  # noqa: F401
from ordspan import OrdinalPA

spans = np.array([[1, 2], [2, 2], [3, 4], [4, 4]])
OrdinalPA().partial_fit(np.eye(4), spans, classes=[1, 2, 3, 4])
