"""Stacks and views as notebooks show them: small tables of HTML."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

from .._tables import Html, html, shortened

# Kernels and views that are listed; the others are counted.
_LISTED = 30
# Rows and columns whose values are looked at, so that a stack on disk is not read as a whole.
_SIDE = 200
# Most rows, columns and kernels of which there are pictures: a page of them stays small.
_TINY_SIDE, _TINY_KERNELS = 64, 12
# Pixels of the longer side of a picture: a little more than two lines of text.
_PIXELS = 48
# Colour of the largest values; smaller ones let the ground through, be it light or dark.
_COLOR = 43, 131, 186


def stack_html(stack: Any) -> str:
    """A row for every kernel: its view, values and, of a small stack, a picture."""
    n_rows, n_cols, n_kernels = stack.shape
    rows, cols = (
        np.linspace(0, size - 1, min(size, _SIDE)).round().astype(int) for size in (n_rows, n_cols)
    )
    part = stack.select(np.arange(min(n_kernels, _LISTED)))[np.ix_(rows, cols)]
    tiny = 0 < max(n_rows, n_cols) <= _TINY_SIDE and n_kernels <= _TINY_KERNELS
    header = ["kernel", "mean", "least", "most", "mean k(x, x)"]
    if stack.views is not None:
        header.insert(1, "view")
    table = []
    for j, name in enumerate(part.names):
        matrix = part.kernel(j)
        diagonal = None if stack.row_diag is None else stack.row_diag[j]
        cells = [shortened(name), *map(_number, _described(matrix)), _number(_mean(diagonal))]
        if stack.views is not None:
            cells.insert(1, shortened(str(stack.views[j])))
        table.append([*cells, _picture(matrix)] if tiny else cells)
    notes = []
    if len(rows) < n_rows or len(cols) < n_cols:
        notes.append(f"Values of {len(rows)} × {len(cols)} entries.")
    if n_kernels > _LISTED:
        notes.append(f"{n_kernels - _LISTED} more kernels.")
    title = f"<p>KernelStack: {n_kernels} kernels, {n_rows} × {n_cols}</p>"
    return title + html([*header, ""] if tiny else header, table, notes)


def views_html(views: Any) -> str:
    """A row for every view: what it holds, and how many rows have it."""
    table = [
        [
            shortened(name),
            type(one).__name__,
            "1" if len(one.shape) == 1 else str(one.shape[1]),
            str(int(np.count_nonzero(views.has(name)))),
            str(int(np.count_nonzero(~views.has(name)))),
        ]
        for name, one in list(views.items())[:_LISTED]
    ]
    more = len(views.names) - len(table)
    title = f"<p>Views: {len(views)} rows, {len(views.names)} views</p>"
    header = ["view", "holds", "columns", "rows", "rows that lack it"]
    return title + html(header, table, [f"{more} more views."] if more else [])


def _described(matrix: np.ndarray) -> tuple[float, float, float]:
    """Mean, least and largest value of those that are there."""
    known = matrix[np.isfinite(matrix)]
    if not known.size:
        return np.nan, np.nan, np.nan
    return float(known.mean()), float(known.min()), float(known.max())


def _mean(values: np.ndarray | None) -> float:
    known = np.zeros(0) if values is None else values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3g}"


def _picture(matrix: np.ndarray) -> Html:
    """Values from the least, transparent, to the largest, as an image in the page itself."""
    _, low, high = _described(matrix)
    scale = (high - low) or 1.0
    strength = np.nan_to_num((matrix - low) / scale, nan=0.0, posinf=1.0, neginf=0.0)
    pixels = np.empty((*matrix.shape, 4), dtype=np.uint8)
    pixels[..., :3] = _COLOR
    pixels[..., 3] = (255.0 * np.clip(strength, 0.0, 1.0)).round()
    height, width = matrix.shape
    zoom = _PIXELS / max(height, width)
    return Html(
        f'<img src="data:image/png;base64,{b64encode(_png(pixels)).decode()}" '
        f'alt="values from {_number(low)} to {_number(high)}" width="{zoom * width:.0f}" '
        f'height="{zoom * height:.0f}" style="image-rendering: pixelated">'
    )


def _png(pixels: np.ndarray) -> bytes:
    """An image with red, green, blue and opacity, (height, width, 4), as a file."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        ending = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + ending

    # Eight bits each, and no filter in front of every line.
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
