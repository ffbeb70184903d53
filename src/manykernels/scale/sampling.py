"""The first pass: a random sample of rows that depends only on the seed, and a census.

Every row has a random key, a function of the seed and the number of the row only. The key
of row r is number r of the sequence of SplitMix64 (Steele, Lea & Flood 2014) that begins at a
state drawn from the seed: ``mix(state + (r + 1) γ)`` modulo 2⁶⁴. Adding an odd multiple of r and
mixing are both one-to-one, so that no two rows have the same key.

The sample is the rows with the smallest keys. The smallest of a union are among the smallest of
its parts, so that samples of parts of the rows can be merged in any order: the sample is the same
for every block size and every chunking. Folds, drawn by other keys, have the same property.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.tables import Table, naming
from ..kernels.views import row_keys
from ..utils.folds import groups_to_keep, stratified_folds
from .rows import Block, RowBlocks, rows_of, stacked

# A piece of which less than this fraction of the rows is in the sample is copied without the
# others: each row is then copied about once more in a whole pass.
_LEAST_USED = 0.5
# Maximum number of pieces of a sample before they are copied into one, which bounds search time.
_MOST_PIECES = 32
# Constants of SplitMix64: γ is 2⁶⁴ over the golden ratio, made odd; the factors of its mixing.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# Bits by which numbers are shifted before each factor, and after the last.
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
# Purposes of keys: keys of different purposes are independent.
_SAMPLE, _FOLD = 0, 1
# Names of the kinds of labels in error messages.
_KINDS = {"b": "number", "i": "number", "u": "number", "f": "number", "U": "string", "S": "string"}


# -- keys -------------------------------------------------------------------------------------


def sample_keys(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return a distinct 64-bit key for every row; the sample has the rows of smallest keys."""
    return _keys(rows, seed, _SAMPLE)


def fold_of(rows: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Return the fold of every row, 0 to ``n_folds − 1``, from its row number.

    Folds are of the same size on average. They are independent of samples with the same seed.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale.sampling import fold_of
    >>> fold_of(np.arange(8), n_folds=3, seed=0)
    array([...])
    >>> fold_of(np.array([5]), 3, 0) == fold_of(np.arange(8), 3, 0)[5]
    array([ True])
    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}.")
    return (_keys(rows, seed, _FOLD) % np.uint64(n_folds)).astype(np.intp)


def _keys(rows: np.ndarray, seed: int, purpose: int) -> np.ndarray:
    # Unsigned integers wrap around modulo 2⁶⁴, as intended.
    keys = (np.asarray(rows).astype(np.uint64) + np.uint64(1)) * _GAMMA + _state(seed, purpose)
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        keys = (keys ^ (keys >> shift)) * factor
    mixed: np.ndarray = keys ^ (keys >> _SHIFTS[2])
    return mixed


def _state(seed: int, purpose: int) -> np.uint64:
    (state,) = np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)
    return np.uint64(state)


# -- rows that belong together ------------------------------------------------------------------


