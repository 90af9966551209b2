"""What every command can be told. An option is a field here: its type, default and help, once.

The command line is made from these fields (`ordspan.cli.app.command`), and so are the functions for
files in Python (`ordspan.commands.python`). Nothing heavy is imported before a job is made.
"""

from __future__ import annotations

import csv
import os
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from ordspan.tables import FORMATS
from ordspan.wording import check_choice, comma_list, hint

if TYPE_CHECKING:
    from ordspan.tables.files import FileOptions
    from ordspan.tables.label_columns import LabelColumns

FilePath = Annotated[str, Path]
Names = Annotated[Sequence[str], list[str]]
"""The type in a job, and that on the command line; there, Any is text."""
STDIN = STDOUT = "-"
ONCE = "standard input and other pipes can be read only once"
LABELS, ADVANCED = "Other labels", "Advanced"
GROUPS = (None, LABELS, ADVANCED)
"""Groups of options in the order of the help; the last has those that few people need."""
REQUIRED: Any = Parameter.empty
Report = Callable[[int, float | None, float | None], None]
"""Callback with the rows so far, their MAE, and the share done; None for what is not known."""
UNITS = {"s": 1, "m": 60, "h": 3600}
RUN, MODEL, LEARNER = "run", "model", "learner"
"""What an option belongs to: a run that may differ when training resumes; a model, which fixes it
when training continues from one; or some learners, whose parameter it is, by default their own."""


def no_report(rows: int, mae: float | None, share: float | None) -> None:
    """Report nothing."""


class Option(NamedTuple):
    """An option of a command: a field of its job."""

    help: str
    default: Any = None  # or REQUIRED
    flags: tuple[str, ...] = ()  # on the command line; by default made from the name
    group: str | None = None  # of the help
    least: float | None = None
    most: float | None = None
    read: Callable[[str], Any] | None = None  # turns text into a value
    metavar: str | None = None
    argument: bool = False  # on the command line, given without a flag
    of: str = ""  # RUN, MODEL or LEARNER
    name: str = ""  # as the field is declared, like the type
    kind: Any = None

    @property
    def shell(self) -> Any:
        """Its type on the command line, without None."""
        parts = typing.get_args(self.kind)
        kind = parts[0] if type(None) in parts else self.kind
        return getattr(kind, "__metadata__", (str if kind is Any else kind,))[0]

    @property
    def words(self) -> tuple[str, ...]:
        """The only values."""
        return typing.get_args(self.shell) if typing.get_origin(self.shell) is Literal else ()

    @property
    def names(self) -> tuple[str, ...]:
        """The flags of the command line, the best known first."""
        return self.flags or (f"--{self.name.replace('_', '-')}",)

    def check(self, value: Any) -> None:
        """Raise if a value is not allowed."""
        if self.words:
            check_choice(self.name, value, self.words)
        least, most = self.least, self.most
        if (least is not None and value < least) or (most is not None and value > most):
            limits = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ValueError(f"{self.name} must be {limits}, got {value}")


def option(help: str, default: Any = None, *, positional: bool = False, **about: Any) -> Any:
    """A field of a job that is an option; in Python, given by name unless it is positional."""
    made = Option(help, default, **about)
    more = {} if default is REQUIRED else {"default": default}
    return field(**more, kw_only=not positional, metadata={"option": made})


required = partial(option, default=REQUIRED, positional=True)
argument = partial(required, argument=True)
of_labels = partial(option, group=LABELS, of=MODEL)
advanced = partial(option, group=ADVANCED)
of_model = partial(advanced, of=MODEL)
of_learner = partial(advanced, of=LEARNER)
of_run = partial(advanced, of=RUN)


def options_of(job: type[Job]) -> dict[str, Option]:
    """The options of a job by name: positional ones first, then by group."""
    kinds = typing.get_type_hints(job, include_extras=True)
    about = {one: one.metadata["option"] for one in fields(job)}  # type: ignore[arg-type]
    order = sorted(about, key=lambda one: (one.kw_only, GROUPS.index(about[one].group)))
    return {one.name: about[one]._replace(name=one.name, kind=kinds[one.name]) for one in order}


