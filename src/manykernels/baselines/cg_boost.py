"""CGBoost: boosting of kernel columns by column generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..estimators.base import POSITIVE, FitTask, estimator, fits
from ..estimators.kernel_data import TrainingKernels
from ..estimators.prediction import KernelClassifier
from ..estimators.svm import MachineKernels, SupportAttributes
from ..estimators.training_rows import labelled_rows, one_against_rest
from ..estimators.weights import joined_certificate, run_attributes
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..losses.base import Certificate
from ..losses.svm import hinge_problem
from ..solvers.base import Progress
from ..solvers.programs import LinearProgram
from ..utils.numerics import EPS
from ..utils.sklearn import Interval, warn_caller
from ..utils.storable import storable
from .lp_beta import best_threshold
from .machine import KernelMixture, MixtureAttributes

# -- Column generation: the machine of smallest 1-norm of all columns of all kernels --------------
#
# The weak learners are the columns ``k_j(·, x_l)`` of the kernels and their negatives. With y = ±1
# and penalties C_i,
#
#     min_{α, b, ξ}  Σ_jl |α_jl| + Σ_i C_i ξ_i                          Bi, Zhang & Bennett (2004)
#     s.t.           y_i (Σ_jl α_jl k_j(x_i, x_l) + b) + ξ_i ≥ 1 ,   ξ ≥ 0
#
# The dual variables u have one constraint for every column,
#
#     max_u  Σ_i u_i   s.t.  |Σ_i u_i y_i k_j(x_i, x_l)| ≤ 1 ,   Σ_i u_i y_i = 0 ,   0 ≤ u_i ≤ C_i
#
# A master program has few of the columns, HiGHS solves it, and its u may violate constraints of
# the others. The column most violated in each kernel is added, and the master continues from its
# basis. As ``Σ u_i y_i = 0``, columns may be shifted: they are centred, which only changes b.
#
# With v the largest left side over all columns, ``u / max(1, v)`` satisfies all constraints: the
# minimum is at least ``Σ_i u_i / max(1, v)``. If no column is violated, the master has found the
# machine of all columns.


Array = np.ndarray


@dataclass(frozen=True)
class Columns:
    """All columns of Gram matrices, centred: `offsets` (n_kernels, m) are their means."""

    stack: KernelStack
    offsets: Array

    @classmethod
    def of(cls, stack: KernelStack, sample_weight: Array) -> Columns:
        means = stack.apply(sample_weight[:, None] / sample_weight.sum())[:, :, 0]
        return cls(stack, means)

    @cached_property
    def sizes(self) -> Array:
        """Largest entry of each kernel before centring, which is on the diagonal."""
        assert self.stack.row_diag is not None
        return np.abs(self.stack.row_diag).max(axis=1)

    def products(self, v: Array) -> Array:
        """Return ``Σ_i v_i (k_j(x_i, x_l) − o_jl)`` of every column, (n_kernels, m)."""
        products: Array = self.stack.apply(v[:, None])[:, :, 0] - self.offsets * v.sum()
        return products

    def column(self, j: int, sample: int) -> Array:
        """Return the centred column of a sample in kernel j."""
        columns = self.stack.apply_columns(np.array([sample]), np.ones((1, 1)))
        column: Array = columns[j, :, 0] - self.offsets[j, sample]
        return column


@dataclass(frozen=True)
class ColumnMachine:
    """A machine of columns: α (n_kernels, m) of the centred columns, b and the certificate.

    `status` is the reason if the linear program was not solved, else empty.
    """

    coefficients: Array
    bias: float
    certificate: Certificate
    history: list[Progress]
    status: str

    @property
    def n_iter(self) -> int:
        return len(self.history)

    @property
    def n_inner_solves(self) -> int:
        """Number of linear programs."""
        return len(self.history)


class ColumnGeneration:
    """The master program of a binary problem with y = `signs` and C = `penalties`."""

    def __init__(self, columns: Columns, signs: Array, penalties: Array) -> None:
        self.columns = columns
        self.signs = signs
        self.penalties = penalties
        m = len(signs)
        self._program = LinearProgram()
        # Unit of costs, between those of coefficients, 1, and those of losses.
        self._unit = float(np.sqrt(penalties.max()))
        # Variables are b, ξ, and a nonnegative one for every column of the master.
        lower = np.append(-np.inf, np.zeros(m))
        self._program.add_columns(np.append(0.0, penalties) / self._unit, lower)
        self._program.add_rows(1.0, np.column_stack([signs, np.eye(m)]))
        # Kernel, sample and sign of the columns of the master, and their values.
        self._members: list[tuple[int, int, float]] = []
        self._values = np.empty((m, 0))

    def learn(
        self, tol: float, max_iter: int, observer: Callable[[Progress], bool | None]
    ) -> ColumnMachine:
        """Add columns, at most `max_iter` times, until the relative gap is within `tol`."""
        history: list[Progress] = []
        bound, proof = -np.inf, None
        while True:
            solution = self._program.solve()
            problem = hinge_problem(self.signs, self.penalties)
            v = problem.feasible(self.signs * solution.multipliers * self._unit)
            products = self.columns.products(v)
            largest = max(1.0, float(np.abs(products).max()))
            if np.abs(v).sum() / largest > bound:
                bound, proof = float(np.abs(v).sum() / largest), v[:, None] / largest
            amounts = np.maximum(solution.values[1 + len(v) :], 0.0)
            primal, bias, rounding = self._objective(amounts, v)
            # Products, and so the bound, have rounding errors.
            error = EPS * float(self.columns.sizes.max()) * float(np.abs(v).sum())
            rounding += bound * error / largest
            certificate = Certificate(primal, bound, primal - bound, tol, rounding, proof)
            history.append(Progress(len(history), len(history) + 1, certificate))
            stop = observer(history[-1])
            ended = certificate.rel_gap <= tol or solution.failure or len(history) > max_iter
            if stop or ended or not self._add_violated(products, error):
                alpha = self._coefficients(amounts)
                return ColumnMachine(alpha, bias, certificate, history, solution.failure)

    def _objective(self, amounts: Array, v: Array) -> tuple[float, float, float]:
        """Return the objective at the best b, this b, and the rounding error of the objective."""
        f = self._values @ amounts
        positive = float(self.penalties[self.signs > 0].sum())
        bias = best_threshold(self.signs - f, self.penalties, positive)
        losses = np.maximum(0.0, 1.0 - self.signs * (f + bias))
        sizes = self.columns.sizes[np.array([j for j, _, _ in self._members], dtype=int)]
        terms = 1.0 + abs(bias) + float(sizes @ amounts)
        counting = self.penalties[(losses > 0.0) | (v != 0.0)]
        primal = float(amounts.sum()) + float(self.penalties @ losses)
        return primal, bias, EPS * terms * float(counting.sum())

    def _add_violated(self, products: Array, error: float) -> bool:
        """Add the column of each kernel with the largest violation; return whether there are any.

        Columns of the master, which are violated only within the tolerance of its solution, and
        violations within the rounding error do not count.
        """
        left = np.abs(products)
        for j, sample, sign in self._members:
            if sign * products[j, sample] > 0.0:
                left[j, sample] = 0.0
        samples = left.argmax(axis=1)
        violated = left.max(axis=1) > 1.0 + error
        chosen = [(j, int(samples[j])) for j in np.flatnonzero(violated).tolist()]
        if not chosen:
            return False
        signs = np.array([np.sign(products[at]) for at in chosen])
        values = signs * np.column_stack([self.columns.column(*at) for at in chosen])
        matrix = self.signs[:, None] * values
        self._program.add_columns(np.full(len(chosen), 1.0 / self._unit), matrix=matrix)
        self._members += [(*at, sign) for at, sign in zip(chosen, signs.tolist(), strict=True)]
        self._values = np.hstack([self._values, values])
        return True

    def _coefficients(self, amounts: Array) -> Array:
        alpha = np.zeros(self.columns.offsets.shape)
        for (j, sample, sign), amount in zip(self._members, amounts, strict=True):
            alpha[j, sample] += sign * amount
        return alpha


@storable
@estimator(MixtureAttributes, SupportAttributes)
class CGBoost(KernelClassifier):
    """CG-Boost: a machine of few columns of the kernels, each with a coefficient.

    Every column ``k_j(·, x_i)`` of every kernel is a weak learner. Column generation finds the
    machine with the smallest sum of absolute coefficients and losses from few columns: it solves
    a linear program with the columns so far, adds the column of each kernel with the largest
    violation, and repeats. More than two classes are learnt one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of samples inside the margin, for kernels after `normalize`.
    tol : float, default=1e-6
        Relative duality gap, to the best machine of all columns, at which the solver stops.
    max_iter : int, default=1000
        Largest number of iterations, in each of which columns are added, for each class.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels)
        Sum of the absolute coefficients of the columns of each kernel; a row for each of more than
        two classes.
    support_ : ndarray of int
        Row indices of the samples whose columns are used, in any kernel and class.
    dual_coef_ : ndarray of shape (n_kernels, n_outputs, n_support)
        ``Σ_j weights_[j] K_j(X, support) @ dual_coef_[j].T + intercept_`` is the output, with K_j
        normalised; their absolute values sum to one in every kernel with weight.
    n_inner_solves_ : int
        Number of linear programs.
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` at each iteration; for several classes
        also ``machine``, the index of the class.

    Notes
    -----
    This is the variant with the 1-norm of the coefficients and the hinge loss, a linear program.
    Bi et al. also describe one with the 2-norm. The bias is not penalised.

    The norm is that of the coefficients, not of a function in the feature space of a kernel:
    kernels with larger values have more influence.

    References
    ----------
    J. Bi, T. Zhang, K. P. Bennett. Column-generation boosting methods for mixture of kernels.
    KDD 2004.
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels.baselines import CGBoost
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CGBoost(C=1.0).fit(X[::2], y[::2])
    >>> model.certificate_.converged
    True
    >>> len(model.support_) < 40
    True
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    C: float = 1.0
    tol: float = 1e-6
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": POSITIVE,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    @fits
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the machine."""
        rows = labelled_rows(self, X, y, sample_weight, None)
        signs = one_against_rest(rows.labels, len(rows.classes))
        task = FitTask.begin(self, X, y, signs.shape[1] * (self.max_iter + 1))
        training = TrainingKernels.of(rows, rows.counts)
        # Not centred: coefficients do not sum to zero.
        kernels = MachineKernels.prepared(training, rows, self.normalize, has_bias=False)
        columns = Columns.of(kernels.stack, rows.factors)
        penalties = self.C * rows.factors
        machines = [
            ColumnGeneration(columns, y_machine, penalties).learn(self.tol, self.max_iter, task)
            for y_machine in signs.T
        ]
        certificate = joined_certificate(machines, self.tol)
        if not certificate.converged:
            self._warn(certificate, machines, task)
        mixture = _mixture_of(machines, columns)
        return self._keep(
            task,
            mixture.attributes(rows, kernels),
            run_attributes(machines),
            certificate_=certificate,
        )

    def _warn(
        self, certificate: Certificate, machines: Sequence[ColumnMachine], task: FitTask
    ) -> None:
        """Warn of a machine that has not converged, with the reason and advice."""
        failures = {machine.status for machine in machines if machine.status}
        way_out = ""
        if task.stopped:
            way_out = " A callback asked to stop."
        elif failures:
            way_out = f" A linear program ended as {', '.join(sorted(failures))}: lower C."
        elif any(machine.n_iter > self.max_iter for machine in machines):
            way_out = f" max_iter={self.max_iter} was reached: raise max_iter or tol."
        elif certificate.status == "stopped":
            way_out = (
                " No further column reduces the gap, so tol cannot be reached: raise tol, lower "
                "C, or centre and scale the data of the kernels."
            )
        message = f"{type(self).__name__} is {certificate.status}. {certificate.message}{way_out}"
        warn_caller(message, ConvergenceWarning)


def _mixture_of(machines: Sequence[ColumnMachine], columns: Columns) -> KernelMixture:
    """Convert the machines of centred columns to one mixture of the original columns."""
    alpha = np.array([machine.coefficients for machine in machines])
    shifts = np.einsum("kjl,jl->k", alpha, columns.offsets)
    intercept = np.array([machine.bias for machine in machines]) - shifts
    weights = np.abs(alpha).sum(axis=2)
    coefficients = (alpha / np.where(weights > 0.0, weights, 1.0)[:, :, None]).transpose(1, 2, 0)
    return KernelMixture(weights if len(weights) > 1 else weights[0], coefficients, intercept)
