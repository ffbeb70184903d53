"""Effects of single columns among very many, with standard errors and p-values.

The linear effect of a column on y is estimated in a mixed model, ``y = F b + u + e``. The
fixed effects F are the column, the columns most correlated with it, and a few columns that predict
y best; u is a Gaussian process with the covariance of the model's kernel, which stands for all
other columns; and e is noise. The two variances are estimated by restricted maximum likelihood
(REML), and b by generalised least squares. An effect that is fixed has the same estimate
whether or not the column is part of the covariance of u; its variance is smaller without. If there
are enough rows for all columns, all of them are fixed, and the estimate is that of least squares.

The test of the slope of a smooth model compares, at held-out rows, the residual of the model with
the change that the model predicts for the column: ``(r + d)(d − mean d)``, with ``d = slope times
(column − its prediction from the other columns)`` and r + d the residual without the column. The
expectation is zero if y depends on the column only through the others, and positive if the model
has learnt something from the column. Every pair of rows of different folds occurs twice, once in
each direction, hence a variance twice that of independent rows.

References
----------
H. Kang et al. Efficient control of population structure in model organism association mapping.
Genetics 178, 2008.
V. Segura et al. An efficient multi-locus mixed-model approach for genome-wide association studies
in structured populations. Nature Genetics 44, 2012.
R. Shah, J. Peters. The hardness of conditional independence testing and the generalised covariance
measure. Annals of Statistics 48, 2020.
Y. Benjamini, Y. Hochberg. Controlling the false discovery rate. Journal of the Royal Statistical
Society B 57, 1995.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize, sparse, stats

from ..utils.numerics import ROUNDING

# All other columns are fixed effects if there are this many rows for each of them, else the
# nearest ones: a tenth as many as rows, at least ten.
_ROWS_PER_COLUMN = 4
_SHARE_OF_NEAREST, _FEWEST_NEAREST = 0.1, 10
# Columns that predict y enter as fixed effects while their p-value, times the number of columns,
# is below this.
_ENTER = 0.05
# Of more columns than this, the nearest ones are looked for only if a first test without them
# has a small p-value. The larger of the two p-values counts.
_MOST_COLUMNS, _SMALL = 5000, 0.05
# Entries of temporary arrays.
_BLOCK = 2**24
# Added to the diagonal of correlation matrices: columns that repeat others have no effect of
# their own, and a huge standard error.
_JITTER = 1e-10
# Directions that a group of rows alone determines have a variance without it that is smaller, as a
# share of the mean.
_DETERMINED = 1e-8


@dataclass(frozen=True)
class Effects:
    """Linear effects of columns, per standard deviation of each column.

    Attributes
    ----------
    effect, error : ndarray of shape (n_columns,)
        Estimates and their standard errors.
    degrees : ndarray of shape (n_columns,)
        Degrees of freedom of Student's distribution.
    p_value : ndarray of shape (n_columns,)
        Two-sided.
    contrasts : ndarray of shape (n_rows, n_columns)
        Vectors c with ``effect = c·y``: columns less their prediction from the others, scaled.
    """

    effect: np.ndarray
    error: np.ndarray
    degrees: np.ndarray
    p_value: np.ndarray
    contrasts: np.ndarray


def linear_effects(
    Z: np.ndarray,
    y: np.ndarray,
    K: np.ndarray,
    shares: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray | None = None,
) -> Effects:
    """Estimate the linear effect of every column on y.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
        Columns of mean zero and variance one, none of them constant.
    y : ndarray of shape (n_rows,)
    K : ndarray of shape (n_rows, n_rows)
        Covariance of the random effects, up to a factor.
    shares : ndarray of shape (n_columns,)
        Part ``shares[j] z_j z_jᵀ`` of column j in K; 0 if it has no linear part.
    weights : ndarray of shape (n_rows,)
        Sample weights of mean one.
    groups : ndarray of shape (n_rows,), optional
        Groups of rows that are not independent. Standard errors are then at least those of a
        jackknife over groups, infinite for columns that vary in one group only. If weights differ,
        every row is a group by default: heavy rows need not have less noise.
    """
    if groups is None and np.ptp(weights) > ROUNDING * np.max(weights):
        groups = np.arange(len(weights))
    # With weights w the noise has the variances 1/w: in units of 1/√w all are equal.
    root = np.sqrt(weights)
    Z, y, K = root[:, None] * Z, root * y, root[:, None] * K * root
    n_rows, n_columns = Z.shape
    n_near = max(_FEWEST_NEAREST, int(_SHARE_OF_NEAREST * n_rows))
    everything = n_columns * _ROWS_PER_COLUMN <= n_rows or n_columns - 1 <= n_near
    fixed, scale, noise = _first_effects(Z, y, K, shares, root, everything)
    values, vectors = spectrum(K, root[:, None])
    stretch = 1.0 / np.sqrt(scale * values + noise)
    W, v = stretch[:, None] * (vectors.T @ Z), stretch * (vectors.T @ y)
    white = _White(W, v, scale * shares)
    if everything:
        effect, error, degrees, combined = white.all_fixed()
    else:
        effect, error, degrees, combined = white.given(fixed, np.empty((n_columns, 0), int))
        first, every = _two_sided(effect, error, degrees), n_columns <= _MOST_COLUMNS
        closer = np.arange(n_columns) if every else np.flatnonzero(first < _SMALL)
        refined = white.given(fixed, _nearest(Z, closer, fixed, n_near), closer)
        effect[closer], error[closer], degrees[closer] = refined[:3]
        combined[:, closer] = refined[3]
    contrasts = root[:, None] * (vectors @ (stretch[:, None] * combined))
    if groups is not None:
        _, groups = np.unique(groups, return_inverse=True)
        left = np.eye(len(v)) - W @ combined.T if everything else None
        half = vectors * stretch
        inverse = half @ half.T if left is None else half @ left @ half.T
        of_groups = _error_of_groups(contrasts, inverse, y, root, groups)
        error = np.maximum(error, of_groups)
        degrees = np.minimum(degrees, max(groups.max(), 1))
    p_value = _two_sided(effect, error, degrees)
    if not everything and n_columns > _MOST_COLUMNS:
        p_value = np.maximum(p_value, first)
    return Effects(effect, error, degrees, p_value, contrasts)


def _first_effects(
    Z: np.ndarray,
    y: np.ndarray,
    K: np.ndarray,
    shares: np.ndarray,
    root: np.ndarray,
    everything: bool,
) -> tuple[np.ndarray, float, float]:
    """Return columns that predict y best, and the variances of random effects and noise."""
    n_rows, n_columns = Z.shape
    chosen: list[int] = []
    while True:
        values, vectors = spectrum(K, np.column_stack([root, Z[:, chosen]]))
        projected = vectors.T @ y
        scale, noise = variances(values, projected)
        if everything or len(chosen) >= _SHARE_OF_NEAREST * n_rows:
            break
        stretch = 1.0 / np.sqrt(scale * values + noise)
        W = stretch[:, None] * (vectors.T @ Z)
        squares = np.einsum("ij,ij->j", W, W)
        # A column that repeats chosen ones has nothing left.
        known = squares > ROUNDING * np.median(squares)
        known[chosen] = False
        squares = np.where(known, squares, 1.0)
        variance = np.maximum(1.0 / squares - scale * shares, ROUNDING / squares)
        z = np.where(known, W.T @ (stretch * projected) / squares / np.sqrt(variance), 0.0)
        best = int(np.argmax(np.abs(z)))
        if 2.0 * stats.t.sf(abs(z[best]), len(projected) - 1) * n_columns > _ENTER:
            break
        chosen.append(best)
    return np.array(chosen, int), scale, noise


def spectrum(K: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors of K on the complement of the fixed effects."""
    complement = linalg.qr(fixed)[0][:, fixed.shape[1] :]
    values, vectors = linalg.eigh(complement.T @ K @ complement, driver="evd")
    return np.maximum(values, 0.0), complement @ vectors