def read_list(text: str) -> list[str]:
    """Words of a comma separated list; one that contains a comma is quoted.

    >>> read_list('98, "No, thanks", income:99')
    ['98', 'No, thanks', 'income:99']
    """
    if "\r" in text or "\n" in text:  # a mistake of a shell script
        raise ValueError(f"{text!r} contains a line break; write the list on one line")
    words = next(csv.reader([text], skipinitialspace=True), [])
    return [word.strip() for word in words if word.strip()]


def read_grades(text: str) -> list[Any]:
    """Grades from lowest to highest, such as low,mid,high or 1..5, or in the lines of @FILE."""
    from ordspan.labels.grades import read_order

    if text.startswith("@"):
        lines = Path(text[1:]).read_text(encoding="utf-8-sig").splitlines()
        text = comma_list(line.strip() for line in lines if line.strip())
    read_list(text)  # raises if it is not one line
    return read_order(text).tolist()


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
        raise ValueError(f"gamma must be distance, scale, auto or a number, got {text!r}") from None


def read_percentages(text: str) -> tuple[int, ...]:
    """Whole percentages in a comma separated list, ascending.

    >>> read_percentages("50,0")
    (0, 50)
    """
    words = read_list(text)
    if not all(word.isdecimal() and int(word) <= 100 for word in words):
        raise ValueError(f"--fractions takes whole percentages from 0 to 100, got {text!r}")
    return tuple(sorted({int(word) for word in words}))


def read_interval(text: str) -> tuple[int, float]:
    """Rows, or seconds, between two checkpoints; the other is 0.

    >>> read_interval("5000"), read_interval("5m")
    ((5000, 0.0), (0, 300.0))
    """
    match = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?)\s*([smh])", text.strip())
    rows, time, unit = match.groups("0") if match else ("0", "0", "0")
    every = (int(rows), float(time) * UNITS.get(unit, 0))
    if not any(every):
        raise ValueError(f"{text!r} is neither rows, such as 100000, nor a time: 30s, 5m or 1h")
    return every


grades = partial(option, flags=("--grades", "--classes"), read=read_grades)


class Job:
    """Options of a command, checked; plain values, and text that stands for a value is read."""

    def __post_init__(self) -> None:
        for name, about in options_of(type(self)).items():
            value = plain(getattr(self, name))
            if isinstance(value, str) and about.shell == list[str]:
                value = [value]
            if "" in (value if isinstance(value, list) else [value]):
                raise ValueError(f"{name}: a name is empty; give a name, or leave the option out")
            if isinstance(value, str) and about.read:
                value = about.read(value)
            if value is not None:
                about.check(value)
            object.__setattr__(self, name, value)


