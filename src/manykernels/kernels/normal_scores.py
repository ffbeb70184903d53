"""NormalScores: columns by their ranks, as if each were normally distributed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._sklearn import check_sample_weight
from .tables import check_numbers


class NormalScores(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each entry by the normal quantile of its rank in the training column.

    A column of any distribution becomes nearly standard normal: skewed columns lose their tails,
    and the order of entries is kept. Unlike
    :class:`~sklearn.preprocessing.QuantileTransformer` it takes weights of rows, a row of weight
    two as two equal rows; it needs no number of quantiles; and the smallest and largest of n
    entries become ``∓Φ⁻¹(1 − 1/2n)``, not ∓5.2.

    An entry x becomes ``Φ⁻¹((F(x−) + F(x)) / 2)``, where F is the distribution of the training
    column. Between training entries the scores are interpolated, beyond them they are those of
    the nearest.

    Attributes
    ----------
    values_ : list of ndarray
        The different entries of each training column, in order.
    scores_ : list of ndarray
        What they become.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import NormalScores
    >>> X = np.array([[1.0], [10.0], [100.0]])
    >>> NormalScores().fit(X).transform([[1.0], [10.0], [55.0], [1000.0]]).round(2)
    array([[-0.97],
           [ 0.  ],
           [ 0.48],
           [ 0.97]])
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the distribution of every column.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (rows, columns)
        y : ignored
        sample_weight : array-like of shape (rows,), optional
        """
        X = self._checked(X, reset=True)
        weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        counted = weights > 0
        columns = [_scores(column, weights[counted]) for column in X[counted].T]
        self.values_ = [values for values, _ in columns]
        self.scores_ = [scores for _, scores in columns]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The scores of new entries."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        output = np.empty_like(X)
        for j, (values, scores) in enumerate(zip(self.values_, self.scores_, strict=True)):
            output[:, j] = np.interp(X[:, j], values, scores)
        return output

    def _checked(self, X: Any, *, reset: bool) -> np.ndarray:
        check_numbers(X, "X")
        return validate_data(self, X, dtype=np.float64, reset=reset)


def _scores(column: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different entries of a column, and the normal quantiles of their ranks."""
    values, places = np.unique(column, return_inverse=True)
    shares = np.bincount(places, weights=weights / weights.sum())
    return values, ndtri(np.cumsum(shares) - shares / 2)
