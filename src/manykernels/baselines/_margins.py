"""The linear program of LP-β and LP-B: weights with which classes have the largest soft margin.

f_{m,c}(x) is the output of the machine of kernel m for class c. With weights B_m^c

    min_{B, ξ, ρ}  −ρ + 1/(νN) Σ_i ξ_i                                 Gehler & Nowozin (2009)
    s.t.           Σ_m B_m^{y_i} f_{m,y_i}(x_i) − Σ_m B_m^y f_{m,y}(x_i) + ξ_i ≥ ρ   for y ≠ y_i
                   Σ_m B_m^c = 1 for every class c,   B ≥ 0,   ξ ≥ 0

In LP-β all classes have the same weights β. A sample of weight w_i counts w_i times, and N is the
sum of the weights. Given B, with the margins M_i, the smallest left sides without ξ_i, the rest is
the program of a one-class machine, ``min_ρ −ρ + 1/(νN) Σ_i w_i max(0, ρ − M_i)``: ρ is the
ν-quantile of the margins, and the minimum is minus the mean of the margins below it.

For any ``u_iy ≥ 0`` with ``Σ_y u_iy ≤ w_i/(νN)`` and ``Σ u = 1``, which exist for ν ≤ 1,

    minimum ≥ −Σ_c max_m a_m^c ,   a_m^c = Σ_iy u_iy ([c = y_i] − [c = y]) f_{m,c}(x_i)

(in LP-β ``−max_m Σ_c a_m^c``), with equality for the multipliers of the constraints. Both bounds
are computed from the outputs, whatever the solver of the program says.

For two classes the outputs are f and −f. Then only the mean of B^1 and B^2 matters, and LP-B is
LP-β.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from .._rounding import ROUNDING
from ..losses import Certificate
from ..losses.hinge import one_class_problem
from ..solvers.linear import LinearProgram
from ._thresholds import best_threshold

Array = np.ndarray

# A kernel without weight may as well have some if its a is this near to the largest, in units of
# the largest output: ten times the accuracy with which the program is solved.
_AS_GOOD = 1e-9


@dataclass(frozen=True)
class MarginProgram:
    """The program of samples with known outputs.

    Attributes
    ----------
    outputs : ndarray of shape (n_kernels, n_samples, n_classes)
        f, with −f and f for two classes.
    labels : ndarray of shape (n_samples,)
        y.
    sample_weight : ndarray of shape (n_samples,)
        w.
    nu : float in (0, 1]
    shared : bool
        Whether all classes have the same weights: LP-β.
    """

    outputs: Array
    labels: Array
    sample_weight: Array
    nu: float
    shared: bool

    def solve(self, tol: float) -> Mixture:
        """The best weights, certified for the relative gap `tol`."""
        n_kernels, n_samples, _ = self.outputs.shape
        size = float(np.abs(self.outputs).max()) or 1.0
        n_weights = self.n_groups * n_kernels
        program = LinearProgram()
        # Columns: the weights group by group, ρ, then ξ; the last two in units of `size`.
        costs = np.concatenate([np.zeros(n_weights), [-1.0], self._prices])
        program.add_columns(
            costs,
            np.concatenate([np.zeros(n_weights), [-np.inf], np.zeros(n_samples)]),
        )
        sums = sparse.kron(sparse.eye_array(self.n_groups), np.ones((1, n_kernels)))
        nothing = sparse.csr_array((self.n_groups, 1 + n_samples))
        program.add_rows(1.0, sparse.hstack([sums, nothing]), 1.0)
        samples, _ = self._rivals
        slacks = sparse.eye_array(n_samples, format="csr")[samples]
        ones = np.ones((len(samples), 1))
        program.add_rows(0.0, sparse.hstack([self._differences / size, -ones, slacks]))
        found = program.solve()
        weights = self._checked(found.values)
        multipliers = self._feasible(found.multipliers[self.n_groups :])
        attained = self._attained(multipliers)
        as_good = attained >= attained.max(axis=1, keepdims=True) - _AS_GOOD * size
        if (as_good & (weights == 0.0)).any():
            # Other weights may be optimal, too, and which ones the simplex method finds depends on
            # rounding, so that rows of weight two and repeated rows would get different ones. Take
            # those of earlier kernels.
            program.add_rows(-np.inf, costs[None], float(costs @ found.values))
            earlier = np.tile(np.arange(n_kernels) / n_kernels, self.n_groups)
            program.change_costs(np.concatenate([earlier, np.zeros(1 + n_samples)]))
            chosen = program.solve()
            weights = weights if chosen.failure else self._checked(chosen.values)
        return self._certified(weights, multipliers, tol)

    def _checked(self, values: Array) -> Array:
        """The weights among the values of all columns: not negative, of the sum one."""
        n_kernels = len(self.outputs)
        weights = np.maximum(values[: self.n_groups * n_kernels], 0.0)
        weights = weights.reshape(self.n_groups, n_kernels)
        totals = weights.sum(axis=1, keepdims=True)
        return np.where(totals > 0.0, weights, 1.0) / np.where(totals > 0.0, totals, n_kernels)

    def _attained(self, u: Array) -> Array:
        """a of every weight, (n_groups, n_kernels)."""
        attained: Array = (u @ self._differences).reshape(self.n_groups, -1)
        return attained

    @property
    def n_groups(self) -> int:
        """How many weight vectors there are."""
        return 1 if self.shared else self.outputs.shape[2]

    @property
    def _prices(self) -> Array:
        """Costs of the slacks, ``w_i/(νN)``."""
        prices: Array = self.sample_weight / (self.nu * self.sample_weight.sum())
        return prices

    @cached_property
    def _rivals(self) -> tuple[Array, Array]:
        """i and y of every constraint."""
        samples, classes = np.nonzero(np.arange(self.outputs.shape[2]) != self.labels[:, None])
        return samples, classes

    @cached_property
    def _differences(self) -> sparse.csr_array:
        """Coefficients of the weights in the constraints."""
        samples, rivals = self._rivals
        own = self.outputs[:, samples, self.labels[samples]].T
        other = self.outputs[:, samples, rivals].T
        if self.shared:
            return sparse.csr_array(own - other)
        n_rows, n_kernels = own.shape
        kernels = np.arange(n_kernels)
        columns = [self.labels[samples, None] * n_kernels + kernels]
        columns.append(rivals[:, None] * n_kernels + kernels)
        rows = np.repeat(np.arange(n_rows), 2 * n_kernels)
        entries = np.hstack([own, -other]).ravel()
        shape = (n_rows, self.n_groups * n_kernels)
        return sparse.csr_array((entries, (rows, np.hstack(columns).ravel())), shape=shape)

    def _feasible(self, multipliers: Array) -> Array:
        """u near the multipliers of the constraints, which are feasible up to a tolerance."""
        samples, _ = self._rivals
        u = np.maximum(multipliers, 0.0)
        totals = np.bincount(samples, weights=u, minlength=len(self.labels))
        scale = self.nu * self.sample_weight.sum()
        problem = one_class_problem(self.sample_weight, self.nu)
        wanted = problem.feasible(scale * totals) / scale
        # A sample without multipliers takes what it is given at all its constraints.
        u = np.where(totals[samples] > 0.0, u, 1.0)
        totals = np.bincount(samples, weights=u)
        return u * (wanted / totals)[samples]

    def _certified(self, weights: Array, u: Array, tol: float) -> Mixture:
        """Both bounds, computed from the outputs, and ρ."""
        samples, _ = self._rivals
        lefts = self._differences @ weights.ravel()
        margins = np.full(len(self.labels), np.inf)
        np.minimum.at(margins, samples, lefts)
        rho = best_threshold(margins, self._prices, 1.0)
        primal = float(self._prices @ np.maximum(rho - margins, 0.0)) - rho
        dual = -float(self._attained(u).max(axis=1).sum())
        rounding = ROUNDING * float(np.abs(self.outputs).max()) * self.n_groups
        point = np.zeros((len(self.labels), self.outputs.shape[2]))
        point[self._rivals] = u
        return Mixture(
            weights[0] if self.shared else weights,
            rho,
            Certificate(primal, dual, primal - dual, tol, rounding, point),
        )


@dataclass(frozen=True)
class Mixture:
    """Weights of machines, (n_kernels,) or (n_classes, n_kernels), and their soft margin ρ."""

    weights: Array
    rho: float
    certificate: Certificate
