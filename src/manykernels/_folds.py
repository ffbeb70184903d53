"""Rows that belong together, and folds that keep them together.

Rows that are equal in X are repeated measurements of one thing if there are a few of each; a model
that has learnt from one of them knows the others. Where many rows are equal, as for a column of
categories or doses, they are different samples that happen to be alike, and new samples will be
like them. :func:`groups_to_keep` makes this distinction for everything that is judged by samples
that were left out: folds, left-out predictions, importance and reports.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

#: Most equal rows that count as repeats of one sample, and the same as a part of all rows. Of a
#: column of 50 or more equally frequent values, each value is a group; of fewer, rows are units.
MOST_REPEATS, LARGEST_SHARE = 5, 1 / 50
# Parts of the largest group by which sizes of groups are compared: differences in the last digits
# of sample weights must not change folds.
_SIZE_STEPS = 2**40
# Rounding error of products of kernel rows with a vector, in units of the precision of the
# entries: equal rows of X need not give exactly equal rows of a kernel matrix.
_ROUNDING_STEPS = 1e3


def numbered(keys: Iterable[Hashable]) -> np.ndarray:
    """Numbers of the groups of rows with equal keys, in the order of their first rows, (n,)."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


def groups_to_keep(groups: np.ndarray) -> np.ndarray:
    """Groups of equal rows if all of them are small, else every row as a group of its own.

    Rows are also groups of their own if all of them are equal.
    """
    n_rows, largest = len(groups), int(np.bincount(groups).max(initial=0))
    if largest == n_rows or largest > max(MOST_REPEATS, LARGEST_SHARE * n_rows):
        return np.arange(n_rows)
    return groups


def about_repeats(groups: np.ndarray) -> str:
    """A sentence about rows that are kept together; empty if all rows are single."""
    repeats = len(groups) - len(np.unique(groups))
    if repeats == 0:
        return ""
    verb = "repeats others and was" if repeats == 1 else "repeat others and were"
    return f"{repeats} of {len(groups)} rows {verb} kept together"


def equal_kernel_rows(stack: Any) -> np.ndarray:
    """Groups of row samples that no kernel of a stack tells apart, up to rounding, (n,).

    Kernel rows are equal if their products with one random vector are.
    """
    n_rows, n_columns, _ = stack.shape
    groups = np.zeros(n_rows, dtype=np.intp)
    direction = np.random.default_rng(0).standard_normal(n_columns)
    for j in range(stack.n_kernels):
        matrix = stack.data[j]
        gaps = np.isnan(matrix)
        lacking = gaps.all(axis=1)
        if gaps.any():
            matrix = np.where(gaps, 0.0, matrix)
        products = matrix @ direction.astype(matrix.dtype)
        size = max(float(matrix.max()), -float(matrix.min())) * np.sqrt(n_columns)
        least = _ROUNDING_STEPS * np.finfo(matrix.dtype).eps * size
        order = np.lexsort((products, lacking, groups))
        differs = (np.diff(groups[order]) != 0) | (np.diff(lacking[order].astype(int)) != 0)
        differs |= np.diff(products[order]) > least
        groups[order] = np.concatenate([[0], np.cumsum(differs)])
        if groups.max(initial=0) == n_rows - 1:
            break
    return numbered(groups.tolist())


def effective_size(n_rows: int, groups: np.ndarray | None, weights: np.ndarray | None) -> float:
    """Effective number of independent samples, ``(Σw)²/Σw²`` with w the weights of groups.

    That is Kish's number, which does not change if all weights are multiplied by a number.
    """
    weights = np.ones(n_rows) if weights is None else weights / weights.max()
    if groups is not None:
        weights = np.bincount(np.unique(groups, return_inverse=True)[1], weights)
    return float(weights.sum() ** 2 / (weights**2).sum())


def standard_error(
    values: np.ndarray, weights: np.ndarray | None, groups: np.ndarray | None
) -> float:
    """Standard error of the weighted mean of values that are independent between groups."""
    weights = np.ones(len(values)) if weights is None else weights / weights.max()
    deviations = weights * (values - np.average(values, weights=weights))
    if groups is not None:
        deviations = np.bincount(np.unique(groups, return_inverse=True)[1], deviations)
    return float(np.sqrt(deviations @ deviations) / weights.sum())


def stratified_folds(
    labels: np.ndarray,
    groups: np.ndarray,
    n_folds: int,
    weights: np.ndarray | None = None,
    *,
    seed: int = 0,
) -> list[np.ndarray]:
    """Up to `n_folds` sets of rows that hold whole groups, as even as these allow.

    Groups are shuffled with a fixed seed and dealt out from the largest to the smallest, each to
    the fold with the fewest rows of its (most frequent) class, and of those to the smallest fold.
    With sample weights, the size of a group is its total weight, so that a row of weight two is
    dealt like two equal rows. A class that would be in one fold only is in none: it is needed for
    training.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Classes as 0 … c−1, divided evenly among the folds.
    groups : ndarray of shape (n,)
        Numbers of the groups.
    """
    groups = np.unique(groups, return_inverse=True)[1]
    n_groups, n_classes = int(groups.max()) + 1, int(labels.max()) + 1
    sizes = np.zeros((n_groups, n_classes))
    np.add.at(sizes, (groups, labels), 1.0 if weights is None else weights)
    sizes = np.rint(sizes * (_SIZE_STEPS / sizes.max()))
    total, main_class = sizes.sum(axis=1), sizes.argmax(axis=1)
    order = np.random.default_rng(seed).permutation(n_groups)
    order = order[np.argsort(-total[order], kind="stable")]
    fold_of_group = np.empty(n_groups, dtype=np.intp)
    loads = np.zeros((n_folds, n_classes))
    # Groups of the smallest size and a single class are dealt out at once, in the end.
    least = total.min()
    alike = (total[order] == least) & (sizes[order, main_class[order]] == least)
    n_alike = len(order) if alike.all() else int(np.argmin(alike[::-1]))
    for group in order[: n_groups - n_alike]:
        fold = np.lexsort((loads.sum(axis=1), loads[:, main_class[group]]))[0]
        fold_of_group[group] = fold
        loads[fold] += sizes[group]
    rest = order[n_groups - n_alike :]
    for label in range(n_classes):
        members = rest[main_class[rest] == label]
        folds = _filling(loads[:, label], loads.sum(axis=1), least, len(members))
        fold_of_group[members] = folds
        loads[:, label] += least * np.bincount(folds, minlength=n_folds)
    fold_of_row = fold_of_group[groups]
    for label in range(n_classes):
        members = labels == label
        if members.any() and np.ptp(fold_of_row[members]) == 0:
            fold_of_row[np.isin(groups, groups[members])] = -1
    return [fold for k in range(n_folds) if len(fold := np.flatnonzero(fold_of_row == k))]


def _filling(loads: np.ndarray, totals: np.ndarray, size: float, number: int) -> np.ndarray:
    """Folds of equal groups, each dealt to the fold with the least load, then the least total."""
    if number == 0:
        return np.empty(0, dtype=np.intp)
    # No fold takes more than its share and what others are ahead of it.
    ahead = int(np.ceil((loads.max() - loads.min()) / size))
    rounds = np.arange(min(number, number // len(loads) + 1 + ahead))
    levels = loads[:, None] + size * rounds
    folds = np.repeat(np.arange(len(loads)), len(rounds))
    return folds[np.lexsort((folds, totals[folds], levels.ravel()))][:number]