def plain(value: Any) -> Any:
    """Paths as text, and arrays and other sequences as lists of plain values."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(one) for one in value]
    return value.item() if hasattr(value, "item") else value


def make_job(kind: type[Job], given: Mapping[str, Any]) -> Job:
    """A job of the given options, none of which may be without effect."""
    about, given = options_of(kind), {n: v for n, v in given.items() if v is not None}
    for name in given:
        if "start" in given and about[name].of in (MODEL, LEARNER):
            fixed, start = hint(f"{name}=", about[name].names[0]), hint("start=", "--from")
            raise ValueError(f"{fixed} cannot be given with {start}, because the model fixes it")
    return kind(**given)


FILES_HELP = (
    "CSV, JSON lines, Parquet, Arrow, Excel, SPSS, Stata or svmlight/LETOR files, text files also "
    ".gz or .zst; a folder of them; a quoted glob pattern; or - for standard input (CSV or JSON "
    "lines)."
)


@dataclass(frozen=True)
class OpeningJob(Job):
    """How to open files."""

    format: Annotated[str, Literal[tuple(FORMATS)]] | None = advanced(
        "csv, jsonl, parquet, arrow, xlsx, sav (SPSS), dta (Stata) or svmlight. By default, from "
        "the file extension.",
        metavar="FORMAT",
    )
    delimiter: str | None = advanced("Field separator of CSV files; detected by default.")
    decimal: Literal[".", ","] | None = advanced("Decimal sign of text; detected by default.")
    encoding: str | None = advanced("Encoding of text, such as cp1252; detected by default.")
    na: Annotated[Any, list[str]] = advanced(
        'Codes for no answer: 98,99,"Prefer not to answer"; income:99 only in that column.',
        (),
        metavar="CODES",
    )
    sheet: str | None = advanced("Sheet of an Excel workbook; by default, the only one.")
    header_row: int | None = advanced(
        "Row of an Excel sheet, or line of a CSV file, that names the columns; detected in sheets.",
        least=1,
    )

    @property
    def options(self) -> FileOptions:
        """How to open the files."""
        from ordspan.tables.files import FileOptions

        names = [field.name for field in fields(FileOptions)]
        return FileOptions(**{name: vars(self)[name] for name in names if name in vars(self)})


@dataclass(frozen=True)
class FileJob(OpeningJob):
    """A job on files."""

    files: Names = argument(FILES_HELP, metavar="FILE")
    pipe = None  # a named pipe such as /dev/fd/63, which is read as standard input is

    def __post_init__(self) -> None:
        super().__post_init__()
        if pipes := [name for name in self.files if Path(name).is_fifo()]:
            files = [STDIN if name in pipes else name for name in self.files]
            vars(self).update(files=files, pipe=pipes[0])

    @property
    def is_pipe(self) -> bool:
        """Whether the rows come from standard input or another pipe."""
        return STDIN in self.files


@dataclass(frozen=True)
class LabelledJob(FileJob):
    """A job on rows with labels, some of which may be bad."""

    label: str | None = option("Column of grades or of ranges such as 3-5, >=3, at least 3, [3,5].")
    lower: str | None = option(
        "Column with the lowest possible grade, which is included; empty cells are open ends."
    )
    upper: str | None = option(
        "Column with the highest possible grade, which is included; empty cells are open ends."
    )
    ratings: Names = option(
        "Columns of several judges' grades, or one of lists such as [1, 2, 2]: the label is their "
        "range, without the lowest and the highest quarter of them.",
        (),
        group=LABELS,
    )
    on_bad_row: Literal["raise", "skip"] = advanced(
        "raise: stop at the first bad row; skip: skip bad rows and count them.", "raise"
    )
    allow_skipped: float = advanced(
        "With --on-bad-row skip: the largest share of bad rows to accept.", 0.2, least=0, most=1
    )

    @property
    def label_columns(self) -> LabelColumns:
        """The columns of the labels, checked."""
        from ordspan.tables.label_columns import LabelColumns

        return LabelColumns(self.label, self.lower, self.upper, tuple(self.ratings))


@dataclass(frozen=True)
class TrainJob(LabelledJob):
    """What to train, from which files, where to write the model, and how to run."""

    model: FilePath = required("Where to write the model.", of=RUN)
    classes: Any = grades(
        "All grades from lowest to highest: low,mid,high or 0..4; quote a name that contains a "
        "comma, or give @FILE with one grade per line. By default the numbers in the label column, "
        "or the order of a categorical column.",
        of=MODEL,
    )
    brackets: bool = of_labels(
        "The labels are brackets of an amount, such as $25,000 to $49,999, under 90k or 60+; "
        "--lower and --upper hold where a bracket starts and below what it ends.",
        False,
    )
    edges: Any = of_labels(
        "With --brackets: the edges, such as 10k,25k,50k; by default, found.", read=read_list
    )
    cut: Any = of_labels(
        "Cut labels that are numbers at 3.4,3.8,4.2, or into 5 equal parts.", read=read_list
    )
    drop: Names = option("Columns to leave out, comma separated.", (), of=MODEL)
    features: Names | None = of_model(
        "Columns to learn from, comma separated (quote a name that contains a comma). By default "
        "all others except ids and empty columns."
    )
    text: Names = of_model("Columns to treat as text even if they look like numbers.", ())
    hashed: Names = of_model(
        "Text columns to hash; by default those of very many values.", (), flags=("--hash",)
    )
    hash_bits: int = of_model(
        "Hash text into 2^this many features; sentences into at least 2^16.", 12, least=1, most=24
    )
    standardise: bool = of_model("Scale numbers to zero mean and unit standard deviation.", True)
    missing: Literal["mean", "error"] = of_model(
        "Missing numbers. mean: fill in the mean and add a feature; error: treat as a bad row.",
        "mean",
    )
    learner: Literal["pa", "kernel", "svm"] = option(
        "pa: linear, any size; kernel: non-linear, with a budget of support vectors; svm: the "
        "linear optimum, for data that fits in memory.",
        "pa",
        of=MODEL,
    )
    variant: Literal["PA", "PA-I", "PA-II"] | None = of_learner("(pa, kernel) Default PA-I.")
    C: float | None = of_learner(
        "Aggressiveness: how far one row may move the model; default 0.1, kernel 1.",
        flags=("--C", "-C"),
    )
    average: bool | None = of_learner(
        "(pa, kernel) Predict with the average of all iterates (default) or the last."
    )
    balanced: bool | None = of_learner(
        "(pa) Let thresholds move as far as scores (default), or as in the paper, which learns "
        "slowly from many features."
    )
    kernel: Literal["rbf", "linear", "poly", "sigmoid"] | None = of_learner("(kernel) Default rbf.")
    gamma: Any = of_learner(
        "(kernel) distance (default), scale, auto or a number.", read=read_gamma
    )
    degree: float | None = of_learner("(kernel) Degree of poly; default 3.")
    coef0: float | None = of_learner("(kernel) Constant of poly and sigmoid; default 0.")
    budget: int | None = of_learner("(kernel) Most support vectors to keep; default 500.", least=1)
    loss: Literal["hinge", "squared_hinge"] | None = of_learner("(svm) Default squared_hinge.")
    tol: float | None = of_learner("(svm) Relative duality gap; default 0.001.")
    max_iter: int | None = of_learner("(svm) Most sweeps over the rows; default 1000.", least=1)
    passes: int | None = option(
        "(pa, kernel) Passes over the files; default 1, over small files of sentences 10.", least=1
    )
    shuffle: bool | None = advanced(
        "Whether to learn the rows in random order; by default, only if neighbours are alike."
    )
    seed: int = advanced("Seed for shuffling and for --hold-out.", 0, least=0)
    hold_out: float = option("Share of rows to hold out and evaluate on.", 0.0, least=0, most=0.9)
    overwrite: bool = option("Replace an existing model.", False, of=RUN)
    start: FilePath | None = advanced(
        "Model to continue; columns, grades and scaling stay.", flags=("--from",), metavar="MODEL"
    )
    zero_based: bool | None = of_model(
        "First index in svmlight files. By default 0 if it occurs, otherwise 1.",
        flags=("--zero-based/--one-based",),
    )
    n_features: int = of_model("Features of svmlight files; 0 counts them first.", 0, least=0)
    resume: bool = of_run("Resume from the checkpoint of this model.", False)
    checkpoint_every: Any = of_run(
        "Rows (100000) or time (30s, 5m) between checkpoints.", "60s", read=read_interval
    )
    dask: Any = of_run(
        "Train on a Dask cluster, or with local on all processors of this machine. Each file is a "
        "block and each pass a round, with a checkpoint after it.",
        metavar="ADDRESS",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.parameters, self.grades  # raises if one is not of this learner, or does not fit
        passes, resume = hint("passes=", "--passes"), hint("resume=", "--resume")
        again = (self.passes or 1) > 1 or self.resume
        if self.is_pipe and (again or self.shuffle or self.hold_out):
            raise ValueError(
                f"{ONCE}: passes must be 1, and rows cannot be shuffled or held out; a training "
                f"goes on from its checkpoint with {hint('start=', '--from')}, not with {resume}"
            )
        if self.learner == "svm" and again:
            raise ValueError(f"the learner svm is fitted in one step; leave out {passes}, {resume}")
        unsupported = self.is_pipe or self.learner != "pa" or self.start or self.hold_out
        if self.dask is not None and unsupported:
            raise ValueError(
                "Dask supports only the learner pa, trained from scratch and on all rows of files; "
                "train without Dask"
            )

    @property
    def grades(self) -> Any:
        """The grades, given or the bands between given edges; None if they are to be found."""
        bands = self.brackets or self.edges is not None
        if (self.classes is not None) + (self.cut is not None) + bands > 1:
            raise ValueError(
                f"give only one of {hint('classes=', '--grades')}, brackets= and edges= "
                f"(--brackets, --edges), and {hint('cut=', '--cut')}"
            )
        edges = self.cut if self.edges is None else self.edges
        if edges is None or self.parts:
            return self.classes
        from ordspan.labels.amounts import band_names, check_edges

        return band_names(check_edges(edges))

    @property
    def parts(self) -> int:
        """Into how many parts to cut the labels; 0 if not."""
        cut = self.cut[0] if isinstance(self.cut, list) and len(self.cut) == 1 else self.cut
        return int(cut) if str(cut).isdecimal() else 0

    @property
    def label_columns(self) -> LabelColumns:
        """The columns of the labels, and how to find the grades in them."""
        return replace(super().label_columns, brackets=self.brackets, parts=self.parts)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters of the learner: the given ones, and its defaults for the others."""
        from ordspan.catalog import learner_parameters

        given = {name: value for name, value in self._options(LEARNER) if value is not None}
        return learner_parameters(self.learner, given)

    def to_dict(self) -> dict[str, Any]:
        """All options that the model depends on as plain values, for its file."""
        return dict(self._options("", MODEL)) | ({} if self.start else self.parameters)

    def _options(self, *of: str) -> Iterator[tuple[str, Any]]:
        about = options_of(TrainJob).values()
        return ((one.name, getattr(self, one.name)) for one in about if one.of in of)


