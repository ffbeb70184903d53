"""Rows that an iterator yields, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from ..kernels.tables import is_frame, naming
from ..kernels.views import are_views
from .base import Block, Reading, RowBlocks
from .checks import is_list_of_blocks, is_table, readable

_ITEMS = "(X, y), (X, y, sample_weight) or X alone"


class StreamRows(RowBlocks):
    """Rows of an iterable of blocks: ``(X, y)``, ``(X, y, sample_weight)``, or X alone.

    A function that returns an iterator, such as a generator function, and a list can be read
    again; an iterator cannot.
    """

    def __init__(self, source: Any, reading: Reading) -> None:
        super().__init__(reading)
        self._source = source
        self.one_shot = not callable(source) and iter(source) is source
        self._read = False

    @classmethod
    def takes(cls, X: Any) -> bool:
        if isinstance(X, list | tuple):
            return is_list_of_blocks(X)
        table = is_frame(X) or are_views(X) or isinstance(X, str | bytes)
        table = table or hasattr(X, "shape") or hasattr(X, "__array__")
        return not table and (callable(X) or hasattr(X, "__iter__") or hasattr(X, "__getitem__"))

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None:
                raise ValueError(
                    f"X yields blocks, and {name} comes with each of them: let X yield {_ITEMS}, "
                    f"and do not pass {name}."
                )
        return cls(X, reading)

    def pieces(self, first_row: int) -> Iterator[Block]:
        if self.one_shot and self._read:
            raise ValueError(
                "X is an iterator, which was read before and cannot be read again. Pass a "
                "function that makes a new one, such as a generator function, or a list of blocks."
            )
        self._read = True
        return self._pieces()

    def _pieces(self) -> Iterator[Block]:
        start = 0
        items: Iterable[Any] = self._source() if callable(self._source) else self._source
        for number, item in enumerate(items):
            with naming(f"Block {number}, which begins at row {start}"):
                X, y, weight = _parts(item)
                # Only rows of a known kind can be counted.
                X = readable(X) if isinstance(X, list) or are_views(X) else X
                block = Block(X, y, weight, start, number)
                n_rows = len(block)
            yield block
            start += n_rows


def _parts(item: Any) -> tuple[Any, Any, Any]:
    """X, y and sample weights of what an iterator yields."""
    if not isinstance(item, tuple):
        item = (item,)
    if not 1 <= len(item) <= 3 or not (isinstance(item[0], list) or is_table(item[0])):
        kinds = ", ".join(type(one).__name__ for one in item[:4])
        raise TypeError(
            f"X has to yield {_ITEMS}, where X is a table of some rows; it yields ({kinds})."
        )
    X, y, weight = (*item, None, None)[:3]
    return X, y, weight
