"""Formulas as MathML, which browsers draw themselves: no script, no font, no network.

A formula that cannot be read is a warning, so it fails a build whose warnings are errors.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def written_as_mathml(node: nodes.Element, *, as_block: bool) -> str:
    """The MathML of a formula; what cannot be read stays as it was written."""
    tex = node.astext().replace("'", r"^{\prime}")  # docutils would write an apostrophe
    if as_block and r"\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    try:
        return tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logger.warning("cannot read the formula %r: %s", tex, error, location=node)
        return f"<code>{tex}</code>"


def visit_inline(translator: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    translator.body.append(written_as_mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(written_as_mathml(node, as_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer to Sphinx under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
