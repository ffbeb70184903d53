"""Kernels with class labels, and Fisher's discriminant on them as a regression problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from ..kernels import KernelStack
from ..kernels.matching import matched_targets
from ..kernels.samples import Samples
from ..kernels.stack import check_stack
from ..utils.sklearn import check_y


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


def labelled_stack(
    caller: str, stack: KernelStack, y: Any, sample_weight: ArrayLike | None = None
) -> Samples:
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
        return Samples(stack, labels, classes)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != y.shape or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("sample_weight must be one positive number per sample.")
    return Samples(stack, labels, classes, weights, weights)


# -- Class scores of regression outputs: the indicator rule and the linear discriminant -----------


# Least distance of the means of two classes, in standard deviations within classes. Closer means
# carry no information: at this distance probabilities almost equal the priors.
_LEAST_SEPARATION = 1e-3
# Class means that agree up to this part of the largest one do not decide the sign of an axis:
# errors of the regression, about 1e-10, must not flip it.
_SAME_MEAN = 1e-6


@dataclass(frozen=True)
class LinearRule:
    """Class scores that are affine in regression outputs: ``outputs @ directions + constants``.

    `name` is "indicator" or "discriminant"; `directions` are (k, c), `constants` (c,).
    """

    name: str
    directions: np.ndarray
    constants: np.ndarray

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Scores of outputs (n, k), one column per class, (n, c)."""
        return outputs @ self.directions + self.constants


def rule_offsets(name: str, frequencies: np.ndarray) -> np.ndarray:
    """What a calibration adds to the scores of a rule, times its exponent.

    Logarithms of class frequencies; zero for the discriminant, whose scores contain them already.
    """
    return np.log(frequencies) if name == "indicator" else np.zeros(len(frequencies))


def indicator_rule(frequencies: np.ndarray, rotation: np.ndarray) -> LinearRule:
    """Outputs f as estimates of class indicators; nothing is learnt from the outputs.

    With H of :func:`.labelled.fisher_targets` and π_k = m_k/m, ``z_k = f_k √π_k`` estimates the
    indicator of class k less its mean; for two classes ``z_1 ∝ π_0π_1 f = −z_0``, whose scale is
    left to the calibration. `rotation` (c, k) takes columns of H to the columns of the outputs.
    """
    if len(frequencies) == 2:
        directions = rotation.T * frequencies.prod() * np.array([-1.0, 1.0])
    else:
        directions = rotation.T * np.sqrt(frequencies)
    return LinearRule("indicator", directions, np.zeros(len(frequencies)))


@dataclass(frozen=True)
class Discriminant:
    """Linear discriminant analysis in the space of regression outputs.

    `means` (c, k) are those of the outputs of each class, `covariance` (k, k) that within classes,
    shrunk towards a multiple of the identity, `masses` (c,) the total weight of each class.
    """

    means: np.ndarray
    covariance: np.ndarray
    masses: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """π, the class frequencies of training."""
        return self.masses / self.masses.sum()

    @property
    def rule(self) -> LinearRule:
        """Scores ``f·Σ⁻¹μ_k − ½ μ_k·Σ⁻¹μ_k + log π_k`` of outputs f."""
        directions = np.linalg.solve(self.covariance, self.means.T)
        lengths = np.einsum("kd,dk->k", self.means, directions)
        return LinearRule("discriminant", directions, np.log(self.frequencies) - 0.5 * lengths)

    @cached_property
    def turn(self) -> np.ndarray:
        """From outputs to axes in which Σ is the identity, those of best separation first."""
        values, vectors = np.linalg.eigh(self.covariance)
        whiten = (vectors / np.sqrt(values)) @ vectors.T
        center = self.frequencies @ self.means
        between = np.sqrt(self.masses)[:, None] * ((self.means - center) @ whiten)
        _, _, directions = np.linalg.svd(between, full_matrices=False)
        turn = whiten @ directions.T
        return turn * _signs(self.means @ turn)

    @classmethod
    def learn(cls, outputs: np.ndarray, samples: Samples) -> Discriminant:
        """Class means and pooled covariance of the left-out `outputs` (m, k) of `samples`.

        Outputs of samples that the regression has seen are drawn to their targets (and equal them
        as λ → 0), which would make the classes look far better separated than they are.
        """
        labels, n_classes = samples.labels, len(samples.classes)
        weight = np.ones(len(labels)) if samples.weights is None else samples.weights
        members = np.zeros((len(labels), n_classes))
        members[np.arange(len(labels)), labels] = weight
        masses = samples.masses
        means = members.T @ outputs / masses[:, None]
        if n_classes == 2:
            spread = np.average((outputs - means[labels]) ** 2, weights=weight, axis=0)
            means = _oriented(means, np.sqrt(spread[0]))
        within = (outputs - means[labels]) * np.sqrt(weight)[:, None]
        covariance = within.T @ within / masses.sum()
        return cls.of_moments(means, covariance, masses, samples.n_samples)

    @classmethod
    def of_moments(
        cls, means: np.ndarray, covariance: np.ndarray, masses: np.ndarray, n_samples: float
    ) -> Discriminant:
        """From class means, and the covariance of `n_samples` within classes before shrinkage."""
        return cls(means, _shrunk(covariance, n_samples), masses)


def _oriented(means: np.ndarray, spread: float) -> np.ndarray:
    """Means of two classes (2, 1), the second one the larger.

    The regression has larger targets for the second class. Where the outputs of left-out samples
    are not in this order, the means are set apart by the least distance: scores then rank samples
    as the regression does, and the probabilities are almost the priors.
    """
    least = _LEAST_SEPARATION * spread
    if means[1, 0] - means[0, 0] >= least:
        return means
    return means.mean() + 0.5 * least * np.array([[-1.0], [1.0]])


def _shrunk(covariance: np.ndarray, n_samples: float) -> np.ndarray:
    """A covariance shrunk towards a multiple of the identity, the more the fewer samples."""
    size = len(covariance)
    scale = np.trace(covariance) / size
    if scale == 0.0:
        return np.eye(size)
    shrinkage = size / (size + n_samples)
    return (1.0 - shrinkage) * covariance + shrinkage * scale * np.eye(size)


def _signs(means: np.ndarray) -> np.ndarray:
    """±1 for every axis, so that the last class has a larger mean than the first.

    Singular vectors have arbitrary signs; this makes them the same on every computer. Where the
    two means agree, the mean of largest size gets a positive sign.
    """
    apart = means[-1] - means[0]
    largest = means[np.abs(means).argmax(axis=0), np.arange(means.shape[1])]
    distinct = np.abs(apart) > _SAME_MEAN * np.abs(largest)
    return np.where(np.where(distinct, apart, largest) < 0.0, -1.0, 1.0)
