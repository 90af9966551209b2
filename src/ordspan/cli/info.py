"""`ordspan info`: describe a model file."""

from typing import Any

from ordspan.cli.app import prints
from ordspan.cli.printing import print_table, say
from ordspan.commands.jobs import InfoJob

ROUNDING = 1e-12
MAX_CLASSES = 8
"""Weight vectors to show for models with one per grade; --json has all."""


@prints(InfoJob, "ratings.ordspan --top 10")
def info(about: dict[str, Any]) -> None:
    """Show the parameters, grades, calibration, largest weights and training of a model."""
    print_table("", ("", ""), properties(about).items(), "")
    print_grades(about)
    if calibration := about["calibration"]:
        say(
            f"Calibrated on {calibration['rows']:,} rows: the probability of a grade or a lower "
            f"one is 1 / (1 + exp({number(calibration['slope'])} * score - cut))."
        )
        if calibration["labels"] == "contain":
            say("Ranges are calibrated to contain whole labels if these are ranges themselves.")
        reaches = [
            (f"{100 * one['coverage']:g} %", number(one["reach"]) or "all grades")
            for one in calibration["ranges"]
        ]
        heads = ("coverage", f"reach ({calibration['reach_unit']})")
        print_table("Ranges: all grades within reach of the score", heads, reaches)
    if about["weights"]:
        print_weights(about)


def number(value: Any, scale: float = 1.0) -> str:
    """A number with six digits, or several; text unchanged, what rounding left over as 0.

    >>> number(0.123456789), number("PA-I"), number([2, 0.5]), number(1234567), number(8.7e-19)
    ('0.123457', 'PA-I', '2, 0.5', '1,234,567', '0')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(number, value))
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) >= ROUNDING * scale else "0"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def properties(about: dict[str, Any]) -> dict[str, str]:
    """The properties of a model by name, without those that it has not."""
    values = {
        "file": f"{about['model']}, {about['bytes']:,} bytes, format {about['format']}",
        "holds": about["kind"],
        "estimator": about["estimator"],
        "parameters": [f"{name}={value!r}" for name, value in about["parameters"].items()],
        "features": about["features"],
    }
    if columns := about["columns"]:
        words = {f"words of {name}": len(words) for name, words in columns["words"].items()}
        if columns["hashed"]:
            words[f"hashed words of {number(columns['hashed'])}"] = 2 ** columns["hash_bits"]
        values |= {
            "svmlight features": columns["n_sparse"],
            "numbers": len(columns["numbers"]),
            "missing indicators": len(columns["missing_indicators"]),
            **words,
            "hashed sentences of": columns["sentences"],
            "standardised": "yes" if columns["standardise"] else "no",
            "label": columns["label"],
        }
    values["grades"] = len(about["classes"])
    values |= {name: about[name] for name in ("support_vectors", "updates", "passes")}
    values |= about["fitted"]
    if training := about["training"]:
        constant = training["constant"]
        values |= {
            "trained from": training["settings"]["files"],
            "continued from": training.get("from"),
            "rows learned": training["rows"],
            "bad rows skipped": training["skipped"],
            "MAE before learning, by pass": training["mae"],
            "best constant": constant and f"{constant['mae']:.6g} (always {constant['grade']})",
            "columns left out": [f"{name} ({why})" for name, why in training["left_out"].items()],
        }
    if checkpoint := about["checkpoint"]:
        progress = "rounds done on Dask: {rounds}"
        if "rows" in checkpoint:
            progress = "{rows:,} rows learned, in pass {pass} of {passes}, MAE of this pass "
            progress += "{mae_of_pass:.4f}; continue with {continue_with}"
        values["holds"] += " of an unfinished training: " + progress.format_map(checkpoint)
    return {name.replace("_", " "): number(value) for name, value in values.items() if value}


def print_grades(about: dict[str, Any]) -> None:
    """Every grade with its range of scores, and its cut if calibrated."""
    grades = [str(grade) for grade in about["classes"]]
    columns: dict[str, Any] = {"rank": range(1, len(grades) + 1), "grade": grades}
    if (thresholds := about["thresholds"]) is not None:
        columns |= {"score from": [None, *thresholds], "to below": [*thresholds, None]}
    if about["calibration"]:
        columns["cut (log-odds)"] = [*about["calibration"]["cuts"], None]
    rows = (map(number, row) for row in zip(*columns.values(), strict=True))
    print_table("Grades", columns, rows, "grade")


def print_weights(about: dict[str, Any]) -> None:
    """The largest weights; one column per grade if each has its own."""
    rows, classes = about["weights"], about["classes"][:MAX_CLASSES]
    vectors, scaled = isinstance(rows[0]["weight"], list), any(row["spread"] for row in rows)
    lines = []
    for row in rows:
        weights = row["weight"][:MAX_CLASSES] if vectors else [row["weight"]]
        scale = [number(row["mean"], row["spread"] or 0.0), number(row["spread"], 0.0)]
        lines.append([row["feature"], *map(number, weights), *(scale if scaled else ())])
    heads = map(str, classes) if vectors else ["weight"]
    heads = ["feature", *heads, *(("mean", "spread") if scaled else ())]
    print_table("Largest weights", heads, lines, "feature")
    count = f"{len(rows):,} of {about['features']:,} features"
    unit = "standard deviation" if scaled else "unit"
    say(f"{count}; a weight is the change in score per {unit} of the feature.")
