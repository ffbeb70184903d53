"""Importance of the columns of views, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, stats
from sklearn.base import clone, is_classifier
from sklearn.utils import gen_batches

from ..display import ColumnImportanceDisplay
from ..estimators.base import KernelEstimator
from ..estimators.kernel_data import KernelPredictor
from ..kernels import KernelStack, Views
from ..kernels.slopes import form_of, slopes, squared_factors
from ..kernels.tables import (
    SharedTable,
    as_numbers,
    as_table,
    column_positions,
    is_frame,
    naming,
)
from ..survival import cumulative_baseline_hazard
from ..utils.sklearn import safe_indexing, warn_caller
from ..utils.versions import aligned
from .effects import (
    Effects,
    discoveries,
    linear_effects,
    slope_p_values,
    spectrum,
    variances,
)
from .importance import Begun, check_numbers_of, half_samples, shown_interval
from .intervals import Intervals
from .study import DEFAULT_FOLDS, Answers, Splits, sample_log_losses, used_views, without_search

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("auto", "linear", "derivative", "permutation")
# Columns that are printed.
_SHOWN = 20
# Rows whose values are exchanged by a permutation that preserves what others predict.
_ALIKE = 6
# Rows of blocks of slopes.
_ROWS = 64
# Share of half-samples above which a column counts as stable.
STABLE = 0.9


# -- Result ---------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ColumnImportance:
    """Importance of columns, returned by :func:`~manykernels.column_importance`.

    Columns, or groups of columns, are sorted by their p-values. Values that were not computed are
    NaN.

    Attributes
    ----------
    method : {"linear", "derivative", "permutation"}
    views : list of str
        View of each column; "" in a single table.
    names : list
        Name of each column or group; its position in tables without names.
    importance, interval : ndarray of shape (n_columns,) and (n_columns, 2)
        Importance by the method, and its interval.
    p_value : ndarray of shape (n_columns,)
    selected : ndarray of bool, (n_columns,)
        Columns that are declared important at the false discovery rate `fdr`.
    stability : ndarray of shape (n_columns,)
        Fraction of half-samples in which the column is among the `n_top` most important ones.
    n_top : int
    coefficient : ndarray of shape (n_columns,) or None
        Coefficients of the fitted model in units of the columns, if the method is "linear"; of
        several classes, of the class whose effect is the clearest.
    fdr, confidence : float
    n_resamples : int
        Number of half-samples.
    scoring : str
        Score whose decrease is measured if the method is "permutation", else "".
    """

    method: str
    views: list[str]
    names: list[Any]
    importance: np.ndarray
    interval: np.ndarray
    p_value: np.ndarray
    selected: np.ndarray
    stability: np.ndarray
    n_top: int
    coefficient: np.ndarray | None = field(repr=False)
    fdr: float
    confidence: float
    n_resamples: int
    scoring: str = ""

    @property
    def false_stable(self) -> float:
        """Bound of the expected number of unimportant columns with a stability of 0.9 or more.

        By Meinshausen and Bühlmann (2010), and Shah and Samworth (2013): ``n_top² / (0.8
        n_columns)``, if no unimportant column is more likely to be chosen than another.
        """
        return self.n_top**2 / ((2.0 * STABLE - 1.0) * len(self.names))

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each column, whose keys are the columns of :meth:`to_frame`."""
        rows = []
        for j, (view, name) in enumerate(zip(self.views, self.names, strict=True)):
            row = {"view": view, "column": name, "importance": float(self.importance[j])}
            row |= {"low": float(self.interval[j, 0]), "high": float(self.interval[j, 1])}
            row |= {"p_value": float(self.p_value[j]), "selected": bool(self.selected[j])}
            row["stability"] = float(self.stability[j])
            if self.coefficient is not None:
                row["coefficient"] = float(self.coefficient[j])
            rows.append(row)
        return rows

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per column. Without pandas, use :meth:`rows`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas; rows() returns the same values without it."
            ) from error
        return pd.DataFrame(self.rows()).set_index(["view", "column"])

    @property
    def labels(self) -> list[str]:
        """Names of the columns as text, with those of their views if there are several."""
        several = len(set(self.views)) > 1
        pairs = zip(self.views, self.names, strict=True)
        return [f"{view}: {name}" if several else str(name) for view, name in pairs]

    @property
    def title(self) -> str:
        """Heading of the importance."""
        of = f" of {self.scoring}" if self.scoring else ""
        return {
            "linear": "Effect of a standard deviation on y",
            "derivative": "Slope of the model, times the standard deviation",
            "permutation": f"Fall{of} if values are exchanged",
        }[self.method]

    @property
    def caption(self) -> str:
        """Sentence about what was selected."""
        return (
            f"{self.selected.sum()} of {len(self.names)} columns selected at a false discovery "
            f"rate of {self.fdr:.0%}; intervals at {self.confidence:.0%}"
        )

    def __str__(self) -> str:
        """Return the table of the first columns, and a line about the method."""
        cells = [["column", "importance", "", "p-value", "selected", "stability"]]
        for j, label in enumerate(self.labels[:_SHOWN]):
            cells.append(
                [
                    label,
                    f"{self.importance[j]:+.3g}",
                    shown_interval(self.interval[j], sign=True),
                    f"{self.p_value[j]:.2g}",
                    "yes" if self.selected[j] else "",
                    "–" if np.isnan(self.stability[j]) else f"{self.stability[j]:.0%}",
                ]
            )
        n_more = len(self.names) - _SHOWN
        more = [f"and {n_more} more"] if n_more > 0 else []
        return "\n".join([self.title, self.caption, "", aligned(cells), *more])

    __repr__ = __str__

    def plot(self, ax: Any = None, *, n_columns: int = 20) -> Figure:
        """Draw the first columns with their intervals.

        The plot is a :class:`~manykernels.display.ColumnImportanceDisplay`.

        Parameters
        ----------
        ax : matplotlib axes, optional
        n_columns : int, default=20
            Number of columns that are drawn.
        """
        display = ColumnImportanceDisplay.from_importance(self, ax=ax, n_columns=n_columns)
        return display.figure_


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
    X.refuse_lacking()
    used = [used_views(kernel) for _, kernel in union.kernels_]
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
            form = form_of(kernel) if len(used_views(kernel)) < 2 else None
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


