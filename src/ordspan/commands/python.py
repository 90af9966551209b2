"""Train on files, predict them and evaluate on them from Python, as the command line does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ordspan.wording import report_missing

with report_missing():
    from ordspan.catalog import DEFAULTS, PA, learner_parameters
    from ordspan.commands import evaluate as evaluating
    from ordspan.commands import predict as predicting
    from ordspan.commands import train as training
    from ordspan.commands.models import read_table_model
    from ordspan.models.table import TableModel
    from ordspan.tables.files import FileOptions

FilePath = str | os.PathLike[str]
FILE_OPTIONS = {field.name for field in fields(FileOptions)}
LISTS = ("features", "drop", "text", "hashed", "keep")
"""Settings with the names of columns."""
IN_SHELL = {"grades": "classes", "range": "coverage", "hash": "hashed"}
"""Names of options of the commands that differ from those of the settings."""


@report_missing()
def train_files(
    files: FilePath | Sequence[FilePath],
    model: FilePath,
    *,
    overwrite: bool = False,
    resume: bool = False,
    dask: Any = None,
    **settings: Any,
) -> TableModel:
    """Train a model on files of any size and write it; the same as ``ordspan train``.

    Parameters
    ----------
    files : path or sequence of paths
        Files and folders.
    model : path
        Where to write the model.
    overwrite : bool
        Replace an existing model.
    resume : bool
        Continue an interrupted training from its checkpoint.
    dask : str or distributed.Client, optional
        Train on a Dask cluster: the address of its scheduler, "local" for all processors of this
        machine, or a client, which is not closed. Each file is a block. In a script, call it below
        ``if __name__ == "__main__":``, as Dask's workers import the script.
    **settings
        Fields of `ordspan.commands.train_job.TrainJob`, such as ``label="stars"``, ``lower``,
        ``upper``, ``classes``, ``drop``, ``hold_out``, ``learner``; parameters of the learner, such
        as ``C``; and how to open the files: ``format``, ``delimiter``, ``decimal``, ``encoding``.

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
    learner = settings.get("learner", PA)
    learner_parameters(learner, {})  # raises if it is unknown
    owners = {name: kind for kind, names in DEFAULTS.items() for name in names}
    options = _checked(settings, "train_files", training.TrainJob, DEFAULTS[learner], owners)
    parameters = {name: settings.pop(name) for name in DEFAULTS[learner] if name in settings}
    if parameters:
        settings["parameters"] = {**settings.get("parameters", {}), **parameters}
    if start := settings.get("start"):
        settings["start"] = os.fspath(start)
    job = training.TrainJob(_paths(files), options=options, **settings)
    if dask is None:
        training.train(job, os.fspath(model), overwrite=overwrite, resume=resume)
    else:
        from ordspan.commands.train_dask import train_on_dask

        train_on_dask(job, os.fspath(model), dask, overwrite=overwrite, resume=resume)
    return read_table_model(os.fspath(model))


@report_missing()
def predict_files(
    files: FilePath | Sequence[FilePath], model: FilePath, out: FilePath, **settings: Any
) -> dict[str, Any]:
    """Predict the rows of files of any size; the same as ``ordspan predict``.

    Parameters
    ----------
    files : path or sequence of paths
        Files and folders.
    model : path
        A model file of `train_files` or ``ordspan train``.
    out : path
        Where to write the predictions; ends with .csv, .parquet or .jsonl.
    **settings
        Fields of `ordspan.commands.predict.PredictJob`: ``keep``, ``where``, ``coverage``,
        ``proba``, ``on_bad_row``; and how to open the files, as in `train_files`.

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
    options = _checked(settings, "predict_files", predicting.PredictJob)
    job = predicting.PredictJob(_paths(files), os.fspath(model), options=options, **settings)
    return predicting.predict(job, os.fspath(out))


@report_missing()
def evaluate_files(
    files: FilePath | Sequence[FilePath],
    model: FilePath,
    *,
    page: FilePath | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Measure a model on files of any size; the same as ``ordspan evaluate``.

    Parameters
    ----------
    files : path or sequence of paths
        Files and folders.
    model : path
        A model file of `train_files` or ``ordspan train``.
    page : path, optional
        Where to write a web page with plots.
    **settings
        Fields of `ordspan.commands.evaluate.EvaluateJob`: ``label``, ``lower``, ``upper``,
        ``group``, ``on_bad_row``, ``allow_skipped``; and how to open the files, as in
        `train_files`.

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
    options = _checked(settings, "evaluate_files", evaluating.EvaluateJob)
    job = evaluating.EvaluateJob(_paths(files), os.fspath(model), options=options, **settings)
    return evaluating.evaluate(job, page=None if page is None else Path(page))


def _paths(files: FilePath | Sequence[FilePath]) -> list[str]:
    """File names as text.

    >>> _paths(Path("a.csv")), _paths(["a.csv", Path("b.csv")])
    (['a.csv'], ['a.csv', 'b.csv'])
    """
    if isinstance(files, str | os.PathLike):
        return [os.fspath(files)]
    return [os.fspath(file) for file in files]


def _checked(
    settings: dict[str, Any],
    function: str,
    job: type[Any],
    more: Iterable[str] = (),
    owners: Mapping[str, str] = MappingProxyType({}),
) -> FileOptions:
    """Check the names of settings, and take those that say how to open files out of the others."""
    known = {field.name for field in fields(job)} - {"files", "model", "options"}
    known |= FILE_OPTIONS.union(more)
    for name in [name for name in settings if name not in known]:
        close = get_close_matches(IN_SHELL.get(name, name), known, n=1)
        meant = f"did you mean {close[0]}=?" if close else f"it has {', '.join(sorted(known))}"
        if name in owners:
            meant = f"it belongs to learner={owners[name]!r}"
        raise TypeError(f"{function}() has no setting {name}=; {meant}")
    for name in LISTS:
        if isinstance(settings.get(name), str):
            settings[name] = [settings[name]]
    return FileOptions(**{name: settings.pop(name) for name in FILE_OPTIONS & settings.keys()})
