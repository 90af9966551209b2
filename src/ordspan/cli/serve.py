"""`ordspan serve`: predict and learn over HTTP, with a durable log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordspan.cli import options as o
from ordspan.cli.app import app, report_errors
from ordspan.cli.printing import say

if TYPE_CHECKING:
    from ordspan.serving.engine import Engine

Host = Annotated[
    str,
    typer.Option(help="Address to listen on; other than localhost needs a token."),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="File with a secret of at least 16 characters that every request except /health must "
        "send, as Authorization: Bearer SECRET."
    ),
]
StateFolder = Annotated[
    Path,
    typer.Option(
        help="Folder for the log of all labels and snapshots of the model; created if missing."
    ),
]
InitialModel = Annotated[
    Path | None,
    typer.Option(help="Initial model, written by ordspan train; only needed the first time."),
]
InitialGrades = Annotated[
    str | None,
    typer.Option(
        help="To start without a model: the grades from lowest to highest, such as 1..5 or "
        "low,mid,high."
    ),
]
InitialColumns = Annotated[
    list[str] | None,
    typer.Option(help="To start without a model: the columns of a record."),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(help="Which of the columns are text; the others are numbers."),
]
SnapshotEvery = Annotated[
    int, typer.Option(min=1, help="Labels between two snapshots of the model.")
]
MostWaiting = Annotated[
    int,
    typer.Option(min=1, help="Largest number of rows waiting to be learned; more are refused."),
]

ExportFile = Annotated[
    str | None,
    typer.Option(
        help="Write all labels to a .csv, .parquet or .jsonl file and exit; - is CSV on standard "
        "output."
    ),
]


@app.command(epilog="Example: ordspan serve --model ratings.ordspan --state ratings-state")
def serve(
    state: StateFolder,
    model: InitialModel = None,
    grades: InitialGrades = None,
    columns: InitialColumns = None,
    text: TextColumns = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: TokenFile = None,
    snapshot_every: SnapshotEvery = 10_000,
    most_waiting: MostWaiting = 20_000,
    export: ExportFile = None,
    json: o.AsJson = False,
) -> None:
    """Predict and learn over HTTP; a label is confirmed when it is on disk.

    POST /predict takes a record or a list of them, POST /learn the same with a label;
    /openapi.json lists the rest. After a crash, the model is restored from the folder, byte for
    byte. Needs the extra serve.
    """
    with report_errors():
        from ordspan.serving.app import make_app
        from ordspan.serving.engine import Engine
        from ordspan.serving.guard import check_host, read_token
        from ordspan.serving.models import warm_up
        from ordspan.serving.running import run_server

        token = None if token_file is None else read_token(token_file)
        check_host(host, token)
        check_folder(state)
        if export is not None:  # works while the service is running
            print_export(export, state, json)
            return
        start = starting_model(model, grades, o.split_names(columns), o.split_names(text))
        engine = Engine(state, start, every=snapshot_every)
        warm_up(engine.model)
        application = make_app(engine, token=token, most_waiting=most_waiting)
        run_server(
            application,
            host,
            port,
            lambda address: print_started(address, engine, token is not None, json),
        )


def check_folder(state: Path) -> None:
    """Refuse a folder of ordspan annotate."""
    from ordspan.serving.annotate.settings import NAME

    if (state / NAME).exists():
        raise ValueError(
            f"{state} is a state folder of ordspan annotate, whose answers belong to items; "
            "choose another with --state"
        )


def print_export(out: str, state: Path, json: bool) -> None:
    """Write the labels of a state folder."""
    from ordspan.serving.export import export_labels

    rows = export_labels(out, state)
    if json and out != "-":
        o.print_json({"out": out, "labels": rows})
    elif out != "-":
        say(f"{rows:,} labels written to {out}.")


def starting_model(
    model: Path | None, grades: str | None, columns: list[str], text: list[str]
) -> Any:
    """The initial model, if given."""
    from ordspan.commands.models import read_table_model
    from ordspan.labels.grades import read_order
    from ordspan.serving.records import check_names
    from ordspan.serving.starting import empty_model

    if model is not None:
        if grades or columns or text:
            raise ValueError("give either --model, or --grades and --columns to start without one")
        start = read_table_model(str(model))
    elif grades is None and not columns:
        return None
    elif grades is None or not columns:
        raise ValueError("to start without a model, give both --grades and --columns")
    else:
        start = empty_model(read_order(grades), columns, text)
    check_names(start.recipe)
    return start


def print_started(address: str, engine: Engine, secret: bool, json: bool) -> None:
    """Print the address first."""
    if json:
        o.print_json({"address": address, "events": engine.n_events})
        return
    say(f"Serving at {address} ({engine.n_events:,} labels so far).")
    say(f"Examples of requests for this model: {address}/openapi.json")
    if secret:
        say("Every request but /health must send Authorization: Bearer SECRET.")
    say("Ctrl+C stops the server after finishing accepted requests.")
