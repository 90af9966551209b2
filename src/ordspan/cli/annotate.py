"""`ordspan annotate`: a page where people grade items, exactly or by a range."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ordspan.cli.app import command
from ordspan.cli.printing import print_json, print_notes, say
from ordspan.commands.jobs import STDOUT, AnnotateJob

if TYPE_CHECKING:
    from ordspan.serving.annotate.items import Items
    from ordspan.serving.annotate.session import Session
    from ordspan.serving.annotate.settings import FolderSettings


@command(AnnotateJob, "items.csv --grades low,mid,high --state items-state --id id")
def annotate(job: AnnotateJob, json: bool) -> None:
    """Let people grade items on a web page, exactly or by a range; a model learns from each answer.

    Half of the items are drawn at random, for an unbiased error estimate; the others are those
    the model is least sure of. Every answer is on disk before it is confirmed. Run the same
    command again to continue. Needs the extra serve.
    """
    from ordspan.serving.annotate.items import ItemColumns
    from ordspan.serving.annotate.session import Session, open_engine
    from ordspan.serving.annotate.settings import ChangedItemsError, check_can_export, opened
    from ordspan.serving.guard import check_host, read_token

    token = None if job.token_file is None else read_token(Path(job.token_file))
    check_host(job.host, token)
    state, items = Path(job.state), None if job.items is None else Path(job.items)
    columns = ItemColumns(job.id, job.drop, job.hide, job.text)
    if job.export is not None:  # works while the page is served
        known = check_can_export(state)
        try:
            _, there = opened(state, items, job.classes, columns, job.options)
        except ChangedItemsError:
            there = None
        print_export(job, known, there, json)
        return
    settings, table = opened(state, items, job.classes, columns, job.options)
    session = Session(open_engine(state, table, settings), table, settings, job.guess)
    serve_page(session, job, token, json)


def serve_page(session: Session, job: AnnotateJob, token: str | None, json: bool) -> None:
    """Serve the page until the command is stopped."""
    from ordspan.serving.annotate.app import make_app
    from ordspan.serving.guard import LOCAL_HOSTS
    from ordspan.serving.running import run_server

    if not json:
        print_notes(session.items.notes)
    title = session.items.path.name
    application = make_app(session, title=title, question=job.question, token=token)
    wanted = sys.stdout.isatty() and job.host in LOCAL_HOSTS if job.open is None else job.open

    def started(address: str) -> None:
        print_started(address, session, token is not None, json)
        if wanted:  # a text browser would block
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    run_server(application, job.host, job.port, started)


def print_export(
    job: AnnotateJob, settings: FolderSettings, items: Items | None, json: bool
) -> None:
    """Write the answers of a state folder, and say how to learn from them."""
    from ordspan.commands.outputs import check_table
    from ordspan.serving.annotate.history import read_history
    from ordspan.serving.annotate.labels import ANNOTATED, export_answers, train_command
    from ordspan.serving.export import read_state

    out = job.export or STDOUT
    check_table(Path(out), ANNOTATED, job.overwrite)
    model, events = read_state(Path(job.state))
    replies, recipe = read_history(events, len(settings.grades)).replies.values(), model.recipe
    rows = export_answers(out, recipe, settings.grades, replies, items, [settings.items])
    if json and out != STDOUT:
        print_json({"out": out, "answers": rows})
    elif out != STDOUT:
        say(f"{rows:,} answers written to {out}. To train on them:")
        say(f"  {train_command(out, settings.grades, recipe, settings.columns.text)}")


def print_started(address: str, session: Session, secret: bool, json: bool) -> None:
    """Print the address of the page first."""
    n_items, n_answers = len(session.items), int(session.history.answered.sum())
    if json:
        print_json({"address": address, "items": n_items, "answers": n_answers})
        return
    say(f"Annotate {n_items:,} items at {address} ({n_answers:,} answers so far).")
    say(f"Progress: {address}/progress. Ctrl+C stops the server; every answer is on disk.")
    if secret:
        say("The page asks for the secret; or append it to the address as /#token=SECRET.")
    if not session.items.learnable:
        say("There is no column to learn from, so items come in random order, without a guess.")
