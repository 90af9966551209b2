"""Train on files, predict them and evaluate on them from Python, as the command line does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING
from difflib import get_close_matches
from inspect import Parameter, Signature, cleandoc
from textwrap import fill
from typing import Any, TypeVar

from ordspan.wording import report_missing

with report_missing():
    from ordspan.commands.evaluate import evaluate
    from ordspan.commands.jobs import (
        EvaluateJob,
        Job,
        PredictJob,
        TrainCommand,
        in_order,
        options_of,
        types_of,
    )
    from ordspan.commands.models import read_table_model
    from ordspan.commands.predict import predict
    from ordspan.commands.train import run_command
    from ordspan.models.table import TableModel

F = TypeVar("F", bound=Callable[..., Any])


def with_options(kind: type[Job]) -> Callable[[F], F]:
    """Give a function of a job the options of the job as its parameters, with their words."""
    types, about = types_of(kind), options_of(kind)
    parameters = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=types[field.name],
        )
        for field in in_order(kind)
    ]
    plain = Signature(parameters)
    aliases = {
        flag.lstrip("-").replace("-", "_"): name
        for name, option in about.items()
        for flag in option.flags
        if "/" not in flag
    }

    def decorate(run: F) -> F:
        @report_missing()
        def function(*args: Any, **given: Any) -> Any:
            given = {aliases.get(name, name): value for name, value in given.items()}
            for name in given.keys() - about.keys():
                close = get_close_matches(name, about, n=1)
                meant = f"did you mean {close[0]}=?" if close else f"it has {', '.join(about)}"
                raise TypeError(f"{run.__name__}() has no setting {name}=; {meant}")
            bound = plain.bind(*args, **given)
            return run(kind.make(bound.arguments, lambda name: f"{name}="))

        words = "\n".join(described(one, about[one.name].help) for one in parameters)
        doc = cleandoc(run.__doc__ or "").replace("{options}", words)
        function.__name__, function.__qualname__, function.__doc__ = run.__name__, run.__name__, doc
        function.__module__ = run.__module__
        result = Signature.from_callable(run).return_annotation
        function.__signature__ = plain.replace(return_annotation=result)  # type: ignore[attr-defined]
        return function  # type: ignore[return-value]

    return decorate


def type_name(kind: Any) -> str:
    """The type of an option in words."""
    plain = str(kind).removesuffix(" | None").removeprefix("typing.Optional[")
    for part, name in (("Sequence", "sequence"), ("Path", "path"), ("Any", "object")):
        if part in plain:
            return name
    return getattr(kind, "__name__", plain)


def described(parameter: Parameter, help: str) -> str:
    """A parameter in the style of numpydoc, with the words of the command line."""
    words = re.sub(r"--([a-z-]+)", lambda flag: f"``{flag[1].replace('-', '_')}``", help)
    kind = type_name(parameter.annotation)
    default = "" if parameter.default is Parameter.empty else ", optional"
    text = fill(words, 96, initial_indent="    ", subsequent_indent="    ")
    return f"{parameter.name} : {kind}{default}\n{text}"


@with_options(TrainCommand)
def train_files(job: TrainCommand) -> TableModel:
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
    run_command(job)
    return read_table_model(job.model)


@with_options(PredictJob)
def predict_files(job: PredictJob) -> dict[str, Any]:
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


@with_options(EvaluateJob)
def evaluate_files(job: EvaluateJob) -> dict[str, Any]:
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