TRAINED_HELP = "A model written by ordspan train."


@dataclass(frozen=True)
class PredictJob(FileJob):
    """What to predict, and what else to write."""

    model: FilePath = required(TRAINED_HELP)
    out: FilePath = option(
        "Output file, .csv, .xlsx, .parquet or .jsonl, which appears when it is complete; - is CSV "
        "on standard output.",
        STDOUT,
        positional=True,
    )
    keep: Names = option(
        "Columns to copy to the output, such as id; for svmlight label and qid. Columns that are "
        "not features are copied as text from CSV and JSON lines.",
        (),
    )
    where: bool = option("Also write the file and line (Parquet: row) of every row.", False)
    coverage: float | None = option(
        "Also write lower and upper: a range of grades that contains the true one with this "
        "probability, 0.5, 0.8, 0.9, 0.95 or 0.99.",
        flags=("--range", "--coverage"),
    )
    proba: bool = option("Also write the probability of every grade.", False)
    overwrite: bool = option("Replace an earlier prediction.", False)
    on_bad_row: Literal["empty", "raise"] = option(
        "empty: write the reason instead of a grade; raise: stop at the first bad row.", "empty"
    )


@dataclass(frozen=True)
class EvaluateJob(LabelledJob):
    """A model, and files to measure it on."""

    model: FilePath = required(TRAINED_HELP)
    group: str | None = option("Column with the query of a row, for NDCG; svmlight files use qid.")
    page: FilePath | None = option(
        "Also write a web page with plots.", flags=("--html", "--page"), metavar="PAGE.html"
    )
    overwrite: bool = option("Replace a page of an earlier evaluation.", False)


