"""Data: coarsening exact labels into intervals, named data sets, synthetic streams."""
