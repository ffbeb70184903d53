"""Learning of kernel weights: parameters, domain, solver, certificate, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..domains import Domain, Simplex, lp_domain, product_domain
from ..kernels import KernelStack
from ..kernels.on_demand import RegionalKernels
from ..kernels.transforms import Center
from ..losses.base import Certificate, Indices, Loss, ProblemSpec
from ..losses.features import FeatureEvaluation, FeatureLoss
from ..losses.inexact import EXACT_ROWS
from ..losses.square import SquareLoss
from ..solvers import SOLVERS
from ..solvers.base import (
    DEFAULT_SOLVER,
    Problem,
    Progress,
    Solution,
    Solver,
    as_solver,
    refuse_indefinite,
    refuse_unfit,
)
from ..solvers.evidence import Evidence
from ..utils.files import GIB
from ..utils.numerics import ACCUMULATED, TINY, available_memory
from ..utils.sklearn import Interval, StrOptions, warn_caller
from .base import FitTask, KernelEstimator, estimator
from .inputs import TrainingTable
from .training_rows import TrainingRows

# Kernels that take more of the available memory are computed when they are needed: the rest is for
# what solvers make of them, and for other programs.
_SHARE_OF_MEMORY = 0.5


@estimator()
class WeightParameters:
    """Parameters and attributes of estimators that learn one weight per kernel.

    Parameters
    ----------
    p : float in [1, inf], default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. Others, of the papers, are in :mod:`manykernels.solvers`, where
        there are objects with options, too, such as ``SIP(eps=1e-4)``.
    tol : float, default=1e-4
        Relative duality gap at which the weights are good enough.
    max_iter : int, optional
        Most outer iterations; by default the solver's own limit.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Learnt kernel weights, of the normalised kernels.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged``, computed from the kernels and
        the model after the last step; ``rel_rounding`` is the rounding error of the gap,
        ``status`` and ``message`` say the same in words, and ``dual_point`` is the proof.
    n_iter_ : int
        Outer iterations.
    n_inner_solves_ : int
        How often the problem with given weights was solved, the unit of cost: a factorisation of a
        matrix of all training rows for the square loss, else a support vector machine.
    solver_ : str
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` at each iteration; where classes
        have weights of their own, also ``machine``, the number of the class.
    """

    p: float = 2.0
    solver: Any = DEFAULT_SOLVER
    max_iter: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 1, None, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }


#: The value of `p` that asks for the weights and λ of largest evidence. Grids hold NaN instead.
EVIDENCE = "evidence"
#: Constraint of a parameter p that may be "evidence".
NORM_OR_EVIDENCE = [Interval(Real, 1, None, closed="both"), StrOptions({EVIDENCE})]


def as_norm(p: float | str) -> float:
    """Return p as a number, NaN for "evidence"."""
    return np.nan if p == EVIDENCE else float(p)


def distinct_rows(loss: Any) -> Any:
    """Return a copy of the loss whose equal rows with equal targets are one row.

    Of features only sums are known, in which such rows are one already: only their number changes.
    """
    if isinstance(loss, FeatureLoss) and loss.sums.n_distinct is not None:
        distinct = copy(loss)
        distinct.sums = replace(loss.sums, n_samples=loss.sums.n_distinct())
        return distinct
    if not isinstance(loss, SquareLoss) or not isinstance(loss.kernels, KernelStack):
        return copy(loss)
    first = _first_equals(loss)
    kept, place = np.unique(first, return_inverse=True)
    if len(kept) == len(first):
        return copy(loss)
    weights = np.bincount(place, weights=loss.sample_weight, minlength=len(kept)).astype(float)
    kernels = Center().fit_transform(loss.kernels[np.ix_(kept, kept)], sample_weight=weights)
    targets = loss.targets[kept] - np.average(loss.targets[kept], axis=0, weights=weights)
    return SquareLoss(kernels, targets, loss.reg, weights)


def _first_equals(loss: SquareLoss) -> Indices:
    """Return the first row that is equal to each row, in all kernels and targets."""
    n_rows = len(loss.targets)
    first = np.arange(n_rows)
    # Rows of equal targets are compared, in the sum of all kernels.
    alike = np.unique(loss.targets, axis=0, return_inverse=True)[1].ravel()
    matrix = loss.kernels.combine(np.ones(loss.kernels.shape[2]))
    sizes = np.diagonal(matrix)
    allowed = 10.0 * ACCUMULATED * max(float(sizes.mean()), TINY)
    for value in np.flatnonzero(np.bincount(alike) > 1):
        rows = np.flatnonzero(alike == value)
        block = sizes[rows, None] + sizes[rows] - 2.0 * matrix[np.ix_(rows, rows)]
        first[rows] = rows[np.argmax(block <= allowed, axis=1)]
    return first


@dataclass(frozen=True)
class WeightLearning:
    """Domain, solver and tolerances with which an estimator learns kernel weights."""

    estimator: str
    domain: Domain
    solver: Solver
    tol: float
    max_iter: int

    @classmethod
    def of(cls, estimator: KernelEstimator) -> WeightLearning:
        """From the parameters p, solver, tol and max_iter."""
        return cls.at(estimator, as_norm(estimator.p), estimator.solver, estimator.max_iter)

    @classmethod
    def at(
        cls,
        estimator: KernelEstimator,
        p: float,
        solver: Any = DEFAULT_SOLVER,
        max_iter: int | None = None,
    ) -> WeightLearning:
        """With the norm p, NaN for "evidence", to the accuracy `tol` of an estimator."""
        chosen, domain = as_solver(solver), lp_domain(1.0 if np.isnan(p) else p)
        if np.isnan(p):
            if not isinstance(chosen, SOLVERS[DEFAULT_SOLVER]):
                raise ValueError(
                    f'solver={chosen.name!r} does not go with p="evidence", which has a solver of '
                    f"its own: leave solver={DEFAULT_SOLVER!r}."
                )
            chosen = Evidence(distinct_rows)
        if max_iter is None:
            max_iter = chosen.default_max_iter
        return cls(type(estimator).__name__, domain, chosen, estimator.tol, max_iter)

    @property
    def response(self) -> Domain | None:
        """The domain within which weights respond to left-out samples; None if they are held."""
        return None if isinstance(self.solver, Evidence) else self.domain

    def by_region(self, n_regions: int) -> WeightLearning:
        """Return a copy that learns weights for every region, each in the domain of this one."""
        return replace(self, domain=product_domain(self.domain, n_regions))

    def refuse_unfit(self, spec: ProblemSpec) -> None:
        """Raise if the solver does not take such a loss, before kernels are computed."""
        refuse_unfit(self.solver, Problem(spec, self.domain, self.tol))

    def place_kernels(self, rows: TrainingRows, spec: ProblemSpec) -> TrainingRows:
        """`rows`, with their kernels on demand where these are too many for the memory there is.

        Raises as :meth:`refuse_unfit` does.
        """
        on_demand = self._on_demand(rows.data, spec)
        self.refuse_unfit(replace(spec, on_demand=on_demand))
        several = rows.given_groups is not None and len(np.unique(rows.groups)) < len(rows)
        if several and self.solver.by_columns and len(rows) > EXACT_ROWS:
            raise ValueError(
                f"solver={self.solver.name!r} does not go with groups of more than {EXACT_ROWS} "
                f"rows (there are {len(rows)}): without a factorisation only single rows can be "
                "left out. Pass solver='newton', or an approximation such as Nystrom()."
            )
        return replace(rows, on_demand=True) if on_demand else rows

    def _on_demand(self, data: Any, spec: ProblemSpec) -> bool:
        """Whether kernels are computed when they are needed: as the solver says, or by memory."""
        asked = self.solver.on_demand
        if not isinstance(data, TrainingTable) or asked is False:
            return False
        if asked is not None:
            return asked
        needed, available = 8 * spec.n_kernels * spec.n_samples**2, available_memory()
        if available is None or needed <= _SHARE_OF_MEMORY * available:
            return False
        sizes = (
            f"{spec.n_kernels} kernels of {spec.n_samples} samples take {needed / GIB:.1f} "
            f"GiB, and {available / GIB:.1f} GiB are available"
        )
        if isinstance(self.domain, Simplex):
            warn_caller(
                f"{sizes}: they are computed when they are needed, anew in each iteration. "
                "solver=Newton(on_demand=True) does so without this warning.",
                UserWarning,
            )
            return True
        if needed > available:
            raise MemoryError(
                f"{sizes}. Kernels can be computed when they are needed at p=1, where few of them "
                "have a weight. Pass p=1, or fewer kernels or samples; learn from landmarks, with "
                'approximation="nystrom" of MKFDA or MKRidge; or keep the kernels on disk: '
                'X = kernels_for(X, kernels).fit(X)(X, memmap="stack.npy") with '
                'kernels="precomputed".'
            )
        return False

    def learn(self, losses: Sequence[Loss], names: list[str], task: FitTask) -> Learnt:
        """Solve for the weights, and warn if the relative gap `tol` was not reached."""
        learnt = self.solve(losses, names, task)
        learnt.warn_unless_converged()
        return learnt

    def solve(self, losses: Sequence[Loss], names: list[str], task: FitTask) -> Learnt:
        """Solve for the weights of kernels with these names, one loss after the other."""
        return solve_each([self] * len(losses), losses, names, task)


class LearntWeights(Protocol):
    """Kernel weights of one or several losses, and the models there."""

    @property
    def weights(self) -> np.ndarray:
        """(n_losses, n_kernels)."""

    @property
    def evaluations(self) -> list[Any]:
        """The loss of each at its weights."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""

    def warn_unless_converged(self) -> None:
        """Warn if the relative gap `tol` was not reached."""


@dataclass(frozen=True)
class Learnt:
    """Solutions of independent losses, and the certificate of their sum."""

    learning: WeightLearning
    names: list[str]
    losses: list[Any]
    solutions: list[Solution]
    certificate: Certificate
    stopped: bool

    @property
    def weights(self) -> np.ndarray:
        """Kernel weights, (n_losses, n_kernels)."""
        pairs = zip(self.losses, self.solutions, strict=True)
        return np.array([loss.kernel_weights(solution.weights) for loss, solution in pairs])

    @property
    def regularizations(self) -> np.ndarray:
        """λ of every loss, given or learnt, (n_losses,)."""
        pairs = zip(self.losses, self.solutions, strict=True)
        return np.array([loss.regularization(solution.weights) for loss, solution in pairs])

    @property
    def evaluations(self) -> list[Any]:
        """Every loss at its weights."""
        return [solution.evaluation for solution in self.solutions]

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        weights = self.weights
        return {
            "kernel_names_": self.names,
            "weights_": weights if len(weights) > 1 else weights[0],
            "certificate_": self.certificate,
            **run_attributes(self.solutions),
            "solver_": self.learning.solver.name,
        }

    def with_rounding(self, more: float) -> Self:
        """Return a copy with `more` rounding error of the objective, beyond that of the losses."""
        certificate = replace(self.certificate, rounding=self.certificate.rounding + more)
        return replace(self, certificate=certificate)

    def warn_unless_converged(self) -> None:
        """Warn if the relative gap `tol` was not reached, and say what would help."""
        certificate, learning = self.certificate, self.learning
        if certificate.note:
            warn_caller(f"{learning.estimator}: {certificate.note}", UserWarning)
        if certificate.converged:
            return
        if certificate.status != "stopped":
            message = f"{learning.estimator} is {certificate.status}. {certificate.message}"
        else:
            remarks = "; ".join(filter(None, (one.status for one in self.solutions)))
            message = (
                f"{learning.estimator} stopped at relative gap {certificate.rel_gap:.2e} > "
                f"tol={learning.tol:g}{f' ({remarks})' if remarks else ''}; the weights are at "
                f"most that far from optimal. {self._way_out()}"
            )
        warn_caller(message, ConvergenceWarning)

    def _way_out(self) -> str:
        """Why the solver stopped, and what would take it further."""
        if self.stopped:
            return "A callback asked for it."
        limit, solver = self.learning.max_iter, self.learning.solver
        steps = [step.iteration for solution in self.solutions for step in solution.history]
        if max(steps, default=0) >= limit:
            cause, way = f"max_iter={limit} was reached", "raise max_iter or tol"
        else:
            cause, way = "No more progress was made, tol is less than can be had", "raise tol"
        if not isinstance(solver, SOLVERS[DEFAULT_SOLVER]):
            way += f", or use solver={DEFAULT_SOLVER!r}"
        return f"{cause}: {way}."


def solve_each(
    learnings: Sequence[WeightLearning], losses: Sequence[Loss], names: list[str], task: FitTask
) -> Learnt:
    """Solve as :meth:`WeightLearning.solve`, every loss over a domain of its own."""
    solutions = []
    for learning, loss in zip(learnings, losses, strict=True):
        solution = learning.solver.solve(
            loss, learning.domain, tol=learning.tol, max_iter=learning.max_iter, observer=task
        )
        refuse_indefinite(solution, learning.domain, loss, names)
        solutions.append(solution)
    certificate = joined_certificate(solutions, learnings[0].tol)
    rounding = sum(map(_rounding_of_outputs, learnings, losses, solutions))
    certificate = replace(certificate, rounding=certificate.rounding + rounding)
    return Learnt(learnings[0], names, list(losses), solutions, certificate, task.stopped)


def _rounding_of_outputs(learning: WeightLearning, loss: Loss, solution: Solution) -> float:
    """Return the change of the objective by rounding errors of what predictions compute again.

    These are explicit features, and shares of samples in regions.
    """
    evaluation: Any = solution.evaluation
    if isinstance(evaluation, FeatureEvaluation):
        return evaluation.feature_rounding(learning.domain.support)
    kernels = getattr(loss, "kernels", None)
    if isinstance(kernels, RegionalKernels):
        errors = kernels.output_errors(
            loss.kernel_weights(solution.weights), evaluation.coefficients
        )
        return float(np.sum(evaluation.reach * errors))
    return 0.0


class Run(Protocol):
    """Solver statistics of one of several independent problems, such as a :class:`Solution`."""

    @property
    def certificate(self) -> Certificate: ...

    @property
    def history(self) -> Sequence[Progress]: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def n_inner_solves(self) -> int: ...


def run_attributes(runs: Sequence[Run]) -> dict[str, Any]:
    """Return fitted attributes that describe how independent problems were solved in turn."""
    # Inner solves are counted over all of them.
    before = np.cumsum([0, *(run.n_inner_solves for run in runs)]).tolist()
    steps = [(k, step) for k, run in enumerate(runs) for step in run.history]
    certificates = [step.certificate for _, step in steps]
    history: dict[str, list[Any]] = {
        "objective": [certificate.primal for certificate in certificates],
        "rel_gap": [certificate.rel_gap for certificate in certificates],
        "n_inner_solves": [before[k] + step.n_inner_solves for k, step in steps],
    }
    if len(runs) > 1:
        history["machine"] = [k for k, _ in steps]
    return {
        "n_iter_": sum(run.n_iter for run in runs),
        "n_inner_solves_": before[-1],
        "history_": history,
    }


def joined_certificate(solutions: Sequence[Run], tol: float) -> Certificate:
    """Certificate of the sum of independent problems: the sums of their bounds."""
    parts = [solution.certificate for solution in solutions]
    if len(parts) == 1:
        return parts[0]
    primal, dual = sum(part.primal for part in parts), sum(part.dual for part in parts)
    points = [part.dual_point for part in parts if part.dual_point is not None]
    point = np.hstack(points) if len(points) == len(parts) else None
    rounding = sum(part.rounding for part in parts)
    note = " ".join(dict.fromkeys(part.note for part in parts if part.note))
    return Certificate(primal, dual, primal - dual, tol, rounding, point, note)
