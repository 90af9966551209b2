"""`ordspan export`: write a model as an ONNX graph."""

from __future__ import annotations

from typing import Any

from ordspan.cli.app import command
from ordspan.cli.printing import print_json, say
from ordspan.commands.jobs import ExportJob


@command(ExportJob, "ratings.ordspan ratings.onnx")
def export(job: ExportJob, json: bool, _: Any) -> None:
    """Write a model as one ONNX graph of standard operators, for other runtimes.

    Inputs: X, the raw numbers, one example per row, NaN if missing; and words, strings, if the
    model has text columns. Outputs: rank (1 is the lowest), prediction (the grade) and score; for
    a calibrated model also probabilities (one column per grade), lower and upper (the ends of the
    range, one column per coverage). Names and order of the columns, grades, thresholds and
    coverages are in the metadata of the file. Both types compute in float64, so the ranks are
    those of ordspan predict for the same values, unless a score is within rounding of a threshold.
    Hashed text and kernels cannot be exported.
    """
    from ordspan.commands.export import export as run

    summary = run(job)
    size = f"{summary['features']} features, {len(summary['classes'])} grades"
    line = f"{size}, {job.dtype}, written to {summary['out']}."
    print_json(summary) if json else say(line)
