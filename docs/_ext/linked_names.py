"""Names of the package in pages, such as `MKFDA`, become links to the reference.

Pages are plain Markdown that reads well anywhere; nobody has to write a role around every name.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import manykernels

# Words that are also something else, such as the solver "newton" or a product of numbers.
TOO_COMMON = {"Array", "Block", "Sample", "Cell", "Sum", "Product", "Box", "Constant"}


def public_names():
    """From every way to write a public name to where its page is."""
    found = {}
    for folder in manykernels._FOLDERS:
        module = getattr(manykernels, folder)
        for name in module.__all__:
            found[f"{folder}.{name}"] = found[f"manykernels.{folder}.{name}"] = (
                f"manykernels.{folder}.{name}"
            )
            found.setdefault(name, f"manykernels.{folder}.{name}")
    for name in manykernels.__all__:
        found[name] = found[f"manykernels.{name}"] = f"manykernels.{name}"
    return {way: target for way, target in found.items() if way not in TOO_COMMON}


class LinkNames(SphinxTransform):
    default_priority = 500
    names = public_names()

    def apply(self, **kwargs):
        for literal in list(self.document.findall(nodes.literal)):
            target = self.names.get(literal.astext().removesuffix("()"))
            inside = isinstance(literal.parent, nodes.reference | nodes.title | addnodes.pending_xref)
            if target is None or inside:
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True,
                refdoc=self.env.docname,
            )
            literal.replace_self(link)
            link += literal


def setup(app):
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
