"""`ordspan annotate`: a page where people grade items, exactly or by a range."""

import sys
import webbrowser
from pathlib import Path
from threading import Thread

from ordspan.cli.app import command, print_notes, tell
from ordspan.commands.jobs import STDOUT, AnnotateJob
from ordspan.wording import plural


@command(AnnotateJob, "items.csv --grades low,mid,high --state items-state --id id")
def annotate(job: AnnotateJob, json: bool) -> None:
    """Let people grade items on a web page, exactly or by a range; a model learns from each answer.

    Half of the items are drawn at random, for an unbiased error estimate; the others are those
    the model is least sure of. Every answer is on disk before it is confirmed. Run the same
    command again to continue. Needs the extra serve.
    """
    from ordspan.serving import http
    from ordspan.serving.annotate.app import make_app
    from ordspan.serving.annotate.items import open_folder
    from ordspan.serving.annotate.session import Session

    token = http.read_token(job.token_file, job.host)
    if job.export is not None:  # works while the page is served
        print_export(job, job.export, json)
        return
    folder, items = open_folder(job)
    session = Session(Path(job.state), items, folder, job.guess)
    if not json:
        print_notes({"notes": items.notes})
    question = folder.options.get("question") or "Which grade fits?"
    app = make_app(session, title=items.path.name, question=question, token=token)

    def started(address: str) -> None:
        n_items, n_answers = len(session.items), int(session.history.answered.sum())
        secret = "The page asks for the secret; or append it to the address as /#token=SECRET."
        blind = "There is no column to learn from, so items come in random order, without a guess."
        tell(
            {"address": address, "items": n_items, "answers": n_answers},
            json,
            f"Annotate {plural(n_items, 'item')} at {address} ({n_answers:,} answers so far).",
            f"Progress: {address}/progress. Ctrl+C stops the server; every answer is on disk.",
            *([secret] if token else []),
            *([blind] if session.features is None else []),
        )
        on_terminal = sys.stdout.isatty() and job.host in http.LOCAL_HOSTS
        if on_terminal if job.open is None else job.open:  # a text browser would block
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    http.run_server(app, job.host, job.port, started)


def print_export(job: AnnotateJob, out: str, json: bool) -> None:
    """Write the answers of a state folder, and say how to learn from them."""
    from ordspan.serving.annotate.items import read_folder
    from ordspan.serving.export import export_labels, train_command

    folder = read_folder(Path(job.state))
    inputs, text = ([folder.items], folder.options["text"]) if folder else ([], [])
    rows, model = export_labels(
        out, Path(job.state), annotated=True, inputs=inputs, overwrite=job.overwrite
    )
    if out != STDOUT:
        again = f"  {train_command(out, model, text)}"
        written = f"{plural(rows, 'answer')} written to {out}. To train on them:"
        tell({"out": out, "answers": rows}, json, written, again)
