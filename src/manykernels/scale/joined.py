"""Views of which each is read in blocks: stored arrays, files or iterators, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from .._sklearn import num_samples
from ..kernels import Views
from ..kernels.tables import naming
from .base import Block, Reading, RowBlocks, rows_in
from .tables import TableRows, is_read_in_parts


class JoinedRows(RowBlocks):
    """A dict of containers whose rows are matched by position.

    Their blocks have the same rows, since all are cut to the same size.
    """

    def __init__(
        self, views: dict[str, RowBlocks], targets: TableRows | None, reading: Reading
    ) -> None:
        super().__init__(reading)
        self._views, self._targets = views, targets
        every = {**views, **({} if targets is None else {"y": targets})}
        known = {name: one.n_rows for name, one in every.items() if one.n_rows is not None}
        for name, n_rows in known.items():
            first, expected = next(iter(known.items()))
            if n_rows != expected:
                _refuse_lengths(name, n_rows, first, expected)
        self.n_rows = next(iter(known.values()), None)
        self.one_shot = any(one.one_shot for one in views.values())
        self.random_access = all(one.random_access for one in views.values())

    @classmethod
    def takes(cls, X: Any) -> bool:
        if not isinstance(X, Mapping) or not any(map(is_read_in_parts, X.values())):
            return False
        return not any(hasattr(table, "__dask_graph__") for table in X.values())

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        views = {}
        for name, table in X.items():
            with naming(f"view {name!r}"):
                views[name] = rows_in(table, None, None, replace(reading, needs_y=False))
        targets = None
        if y is not None or sample_weight is not None:
            n_rows = int(num_samples(sample_weight if y is None else y))
            targets = TableRows(np.empty((n_rows, 0)), y, sample_weight, reading)
        return cls(views, targets, reading)

    def pieces(self, first_row: int) -> Iterator[Block]:
        first = first_row // self.block_size
        every: dict[str, RowBlocks] = dict(self._views)
        if self._targets is not None:
            every["y"] = self._targets
        streams = [one.blocks(first) for one in every.values()]
        for blocks in zip_longest(*streams):
            _check_lengths(dict(zip(every, blocks, strict=True)))
            named = dict(zip(self._views, blocks, strict=False))
            # Targets come with the views, from one that yields them, or beside them.
            y = next((one.y for one in blocks if one.y is not None), None)
            weight = next((one.weight for one in blocks if one.weight is not None), None)
            tables = {name: unlabelled(block.X) for name, block in named.items()}
            yield Block(Views(tables), y, weight, blocks[0].start, blocks[0].number)

    def take(self, rows: np.ndarray) -> Views:
        return Views({name: unlabelled(one.take(rows)) for name, one in self._views.items()})

    def bare(self) -> RowBlocks:
        if self._targets is not None:
            return self._targets.bare()
        return next(iter(self._views.values())).bare()


def unlabelled(table: Any) -> Any:
    """A table whose rows are matched by position: a pandas frame without its labels."""
    return table.reset_index(drop=True) if hasattr(table, "iloc") else table


def _check_lengths(blocks: dict[str, Block | None]) -> None:
    """Refuse blocks of different lengths: the containers end at different rows."""
    lengths = {name: 0 if one is None else len(one) for name, one in blocks.items()}
    start = next(one.start for one in blocks.values() if one is not None)
    (first, expected), *others = lengths.items()
    for name, n_rows in others:
        if n_rows != expected:
            _refuse_lengths(name, start + n_rows, first, start + expected)


def _refuse_lengths(name: str, n_rows: int, first: str, expected: int) -> None:
    raise ValueError(
        f"Found input variables with inconsistent numbers of samples: {name!r} ends after "
        f"{n_rows} rows, {first!r} after {expected}. What is read in blocks is matched by "
        "position and has to be equally long."
    )
