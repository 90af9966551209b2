"""Self-contained web pages: a template with the common style, tables and figures inside."""

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

BLUE, ORANGE, GREY, PALE = "#0072b2", "#d55e00", "#7f7f7f", "#b9c2cb"
"""Colours of all plots: those of Okabe and Ito, which colour-blind readers can distinguish."""
COLORS = {"#000000": "ink", "#ffffff": "page", BLUE: "blue", ORANGE: "orange"}
COLORS |= {GREY: "grey", PALE: "pale"}
"""The variables of a page's style that take the place of colours in figures."""


def fill_template(package: str, template: str, parts: Mapping[str, str]) -> str:
    """A template of a package with a part in place of every ``{{name}}``.

    ``{{head}}`` is replaced by what all pages have: a common style, and a content security policy
    that blocks all requests.
    """
    text = _resource(package, template)
    whole = {**parts, "head": _resource("ordspan", "pages.html")}
    # one pass, so that nothing inside a part is replaced
    return re.sub(r"\{\{(\w+)\}\}", lambda place: whole[place[1]], text)


def figure_svg(figure: Any, alt: str) -> str:
    """A matplotlib figure as SVG inside a page, at most as wide as it was drawn.

    Text stays text, in the font of the page, and `COLORS` become those of the page, so that a
    figure is readable in the light and in the dark.
    """
    from matplotlib import rc_context

    file = io.StringIO()
    width, height = 96 * figure.get_size_inches()
    # ids must differ between figures: what a hidden one defines is not drawn in another
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{alt} {width} {height}"}):
        figure.savefig(file, format="svg", transparent=True)
    inside = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", file.getvalue(), flags=re.S)
    inside = inside[inside.index(">", inside.index("<svg")) + 1 :]
    used = set(re.findall(r"#(\w+)", inside))

    def clean(tag: re.Match[str]) -> str:
        text = re.sub(r' id="([\w.]+)"', lambda name: name[0] if name[1] in used else "", tag[0])
        text = re.sub(r"font-family: [^;\"]*;? ?|(?<=\.\d\d)\d+| \n(?=L)|(?<=\nL) ", "", text)
        for color, name in COLORS.items():
            text = text.replace(color, f"var(--{name})")
        return text

    inside = re.sub(r"<[^>]*>", clean, inside)  # what is written between tags stays as it is
    box = f'viewBox="0 0 {0.75 * width:g} {0.75 * height:g}" style="max-width: {width:g}px"'
    return f'<svg role="img" aria-label="{escape(alt)}" {box}>{inside}'


def _resource(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


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
