"""`ordspan info`: describe a model file."""

from __future__ import annotations

from typing import Any

from ordspan.cli.app import prints
from ordspan.cli.printing import show, table
from ordspan.commands.jobs import InfoJob
from ordspan.wording import plural

ROUNDING = 1e-12
MAX_CLASSES = 8
"""Weight vectors to show for models with one per grade; --json has all."""


@prints(InfoJob, "ratings.ordspan --top 10")
def info(found: dict[str, Any]) -> None:
    """Show the parameters, grades, calibration, largest weights and training of a model."""
    rows = [(name, value) for name, value in properties(found).items() if value]
    tables = [table("", ("", ""), rows, ""), grades_table(found)]
    if calibration := found["calibration"]:
        note = (
            f"Calibrated on {calibration['rows']:,} rows: the probability of a grade or a lower "
            f"one is 1 / (1 + exp({number(calibration['slope'])} * score - cut))."
        )
        if calibration["labels"] == "contain":
            note += " Ranges are calibrated to contain whole labels if these are ranges themselves."
        reaches = [
            (f"{100 * one['coverage']:g} %", number(one["reach"]) or "all grades")
            for one in calibration["ranges"]
        ]
        title = "Ranges: all grades within reach of the score"
        heads = ("coverage", f"reach ({calibration['reach_unit']})")
        tables += [note, table(title, heads, reaches)]
    if weights := found["weights"]:
        scaled = any(row.get("spread") for row in weights)
        unit = "standard deviation" if scaled else "unit"
        count = f"{len(weights):,} of {found['features']:,} features"
        note = f"{count}; a weight is the change in score per {unit} of the feature."
        tables += [weights_table(weights, found["classes"]), note]
    show(*tables)


def number(value: Any, scale: float = 1.0) -> str:
    """A number with six digits; strings unchanged, None as empty, what rounding left over as 0.

    >>> number(0.123456789), number("PA-I"), number(None), number(1234567), number(8.7e-19)
    ('0.123457', 'PA-I', '', '1,234,567', '0')
    """
    if value is None:
        return ""
    if isinstance(value, bool | str | list):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if abs(value) >= ROUNDING * scale else "0"


def properties(found: dict[str, Any]) -> dict[str, str]:
    """The properties of a model by name; empty are those that it has not."""
    numbers = {"grades": len(found["classes"])} | {
        name: found[name] for name in ("support_vectors", "updates", "passes")
    }
    numbers |= found["fitted"]
    texts = {
        "file": f"{found['model']}, {found['bytes']:,} bytes, format {found['format']}",
        "holds": found["kind"] + checkpoint_text(found["checkpoint"], found["model"]),
        "estimator": found["estimator"],
        "parameters": ", ".join(f"{name}={value!r}" for name, value in found["parameters"].items()),
        "features": number(found["features"]) + columns_text(found["columns"]),
        **{name.replace("_", " "): number(value) for name, value in numbers.items()},
    }
    if (training := found["training"]) is None:
        return texts
    mae, constant = ", ".join(f"{value:.4f}" for value in training["mae"]), training["constant"]
    passes = f" in {len(training['mae'])} passes" if len(training["mae"]) > 1 else ""
    standardised = "by mean and spread" if found["columns"]["standardised"] else "no"
    return texts | {
        "trained from": ", ".join(training["settings"]["files"]),
        "continued from": training.get("from") or "",
        "label": ", ".join(found["columns"]["label"]),
        "rows learned": f"{training['rows']:,}{passes} ({training['skipped']:,} bad rows skipped)",
        "MAE of each pass": mae and f"{mae} (each row predicted before it was learned)",
        "best constant": constant and f"{constant['mae']:.4f} (always {constant['grade']})",
        "columns left out": ", ".join(f"{k} ({why})" for k, why in training["left_out"].items()),
        "standardised": standardised if found["columns"]["numbers"] else "",
    }


def checkpoint_text(checkpoint: dict[str, Any] | None, path: str) -> str:
    """The progress of an unfinished training."""
    if checkpoint is None:
        return ""
    if "rounds" in checkpoint:
        return f" of an unfinished training on Dask: {plural(checkpoint['rounds'], 'round')} done"
    again = f"ordspan train --from {path}" if checkpoint["from_pipe"] else "ordspan train --resume"
    return (
        f" of an unfinished training: {checkpoint['rows']:,} rows learned, in pass "
        f"{checkpoint['pass']} of {checkpoint['passes']}, MAE of this pass "
        f"{checkpoint['mae_of_pass']:.4f}; continue with {again}"
    )


def columns_text(columns: dict[str, Any] | None) -> str:
    """The source of the features."""
    if columns is None:
        return ""
    if columns["svmlight_features"]:
        return " of svmlight rows"
    parts = []
    if columns["numbers"]:
        parts.append(f"{plural(len(columns['numbers']), 'column')} of numbers")
    if columns["missing_indicators"]:
        parts.append(f"marks of missing numbers in {', '.join(columns['missing_indicators'])}")
    for name, words in columns["words"].items():
        parts.append(f"{plural(len(words), 'word')} of {name}")
    if columns["hashed"]:
        words = ", ".join(columns["hashed"])
        parts.append(f"words of {words} hashed into {2 ** columns['hash_bits']:,}")
    if columns["sentences"]:
        names, size = ", ".join(columns["sentences"]), 2 ** columns["sentence_bits"]
        parts.append(f"words and pairs of words of {names} hashed into {size:,}")
    return f": {', '.join(parts)}"


def grades_table(found: dict[str, Any]) -> Any:
    """Every grade with its range of scores, and its cut if calibrated."""
    columns: dict[str, Any] = {
        "rank": range(1, len(found["classes"]) + 1),
        "grade": map(str, found["classes"]),
    }
    if (thresholds := found["thresholds"]) is not None:
        columns |= {"score from": [None, *thresholds], "to below": [*thresholds, None]}
    if found["calibration"]:
        columns["cut (log-odds)"] = [*found["calibration"]["cuts"], None]
    rows = (map(number, row) for row in zip(*columns.values(), strict=True))
    return table("Grades", columns, rows, "grade")


def weights_table(rows: list[dict[str, Any]], classes: list[Any]) -> Any:
    """The largest weights; one column per grade if each has its own."""
    vectors, scaled = isinstance(rows[0]["weight"], list), "mean" in rows[0]
    heads = [str(grade) for grade in classes[:MAX_CLASSES]] if vectors else ["weight"]
    lines = []
    for row in rows:
        weights = row["weight"][:MAX_CLASSES] if vectors else [row["weight"]]
        lines.append([row["feature"], *map(number, weights)])
        if scaled:
            lines[-1] += [number(row["mean"], row["spread"] or 0.0), number(row["spread"], 0.0)]
    heads = ["feature", *heads, *(["mean", "spread"] if scaled else [])]
    return table("Largest weights", heads, lines, "feature")
