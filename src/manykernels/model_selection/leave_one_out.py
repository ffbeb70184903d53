"""Leave-one-out of the square loss in closed form, for every λ from one eigendecomposition.

Ridge regression with an intercept on the centred kernel ``K = VΔVᵀ`` has the hat matrix

    S = K(K + λI)⁻¹ + 11ᵀ/m = V Δ(Δ + λI)⁻¹ Vᵀ + 11ᵀ/m

and the output at sample i of the fit to all others is ``h_i − (h_i − f_i)/(1 − S_ii)``, for all
columns of the targets H and outputs F = SH at once. At the samples G of a group, which are left
out together, it is ``H_G − (I − S_GG)⁻¹(H_G − F_G)``. The kernel weights are fixed: they are not
learnt again without the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.metrics import average_precision_score, brier_score_loss

from ..discriminant import CalibratedScores, indicator_rule, labelled_stack, rule_offsets
from ..estimators.grid import checked_regs
from ..estimators.kernel_data import KernelData
from ..estimators.training_rows import checked_groups, refuse_useless_groups
from ..kernels import KernelStack
from ..kernels.matching import matched_targets
from ..kernels.transforms import preparation
from ..losses.left_out import residuals_left_out, sets_of_groups
from ..utils.folds import KnownProbabilities, effective_size, group_numbers
from ..utils.numerics import ACCUMULATED


@dataclass(frozen=True)
class LeaveOneOut:
    """Outputs of every sample from the discriminant of the others, for each λ.

    Attributes
    ----------
    regs : ndarray of shape (n_regs,)
    classes : ndarray of shape (n_classes,)
    labels : ndarray of shape (n_samples,)
        Class indices of the samples, positions in `classes`.
    targets : ndarray of shape (n_samples, n_columns)
        Targets H of the regression.
    outputs : ndarray of shape (n_regs, n_samples, n_columns)
        Left-out outputs.
    sample_weight : ndarray of shape (n_samples,)
    groups : ndarray of int, (n_samples,), or None
        Numbers of the groups of samples that are left out together; None if there are none.

    Notes
    -----
    Decisions follow the indicator rule of :class:`~manykernels.MKFDA`, which learns nothing from
    the outputs: the discriminant rule, learnt from left-out outputs and scored on the same
    outputs, would have seen every label. Two numbers turn the scores into probabilities.
    """

    regs: np.ndarray
    classes: np.ndarray
    labels: np.ndarray
    targets: np.ndarray
    outputs: np.ndarray
    sample_weight: np.ndarray
    groups: np.ndarray | None = None

    @cached_property
    def _judged(self) -> list[KnownProbabilities]:
        masses = np.bincount(self.labels, weights=self.sample_weight)
        frequencies = masses / masses.sum()
        rule = indicator_rule(frequencies, np.eye(self.targets.shape[1]))
        offsets = rule_offsets(rule.name, frequencies)
        # Without a sample the mean target of the others moves away from its target, which would
        # reveal its class: outputs are measured from that mean.
        n_samples, weight = len(self.labels), self.sample_weight
        group = np.arange(n_samples) if self.groups is None else self.groups
        sums = np.zeros((group.max() + 1, self.targets.shape[1]))
        np.add.at(sums, group, weight[:, None] * self.targets)
        means = -sums / (masses.sum() - np.bincount(group, weight))[:, None]
        size = effective_size(n_samples, self.groups, None if self.groups is None else weight)
        judged = []
        for outputs in self.outputs:
            scores = rule.scores(outputs - means[group])
            calibrated = CalibratedScores(scores, offsets, self.labels, weight, size)
            judged.append(KnownProbabilities(self.classes, calibrated.log_probabilities))
        return judged

    @property
    def decisions(self) -> np.ndarray:
        """Return log-odds (n_regs, n_samples) for two classes, else log-probabilities."""
        return np.array([judged.decision_function(None) for judged in self._judged])

    @property
    def accuracy(self) -> np.ndarray:
        """Return the weighted accuracy of the left-out predictions, per λ."""
        truth = self.classes[self.labels]
        hits = [judged.predict(None) == truth for judged in self._judged]
        return np.average(hits, axis=1, weights=self.sample_weight)

    @property
    def brier(self) -> np.ndarray:
        """Return the weighted Brier score of the probabilities, per λ; lower is better."""
        truth = self.classes[self.labels]
        options = {"labels": self.classes, "sample_weight": self.sample_weight}
        return np.array(
            [
                brier_score_loss(truth, judged.predict_proba(None), **options)
                for judged in self._judged
            ]
        )

    @property
    def average_precision(self) -> np.ndarray:
        """Return the average precision, its mean over more than two classes, per λ."""
        members = self.labels[:, None] == np.arange(len(self.classes))
        if len(self.classes) == 2:
            members = members[:, 1]
        return np.array(
            [
                average_precision_score(members, scores, sample_weight=self.sample_weight)
                for scores in self.decisions
            ]
        )

    @property
    def mse(self) -> np.ndarray:
        """Return the weighted mean squared error of the outputs against the targets, per λ."""
        errors = np.mean((self.outputs - self.targets) ** 2, axis=2)
        return np.average(errors, axis=1, weights=self.sample_weight)


def leave_one_out(
    stack: KernelStack,
    y: ArrayLike,
    regs: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    normalize: str | None = "multiplicative",
) -> LeaveOneOut:
    """Compute leave-one-out outputs of the discriminant on a weighted sum of kernels, for many λ.

    The weights are given and fixed, so this compares regularisations at one set of weights. Scores
    are too good if the weights were learnt from the same labels: with 200 kernels of pure noise
    and p = 1 the accuracy seems to be 96 %. To assess learnt weights, use
    :class:`~manykernels.MKFDACV`, which learns them again.

    Parameters
    ----------
    stack : KernelStack
        Gram matrices of all samples.
    y : array-like of shape (n_samples,)
        Class labels of the samples.
    regs : array-like of float
        Values of λ, all computed from one eigendecomposition.
    weights : array-like of shape (n_kernels,), optional
        Weights of the normalised kernels; by default 1.
    sample_weight : array-like of shape (n_samples,), optional
        Positive weights of the squared errors.
    groups : array-like of shape (n_samples,), optional
        Labels of the groups of samples, such as the patients of several samples each: samples of
        one group are left out together.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import rbf_grid
    >>> from manykernels.model_selection import leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> result = leave_one_out(rbf_grid([0.1, 1]).fit(X)(X), y, np.logspace(-3, 3, 7))
    >>> result.outputs.shape
    (7, 150, 3)
    >>> result.accuracy.max() > 0.95
    np.True_
    """
    regularizations = checked_regs(regs, ())
    samples = labelled_stack("leave_one_out", stack, y, sample_weight)
    data = KernelData.of(samples, preparation(normalize))
    targets = data.fisher_coding()
    weight = np.ones(len(samples.labels)) if samples.weights is None else samples.weights
    combined = data.stack.combine(np.ones(stack.n_kernels) if weights is None else weights)
    classes, labels, numbers = samples.classes, samples.labels, None
    if groups is not None:
        (groups,) = matched_targets(stack.row_samples, groups=groups)
        names = checked_groups(groups, len(labels))
        refuse_useless_groups(names, labels, classes)
        numbers = group_numbers(names)
    outputs = left_out_outputs(combined, targets, regularizations, weight, numbers)
    return LeaveOneOut(regularizations, classes, labels, targets, outputs, weight, numbers)


def left_out_outputs(
    kernel: np.ndarray,
    targets: np.ndarray,
    regs: np.ndarray,
    sample_weight: np.ndarray,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Return left-out outputs for every λ, (n_regs, m, c), of ``√w_i K_ij √w_j``."""
    roots = np.sqrt(sample_weight)[:, None]
    values, vectors = linalg.eigh(kernel * roots * roots.T)
    values = np.maximum(values, 0.0)
    components = vectors.T @ (roots * targets)
    outputs = np.empty((len(regs), *targets.shape))
    for result, reg in zip(outputs, regs, strict=True):
        kept = reg / (values + reg)
        residuals = vectors @ (kept[:, None] * components)
        for rows in sets_of_groups(groups, len(targets)):
            members, shares = vectors[rows], roots[rows, 0] / np.sqrt(sample_weight.sum())
            blocks = (members * kept) @ members.mT - shares[:, :, None] * shares[:, None, :]
            # Positive definite in exact arithmetic; rounding errors must not change the sign.
            left = residuals_left_out(blocks, residuals[rows], None, ACCUMULATED)
            result[rows] = targets[rows] - left / roots[rows]
    return outputs
