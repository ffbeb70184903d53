"""Formulas as MathML, which browsers draw by themselves: nothing is loaded from elsewhere."""

from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number


def inline(writer, node):
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    skip(writer)


def block(writer, node):
    number = ""
    if node["number"]:
        number = f'<span class="eqno">({get_node_equation_number(writer, node)})</span>'
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(f"{number}{tex2mathml(node.astext(), as_block=True)}</div>")
    skip(writer)


def skip(writer):
    from docutils.nodes import SkipNode

    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
