"""LPBeta and LPB: one machine per kernel, with weights that maximise the margin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from ..discriminant import Samples
from ..estimators.base import FitTask, KernelEstimator, estimator, fits
from ..estimators.grid import Grid, checked_positive
from ..estimators.held_out import SplitOutputs
from ..estimators.kernel_data import TrainingKernels
from ..estimators.prediction import KernelClassifier
from ..estimators.search import Search, Splits, refuse_unsolved
from ..estimators.svm import (
    INNER_SHARE,
    ClassMachines,
    MachineKernels,
    SupportAttributes,
    machine_groups,
)
from ..estimators.svm_cv import CLASSIFICATION_PENALTIES, PreparedKernels, held_out_outputs
from ..estimators.training_rows import TrainingRows, labelled_rows
from ..estimators.weights import WeightLearning
from ..kernels.tables import Table
from ..kernels.transforms import Chain
from ..losses.base import Certificate
from ..losses.svm import HingeLoss, one_class_problem
from ..solvers.path import solved_in_all
from ..solvers.programs import LinearProgram
from ..utils.numerics import ACCUMULATED, ROUNDING
from ..utils.sklearn import Interval, warn_caller
from ..utils.storable import storable
from .machine import KernelMixture, MixtureAttributes

# -------------------------------------------------------------------------------------------------
# The linear program of LP-β and LP-B, which maximises the soft margin.
#
# f_{m,c}(x) is the output of the machine of kernel m for class c. With weights B_m^c
#
#     min_{B, ξ, ρ}  −ρ + 1/(νN) Σ_i ξ_i                                 Gehler & Nowozin (2009)
#     s.t.           Σ_m B_m^{y_i} f_{m,y_i}(x_i) − Σ_m B_m^y f_{m,y}(x_i) + ξ_i ≥ ρ   for y ≠ y_i
#                    Σ_m B_m^c = 1 for every class c,   B ≥ 0,   ξ ≥ 0
#
# In LP-β all classes have the same weights β. A sample of weight w_i counts w_i times, and N is
# the sum of the weights. Given B, with the margins M_i, the smallest left sides without ξ_i, the
# rest is the program of a one-class machine, ``min_ρ −ρ + 1/(νN) Σ_i w_i max(0, ρ − M_i)``: ρ is
# the ν-quantile of the margins, and the minimum is minus the mean of the margins below it.
#
# For any ``u_iy ≥ 0`` with ``Σ_y u_iy ≤ w_i/(νN)`` and ``Σ u = 1``, which exist for ν ≤ 1,
#
#     minimum ≥ −Σ_c max_m a_m^c ,   a_m^c = Σ_iy u_iy ([c = y_i] − [c = y]) f_{m,c}(x_i)
#
# (in LP-β ``−max_m Σ_c a_m^c``), with equality for the multipliers of the constraints. Both bounds
# are computed from the outputs, independently of the solver.
#
# For two classes the outputs are f and −f. Then only the mean of B^1 and B^2 matters, and LP-B is
# LP-β.


Array = np.ndarray

# A kernel of weight zero could have a weight if its a is this near to the largest, in units of the
# largest output: ten times the accuracy of the solver.
_AS_GOOD = 1e-9


@dataclass(frozen=True)
class MarginProgram:
    """The linear program for given outputs of the machines.

    Attributes
    ----------
    outputs : ndarray of shape (n_kernels, n_samples, n_classes)
        f; for two classes −f and f.
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
        """Return the optimal weights, with a certificate for the relative gap `tol`."""
        n_kernels, n_samples, _ = self.outputs.shape
        size = float(np.abs(self.outputs).max()) or 1.0
        n_weights = self.n_groups * n_kernels
        program = LinearProgram()
        # Columns are the weights, group by group, ρ and ξ; the last two in units of `size`.
        costs = np.concatenate([np.zeros(n_weights), [-1.0], self._prices])
        program.add_columns(
            costs, np.concatenate([np.zeros(n_weights), [-np.inf], np.zeros(n_samples)])
        )
        sums = sparse.kron(sparse.eye_array(self.n_groups), np.ones((1, n_kernels)))
        nothing = sparse.csr_array((self.n_groups, 1 + n_samples))
        program.add_rows(1.0, sparse.hstack([sums, nothing]), 1.0)
        samples, _ = self._rivals
        slacks = sparse.eye_array(n_samples, format="csr")[samples]
        ones = np.ones((len(samples), 1))
        program.add_rows(0.0, sparse.hstack([self._differences / size, -ones, slacks]))
        solution = program.solve()
        weights = self._checked(solution.values)
        multipliers = self._feasible(solution.multipliers[self.n_groups :])
        attained = self._attained(multipliers)
        as_good = attained >= attained.max(axis=1, keepdims=True) - _AS_GOOD * size
        if (as_good & (weights == 0.0)).any():
            # The optimal weights may not be unique, and those of the simplex method depend on
            # rounding, so that rows of weight two and repeated rows would give different weights.
            # Choose optimal weights of kernels that come first.
            program.add_rows(-np.inf, costs[None], float(costs @ solution.values))
            earlier = np.tile(np.arange(n_kernels) / n_kernels, self.n_groups)
            program.change_costs(np.concatenate([earlier, np.zeros(1 + n_samples)]))
            chosen = program.solve()
            weights = weights if chosen.failure else self._checked(chosen.values)
        return self._certified(weights, multipliers, tol)

    def _checked(self, values: Array) -> Array:
        """Return the weights, nonnegative and with sum one, from the values of all columns."""
        n_kernels = len(self.outputs)
        weights = np.maximum(values[: self.n_groups * n_kernels], 0.0)
        weights = weights.reshape(self.n_groups, n_kernels)
        totals = weights.sum(axis=1, keepdims=True)
        return np.where(totals > 0.0, weights, 1.0) / np.where(totals > 0.0, totals, n_kernels)

    def _attained(self, u: Array) -> Array:
        """Return a of every weight, (n_groups, n_kernels)."""
        attained: Array = (u @ self._differences).reshape(self.n_groups, -1)
        return attained

    @property
    def n_groups(self) -> int:
        """Number of weight vectors."""
        return 1 if self.shared else self.outputs.shape[2]

    @property
    def _prices(self) -> Array:
        """Costs of the slacks, ``w_i/(νN)``."""
        prices: Array = self.sample_weight / (self.nu * self.sample_weight.sum())
        return prices

    @cached_property
    def _rivals(self) -> tuple[Array, Array]:
        """Indices i and y of every constraint."""
        samples, classes = np.nonzero(np.arange(self.outputs.shape[2]) != self.labels[:, None])
        return samples, classes

    @cached_property
    def _differences(self) -> sparse.csr_array:
        """Coefficients of the weights in the constraints."""
        samples, rivals = self._rivals
        true = self.outputs[:, samples, self.labels[samples]].T
        other = self.outputs[:, samples, rivals].T
        if self.shared:
            return sparse.csr_array(true - other)
        n_rows, n_kernels = true.shape
        kernels = np.arange(n_kernels)
        columns = [self.labels[samples, None] * n_kernels + kernels]
        columns.append(rivals[:, None] * n_kernels + kernels)
        rows = np.repeat(np.arange(n_rows), 2 * n_kernels)
        entries = np.hstack([true, -other]).ravel()
        shape = (n_rows, self.n_groups * n_kernels)
        return sparse.csr_array((entries, (rows, np.hstack(columns).ravel())), shape=shape)

    def _feasible(self, multipliers: Array) -> Array:
        """Return feasible u near the multipliers, which are feasible up to a tolerance."""
        samples, _ = self._rivals
        u = np.maximum(multipliers, 0.0)
        totals = np.bincount(samples, weights=u, minlength=len(self.labels))
        scale = self.nu * self.sample_weight.sum()
        problem = one_class_problem(self.sample_weight, self.nu)
        wanted = problem.feasible(scale * totals) / scale
        # For a sample without multipliers, its total is divided equally among its constraints.
        u = np.where(totals[samples] > 0.0, u, 1.0)
        totals = np.bincount(samples, weights=u)
        return u * (wanted / totals)[samples]

    def _certified(self, weights: Array, u: Array, tol: float) -> Mixture:
        """Return the mixture with ρ and both bounds, computed from the outputs."""
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


