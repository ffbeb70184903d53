"""Pages of the documentation made again of what the benchmarks have measured.

    python -m benchmarks.pages

A benchmark that writes ``docs/benchmarks/<name>.json`` has a function ``page``, which makes the
page of it, and, if it compares with a paper, a function ``paper_rows``. Nothing is measured here.
The page ``papers.md`` has the totals and the rows that differ from the papers, and
``docs/methods.md`` counts the rows of every table. Printed are all rows beside the papers that are
not within two standard errors, and totals.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from benchmarks import _command
from benchmarks._tables import ABOVE, BELOW, WITHIN, PaperRow, counted, markdown, verdict

INDEX = "papers"
METHODS = _command.PAGES.parent / "methods.md"
#: Lines of the index of methods between which a table of a paper is written.
MARKS = ("<!-- verdicts: {} -->", "<!-- end of verdicts: {} -->")
#: Per cent of the figures on the same data that should be within, or above for a tested reason.
TARGET = 90.0

_FDA, _YE, _LMKL = "Yan et al. 2012", "Ye, Ji and Chen 2008", "Gönen and Alpaydın 2013"
_CVPR, _DENOISING = "Yan et al. 2010", "Yan, Kittler and Mikolajczyk 2010"
#: Numbers of tables and figures of each paper.
CONTENTS = {
    _LMKL: {"Table": 11, "Fig.": 8},
    _CVPR: {"Table": 3, "Fig.": 3},
    _FDA: {"Table": 3, "Fig.": 9},
    _DENOISING: {"Table": 3, "Fig.": 3},
    _YE: {"Table": 17, "Fig.": 4},
}
#: Tables and figures without figures to compare with: what they show, and the page about it.
WITHOUT_FIGURES = {
    (_LMKL, "Table 1"): ("the views of MULTIFEAT", "gonen2013"),
    (_LMKL, "Table 4"): ("the views of ADVERT (not available)", ""),
    (_LMKL, "Table 5"): ("ADVERT (not available)", ""),
    (_LMKL, "Table 6"): ("weights on ADVERT (not available)", ""),
    (_LMKL, "Fig. 1"): ("boundaries on GAUSS4, a picture", "gonen2013"),
    (_LMKL, "Fig. 2"): ("copies of a kernel on GAUSS4, a picture", "gonen2013"),
    (_LMKL, "Fig. 3"): ("copies of a kernel on MULTIFEAT, a picture", "gonen2013"),
    (_LMKL, "Fig. 4"): ("copies of a kernel on ADVERT (not available)", ""),
    (_LMKL, "Fig. 5"): ("gates on OLIVETTI, a picture", "gonen2013"),
    (_LMKL, "Fig. 6"): ("weights of patches on OLIVETTI, a picture", "gonen2013"),
    (_LMKL, "Fig. 7"): ("MOTORCYCLE, a picture", "gonen2013"),
    (_LMKL, "Fig. 8"): ("copies of a kernel on CONCRETE, a picture", "gonen2013"),
    (_CVPR, "Table 1"): ('the algorithm, `solver="sip"`', "solvers"),
    (_CVPR, "Fig. 1"): ("weights by norm, a picture (stand-in)", "voc"),
    (_CVPR, "Fig. 2"): ("learning the norm, a picture (stand-in)", "voc"),
    (_CVPR, "Fig. 3"): ("random kernels on Caltech101, a picture (stand-in)", "yan2012"),
    (_FDA, "Fig. 1"): ("simulated kernels, a picture", "simulation"),
    (_FDA, "Fig. 2"): ("random kernels on VOC2008, a picture (stand-in)", "yan2012"),
    (_FDA, "Fig. 3"): ("weights by norm, a picture (stand-in)", "voc"),
    (_FDA, "Fig. 4"): ("learning the norm, a picture (stand-in)", "voc"),
    (_FDA, "Fig. 5"): ("alignment of kernels, a picture (stand-in)", "voc"),
    (_FDA, "Fig. 7"): ("training times, a picture (stand-in)", "yan2012"),
    (_FDA, "Fig. 8"): ("training times, a picture (stand-in)", "yan2012"),
    (_FDA, "Fig. 9"): ("training times of OBSCURE, a picture (stand-in)", "yan2012"),
    (_DENOISING, "Table 1"): ('the algorithm, `solver="sip"`', "solvers"),
    (_DENOISING, "Fig. 1"): ("weights by norm, a picture (stand-in)", "voc"),
    (_DENOISING, "Fig. 2"): ("single kernels by variance kept, a picture (stand-in)", "denoising"),
    (_YE, "Table 1"): ("growth of times, no figures", "ye2008_studies"),
    (_YE, "Table 16"): ("seconds on another machine", "ye2008"),
    (_YE, "Fig. 1"): ("seconds, a picture", "ye2008"),
    (_YE, "Fig. 2"): ("Gabor pictures of section 5.3 (stand-in)", "ye2008_studies"),
    (_YE, "Fig. 3"): ("the effect of λ, a picture", "ye2008_studies"),
    (_YE, "Fig. 4"): ("the effect of λ, a picture", "ye2008_studies"),
}


def converted() -> Iterator[tuple[str, ModuleType]]:
    """Names and modules of the benchmarks that have written what they measured."""
    for path in sorted(_command.PAGES.glob("*.json")):
        yield path.stem, import_module(f"benchmarks.{path.stem}")


def pages() -> dict[str, str]:
    """Texts of all pages that are made of measured values, by name."""
    return {name: module.page(_command.read_results(name)) for name, module in converted()}


def paper_rows() -> list[tuple[str, PaperRow]]:
    """All rows beside those of papers, with the names of their pages."""
    return [
        (name, row)
        for name, module in converted()
        if hasattr(module, "paper_rows")
        for row in module.paper_rows(_command.read_results(name))
    ]


def verdicts(folder: str = "") -> dict[str, str]:
    """A table for each paper: its tables and figures, how many rows have which verdict, links."""
    groups: dict[tuple[str, str, str], list[PaperRow]] = {}
    for name, row in paper_rows():
        groups.setdefault((row.paper, row.place, name), []).append(row)
    listed: list[tuple[tuple[str, str, str], list[PaperRow]]] = [*groups.items()]
    listed += [((paper, place, ""), []) for paper, place in WITHOUT_FIGURES]
    tables: dict[str, list[list[str]]] = {}
    for (paper, place, name), rows in sorted(listed, key=lambda item: _order(*item[0])):
        cells = tables.setdefault(paper, [])
        if not rows:
            what, page = WITHOUT_FIGURES[paper, place]
            link = f"[{place}]({folder}{page}.md)" if page else place
            cells.append([link, what, *[""] * 5])
            continue
        names = dict.fromkeys(row.data for row in rows)
        data = ", ".join(names) if rows[0].same_data else f"{', '.join(names)} (stand-in)"
        numbers = [
            sum(row.outcome == outcome for row in rows) for outcome in (WITHIN, ABOVE, BELOW)
        ]
        numbers.append(sum(row.outcome != WITHIN and not row.reason for row in rows))
        link = f"[{place}]({folder}{name}.md)"
        cells.append([link, data, str(len(rows)), *map(str, numbers)])
    header = ["", "data", "rows", "within", "above", "below", "unexplained"]
    return {paper: markdown(header, cells, n_left=2) for paper, cells in tables.items()}


def index() -> str:
    """The page with the totals, and every row that is not within two standard errors."""
    rows = [row for _, row in paper_rows()]
    same = [row for row in rows if row.same_data]
    other = [row for row in rows if not row.same_data]
    good = sum(
        row.outcome == WITHIN or (row.outcome == ABOVE and row.reason != "") for row in same
    )
    share = 100.0 * good / len(same)
    parts = [
        "# Tables of the papers",
        "Written by `python -m benchmarks.pages`. How many figures of the papers are within two "
        "standard errors of the difference between the paper's and ours, above (better) or below. "
        "Figures above or below are explained only if a reason was tested. [The methods by "
        "paper](../methods.md) has the counts of every table and figure, and the code.",
        f"On the data of the papers: {counted(same)}. Within two standard errors, or above for a "
        f"reason that was tested: {good} of {len(same)}, {share:.1f} % (target: {TARGET:g} %, "
        f"{verdict(share >= TARGET)}).\n\nOn other data, which stand in for those that are not "
        f"available: {counted(other)}.",
    ]
    for title, some in (("The data of the papers", same), ("Other data", other)):
        apart = [
            [row.paper, row.place, row.data, row.method]
            + [f"{value:.4g}" for value in (row.ours, row.theirs, row.error)]
            + [row.verdict]
            for row in some
            if row.outcome != WITHIN
        ]
        header = ["paper", "place", "data", "row", "ours", "paper's", "standard error", "verdict"]
        parts += [f"## {title}: above or below", markdown(header, apart, n_left=4)]
    return "\n\n".join(parts) + "\n"


def with_verdicts(text: str) -> str:
    """The index of methods with the tables of verdicts between their marks."""
    for paper, table in verdicts("benchmarks/").items():
        begin, end = MARKS[0].format(paper), MARKS[1].format(paper)
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"{METHODS.name} has no lines {begin} and {end}.")
        text = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    return text


def _order(paper: str, place: str, name: str) -> tuple[str, str, int, str]:
    """Tables by their numbers."""
    words, digits = place.rstrip("0123456789"), place[len(place.rstrip("0123456789")) :]
    return paper, words, int(digits or 0), name


def main() -> int:
    """Write the pages."""
    for name, text in {**pages(), INDEX: index()}.items():
        _command.write_page(name, text)
    METHODS.write_text(with_verdicts(METHODS.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Written: {METHODS}")
    rows = [row for _, row in paper_rows()]
    for row in rows:
        if row.outcome != WITHIN:
            print(
                f"{row.paper}, {row.place}, {row.data}, {row.method}: {row.ours:g}, paper "
                f"{row.theirs:g}, standard error {row.error:g}: {row.verdict}"
            )
    same = [row for row in rows if row.same_data]
    print(f"On the data of the papers: {counted(same)}.")
    if len(same) < len(rows):
        print(f"On other data: {counted(row for row in rows if not row.same_data)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