def first_rows(groups: np.ndarray) -> np.ndarray:
    """Return the number of the first row of each row's group, (n_rows,)."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    return first[group]


def units_of(blocks: RowBlocks) -> np.ndarray:
    """Return the number of the first row of each row's group of equal rows, (n_rows,).

    Takes one pass. Equal rows form a group if there are few of each, see
    :func:`manykernels.utils.folds.groups_to_keep`.
    """
    parts: list[tuple[int, np.ndarray]] = blocks.reduce(_with_hashes, add)
    hashes = np.concatenate([part for _, part in sorted(parts, key=lambda part: part[0])])
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    kept = groups_to_keep(group)
    return first[group] if kept is group else np.arange(len(group))


def _with_hashes(
    parts: list[tuple[int, np.ndarray]] | None, block: Block
) -> list[tuple[int, np.ndarray]]:
    """Append the hashes of one block, and the number of its first row, to the state."""
    # Half of a key: among ten million rows, the probability of a collision is 3e-6.
    keys = row_keys(block.X)
    if isinstance(keys[0], tuple):  # several views
        keys = [blake2b(repr(key).encode(), digest_size=16).digest() for key in keys]
    hashes = np.frombuffer(b"".join(key[:8] for key in keys), dtype=np.uint64)
    return [*(parts or []), (block.start, hashes)]


def in_units(rows: np.ndarray, units: np.ndarray | None) -> np.ndarray:
    """Return the group of each row; rows added later are groups of their own."""
    if units is None:
        return rows
    known = rows < len(units)
    numbers = np.array(rows)
    numbers[known] = units[rows[known]]
    return numbers


# -- the census --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Census:
    """Counts of rows and classes from one pass.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    n_counting : int
        Number of rows with a weight above zero.
    total_weight : float
        Sum of sample weights; the number of rows if there are none.
    classes : ndarray or None
        Sorted class labels of the rows of positive weight; None if targets are not classes.
    counts, weights : ndarray or None
        Number of rows, and sum of the sample weights, of every class.
    """

    n_rows: int
    n_counting: int
    total_weight: float
    classes: np.ndarray | None = None
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def of(cls, block: Block, labels: Labels | None) -> Census:
        """Return the census of one block; `labels` are those of its rows of positive weight."""
        n_rows = len(block)
        weight = np.ones(n_rows) if block.weight is None else block.weight
        counting = weight > 0
        sums = n_rows, int(np.count_nonzero(counting)), float(weight.sum())
        if labels is None:
            return cls(*sums)
        size = len(labels.classes)
        counts = np.bincount(labels.codes, minlength=size)
        weights = np.bincount(labels.codes, weight[counting], minlength=size)
        return cls(*sums, labels.classes, counts, weights)

    @property
    def _by_class(self) -> tuple[Any, Any, Any]:
        return self.classes, self.counts, self.weights

    def merged(self, other: Census) -> Census:
        """Return the census of the rows of both."""
        sums = (
            self.n_rows + other.n_rows,
            self.n_counting + other.n_counting,
            self.total_weight + other.total_weight,
        )
        if self.classes is None or other.classes is None:
            return Census(*sums)
        classes = merged_classes(self.classes, other.classes)
        counts = np.zeros(len(classes), dtype=np.intp)
        weights = np.zeros(len(classes))
        for labels, number, weight in (self._by_class, other._by_class):
            places = np.searchsorted(classes, labels)
            counts[places] += number
            weights[places] += weight
        return Census(*sums, classes, counts, weights)


@dataclass(frozen=True)
class Labels:
    """Class labels ``classes[codes]``, the classes sorted."""

    classes: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray) -> Labels:
        """Encode targets as labels; fractions and labels of several kinds are refused."""
        if y.ndim != 1:
            raise ValueError(
                f"y should be a 1d array of class labels, got an array of shape {y.shape} instead."
            )
        if y.dtype == object:
            _refuse_mixed({_kind_of(kind) for kind in set(map(type, y))})
        if y.dtype.kind == "f" and (fractions := y[y != np.floor(y)]).size:
            raise ValueError(
                f"Unknown label type: continuous. y has the value {fractions[0]}; class labels "
                "must be integers, strings or booleans."
            )
        classes, codes = np.unique(y, return_inverse=True)
        return cls(classes, codes)


def merged_classes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the sorted union of the classes."""
    if np.array_equal(first, second):
        return first
    kinds = {_array_kind(classes) for classes in (first, second) if len(classes)}
    _refuse_mixed(kinds)
    return np.unique(np.concatenate([first, second]))


def _array_kind(classes: np.ndarray) -> str:
    return (
        _kind_of(type(classes[0]))
        if classes.dtype == object
        else _KINDS.get(classes.dtype.kind, classes.dtype.name)
    )


def _kind_of(kind: type[Any]) -> str:
    if issubclass(kind, str | bytes):
        return "string"
    is_number = issubclass(kind, bool | int | float | np.number | np.bool_)
    return "number" if is_number else kind.__name__


