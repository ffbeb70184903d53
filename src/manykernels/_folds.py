"""Folds that do not depend on the order of the samples."""

from __future__ import annotations

import numpy as np

from ._rounding import ACCUMULATED

# Positions that differ by less than this part of the largest are equal: a thousand times the
# rounding error that equal samples may have after a factorisation.
_SAME = 1e3 * ACCUMULATED


def folds_of_equal_classes(
    labels: np.ndarray, position: np.ndarray, n_folds: int
) -> list[np.ndarray]:
    """Up to `n_folds` sets of rows with the classes in equal parts, whatever their order.

    The samples of each class are assigned to the folds in turn, ordered by their `position`, a
    number that equal samples share. These stay together, so that a sample of weight two is judged
    like two equal ones. A class whose samples are all equal is in no fold.
    """
    fold_of = np.full(len(labels), -1)
    first = 0
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        ordered = members[np.argsort(position[members], kind="stable")]
        steps = np.diff(position[ordered]) > _SAME * np.abs(position).max()
        group = np.concatenate([[0], np.cumsum(steps)])
        if group[-1] > 0:
            fold_of[ordered] = (first + group) % n_folds
            # The next class continues where this one ended, so that folds are of equal size.
            first += group[-1] + 1
    return [fold for k in range(n_folds) if len(fold := np.flatnonzero(fold_of == k))]
