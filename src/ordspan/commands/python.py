"""Train on files, predict them and evaluate on them from Python, as the command line does."""

import re
from collections.abc import Callable
from functools import wraps
from inspect import cleandoc, signature
from pathlib import Path
from textwrap import fill
from typing import Any, TypeVar

from ordspan.wording import report_missing

with report_missing():
    from ordspan.commands import jobs
    from ordspan.commands.evaluate import evaluate
    from ordspan.commands.models import read_table_model
    from ordspan.commands.predict import predict
    from ordspan.commands.train import train
    from ordspan.models.table import TableModel

KINDS = {Any: "object", list[str]: "sequence", Path: "path"}
R = TypeVar("R")


def with_options(kind: type[jobs.Job]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a function of a job the options of the job as its parameters, with their words."""
    about, fields = jobs.options_of(kind), signature(kind, eval_str=True).parameters
    flags = [(flag, name) for name, one in about.items() for flag in one.flags]
    aliases = {flag.lstrip("-").replace("-", "_"): name for flag, name in flags}

    def decorate(run: Callable[..., R]) -> Callable[..., R]:
        plain = signature(run).replace(parameters=[fields[name] for name in about])

        @wraps(run)
        @report_missing()
        def function(*args: Any, **given: Any) -> R:
            given = {aliases.get(name, name): value for name, value in given.items()}
            return run(jobs.make_job(kind, plain.bind(*args, **given).arguments))

        words = "\n".join(map(describe_option, about.values()))
        function.__doc__ = cleandoc(run.__doc__ or "").replace("{options}", words)
        function.__signature__ = plain  # type: ignore[attr-defined]
        return function

    return decorate


def describe_option(about: jobs.Option) -> str:
    """An option in the style of numpydoc, with the words of the command line."""
    words = re.sub(r"--([a-z-]+)", lambda flag: f"``{flag[1].replace('-', '_')}``", about.help)
    kind = KINDS.get(about.kind) or KINDS.get(about.shell) or about.shell.__name__
    if about.words:
        kind = f"one of {', '.join(map(repr, about.words))}"
    default = "" if about.default is jobs.REQUIRED else ", optional"
    text = fill(words, 96, initial_indent="    ", subsequent_indent="    ")
    return f"{about.name} : {kind}{default}\n{text}"


@with_options(jobs.TrainJob)
def train_files(job: jobs.TrainJob) -> TableModel:
    """Train a model on files of any size and write it; the same as ``ordspan train``.

    With ``dask``, an address or a client, which is not closed. In a script, call it
    below ``if __name__ == "__main__":``, as Dask's workers import the script.

    Parameters
    ----------
    {options}

    Returns
    -------
    TableModel
        The model; its ``training`` says how many rows it learned, and how well.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ordspan
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = "1,low\\n2,low\\n8,high\\n9,high\\n" * 50
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + rows)
    >>> model = ordspan.train_files(
    ...     folder / "a.csv", folder / "model", label="grade", classes=["low", "high"], C=1.0
    ... )
    >>> model.training["rows"]
    200
    """
    train(job)
    return read_table_model(job.model)


@with_options(jobs.PredictJob)
def predict_files(job: jobs.PredictJob) -> dict[str, Any]:
    """Predict the rows of files of any size; the same as ``ordspan predict``.

    Parameters
    ----------
    {options}

    Returns
    -------
    dict
        Number of rows, how many could not be predicted, and notes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ordspan
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + "1,1\\n5,2\\n9,3\\n" * 50)
    >>> _ = ordspan.train_files(folder / "a.csv", folder / "model", label="grade")
    >>> ordspan.predict_files(folder / "a.csv", folder / "model", folder / "out.csv")["rows"]
    150
    """
    return predict(job)


@with_options(jobs.EvaluateJob)
def evaluate_files(job: jobs.EvaluateJob) -> dict[str, Any]:
    """Measure a model on files of any size; the same as ``ordspan evaluate``.

    Parameters
    ----------
    {options}

    Returns
    -------
    dict
        Rows, measures, calibration and confusion matrix in plain values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ordspan
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + "1,1\\n5,2\\n9,3\\n" * 50)
    >>> _ = ordspan.train_files(folder / "a.csv", folder / "model", label="grade")
    >>> ordspan.evaluate_files(folder / "a.csv", folder / "model")["rows"]
    150
    """
    return evaluate(job)
