"""Kernels of samples together with their targets, weights and groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields

from ..utils.folds import effective_size, stratified_folds


@dataclass(frozen=True)
class Samples:
    """Kernels between samples and the training samples, and targets and weights of the samples.

    Attributes
    ----------
    stack : KernelStack
        Square for training samples; (n, m) between n test samples and m training samples. None
        where no kernels are needed.
    targets : ndarray of shape (n,) or (n, n_targets)
        Values to be predicted, or positions in `classes`. Survival targets are a structured array
        with the fields event and time.
    classes : ndarray of shape (c,) or None
        Sorted class labels; None for values. Several labels of each sample are positions in
        ``[0, 1]``.
    weights : ndarray of shape (n,) or (n, n_labels), or None
        Sample weights: `counts` times the weight of the class of each sample.
    counts : ndarray of shape (n,) or None
        Sample weights as passed by the user; None for ones.
    groups : ndarray of shape (n,) or None
        Numbers of the groups of samples that are left out together; None if every sample is a
        group.
    """

    stack: Any
    targets: np.ndarray
    classes: Any = None
    weights: np.ndarray | None = None
    counts: np.ndarray | None = None
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def labels(self) -> np.ndarray:
        """Positions of the samples' classes in `classes`, (n,) or (n, n_labels)."""
        return self.targets

    @property
    def n_labels(self) -> int | None:
        """Number of labels of each sample; None if it has a class or a value instead."""
        several = self.classes is not None and self.targets.ndim == 2
        return self.targets.shape[1] if several else None

    def label(self, k: int) -> Samples:
        """Return the samples with one of their labels as class."""
        weights = self.weights
        if weights is not None and weights.ndim == 2:
            weights = weights[:, k]
        return replace(self, targets=self.targets[:, k], weights=weights)

    @property
    def common_weights(self) -> np.ndarray | None:
        """Sample weights, or `counts` if every label has weights of its own."""
        weights = self.weights
        return self.counts if weights is not None and weights.ndim == 2 else weights

    @property
    def truth(self) -> np.ndarray:
        """Targets as passed by the user: class labels, values, or events and times."""
        if self.targets.dtype.names:
            return repack_fields(self.targets[["event", "time"]])
        truth: np.ndarray = self.targets if self.classes is None else self.classes[self.targets]
        return truth

    @property
    def masses(self) -> np.ndarray:
        """Total weight of each class, (c,)."""
        masses = np.bincount(self.targets, weights=self.weights, minlength=len(self.classes))
        return masses.astype(float)

    @property
    def frequencies(self) -> np.ndarray:
        """Class frequencies: the masses divided by their sum, (c,)."""
        return self.masses / self.masses.sum()

    @property
    def n_samples(self) -> float:
        """Effective number of independent samples, invariant to the scale of the weights."""
        return effective_size(len(self), self.groups, self.counts)

    def folds(self, n_folds: int) -> list[np.ndarray]:
        """Divide the samples into folds of whole groups, stratified by class or event."""
        groups = np.arange(len(self)) if self.groups is None else self.groups
        strata = np.zeros(len(self), dtype=np.intp) if self.classes is None else self.targets
        if self.targets.dtype.names:
            strata = self.targets["event"].astype(np.intp)
        return stratified_folds(strata, groups, n_folds, self.counts)

    def split(self, train: np.ndarray, test: np.ndarray) -> tuple[Samples, Samples]:
        """Return the samples `train`, and `test` with their kernels against `train`."""
        stack = self.stack
        return (
            self.take(train, stack[np.ix_(train, train)]),
            self.take(test, stack[np.ix_(test, train)]),
        )

    def take(self, rows: np.ndarray, stack: Any = None) -> Samples:
        """Return some of the samples; without another stack, the stack stays that of all."""
        weights, counts, groups = (
            None if values is None else values[rows]
            for values in (self.weights, self.counts, self.groups)
        )
        kernels = self.stack if stack is None else stack
        return Samples(kernels, self.targets[rows], self.classes, weights, counts, groups)
