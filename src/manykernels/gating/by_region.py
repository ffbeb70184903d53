"""From kernels to kernels of regions, as a step of the preparation of kernels."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ..kernels.regional import RegionalKernels
from ..kernels.transforms import StackTransform
from .gates import Array
from .regions import KernelRegions


class ByRegion(StackTransform):
    """Every kernel once for each region; see :mod:`manykernels.gating.regions`.

    Parameters
    ----------
    regions : KernelRegions or None
        Learnt from the kernels themselves; new samples are compared with all training samples.
        With None, shares are given: those of `training` samples, and those of new ones as the
        features of the rows of a block.
    training : ndarray of shape (n_samples, n_regions), optional

    Attributes
    ----------
    regions_ : KernelRegions or None
        Fitted.
    sizes_ : ndarray of shape (n_regions,)
        Mean share of training samples in each region.
    """

    def __init__(self, regions: KernelRegions | None, training: Array | None = None) -> None:
        self.regions = regions
        self.training = training

    def fit_transform(
        self, stack: Any, y: Any = None, sample_weight: np.ndarray | None = None
    ) -> Any:
        self.fit(stack, y, sample_weight)
        regional = self._regional(stack, self._col_factors)
        if self.regions_ is None:
            return regional
        # An error of a share is half as large, relatively, in its root.
        return regional.with_factor_errors(0.5 * self.regions_.share_errors(stack).T)

    def _learn(self, stack: Any, weights: np.ndarray, y: Any) -> None:
        shares = self.training
        self.regions_ = None
        if self.regions is not None:
            self.regions_ = clone(self.regions).fit(stack, weights)
            shares = self.regions_.shares(stack)
        assert shares is not None
        self.sizes_ = np.average(shares, axis=0, weights=weights)
        self._col_factors = np.sqrt(shares).T
        self._columns: np.ndarray | None = None
        # Of every kernel that is returned: its region, and the kernel that it is made of.
        self._n_inputs = stack.n_kernels
        self._region_of = np.repeat(np.arange(shares.shape[1]), stack.n_kernels)
        self._source_of = np.tile(np.arange(stack.n_kernels), shares.shape[1])

    def _transform(self, stack: Any) -> Any:
        shares = stack.features if self.regions_ is None else self.regions_.shares(stack)
        return self._regional(stack, np.sqrt(shares).T)

    def _regional(self, stack: Any, row_factors: Array) -> RegionalKernels:
        base = stack if self._columns is None else stack[:, self._columns]
        regional = RegionalKernels(base, row_factors, self._col_factors)
        return regional.select(self._region_of * stack.n_kernels + self._source_of)

    # -- parts -----------------------------------------------------------------------------

    @property
    def needs_all_columns(self) -> bool:
        return self.regions_ is not None

    def sources(self, kernels: np.ndarray) -> np.ndarray:
        # Distances from regions are those of the mean of all kernels.
        if self.needs_all_columns:
            return np.arange(self._n_inputs)
        return np.unique(self.origins(kernels))

    def origins(self, kernels: np.ndarray) -> np.ndarray:
        return self._source_of[super().sources(kernels)]

    def select(self, kernels: np.ndarray) -> Self:
        new = copy(self)
        inputs = self.sources(kernels)
        new._n_inputs = len(inputs)
        new._region_of = self._region_of[kernels]
        new._source_of = np.searchsorted(inputs, self._source_of[kernels])
        return new

    def for_columns(self, columns: np.ndarray) -> Self:
        new = copy(self)
        new._col_factors = self._col_factors[:, columns]
        if self.needs_all_columns:
            new._columns = columns if self._columns is None else self._columns[columns]
        else:
            new.n_samples_fit_ = len(columns)
        return new
