"""Write docs/cli.md, the help of every command; with --check, only say whether it is current."""

import os
import sys
from pathlib import Path

os.environ["COLUMNS"] = "80"
os.environ["TERMINAL_WIDTH"] = "80"

from typer.main import get_command

from ordspan.cli import app

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# Commands

Every command prints this with `--help`. `make cli` writes this page.
"""


def page() -> str:
    """The page, with a section for each command."""
    group = get_command(app)
    parts = [HEAD]
    with group.make_context("ordspan", [], resilient_parsing=True) as top:
        for name in group.list_commands(top):
            command = group.get_command(top, name)
            context = command.make_context(name, [], parent=top, resilient_parsing=True)
            text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
            parts.append(f"## ordspan {name}\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit("docs/cli.md is not the help of the commands; run: make cli")
