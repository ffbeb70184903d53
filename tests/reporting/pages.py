"""Models to report on, and pages taken apart."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser

import numpy as np

from manykernels import MKFDA, MKFDACV, MKSVC, MKCoxCV, MKRidge, report
from manykernels.kernels import RBF

# Names that would be more than names if anything forgot to escape them.
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'{{ 7 * 7 }}{% raw %}",
    "long " * 2000,
    "\u202eעברית and 👩‍🔬",
    "half \udc80, bell \x07",
]


def views_and_classes(n=60, seed=0, names=("strong", "noise")):
    """A view that tells two classes apart, and views that do not."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    tables = {name: rng.standard_normal((n, 2)) for name in names}
    tables[names[0]][:, 0] += 3.0 * y
    return tables, np.array(["no", "yes"])[y]


def parts(tables, rows):
    return {name: table[rows] for name, table in tables.items()}


@cache
def reported(kind):
    """A page with most sections."""
    tables, y = views_and_classes()
    if kind == "hostile":
        tables, y = views_and_classes(names=HOSTILE)
        classes = np.array(HOSTILE[:2], dtype=object)[(y == "yes").astype(int)]
        return report(MKFDA(RBF()).fit(tables, classes), tables, classes, importance=False)
    if kind == "values":
        values = tables["strong"][:, 0]
        model = MKRidge(RBF()).fit(parts(tables, slice(40)), values[:40])
        return report(model, parts(tables, slice(40, 60)), values[40:])
    if kind == "survival":
        times = np.random.default_rng(0).exponential(np.exp(-tables["strong"][:, 0]))
        target = (np.arange(60) % 3 > 0, times.round(2))
        model = MKCoxCV(RBF(), ps=[1, 2], regs=[1.0, 10.0]).fit(tables, target)
        return report(model, tables, target)
    if kind == "search":
        model = MKFDACV(RBF(), ps=[1, 2, np.inf], regs=[0.01, 0.1, 1.0]).fit(tables, y)
        return report(model, tables, y)
    return report(MKFDA(RBF()).fit(tables, y), tables, y)


@cache
def svc():
    tables, y = views_and_classes()
    return MKSVC(RBF()).fit(parts(tables, slice(40)), y[:40])


class Page(HTMLParser):
    """Elements of a page with their attributes, texts, and whether tags are balanced."""

    VOID = ("meta", "img", "br", "path", "circle", "line", "input", "link")

    def __init__(self, source):
        super().__init__()
        self.elements, self.text, self.unbalanced, self._open = [], [], [], []
        self.feed(source)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        if "style" not in self._open:
            self.text.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def sections(self):
        return [one["id"] for one in self.of("section")]

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())