def _refuse_mixed(kinds: set[str]) -> None:
    if len(kinds) > 1:
        raise ValueError(
            f"Mix of label input types ({' and '.join(sorted(kinds))}): all labels of y must be "
            "of one kind; convert them, as in y.astype(str)."
        )


# -- the sample --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Sample of the rows.

    Attributes
    ----------
    rows : ndarray of int
        Row numbers, sorted.
    X : array, sparse matrix, data frame or Views
    y, weight : ndarray or None
    """

    rows: np.ndarray
    X: Table
    y: np.ndarray | None
    weight: np.ndarray | None

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Drawn:
    """State of a pass: rows sampled so far, sorted by number, and the census."""

    rows: np.ndarray
    keys: np.ndarray
    #: Class of each row, as its index in ``census.classes``; zeros if there are no classes.
    codes: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray | None
    #: Tables with their row numbers; they contain the sample, and possibly other rows.
    pieces: tuple[tuple[np.ndarray, Any], ...]
    census: Census

    def kept(self, kept: np.ndarray) -> Drawn:
        """Keep only the rows at some positions."""
        y, weight = (None if values is None else values[kept] for values in (self.y, self.weight))
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
        """Return the state with one piece, whose rows are the sample in order."""
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
    """Draw a random sample of rows in one pass, and count all rows.

    Parameters
    ----------
    size : int
        Number of rows to draw; all if there are fewer. Rows of weight zero are not drawn.
    seed : int
    per_class : int, optional
        Minimum number of rows of every class (all if there are fewer), so that the sample may
        have more than `size` rows; targets are class labels. If None, targets are numbers.
    units : ndarray of int, optional
        Group of every row; rows of one group are drawn together, see :func:`units_of`.
    whole : bool, default=False
        Whether groups are drawn whole, so that the sample may have more than `size` rows.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale.sampling import Reservoir
    >>> from manykernels.scale.blocks import row_blocks
    >>> X, y = np.arange(200.0).reshape(100, 2), np.repeat(["rare", "common"], [3, 97])
    >>> sample, census = Reservoir(10, seed=0, per_class=2).draw(row_blocks(X, y))
    >>> bool(np.sum(sample.y == "rare") >= 2), census.counts
    (True, array([97,  3]))
    """

    def __init__(
        self,
        size: int,
        seed: int,
        per_class: int | None = None,
        units: np.ndarray | None = None,
        *,
        whole: bool = False,
    ) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}.")
        self.size, self.seed, self.per_class, self.units = size, seed, per_class, units
        self.whole = whole
        # Rows that are drawn whatever their keys are; None if keys decide.
        self._chosen: np.ndarray | None = None

    def draw(self, blocks: RowBlocks) -> tuple[Sample, Census]:
        """Return the sample and the census of all rows.

        With random access, only the rows of the sample are read.
        """
        source = blocks.bare() if blocks.random_access else blocks
        drawn = source.reduce(self.accumulate, self.merge)
        if self.whole and self.units is not None:
            rows = np.flatnonzero(np.isin(self.units, self.units[drawn.rows]))
            if len(rows) > len(drawn.rows):
                again = copy(self)
                again._chosen = rows
                drawn = source.reduce(again.accumulate, again.merge)
        if len(drawn.rows) == 0:
            raise ValueError("sample_weight is zero for all rows: give some row a weight above 0.")
        sample = self.sample(drawn)
        if blocks.random_access:
            sample = replace(sample, X=blocks.take(sample.rows))
        return sample, drawn.census

    def accumulate(self, drawn: Drawn | None, block: Block) -> Drawn:
        """Add one block to the state."""
        counting = np.ones(len(block), dtype=bool) if block.weight is None else block.weight > 0
        y, weight = (
            None if values is None else values[counting] for values in (block.y, block.weight)
        )
        labels = None
        if self.per_class is not None and y is not None:
            with naming(f"Block {block.number}, which begins at row {block.start}"):
                labels = Labels.of(y)
        rows = block.rows[counting]
        keys = sample_keys(in_units(rows, self.units), self.seed)
        codes = np.zeros(len(rows), dtype=np.intp) if labels is None else labels.codes
        # The table also has rows of weight zero, which are not drawn.
        piece = ((block.rows, block.X),)
        new = Drawn(rows, keys, codes, y, weight, piece, Census.of(block, labels))
        return self._pruned(new) if drawn is None else self.merge(drawn, new)

    def merge(self, first: Drawn, second: Drawn) -> Drawn:
        """Return the state of the rows of both."""
        census = first.census.merged(second.census)
        codes = [_recoded(drawn, census) for drawn in (first, second)]
        rows = np.concatenate([first.rows, second.rows])
        keys = np.concatenate([first.keys, second.keys])
        y = None if first.y is None or second.y is None else np.concatenate([first.y, second.y])
        weight = None
        if first.weight is not None or second.weight is not None:
            # Rows that were added without weights have weight one.
            weight = np.concatenate([_weights(first), _weights(second)])
        pieces = (*first.pieces, *second.pieces)
        return self._pruned(Drawn(rows, keys, np.concatenate(codes), y, weight, pieces, census))

    def sample(self, drawn: Drawn) -> Sample:
        """Return the sample of a state, its rows sorted by number."""
        drawn = drawn.compact()
        ((_, X),) = drawn.pieces
        return Sample(drawn.rows, X, drawn.y, drawn.weight)

    def drawn(self, sample: Sample, census: Census) -> Drawn:
        """Return the state of a pass from its sample and census."""
        codes = np.zeros(len(sample), dtype=np.intp)
        if census.classes is not None and sample.y is not None:
            codes = np.searchsorted(census.classes, sample.y)
        keys = sample_keys(in_units(sample.rows, self.units), self.seed)
        piece = ((sample.rows, sample.X),)
        return Drawn(sample.rows, keys, codes, sample.y, sample.weight, piece, census)

    def _pruned(self, drawn: Drawn) -> Drawn:
        """Keep the rows with the smallest keys, overall or within their class, in order."""
        if self._chosen is not None:
            chosen = np.flatnonzero(np.isin(drawn.rows, self._chosen))
            return drawn.kept(chosen[np.argsort(drawn.rows[chosen])])
        # Rows of one group have the same key and are taken in order.
        by_key = np.lexsort((drawn.rows, drawn.keys))
        kept = np.zeros(len(by_key), dtype=bool)
        kept[by_key[: self.size]] = True
        if self.per_class:
            grouped = by_key[np.argsort(drawn.codes[by_key], kind="stable")]
            codes = drawn.codes[grouped]
            # Rank of each row within its class, by key.
            place = np.arange(len(codes)) - np.searchsorted(codes, codes)
            kept[grouped[place < self.per_class]] = True
        chosen = np.flatnonzero(kept)
        return drawn.kept(chosen[np.argsort(drawn.rows[chosen])])


def _weights(drawn: Drawn) -> np.ndarray:
    return np.ones(len(drawn.rows)) if drawn.weight is None else drawn.weight


def _places_inside(rows: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Return the positions of the rows that are in the sorted sample."""
    if len(sample) == 0:
        return np.arange(0)
    nearest = np.minimum(np.searchsorted(sample, rows), len(sample) - 1)
    return np.flatnonzero(sample[nearest] == rows)


