"""Importance of the columns of views, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.utils import gen_batches

from ..display import ColumnImportanceDisplay
from ..estimators.base import KernelEstimator
from ..kernels.slopes import form_of, slopes
from ..utils.sklearn import safe_indexing, warn_caller
from ..utils.versions import aligned
from .column_data import Columns, ColumnsOfView, Measured, columns_of, method_for
from .effects import discoveries, slope_p_values, spectrum, variances
from .importance import Begun, check_numbers_of, half_samples, shown_interval
from .permutation import by_permutation
from .study import DEFAULT_FOLDS, Splits, sensitive_scoring, without_search

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("auto", "linear", "derivative", "permutation")
# Columns that are printed.
_SHOWN = 20
# Entries of blocks of slopes.
_BLOCK = 2**24
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
        """Return a pandas data frame with a row per column. Without pandas, use :meth:`rows`.

        The index has names of views and columns, of a single table those of the columns.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas; rows() returns the same values without it."
            ) from error
        frame = pd.DataFrame(self.rows())
        if any(self.views):
            return frame.set_index(["view", "column"])
        return frame.drop(columns="view").set_index("column")

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


# -- Slopes of models -----------------------------------------------------------------------------


def _slopes_of(
    fitted: Any, begun: Begun, columns: list[ColumnsOfView], rows: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the number of an output, rows, and slopes of the output there, by blocks of rows."""
    predictor = fitted._predictor
    expansion, used = predictor.expansion(), predictor.source.columns
    training = np.arange(len(begun.kept)) if used is None else used
    for block in gen_batches(len(rows), _height(columns)):
        chosen, positions = rows[block], predictor.inputs
        for k, coefficients in enumerate(np.moveaxis(expansion, 2, 0)):
            values = _of_kernels(begun, positions, coefficients, chosen, training, columns)
            yield k, chosen, values


def _height(columns: list[ColumnsOfView]) -> int:
    """Return the number of rows of a block of slopes."""
    return max(1, _BLOCK // sum(view.table.shape[1] for view in columns))


def _of_kernels(
    begun: Begun,
    positions: np.ndarray,
    coefficients: np.ndarray,
    rows: np.ndarray,
    training: np.ndarray,
    columns: list[ColumnsOfView],
) -> np.ndarray:
    """Return slopes of ``Σ_j K_j(x, training) @ coefficients[j]`` at rows, (n_rows, n_columns)."""
    kernels, X, stack = begun.source.union.kernels_, begun.data.X, begun.study.stack
    new, first, old = (safe_indexing(X, chosen) for chosen in (rows, rows[:1], training))
    of_views = []
    for view in columns:
        total: Any = 0.0
        for j, vector in zip(positions, coefficients, strict=True):
            if j not in view.kernels:
                continue
            if form_of(kernels[j][1]) == "linear":
                total = total + slopes(kernels[j][1], first, old, vector[None])  # at all rows
            else:
                spread = np.broadcast_to(vector, (len(rows), len(vector)))
                K = stack.kernel(j)[np.ix_(rows, training)]
                total = total + slopes(kernels[j][1], new, old, spread, K)
        of_views.append(np.broadcast_to(total, (len(rows), view.table.shape[1])))
    return of_views[0] if len(of_views) == 1 else np.hstack(of_views)


def _mean_squares(
    fitted: Any, begun: Begun, columns: list[ColumnsOfView], weights: np.ndarray
) -> np.ndarray:
    """Return weighted mean squared slopes of the outputs, (n_columns of the tables,)."""
    rows, kernels = np.flatnonzero(weights), begun.source.union.kernels_
    if all(form_of(kernels[j][1]) == "linear" for view in columns for j in view.kernels):
        rows = rows[:1]  # slopes are the same at all rows
    total: Any = 0.0
    for _, block, values in _slopes_of(fitted, begun, columns, rows):
        total = total + np.einsum("kc,kc,k->c", values, values, weights[block])
    return np.asarray(total / weights[rows].sum() / fitted._predictor.n_outputs)


def _of_members(squares: np.ndarray, chosen: list[np.ndarray]) -> np.ndarray:
    """Return the root of the sum of squares over each column or group."""
    starts = np.cumsum([0, *map(len, chosen[:-1])])
    sums: np.ndarray = np.add.reduceat(squares[np.concatenate(chosen)], starts)
    return np.sqrt(sums)


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
    found = _slopes_of(table.begun.fitted, table.begun, table.columns, first)
    return np.array([values[0] for _, _, values in found])


def _by_slopes(table: Columns, splits: Splits) -> Measured:
    """Return roots of mean squared slopes of the model, per standard deviation."""
    begun, columns, chosen = table.begun, table.columns, list(table.chosen())
    squares = _mean_squares(begun.fitted, begun, columns, table.weights) * table.deviations**2
    importance = _of_members(squares, chosen)
    n_targets = table.targets.shape[1]
    # The test of a linear effect does not need the model, so that other columns have a linear
    # part, too.
    n_all = max(table.Z.shape[1], 1)
    K, shares = table.Z @ table.Z.T / n_all, np.full(n_all, 1.0 / n_all)
    p_values = []
    for q in range(n_targets):
        effects = table.effects(K, shares, q)
        sizes = np.einsum("ij,ij->j", effects.contrasts, effects.contrasts)
        alone, known = np.zeros((len(table.Z), table.n_studied)), table.place >= 0
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
    predictor, K = table.predictor, table.combined()
    factors = predictor.kernel_factors().mean(axis=0)
    root = np.sqrt(weights)
    values, vectors = spectrum(root[:, None] * K * root, root[:, None])
    scale, noise = variances(values, vectors.T @ (root * y))
    # Without a sign of signal the slopes are those of a strongly regularised model.
    reg = noise / scale if scale > 0.0 else 10.0 * values.max()
    reg = max(reg, 1e-6 * values.max())
    changes, residuals = np.zeros((len(y), table.n_studied)), np.zeros(len(y))
    for train, test in splits:
        system = np.ones((len(train) + 1, len(train) + 1))
        system[:-1, :-1] = K[np.ix_(train, train)] + np.diag(reg / weights[train])
        system[-1, -1] = 0.0
        solution = np.linalg.solve(system, np.append(y[train], 0.0))
        vector = solution[:-1]
        residuals[test] = y[test] - K[np.ix_(test, train)] @ vector - solution[-1]
        coefficients = factors[:, None] * vector
        for block in gen_batches(len(test), _height(table.columns)):
            changes[test[block]] = _of_kernels(
                begun, predictor.inputs, coefficients, test[block], train, table.columns
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
        Columns of a single table by name or position; or groups of them, whose columns are
        measured together, such as ``{"size": ["height", "weight"]}``. For several views a dict
        from the name of a view to such a list or dict, or to None for all its columns; other
        views are not measured. By default all columns of all views.
    method : {"auto", "linear", "derivative", "permutation"}, default="auto"
        "auto" is the first that the kernels of these views allow.
    groups : array-like of shape (n_samples,), optional
        Labels of the groups of samples, such as the patients of several samples each, which are
        not independent.
    scoring : str or callable, optional
        As for :func:`~manykernels.view_importance`; used by permutation only. For classes the
        default is "neg_log_loss" if the estimator has probabilities, which is more sensitive than
        accuracy.
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
    fall of the score at new samples, of the models of the folds; the p-value is that of no fall.

    *Selection* is by the procedure of Benjamini and Hochberg (1995). A column is unimportant if y
    does not depend on it given all other columns; the tests assume that columns depend on each
    other linearly. The stability is the fraction of half-samples, in complementary pairs,
    in which the column is among the ``n_top = √(0.8 n_columns)`` most important; at most about
    one unimportant column is expected to have a stability of 0.9 or more (Shah and Samworth
    2013).

    *Groups and weights.* Standard errors of linear effects are at least those of a jackknife over
    groups, or over rows if their weights differ: a few groups are few samples however many rows
    they have, and rows that count more need not have less noise. The interval of a column that
    varies in one group only is infinite.

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
     0 +2.02 True
     1 -0.79 True
    24 +0.22 False
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
    if isinstance(groups, Mapping):
        raise TypeError("groups are labels of the samples; pass groups of columns as columns=...")
    if scoring is None:
        scoring = sensitive_scoring(estimator)
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
        measured, resampled = by_permutation(
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
