"""`ordspan export`: write a model as an ONNX graph."""

from typing import Any

from ordspan.cli.app import prints
from ordspan.cli.printing import say
from ordspan.commands.jobs import ExportJob


@prints(ExportJob, "ratings.ordspan ratings.onnx")
def export(summary: dict[str, Any]) -> None:
    """Write a model as one ONNX graph of standard operators, for other runtimes.

    Inputs: X, the raw numbers, one example per row, NaN if missing; and words, strings, if the
    model has text columns. Outputs: rank (1 is the lowest), prediction (the grade) and score; for
    a calibrated model also probabilities (one column per grade), lower and upper (the ends of the
    range, one column per coverage). Names and order of the columns, grades, thresholds and
    coverages are in the metadata of the file. Both types compute in float64, so the ranks are
    those of ordspan predict for the same values, unless a score is within rounding of a threshold.
    Hashed text and kernels cannot be exported.
    """
    size = f"{summary['features']} features, {len(summary['classes'])} grades"
    say(f"{size}, {summary['dtype']}, written to {summary['out']}.")
