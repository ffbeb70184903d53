"""Common methods of scikit-learn, for comparison: a constant, a linear model and boosted trees.

They take the same X as estimators of this package: all columns are put side by side.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..kernels import KernelStack, Views
from ..kernels.tables import Table, is_frame
from ..utils.sklearn import num_samples

#: Names of the baselines.
BASELINES = ("constant", "linear", "boosting")
# Largest number of columns of the linear model and of boosted trees, whose tables are dense.
_MOST_COLUMNS = 20_000
# Regularisations of linear models, on columns of unit variance.
_PENALTIES = np.logspace(-2, 4, 7)


class JoinedColumns(TransformerMixin, BaseEstimator):
    """All columns of a table, or of several, side by side as numbers.

    Numbers stay as they are, and columns of texts and categories become an indicator of each
    value. Cells are NaN where they are empty, or where a row lacks a view.

    Attributes
    ----------
    encoders_ : dict of (str, str) to OneHotEncoder
        Encoders of the columns that are no numbers, by view and column.
    """

    def fit(self, X: Table, y: object = None) -> Self:
        """Learn the values of the columns that are no numbers."""
        self.encoders_ = {}
        for view, table, _ in _tables(X):
            for name in _other_columns(table):
                encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
                self.encoders_[view, str(name)] = encoder.fit(_texts(table[name]))
        return self

    def transform(self, X: Table) -> np.ndarray:
        """Return the columns, (n_rows, n_columns)."""
        parts = []
        for view, table, has in _tables(X):
            encoded = [name for name in _names(table) if (view, str(name)) in self.encoders_]
            blocks = [_numbers(table, encoded)]
            for name in encoded:
                blocks.append(self.encoders_[view, str(name)].transform(_texts(table[name])))
            values = np.hstack(blocks)
            part = np.full((len(has), values.shape[1]), np.nan)
            part[has] = values
            parts.append(part)
        return np.hstack(parts)


def _tables(X: Table) -> list[tuple[str, Any, np.ndarray]]:
    """Return the name of every view, the table of the rows that have it, and which these are."""
    if isinstance(X, Views):
        return [(name, table, np.asarray(X.has(name))) for name, table in X.items()]
    n_rows = int(num_samples(X))
    table: Any = X if is_frame(X) or hasattr(X, "shape") else np.asarray(X)
    return [("", table, np.ones(n_rows, bool))]


def _names(table: Any) -> list[Any]:
    """Return the names of the columns of a data frame; empty for other tables."""
    return list(table.columns) if is_frame(table) else []


def _other_columns(table: Any) -> list[Any]:
    """Return the columns of a data frame that are no numbers."""
    return [name for name in _names(table) if not _is_number(np.asarray(table[name]))]


def _is_number(values: np.ndarray) -> bool:
    if values.dtype.kind in "biuf":
        return True
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(table: Any, without: list[Any]) -> np.ndarray:
    """Return the columns of a table that are not `without`, as numbers."""
    if is_frame(table):
        columns = [np.asarray(table[name]) for name in table.columns if name not in without]
        n_rows = int(num_samples(table))
        return np.array(columns, dtype=np.float64).reshape(len(columns), n_rows).T
    values = table.toarray() if sparse.issparse(table) else np.asarray(table)
    return values.astype(np.float64).reshape(len(values), -1)


def _texts(values: Any) -> np.ndarray:
    """Return values as texts, (n_rows, 1); empty cells have a value of their own."""
    return np.array([str(value) for value in values], dtype=object).reshape(-1, 1)


def baselines_for(
    X: Table, y: np.ndarray, *, classes: bool, counts: bool = False
) -> dict[str, Any]:
    """Return the baselines that can learn from X, by name.

    Parameters
    ----------
    X : table, dict of tables or Views
        Of kernels and sequences, only the constant is returned.
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    classes : bool
        Whether y are classes or labels.
    counts : bool, default=False
        Whether y are counts, of which logarithms of means are linear.

    Returns
    -------
    methods : dict of str to estimator
        "constant": the most frequent class, or the mean. "linear": logistic, ridge or Poisson
        regression, whose penalty is chosen in five folds. "boosting": gradient boosted trees with
        the defaults of scikit-learn.
    """
    constant = DummyClassifier(strategy="prior") if classes else DummyRegressor()
    if isinstance(X, KernelStack) or not _have_columns(X):
        return {"constant": constant}
    linear, grid = _linear(classes, counts)
    boosting: Any
    if classes:
        boosting = HistGradientBoostingClassifier(random_state=0)
    else:
        loss = "poisson" if counts else "squared_error"
        boosting = HistGradientBoostingRegressor(loss=loss, random_state=0)
    search: Any = GridSearchCV(linear, grid)
    if np.ndim(y) == 2:
        several = MultiOutputClassifier if classes else MultiOutputRegressor
        search, boosting = several(search), several(boosting)
    return {
        "constant": make_pipeline(_Length(), constant),
        "linear": make_pipeline(
            JoinedColumns(),
            SimpleImputer(strategy="median", keep_empty_features=True),
            StandardScaler(),
            search,
        ),
        "boosting": make_pipeline(JoinedColumns(), boosting),
    }


def _linear(classes: bool, counts: bool) -> tuple[Any, dict[str, list[float]]]:
    """Return a linear model and the values of its penalty."""
    if classes:
        return LogisticRegression(max_iter=2000), {"C": (1.0 / _PENALTIES).tolist()}
    if counts:
        return PoissonRegressor(max_iter=1000), {"alpha": (_PENALTIES / 100.0).tolist()}
    return Ridge(), {"alpha": _PENALTIES.tolist()}


class _Length(TransformerMixin, BaseEstimator):
    """Tables replaced by a column of zeros, for models that use the number of rows only."""

    def fit(self, X: Table, y: object = None) -> Self:
        """Do nothing."""
        return self

    def transform(self, X: Table) -> np.ndarray:
        """Return zeros, (n_rows, 1)."""
        return np.zeros((len(_tables(X)[0][2]), 1))

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _have_columns(X: Table) -> bool:
    """Return whether X consists of tables with columns, that are not too many."""
    tables = [table for _, table, _ in _tables(X)]
    if any(len(getattr(table, "shape", ())) != 2 for table in tables):
        return False
    return sum(table.shape[1] for table in tables) <= _MOST_COLUMNS
