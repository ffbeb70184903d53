"""Cross-validation of the share of variance that ``Denoise("cv")`` keeps.

The error is that of a ridge regression of the Fisher targets on the leading r principal axes, with
the kernel of these axes scaled to unit variance. The axes are computed without the held-out fold;
one eigendecomposition per fold suffices for all r and λ.

A closed form for leaving samples out of the regression would be cheaper, but the axes would still
depend on these samples. With a flat spectrum, as in text data, single samples determine axes, and
the errors for few axes would be too optimistic.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from .discriminant import fisher_targets
from .kernels import KernelStack
from .kernels.spectral import VARIANCE_RULES, VARIANCES, n_leading, spectrum
from .kernels.transforms import Center, centered_trace
from .utils.folds import equal_kernel_rows, groups_to_keep, stratified_folds
from .utils.sklearn import check_classes

#: Default candidates of the regularisation λ, for kernels of unit variance: two decades on each
#: side of the λ at which penalty and loss have equal weight.
REGS = (0.01, 0.1, 1.0, 10.0, 100.0)


class CrossValidatedErrors:
    """Cross-validated errors of discriminants on the leading axes of one kernel.

    `y` are class labels, or several labels 0 and 1 of each sample, `weights` sample weights.
    `reg` and `folds` are as for :class:`~manykernels.kernels.Denoise`. `groups` are numbers of the
    groups of samples that are held out together; None if equal rows of the kernel are the groups.
    """

    def __init__(
        self,
        y: ArrayLike,
        weights: np.ndarray,
        reg: Any,
        folds: Any,
        groups: np.ndarray | None = None,
    ) -> None:
        if reg is not None and (not isinstance(reg, Real) or not 0.0 < float(reg) < np.inf):
            raise ValueError(f"reg must be a positive number or None, got {reg!r}.")
        if not isinstance(folds, Integral) or folds < 2:
            raise ValueError(f"folds must be an integer of at least 2, got {folds!r}.")
        if y is None:
            raise ValueError('Denoise(variance="cv") needs class labels: fit(stack, y).')
        check_classes(y)
        y = np.asarray(y)
        several = y.ndim == 2 and y.shape[1] > 1
        columns = list(y.T) if several else [column_or_1d(y)]
        if len(y) != len(weights):
            raise ValueError(f"There are {len(y)} labels, but {len(weights)} training samples.")
        self.present = np.flatnonzero(weights > 0)
        labels, targets = [], []
        for column in columns:
            classes = np.unique(column[self.present])
            if len(classes) < 2:
                raise ValueError(f"At least 2 classes are needed, got {classes.tolist()}.")
            labels.append((column[:, None] == classes).argmax(axis=1))
            masses = np.bincount(labels[-1], weights=weights)
            # Of several labels, all have targets of the same variance.
            unit = np.sqrt(masses.prod()) if several else 1.0
            targets.append(unit * fisher_targets(labels[-1], masses))
        self.labels = np.column_stack(labels) if several else labels[0]
        self.targets = np.hstack(targets)
        self.weights = weights
        self.groups = None if groups is None else groups[self.present]
        self.regs = REGS if reg is None else (float(reg),)
        self.n_folds = int(folds)

    def __call__(self, K: np.ndarray) -> np.ndarray:
        """Return the relative squared error at each of ``VARIANCES`` with its best λ.

        Errors are relative to predicting the mean; NaN if too many samples are equal to be
        divided into folds.
        """
        labels, weights = self.labels[self.present], self.weights[self.present]
        groups = self.groups
        if groups is None:
            present = K[np.ix_(self.present, self.present)]
            stack = KernelStack(present[None], ["kernel"], gram=True)
            groups = groups_to_keep(equal_kernel_rows(stack))
        folds = stratified_folds(labels, groups, self.n_folds, weights)
        if len(folds) < 2:
            return np.full(len(VARIANCES), np.nan)
        errors = np.sum([self._fold_errors(K, self.present[fold]) for fold in folds], axis=0)
        judged = self.present[np.concatenate(folds)]
        whole = self.weights[judged] @ np.sum(self.targets[judged] ** 2, axis=1)
        return errors.min(axis=1) / whole

    def _fold_errors(self, K: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """Return the weighted squared errors in one fold, (len(VARIANCES), len(regs))."""
        kept = np.setdiff1d(self.present, fold)
        total = self.weights[kept].sum()
        weights = self.weights[kept] / total
        center = Center()
        train = KernelStack(K[np.ix_(kept, kept)][None], ["kernel"], gram=True)
        train = center.fit_transform(train, sample_weight=weights)
        block = center.transform(KernelStack(K[np.ix_(fold, kept)][None], ["kernel"])).kernel(0)
        # If the kernel is constant outside the fold, it has no axes and the mean is predicted.
        _, rounding = centered_trace(train, weights)
        values, vectors = spectrum(train.kernel(0), weights, rounding[0])
        roots = np.sqrt(weights)[:, None]
        mean = weights @ self.targets[kept]
        coordinates = vectors.T @ (roots * (self.targets[kept] - mean))
        scores = block @ (roots * vectors)
        errors = np.empty((len(VARIANCES), len(self.regs)))
        for i, share in enumerate(VARIANCES):
            stop = n_leading(values, share) if values[0] > 0.0 else 0
            leading = values[:stop]
            for k, reg in enumerate(self.regs):
                inverse = 1.0 / (leading + reg * leading.sum() / total)
                output = scores[:, :stop] @ (inverse[:, None] * coordinates[:stop])
                residuals = self.targets[fold] - mean - output
                errors[i, k] = self.weights[fold] @ np.sum(residuals**2, axis=1)
        return errors


VARIANCE_RULES["cv"] = CrossValidatedErrors
