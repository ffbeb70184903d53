"""Pages of the documentation made again of what the benchmarks have measured.

    python -m benchmarks.pages

A benchmark that writes ``docs/benchmarks/<name>.json`` has a function ``page``, which makes the
page of it, and, if it compares with a paper, a function ``paper_rows``. Nothing is measured here.
Printed are all rows beside the papers that are not within two standard errors, and totals.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from benchmarks import _command
from benchmarks._tables import WITHIN, PaperRow, counted


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


def main() -> int:
    """Write the pages."""
    for name, text in pages().items():
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
