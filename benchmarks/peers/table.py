"""The one table: a row for each data set, kind of labels and method, kept as CSV."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ordspan.atomic import write_atomically


@dataclass(frozen=True)
class Result:
    """Means over the folds, and their standard deviations; empty where nothing came of it."""

    dataset: str
    labels: int
    given: str
    method: str
    rows: int
    folds: int
    status: str
    mae: float = math.nan
    mae_sd: float = math.nan
    macro_mae: float = math.nan
    macro_mae_sd: float = math.nan
    kappa: float = math.nan
    kappa_sd: float = math.nan
    rps: float = math.nan
    rps_sd: float = math.nan
    fit_seconds: float = math.nan
    predict_seconds: float = math.nan
    setting: str = ""
    package: str = ""
    date: str = ""

    @property
    def key(self) -> tuple[str, int, str, str]:
        """The cell it belongs to."""
        return self.dataset, self.labels, self.given, self.method

    @property
    def title(self) -> str:
        """The method, and what its labels were if not the true ones or the intervals."""
        plain = self.given in ("exact", "intervals")
        return self.method if plain else f"{self.method} · {self.given}"


NUMBERS = {"float": float, "int": int, "str": str}


def read(path: Path) -> list[Result]:
    """The rows of a file; none when there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_parsed(row) for row in csv.DictReader(file)]


def _parsed(row: dict[str, str]) -> Result:
    kinds = {field.name: str(field.type) for field in fields(Result)}
    return Result(
        **{name: NUMBERS[kind](row.get(name) or ("nan" if kind == "float" else ""))
           for name, kind in kinds.items()}
    )  # fmt: skip


def write(path: Path, results: list[Result]) -> None:
    """Replace the file at once, so that a kill costs no row."""
    text = io.StringIO()
    out = csv.DictWriter(text, [field.name for field in fields(Result)], lineterminator="\n")
    out.writeheader()
    for result in results:
        out.writerow({name: _printed(value) for name, value in asdict(result).items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.getvalue().encode())


def _printed(value: object) -> object:
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.5g}"