# -- Support vector machines of single kernels ----------------------------------------------------


# Norm of the weight of a machine with one kernel; the weight is one for any norm.
_ANY_NORM = np.inf


@estimator()
class MixedMachinesParameters:
    """Parameters and attributes of weighted machines, one per kernel.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        ν: at most this share of the samples has a margin below ρ. The program maximises the mean
        margin of this share, the worst samples; with 1, of all samples.
    Cs : array-like of float, optional
        Candidates for C of the machines, by default 0.01, 0.1, 1 and 10, which suit normalised
        kernels. Each kernel has the C with the best held-out accuracy; the smallest of several. A
        single value is used for all kernels.
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        Cross-validation for the held-out outputs of the machines. None: five stratified folds
        that do not depend on the order of the rows; equal rows stay together, and a class of a
        single sample is in no test part. A pair is a validation set.
    tol : float, default=1e-4
        Relative duality gap of the machines and of the program for the weights.
    n_jobs : int, optional
        Number of splits that are computed in parallel.
    verbose : bool, default=False
        Whether to print a line per machine. For progress bars, use
        ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    rho_ : float
        ρ; if it may lie anywhere between two margins, their mean.
    C_ : ndarray of shape (n_kernels,)
        C of the machine of each kernel.
    n_splits_ : int
    n_inner_solves_ : int
        Number of support vector machines.
    """

    nu: float = 0.5
    Cs: ArrayLike | None = None
    cv: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "nu": [Interval(Real, 0, 1, closed="right")],
        "Cs": ["array-like", None],
        "cv": ["cv_object", tuple, None],
        "n_jobs": [None, int],
    }


