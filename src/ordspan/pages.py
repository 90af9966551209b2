"""Self-contained web pages: a template with the common style, tables and figures inside."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any


def fill_template(package: str, template: str, parts: Mapping[str, str]) -> str:
    """A template of a package with a part in place of every ``{{name}}``.

    ``{{head}}`` is replaced by what all pages have: a common style, and a content security policy
    that blocks all requests; ``{{plotly}}`` by plotly.js.
    """
    text, whole = (
        _resource(package, template),
        {**parts, "head": _resource("ordspan", "pages.html")},
    )
    if "{{plotly}}" in text:
        from plotly.offline import get_plotlyjs

        whole["plotly"] = get_plotlyjs()
    # one pass, so that nothing inside a part is replaced
    return re.sub(r"\{\{(\w+)\}\}", lambda place: whole[place[1]], text)


def figure_svg(figure: Any, alt: str) -> str:
    """A matplotlib figure as an SVG element, described by ``alt``.

    Black is drawn in the colour of the page's text and white in that of its background, so that
    the figure can be read on a light and on a dark page.
    """
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": alt}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    head, _, text = file.getvalue().partition("</defs>")
    shape = head[head.index("viewBox=") : head.index(" xmlns=")]
    for pattern, new in (
        (r' id="[^"]*_\d+"', ""),  # those of groups, which would occur once in every figure
        (r"font-family: [^;\"]*;?", ""),
        (r"\s*\n\s*", " "),
        ("#000000", "currentColor"),
        ("#ffffff", "var(--page)"),
    ):
        text = re.sub(pattern, new, text)
    # tenths of a point are enough for paths
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), text)
    return f'<svg role="img" aria-label="{escape(alt)}" fill="currentColor" {shape}>{text}'


def _resource(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def script_json(data: object) -> str:
    r"""JSON that is safe inside a script element.

    >>> script_json({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def terms(pairs: Mapping[str, Any]) -> str:
    """Pairs of names and values as an HTML definition list; empty without pairs.

    >>> terms({"rows": 3})
    '<dl><dt>rows</dt><dd>3</dd></dl>'
    """
    items = [f"<dt>{escape(key)}</dt><dd>{escape(str(v))}</dd>" for key, v in pairs.items()]
    return f"<dl>{''.join(items)}</dl>" if items else ""


def table_row(texts: Sequence[str], attributes: str = "") -> str:
    """One row of a table.

    >>> table_row(["a < b", "2"])
    '<tr><td>a &lt; b</td><td>2</td></tr>\\n'
    """
    head = f"<tr {attributes}>" if attributes else "<tr>"
    return f"{head}{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>\n"
