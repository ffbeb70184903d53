"""Stratified folds that do not depend on the order of the samples."""

from __future__ import annotations

import numpy as np

from ._rounding import ACCUMULATED

# Positions that differ by no more than this part of the largest count as equal: a thousand times
# the rounding error of a factorisation, since equal samples must never be separated.
_SAME = 1e3 * ACCUMULATED


def stratified_folds(labels: np.ndarray, position: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Up to `n_folds` sets of rows, among which the samples of each class are divided evenly.

    `position` is a number per sample, the same for equal samples. The samples of a class are
    sorted by it and dealt to the folds in turn, equal ones to the same fold, so that a sample of
    weight two is treated like two equal ones. A class whose samples are all equal is in no fold.
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
            # The next class begins with the next fold, so that folds are about equally large.
            first += group[-1] + 1
    return [fold for k in range(n_folds) if len(fold := np.flatnonzero(fold_of == k))]
