"""Pages that a table of contents may list before they are written."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def leave_out_missing(app: Sphinx, docname: str, source: list[str]) -> None:
    """Drop the lines of a page that are nothing but the name of an optional page not there."""
    missing = set(app.config.optional_pages) - app.env.found_docs
    source[0] = "\n".join(line for line in source[0].split("\n") if line not in missing)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the setting ``optional_pages``, a list of page names."""
    app.add_config_value("optional_pages", [], "env", list)
    app.connect("source-read", leave_out_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
