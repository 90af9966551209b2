"""`ordspan info`: describe a model file."""

from __future__ import annotations

from typing import Any

from ordspan.cli.app import command
from ordspan.cli.printing import print_json, show, table
from ordspan.commands.jobs import InfoJob

ROUNDING = 1e-12
MAX_CLASSES = 8
"""Weight vectors to show for models with one per grade; --json has all."""


@command(InfoJob, "ratings.ordspan --top 10")
def info(job: InfoJob, json: bool, _: Any) -> None:
    """Show the parameters, grades, calibration, largest weights and training of a model."""
    from ordspan.commands.info import describe_model

    found = describe_model(job.model, job.top)
    print_json(found) if json else print_info(found)


def print_info(found: dict[str, Any]) -> None:
    """Print tables of the model, its grades and its weights."""
    pairs = [*model_pairs(found), *training_pairs(found)]
    known = [(name, value) for name, value in pairs if value]
    tables = [table("", ("", ""), known, ""), grades_table(found)]
    if found["calibration"]:
        tables += [calibration_note(found["calibration"]), reach_table(found["calibration"])]
    if found["weights"]:
        tables += [weights_table(found), weights_note(found)]
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


def plural(count: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "word"), plural(2000, "word")
    ('1 word', '2,000 words')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def model_pairs(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of each property of the model."""
    parameters = ", ".join(f"{name}={value!r}" for name, value in found["parameters"].items())
    pairs = [
        ("file", f"{found['model']}, {found['bytes']:,} bytes, format {found['format']}"),
        ("holds", found["kind"] + checkpoint_text(found["checkpoint"], found["model"])),
        ("estimator", found["estimator"]),
        ("parameters", parameters),
        ("features", number(found["features"]) + columns_text(found["columns"])),
        ("grades", number(len(found["classes"]))),
        ("support vectors", number(found["support_vectors"])),
        ("updates", number(found["updates"])),
        ("passes", number(found["passes"])),
    ]
    fitted = found["fitted"].items()
    return pairs + [(name.replace("_", " "), number(value)) for name, value in fitted]


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
    parts = [f"{plural(len(columns['numbers']), 'column')} of numbers"]
    if columns["missing_indicators"]:
        parts.append(f"marks of missing numbers in {', '.join(columns['missing_indicators'])}")
    for name, words in columns["words"].items():
        parts.append(f"{plural(len(words), 'word')} of {name}")
    if columns["hashed"]:
        words = ", ".join(columns["hashed"])
        parts.append(f"words of {words} hashed into {2 ** columns['hash_bits']:,}")
    return f": {', '.join(parts)}"


def training_pairs(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The record of the training, if known."""
    training = found["training"]
    if training is None:
        return []
    mae = ", ".join(f"{value:.4f}" for value in training["mae"])
    standardised = "yes, by mean and spread" if found["columns"]["standardised"] else "no"
    left_out = ", ".join(f"{name} ({why})" for name, why in training["left_out"].items())
    constant = training["constant"]
    return [
        ("trained from", ", ".join(training["settings"]["files"])),
        ("continued from", training.get("from") or ""),
        ("label", ", ".join(found["columns"]["label"])),
        ("rows learned", f"{training['rows']:,} ({training['skipped']:,} bad rows skipped)"),
        ("MAE of each pass", mae and f"{mae} (each row predicted before it was learned)"),
        ("best constant", constant and f"{constant['mae']:.4f} (always {constant['grade']})"),
        ("columns left out", left_out),
        ("standardised", standardised),
    ]


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


def calibration_note(calibration: dict[str, Any]) -> str:
    """How scores become probabilities."""
    note = (
        f"Calibrated on {calibration['rows']:,} rows: the probability of a grade or a lower one is "
        f"1 / (1 + exp({number(calibration['slope'])} * score - cut))."
    )
    whole = " Ranges are calibrated to contain whole labels if these are ranges themselves."
    return note + (whole if calibration["labels"] == "contain" else "")


def reach_table(calibration: dict[str, Any]) -> Any:
    """The reach of ranges at every coverage."""
    rows = [
        (f"{100 * found['coverage']:g} %", number(found["reach"]) or "all grades")
        for found in calibration["ranges"]
    ]
    heads = ("coverage", f"reach ({calibration['reach_unit']})")
    return table("Ranges: all grades within reach of the score", heads, rows)


def weights_table(found: dict[str, Any]) -> Any:
    """The largest weights; one column per grade if each has its own."""
    rows = found["weights"]
    vectors = isinstance(rows[0]["weight"], list)
    heads = [str(c) for c in found["classes"][:MAX_CLASSES]] if vectors else ["weight"]
    scaled = ["mean", "spread"] if "mean" in rows[0] else []
    lines = []
    for row in rows:
        weights = row["weight"][:MAX_CLASSES] if vectors else [row["weight"]]
        line = [row["feature"], *map(number, weights)]
        if scaled:
            line += [number(row["mean"], row["spread"] or 0.0), number(row["spread"], 0.0)]
        lines.append(line)
    return table("Largest weights", ["feature", *heads, *scaled], lines, "feature")


def weights_note(found: dict[str, Any]) -> str:
    """The meaning and number of the weights."""
    count = f"{len(found['weights']):,} of {found['features']:,} features"
    unit = "standard deviation" if "mean" in found["weights"][0] else "unit"
    return f"{count}; a weight is the change in score per {unit} of the feature."
