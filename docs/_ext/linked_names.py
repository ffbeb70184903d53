"""Links that nobody has to write.

Names of the package in pages, such as `MKFDA`, lead to the reference; links to files in
``examples/`` lead to the gallery. So pages are plain Markdown that reads well anywhere.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import manykernels

# Words that mean other things as well, or two things of the package.
AMBIGUOUS = {"Box", "Constant", "Fixed", "Product", "Sample", "Sum", "Uniform"}


def public_rooms():
    """The modules of the package whose names are listed in the reference, by name."""
    found = {"manykernels": manykernels}
    for room in iter_modules(manykernels.__path__):
        module = import_module(f"manykernels.{room.name}")
        if not room.name.startswith("_") and hasattr(module, "__all__"):
            found[module.__name__] = module
    return found


def places():
    """From every way to write a public name to its place in the reference.

    A name that the package itself has is listed there, any other where it first occurs.
    """
    found, first = {}, {}
    for room, module in public_rooms().items():
        for name in module.__all__:
            place = first.setdefault(id(getattr(module, name)), f"{room}.{name}")
            for way in (f"{room}.{name}", f"{room}.{name}".removeprefix("manykernels.")):
                found[way] = place
            if name not in AMBIGUOUS:
                found.setdefault(name, place)
    return found


class LinkNames(SphinxTransform):
    """Public names in the code style of a page become links to the reference."""

    default_priority = 500
    places = places()

    def apply(self, **kwargs):
        for literal in list(self.document.findall(nodes.literal)):
            place = self.places.get(literal.astext().removesuffix("()"))
            within = (nodes.reference, nodes.title, addnodes.pending_xref)
            if place is None or isinstance(literal.parent, within):
                continue
            to_name = {"refdomain": "py", "reftype": "obj", "reftarget": place}
            link = addnodes.pending_xref("", refdoc=self.env.docname, refexplicit=True, **to_name)
            literal.replace_self(link)
            link += literal


class LinkExamples(SphinxTransform):
    """Links to programs in ``examples/`` lead to their pages in the gallery."""

    default_priority = 501

    def apply(self, **kwargs):
        for link in list(self.document.findall(addnodes.download_reference)):
            path = Path(link["reftarget"])
            if path.parent.parent.name == "examples" and path.suffix == ".py":
                to_page = {"refdomain": "std", "reftype": "doc"}
                to_page["reftarget"] = f"/auto_examples/{path.parent.name}/{path.stem}"
                page = addnodes.pending_xref(
                    "", *link.children, refdoc=self.env.docname, refexplicit=True, **to_page
                )
                link.replace_self(page)


def setup(app):
    app.add_transform(LinkNames)
    app.add_transform(LinkExamples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
