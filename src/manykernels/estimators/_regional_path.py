"""Kernels of regions at every point of a grid: numbers of regions, and how sharp they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..gating.regions import KernelRegions
from ..kernels.regional import RegionalKernels
from ..kernels.transforms import Chain
from ._base import estimator
from ._grid import Grid, checked_region_numbers, checked_sharpnesses
from ._machine_path import PreparedKernels
from ._regional import Regions

# By default plain multiple kernel learning, and regions that are clear. Measured on six data sets
# and GAUSS4 (of the localized benchmarks): three regions, or a sharpness of 0.5, were no better
# where kernels are rich, and worse with the simple kernels of GAUSS4.
DEFAULT_REGIONS = (1, 4)
DEFAULT_SHARPNESSES = (2.0, 8.0)


@estimator
class RegionGridParameters:
    """Parameters of estimators that choose their regions.

    Parameters
    ----------
    regions : array-like of int, optional
        Numbers of regions to try; by default 1, which is plain multiple kernel learning, and 4.
        They are found by k-means on the mean of the normalised kernels, in every fold from its
        training part; see :class:`~manykernels.gating.KernelRegions`.
    sharpnesses : array-like of float in [0, inf], optional
        How sharp their boundaries may be; by default 2 and 8. See
        :class:`ConvexLocalizedSVC`. With one region it plays no part: points that differ in
        nothing else are solved once, and have the same entries in `cv_results_`.

    Attributes
    ----------
    n_regions_ : int
        The number of regions that was chosen.
    sharpness_ : float
        How sharp they are; of one region, the smallest of `sharpnesses`.
    """

    regions: Any = None
    sharpnesses: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {"sharpnesses": ["array-like", None]}


def region_values(estimator: Any) -> dict[str, np.ndarray]:
    """The first axes of the grid, from the parameters regions and sharpnesses."""
    return {
        "n_regions": checked_region_numbers(estimator.regions, DEFAULT_REGIONS),
        "sharpness": checked_sharpnesses(estimator.sharpnesses, DEFAULT_SHARPNESSES),
    }


def chosen_regions(estimator: Any, params: dict[str, Any]) -> Regions:
    """Regions at one point of the grid, to be found from the kernels of all samples."""
    return Regions.found(params["n_regions"], params["sharpness"], estimator.random_state)


@dataclass(frozen=True)
class KernelsByRegion:
    """Kernels of one training part for all numbers of regions and sharpnesses of a grid.

    Regions are found once for each number; the sharpness changes only the shares of samples.
    """

    grid: Grid
    random_state: Any

    def __call__(self, train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]:
        stack = transform.fit_transform(train.stack, sample_weight=train.counts)
        block = transform.transform(test.stack)
        numbers, sharpnesses = self.grid.values["n_regions"], self.grid.values["sharpness"]
        for i in np.argsort(numbers).tolist():
            if numbers[i] == 1:
                everywhere = tuple((i, k) for k in range(len(sharpnesses)))
                yield PreparedKernels.centred(stack, block, places=everywhere)
                continue
            regions = KernelRegions(int(numbers[i]), random_state=self.random_state)
            regions.fit_part(stack, train.counts)
            order = np.argsort(sharpnesses)
            found = by_sharpness(regions, sharpnesses[order].tolist(), stack, block)
            for k, prepared in zip(order.tolist(), found, strict=True):
                yield replace(prepared, places=((i, k),))


def by_sharpness(
    regions: KernelRegions,
    sharpnesses: Iterable[float],
    stack: Any,
    block: Any,
    sample_weight: np.ndarray | None = None,
) -> Iterator[PreparedKernels]:
    """Kernels of fitted regions, centred by means with these weights, for each sharpness."""
    for sharpness in sharpnesses:
        if sharpness == 0.0:
            # All shares are equal: kernels and weights are those without regions.
            yield PreparedKernels.centred(stack, block, sample_weight)
            continue
        own = regions.with_sharpness(float(sharpness))
        rows, columns = (np.sqrt(own.shares(part)).T for part in (block, stack))
        yield PreparedKernels.centred(
            RegionalKernels(stack, columns, columns),
            RegionalKernels(block, rows, columns),
            sample_weight,
            n_regions=regions.n_regions_,
        )
