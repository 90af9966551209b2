"""`ordspan serve`: predict and learn over HTTP, with a durable log."""

from pathlib import Path
from typing import Any

from ordspan.cli.app import command, tell
from ordspan.commands.jobs import STDOUT, ServeJob
from ordspan.wording import plural


@command(ServeJob, "--model ratings.ordspan --state ratings-state")
def serve(job: ServeJob, json: bool) -> None:
    """Predict and learn over HTTP; a label is confirmed when it is on disk.

    POST /predict takes a record or a list of them, POST /learn the same with a label;
    /openapi.json lists the rest. After a crash, the model is restored from the folder, byte for
    byte. Needs the extra serve.
    """
    from ordspan.serving import http
    from ordspan.serving.annotate.items import NAME
    from ordspan.serving.app import make_app
    from ordspan.serving.engine import Engine, warm_up
    from ordspan.serving.export import export_labels

    token = http.read_token(job.token_file, job.host)
    state = Path(job.state)
    if (state / NAME).exists():
        raise ValueError(
            f"{state} is a state folder of ordspan annotate, whose answers belong to items; "
            "choose another with --state"
        )
    if job.export is not None:  # works while the service is running
        rows, _ = export_labels(job.export, state, overwrite=job.overwrite)
        if job.export != STDOUT:
            written = f"{plural(rows, 'label')} written to {job.export}."
            tell({"out": job.export, "labels": rows}, json, written)
        return
    engine = Engine(state, starting_model(job), every=job.snapshot_every)
    warm_up(engine.model)
    app = make_app(engine, token=token, most_waiting=job.most_waiting)

    def started(address: str) -> None:
        secret = "Every request but /health must send Authorization: Bearer SECRET."
        tell(
            {"address": address, "labels": engine.n_labels},
            json,
            f"Serving at {address} ({plural(engine.n_labels, 'label')} so far).",
            f"Examples of requests for this model: {address}/openapi.json",
            *([secret] if token else []),
            "Ctrl+C stops the server after finishing accepted requests.",
        )

    http.run_server(app, job.host, job.port, started)


def starting_model(job: ServeJob) -> Any:
    """The model to start from: a model file, an empty one of named columns, or None."""
    from ordspan.commands.models import read_table_model
    from ordspan.serving.engine import empty_model
    from ordspan.serving.records import check_names

    given = [job.classes, job.columns]
    if not any([job.model, job.text, *given]):
        return None
    if any([job.text, *given]) if job.model else not all(given):
        raise ValueError(
            "to start, give either --model, or both --grades and --columns, perhaps with --text"
        )
    if job.model:
        start = read_table_model(job.model)
    else:
        start = empty_model(job.classes, list(job.columns), list(job.text))
    check_names(start.recipe)
    return start
