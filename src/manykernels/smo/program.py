"""Program of a support vector machine without its kernel, and the bounds given by a point.

See :mod:`manykernels.smo.box` for the mathematics and notation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ..utils.numerics import ACCUMULATED, EPS, ROUNDING, TINY

# -- The face of the box: some variables are free, the others stay at their bounds ----------------
#
# There the objective of :mod:`manykernels.smo.box` is a quadratic with ``A = (K + diag r)_SS``,
# and its maximum under the equality solves ``A x + b 1 = right, 1·x = 0``.


Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Powers of ten, relative to the mean diagonal, that are added to the diagonal of a matrix one by
# one until it has a Cholesky factor. The first is above the rounding error of the factorisation;
# a matrix that needs more than the last is not positive semi-definite.
_JITTERS = 10.0 ** np.arange(-13, -5)


@cache
def loops() -> Any:
    """Return the module of compiled loops, imported when the first machine is learnt.

    It takes longer to import than the rest of the folder.
    """
    from . import loops

    return loops


def cholesky(matrix: Array, scale: float) -> Array | None:
    """Return the upper Cholesky factor of a symmetric C-ordered matrix.

    The diagonal is increased in place as far as the factorisation needs it, relative to `scale`.
    None if the matrix is not even nearly positive semi-definite.
    """
    diagonal = matrix.reshape(-1)[:: len(matrix) + 1]
    for jitter in _JITTERS:
        diagonal += jitter * scale
        factor, failed = linalg.lapack.dpotrf(matrix.T, lower=0, clean=0)
        if not failed:
            return np.asarray(factor)
    return None


def solve_factored(factor: Array, right: Array) -> Array:
    """Solve the system whose matrix has the given Cholesky factor."""
    solution, _ = linalg.lapack.dpotrs(factor, right, lower=0)
    return np.asarray(solution)


def min_curvature(diagonal: Array) -> float:
    """Return the rounding error of curvatures ``A_ii + A_jj − 2A_ij`` from the diagonal of A."""
    return max(ACCUMULATED * float(diagonal.max(initial=0.0)), TINY)


def step_within(
    v: Array, step: Array, lower: Array, upper: Array, longest: float = 1.0
) -> tuple[Array, float]:
    """Return ``v + t·step`` for the largest ``t ≤ longest`` within the bounds, and t.

    The variable that stops a shorter step is exactly at its bound.
    """
    ends = np.where(step > 0.0, upper, lower)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lengths = np.where(step == 0.0, np.inf, (ends - v) / step)
    first = int(lengths.argmin())
    length = min(longest, float(lengths[first]))
    moved = np.clip(v + length * step, lower, upper)
    if length < longest:
        moved[first] = ends[first]
    return moved, length


class Face:
    """Factorised system of the free variables."""

    def __init__(self, factor: Array) -> None:
        self._factor = factor
        self._ones = solve_factored(factor, np.ones((len(factor), 1)))

    @classmethod
    def of(cls, K: Array, ridge: Array, free: Indices) -> Face | None:
        """Return the face of the variables `free`; None if A is not positive semi-definite."""
        n = len(free)
        matrix = loops().gather(K, free)
        diagonal = matrix.reshape(-1)[:: n + 1]
        diagonal += ridge[free]
        # As 1·x = 0, any multiple of 11ᵀ may be added. This one makes matrices positive definite
        # that are so only for 1·x = 0, such as centred kernels.
        matrix += max(float(diagonal.sum()), -2.0 * float(matrix.sum())) / n**2
        factor = cholesky(matrix, float(diagonal.sum()) / n)
        return None if factor is None else cls(factor)

    def solve(self, right: Array) -> Array:
        """Solve ``A x + b 1 = right, 1·x = 0`` for x, column by column."""
        # The mean of `right` changes b only. Where A is nearly singular, its x would be large and
        # cancel only up to rounding error, so it is subtracted first. (Sums take half the time of
        # means for short columns.)
        n = len(right)
        centred = np.asfortranarray(right - right.sum(axis=0) / n)
        plain = solve_factored(self._factor, centred)
        solution: Array = plain - self._ones * (plain.sum(axis=0) / self._ones.sum())
        solution -= solution.sum(axis=0) / n
        return solution


# -- Symmetric matrices whose rows are computed on demand -----------------------------------------


class Rows:
    """A symmetric matrix (m × m) whose rows are computed when they are first needed.

    Support vectors are often few: a program reads only their rows, and those of the variables that
    steps choose.

    Parameters
    ----------
    values : ndarray of shape (m, m)
        Memory for the matrix, C-ordered. Only rows that are `ready` are valid.
    fill : callable
        ``fill(rows)`` computes these rows of `values`.
    diagonal : ndarray of shape (m,)
        Diagonal of the matrix.

    Attributes
    ----------
    ready : ndarray of shape (m,), bool
        Rows that have been computed.
    """

    def __init__(self, values: Array, fill: Callable[[Indices], None], diagonal: Array) -> None:
        self.values = values
        self.diagonal = diagonal
        self.ready: NDArray[np.bool_] = np.zeros(len(values), dtype=bool)
        self._n_missing = len(values)
        self._fill = fill

    @classmethod
    def of(cls, matrix: Array | Rows) -> Rows:
        """Wrap a complete matrix; return an instance of Rows as is."""
        if isinstance(matrix, Rows):
            return matrix
        rows = cls(matrix, lambda _: None, matrix.diagonal())
        rows.ready[:] = True
        rows._n_missing = 0
        return rows

    def need(self, rows: Indices) -> Array:
        """Compute some distinct rows and return the memory of the matrix."""
        if self._n_missing:
            missing = rows[~self.ready[rows]]
            if len(missing):
                self._fill(missing)
                self.ready[missing] = True
                self._n_missing -= len(missing)
        return self.values

    def product(self, v: Array) -> Array:
        """Return the matrix times `v`, from the rows where `v` is nonzero."""
        if self._n_missing:
            self.need(np.flatnonzero((v != 0.0) & ~self.ready))
        product = np.zeros(len(v))
        loops().add_product(self.values, v, product)
        return product

    def part(self, kept: Indices) -> Rows:
        """Return the submatrix of the rows `kept`; computed rows stay computed."""
        values = np.empty((len(kept), len(kept)))

        def fill(rows: Indices) -> None:
            loops().gather_rows(self.need(kept[rows]), kept, rows, values)

        submatrix = Rows(values, fill, self.diagonal[kept])
        submatrix.need(np.flatnonzero(self.ready[kept]))
        return submatrix

    def whole(self) -> Array:
        """Compute and return the whole matrix."""
        return self.need(np.arange(len(self.values)))


# Relative rounding error of a variable changed by hundreds of steps, or of their sum.
_STEP_ERROR = 10.0 * ROUNDING
# Number of corrections of the sum. Where nearly all of v cancels, the first leaves a rounding
# error as large as the rest, and the next removes it.
_MOST_CORRECTIONS = 3
# Largest shortfall of margins, relative to c, for which scaling the machine is worth trying: P
# grows by the square of the scale. On 80 machines up to C = 1e6, all from 0.01 to 1 do the same.
_MOST_SHORTFALL = 0.1
# Allowed excess of P with the usual bias over the smallest known P: as a fraction of the gap, and
# as a fraction of P where the gap is rounding error. The usual bias is LIBSVM's: where P is least
# on an interval of b, the middle; the best b found is any point of it. A tenth or ten times either
# fraction changes b by 4e-5 at most at a gap of 1e-3, 3e-9 at 1e-7 (70 machines).
_SHARE_OF_GAP, _SHARE_OF_VALUE = 0.1, 1e-10


@dataclass(frozen=True)
class BoxProblem:
    """Program without K, in the notation of :mod:`manykernels.smo.box`.

    Parameters
    ----------
    linear : ndarray of shape (m,)
        c.
    lower, upper : ndarray of shape (m,)
        ``l ≤ 0 ≤ u``; infinite only where r is positive.
    ridge : ndarray of shape (m,)
        r ≥ 0.
    width, total : float, default=0.0
        e and s.
    """

    linear: Array
    lower: Array
    upper: Array
    ridge: Array
    width: float = 0.0
    total: float = 0.0

    def feasible(self, v: Array) -> Array:
        """Return `v` if it is feasible up to rounding error, or else a feasible point near it."""
        if (v < self.lower).any() or (v > self.upper).any():
            v = np.clip(v, self.lower, self.upper)
        for _ in range(_MOST_CORRECTIONS):
            missing = self.total - float(v.sum())
            if abs(missing) <= _STEP_ERROR * max(abs(self.total), float(np.abs(v).sum())):
                # Moving a variable off its bound for a rounding error would be worse.
                break
            v = self._spread(v, missing)
        return v

    def _spread(self, v: Array, missing: float) -> Array:
        """Increase the sum of `v` by `missing` within the bounds.

        Variables with room are used one after the other, those at a bound last.
        """
        end, side = (self.upper, 1.0) if missing > 0 else (self.lower, -1.0)
        room = side * (end - v)
        order = np.argsort((v <= self.lower) | (v >= self.upper), kind="stable")
        share = np.empty(len(v))
        before = np.concatenate([[0.0], np.cumsum(room[order])[:-1]])
        share[order] = np.clip(abs(missing) - before, 0.0, room[order])
        # A variable that uses up its room is put exactly at its bound.
        return np.where(share < room, np.clip(v + side * share, self.lower, self.upper), end)

    def balanced(self, v: Array) -> Array:
        """Correct the sum of `v` to the last digit by a free variable, if there is one.

        Outputs are computed on centred kernels, predictions on others: their difference is
        multiplied by the error of the sum.
        """
        free = np.flatnonzero(self.free(v))
        if not len(free):
            return v
        room = np.minimum(self.upper[free] - v[free], v[free] - self.lower[free])
        chosen = free[np.argmax(room)]
        balanced = v.copy()
        balanced[chosen] += self.total - math.fsum(v)
        inside = self.lower[chosen] < balanced[chosen] < self.upper[chosen]
        return balanced if inside else v

    def snapped(self, v: Array) -> Array:
        """Move variables within rounding error of a bound, or of the kink, exactly there.

        Otherwise they would count as free, and free variables determine the bias.
        """
        snapped = v.copy()
        moved = loops().snap(snapped, self.lower, self.upper, self.width, _STEP_ERROR)
        return snapped if moved else v

    def restricted(self, rows: Indices, v: Array, slopes: Array) -> BoxProblem:
        """Return the program of some of the variables, the others fixed at their values in `v`.

        `slopes` is the c of that program: ``c − K v`` at `rows`, with only the others in v.
        """
        return replace(
            self,
            linear=slopes,
            lower=self.lower[rows],
            upper=self.upper[rows],
            ridge=self.ridge[rows],
            # Not s minus the sum of the others, which has the rounding error of all variables.
            total=float(v[rows].sum()),
        )

    def value(self, v: Array, f: Array) -> float:
        """Return D at v, with ``f = Kv``."""
        linear = float(self.linear @ v) - self.width * float(np.abs(v).sum())
        return linear - 0.5 * float(v @ f) - 0.5 * float(self.ridge @ (v * v))

    def bound(self, v: Array, f: Array, enough: float = 0.0) -> float:
        """Return P of :meth:`machine`."""
        return self.machine(v, f, *self.slopes(v, f), enough)[0]

    def machine(
        self, v: Array, f: Array, up: Array, down: Array, enough: float = 0.0
    ) -> tuple[float, float, float]:
        """Return P, t and b of the machine of v, with coefficients ``t v`` and bias b.

        By default t = 1 with :meth:`bias`, unless its P is clearly above that of the best b for
        t = 1 or for the t at which no margin falls short. (A margin that falls short by ε costs
        Cε, while scaling all of them by 1 + ε costs the fraction 2ε of ``½v·f``, which is much
        less where C is large.) `up` and `down` are the slopes at v. Others are not tried
        if the gap of the usual machine is `enough`.
        """
        usual = self._machine(v, f, 1.0, self.bias(v, up, down))
        value = self.value(v, f)
        if usual[0] - value <= max(enough, _SHARE_OF_VALUE * abs(usual[0])):
            return usual  # no machine has a P below the value
        size = float(np.abs(self.linear).max(initial=0.0))
        shortfall = float(up.max() - down.min()) / size if size else 0.0
        multiples = [1.0, 1.0 + shortfall] if 0.0 < shortfall < _MOST_SHORTFALL else [1.0]
        best_bias = loops().best_bias
        candidates = [
            self._machine(v, f, t, float(best_bias(self.linear - t * f, *self._loss_terms)))
            for t in multiples
        ]
        best = min(candidates)[0]
        allowed = best + _SHARE_OF_GAP * max(best - value, 0.0)
        allowed += _SHARE_OF_VALUE * abs(best)
        return next(machine for machine in (usual, *candidates) if machine[0] <= allowed)

    def _machine(self, v: Array, f: Array, t: float, b: float) -> tuple[float, float, float]:
        """Return P of the coefficients ``t v`` with bias b, then t and b."""
        loss = float(loops().upper_bound(self.linear - t * f, *self._loss_terms, b))
        return loss + 0.5 * t**2 * float(v @ f), t, b

    @property
    def _loss_terms(self) -> tuple[Array, Array, Array, float, float]:
        """Return the arguments of the compiled losses besides outputs and bias."""
        return self.ridge, self.lower, self.upper, self.width, self.total

    @cached_property
    def ceiling(self) -> float:
        """Upper bound on D for every positive semi-definite K: P of v = 0 with bias zero.

        Infinite if all bounds are finite: then D is bounded for all K.
        """
        if np.isfinite(self.upper - self.lower).all():
            return np.inf
        zeros = np.zeros(len(self.linear))
        return self._machine(zeros, zeros, 1.0, 0.0)[0]

    def slopes(self, v: Array, f: Array) -> tuple[Array, Array]:
        """Return up and down, the slopes of D to the right and left of every variable."""
        up, down = np.empty(len(v)), np.empty(len(v))
        slopes = self.linear - f - self.ridge * v
        loops().set_slopes(slopes, v, self.lower, self.upper, self.width, up, down)
        return up, down

    def solution(self, v: Array, f: Array, n_steps: int = 0) -> BoxSolution:
        """Return v with its machine and bounds, where ``f = Kv``."""
        up, down = self.slopes(v, f)
        primal, scale, bias = self.machine(v, f, up, down)
        # The slope of a loss is the bound of its variable, or the variable if it has no bound.
        ends = np.maximum(-self.lower, self.upper)
        reach = np.where(v != 0.0, np.where(np.isfinite(ends), ends, np.abs(v)), 0.0)
        terms = np.abs(self.linear) + np.abs(f) + abs(bias)
        return BoxSolution(
            v=v,
            product=f,
            bias=bias,
            scale=scale,
            primal=primal,
            dual=self.value(v, f),
            violation=float(up.max() - down.min()),
            n_steps=n_steps,
            reach=reach,
            rounding=float(EPS * (reach @ terms)),
        )

    def bias(self, v: Array, up: Array, down: Array) -> float:
        """Return b: the mean over free variables, or the middle of the interval for the others."""
        free = self.free(v)
        if free.any():
            return float((up[free] + down[free]).sum()) / (2 * np.count_nonzero(free))
        low, high = float(up.max()), float(down.min())
        known = [end for end in (low, high) if abs(end) < loops().BLOCKED]
        return sum(known) / len(known) if known else 0.0

    def free(self, v: Array) -> NDArray[np.bool_]:
        """Return the variables strictly between their bounds and, if ``|v|`` has a cost, not 0."""
        inside = (v > self.lower) & (v < self.upper)
        return inside & (v != 0.0) if self.width else inside


@dataclass(frozen=True)
class BoxSolution:
    """A feasible v, its machine, and bounds on the maximum.

    Attributes
    ----------
    v, product : ndarray of shape (m,)
        v and Kv.
    bias, scale : float
        b and t; the coefficients of the machine are ``t v``.
    primal, dual : float
        Upper and lower bound on the maximum of D: P of the machine, and D of v.
    violation : float
        Largest up minus smallest down; not positive at the maximum.
    n_steps : int
        Pair steps taken.
    reach : ndarray of shape (m,)
        Bound on the slope of the loss of each sample: the change of P with ``f_i = (Kv)_i``.
    rounding : float
        Rounding error of P from its sums over samples.
    """

    v: Array
    product: Array
    bias: float
    scale: float
    primal: float
    dual: float
    violation: float
    n_steps: int
    reach: Array
    rounding: float

    @property
    def gap(self) -> float:
        """Duality gap ``primal − dual``."""
        return self.primal - self.dual


def rounding(v: Array, largest: float) -> float:
    """Return the rounding error of ``½vᵀKv``: 8 EPS of its bound for entries up to `largest`."""
    total = float(np.abs(v).sum())
    # A power that overflows would raise an error; a product is infinite.
    return 4.0 * EPS * largest * (total * total)
