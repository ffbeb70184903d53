"""Shares of samples in regions that a user has: columns, a clustering, a function of X."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._sklearn import num_samples
from ..kernels.tables import naming, resolve_columns, select_columns
from .gates import Array

# How far a row of shares may be from one: rounding of single precision adds up over regions.
_SUMS_TO_ONE = 1e-5


class GivenRegions(BaseEstimator):
    """Shares by what a user knows of the samples.

    Parameters
    ----------
    what
        - an estimator of scikit-learn: a clone of it is fitted on the training rows. If it has
          ``predict_proba`` (GaussianMixture), these are the shares. If not, every row belongs to
          the region that ``predict`` names (KMeans), or ``transform`` gives the shares
          (OneHotEncoder). One that needs targets gets them.
        - str, list, slice or boolean mask: the columns of X that hold the shares.
        - a pair (columns, estimator): the estimator, on these columns only.
        - a function: called with X, it returns the shares of its rows.

        Shares are non-negative and sum to one in every row.

    Attributes
    ----------
    n_regions_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from manykernels.gating import GivenRegions
    >>> x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    >>> GivenRegions(KMeans(2, random_state=0)).fit(x).shares(x[2:4])
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, what: Any) -> None:
        self.what = what

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn regions from training rows; no region may be empty there."""
        with naming("regions"):
            columns, self._model = _columns_and_model(self.what)
            self._columns = resolve_columns(columns, X)
            self._labels: np.ndarray | None = None
            if self._model is not None and hasattr(self._model, "fit"):
                weighted = sample_weight is not None and has_fit_parameter(
                    self._model, "sample_weight"
                )
                options = {"sample_weight": sample_weight} if weighted else {}
                self._model.fit(select_columns(X, self._columns), y, **options)
            shares = self._checked(X)
            empty = np.flatnonzero(~shares.any(axis=0))
            if len(empty):
                raise ValueError(
                    f"region {empty[0]} has no training sample: its weights could be anything. "
                    "Leave its column out."
                )
        self.n_regions_ = shares.shape[1]
        return self

    def shares(self, X: Any) -> Array:
        """Shares of the rows of X, ``(n_rows, n_regions_)``."""
        check_is_fitted(self, "n_regions_")
        with naming("regions"):
            shares = self._checked(X)
            if shares.shape[1] != self.n_regions_:
                raise ValueError(
                    f"X gives shares in {shares.shape[1]} regions, but there were "
                    f"{self.n_regions_} in training."
                )
        return shares

    def _checked(self, X: Any) -> Array:
        raw = self._raw(select_columns(X, self._columns))
        try:
            shares = np.asarray(raw.toarray() if hasattr(raw, "toarray") else raw, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "shares are numbers, but these columns hold something else. Categories become "
                "shares by (columns, OneHotEncoder())."
            ) from error
        n_rows = num_samples(X)
        if shares.ndim != 2 or len(shares) != n_rows or not shares.shape[1]:
            raise ValueError(
                f"shares are a table with one row for each of {n_rows} samples and one column "
                f"per region, got an array of shape {shares.shape}."
            )
        for problem, bad in (
            ("that is not finite", ~np.isfinite(shares)),
            ("that is negative", shares < 0.0),
        ):
            if bad.any():
                row, region = np.argwhere(bad)[0]
                raise ValueError(
                    f"row {row} has a share {problem} in region {region}: {shares[row, region]}."
                )
        totals = shares.sum(axis=1)
        wrong = np.flatnonzero(np.abs(totals - 1.0) > _SUMS_TO_ONE)
        if len(wrong):
            raise ValueError(
                f"the shares of row {wrong[0]} sum to {totals[wrong[0]]:.6g}, not to one. Divide "
                "every row by its sum, or add a region for what is left."
            )
        return np.asarray(shares / totals[:, None])

    def _raw(self, table: Any) -> Any:
        model = self._model
        if model is None:
            return table
        if not hasattr(model, "fit"):
            return model(table)
        if hasattr(model, "predict_proba"):
            return model.predict_proba(table)
        if not hasattr(model, "predict"):
            return model.transform(table)
        labels = np.asarray(model.predict(table))
        if self._labels is None:
            self._labels = np.unique(labels)
        unknown = np.flatnonzero(~np.isin(labels, self._labels))
        if len(unknown):
            raise ValueError(
                f"row {unknown[0]} belongs to region {labels[unknown[0]]!r}, which has no "
                "training sample."
            )
        return labels[:, None] == self._labels


def _columns_and_model(what: Any) -> tuple[Any, Any]:
    """Columns that `what` chooses (None: all), and an unfitted estimator or function of them."""
    if isinstance(what, tuple) and len(what) == 2 and _is_model(what[1]):
        return what[0], _columns_and_model(what[1])[1]
    if isinstance(what, type):
        raise TypeError(f"{what.__name__} is a class; pass an instance, {what.__name__}(...).")
    if hasattr(what, "fit"):
        if not any(hasattr(what, one) for one in ("predict_proba", "predict", "transform")):
            raise TypeError(
                f"{what!r} says nothing of new samples: it has no predict_proba, predict or "
                "transform. Pass a number of regions, or another estimator."
            )
        return None, clone(what)
    if callable(what):
        return None, what
    if len(getattr(what, "shape", ())) == 2:
        raise TypeError(
            "a table of shares cannot be used for new samples; pass the columns of X that hold "
            "them, or a function of X."
        )
    return what, None


def _is_model(what: Any) -> bool:
    return hasattr(what, "fit") or callable(what)
