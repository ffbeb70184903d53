"""Columns of tables as they are studied, and which methods their kernels allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from ..estimators.kernel_data import KernelPredictor
from ..kernels import Views
from ..kernels.composition import views_of
from ..kernels.slopes import form_of, squared_factors
from ..kernels.tables import (
    SharedTable,
    as_numbers,
    as_table,
    column_positions,
    is_frame,
    naming,
)
from ..survival import cumulative_baseline_hazard
from ..utils.numerics import ACCUMULATED, TINY
from ..utils.sklearn import safe_indexing
from .effects import Effects, linear_effects
from .importance import Begun

# -- Columns of tables ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnsOfView:
    """Columns of a table that are studied.

    Attributes
    ----------
    view : str
        "" in a single table.
    table : table of shape (n_rows, n_all_columns)
    kernels : list of int
        Positions of the kernels that use the table.
    names : list
        Name of each column or group.
    members : list of list of int
        Positions of the columns of each of them.
    """

    view: str
    table: Any
    kernels: list[int]
    names: list[Any]
    members: list[list[int]]

    @classmethod
    def of(cls, view: str, table: Any, kernels: list[int], chosen: Any) -> ColumnsOfView:
        """Read the choice of columns of a view: all of them, a list, or a dict of groups."""
        table = as_table(table) if getattr(table, "ndim", 2) == 2 else np.asarray(table)[:, None]
        names = list(table.columns) if is_frame(table) else list(range(table.shape[1]))
        with naming(f"view {view!r}" if view else ""):
            if isinstance(chosen, Mapping):
                if not chosen:
                    raise ValueError("columns is an empty dict: pass groups of columns.")
                groups = {name: _positions(table, entry) for name, entry in chosen.items()}
                return cls(view, table, kernels, list(groups), list(groups.values()))
            places = _positions(table, chosen)
        return cls(view, table, kernels, [names[j] for j in places], [[j] for j in places])

    @property
    def has_groups(self) -> bool:
        return any(len(members) > 1 for members in self.members)

    def numbers(self) -> np.ndarray | None:
        """Return the table as finite numbers, dense; None if it holds anything else."""
        if sparse.issparse(self.table):
            return self.table.toarray().astype(np.float64)
        try:
            values = as_numbers(self.table)
        except (TypeError, ValueError):
            return None
        return values if np.isfinite(values).all() else None


def _positions(table: Any, columns: Any) -> list[int]:
    if columns is None:
        return list(range(table.shape[1]))
    entry = [columns] if isinstance(columns, str | Integral) else list(columns)
    if not entry:
        raise ValueError("columns has an empty list: name at least one column.")
    return [int(j) for j in column_positions(SharedTable(table), entry)]


def columns_of(begun: Begun, columns: Any) -> list[ColumnsOfView]:
    """Return the columns that are studied, by view."""
    X, union = begun.data.X, getattr(begun.source, "union", None)
    if union is None:
        raise ValueError(
            "column_importance needs the columns, which precomputed kernels do not have: pass the "
            "tables as X, and the kernels of the estimator as kernels."
        )
    if not isinstance(X, Views):
        return [ColumnsOfView.of("", X, list(range(len(union.kernels_))), columns)]
    if columns is not None and not isinstance(columns, Mapping):
        raise ValueError(
            "X has several views: columns must be a dict from names of views to lists of columns, "
            f"to dicts of groups, or to None for all columns; got {columns!r}."
        )
    unknown = [name for name in columns or {} if name not in X]
    if unknown:
        raise ValueError(
            f"columns has a view {unknown[0]!r} that X does not have; the views are "
            f"{', '.join(map(repr, X))}."
        )
    lacking = np.flatnonzero(~X.present.all(axis=1))
    if len(lacking):
        raise ValueError(
            f"column_importance needs samples that have all views; {len(lacking)} of "
            f"{len(X.present)} lack some, the first at row {lacking[0]}: leave these samples out."
        )
    used = [views_of(kernel) for _, kernel in union.kernels_]
    return [
        ColumnsOfView.of(
            name,
            X[name],
            [j for j, views in enumerate(used) if name in views],
            None if columns is None else columns[name],
        )
        for name in (X if columns is None else columns)
    ]


def method_for(method: str, begun: Begun, columns: list[ColumnsOfView]) -> str:
    """Return the method for the kernels of the views; raise if they do not allow it."""
    if method == "permutation":
        return method
    kernels, forms, reason = begun.source.union.kernels_, set(), ""
    for view in columns:
        for j in view.kernels:
            name, kernel = kernels[j]
            form = form_of(kernel) if len(views_of(kernel)) < 2 else None
            forms.add(form)
            if form is None or (form != "linear" and method == "linear"):
                reason = reason or f"kernel {name!r} ({kernel._title}) is not of that kind"
        if None not in forms and view.numbers() is None:
            forms.add(None)
            reason = reason or f"view {view.view!r} has entries that are not finite numbers"
    if None not in forms:
        try:
            begun.fitted._predictor.expansion()
        except AttributeError as error:
            forms.add(None)
            reason = str(error)
    grouped = any(view.has_groups for view in columns)
    if method == "auto":
        if None in forms:
            return "permutation"
        return "linear" if forms == {"linear"} and not grouped else "derivative"
    if reason:
        needed = "linear" if method == "linear" else "linear, Gaussian, polynomial or cosine"
        raise ValueError(
            f"method={method!r} needs kernels that are {needed} on columns or on scaled columns; "
            f'{reason}. Use method="permutation", or "auto".'
        )
    if method == "linear" and grouped:
        raise ValueError(
            'method="linear" has coefficients of single columns, not of groups: use '
            'method="derivative" or "permutation".'
        )
    return method


@dataclass(frozen=True)
class Measured:
    """Importance of the columns by one method, in the order of the tables."""

    importance: np.ndarray
    interval: np.ndarray
    p_value: np.ndarray
    coefficient: np.ndarray | None = None
    #: Sizes of importances by half-samples, (n_resamples, n_columns).
    resampled: np.ndarray | None = None


class Columns:
    """All columns as numbers of mean zero and variance one, and the targets as numbers.

    Attributes
    ----------
    Z : ndarray of shape (n_rows, n_all_columns)
        Columns of all views of numbers, those that are studied first; constant ones are left out.
    place : ndarray of int
        Place in Z of each column of the studied tables; −1 of constant ones.
    deviations : ndarray
        Standard deviations of the columns of the studied tables.
    targets : ndarray of shape (n_rows, n_targets)
        Values, indicators of classes (the second of two), or martingale residuals.
    """

    def __init__(self, begun: Begun, columns: list[ColumnsOfView]) -> None:
        self.begun, self.columns = begun, columns
        weights = begun.study.weights
        self.weights = weights / weights.mean()
        self.groups = begun.numbers if len(np.unique(begun.numbers)) < len(weights) else None
        studied = [view.numbers() for view in columns]
        values = [table for table in studied if table is not None]
        self.n_studied = sum(table.shape[1] for table in values)
        values += self._others()
        table = np.hstack(values) if values else np.empty((len(weights), 0))
        share = self.weights / self.weights.sum()
        means = share @ table
        table = table - means
        deviations = np.sqrt(share @ table**2)
        varying = deviations > np.maximum(ACCUMULATED * np.abs(means), TINY)
        self.deviations = deviations[: self.n_studied]
        self.place = np.where(varying, np.cumsum(varying) - 1, -1)[: self.n_studied]
        self.Z = table[:, varying] / deviations[varying]
        self.targets = _coded_targets(begun)

    def _others(self) -> list[np.ndarray]:
        """Return other views of numbers, given which the columns are judged."""
        X = self.begun.data.X
        if not isinstance(X, Views):
            return []
        studied = {view.view for view in self.columns}
        rest = [ColumnsOfView.of(name, X[name], [], None) for name in X if name not in studied]
        return [table for view in rest if (table := view.numbers()) is not None]

    @property
    def predictor(self) -> KernelPredictor:
        return self.begun.fitted._predictor

    def combined(self) -> np.ndarray:
        """Return the kernel of the fitted model, before centring, (n_rows, n_rows)."""
        factors = self.predictor.kernel_factors().mean(axis=0)
        return sum(  # type: ignore[return-value]
            factor * self.begun.study.stack.kernel(j)
            for j, factor in zip(self.predictor.inputs, factors, strict=True)
        )

    def shares(self) -> np.ndarray:
        """Return the part of every column of Z in the combined kernel, if it is linear."""
        shares = np.zeros(self.n_studied)
        kernels = self.begun.source.union.kernels_
        factors = dict(
            zip(self.predictor.inputs, self.predictor.kernel_factors().mean(axis=0), strict=True)
        )
        start = 0
        for view in self.columns:
            stop = start + view.table.shape[1]
            for j in view.kernels:
                if j in factors:
                    X = safe_indexing(self.begun.data.X, [0])
                    shares[start:stop] += factors[j] * squared_factors(kernels[j][1], X)
            start = stop
        of_all = np.zeros(self.Z.shape[1])
        known = self.place >= 0
        of_all[self.place[known]] = (shares * self.deviations**2)[known]
        return of_all

    def effects(self, K: np.ndarray, shares: np.ndarray, target: int) -> Effects:
        """Return the linear effects of all columns of Z on a target."""
        if not self.Z.shape[1]:
            raise ValueError("All columns are constant: none of them can be important.")
        y = self.targets[:, target]
        return linear_effects(self.Z, y, K, shares, self.weights, self.groups)

    def of_studied(self, values: np.ndarray, missing: float) -> np.ndarray:
        """Return values of the columns of Z for the columns of the studied tables."""
        known = self.place >= 0
        result = np.full(self.n_studied, missing)
        result[known] = values[self.place[known]]
        return result

    def chosen(self) -> Iterator[np.ndarray]:
        """Yield the positions of each column or group among those of the studied tables."""
        start = 0
        for view in self.columns:
            for members in view.members:
                yield start + np.array(members)
            start += view.table.shape[1]


def _coded_targets(begun: Begun) -> np.ndarray:
    y = begun.study.y
    if y.dtype.names:
        hazard = cumulative_baseline_hazard(y["event"], y["time"], np.zeros(len(y)))
        return np.asarray(y["event"] - hazard(y["time"]), dtype=float)[:, None]
    if is_classifier(begun.fitted):
        classes = np.unique(y)
        return (y[:, None] == (classes[1:] if len(classes) == 2 else classes)).astype(float)
    if y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y has {y.shape[1]} columns: compute the importance for one target at a time, with "
            "y[:, k]."
        )
    return y.reshape(len(y), 1).astype(float)
