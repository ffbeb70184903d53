"""Views of which each is read in blocks: stored arrays, files or iterators, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from .._sklearn import num_samples
from ..kernels import Views
from ..kernels.tables import naming
from .base import Block, Reading, RowBlocks, rows_in
from .tables import TableRows, is_dask, is_read_in_parts


class JoinedRows(RowBlocks):
    """A dict of containers whose rows are matched by position.

    Their blocks have the same rows, since all are cut to the same size.
    """

    def __init__(
        self, views: dict[str, RowBlocks], targets: TableRows | None, reading: Reading
    ) -> None:
        super().__init__(reading)
        self._views, self._targets = views, targets
        lengths = {label: one.n_rows for label, one in self._labelled.items()}
        known = {label: n_rows for label, n_rows in lengths.items() if n_rows is not None}
        _refuse_unequal(known)
        self.n_rows = next(iter(known.values()), None)
        self.one_shot = any(one.one_shot for one in views.values())
        self.random_access = all(one.random_access for one in views.values())

    @classmethod
    def takes(cls, X: Any) -> bool:
        if not isinstance(X, Mapping) or not any(map(is_read_in_parts, X.values())):
            return False
        return not any(map(is_dask, X.values()))

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        # Whether there are targets is seen where the views are side by side.
        each = replace(reading, needs_y=False)
        views, targets = {}, None
        for name, table in X.items():
            with naming(f"view {name!r}"):
                views[name] = rows_in(table, None, None, each)
        if y is not None or sample_weight is not None:
            n_rows = int(num_samples(sample_weight if y is None else y))
            targets = TableRows(np.empty((n_rows, 0)), y, sample_weight, each)
        return cls(views, targets, reading)

    def pieces(self, first_row: int) -> Iterator[Block]:
        first = first_row // self.block_size
        streams = {label: one.blocks(first) for label, one in self._labelled.items()}
        while True:
            blocks: dict[str, Block | None] = {}
            for label, stream in streams.items():
                with naming(label):
                    blocks[label] = next(stream, None)
            found = [one for one in blocks.values() if one is not None]
            if not found:
                return
            _check_lengths(blocks, found[0].start)
            # Targets are beside the views, or come with one that yields them.
            y = next((one.y for one in found if one.y is not None), None)
            weight = next((one.weight for one in found if one.weight is not None), None)
            named = zip(self._views, found, strict=False)
            tables = {name: unlabelled(block.X) for name, block in named}
            yield Block(Views(tables), y, weight, found[0].start, found[0].number)

    @property
    def _labelled(self) -> dict[str, RowBlocks]:
        """Views, and targets after them, by what error messages call them."""
        views = {f"view {name!r}": one for name, one in self._views.items()}
        return views if self._targets is None else {**views, "y": self._targets}

    def take(self, rows: np.ndarray) -> Views:
        return Views({name: unlabelled(one.take(rows)) for name, one in self._views.items()})

    def bare(self) -> RowBlocks:
        if self._targets is not None:
            return self._targets.bare()
        return next(iter(self._views.values())).bare()


def unlabelled(table: Any) -> Any:
    """A table whose rows are matched by position: a pandas frame without its labels."""
    return table.reset_index(drop=True) if hasattr(table, "iloc") else table


def _check_lengths(blocks: Mapping[str, Block | None], start: int) -> None:
    """Refuse blocks of different lengths: the containers end at different rows."""
    _refuse_unequal(
        {label: start + (0 if one is None else len(one)) for label, one in blocks.items()}
    )


def _refuse_unequal(lengths: Mapping[str, int]) -> None:
    for label, n_rows in lengths.items():
        first, expected = next(iter(lengths.items()))
        if n_rows != expected:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {label} ends after "
                f"{n_rows} rows, {first} after {expected}. What is read in blocks is matched by "
                "position and has to be equally long."
            )
