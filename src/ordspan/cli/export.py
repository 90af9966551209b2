"""`ordspan export`: write a model as an ONNX graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, report_errors
from ordspan.cli.printing import say


@app.command(epilog="Example: ordspan export ratings.ordspan ratings.onnx")
def export(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    out: Annotated[Path, typer.Argument(metavar="OUT.onnx", help="The graph to write.")],
    dtype: Annotated[
        str,
        typer.Option(
            help="float32 or float64: type of the input, score and probabilities; float64 inside."
        ),
    ] = "float32",
    json: o.AsJson = False,
) -> None:
    """Write a model as one ONNX graph of standard operators, for other runtimes.

    Inputs: X, the raw numbers, one example per row, NaN if missing; and words, strings, if the
    model has text columns. Outputs: rank (1 is the lowest), prediction (the grade) and score; for
    a calibrated model also probabilities (one column per grade), lower and upper (the ends of the
    range, one column per coverage). Names and order of the columns, grades, thresholds and
    coverages are in the metadata of the file. Both types compute in float64, so the ranks are
    those of ordspan predict for the same values, unless a score is within rounding of a threshold.
    Hashed text and kernels cannot be exported.
    """
    with report_errors():
        from ordspan.commands.export import export as run

        summary = run(model, out, dtype=dtype)
        if json:
            o.print_json(summary)
        else:
            size = f"{summary['features']} features, {len(summary['classes'])} grades"
            say(f"{size}, {dtype}, written to {summary['out']}.")