@dataclass(frozen=True)
class ExportJob(Job):
    """A model to write as an ONNX graph."""

    model: FilePath = argument("A model file.", metavar="MODEL")
    out: FilePath = argument("The graph to write.", metavar="OUT.onnx")
    dtype: Literal["float32", "float64"] = option(
        "Type of the input, score and probabilities; float64 inside.", "float32"
    )
    overwrite: bool = option("Replace an earlier graph.", False)


@dataclass(frozen=True)
class InfoJob(Job):
    """A model to describe."""

    model: FilePath = argument("A model file, or a checkpoint of ordspan train.", metavar="MODEL")
    top: int = option("Number of largest weights to show; 0 shows all.", 20, least=0)


GRADES_HELP = "The grades from lowest to highest: 1..5, low,mid,high, or @FILE with one per line."


@dataclass(frozen=True)
class ServerJob(Job):
    """Where to listen, and where to keep what is learned."""

    state: FilePath = option(
        "Folder for labels and snapshots of the model; created if missing.",
        REQUIRED,
        metavar="FOLDER",
    )
    host: str = option("Address to listen on; other than localhost needs a token.", "127.0.0.1")
    port: int = option("Port; 0 picks a free one.", 8000, least=0, most=65535)
    token_file: FilePath | None = option(
        "File with a secret of at least 16 characters that every request except /health must send, "
        "as Authorization: Bearer SECRET; the page of annotate asks for it."
    )
    export: str | None = option(
        "Write all labels to a .csv, .xlsx, .parquet or .jsonl file and exit; - is CSV on "
        "standard output."
    )
    overwrite: bool = option("Replace an earlier export.", False)


