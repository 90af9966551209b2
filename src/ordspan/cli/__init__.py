"""The command line; each command has its own module."""

from ordspan.cli import (  # noqa: F401
    annotate,
    evaluate,
    export,
    info,
    predict,
    reproduce,
    serve,
    train,
)
from ordspan.cli.app import app

__all__ = ["app"]
