"""Which rows are in which training and test part: splits, made of parts whose moments add up.

Rows that are in the same training and test parts of all splits form a *part*. Moments are summed
for each of them; those of a training part are a sum of moments. The five folds of a division of
all rows have five parts, one split into training and test rows has two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._folds import stratified_folds
from .reservoir import fold_of, in_units


@dataclass(frozen=True)
class Plan:
    """Splits of rows that are known by their numbers.

    Attributes
    ----------
    training, testing : ndarray of bool, (n_splits, n_parts)
        Which parts are in the training part and in the test part of every split.
    part_of_row : ndarray of int, (n_rows,), or None
        The part of every row. Rows with larger numbers, or all if it is None, are in folds that
        are drawn at random, by their numbers.
    seed : int or None
        Of such folds; None if splits are no folds, so that there is no place for other rows.
    units : ndarray of int, (n_rows,), or None
        A number for every row, the same for rows that are in the same fold.
    """

    training: np.ndarray
    testing: np.ndarray
    part_of_row: np.ndarray | None = None
    seed: int | None = None
    units: np.ndarray | None = None

    @classmethod
    def whole(cls) -> Self:
        """All rows in one part, and no splits."""
        return cls(np.ones((0, 1), dtype=bool), np.zeros((0, 1), dtype=bool))

    @classmethod
    def folds(cls, n_folds: int, seed: int, units: np.ndarray | None = None) -> Self:
        """Folds drawn at random, whatever the number of rows."""
        own = np.eye(n_folds, dtype=bool)
        return cls(~own, own, None, seed, units)

    @classmethod
    def dealt(
        cls,
        n_folds: int,
        rows: np.ndarray,
        labels: np.ndarray,
        seed: int,
        units: np.ndarray | None = None,
    ) -> Self:
        """Folds among which the rows of every class are dealt in turn, in a random order.

        `rows` are the numbers of all rows that count. Folds drawn independently would leave small
        ones without some of the classes.
        """
        codes = np.unique(labels, return_inverse=True)[1]
        folds = stratified_folds(codes, in_units(rows, units), n_folds, seed=seed)
        # A class of a single row is in no fold: it is a training row of every split.
        part = np.full(int(rows.max()) + 1, len(folds))
        for k, fold in enumerate(folds):
            part[rows[fold]] = k
        own = np.eye(len(folds), len(folds) + 1, dtype=bool)
        return cls(~own, own, part, seed)

    @classmethod
    def given(cls, splits: Iterable[tuple[Any, Any]], n_rows: int) -> Self:
        """Training and test rows of every split, as positions or masks."""
        masks = [[_mask(rows, n_rows) for rows in split] for split in splits]
        members = np.array([mask for pair in masks for mask in pair]).T
        patterns, part = np.unique(members, axis=0, return_inverse=True)
        return cls(patterns[:, 0::2].T, patterns[:, 1::2].T, part.ravel())

    @property
    def n_parts(self) -> int:
        return self.training.shape[1]

    @property
    def n_splits(self) -> int:
        return len(self.training)

    def parts(self, rows: np.ndarray) -> np.ndarray:
        """The part of some rows, by their numbers among all rows."""
        if self.n_splits == 0:
            return np.zeros(len(rows), dtype=np.intp)
        known = 0 if self.part_of_row is None else len(self.part_of_row)
        parts = np.empty(len(rows), dtype=np.intp)
        if self.part_of_row is not None:
            parts[rows < known] = self.part_of_row[rows[rows < known]]
        if (later := rows >= known).any():
            if self.seed is None:
                raise ValueError(
                    "More rows than cv has divided: where rows are added, cv is a number of folds."
                )
            units = in_units(rows[later], self.units)
            parts[later] = fold_of(units, self.n_splits, self.seed)
        return parts

    def tested(self, rows: np.ndarray, split: int) -> np.ndarray:
        """Positions of those rows that are in the test part of a split."""
        return np.flatnonzero(self.testing[split][self.parts(rows)])

    def trained(self, rows: np.ndarray, split: int) -> np.ndarray:
        """Positions of those rows that are in the training part of a split."""
        return np.flatnonzero(self.training[split][self.parts(rows)])


def _mask(rows: Any, n_rows: int) -> np.ndarray:
    mask = np.zeros(n_rows, dtype=bool)
    mask[np.asarray(rows)] = True
    return mask
