"""`ordspan info`: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, report_errors
from ordspan.cli.printing import show

MOST_CLASSES = 8
"""Models with a weight vector per class show so many of them; --json has all."""


@app.command(epilog="Example: ordspan info ratings.ordspan --top 10")
def info(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A model file, or a checkpoint of ordspan train.")],
    top: Annotated[
        int, typer.Option(min=0, help="How many of the largest weights to show; 0 shows all.")
    ] = 20,
    json: o.AsJson = False,
) -> None:
    """Show what a model is, its grades, calibration and largest weights, and its training."""
    with report_errors(context):
        from ordspan.commands.info import describe

        told = describe(model, top)
        o.print_json(told) if json else print_info(told)


def print_info(told: dict[str, Any]) -> None:
    """Tables for people: the model, its grades, its weights."""
    tables = [pairs_table([*model_pairs(told), *training_pairs(told)]), grades_table(told)]
    if told["calibration"]:
        tables += [calibration_note(told["calibration"]), ranges_table(told["calibration"])]
    if told["weights"]:
        tables += [weights_table(told), weights_note(told)]
    show(*tables)


def number(value: Any) -> str:
    """A number with six digits, words as they are, nothing for nothing.

    >>> number(0.123456789), number("PA-I"), number(None), number(1234567)
    ('0.123457', 'PA-I', '', '1,234,567')
    """
    if value is None:
        return ""
    if isinstance(value, bool | str | list):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def model_pairs(told: dict[str, Any]) -> list[tuple[str, str]]:
    """What it is."""
    parameters = ", ".join(f"{name}={value!r}" for name, value in told["parameters"].items())
    pairs = [
        ("file", f"{told['model']}, {told['bytes']:,} bytes, format {told['format']}"),
        ("holds", told["kind"] + checkpoint_words(told["checkpoint"])),
        ("estimator", told["estimator"]),
        ("behind", ", ".join(told["steps"] or [])),
        ("parameters", parameters),
        ("features", number(told["features"]) + columns_words(told["columns"])),
        ("grades", number(len(told["classes"]))),
        ("support vectors", number(told["support_vectors"])),
        ("updates", number(told["updates"])),
        ("passes", number(told["passes"])),
    ]
    pairs += [(name.replace("_", " "), number(value)) for name, value in told["fitted"].items()]
    return [(name, value) for name, value in pairs if value]


def checkpoint_words(checkpoint: dict[str, Any] | None) -> str:
    """How far a training had come that can go on."""
    if checkpoint is None:
        return ""
    if "rounds" in checkpoint:
        return f" of an unfinished training on Dask: {checkpoint['rounds']} rounds are done"
    return (
        f" of an unfinished training: {checkpoint['rows']:,} rows learned, in pass "
        f"{checkpoint['pass']} of {checkpoint['passes']}, MAE of this pass "
        f"{checkpoint['mae_of_pass']:.4f}; go on with ordspan train --resume"
    )


def columns_words(columns: dict[str, Any] | None) -> str:
    """Where the features come from."""
    if columns is None:
        return ""
    if columns["svmlight_features"]:
        return " of svmlight rows"
    parts = [f"{len(columns['numbers']):,} columns of numbers"]
    if columns["gaps"]:
        parts.append(f"marks of missing numbers in {', '.join(columns['gaps'])}")
    for name, words in columns["words"].items():
        parts.append(f"{len(words)} words of {name}")
    if columns["hashed"]:
        words = ", ".join(columns["hashed"])
        parts.append(f"words of {words} hashed into {2 ** columns['hash_bits']:,}")
    return f": {', '.join(parts)}"


def training_pairs(told: dict[str, Any]) -> list[tuple[str, str]]:
    """How it was trained, where that is known."""
    training = told["training"]
    if training is None:
        return []
    mae = ", ".join(f"{value:.4f}" for value in training["mae"])
    standardised = "yes, by mean and spread" if told["columns"]["standardised"] else "no"
    left_out = ", ".join(f"{name} ({why})" for name, why in training["left_out"].items())
    constant = training["constant"]
    pairs = [
        ("trained from", ", ".join(training["settings"]["files"])),
        ("going on from", training.get("from") or ""),
        ("label", ", ".join(told["columns"]["label"])),
        ("rows learned", f"{training['rows']:,} ({training['skipped']:,} bad rows skipped)"),
        ("MAE of each pass", mae and f"{mae} (each row predicted before it was learned)"),
        ("best constant", constant and f"{constant['mae']:.4f} (always {constant['grade']})"),
        ("columns left out", left_out),
        ("standardised", standardised),
    ]
    return [(name, value) for name, value in pairs if value]


def new_table(title: str = "", **more: Any) -> Any:
    """A table without a frame, which is as clear in a file as in a terminal."""
    from rich import box
    from rich.table import Table

    return Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, **more)


def pairs_table(pairs: list[tuple[str, str]]) -> Any:
    """Names and values, one a line."""
    table = new_table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, value)
    return table


def grades_table(told: dict[str, Any]) -> Any:
    """Every grade with the scores that it takes, and its cut where there are probabilities."""
    table = new_table("Grades")
    table.add_column("rank", justify="right")
    table.add_column("grade")
    thresholds = told["thresholds"]
    if thresholds is not None:
        table.add_column("score from", justify="right")
        table.add_column("to below", justify="right")
        thresholds = [None, *thresholds, None]
    cuts: list[list[float | None]] = [[]] * len(told["classes"])
    if told["calibration"]:
        table.add_column("cut (log-odds)", justify="right")
        cuts = [[cut] for cut in (*told["calibration"]["cuts"], None)]
    for rank, (grade, cut) in enumerate(zip(told["classes"], cuts, strict=True), start=1):
        ends = [] if thresholds is None else thresholds[rank - 1 : rank + 1]
        table.add_row(str(rank), str(grade), *map(number, (*ends, *cut)))
    return table


def calibration_note(calibration: dict[str, Any]) -> str:
    """How a score becomes probabilities."""
    note = (
        f"Calibrated on {calibration['rows']:,} rows: the probability of a grade or a lower one is "
        f"1 / (1 + exp({number(calibration['slope'])} * score - cut))."
    )
    whole = " Ranges are made to contain whole labels where these are ranges themselves."
    return note + (whole if calibration["labels"] == "contain" else "")


def ranges_table(calibration: dict[str, Any]) -> Any:
    """How far the range of every coverage reaches."""
    unit = calibration["reach_unit"]
    table = new_table("Ranges: all grades within reach of the score")
    table.add_column("asked to hold", justify="right")
    table.add_column(f"reach ({unit})", justify="right")
    for found in calibration["ranges"]:
        reach = "all grades" if found["reach"] is None else number(found["reach"])
        table.add_row(f"{100 * found['coverage']:g} %", reach)
    return table


def weights_table(told: dict[str, Any]) -> Any:
    """The largest weights; one column for each class where each has its own."""
    rows = told["weights"]
    vectors = isinstance(rows[0]["weight"], list)
    heads = [str(c) for c in told["classes"][:MOST_CLASSES]] if vectors else ["weight"]
    scaled = ["mean", "spread"] if "mean" in rows[0] else []
    table = new_table("Largest weights")
    table.add_column("feature", overflow="fold")
    for head in (*heads, *scaled):
        table.add_column(head, justify="right")
    for row in rows:
        weights = row["weight"][:MOST_CLASSES] if vectors else [row["weight"]]
        table.add_row(row["feature"], *map(number, (*weights, *(row[name] for name in scaled))))
    return table


def weights_note(told: dict[str, Any]) -> str:
    """What a weight means, and how many there are."""
    shown, n_features = len(told["weights"]), told["features"]
    count = f"{shown:,} of {n_features:,} features"
    if "mean" not in told["weights"][0]:
        return f"{count}; a weight is what the score gains by one unit of the feature."
    return (
        f"{count}; in standardised units: a weight is what the score gains by one spread of the "
        "feature."
    )