@dataclass(frozen=True)
class ServeJob(ServerJob):
    """A model to serve over HTTP."""

    model: FilePath | None = option("First model, written by ordspan train; needed only once.")
    classes: Any = grades(f"To start without a model. {GRADES_HELP}")
    columns: Names = option("To start without a model: the columns of a record.", ())
    text: Names = option("Which of the columns are text; the others are numbers.", ())
    snapshot_every: int = option("Labels between two snapshots of the model.", 10_000, least=1)
    most_waiting: int = option(
        "Largest number of rows waiting to be learned; more are refused.", 20_000, least=1
    )


@dataclass(frozen=True)
class AnnotateJob(OpeningJob, ServerJob):
    """Items for people to grade on a page."""

    items: FilePath | None = argument(
        "File of items, in any format but svmlight; remembered by the state folder.", default=None
    )
    classes: Any = grades(GRADES_HELP)
    id: str | None = option("Column with the id of each item; by default the row number.")
    drop: Names = option("Columns to show but not to learn from.", ())
    hide: Names = option("Columns to neither show nor learn from.", ())
    text: Names = option("Columns to treat as text even if they look like numbers.", ())
    question: str | None = option(
        "The question shown with each item; by default, Which grade fits?"
    )
    guess: Literal["half", "show", "hide"] = option(
        "Show the model's guess for a random half of the items, so that its influence on the "
        "answers can be measured (half), for all (show) or for none (hide).",
        "half",
    )
    open: bool | None = option("Open the page in a browser; by default if run in a terminal.")


@dataclass(frozen=True)
class ReproduceJob(Job):
    """Which experiments of the paper to run, and where to write the results."""

    datasets: Names = option(
        "Comma separated; also synthetic. All but mslr come with ordspan; a missing one is "
        "skipped.",
        ("california", "abalone", "parkinson", "mslr"),
    )
    algorithms: Names = option(
        "Comma separated; besides the paper's five also PRIL, MC-PA, MC-PA-I, MC-PA-II.",
        ("PA", "PA-I", "PA-II", "PRank", "MCP"),
    )
    fractions: Any = option(
        "Percentages of labels given as ranges, comma separated.", "0,50,75", read=read_percentages
    )
    runs: int = option("Runs to average over.", 100, least=1)
    trials: int = option("Trials of each run.", 7000, least=1)
    seed: int = option("Random seed.", 0, least=0)
    average: bool = option("Also draw averaged PA, PA-I and PA-II.", False)
    solver: Literal["exact", "sca"] = option(
        "sca also draws the search printed in the paper.", "exact"
    )
    out: FilePath = option("Folder for the results.", "ordspan-results", metavar="FOLDER")
    data_dir: FilePath | None = option(
        "Folder with the data sets; by default ORDSPAN_DATA.", metavar="FOLDER"
    )
    jobs: int = option("Number of threads; 0 uses all processors.", 0, least=0)
    overwrite: bool = option("Discard results of different settings in the folder.", False)
    report_only: FilePath | None = option(
        "Only redraw the report from the results in a folder.", metavar="FOLDER"
    )
