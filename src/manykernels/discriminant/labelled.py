"""Kernels with class labels, and Fisher's discriminant on them as a regression problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._folds import effective_size, stratified_folds
from .._sklearn import check_y
from ..kernels import KernelStack, check_stack
from ..kernels.matching import matched_targets
from ..kernels.transforms import StackTransform
from ..losses import SquareLoss


@dataclass(frozen=True)
class LabelledKernels:
    """Kernels of samples with the training samples, and the classes and weights of the samples.

    Attributes
    ----------
    stack : KernelStack
        Square for training samples; (n, m) between n test samples and m training samples.
    labels : ndarray of shape (n,)
        Classes as 0 … c−1.
    classes : ndarray of shape (c,)
    weights : ndarray of shape (n,) or None
        Sample weights: `counts` times the weight of the class of each sample.
    counts : ndarray of shape (n,) or None
        Sample weights as they were given; None for one each.
    groups : ndarray of shape (n,) or None
        Numbers of the groups of rows that are left out together; None if rows are left out one
        by one.
    """

    stack: KernelStack
    labels: np.ndarray
    classes: np.ndarray
    weights: np.ndarray | None = None
    counts: np.ndarray | None = None
    groups: np.ndarray | None = None

    @property
    def masses(self) -> np.ndarray:
        """Total weight of each class."""
        masses = np.bincount(self.labels, weights=self.weights, minlength=len(self.classes))
        return masses.astype(float)

    @property
    def frequencies(self) -> np.ndarray:
        """π: the masses divided by their sum."""
        return self.masses / self.masses.sum()

    @property
    def n_samples(self) -> float:
        """Effective number of independent samples, whatever the unit of the weights."""
        return effective_size(len(self.labels), self.groups, self.counts)

    def folds(self, n_folds: int) -> list[np.ndarray]:
        """Stratified folds of the rows that hold whole groups."""
        groups = np.arange(len(self.labels)) if self.groups is None else self.groups
        return stratified_folds(self.labels, groups, n_folds, self.counts)

    def prepared(self, transform: StackTransform) -> FisherProblem:
        """Fisher's problem on these training kernels; `transform`, fitted here, centres them."""
        stack = transform.fit_transform(self.stack, self.labels, self.weights)
        return FisherProblem(stack, self, fisher_targets(self.labels, self.masses))

    def split(
        self, train: np.ndarray, test: np.ndarray
    ) -> tuple[LabelledKernels, LabelledKernels]:
        """Training kernels of the samples `train`, and those of `test` with these."""
        parts = [self.of(rows, self.stack[np.ix_(rows, train)]) for rows in (train, test)]
        return parts[0], parts[1]

    def of(self, rows: np.ndarray, stack: KernelStack | None = None) -> LabelledKernels:
        """Some of the samples; the stack stays that of all samples if no other is given."""
        return LabelledKernels(
            self.stack if stack is None else stack,
            self.labels[rows],
            self.classes,
            None if self.weights is None else self.weights[rows],
            None if self.counts is None else self.counts[rows],
            None if self.groups is None else self.groups[rows],
        )


@dataclass(frozen=True)
class FisherProblem:
    """Regression of the Fisher targets H (m × 1 or m × c) on centred, normalised kernels.

    `samples` are the training samples with their kernels before centring and normalisation.
    """

    stack: KernelStack
    samples: LabelledKernels
    targets: np.ndarray

    def loss(self, reg: float) -> SquareLoss:
        """The regression at λ = `reg` as a function of the kernel weights."""
        return SquareLoss(self.stack, self.targets, reg, self.samples.weights)


def fisher_targets(labels: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Targets H whose least-squares fit is Fisher's discriminant, (m, 1) or (m, c).

    With ``m_k`` the number (or total weight) of samples in class k and m their sum: for two
    classes one column, ``1/m_1`` and ``−1/m_0`` (Yan 2012, section 2.1); for more, column k is
    ``√(m/m_k) − √(m_k/m)`` on class k and ``−√(m_k/m)`` elsewhere (Yan 2012 (18)).
    """
    if len(masses) == 2:
        return np.where(labels == 1, 1.0 / masses[1], -1.0 / masses[0])[:, None]
    total = masses.sum()
    targets = np.tile(-np.sqrt(masses / total), (len(labels), 1))
    targets[np.arange(len(labels)), labels] += np.sqrt(total / masses)[labels]
    return targets


def labelled_stack(caller: str, stack: Any, y: Any, sample_weight: Any = None) -> LabelledKernels:
    """The arguments of the public function `caller`, checked."""
    if not isinstance(stack, KernelStack) or not stack.gram:
        raise ValueError(
            f"{caller} takes a KernelStack of the training samples, got "
            f"{type(stack).__name__}: KernelStack.from_arrays(matrices), or a fitted union of "
            "kernels called on X."
        )
    y, sample_weight = matched_targets(stack.row_samples, y=y, sample_weight=sample_weight)
    y = check_y(y, multi_output=False)
    check_classification_targets(y)
    check_consistent_length(stack, y)
    stack = check_stack(stack, centered=True)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{caller} needs samples of at least 2 classes, got {classes.tolist()}.")
    if sample_weight is None:
        return LabelledKernels(stack, labels, classes)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != y.shape or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("sample_weight must be one positive number per sample.")
    return LabelledKernels(stack, labels, classes, weights, weights)
