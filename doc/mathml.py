"""Formulas as MathML, made when the site is built: browsers draw it themselves, with no script, font or network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number


def to_mathml(node: nodes.Element, block: bool) -> str:
    """The MathML of a formula; one that cannot be read stops the build."""
    latex = node.astext().replace(r"\dots", r"\ldots")
    try:
        return tex2mathml(latex, as_block=block)
    except MathError as error:
        raise ExtensionError(f"{node.source}: the formula {latex!r} cannot be read: {error}") from error


def visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(to_mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    number = get_node_equation_number(self, node) if node["number"] else None
    label = f'<span class="eqno">({number})</span>' if number else ""
    self.body.append(f'<div class="formula">{label}{to_mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
