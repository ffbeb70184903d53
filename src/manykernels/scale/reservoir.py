"""A sample of rows that depends on the seed and the numbers of the rows only.

Every row has a random key (``keys.py``), and the sample is the rows with the smallest keys. The
smallest of a union are among the smallest of its parts, so that samples of parts of the rows can
be merged, in any order: the sample is the same for every block size and every chunking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels.tables import naming
from .base import Block, RowBlocks
from .census import Census, Labels
from .keys import sample_keys
from .stacking import rows_of, stacked

# A piece with fewer of its rows in the sample than this part is copied, without the others: each
# row is then copied about once more in a whole pass.
_LEAST_USED = 0.5
# Pieces of a sample before they are copied into one: looking them through takes time.
_MOST_PIECES = 32


@dataclass(frozen=True)
class Sample:
    """Some of the rows.

    Attributes
    ----------
    rows : ndarray of int
        Their numbers among all rows, sorted.
    X : array, sparse matrix, data frame or Views
    y, weight : ndarray or None
    """

    rows: np.ndarray
    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Drawn:
    """State of a pass: rows in the sample so far, sorted by number, and the census."""

    rows: np.ndarray
    keys: np.ndarray
    #: Class of each row, as its place in ``census.classes``; zeros if there are no classes.
    codes: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray | None
    #: Tables with the numbers of their rows; they have those of the sample, and perhaps others.
    pieces: tuple[tuple[np.ndarray, Any], ...]
    census: Census

    def kept(self, kept: np.ndarray) -> Drawn:
        """Only some of the rows, by their places."""
        y, weight = (None if one is None else one[kept] for one in (self.y, self.weight))
        arrays = self.rows[kept], self.keys[kept], self.codes[kept]
        pieces = []
        for rows, table in self.pieces:
            inside = _places_inside(rows, arrays[0])
            if len(inside) >= _LEAST_USED * len(rows):
                pieces.append((rows, table))
            elif len(inside):
                pieces.append((rows[inside], rows_of(table, inside)))
        drawn = Drawn(*arrays, y, weight, tuple(pieces), self.census)
        return drawn if len(pieces) <= _MOST_PIECES else drawn.compact()

    def compact(self) -> Drawn:
        """The same with one piece, whose rows are those of the sample in order."""
        if len(self.rows) == 0:
            return self
        numbers, tables = [], []
        for rows, table in self.pieces:
            inside = _places_inside(rows, self.rows)
            numbers.append(rows[inside])
            tables.append(rows_of(table, inside))
        order = np.argsort(np.concatenate(numbers))
        return replace(self, pieces=((self.rows, rows_of(stacked(tables), order)),))


class Reservoir:
    """Draws rows at random in one pass, and counts them.

    Parameters
    ----------
    size : int
        Number of rows; all of them if there are no more. Rows of weight zero are not drawn.
    seed : int
    per_class : int, optional
        Targets are class labels: at least so many rows of every class are in the sample (all if
        there are no more), which may thus have more than `size` rows. Without it targets are
        numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale import Reservoir, row_blocks
    >>> X, y = np.arange(200.0).reshape(100, 2), np.repeat(["rare", "common"], [3, 97])
    >>> sample, census = Reservoir(10, seed=0, per_class=2).draw(row_blocks(X, y))
    >>> bool(np.sum(sample.y == "rare") >= 2), census.counts
    (True, array([97,  3]))
    """

    def __init__(self, size: int, seed: int, per_class: int | None = None) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}.")
        self.size, self.seed, self.per_class = size, seed, per_class

    def draw(self, blocks: RowBlocks) -> tuple[Sample, Census]:
        """Sample and census of all rows.

        Where rows can be taken by their numbers, only those of the sample are read.
        """
        if blocks.one_shot:
            raise ValueError(
                "Rows cannot be drawn from an iterator, which can be read only once: pass a "
                "function that makes a new one, such as a generator function."
            )
        source = blocks.bare() if blocks.random_access else blocks
        drawn = source.reduce(self.accumulate, self.merge)
        if len(drawn.rows) == 0:
            raise ValueError("sample_weight is zero for all rows, so that none of them counts.")
        sample = self.sample(drawn)
        if blocks.random_access:
            sample = replace(sample, X=blocks.take(sample.rows))
        return sample, drawn.census

    def accumulate(self, drawn: Drawn | None, block: Block) -> Drawn:
        """The state with the rows of one more block."""
        counting = np.ones(len(block), dtype=bool) if block.weight is None else block.weight > 0
        y, weight = (None if one is None else one[counting] for one in (block.y, block.weight))
        labels = None
        if self.per_class is not None and y is not None:
            with naming(f"Block {block.number}, which begins at row {block.start}"):
                labels = Labels.of(y)
        rows = block.rows[counting]
        keys = sample_keys(rows, self.seed)
        codes = np.zeros(len(rows), dtype=np.intp) if labels is None else labels.codes
        # The table has rows of weight zero too, which are not drawn.
        piece = ((block.rows, block.X),)
        new = Drawn(rows, keys, codes, y, weight, piece, Census.of(block, labels))
        return self._pruned(new) if drawn is None else self.merge(drawn, new)

    def merge(self, first: Drawn, second: Drawn) -> Drawn:
        """The state of the rows of both."""
        census = first.census.merged(second.census)
        codes = [_recoded(one, census) for one in (first, second)]
        rows = np.concatenate([first.rows, second.rows])
        keys = np.concatenate([first.keys, second.keys])
        y, weight = (
            None if a is None or b is None else np.concatenate([a, b])
            for a, b in ((first.y, second.y), (first.weight, second.weight))
        )
        pieces = (*first.pieces, *second.pieces)
        return self._pruned(Drawn(rows, keys, np.concatenate(codes), y, weight, pieces, census))

    def sample(self, drawn: Drawn) -> Sample:
        """What was drawn, its rows sorted by number."""
        drawn = drawn.compact()
        ((_, X),) = drawn.pieces
        return Sample(drawn.rows, X, drawn.y, drawn.weight)

    def drawn(self, sample: Sample, census: Census) -> Drawn:
        """The state of a pass that has given this sample and census."""
        codes = np.zeros(len(sample), dtype=np.intp)
        if census.classes is not None and sample.y is not None:
            codes = np.searchsorted(census.classes, sample.y)
        keys, piece = sample_keys(sample.rows, self.seed), ((sample.rows, sample.X),)
        return Drawn(sample.rows, keys, codes, sample.y, sample.weight, piece, census)

    def _pruned(self, drawn: Drawn) -> Drawn:
        """Only rows with the smallest keys, of all or of their class, sorted by number."""
        by_key = np.argsort(drawn.keys)
        kept = np.zeros(len(by_key), dtype=bool)
        kept[by_key[: self.size]] = True
        if self.per_class:
            grouped = by_key[np.argsort(drawn.codes[by_key], kind="stable")]
            codes = drawn.codes[grouped]
            # Place of each row within its class, by key.
            place = np.arange(len(codes)) - np.searchsorted(codes, codes)
            kept[grouped[place < self.per_class]] = True
        chosen = np.flatnonzero(kept)
        return drawn.kept(chosen[np.argsort(drawn.rows[chosen])])


def _places_inside(rows: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Places of those rows that are in the sample, which is sorted."""
    if len(sample) == 0:
        return np.arange(0)
    nearest = np.minimum(np.searchsorted(sample, rows), len(sample) - 1)
    return np.flatnonzero(sample[nearest] == rows)


def _recoded(drawn: Drawn, census: Census) -> np.ndarray:
    """Codes of the classes as places in those of `census`."""
    if drawn.census.classes is None or census.classes is None:
        return drawn.codes
    places: np.ndarray = np.searchsorted(census.classes, drawn.census.classes)
    return places[drawn.codes]
