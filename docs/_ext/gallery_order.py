"""The order in which the gallery is read: first the idea, then the choices, then the uses."""

from __future__ import annotations

FIRST = (
    "plot_income.py",
    "plot_ranges_or_exact.py",
    "plot_judges.py",
    "plot_cost_of_ranges.py",
    "plot_one_update.py",
    "plot_variant_and_c.py",
    "plot_drift.py",
    "plot_river.py",
    "plot_dask.py",
    "plot_relevance.py",
)


def reading_order(filename: str) -> tuple[int, str]:
    """Place of an example; those that are not in the list follow, by name."""
    place = FIRST.index(filename) if filename in FIRST else len(FIRST)
    return place, filename
