"""From the scores of a machine to what its users ask for.

`_scores` gives ``Σ_i coefficient_i k(x, x_i)`` of every output, without the intercept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ROUNDING = 1e-10
_NOTHING = 1e-15


class ClassesByScore:
    """Mixin of classifiers whose ``decision_function`` has one score for two classes, else all."""

    classes_: np.ndarray
    decision_function: Any

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]


class ClassesByMargin(ClassesByScore):
    """Mixin of classifiers with one machine for two classes, or one for each of more."""

    intercept_: np.ndarray
    _scores: Any

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distances from the margins, (n_rows,) for two classes, else (n_rows, n_classes).

        Positive values of the first form speak for the second class.
        """
        scores = self._scores(X) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores


def widening(bias: np.ndarray, size: float) -> np.ndarray:
    """What is added to the bias of a one-class machine; see :class:`InsideOrOutside`."""
    return _ROUNDING * np.abs(bias) + _NOTHING * size


class InsideOrOutside:
    """Mixin of one-class machines."""

    intercept_: np.ndarray
    offset_: float
    _scores: Any

    def _set_offset(self, size: float = 0.0) -> None:
        """An offset by which samples on the boundary are inside, whatever rounding says.

        Free support vectors are there. `size` is that of the terms that scores are sums of.
        """
        self.intercept_ = self.intercept_ + widening(self.intercept_, size)
        self.offset_ = -float(self.intercept_[0])

    def score_samples(self, X: Any) -> np.ndarray:
        """How well each row is in line with the training samples, without the offset."""
        return self._scores(X)[:, 0]

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance from the boundary, negative outside."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 inside, −1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
