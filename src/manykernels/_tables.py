"""Tables as text, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Cells = Sequence[str]


def aligned(rows: Sequence[Cells]) -> str:
    """Lines of cells, the first column to the left and the others to the right."""
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        "  ".join([name.ljust(first), *map(str.rjust, cells, widths)]).rstrip()
        for name, *cells in rows
    )


def markdown(header: Cells, rows: Sequence[Cells], n_left: int = 1) -> str:
    """Markdown table, padded to be read as it is; the first `n_left` columns start at the left."""
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
    """A cell without what would end it."""
    return " ".join(cell.split("\n")).replace("|", "\\|")


def html(header: Cells, rows: Sequence[Cells], notes: Sequence[str] = ()) -> str:
    """HTML table, everything escaped, the first column to the left; notes follow as paragraphs."""
    lines = ["<table>", _html_row("th", header)]
    lines += [_html_row("td", cells) for cells in rows]
    lines.append("</table>")
    lines += [f"<p>{escape(note)}</p>" for note in notes]
    return "\n".join(lines)


def _html_row(tag: str, cells: Cells) -> str:
    inside = "".join(
        f'<{tag} style="text-align: {"right" if i else "left"}">{escape(cell)}</{tag}>'
        for i, cell in enumerate(cells)
    )
    return f"<tr>{inside}</tr>"