# -- The parts that all methods share -------------------------------------------------------------


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
        varying = deviations > 1e-12 * np.maximum(np.abs(means), np.finfo(float).tiny)
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


def _slopes_of(
    fitted: Any, begun: Begun, columns: list[ColumnsOfView], rows: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield slopes of outputs at blocks of rows, (n_outputs, n_block, n_columns), and the rows."""
    predictor, kernels, X = fitted._predictor, begun.source.union.kernels_, begun.data.X
    expansion, used = predictor.expansion(), predictor.source.columns
    training = X if used is None else safe_indexing(X, used)
    for block in gen_batches(len(rows), _ROWS):
        chosen = rows[block]
        new = safe_indexing(X, chosen)
        yield (
            np.array(
                [
                    _of_kernels(kernels, predictor.inputs, coefficients, new, training, columns)
                    for coefficients in np.moveaxis(expansion, 2, 0)
                ]
            ),
            chosen,
        )


def _of_kernels(
    kernels: Any,
    positions: np.ndarray,
    coefficients: np.ndarray,
    new: Any,
    training: Any,
    columns: list[ColumnsOfView],
) -> np.ndarray:
    """Return the slopes of ``Σ_j K_j @ coefficients[j]`` at new rows, (n_new, n_columns)."""
    of_views = []
    for view in columns:
        total: Any = 0.0
        n_rows = len(new[view.view]) if view.view else new.shape[0]
        for j, vector in zip(positions, coefficients, strict=True):
            if j in view.kernels:
                spread = np.broadcast_to(vector, (n_rows, len(vector)))
                total = total + slopes(kernels[j][1], new, training, spread)
        of_views.append(np.broadcast_to(total, (n_rows, view.table.shape[1])))
    return np.hstack(of_views)


def _mean_squares(
    fitted: Any, begun: Begun, columns: list[ColumnsOfView], weights: np.ndarray
) -> np.ndarray:
    """Return weighted mean squared slopes of the outputs, (n_columns of the tables,)."""
    rows = np.flatnonzero(weights)
    total: Any = 0.0
    for values, block in _slopes_of(fitted, begun, columns, rows):
        total = total + np.einsum("okc,k->c", values**2, weights[block]) / len(values)
    return np.asarray(total / weights.sum())


def _of_members(squares: np.ndarray, chosen: list[np.ndarray]) -> np.ndarray:
    """Return the root of the sum of squares over each column or group."""
    return np.sqrt([squares[members].sum() for members in chosen])


# -- Methods --------------------------------------------------------------------------------------


def _by_effects(table: Columns, confidence: float) -> Measured:
    """Return linear effects; of several classes, those of the class where each is clearest."""
    chosen = np.array([members[0] for members in table.chosen()], int)
    K, shares, n_targets = table.combined(), table.shares(), table.targets.shape[1]
    found = [table.effects(K, shares, q) for q in range(n_targets)]
    p_values = np.array([table.of_studied(one.p_value, 1.0)[chosen] for one in found])
    best = p_values.argmin(axis=0), np.arange(len(chosen))
    effect, error, degrees = (
        np.array([table.of_studied(getattr(one, name), 0.0)[chosen] for one in found])[best]
        for name in ("effect", "error", "degrees")
    )
    half = stats.t.isf((1.0 - confidence) / 2.0 / n_targets, np.maximum(degrees, 1.0)) * error
    raw = _coefficients(table)
    raw = raw[0, chosen] if len(raw) == 1 else raw[best[0], chosen]
    p_value = np.minimum(n_targets * p_values[best], 1.0)
    return Measured(effect, np.column_stack([effect - half, effect + half]), p_value, raw)


def _coefficients(table: Columns) -> np.ndarray:
    """Return the coefficients of the fitted model, (n_outputs, n_columns of the tables)."""
    first = np.array([0])
    ((values, _),) = _slopes_of(table.begun.fitted, table.begun, table.columns, first)
    return values[:, 0]


def _by_slopes(table: Columns, splits: Splits) -> Measured:
    """Return roots of mean squared slopes of the model, per standard deviation."""
    begun, columns, chosen = table.begun, table.columns, list(table.chosen())
    squares = _mean_squares(begun.fitted, begun, columns, table.weights) * table.deviations**2
    importance = _of_members(squares, chosen)
    n_targets = table.targets.shape[1]
    # The test of a linear effect does not need the model, so that other columns have a linear
    # part, too.
    n_all = table.Z.shape[1]
    K, shares = table.Z @ table.Z.T / n_all, np.full(n_all, 1.0 / n_all)
    p_values = []
    for q in range(n_targets):
        effects = table.effects(K, shares, q)
        sizes = np.einsum("ij,ij->j", effects.contrasts, effects.contrasts)
        alone = np.zeros((len(table.Z), table.n_studied))
        known = table.place >= 0
        # What is left of each column, in standard deviations.
        alone[:, known] = (effects.contrasts / sizes)[:, table.place[known]]
        changes, residuals = _held_out_slopes(table, splits, q)
        p_slope = _slope_test(table, chosen, changes, residuals, alone)
        p_effect = table.of_studied(effects.p_value, 1.0)
        single = np.array([len(members) == 1 for members in chosen])
        first = np.array([members[0] for members in chosen])
        # Two tests: the smaller p-value counts twice.
        either = np.minimum(2.0 * np.minimum(p_slope, p_effect[first]), 1.0)
        p_values.append(np.where(single, either, p_slope))
    p_value = np.minimum(n_targets * np.min(p_values, axis=0), 1.0)
    return Measured(importance, np.full((len(chosen), 2), np.nan), p_value)


def _slope_test(
    table: Columns,
    chosen: list[np.ndarray],
    changes: np.ndarray,
    residuals: np.ndarray,
    alone: np.ndarray,
) -> np.ndarray:
    """Return p-values of the slopes of columns and groups at held-out rows."""
    of_columns = changes * table.deviations
    values = np.empty((len(residuals), len(chosen)))
    for k, members in enumerate(chosen):
        if len(members) == 1:
            values[:, k] = of_columns[:, members[0]] * alone[:, members[0]]
        else:
            rest = _apart_from_others(table, members)
            values[:, k] = np.einsum("ij,ij->i", of_columns[:, members], rest)
    return slope_p_values(values, residuals, table.weights, table.groups)


def _apart_from_others(table: Columns, members: np.ndarray) -> np.ndarray:
    """Return columns of a group less their regression on the nearest columns outside."""
    places = table.place[members]
    Z, group = table.Z, places[places >= 0]
    result = np.zeros((len(Z), len(members)))
    if not len(group):
        return result
    correlations = np.abs(Z[:, group].T @ Z).max(axis=0)
    correlations[group] = -1.0
    number = min(len(Z) // 4, Z.shape[1] - len(group))
    near = np.argsort(-correlations)[:number]
    root = np.sqrt(table.weights)[:, None]
    fit = np.linalg.lstsq(root * Z[:, near], root * Z[:, group], rcond=None)[0]
    result[:, places >= 0] = Z[:, group] - Z[:, near] @ fit
    return result


def _held_out_slopes(table: Columns, splits: Splits, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and residuals, at held-out rows, of ridge regressions on the model's kernel.

    The regression of a target takes the place of the model, so that residuals are in units of the
    slopes for every kind of model. Its λ is the ratio of the variances of noise and signal.
    """
    begun, y, weights = table.begun, table.targets[:, q], table.weights
    predictor, K, X = table.predictor, table.combined(), begun.data.X
    factors = predictor.kernel_factors().mean(axis=0)
    root = np.sqrt(weights)
    values, vectors = spectrum(root[:, None] * K * root, root[:, None])
    scale, noise = variances(values, vectors.T @ (root * y))
    # Without a sign of signal the slopes are those of a strongly regularised model.
    reg = noise / scale if scale > 0.0 else 10.0 * values.max()
    reg = max(reg, 1e-6 * values.max())
    kernels = begun.source.union.kernels_
    changes, residuals = np.zeros((len(y), table.n_studied)), np.zeros(len(y))
    for train, test in splits:
        system = np.ones((len(train) + 1, len(train) + 1))
        system[:-1, :-1] = K[np.ix_(train, train)] + np.diag(reg / weights[train])
        system[-1, -1] = 0.0
        solution = np.linalg.solve(system, np.append(y[train], 0.0))
        vector = solution[:-1]
        residuals[test] = y[test] - K[np.ix_(test, train)] @ vector - solution[-1]
        training = safe_indexing(X, train)
        for block in gen_batches(len(test), _ROWS):
            rows = test[block]
            new = safe_indexing(X, rows)
            coefficients = factors[:, None] * vector
            changes[rows] = _of_kernels(
                kernels, predictor.inputs, coefficients, new, training, table.columns
            )
    return changes, residuals


def _resampled(
    table: Columns, plain: Any, counts: Iterator[np.ndarray], note: Callable[[str], None]
) -> Iterator[np.ndarray]:
    """Yield sizes of the importances in models of half-samples."""
    begun, chosen = table.begun, list(table.chosen())
    for k, resample in enumerate(counts):
        weights = resample * table.weights
        fitted = begun.study.fit(plain, slice(None), resample * begun.study.weights)
        squares = _mean_squares(fitted, begun, table.columns, weights) * table.deviations**2
        note(f"half-sample {k + 1}")
        yield _of_members(squares, chosen)


# -- Permutation ----------------------------------------------------------------------------------


class Permutation:
    """Held-out losses of models if columns of the held-out rows are permuted."""

    def __init__(self, table: Columns, plain: Any, rng: np.random.RandomState) -> None:
        self.table, self.plain, self.rng = table, plain, rng
        self.begun, self.study = table.begun, table.begun.study
        self.predicted = self._predicted()

    def _predicted(self) -> np.ndarray | None:
        """Return what other columns predict of each column of Z, (n_rows, n_columns of Z)."""
        Z, y = self.table.Z, self.table.targets[:, 0]
        if not Z.shape[1]:
            return None
        n_all = Z.shape[1]
        shares = np.full(n_all, 1.0 / n_all)
        effects = linear_effects(Z, y, Z @ Z.T / n_all, shares, self.table.weights)
        sizes = np.einsum("ij,ij->j", effects.contrasts, effects.contrasts)
        predicted: np.ndarray = Z - effects.contrasts / sizes
        return predicted

    def donors(self, members: np.ndarray, place: int) -> np.ndarray:
        """Return for each row the row whose values of a column, or group, it is given.

        Values of a single column of numbers are exchanged between rows for which the other columns
        predict nearly the same value; other values between any rows.
        """
        n_rows = len(self.study.y)
        if place < 0 or len(members) > 1 or self.predicted is None:
            return self.rng.permutation(n_rows)
        order = np.argsort(self.predicted[:, place], kind="stable")
        donors = np.empty(n_rows, int)
        start = self.rng.randint(_ALIKE)
        for alike in np.split(order, range(start, n_rows, _ALIKE)):
            donors[alike] = self.rng.permutation(alike)
        return donors

    def models(self, splits: Splits) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """Fit the models of the folds."""
        study, counts = self.study, self.study.counts
        models = []
        for train, test in splits:
            weights = None if counts is None else counts[train]
            gram = study.stack[np.ix_(train, train)]
            models.append((clone(self.plain).fit(gram, study.y[train], weights), train, test))
        return models

    def losses(
        self,
        models: list[tuple[Any, np.ndarray, np.ndarray]],
        view: ColumnsOfView | None = None,
        members: list[int] | None = None,
        donors: np.ndarray | None = None,
    ) -> Answers:
        """Return held-out predictions; with donors, after columns of a view are replaced."""
        study = self.study
        y, scoring = study.y, study.scoring
        predictions = np.zeros_like(y) if is_classifier(self.plain) else np.zeros(len(y))
        judged = np.zeros(len(y), bool)
        log_losses = np.full(len(y), np.nan) if scoring.needs_probabilities else None
        for model, train, test in models:
            block = study.stack[np.ix_(test, train)]
            if view is not None and members is not None and donors is not None:
                block = self._replaced(block, view, members, donors, train, test)
            predictions[test], judged[test] = model.predict(block), True
            if log_losses is not None:
                logs = model.predict_log_proba(block)
                log_losses[test] = sample_log_losses(model, logs, y[test])
        return Answers(predictions, judged, log_losses)

    def _replaced(
        self,
        block: KernelStack,
        view: ColumnsOfView,
        members: list[int],
        donors: np.ndarray,
        train: np.ndarray,
        test: np.ndarray,
    ) -> KernelStack:
        """Return the block between test and training rows with other values of some columns."""
        X, union = self.begun.data.X, self.begun.source.union
        new = _with_values_of(safe_indexing(X, test), view, members, donors[test])
        part = union.subset(np.array(view.kernels))(new, safe_indexing(X, train))
        data = np.array([block.kernel(j) for j in range(block.n_kernels)])
        row_diag = np.array(block.row_diag)
        data[view.kernels], row_diag[view.kernels] = part.data, part.row_diag
        return KernelStack(
            data, block.names, gram=False, row_diag=row_diag, col_diag=block.col_diag
        )


def _with_values_of(rows: Any, view: ColumnsOfView, members: list[int], donors: np.ndarray) -> Any:
    """Return rows of X with the values that other rows have in some columns of a view."""
    if view.view:
        tables = {name: rows[name] for name in rows}
        tables[view.view] = _exchanged(tables[view.view], view.table, members, donors)
        return tables
    return _exchanged(rows, view.table, members, donors)


def _exchanged(rows: Any, table: Any, members: list[int], donors: np.ndarray) -> Any:
    """Return a table whose columns `members` have the values of the rows `donors` of another."""
    if getattr(rows, "ndim", 2) == 1:
        return safe_indexing(np.asarray(table)[:, 0], donors)
    if sparse.issparse(rows):
        change = sparse.csc_array(table)[:, members][donors] - sparse.csc_array(rows)[:, members]
        places = sparse.csr_array(
            (np.ones(len(members)), (range(len(members)), members)),
            shape=(len(members), rows.shape[1]),
        )
        return sparse.csr_array(rows) + sparse.csr_array(change) @ places
    if is_frame(rows):
        if hasattr(rows, "iloc"):
            new = rows.copy()
            for j in members:
                new.isetitem(j, table.iloc[:, j].array.take(donors))
            return new
        return rows.with_columns([table.to_series(j)[donors.tolist()] for j in members])
    new = rows.copy()
    new[:, members] = table[np.ix_(donors, members)]
    return new


def _by_permutation(
    table: Columns,
    plain: Any,
    splits: Splits,
    n_repeats: int,
    confidence: float,
    counts: Iterator[np.ndarray],
    note: Callable[[str], None],
) -> tuple[Measured, list[np.ndarray]]:
    """Return the fall of the held-out score if each column is permuted."""
    permutation = Permutation(table, plain, table.begun.rng)
    study, scoring = table.begun.study, table.begun.study.scoring
    items = _items(table)
    models = permutation.models(splits)
    plain_answers = permutation.losses(models)
    before = scoring.of(study.y, plain_answers, study.weights)
    share = float(np.mean([study.weights[train].sum() for train, _ in splits]))
    intervals = Intervals(
        study.weights,
        confidence,
        share / float(study.weights.sum()),
        groups=study.groups,
        events=study.y["event"] if scoring.of_pairs else None,
    )
    falls = []
    for view, members, chosen, place in items:
        after = np.mean(
            [
                scoring.of(
                    study.y,
                    permutation.losses(models, view, members, permutation.donors(chosen, place)),
                    study.weights,
                )
                for _ in range(n_repeats)
            ],
            axis=0,
        )
        mean = intervals.of_difference(after, before)
        error = intervals._error(after - before)
        degrees = intervals._judged(after - before)[2] - 1.0
        p_value = float(stats.t.sf(mean.value / error, degrees)) if error > 0.0 else 1.0
        falls.append((mean.value, *mean.interval, p_value))
        note(f"column {len(falls)} of {len(items)}")
    values = np.array(falls)
    resampled = []
    for k, resample in enumerate(counts):
        train, test = np.flatnonzero(resample), np.flatnonzero(resample == 0)
        halves = permutation.models([(train, test)])
        base = scoring.of(study.y, permutation.losses(halves), study.weights)[test].mean()
        resampled.append(
            np.array(
                [
                    scoring.of(
                        study.y,
                        permutation.losses(
                            halves, view, members, permutation.donors(chosen, place)
                        ),
                        study.weights,
                    )[test].mean()
                    - base
                    for view, members, chosen, place in items
                ]
            )
        )
        note(f"half-sample {k + 1}")
    return Measured(values[:, 0], values[:, 1:3], values[:, 3]), resampled


def _items(table: Columns) -> list[tuple[ColumnsOfView, list[int], np.ndarray, int]]:
    """Return the view and positions of each column or group, and the place in Z, or −1."""
    items = []
    start = 0
    for view in table.columns:
        numeric = view.numbers() is not None
        for members in view.members:
            chosen = start + np.array(members)
            place = int(table.place[chosen[0]]) if numeric and len(members) == 1 else -1
            items.append((view, members, chosen, place))
        start += view.table.shape[1] if numeric else 0
    return items


# -- The function ---------------------------------------------------------------------------------


def column_importance(
    estimator: KernelEstimator,
    X: Any,
    y: ArrayLike,
    *,
    columns: Mapping[str, Any] | Sequence[Any] | None = None,
    method: str = "auto",
    groups: ArrayLike | None = None,
    scoring: str | Callable[..., Any] | None = None,
    cv: Any = None,
    n_repeats: int = 5,
    n_resamples: int = 50,
    fdr: float = 0.05,
    confidence: float = 0.95,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    verbose: bool = False,
) -> ColumnImportance:
    """Measure the importance of the columns of views, and select those that matter.

    There are three methods, for three kinds of kernels.

    - **linear**, for kernels that are linear in the columns: the effect of a standard deviation of
      the column on y if all other columns stay the same. The coefficients of the model itself,
      which are shrunk, are given beside it.
    - **derivative**, for Gaussian, polynomial, cosine and linear kernels: the root of the mean
      squared derivative of the model's outputs with respect to the column, times the standard
      deviation of the column.
    - **permutation**, for any kernel: the decrease of the held-out score if the values of the
      column are exchanged between samples.

    Columns are selected by a p-value for each, so that the expected share of columns among those
    selected that tell nothing about y beyond the other columns is at most `fdr`.

    Parameters
    ----------
    estimator : MKFDA, MKRidge, MKSVC, MKCox or another with a weight per kernel at a norm p
        Estimator with its kernels; it is cloned, not fitted. An estimator with a search chooses
        its parameters once, with all samples.
    X, y : as for ``estimator.fit``
        A table, or several as a dict or :class:`~manykernels.Views`; all samples must have all
        views.
    columns : list, dict of str to list, or None, optional
        Columns of a single table by name or position; or groups of them, ``{"group": ["a", "b"]}``,
        whose columns are measured together. For several views a dict from the name of a view to
        such a list or dict, or to None. By default all columns, of the views named here.
    method : {"auto", "linear", "derivative", "permutation"}, default="auto"
        "auto" is the first that the kernels of these views allow.
    groups : array-like of shape (n_samples,), optional
        Labels of the groups of samples, such as the patients of several samples each, which are
        not independent.
    scoring : str or callable, optional
        As for :func:`~manykernels.view_importance`; used by permutation only.
    cv : int, splitter or iterable of splits, optional
        Folds that are held out, by default five; not used by the linear method.
    n_repeats : int, default=5
        Number of permutations of each column.
    n_resamples : int, default=50
        Number of half-samples. With fewer than two, there is no stability, and derivatives have no
        intervals.
    fdr : float in (0, 1), default=0.05
        False discovery rate of the selection.
    confidence : float in (0, 1), default=0.95
        Confidence level of the intervals.
    sample_weight : array-like of shape (n_samples,), optional
    random_state : int, RandomState or None, default=0
        Seed of folds, half-samples and permutations.
    verbose : bool, default=False
        Whether to print a line per model.

    Returns
    -------
    importance : ColumnImportance
        ``print(importance)`` prints the first columns, ``importance.to_frame()`` returns all of
        them, ``importance.plot()`` draws them.

    Notes
    -----
    *Linear.* The effect is on the numbers y; of classes, on the probability of the second of two
    classes, or of the class where it is clearest; of survival times, on the martingale residuals
    (the number of events more than expected). It is estimated in a mixed model: the column, the
    columns nearest to it and a few that predict y best have fixed effects, and the kernel of the
    fitted model stands for all others; with at least four samples per column all are fixed. The
    interval is for the coefficient, per standard deviation of the column, of the linear regression
    of y on all columns in the population. It does not depend on the regularisation of the
    estimator, and shrinkage does not bias it. Columns that repeat others have wide intervals; pass
    them as a group.

    *Derivative.* The importance describes the fitted model. The interval has the spread over
    half-samples; it is for the mean importance in models of as many new samples, which is above
    zero even for noise. Therefore p-values come from tests of their own: whether held-out samples
    confirm the slopes of the model in the part of the column that the others do not predict
    (the generalised covariance measure), and whether the column has a linear effect; the
    smaller p-value counts twice. Groups have the first test only.

    *Permutation.* Values of a column of numbers are exchanged between samples for which the other
    columns predict nearly the same value, so that a column is not important merely because it
    is correlated with another; categories, strings and groups of columns are exchanged between
    any samples. The interval, Student's with the variance of Nadeau and Bengio (2003), is for the
    fall of the score at new samples; the p-value is that of no fall. Scores by probabilities,
    such as "neg_log_loss", are more sensitive than accuracy.

    *Selection* is by the procedure of Benjamini and Hochberg (1995). A column is unimportant if y
    does not depend on it given all other columns; the tests assume that columns depend on each
    other linearly. The stability is the fraction of half-samples, in complementary pairs,
    in which the column is among the ``n_top = √(0.8 n_columns)`` most important; at most about
    one unimportant column is expected to have a stability of 0.9 or more (Shah and Samworth
    2013).

    Coverage, false discoveries and power are measured in docs/benchmarks/columns.md.

    *Cost.* For n samples and q columns, a model takes ``n² q`` operations for linear and Gaussian
    kernels, and there are as many models as half-samples; memory is that of a few dense tables.
    Permutation computes kernels `n_repeats` times for each column.

    References
    ----------
    Y. Benjamini, Y. Hochberg. Controlling the false discovery rate. Journal of the Royal
    Statistical Society B 57, 1995.
    V. Segura et al. An efficient multi-locus mixed-model approach for genome-wide association
    studies in structured populations. Nature Genetics 44, 2012.
    R. Shah, J. Peters. The hardness of conditional independence testing and the generalised
    covariance measure. Annals of Statistics 48, 2020.
    R. Shah, R. Samworth. Variable selection with error control: another look at stability
    selection. Journal of the Royal Statistical Society B 75, 2013.

    Examples
    --------
    Of thirty columns two matter; the third is correlated with the second:

    >>> import numpy as np
    >>> from manykernels import MKRidge, column_importance
    >>> from manykernels.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 30))
    >>> X[:, 2] += X[:, 1]
    >>> y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(150)
    >>> result = column_importance(MKRidge(Linear()), X, y)
    >>> for row in result.rows()[:3]:
    ...     print(f"{row['column']:2d} {row['importance']:+.2f} {row['selected']}")
     0 +1.92 True
     1 -1.07 True
    12 +0.27 False
    >>> column_importance(MKRidge(RBF()), X, y, n_resamples=0).names[:2]
    [0, 1]

    Groups of columns:

    >>> halves = {"first half": range(15), "second half": range(15, 30)}
    >>> result = column_importance(MKRidge(Linear()), X, y, columns=halves)
    >>> result.names, result.selected
    (['first half', 'second half'], array([ True, False]))
    """
    check_numbers_of(n_resamples, confidence)
    _check_options(method, n_repeats, fdr)
    source = getattr(vars(estimator).get("_predictor"), "source", None) if _is(estimator) else None
    if source is not None and not estimator._is_precomputed:
        source.read(estimator, X)  # a fitted estimator takes the columns of its fit
    begun = Begun.of(
        "column_importance", estimator, X, y, groups, scoring, sample_weight, random_state
    )
    views = columns_of(begun, columns)
    method = method_for(method, begun, views)
    table = Columns(begun, views)
    plain = without_search(begun.learner, begun.fitted)
    counts = half_samples(begun.strata, begun.numbers, n_resamples, begun.rng)

    def note(title: str) -> None:
        if verbose:
            print(f"[column_importance] {title}")

    resampled: list[np.ndarray] = []
    if method == "permutation":
        splits = begun.splits(DEFAULT_FOLDS if cv is None else cv)
        assert splits is not None
        measured, resampled = _by_permutation(
            table, plain, splits, n_repeats, confidence, counts, note
        )
    else:
        if method == "linear":
            measured = _by_effects(table, confidence)
        else:
            splits = begun.splits(DEFAULT_FOLDS if cv is None else cv)
            assert splits is not None
            measured = _by_slopes(table, splits)
        try:
            for sizes in _resampled(table, plain, counts, note):
                resampled.append(sizes)
        except KeyboardInterrupt:
            warn_caller(
                f"column_importance was interrupted after {len(resampled)} half-samples.",
                RuntimeWarning,
            )
    interval = measured.interval
    if method == "derivative" and len(resampled) > 1:
        quantile = stats.t.isf((1.0 - confidence) / 2.0, len(resampled) - 1)
        half = quantile * np.std(resampled, axis=0, ddof=1)
        low = np.maximum(measured.importance - half, 0.0)
        interval = np.column_stack([low, measured.importance + half])
    names = [name for view in views for name in view.names]
    of_view = [view.view for view in views for _ in view.names]
    n_top = max(1, int(np.sqrt((2.0 * STABLE - 1.0) * len(names))))
    selected = discoveries(measured.p_value, fdr)
    order = np.lexsort([-np.abs(measured.importance), measured.p_value])
    return ColumnImportance(
        method=method,
        views=[of_view[j] for j in order],
        names=[names[j] for j in order],
        importance=measured.importance[order],
        interval=interval[order],
        p_value=measured.p_value[order],
        selected=selected[order],
        stability=_stability(resampled, n_top, len(names))[order],
        n_top=n_top,
        coefficient=None if measured.coefficient is None else measured.coefficient[order],
        fdr=fdr,
        confidence=confidence,
        n_resamples=len(resampled),
        scoring=begun.study.scoring.name if method == "permutation" else "",
    )


def _stability(resampled: list[np.ndarray], n_top: int, n_columns: int) -> np.ndarray:
    """Return the fraction of half-samples in which each column is among the largest."""
    if len(resampled) < 2:
        return np.full(n_columns, np.nan)
    often = np.zeros(n_columns)
    for sizes in resampled:
        often[np.argsort(-sizes, kind="stable")[:n_top]] += 1.0
    return often / len(resampled)


def _is(estimator: object) -> bool:
    return isinstance(estimator, KernelEstimator)


def _check_options(method: object, n_repeats: object, fdr: object) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}.")
    if not isinstance(n_repeats, Integral) or isinstance(n_repeats, bool) or n_repeats < 1:
        raise ValueError(f"n_repeats must be an integer, 1 or more; got {n_repeats!r}.")
    if not isinstance(fdr, Real) or not 0.0 < float(fdr) < 1.0:
        raise ValueError(f"fdr must be between 0 and 1, such as 0.05; got {fdr!r}.")
