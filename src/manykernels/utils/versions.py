"""Versions of this package and its dependencies, and tables as text and HTML."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version

__version__ = "0.1.0"

# Required and optional dependencies.
_NEEDED = ("numpy", "scipy", "scikit-learn", "clarabel", "highspy", "numba", "threadpoolctl")
_OPTIONAL = (
    *("anndata", "dask", "distributed", "jinja2", "matplotlib", "mudata", "pandas", "polars"),
    *("pyarrow", "rdkit", "rich", "skops", "typer"),
)


def show_versions() -> None:
    """Print the versions of Python, of dependencies and of BLAS, for bug reports.

    Examples
    --------
    >>> import manykernels
    >>> manykernels.show_versions()
    <BLANKLINE>
    System
      python: ...
    """
    system = {
        "python": sys.version.replace("\n", " "),
        "machine": platform.platform(),
        "processor": platform.processor() or platform.machine(),
    }
    sections = {
        "System": system,
        "Packages": versions(),
        "Optional packages": {name: _installed(name) for name in _OPTIONAL},
        "Threads": _thread_pools(),
    }
    for title, lines in sections.items():
        width = max(map(len, lines), default=0)
        print(f"\n{title}")
        for name, value in lines.items():
            print(f"  {name:>{width}}: {value}")


def versions() -> dict[str, str]:
    """Return the versions of this package and of its required dependencies."""
    return {"manykernels": __version__} | {name: _installed(name) for name in _NEEDED}


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _thread_pools() -> dict[str, str]:
    """Return the libraries with thread pools, and their numbers of threads."""
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    return {
        f"{place}. {pool['internal_api']} {pool['version'] or ''}".rstrip(): (
            f"{pool['num_threads']} threads ({pool['filepath'].rpartition('/')[2]})"
        )
        for place, pool in enumerate(threadpool_info(), start=1)
    }


# -- Tables as text, Markdown and HTML ------------------------------------------------------------


Cells = Sequence[str]
# Maximal length of a name in an HTML table, to leave room for numbers.
_LONGEST = 60


def aligned(rows: Sequence[Cells]) -> str:
    """Return aligned lines of cells, the first column left-justified, the others right."""
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        "  ".join([name.ljust(first), *map(str.rjust, cells, widths)]).rstrip()
        for name, *cells in rows
    )


def markdown(header: Cells, rows: Sequence[Cells], n_left: int = 1) -> str:
    """Return a padded Markdown table; the first `n_left` columns are left-justified."""
    header, *rows = ([_in_markdown(cell) for cell in cells] for cells in (header, *rows))
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Cells) -> str:
        padded = [
            f"{cell:<{width}}" if i < n_left else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rules = [
        "-" * (width + 2) if i < n_left else "-" * (width + 1) + ":"
        for i, width in enumerate(widths)
    ]
    return "\n".join([line(header), f"|{'|'.join(rules)}|", *map(line, rows)])


def _in_markdown(cell: str) -> str:
    """Escape line breaks and bars in a cell."""
    return " ".join(cell.split("\n")).replace("|", "\\|")


def html(header: Cells, rows: Sequence[Cells], notes: Sequence[str] = ()) -> str:
    """Return an escaped HTML table, its first column left-justified, followed by notes."""
    lines = ["<table>", _html_row("th", header)]
    lines += [_html_row("td", cells) for cells in rows]
    lines.append("</table>")
    lines += [f"<p>{escape(note)}</p>" for note in notes]
    return "\n".join(lines)


def _html_row(tag: str, cells: Cells) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    inside = "".join(
        f'<{tag}{scope} style="text-align: {"right" if i else "left"}">{_in_html(cell)}</{tag}>'
        for i, cell in enumerate(cells)
    )
    return f"<tr>{inside}</tr>"


def _in_html(cell: str) -> str:
    return cell if isinstance(cell, Html) else escape(cell)


class Html(str):
    """Cell that is HTML and is not escaped."""

    __slots__ = ()


def bar(share: float) -> Html:
    """Return a bar whose length is a `share` between 0 and 1 of the maximal length."""
    width = f"{100.0 * min(max(share, 0.0), 1.0):.1f}%"
    return Html(
        '<div aria-hidden="true" style="width: 8em; text-align: left"><div style="height: 0.7em; '
        f'width: {width}; background: #2b83ba"></div></div>'
    )


def shortened(name: str) -> str:
    """Return a name, abbreviated in the middle if it is long."""
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[-half:]}"
