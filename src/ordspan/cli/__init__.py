"""The command line: the order of the commands is that of their help."""

from ordspan.cli import summaries, serve, annotate  # noqa: F401 # isort: skip
from ordspan.cli.app import app

__all__ = ["app"]
