"""From log-odds of classes to predictions and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.utils.metaestimators import available_if

from ._outputs import ClassesByScore


def gives_probabilities(estimator: Any) -> bool:
    """Whether an estimator has ``predict_proba`` at this moment."""
    # scikit-learn's check of decision values against probabilities hands a table to every
    # unfitted estimator that has both methods, pairwise ones too, where no table can be fitted.
    return not estimator._is_precomputed or hasattr(estimator, "classes_")


class GivesProbabilities(ClassesByScore):
    """Mixin of classifiers whose scores are log-odds, or logarithms up to a constant."""

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_rows, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    @available_if(gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, (n_rows, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return log_softmax(scores, axis=1)