def variances(values: np.ndarray, projected: np.ndarray) -> tuple[float, float]:
    """Return the REML estimates of the factor of K and of the variance of the noise."""

    def objective(log_ratio: float) -> float:
        total = values * np.exp(log_ratio) + 1.0
        return 0.5 * float(
            len(values) * np.log(np.mean(projected**2 / total)) + np.log(total).sum()
        )

    largest = float(values.max(initial=0.0))
    constant = float(np.mean(projected**2))
    if largest <= 0.0 or constant <= 0.0:
        return 0.0, constant or 1.0  # y is constant
    grid = -np.log(largest) + np.linspace(-8.0, 12.0, 41)
    best = int(np.argmin([objective(x) for x in grid]))
    if best == 0:
        return 0.0, constant
    bounds = grid[best - 1], grid[min(best + 1, len(grid) - 1)]
    ratio = np.exp(optimize.minimize_scalar(objective, bounds=bounds, method="bounded").x)
    noise = float(np.mean(projected**2 / (values * ratio + 1.0)))
    return float(noise * ratio), noise


@dataclass(frozen=True)
class _White:
    """Columns W and target v in units in which rows are independent, of variance one.

    `own` are the variances of the random effects of the columns themselves.
    """

    W: np.ndarray
    v: np.ndarray
    own: np.ndarray

    def all_fixed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return effects, errors, degrees and combinations of W, with all columns fixed."""
        W, v = self.W, self.v
        sizes = np.sqrt(np.einsum("ij,ij->j", W, W))
        W = W / sizes
        gram = W.T @ W + _JITTER * np.eye(W.shape[1])
        inverse = linalg.inv(gram)
        combined = W @ inverse
        effect = combined.T @ v
        degrees = len(v) - W.shape[1]
        spread = np.sum((v - W @ effect) ** 2) / degrees
        variance = np.maximum(np.diag(inverse) / sizes**2 - self.own, ROUNDING / sizes**2)
        error = np.sqrt(variance * spread)
        return effect / sizes, error, np.full(W.shape[1], float(degrees)), combined / sizes

    def given(
        self, fixed: np.ndarray, near: np.ndarray, columns: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the same of `columns`, given fixed columns and those near to each of them."""
        n_white, n_all = self.W.shape
        columns = np.arange(n_all) if columns is None else columns
        sizes = np.sqrt(np.einsum("ij,ij->j", self.W, self.W))
        W = self.W / sizes
        right, number = W.T @ self.v, 1 + len(fixed) + near.shape[1]
        products = W.T @ W if n_all <= _MOST_COLUMNS else None
        rows = None if products is not None else np.ascontiguousarray(W.T)
        variance, effect, degrees, spread = np.empty((4, len(columns)))
        inverses = np.empty((len(columns), number))
        listed = np.hstack([columns[:, None], np.tile(fixed, (len(columns), 1)), near])
        step = max(1, _BLOCK // (number * max(number, n_white)))
        for start in range(0, len(columns), step):
            part = slice(start, start + step)
            places = listed[part]
            if products is not None:
                gram = products[places[:, :, None], places[:, None, :]]
            else:
                assert rows is not None
                gram = rows[places] @ rows[places].transpose(0, 2, 1)
            # A column that is fixed itself does not occur twice.
            twice = places == places[:, :1]
            twice[:, 0] = False
            gram[twice[:, :, None] | twice[:, None, :]] = 0.0
            gram[:, range(number), range(number)] += _JITTER + twice
            wanted = np.zeros((*places.shape, 2))
            wanted[:, 0, 0], wanted[:, :, 1] = 1.0, np.where(twice, 0.0, right[places])
            inverse, coefficients = np.moveaxis(np.linalg.solve(gram, wanted), 2, 0)
            degrees[part] = n_white - number + twice.sum(axis=1)
            explained = np.sum(coefficients * wanted[:, :, 1], axis=1)
            spread[part] = np.maximum(self.v @ self.v - explained, 0.0) / degrees[part]
            effect[part], variance[part] = coefficients[:, 0], inverse[:, 0]
            inverses[part] = np.where(twice, 0.0, inverse)
        size = sizes[columns]
        variance = np.maximum(variance / size**2 - self.own[columns], ROUNDING / size**2)
        pairs = np.arange(len(columns)).repeat(number), listed.ravel()
        factors = sparse.csr_array((inverses.ravel(), pairs), shape=(len(columns), n_all))
        combined = (factors @ W.T).T / size
        return effect / size, np.sqrt(variance * spread), degrees, combined


def _nearest(Z: np.ndarray, columns: np.ndarray, fixed: np.ndarray, number: int) -> np.ndarray:
    """Return the columns most correlated with each of `columns`, but for the fixed ones."""
    near = np.empty((len(columns), number), int)
    step = max(1, _BLOCK // Z.shape[1])
    single = Z.astype(np.float32)
    for start in range(0, len(columns), step):
        chosen = columns[start : start + step]
        correlations = np.abs(single[:, chosen].T @ single)
        correlations[np.arange(len(chosen)), chosen] = -1.0
        correlations[:, fixed] = -1.0
        near[start : start + step] = np.argpartition(-correlations, number - 1)[:, :number]
    return near


def _error_of_groups(
    contrasts: np.ndarray, inverse: np.ndarray, y: np.ndarray, root: np.ndarray, groups: np.ndarray
) -> np.ndarray:
    """Return standard errors from sums over groups of rows of contrasts times residuals.

    The residuals are those of models without the group (the jackknife, or CR3): a few groups have
    much influence on the model, and residuals that are much smaller than those of new groups.
    `inverse` maps y, in units of 1/√w, to residuals times the inverse of their covariance.
    """
    residuals, contrasts = inverse @ y, contrasts / root[:, None]
    sizes = np.sqrt(np.sum(contrasts**2, axis=0))
    n_groups, n_columns = int(groups.max()) + 1, contrasts.shape[1]
    squares, unknown = np.zeros(n_columns), np.zeros(n_columns, bool)
    least = _DETERMINED * np.trace(inverse) / len(inverse)
    for group in range(n_groups):
        rows = np.flatnonzero(groups == group)
        values, vectors = linalg.eigh(inverse[np.ix_(rows, rows)])
        parts = vectors.T @ contrasts[rows]
        # What the group alone determines, nothing can be said about without it.
        alone = values <= least
        unknown |= np.any(np.abs(parts[alone]) > np.sqrt(_DETERMINED) * sizes, axis=0)
        left = (vectors.T @ residuals[rows])[~alone] / values[~alone]
        squares += (left @ parts[~alone]) ** 2
    return np.where(unknown, np.inf, np.sqrt(squares * (n_groups - 1) / n_groups))


def _two_sided(effect: np.ndarray, error: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    ratio = np.divide(np.abs(effect), error, np.zeros_like(effect), where=error > 0.0)
    p_value: np.ndarray = 2.0 * stats.t.sf(ratio, degrees)
    return p_value


def slope_p_values(
    changes: np.ndarray, residuals: np.ndarray, weights: np.ndarray, groups: np.ndarray | None
) -> np.ndarray:
    """Return one-sided p-values of changes that held-out residuals confirm, (n_columns,).

    Parameters
    ----------
    changes : ndarray of shape (n_rows, n_columns)
        Slope at each row, times the part of the column that other columns do not predict.
    residuals : ndarray of shape (n_rows,)
    weights, groups : as for :func:`linear_effects`
    """
    share = weights / weights.sum()
    values = (residuals[:, None] + changes) * (changes - share @ changes) * weights[:, None]
    if groups is not None:
        _, number = np.unique(groups, return_inverse=True)
        sums = np.zeros((number.max() + 1, values.shape[1]))
        np.add.at(sums, number, values)
        values = sums
    means, n = values.mean(axis=0), len(values)
    error = np.sqrt(2.0) * values.std(axis=0, ddof=1) / np.sqrt(n)
    ratio = np.divide(means, error, np.full(len(means), -np.inf), where=error > 0)
    p_value: np.ndarray = stats.t.sf(ratio, n - 1)
    return p_value


def discoveries(p_value: np.ndarray, rate: float) -> np.ndarray:
    """Return which p-values the procedure of Benjamini and Hochberg declares, (n,)."""
    adjusted = stats.false_discovery_control(np.clip(p_value, 0.0, 1.0))
    chosen: np.ndarray = adjusted <= rate
    return chosen