@dataclass(frozen=True)
class HeldOutMachines:
    """Machines of each kernel, for each split and each C; `judged` are the held-out samples."""

    estimator: KernelEstimator
    names: list[str]
    penalties: np.ndarray
    parts: list[SplitOutputs]
    judged: list[Samples]
    task: FitTask

    @classmethod
    def of(
        cls,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike,
        rows: TrainingRows,
        kernels: TrainingKernels,
        penalties: np.ndarray,
    ) -> HeldOutMachines:
        """Fit the machines; begin the task of the fit, with a part per split and a final part."""
        names = kernels.stack.names
        numbers = np.arange(len(names))
        grid = Grid({"kernel": numbers, "p": np.array([_ANY_NORM]), "C": penalties})
        samples = replace(kernels.samples(rows), weights=rows.counts)
        splits = Splits(estimator, rows, kernels.source, samples).of(y)
        task = FitTask.begin(estimator, X, y, len(splits) + 1)
        search = Search(estimator, samples, splits, task)
        machines = partial(_machines, INNER_SHARE * estimator.tol)
        parts = held_out_outputs(search, grid, machines, _each_kernel)
        held_out = cls(estimator, names, penalties, parts, search.tests, search.task)
        held_out._refuse_unsolved()
        return held_out

    def _refuse_unsolved(self) -> None:
        """Raise if a kernel has no machine at any C, and warn of other missing machines."""
        records = [part.record for part in self.parts]
        unsolved = ~solved_in_all(records).any(axis=(1, 2))
        if unsolved.any():
            reasons = [reason for record in records for reason in record.failures]
            reason = reasons[0] if reasons else "A callback asked to stop."
            name = self.names[int(unsolved.argmax())]
            raise ValueError(f"No machine of kernel {name!r} could be fitted. {reason}")
        refuse_unsolved(records, self.estimator.tol)

    def mixture(self, *, shared: bool) -> Mixture:
        """Return the weights of the machines at their best C; `shared` by all classes or not."""
        chosen = self.chosen
        kernels = np.arange(len(self.names))
        outputs = np.concatenate([part.outputs[kernels, 0, chosen] for part in self.parts], axis=1)
        if outputs.shape[2] == 1:
            outputs = np.concatenate([-outputs, outputs], axis=2)
        labels = np.concatenate([test.labels for test in self.judged])
        weights = np.concatenate([_weights_of(test) for test in self.judged])
        shared = shared or outputs.shape[2] == 2
        program = MarginProgram(outputs, labels, weights, float(self.estimator.nu), shared)
        mixture = program.solve(self.estimator.tol)
        certificate = mixture.certificate
        if not certificate.converged:
            name = type(self.estimator).__name__
            message = f"{name} is {certificate.status}. {certificate.message}"
            warn_caller(message, ConvergenceWarning)
        return mixture

    @cached_property
    def chosen(self) -> np.ndarray:
        """Index of the C with the best accuracy for each kernel; the smallest of several."""
        solved = solved_in_all([part.record for part in self.parts])[:, 0]
        order = np.argsort(self.penalties)
        accuracies = np.where(solved, self._accuracies(), -np.inf)[:, order]
        best: np.ndarray = order[np.argmax(accuracies > accuracies.max(1)[:, None] - ROUNDING, 1)]
        return best

    def _accuracies(self) -> np.ndarray:
        """Return accuracies, averaged over the splits, (n_kernels, n_penalties)."""
        of_splits = []
        for part, test in zip(self.parts, self.judged, strict=True):
            outputs = part.outputs[:, 0]
            labels = outputs[..., 0] > 0 if outputs.shape[-1] == 1 else outputs.argmax(axis=-1)
            correct = labels == test.labels
            of_splits.append(np.average(correct, axis=-1, weights=_weights_of(test)))
        accuracies: np.ndarray = np.mean(of_splits, axis=0)
        return accuracies

    def refitted(
        self, mixture: Mixture, rows: TrainingRows, kernels: TrainingKernels
    ) -> dict[str, Any]:
        """Fit the machines with nonzero weight to all samples; return the fitted attributes."""
        prepared = MachineKernels.prepared(kernels, rows, self.estimator.normalize)
        machines = _machines(INNER_SHARE * self.estimator.tol, kernels.samples(rows))
        learning = WeightLearning.at(self.estimator, _ANY_NORM)
        used = np.flatnonzero(np.atleast_2d(mixture.weights).any(axis=0))
        final = self.task.subtask("final fit", len(used))
        shape = (len(self.names), len(rows), machines.n_outputs)
        coefficients, biases = np.zeros(shape), np.zeros(shape[::2])
        for j in used.tolist():
            stack = prepared.stack.select([j])
            losses = machines(stack, {"C": float(self.penalties[self.chosen[j]])})
            learnt = learning.learn(losses, stack.names, final)
            (solution,) = learnt.solutions
            machine: Any = solution.evaluation
            coefficients[j] = machine.coefficients
            alone = np.arange(len(self.names)) == j
            biases[j] = prepared.uncentred(machine.biases, alone, machine.coefficients)
        final.end()
        intercept = np.sum(np.atleast_2d(mixture.weights).T * biases, axis=0)
        certificate = mixture.certificate
        n_before = int(sum(part.record.n_inner_solves.sum() for part in self.parts))
        return {
            **KernelMixture(mixture.weights, coefficients, intercept).attributes(rows, prepared),
            "rho_": mixture.rho,
            "C_": self.penalties[self.chosen],
            "certificate_": certificate,
            "n_splits_": len(self.parts),
            "n_iter_": 1,
            "n_inner_solves_": n_before + len(used),
            "history_": {
                "objective": [certificate.primal],
                "rel_gap": [certificate.rel_gap],
                "n_inner_solves": [n_before],
            },
        }


