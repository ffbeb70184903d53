"""Sphinx transforms that add links to the reference and to the gallery.

Names of the package in pages, such as `MKFDA`, are linked to the reference, and links to files in
``examples/`` are replaced by links to the gallery. The pages themselves stay plain Markdown.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import manykernels

# Names that are also common words, or that occur twice in the package.
AMBIGUOUS = {"Box", "Constant", "Fixed", "Product", "Sample", "Sum", "Uniform"}


def public_modules():
    """Return the modules whose names are listed in the reference, by module name."""
    modules = {"manykernels": manykernels}
    for info in iter_modules(manykernels.__path__):
        module = import_module(f"manykernels.{info.name}")
        if not info.name.startswith("_") and hasattr(module, "__all__"):
            modules[module.__name__] = module
    return modules


def reference_targets():
    """Return the target in the reference for each spelling of a public name.

    Names that the package itself exports are documented there, other names in the first module
    that exports them.
    """
    targets, first = {}, {}
    for module_name, module in public_modules().items():
        for name in module.__all__:
            full_name = f"{module_name}.{name}"
            target = first.setdefault(id(getattr(module, name)), full_name)
            targets[full_name] = targets[full_name.removeprefix("manykernels.")] = target
            if name not in AMBIGUOUS:
                targets.setdefault(name, target)
    return targets


class LinkNames(SphinxTransform):
    """Link public names in code style to the reference."""

    default_priority = 500
    targets = reference_targets()

    def apply(self, **kwargs):
        for literal in list(self.document.findall(nodes.literal)):
            target = self.targets.get(literal.astext().removesuffix("()"))
            within = (nodes.reference, nodes.title, addnodes.pending_xref)
            if target is None or isinstance(literal.parent, within):
                continue
            to_name = {"refdomain": "py", "reftype": "obj", "reftarget": target}
            link = addnodes.pending_xref("", refdoc=self.env.docname, refexplicit=True, **to_name)
            literal.replace_self(link)
            link += literal


class LinkExamples(SphinxTransform):
    """Replace links to files in ``examples/`` by links to their pages in the gallery."""

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
