"""Scores of a grid of norms and regularisations on one training part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from ..kernels import KernelStack
from ..kernels.transforms import Chain
from ..solvers import GridPoint, walk_grid
from ._discriminant import Discriminant, fisher_targets


@dataclass(frozen=True)
class TrainingPart:
    """Kernels and labels 0 … c−1 of the samples that models of the grid learn from."""

    stack: KernelStack
    labels: np.ndarray
    weights: np.ndarray | None
    multiplicity: np.ndarray | None
    priors: np.ndarray
    classes: np.ndarray


@dataclass(frozen=True)
class TestPart:
    """A block between test samples and those of a training part, and its labels 0 … c−1."""

    stack: KernelStack
    labels: np.ndarray
    multiplicity: np.ndarray | None


@dataclass(frozen=True)
class GridScores:
    """What came out at every p and λ, (n_ps, n_regs) each."""

    scores: np.ndarray
    rel_gaps: np.ndarray
    n_factorizations: np.ndarray


class Judged(ClassifierMixin, BaseEstimator):
    """Decision values in the clothes of a classifier, so that any scorer can judge them."""

    def __init__(self, classes: np.ndarray, scores: np.ndarray):
        self.classes = classes
        self.scores = scores

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        return self.classes

    def fit(self, X: Any, y: Any) -> Judged:
        """Nothing is left to learn."""
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return self.scores

    def predict(self, X: Any) -> np.ndarray:
        binary = self.scores.ndim == 1
        return self.classes[(self.scores > 0).astype(int) if binary else self.scores.argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        if self.scores.ndim == 1:
            return np.column_stack([expit(-self.scores), expit(self.scores)])
        return softmax(self.scores, axis=1)


def score_grid(
    train: TrainingPart,
    test: TestPart | None,
    preparation: Chain,
    ps: Sequence[float],
    regs: Sequence[float],
    scorer: Callable[..., float],
    tol: float,
    notify: Callable[[GridPoint], Any] | None = None,
) -> GridScores:
    """Fit all models of the grid and score each on `test`, or on its left-out outputs.

    Left-out outputs are those of the closed form, with the kernel weights held.
    """
    stack = preparation.fit_transform(train.stack, train.labels, train.weights)
    block = None if test is None else preparation.transform(test.stack)
    masses = np.bincount(train.labels, weights=train.weights).astype(float)
    shape = (len(ps), len(regs))
    found = GridScores(np.full(shape, np.nan), np.empty(shape), np.empty(shape, int))

    def visit(point: GridPoint) -> None:
        here = point.norm_index, point.reg_index
        discriminant, outputs = fitted_discriminant(point, train)
        judged: TrainingPart | TestPart = train if test is None else test
        if block is None:
            values = discriminant.scores(outputs)
        else:
            projected = block.apply_combined(point.evaluation.weights, discriminant.dual_coef)
            values = projected + discriminant.intercept
            values = values[:, 0] if values.shape[1] == 1 else values
        options = {} if judged.multiplicity is None else {"sample_weight": judged.multiplicity}
        found.scores[here] = scorer(
            Judged(train.classes, values), None, train.classes[judged.labels], **options
        )
        found.rel_gaps[here] = point.certificate.rel_gap
        found.n_factorizations[here] = point.n_inner_solves
        if notify is not None:
            notify(point)

    walk_grid(
        stack,
        fisher_targets(train.labels, masses),
        ps,
        regs,
        visit,
        sample_weight=train.weights,
        tol=tol,
    )
    return found


def fitted_discriminant(point: GridPoint, train: TrainingPart) -> tuple[Discriminant, np.ndarray]:
    """The discriminant of a point of the grid, and the left-out outputs it was learnt from."""
    rotation = point.loss.rotation
    left_out = point.evaluation.leave_one_out(train.multiplicity, from_mean=True) @ rotation
    discriminant = Discriminant.learn(
        coefficients=point.evaluation.coefficients @ rotation,
        outputs=left_out,
        labels=train.labels,
        sample_weight=train.weights,
        priors=train.priors,
    )
    return discriminant, left_out
