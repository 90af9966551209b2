"""Self-contained web pages: a template with plotly.js and the common style inside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any


def fill_template(package: str, template: str, parts: Mapping[str, str]) -> str:
    """A template of a package with a part in place of every ``{{name}}``.

    ``{{head}}`` is replaced by what all pages have: plotly.js, a common style, and a content
    security policy that blocks all requests.
    """
    from plotly.offline import get_plotlyjs

    head = _resource("ordspan", "pages.html").replace("{{plotly}}", get_plotlyjs())
    whole = {**parts, "head": head}
    # one pass, so that nothing inside a part is replaced
    return re.sub(r"\{\{(\w+)\}\}", lambda place: whole[place[1]], _resource(package, template))


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
