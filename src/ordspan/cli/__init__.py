"""The command line; each command has its own module."""

from ordspan.cli import annotate, evaluate, export, info, predict, reproduce, serve, train  # noqa: F401
from ordspan.cli.app import app

__all__ = ["app"]
