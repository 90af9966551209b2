"""`ordspan serve`: predict and learn over HTTP, with a durable log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordspan.cli.app import command
from ordspan.cli.printing import print_json, say
from ordspan.commands.jobs import STDOUT, ServeJob

if TYPE_CHECKING:
    from ordspan.serving.engine import Engine


@command(ServeJob, "--model ratings.ordspan --state ratings-state")
def serve(job: ServeJob, json: bool) -> None:
    """Predict and learn over HTTP; a label is confirmed when it is on disk.

    POST /predict takes a record or a list of them, POST /learn the same with a label;
    /openapi.json lists the rest. After a crash, the model is restored from the folder, byte for
    byte. Needs the extra serve.
    """
    from ordspan.serving.app import make_app
    from ordspan.serving.engine import Engine
    from ordspan.serving.guard import check_host, read_token
    from ordspan.serving.models import warm_up
    from ordspan.serving.running import run_server

    token = None if job.token_file is None else read_token(Path(job.token_file))
    check_host(job.host, token)
    check_folder(Path(job.state))
    if job.export is not None:  # works while the service is running
        print_export(job.export, job, json)
        return
    engine = Engine(Path(job.state), starting_model(job), every=job.snapshot_every)
    warm_up(engine.model)
    application = make_app(engine, token=token, most_waiting=job.most_waiting)
    run_server(
        application,
        job.host,
        job.port,
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


def print_export(out: str, job: ServeJob, json: bool) -> None:
    """Write the labels of a state folder."""
    from ordspan.commands.outputs import check_table
    from ordspan.serving.export import export_labels

    check_table(Path(out), ("key", "lower", "upper"), job.overwrite)
    rows = export_labels(out, Path(job.state))
    if json and out != STDOUT:
        print_json({"out": out, "labels": rows})
    elif out != STDOUT:
        say(f"{rows:,} labels written to {out}.")


def starting_model(job: ServeJob) -> Any:
    """The initial model, if given."""
    import numpy as np

    from ordspan.commands.models import read_table_model
    from ordspan.serving.records import check_names
    from ordspan.serving.starting import empty_model

    if job.model is not None:
        if job.classes or job.columns or job.text:
            raise ValueError("give either --model, or --grades and --columns to start without one")
        start = read_table_model(job.model)
    elif job.classes is None and not job.columns:
        return None
    elif job.classes is None or not job.columns:
        raise ValueError("to start without a model, give both --grades and --columns")
    else:
        start = empty_model(np.array(job.classes), list(job.columns), list(job.text))
    check_names(start.recipe)
    return start


def print_started(address: str, engine: Engine, secret: bool, json: bool) -> None:
    """Print the address first."""
    if json:
        print_json({"address": address, "events": engine.n_events})
        return
    say(f"Serving at {address} ({engine.n_events:,} labels so far).")
    say(f"Examples of requests for this model: {address}/openapi.json")
    if secret:
        say("Every request but /health must send Authorization: Bearer SECRET.")
    say("Ctrl+C stops the server after finishing accepted requests.")
