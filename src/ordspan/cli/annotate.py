"""`ordspan annotate`: a page where people grade items, exactly or by a range."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ordspan.cli import annotate_options as a
from ordspan.cli import options as o
from ordspan.cli.app import app, report_errors
from ordspan.cli.printing import say
from ordspan.cli.serve import Host, Port, StateFolder

if TYPE_CHECKING:
    from ordspan.serving.annotate.items import Items
    from ordspan.serving.annotate.session import Session
    from ordspan.serving.annotate.settings import FolderSettings


@app.command(
    epilog="Example: ordspan annotate items.csv --grades low,mid,high --state items-state --id id"
)
def annotate(
    state: StateFolder,
    items: a.ItemsFile = None,
    grades: a.Grades = None,
    id_column: a.IdColumn = None,
    drop: a.Drop = None,
    hide: a.Hide = None,
    text: a.TextColumns = None,
    question: a.QuestionText = "Which grade fits?",
    guess: a.ShowGuess = "half",
    export: a.ExportFile = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: a.PageToken = None,
    open_page: a.OpenPage = None,
    format: o.Format = None,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    json: o.AsJson = False,
) -> None:
    """Let people grade items on a web page, exactly or by a range; a model learns from each answer.

    Half of the items are drawn at random, for an unbiased error estimate; the others are those
    the model is least sure of. Every answer is on disk before it is confirmed. Run the same
    command again to continue. Needs the extra serve.
    """
    with report_errors():
        from ordspan.labels.grades import read_order
        from ordspan.serving.annotate.items import ItemColumns
        from ordspan.serving.annotate.session import Session, open_engine
        from ordspan.serving.annotate.settings import (
            ChangedItemsError,
            check_can_export,
            opened,
        )
        from ordspan.serving.guard import check_host, read_token

        token = None if token_file is None else read_token(token_file)
        check_host(host, token)
        columns = ItemColumns(
            id_column, o.split_names(drop), o.split_names(hide), o.split_names(text)
        )
        options = o.file_options(format, delimiter, decimal, encoding)
        order = None if grades is None else read_order(grades).tolist()
        if export is not None:  # works while the page is served
            known = check_can_export(state)
            try:
                _, there = opened(state, items, order, columns, options)
            except ChangedItemsError:
                there = None
            print_export(state, export, known, there, json)
            return
        settings, table = opened(state, items, order, columns, options)
        session = Session(open_engine(state, table, settings), table, settings, guess)
        serve_page(session, question, token, host, port, open_page, json)


def serve_page(
    session: Session,
    question: str,
    token: str | None,
    host: str,
    port: int,
    open_page: bool | None,
    json: bool,
) -> None:
    """Serve the page until the command is stopped."""
    from ordspan.serving.annotate.app import make_app
    from ordspan.serving.guard import LOCAL_HOSTS
    from ordspan.serving.running import run_server

    if not json:
        o.print_notes(session.items.notes)
    title = session.items.path.name
    application = make_app(session, title=title, question=question, token=token)
    wanted = sys.stdout.isatty() and host in LOCAL_HOSTS if open_page is None else open_page

    def started(address: str) -> None:
        print_started(address, session, token is not None, json)
        if wanted:  # a text browser would block
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    run_server(application, host, port, started)


def print_export(
    state: Path, out: str, settings: FolderSettings, items: Items | None, json: bool
) -> None:
    """Write the answers of a state folder, and say how to learn from them."""
    from ordspan.serving.annotate.history import read_history
    from ordspan.serving.annotate.labels import export_answers, train_command
    from ordspan.serving.export import read_state

    model, events = read_state(state)
    replies, recipe = read_history(events, len(settings.grades)).replies.values(), model.recipe
    rows = export_answers(out, recipe, settings.grades, replies, items, [settings.items])
    if json and out != "-":
        o.print_json({"out": out, "answers": rows})
    elif out != "-":
        say(f"{rows:,} answers written to {out}. To train on them:")
        say(f"  {train_command(out, settings.grades, recipe, settings.columns.text)}")


def print_started(address: str, session: Session, secret: bool, json: bool) -> None:
    """Print the address of the page first."""
    n_items, n_answers = len(session.items), int(session.history.answered.sum())
    if json:
        o.print_json({"address": address, "items": n_items, "answers": n_answers})
        return
    say(f"Annotate {n_items:,} items at {address} ({n_answers:,} answers so far).")
    say(f"Progress: {address}/progress. Ctrl+C stops the server; every answer is on disk.")
    if secret:
        say("The page asks for the secret; or append it to the address as /#token=SECRET.")
    if not session.items.learnable:
        say("There is no column to learn from, so items come in random order, without a guess.")
