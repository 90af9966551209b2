"""The command line; each command has its own module."""

from ordspan.cli import evaluate, export, info, predict, reproduce, serve, train
from ordspan.cli.app import app

__all__ = ["app", "evaluate", "export", "info", "predict", "reproduce", "serve", "train"]