def _machines(inner_tol: float, samples: Samples) -> ClassMachines:
    """Return machines with the hinge loss, for several classes one against the rest."""
    groups = machine_groups(samples.labels, len(samples.classes), "shared")
    return ClassMachines(groups, _weights_of(samples), HingeLoss, inner_tol)


def _weights_of(samples: Samples) -> np.ndarray:
    return np.ones(len(samples.labels)) if samples.counts is None else samples.counts


def _each_kernel(train: Samples, test: Samples, transform: Chain) -> Iterator[PreparedKernels]:
    """Yield the prepared kernels one by one, for a grid whose first axis is the kernel."""
    stack = transform.fit_transform(train.stack, sample_weight=train.counts)
    prepared = PreparedKernels.centred(stack, transform.transform(test.stack))
    for j in range(stack.n_kernels):
        yield PreparedKernels(
            prepared.stack.select([j]), prepared.block.select([j]), places=((j,),)
        )


def _fitted(
    model: KernelClassifier,
    X: Table,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    *,
    shared: bool,
) -> Any:
    """Fit a model; all classes have the same weights if `shared`."""
    penalties = checked_positive(model.Cs, CLASSIFICATION_PENALTIES, "Cs")
    rows = labelled_rows(model, X, y, sample_weight, None, groups=groups)
    kernels = TrainingKernels.of(rows, rows.counts)
    held_out = HeldOutMachines.of(model, X, y, rows, kernels, penalties)
    mixture = held_out.mixture(shared=shared)
    return model._keep(held_out.task, held_out.refitted(mixture, rows, kernels))


