"""Kernels evaluated into their places in a stack, tile by tile.

Kernels that are functions of the same comparison of the same rows share it: a tile of distances is
computed once, and every such kernel is evaluated from it while it is in the cache of the
processor. Of a Gram matrix only tiles on and above the diagonal are computed, and mirrored. Other
kernels are evaluated whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from ._strips import TILE_ROWS, mirror_tile
from ._threads import in_threads
from .checks import check_finite
from .comparisons import Comparison
from .tables import SharedTable, naming

# Fewer tiles than this are computed in less time than it takes to start threads.
_FEWEST_FOR_THREADS = 16


def evaluate_into(matrices: Any, kernels: Iterable[tuple[str, Any]], X: Any, Y: Any) -> None:
    """Write every kernel between the rows of `X` and `Y` (None: `X` again) into its matrix."""
    X, Y = SharedTable.of(X), None if Y is None else SharedTable.of(Y)
    together: dict[int, list[_Place]] = {}
    for matrix, (name, kernel) in zip(matrices, kernels, strict=True):
        with naming(f"kernel {name!r}"):
            compared = kernel._compared(X, Y)
            if compared is None:
                with np.errstate(over="ignore"):
                    matrix[...] = kernel(X, Y)
                if matrix.dtype != np.float64:
                    check_finite(matrix, kernel._title)  # numbers that are too large for it
            else:
                place = _Place(matrix, name, *compared)
                together.setdefault(id(place.comparison), []).append(place)
    for places in together.values():
        comparison = places[0].comparison
        fill([place.matrix for place in places], [place.kernel for place in places], comparison)
        for place in places:
            with naming(f"kernel {place.name!r}"):
                check_filled(place.matrix, place.kernel, comparison)


@dataclass(frozen=True)
class _Place:
    """Where a kernel that is a function of a comparison is written."""

    matrix: np.ndarray
    name: str
    comparison: Comparison
    kernel: Any


def evaluated(comparison: Comparison, kernel: Any) -> np.ndarray:
    """The matrix of one kernel that is a function of a comparison."""
    K = np.empty(comparison.shape)
    fill([K], [kernel], comparison)
    check_filled(K, kernel, comparison)
    return K


def fill(matrices: Sequence[np.ndarray], kernels: Sequence[Any], comparison: Comparison) -> None:
    """Write functions of one comparison into their matrices; Gram matrices exactly symmetric."""

    def fill_tile(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        # Inside, since threads do not inherit it. What is not finite is refused later.
        with np.errstate(over="ignore", invalid="ignore"):
            values = comparison.tile(rows, columns)
            for matrix, kernel in zip(matrices, kernels, strict=True):
                place = matrix[rows, columns]
                # In single precision the result is rounded, not the steps to it.
                result = place if place.dtype == values.dtype else np.empty(values.shape)
                kernel._from_compared(values, result)
                if result is not place:
                    place[...] = result
                if comparison.gram:
                    mirror_tile(matrix, rows, columns)

    in_threads(fill_tile, list(_tiles(comparison)), _FEWEST_FOR_THREADS)


def check_filled(matrix: np.ndarray, kernel: Any, comparison: Comparison) -> None:
    """Refuse values that are not finite, without looking for them where there can be none.

    The formula of a kernel is largest at one of the bounds of what is compared.
    """
    extremes = np.array([*comparison.bounds, 0.0])
    if np.isfinite(extremes).all():
        with np.errstate(over="ignore", invalid="ignore"):
            kernel._from_compared(extremes, extremes)
            extremes = extremes.astype(matrix.dtype)
    if not np.isfinite(extremes).all():
        check_finite(matrix, kernel._title)


def _tiles(comparison: Comparison) -> Iterable[tuple[slice, slice]]:
    # Not by gen_batches, whose checks of its arguments take longer than a small tile.
    rows, columns = (
        [slice(start, min(start + TILE_ROWS, size)) for start in range(0, size, TILE_ROWS)]
        for size in comparison.shape
    )
    return combinations_with_replacement(rows, 2) if comparison.gram else product(rows, columns)


class SharedComparisons:
    """Evaluates kernels on two small tables; those of one comparison in a row share its values."""

    def __init__(self, X: Any, Y: Any) -> None:
        self._X, self._Y = SharedTable.of(X), SharedTable.of(Y)
        self._comparison: Comparison | None = None
        self._values = np.empty((0, 0))

    def __call__(self, kernel: Any) -> np.ndarray:
        compared = kernel._compared(self._X, self._Y)
        if compared is None:
            return kernel(self._X, self._Y)
        comparison, formula = compared
        with np.errstate(over="ignore", invalid="ignore"):
            if comparison is not self._comparison:
                self._comparison, self._values = comparison, comparison.whole()
            K = np.empty(comparison.shape)
            formula._from_compared(self._values, K)
        check_finite(K, formula._title)
        return K
