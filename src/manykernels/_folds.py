"""Folds that do not depend on the order of the samples."""

from __future__ import annotations

import numpy as np

# Samples whose positions agree to this part count as equal.
_SAME = 1e-9


def folds_of_equal_classes(
    labels: np.ndarray, position: np.ndarray, n_folds: int
) -> list[np.ndarray]:
    """Up to `n_folds` sets of rows with the classes in equal parts, whatever their order.

    Within each class samples are dealt out by their `position`, a number that equal samples
    share: these stay together, so that a sample of weight two is judged like two equal ones. A
    class whose samples are all equal has no part in any fold.
    """
    dealt = np.full(len(labels), -1)
    first = 0
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        ordered = members[np.argsort(position[members], kind="stable")]
        steps = np.diff(position[ordered]) > _SAME * np.abs(position).max()
        group = np.concatenate([[0], np.cumsum(steps)])
        if group[-1] > 0:
            dealt[ordered] = (first + group) % n_folds
            # The next class goes on where this one ended: small classes are spread over all.
            first += group[-1] + 1
    return [fold for k in range(n_folds) if len(fold := np.flatnonzero(dealt == k))]
