"""From class labels to regression targets, and from regression outputs back to classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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


@dataclass(frozen=True)
class Discriminant:
    """Linear discriminant analysis in the space of regression outputs.

    `scalings` (m, k) are coefficients of training samples whose outputs have unit pooled
    covariance within classes; `means` (c, k) are the class means there. The score of class k
    for an output z is ``z·μ_k − ‖μ_k‖²/2 + log π_k``; for two classes the difference is kept.
    `turn` takes regression outputs to that space.
    """

    scalings: np.ndarray
    means: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray
    turn: np.ndarray

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Scores of regression outputs (n, k): (n,) for two classes, else (n, c)."""
        directions = self.turn @ self.means.T
        if self.dual_coef.shape[1] == 1:
            return outputs @ (directions[:, 1] - directions[:, 0]) + self.intercept[0]
        return outputs @ directions + self.intercept

    @classmethod
    def learn(
        cls,
        *,
        coefficients: np.ndarray,
        outputs: np.ndarray,
        labels: np.ndarray,
        sample_weight: np.ndarray | None,
        priors: np.ndarray,
    ) -> Discriminant:
        """Class means and pooled covariance of the leave-one-out `outputs` (m, k).

        Outputs at the training samples themselves are drawn to the targets (and equal them as
        λ → 0), which would make the classes look far better separated than they are.
        `coefficients` (m, k) are those of the regression functions.
        """
        weight = np.ones(len(labels)) if sample_weight is None else sample_weight
        members = np.zeros((len(labels), len(priors)))
        members[np.arange(len(labels)), labels] = weight
        masses = members.sum(axis=0)
        means = members.T @ outputs / masses[:, None]
        if len(priors) == 2:
            spread = np.average((outputs - means[labels]) ** 2, weights=weight, axis=0)
            means = _oriented(means, np.sqrt(spread[0]))
        within = (outputs - means[labels]) * np.sqrt(weight)[:, None]
        whiten = _whitening(within.T @ within / masses.sum(), masses.sum())
        center = masses @ means / masses.sum()
        between = np.sqrt(masses)[:, None] * ((means - center) @ whiten)
        _, _, directions = np.linalg.svd(between, full_matrices=False)
        turn = whiten @ _fix_signs(directions.T)
        scalings = coefficients @ turn
        turned = means @ turn
        with np.errstate(divide="ignore"):  # a prior of zero rules its class out
            constants = np.log(priors) - 0.5 * np.einsum("kd,kd->k", turned, turned)
        dual_coef = scalings @ turned.T
        if len(priors) == 2:
            dual_coef = dual_coef[:, 1:] - dual_coef[:, :1]
            constants = constants[1:] - constants[:1]
        return cls(scalings, turned, dual_coef, constants, turn)


def _oriented(means: np.ndarray, spread: float) -> np.ndarray:
    """Means of two classes, never on swapped sides.

    The regression was asked to give the second class the larger output. Where samples left out
    show no sign of it, the scores keep that order, hardly apart: a ranking by them is then as
    good as the regression, and the probabilities are the priors.
    """
    least = 1e-3 * spread
    if means[1, 0] - means[0, 0] >= least:
        return means
    return means.mean() + 0.5 * least * np.array([[-1.0], [1.0]])


def _whitening(covariance: np.ndarray, n_samples: float) -> np.ndarray:
    """``Σ^{-1/2}`` of a covariance shrunk towards a sphere, more so when samples are few."""
    size = len(covariance)
    scale = np.trace(covariance) / size
    if scale == 0.0:
        return np.eye(size)
    shrinkage = size / (size + n_samples)
    shrunk = (1.0 - shrinkage) * covariance + shrinkage * scale * np.eye(size)
    values, vectors = np.linalg.eigh(shrunk)
    return (vectors / np.sqrt(values)) @ vectors.T


def _fix_signs(directions: np.ndarray) -> np.ndarray:
    """Largest entry of each column positive, so that a fit is reproducible across machines."""
    largest = np.abs(directions).argmax(axis=0)
    return directions * np.sign(directions[largest, np.arange(directions.shape[1])])
