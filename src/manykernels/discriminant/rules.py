"""Class scores of regression outputs: the indicator rule and the linear discriminant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .labelled import LabelledKernels

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
    def learn(cls, outputs: np.ndarray, samples: LabelledKernels) -> Discriminant:
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
