"""`ordspan train`: a model from files of any size."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from ordspan.cli import options as o
from ordspan.cli import train_options as t
from ordspan.cli.app import app, progress_bar, report_errors
from ordspan.cli.printing import PrintError, say

if TYPE_CHECKING:
    from ordspan.commands.train import TrainJob
    from ordspan.commands.train_progress import TrainReport


RENAMED = {"grades": "classes", "hash_columns": "hashed", "c": "C"}
"""Options whose settings have another name."""
MOST = 10
"""Grades to print."""


@app.command(epilog="Example: ordspan train ratings.csv --label grade --model ratings.ordspan")
def train(
    context: typer.Context,
    files: o.Files,
    model: t.Model,
    label: o.Label = None,
    lower: o.Lower = None,
    upper: o.Upper = None,
    grades: t.Grades = None,
    features: t.Features = None,
    drop: t.Drop = None,
    text: t.Text = None,
    hash_columns: t.HashColumns = None,
    hash_bits: t.HashBits = 12,
    standardise: t.Standardise = True,
    missing: t.Missing = "mean",
    learner: t.LearnerName = "pa",
    variant: t.Variant = None,
    c: t.C = None,
    average: t.Average = None,
    balanced: t.Balanced = None,
    kernel: t.Kernel = None,
    gamma: t.Gamma = None,
    degree: t.Degree = None,
    coef0: t.Coef0 = None,
    budget: t.Budget = None,
    loss: t.Loss = None,
    tol: t.Tol = None,
    passes: t.Passes = 1,
    shuffle: t.Shuffle = None,
    seed: t.Seed = 0,
    hold_out: t.HoldOut = 0.0,
    start: t.Start = None,
    overwrite: t.Overwrite = False,
    resume: t.Resume = False,
    checkpoint_every: t.CheckpointEvery = "60s",
    dask: t.DaskAddress = None,
    json: o.AsJson = False,
    format: o.Format = None,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    zero_based: o.ZeroBased = None,
    n_features: t.NFeatures = 0,
    on_bad_row: o.OnBadRow = "raise",
    allow_skipped: o.AllowSkipped = 0.2,
) -> None:
    """Train a model from files of any size, in bounded memory.

    The label is one column (--label) of grades or ranges, or two columns
    (--lower, --upper). All other columns are features: numbers are
    standardised, text with few distinct values is one-hot encoded, and
    missing values are filled in. The command inspects the files first and
    prints what it decided.

    A checkpoint is kept next to the model. After a crash, Ctrl-C or SIGTERM,
    run the same command with --resume: it ends with the same model, byte for
    byte.
    """
    with report_errors(lambda: resume_hint(model)):
        from ordspan.commands.train_job import OF_MODEL

        fixed = {*OF_MODEL, *learner_settings()}
        refuse_with(context, start is not None, fixed, "--from, because the model decides it")
        refuse_with(context, learner == "svm", {"passes"}, "--learner svm")
        files, pipe = context.with_resource(o.opened_pipe(files))
        summary = run_job(make_job(files, context.params), context.params, pipe)
        try:
            o.print_json(summary) if json else print_summary(summary)
        except PrintError as error:
            raise PrintError(f"{error}. The model was written to {model}") from None


def make_job(files: list[str], given: dict[str, Any]) -> TrainJob:
    """The job that the options of the command describe."""
    from ordspan.commands.train import TrainJob
    from ordspan.labels.grades import read_order

    settings = {RENAMED.get(name, name): value for name, value in given.items()}
    for name in ("drop", "text", "hashed"):
        settings[name] = o.split_names(settings[name])
    if features := settings["features"] or None:  # click gives () for none
        features = o.split_names(features)
    settings["features"] = features
    if settings["classes"] is not None:
        settings["classes"] = read_order(settings["classes"]).tolist()
    if settings["gamma"] is not None:
        settings["gamma"] = read_gamma(settings["gamma"])
    if settings["start"] is not None:
        settings["start"] = str(settings["start"])
    parameters = {name: settings.get(name) for name in learner_settings()}
    settings["parameters"] = {name: v for name, v in parameters.items() if v is not None}
    opening = ("format", "delimiter", "decimal", "encoding", "zero_based", "n_features")
    settings["options"] = o.file_options(*(settings[name] for name in opening))
    settings["files"] = files
    return TrainJob(**{field.name: settings[field.name] for field in fields(TrainJob)})


def learner_settings() -> set[str]:
    """The parameters of all learners."""
    from ordspan.catalog import DEFAULTS

    return {name for defaults in DEFAULTS.values() for name in defaults}


def run_job(job: TrainJob, given: dict[str, Any], pipe: BinaryIO | None) -> dict[str, Any]:
    """Train on this machine or on Dask, with a progress bar."""
    from ordspan.commands.stopping import stoppable
    from ordspan.commands.train import Every
    from ordspan.commands.train import train as run

    how: dict[str, Any] = {"resume": given["resume"], "overwrite": given["overwrite"]}
    every = Every(*o.read_interval(given["checkpoint_every"]))
    with progress_bar(counted=False) as bar, stoppable() as stop:
        how |= {"stop": stop, "report": bar_report(bar)}
        if given["dask"] is None:
            return run(job, given["model"], every=every, pipe=pipe, **how)
        from ordspan.commands.train_dask import train_on_dask

        return train_on_dask(job, given["model"], given["dask"], **how)


def resume_hint(model: Path) -> str:
    """How to continue after an interruption."""
    from ordspan.commands.model_path import from_pipe

    checkpoint = model.with_name(f"{model.name}.checkpoint")
    if not checkpoint.exists():
        return "Nothing was learned yet."
    if from_pipe(checkpoint):
        return f"{checkpoint} holds the model so far; continue it with --from {checkpoint}."
    return "Run the same command with --resume to continue."


def refuse_with(context: typer.Context, so: bool, names: set[str], what: str) -> None:
    """Refuse options that would have no effect."""
    for parameter in context.command.params if so else ():
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if RENAMED.get(name, name) in names and source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"{parameter.opts[0]} cannot be given with {what}")


def read_gamma(text: str) -> str | float:
    """A named rule, or a number.

    >>> read_gamma("scale"), read_gamma("0.5")
    ('scale', 0.5)
    """
    if text in ("distance", "scale", "auto"):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--gamma takes distance, scale, auto or a number, got {text!r}") from None


def bar_report(bar: Any) -> TrainReport:
    """A callback that draws the progress of training."""
    from ordspan.clock import Clock

    clock = Clock()
    task = bar.add_task("reading", total=None)
    at_start: list[int] = []  # rows learned before a resumed run

    def report(learned: int, mae: float, share: float | None) -> None:
        if not at_start:
            at_start.append(learned)
        rate = (learned - at_start[0]) / max(1e-9, clock.seconds())
        o.draw(bar, task, f"{learned:,} rows, {rate:,.0f}/s, MAE {mae:.3f}", share)

    return report


def print_summary(summary: dict[str, Any]) -> None:
    """Print what was trained, and whether it beats a constant prediction."""
    from ordspan.commands.tally import compared

    ranges, classes = summary["ranges"], [str(grade) for grade in summary["classes"]]
    grades = [*classes[:MOST], "...", classes[-1]] if len(classes) > MOST + 2 else classes
    say(
        f"{summary['rows']:,} rows{f', {ranges:,} of them ranges,' * (ranges > 0)} in "
        f"{summary['seconds']:.1f} s ({summary['rows_per_second']:,} a second), "
        f"{summary['features']} feature{'s' * (summary['features'] != 1)}, "
        f"{len(classes)} grades: {', '.join(grades)}."
    )
    o.print_notes(summary["notes"])
    o.print_skipped(summary)
    mae, held_out, constant = summary["mae"], summary["held_out"], summary["constant"]
    if mae and constant:  # later passes have seen the rows
        say("Each row predicted before it was learned:")
        say("  " + compared(mae[0], constant["mae"], constant["grade"]))
    if len(mae) > 1:
        say(f"MAE of pass {len(mae)}, whose rows were seen before: {mae[-1]:.4f}.")
    if held_out is not None:
        best = held_out["best_constant"]["mae"]
        say(f"On {held_out['rows']:,} held-out rows:")
        say("  " + compared(held_out["mae"], best["value"], best["grade"]))
    if (fitted := summary["fitted_mae"]) is not None:
        say("On the training rows:")
        say("  " + compared(fitted, constant["mae"], constant["grade"]))
    say(f"Written to {summary['model']}.")
