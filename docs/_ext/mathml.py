"""Render formulas as MathML, which browsers support without scripts from other servers."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number


def inline(writer, node):
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def block(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})</span>')
    writer.body.append(f"{tex2mathml(node.astext(), as_block=True)}</div>")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
