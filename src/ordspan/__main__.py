"""The command `ordspan`, also as `python -m ordspan`."""

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from ordspan.cli import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich", "click"):
            raise
        sys.exit(f"the command line needs {missing.name}: pip install 'ordspan[cli]'")
    app(prog_name="ordspan")


if __name__ == "__main__":
    main()