def _recoded(drawn: Drawn, census: Census) -> np.ndarray:
    """Return the class codes as indices into the classes of `census`."""
    if drawn.census.classes is None or census.classes is None:
        return drawn.codes
    places: np.ndarray = np.searchsorted(census.classes, drawn.census.classes)
    return places[drawn.codes]


# -- Splits into training and test rows, as unions of parts whose moments add up ------------------
#
# Rows that are in the same training and test sets of all splits form a *part*. Moments are summed
# for each part; the moments of a training set are the sum over its parts. Five-fold
# cross-validation has five parts, one split into training and test rows has two.


@dataclass(frozen=True)
class Plan:
    """Splits of rows by their row numbers.

    Attributes
    ----------
    training, testing : ndarray of bool, (n_splits, n_parts)
        Parts in the training set and in the test set of every split.
    part_of_row : ndarray of int, (n_rows,), or None
        Part of every row. Rows with larger numbers, or all rows if None, are assigned to random
        folds by their numbers.
    seed : int or None
        Seed of these folds; None if the splits are not folds, so that no rows can be added.
    units : ndarray of int, (n_rows,), or None
        Group of every row; rows of one group are in the same fold.
    """

    training: np.ndarray
    testing: np.ndarray
    part_of_row: np.ndarray | None = None
    seed: int | None = None
    units: np.ndarray | None = None

    @classmethod
    def whole(cls) -> Self:
        """Return the plan of all rows in one part, without splits."""
        return cls(np.ones((0, 1), dtype=bool), np.zeros((0, 1), dtype=bool))

    @classmethod
    def folds(cls, n_folds: int, seed: int, units: np.ndarray | None = None) -> Self:
        """Return random folds for any number of rows."""
        diagonal = np.eye(n_folds, dtype=bool)
        return cls(~diagonal, diagonal, None, seed, units)

    @classmethod
    def dealt(
        cls,
        n_folds: int,
        rows: np.ndarray,
        labels: np.ndarray,
        seed: int,
        units: np.ndarray | None = None,
    ) -> Self:
        """Return random folds that are stratified by class.

        `rows` are the numbers of all rows of positive weight. Without stratification, small folds
        would lack some classes.
        """
        codes = np.unique(labels, return_inverse=True)[1]
        folds = stratified_folds(codes, in_units(rows, units), n_folds, seed=seed)
        # A class with a single row is in no test set: the row is in every training set.
        part_of_row = np.full(int(rows.max()) + 1, len(folds))
        for k, fold in enumerate(folds):
            part_of_row[rows[fold]] = k
        tested = np.eye(len(folds), len(folds) + 1, dtype=bool)
        return cls(~tested, tested, part_of_row, seed)

    @classmethod
    def given(cls, splits: Iterable[tuple[ArrayLike, ArrayLike]], n_rows: int) -> Self:
        """Return the plan of given training and test rows, as positions or masks."""
        masks = [[_mask(rows, n_rows) for rows in split] for split in splits]
        members = np.array([mask for pair in masks for mask in pair]).T
        patterns, part_of_row = np.unique(members, axis=0, return_inverse=True)
        return cls(patterns[:, 0::2].T, patterns[:, 1::2].T, part_of_row.ravel())

    @property
    def n_parts(self) -> int:
        return self.training.shape[1]

    @property
    def n_splits(self) -> int:
        return len(self.training)

    def parts(self, rows: np.ndarray) -> np.ndarray:
        """Return the part of some rows, by their row numbers."""
        if self.n_splits == 0:
            return np.zeros(len(rows), dtype=np.intp)
        known = 0 if self.part_of_row is None else len(self.part_of_row)
        parts = np.empty(len(rows), dtype=np.intp)
        if self.part_of_row is not None:
            parts[rows < known] = self.part_of_row[rows[rows < known]]
        if (later := rows >= known).any():
            if self.seed is None:
                raise ValueError(
                    "There are more rows than cv has divided: to add rows, pass a number of folds "
                    "as cv."
                )
            units = in_units(rows[later], self.units)
            parts[later] = fold_of(units, self.n_splits, self.seed)
        return parts

    def tested(self, rows: np.ndarray, split: int) -> np.ndarray:
        """Return the positions of the rows in the test set of a split."""
        return np.flatnonzero(self.testing[split][self.parts(rows)])

    def trained(self, rows: np.ndarray, split: int) -> np.ndarray:
        """Return the positions of the rows in the training set of a split."""
        return np.flatnonzero(self.training[split][self.parts(rows)])


def _mask(rows: ArrayLike, n_rows: int) -> np.ndarray:
    mask = np.zeros(n_rows, dtype=bool)
    mask[np.asarray(rows)] = True
    return mask
