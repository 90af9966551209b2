"""`ordspan serve`: a model that predicts and learns over HTTP, and loses nothing."""

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
    typer.Option(help="The address to listen to; another than this machine's own needs a token."),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with a secret that every request but those for health must send, as "
        "Authorization: Bearer SECRET."
    ),
]
State = Annotated[
    Path,
    typer.Option(
        help="A folder for the log of all labels and snapshots of the model; made if missing."
    ),
]


@app.command(epilog="Example: ordspan serve --model ratings.ordspan --state ratings-state")
def serve(
    context: typer.Context,
    state: State,
    model: Annotated[
        Path | None,
        typer.Option(help="A model of ordspan train to begin with; later the folder has it."),
    ] = None,
    grades: Annotated[
        str | None,
        typer.Option(
            help="To begin without a model: the grades from lowest to highest, such as 1..5 or "
            "low,mid,high."
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="To begin without a model: the columns of a record."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Those of the columns that hold words; the others hold numbers."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: TokenFile = None,
    name: Annotated[
        str, typer.Option(help="The model's name in the Open Inference Protocol.")
    ] = "ordspan",
    snapshot_every: Annotated[
        int, typer.Option(min=1, help="Labels between two snapshots of the model.")
    ] = 10_000,
    most_waiting: Annotated[
        int, typer.Option(min=1, help="Rows that may wait to be learned; more are refused.")
    ] = 20_000,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Rebuild the model from the log alone, compare, and end."),
    ] = False,
    json: o.AsJson = False,
) -> None:
    """Predict and learn over HTTP; a label is confirmed when it is on disk.

    POST /predict takes a record or a list of them, POST /learn the same with a label; /docs lists
    the rest. After a kill at any moment the folder gives the same model, to the byte. Needs the
    extra serve.
    """
    with report_errors(context):
        from ordspan.serving.app import make_app
        from ordspan.serving.engine import Engine
        from ordspan.serving.guard import check_host, read_token
        from ordspan.serving.protocol import check_name
        from ordspan.serving.running import run

        token = None if token_file is None else read_token(token_file)
        check_host(host, token)
        check_name(name)
        start = starting_model(model, grades, o.split_names(columns), o.split_names(text))
        engine = Engine(state, start, every=snapshot_every)
        if replay:
            report_replay(engine, json)
            return
        application = make_app(engine, name=name, token=token, most_waiting=most_waiting)
        run(application, host, port, lambda address: say_started(address, engine, json))


def starting_model(
    model: Path | None, grades: str | None, columns: list[str], text: list[str]
) -> Any:
    """The model to begin with, if one is given."""
    from ordspan.commands.models import read_table_model
    from ordspan.files.grades import read_order
    from ordspan.serving.records import check_names
    from ordspan.serving.starting import empty_model

    if model is not None:
        if grades or columns or text:
            raise ValueError("give either --model, or --grades and --columns to begin without one")
        start = read_table_model(str(model))
    elif grades is None and not columns:
        return None
    elif grades is None or not columns:
        raise ValueError("to begin without a model give both --grades and --columns")
    else:
        start = empty_model(read_order(grades), columns, text)
    check_names(start.recipe)
    return start


def say_started(address: str, engine: Engine, json: bool) -> None:
    """Where it can be asked, on the first line."""
    if json:
        o.print_json({"address": address, "events": engine.n_events})
        return
    say(f"Serving at {address} ({engine.n_events:,} labels so far); {address}/docs says how.")
    say("Ctrl+C stops it; what was accepted is finished first.")


def report_replay(engine: Engine, json: bool) -> None:
    """Whether the log alone gives the model of the snapshot and what came after it."""
    from ordspan.modelfile import to_bytes

    same = to_bytes(engine.replayed()) == to_bytes(engine.model)
    events = engine.n_events
    if json:
        o.print_json({"events": events, "same": same})
    elif same:
        say(f"The log of {events:,} events gives the same model, to the byte.")
    if not same:
        raise ValueError(
            f"the log of {events:,} events gives another model than the snapshot and the rest of "
            "the log; were they written on a machine with another processor, whose sums differ in "
            "the last digits? Otherwise remove the snapshot: the log has it all"
        )