@storable
@estimator(MixtureAttributes, SupportAttributes, MixedMachinesParameters)
class LPBeta(KernelClassifier):
    """LP-β: a support vector machine per kernel, with one weight for each.

    Cross-validation gives held-out outputs of the machines. A linear program finds the weights,
    which sum to one, that maximise the soft margin of these outputs between the true class and
    every other. Then the machines are fitted to all samples.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights β of the outputs of the machines.

    Notes
    -----
    Unlike in multiple kernel learning, each machine uses one kernel only: the weights apply to
    outputs, including biases, without normalisation. A kernel whose machine has large outputs has
    more influence, so weights are comparable only for equal C and normalisation.

    References
    ----------
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.

    Examples
    --------
    >>> from manykernels.baselines import LPBeta
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = LPBeta(RBF(), Cs=[1.0]).fit(views[:300], y[:300])
    >>> model.certificate_.converged
    True
    >>> dict(zip(model.kernel_names_, model.weights_.round(2)))["noise1"]
    np.float64(0.0)
    >>> bool(model.score(views[900:], y[900:]) > 0.9)
    True
    """

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the machines and their weights."""
        return _fitted(self, X, y, sample_weight, groups, shared=True)


# -- LPB ------------------------------------------------------------------------------------------


@storable
@estimator(MixtureAttributes, SupportAttributes, MixedMachinesParameters)
class LPB(KernelClassifier):
    """LP-B: a support vector machine per kernel, with weights for each class.

    As :class:`LPBeta`, but with one weight vector per class.

    Attributes
    ----------
    weights_ : ndarray of shape (n_classes, n_kernels), or (n_kernels,) for two classes
        Weights B of the outputs of the machines; those of each class sum to one. Two classes share
        their machines, and LP-B is LP-β.

    Notes
    -----
    The weights of each class sum to one, as in the published program of the authors. The weights
    of a class that is never among the worst samples are not determined.

    References
    ----------
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.

    Examples
    --------
    >>> from manykernels.baselines import LPB
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = LPB(RBF(), Cs=[1.0]).fit(views[:300], y[:300])
    >>> model.weights_.shape
    (10, 7)
    >>> model.certificate_.converged
    True
    >>> bool(model.score(views[900:], y[900:]) > 0.9)
    True
    """

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the machines and their weights."""
        return _fitted(self, X, y, sample_weight, groups, shared=False)


def best_threshold(points: np.ndarray, weights: np.ndarray, total: float) -> float:
    """Return the minimiser b of ``Σ_i w_i max(0, b − t_i) − total · b``.

    It is a quantile of the points t: the slope at b is the weight of the points below b minus
    `total`, which is positive and at most the sum of the weights. If the minimisers are an
    interval between two points, its midpoint is returned; if it is unbounded, its lower end.
    """
    order = np.argsort(points)
    below = np.cumsum(weights[order])
    allowed = ACCUMULATED * below[-1]
    first, last = np.searchsorted(below, [total - allowed, total + allowed])
    first = min(int(first), len(points) - 1)
    last = int(last) if last < len(points) else first
    return 0.5 * float(points[order[first]] + points[order[last]])
