"""Errors gathered over folds, compared with each other, and written as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

from defaults.folds import Size, drawn_folds
from ordspan.data import Dataset

Errors = dict[Any, np.ndarray]  # of all folds or runs, by setting
Found = dict[tuple[str, int], Errors]  # by data set and percentage of ranges


def gathered(results: Iterable[dict[Any, Any]]) -> Errors:
    """One array per setting with the values of all folds or runs."""
    every = list(results)
    return {key: np.array([values[key] for values in every], dtype=float) for key in every[0]}


def measured(
    sets: list[Dataset], percents: Iterable[int], errors: Any, size: Size, seeds: range
) -> Found:
    """The errors of all folds of every data set and percentage."""
    return {
        (data.name, percent): gathered(
            errors(data, fold) for fold in drawn_folds(data, size, percent, seeds)
        )
        for data, percent in product(sets, percents)
    }


def markdown(titles: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [titles, " | ".join("---" for _ in titles.split("|")), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def by_row(titles: str, found: Found, cells: Callable[[Errors], list[str]]) -> str:
    """A table with one row per data set and percentage of ranges."""
    rows = ([name, f"{percent} %", *cells(errors)] for (name, percent), errors in found.items())
    return markdown(f"data set | ranges | {titles}", rows)


def where(found: Found, holds: Callable[[Errors], bool]) -> str:
    """The data sets and percentages for which a condition holds, as text."""
    rows: dict[str, list[str]] = {name: [] for name, _ in found}
    for (name, percent), errors in found.items():
        rows[name] += [str(percent)] if holds(errors) else []
    return (
        "; ".join(f"{name} ({', '.join(held)} %)" for name, held in rows.items() if held) or "none"
    )


def excess(errors: Errors, key: Any, base: Any) -> float:
    """Relative difference of two mean errors."""
    return float(errors[key].mean() / errors[base].mean() - 1.0)


def worse(found: Found, key: Any, base: Any = "constant", by: float = 0.01) -> str:
    """Where the mean error of one setting is above that of another."""
    return where(found, lambda errors: excess(errors, key, base) > by)


def paired(errors: Errors, key: Any, base: Any) -> tuple[float, float]:
    """Relative difference of two mean errors and its standard error."""
    changes = (errors[key] - errors[base]) / errors[base].mean()
    return changes.mean(), changes.std(ddof=1) / np.sqrt(len(changes))


def change(errors: Errors, key: Any, base: Any) -> str:
    return "{:+.1%} ± {:.1%}".format(*paired(errors, key, base))


def marked(errors: Errors, key: Any) -> str:
    """The mean, in bold if it is above that of the constant prediction."""
    shown = f"{errors[key].mean():.3f}"
    return f"**{shown}**" if excess(errors, key, "constant") > 1e-9 else shown
