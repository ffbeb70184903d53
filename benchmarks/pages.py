"""Pages of the documentation made again of what the benchmarks have measured.

    python -m benchmarks.pages

A benchmark that writes ``docs/benchmarks/<name>.json`` has a function ``page``, which makes the
page of it, and, if it compares with a paper, a function ``paper_rows``. Nothing is measured here.
The page ``papers.md`` counts the rows of every table of a paper. Printed are all rows beside the
papers that are not within two standard errors, and totals.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from benchmarks import _command
from benchmarks._tables import ABOVE, BELOW, WITHIN, PaperRow, counted, markdown

INDEX = "papers"


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


def index() -> str:
    """The page that counts the rows of every table and figure of the papers."""
    groups: dict[tuple[str, str, str], list[PaperRow]] = {}
    for name, row in paper_rows():
        groups.setdefault((row.paper, row.place, name), []).append(row)
    cells = []
    for (paper, place, name), rows in sorted(groups.items(), key=lambda item: _order(*item[0])):
        names = dict.fromkeys(row.data for row in rows)
        data = ", ".join(names) if rows[0].same_data else f"{', '.join(names)} (stand-in)"
        numbers = [
            sum(row.outcome == outcome for row in rows) for outcome in (WITHIN, ABOVE, BELOW)
        ]
        numbers.append(sum(row.outcome != WITHIN and not row.reason for row in rows))
        link = f"[{name}]({name}.md)"
        cells.append([paper, place, data, link, str(len(rows)), *map(str, numbers)])
    header = ["paper", "table or figure", "data", "page", "rows", "within two standard errors"]
    header += ["above", "below", "unexplained"]
    same = [row for _, row in paper_rows() if row.same_data]
    other = [row for _, row in paper_rows() if not row.same_data]
    parts = [
        "# Tables of the papers",
        "Written by `python -m benchmarks.pages`. How many figures of each table of the papers "
        "are within two standard errors of the difference between the paper's and ours, above "
        "(better) or below. Figures above or below are explained only if a reason was tested. "
        "Pictures without numbers are not counted; they are on the pages and in "
        "[the methods by paper](../methods.md).",
        f"On the data of the papers: {counted(same)}.\n\nOn other data, which stand in for those "
        f"that are not available: {counted(other)}.",
        markdown(header, cells, n_left=4),
    ]
    return "\n\n".join(parts) + "\n"


def _order(paper: str, place: str, name: str) -> tuple[str, str, int, str]:
    """Tables by their numbers."""
    words, digits = place.rstrip("0123456789"), place[len(place.rstrip("0123456789")) :]
    return paper, words, int(digits or 0), name


def main() -> int:
    """Write the pages."""
    for name, text in {**pages(), INDEX: index()}.items():
        _command.write_page(name, text)
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
