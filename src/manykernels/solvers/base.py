"""Interface and registry of solvers, runs and solutions, and checks of the problem.

A solver lists its needs. A problem that does not meet them is refused before any work, in one
sentence that names the solvers which accept it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..domains import Array, Box, Domain, LpBall, Simplex
from ..losses.base import Certificate, Evaluation, Loss, ProblemSpec
from ..losses.square import SquareLoss
from ..losses.svm import BoxLoss
from ..utils.numerics import ACCUMULATED, available_memory

# -- Lower bounds on the minimum of F, and the duality gap ----------------------------------------
#
# The inner solution α at weights β gives a plane below F, because ``D(α, b)`` is linear in b:
#
#     F(b) ≥ D(α, b) = c − b·g   for all b,    g = −∇F(β) ,   c = D(α, β) + β·g
#
# Its minimum over the domain B is ``c − σ_B(g)``, a lower bound on the minimum of F. At weights β
#
#     F(β) − min_B F ≤ F(β) − (c − σ_B(g)) = σ_B(g) − β·g + slack
#
# where the slack ``F(β) − D(α, β)`` is zero if the inner problem is solved exactly. This is the
# duality gap of the two problems ``min_b max_α D`` and ``max_α min_b D``.


@dataclass(frozen=True)
class Bound:
    """Lower bound on the minimum of F over a domain; bounds compare by their value.

    `dual` are the dual variables α that prove it, if known. `constant` is at most the c of their
    plane, so that α also proves ``constant − σ(g(α))`` over a set of other kernels.
    """

    value: float = float("-inf")
    dual: Array | None = field(default=None, repr=False)
    constant: float = float("-inf")

    def __lt__(self, other: Bound) -> bool:
        return self.value < other.value

    @classmethod
    def of(cls, point: Evaluation, domain: Domain) -> Bound:
        """Return the bound proved by the inner solution at one point."""
        constant, gains = plane(point)
        gap = domain.support(gains) - float(point.weights @ gains)
        return cls(point.value - gap - point.slack, point.dual, constant)


NO_BOUND = Bound()


def plane(point: Evaluation) -> tuple[float, Array]:
    """Return c and g of the plane at a point."""
    constant = point.value - point.slack + float(point.weights @ point.gains)
    return constant, point.gains


def certify(
    evaluation: Evaluation, domain: Domain, tol: float, bound: Bound = NO_BOUND
) -> Certificate:
    """Return the certificate of the weights of `evaluation`, for the relative gap `tol`.

    The better of its own bound and `bound`, from other weights, counts. Gains with errors ε_j
    change a bound by at most ``σ_B(ε)``, which is part of the rounding error.
    """
    return _certificate(evaluation, domain, tol, max(Bound.of(evaluation, domain), bound))


def _certificate(evaluation: Evaluation, domain: Domain, tol: float, best: Bound) -> Certificate:
    """Return the certificate of the weights of `evaluation` with the best known bound."""
    rounding = evaluation.rounding + domain.support(evaluation.gain_errors)
    gap = evaluation.value - best.value
    return Certificate(evaluation.value, best.value, gap, tol, rounding, best.dual)


# -- A run of a solver: its progress and its solution ---------------------------------------------
#
# **The observer protocol.** A solver reports every outer iterate to :meth:`Run.record`, beginning
# with the weights it starts from. The run certifies it, appends a :class:`Progress` to the history
# and calls the observer, if there is one, with that progress: once per outer iteration, in order,
# ``iteration`` counting from 0. Its certificate is that of the best weights so far with the best
# lower bound so far, so the gap never grows. If it returns True, the solver stops and returns the
# best weights so far like any other solution. An exception raised by an observer reaches the
# caller of ``solve``. Auxiliary problems (a coarse one for the start, one of few kernels) are not
# reported; `n_inner_solves` includes those that cost as much as an inner solve of the whole
# problem.
#
# The certificate of the solution, and of the last entry of the history, is computed again at the
# end from the kernels, the returned model and the dual variables of the bound. It may differ by
# rounding from the one passed to the observer.


@dataclass(frozen=True)
class Progress:
    """One outer iteration, as passed to observers and stored in the history.

    `n_inner_solves` counts the inner problems solved so far: factorisations of an m×m matrix,
    support vector machines, or sweeps over the samples for solvers by columns.
    """

    iteration: int
    n_inner_solves: int
    certificate: Certificate

    def __str__(self) -> str:
        c = self.certificate
        return (
            f"iteration {self.iteration:3d}  inner solves {self.n_inner_solves:3d}  "
            f"objective {c.primal:.10g}  relative gap {c.rel_gap:.2e}"
        )


#: Called once per outer iteration; the solver stops if it returns True.
Observer = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Solution:
    """Weights, the loss at them, and their certificate.

    `n_iter` is the length of the history: the start and the outer iterations. `status` is the
    reason why the solver ended if the certificate does not show it, and empty otherwise.
    """

    weights: Array
    certificate: Certificate
    evaluation: Evaluation = field(repr=False)
    n_iter: int
    n_inner_solves: int
    history: list[Progress] = field(repr=False)
    status: str = ""


class Run:
    """History of a solver, the point of least F so far and the best lower bound so far."""

    best: Evaluation

    def __init__(
        self, domain: Domain, tol: float, max_iter: int, observer: Observer | None = None
    ) -> None:
        self.domain, self.tol, self.max_iter, self.observer = domain, tol, max_iter, observer
        self.history: list[Progress] = []
        self.n_inner_solves = 0
        self.bound = NO_BOUND

    def record(self, point: Evaluation, n_inner_solves: int = 1, bound: Bound = NO_BOUND) -> bool:
        """Record an iterate, its inner solves and any other bound; return True to stop."""
        self.n_inner_solves += n_inner_solves
        if not self.history or point.value <= self.best.value:
            self.best = point
        self.bound = max(Bound.of(point, self.domain), self.bound, bound)
        certificate = self.certificate
        progress = Progress(len(self.history), self.n_inner_solves, certificate)
        self.history.append(progress)
        stop = self.observer is not None and self.observer(progress)
        return bool(stop) or certificate.exhausted or progress.iteration >= self.max_iter

    @property
    def certificate(self) -> Certificate:
        """Certificate of the best weights, with the best bound, which theirs is not above."""
        return _certificate(self.best, self.domain, self.tol, self.bound)

    def solution(self, loss: Loss, status: str) -> Solution:
        """Return the best weights, certified by products recomputed from the kernels.

        Weights outside of the domain, whose F may be below its minimum there, are scaled first.
        """
        best = self.best.reassessed()
        excess = self.domain.gauge(best.weights)
        if excess > 1.0 + ACCUMULATED:
            best = loss.evaluate(best.weights / excess)
        certificate = certify(best, self.domain, self.tol)
        bound = self.bound
        if bound.value > certificate.dual:
            # Dual variables of other weights, or a convex combination of them, prove more.
            if bound.dual is not None:
                bound = Bound(loss.lower_bound(bound.dual, self.domain.support), bound.dual)
            certificate = certify(best, self.domain, self.tol, bound)
        certificate = replace(certificate, note=loss.note(best))
        self.history[-1] = replace(self.history[-1], certificate=certificate)
        n_iter, n_solves = len(self.history), self.n_inner_solves
        return Solution(best.weights, certificate, best, n_iter, n_solves, self.history, status)


@dataclass(frozen=True)
class Problem:
    """Properties of a problem that a solver checks before any work."""

    spec: ProblemSpec
    domain: Domain
    tol: float


#: Returns the reason why a solver refuses a problem, as in "works at p=1 only", or None.
Need = Callable[["Solver", Problem], str | None]

#: Default solver of estimators, named first where another one refuses.
DEFAULT_SOLVER = "newton"

#: All solvers of the package, by name.
SOLVERS: dict[str, type[Solver]] = {}


class Solver(ABC):
    """Base class of solvers, which minimise a loss over a weight domain.

    A subclass passes its name as a class keyword, which enters it in :data:`SOLVERS`, and
    implements :meth:`_minimize`. All its options have defaults, so that ``SOLVERS[name]()``
    creates one. Estimators only read the attributes below and call :meth:`solve`.

    Attributes
    ----------
    name : str
        Name of the solver in the parameters of estimators.
    needs : tuple of callables
        Conditions on the problem, see :mod:`manykernels.solvers.base`.
    default_max_iter : int
        Default maximum number of outer iterations, enough unless a problem is hard.
    by_columns : bool
        Whether the solver reads kernels a few columns at a time, so that estimators need not
        store kernel matrices; `cache_bytes` is its memory for columns kept between iterations.
    on_demand : bool or None
        Whether kernels are computed on demand, for kernels that are too many to be stored. None:
        decided by the estimator from the available memory. False: never.
    """

    name: str
    needs: ClassVar[tuple[Need, ...]] = ()
    # Maximum number of Newton steps; most problems take fewer than ten.
    default_max_iter: int = 50
    by_columns: bool = False
    cache_bytes: int = 0
    on_demand: bool | None = False

    def __init_subclass__(cls, name: str | None = None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            SOLVERS[name] = cls

    def solve(
        self,
        loss: Loss,
        domain: Domain,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        start: Array | None = None,
        observer: Observer | None = None,
    ) -> Solution:
        """Minimise `loss` over `domain` to the relative gap `tol`.

        Parameters
        ----------
        loss : Loss
        domain : Domain
        tol : float, default=1e-6
            Relative gap at which to stop.
        max_iter : int, optional
            Maximum number of outer iterations; by default `default_max_iter`.
        start : ndarray of shape (n_kernels,), optional
            Initial weights; some solvers ignore them.
        observer : callable, optional
            Called with the :class:`Progress` of every outer iteration; the run ends if it returns
            True.

        Returns
        -------
        Solution

        Raises
        ------
        ValueError
            If the problem does not meet the needs of the solver.
        """
        refuse_unfit(self, Problem(loss.spec, domain, tol))
        loss = loss.within(domain.gauge).in_sweeps()
        run = Run(domain, tol, self.default_max_iter if max_iter is None else max_iter, observer)
        status = self._minimize(loss, domain, run, start)
        return run.solution(loss, status or "")

    @abstractmethod
    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str | None:
        """Pass every outer iterate, at least one, to ``run.record`` until that returns True.

        Returns the status of the :class:`Solution`, or None.
        """


def as_solver(given: object) -> Solver:
    """Return the solver of a name, or an object as a solver.

    The object needs a method ``solve``, which is called with `loss`, `domain`, `tol`, `max_iter`
    and `observer`. Attributes of :class:`Solver` that it lacks get their defaults.

    Examples
    --------
    >>> from manykernels.solvers import SIP
    >>> from manykernels.solvers.base import as_solver
    >>> as_solver("newton"), as_solver(SIP(eps=1e-4))
    (Newton(coarse_tol=0.0001, on_demand=None), SIP(eps=0.0001))
    """
    if isinstance(given, Solver):
        return given
    if isinstance(given, str) and given in SOLVERS:
        return SOLVERS[given]()
    if isinstance(given, type) or not hasattr(given, "solve"):
        raise ValueError(
            f"solver must be one of {sorted(SOLVERS)} or an object with a method solve, "
            f"got {given!r}."
        )
    return _Foreign(given)


class _Foreign(Solver):
    """Adapter of an object with a method ``solve`` that is not a :class:`Solver`."""

    # Only called by Solver.solve, which is replaced.
    _minimize = None  # type: ignore[assignment]

    def __init__(self, solver: Any) -> None:
        self.name = getattr(solver, "name", type(solver).__name__.lower())
        self.default_max_iter = getattr(solver, "default_max_iter", Solver.default_max_iter)
        self.by_columns = getattr(solver, "by_columns", Solver.by_columns)
        self.cache_bytes = getattr(solver, "cache_bytes", Solver.cache_bytes)
        self.on_demand = getattr(solver, "on_demand", Solver.on_demand)
        self.solve = solver.solve  # type: ignore[method-assign]


def start_or_uniform(start: Array | None, loss: Loss, domain: Domain) -> Array:
    """Return the given start, or the point of the domain that treats all kernels alike."""
    return domain.start(loss.n_kernels) if start is None else start


def weights_are_free(loss: Loss, domain: Domain) -> bool:
    """Return True if there are weights to learn: several kernels, and no optimal start."""
    return loss.n_kernels > 1 and not domain.start_is_optimal


def complaint(solver: Solver, problem: Problem) -> str | None:
    """Return why `solver` refuses `problem`, by the first need not met; None if it does not."""
    needs = (_one_budget, _stored_kernels, *solver.needs)
    return next(filter(None, (need(solver, problem) for need in needs)), None)


def _one_budget(solver: Solver, problem: Problem) -> str | None:
    """Require one norm of all weights if the regularisation is learnt."""
    if problem.spec.learns_reg and problem.domain.n_blocks > 1:
        return "cannot learn reg or C with weights of several regions: pass a number"
    return None


def _stored_kernels(solver: Solver, problem: Problem) -> str | None:
    """Require kernels in memory, or few kernels with a weight."""
    if not problem.spec.on_demand:
        return None
    if solver.on_demand is False:
        return "needs all kernels in memory, but these are computed on demand"
    if isinstance(problem.domain, Simplex):
        return None
    return (
        "can compute kernels on demand at p=1 only, where few of them have a weight: pass p=1, or "
        "so few kernels that they fit into memory"
    )


def refuse_unfit(solver: Solver, problem: Problem) -> None:
    """Raise ValueError if `solver` cannot solve `problem`, naming the solvers that can."""
    missing = complaint(solver, problem)
    if missing is None:
        return
    able = [name for name, other in SOLVERS.items() if complaint(other(), problem) is None]
    able.sort(key=lambda name: (name != DEFAULT_SOLVER, name))
    ways = " or ".join(f"solver={name!r}" for name in able) or "no other solver"
    raise ValueError(f"solver={solver.name!r} {missing}; {ways} takes this problem.")


def refuse_indefinite(solution: Solution, domain: Domain, loss: Loss, names: list[str]) -> None:
    """Raise ValueError if a kernel is provably not positive semi-definite.

    A negative gain proves it, as the loss would rise with the weight of that kernel. A loss below
    its lower bound proves it for some kernel. Both are ignored within the tolerance.
    """
    certificate, evaluation = solution.certificate, solution.evaluation
    allowed = certificate.tol * abs(certificate.primal)
    gains = loss.kernel_weights(evaluation.gains)
    lowest = gains + loss.kernel_weights(evaluation.gain_errors)
    # One by one, and only those with negative gains: there may be very many kernels.
    rises = np.zeros(len(lowest))
    for j in np.flatnonzero(lowest < 0.0):
        alone = np.zeros(len(lowest))
        alone[j] = -lowest[j]
        rises[j] = domain.support(alone)
    worst = int(np.argmax(rises))
    proved = bool(rises[worst] > allowed)
    if not proved and certificate.gap < -allowed - certificate.rounding:
        first = len(evaluation.gains) - len(names)
        kernels = (loss.kernel(first + j) for j in range(len(names)))
        worst = int(np.argmin([np.linalg.eigvalsh(kernel)[0] for kernel in kernels]))
        proved = True
    if proved:
        raise ValueError(
            f"Kernel {names[worst]!r} is not positive semi-definite (the objective changes "
            f"by {-gains[worst]:.3g} per unit of its weight), so the relative gap "
            f"{certificate.rel_gap:.2g} proves nothing. Build the stack with "
            'KernelStack.from_arrays(..., psd="clip") to remove the negative part, raise reg, or '
            "leave the kernel out."
        )


# -- Needs of solvers: each function returns why a problem is refused, or None --------------------
#
# The returned text completes the sentence "solver='x' …" of :func:`refuse_unfit`.


# Longest estimated time in minutes without ``force=True``.
_MOST_MINUTES = 10.0


def square_loss(solver: Solver, problem: Problem) -> str | None:
    """Require the square loss of Fisher's discriminant, with λ given or learnt."""
    kind = problem.spec.kind
    fits = issubclass(kind, SquareLoss)
    return None if fits else f"works for the square loss only, not for {kind.__name__}"


def box_loss(solver: Solver, problem: Problem) -> str | None:
    """Require the loss of a support vector machine, with bounds on each dual variable."""
    kind = problem.spec.kind
    fits = issubclass(kind, BoxLoss)
    return None if fits else f"works for support vector machines only, not for {kind.__name__}"


def dual_program(solver: Solver, problem: Problem) -> str | None:
    """Require a loss whose dual is a quadratic program."""
    kind = problem.spec.kind
    fits = hasattr(kind, "dual_program")
    return None if fits else f"needs a loss with a dual program, not {kind.__name__}"


def fixed_regularization(solver: Solver, problem: Problem) -> str | None:
    """Require λ or C to be given, not learnt."""
    return 'needs a number for reg or C, not "joint"' if problem.spec.learns_reg else None


def one_bound(solver: Solver, problem: Problem) -> str | None:
    """Require one bound for all weights."""
    several = problem.domain.n_blocks > 1
    return "has one norm of all weights, not one for each region" if several else None


def on_a_simplex(solver: Solver, problem: Problem) -> str | None:
    """Require weights on one simplex."""
    fits = isinstance(problem.domain, Simplex)
    return None if fits else one_bound(solver, problem) or "works at p=1 only"


def smooth_norm(solver: Solver, problem: Problem) -> str | None:
    """Require a single norm of the weights, with a smooth dual norm."""
    fits = isinstance(problem.domain, LpBall | Box)
    return None if fits else one_bound(solver, problem) or "works for p > 1 only"


@dataclass(frozen=True)
class Expensive(Solver):
    """Solver whose memory and time are estimated first; `force` starts it in any case."""

    force: bool = False

    @abstractmethod
    def cost(self, spec: ProblemSpec) -> tuple[float, float]:
        """Return estimated bytes and minutes for a loss of this size."""


def affordable(solver: Solver, problem: Problem) -> str | None:
    """Require estimates within available memory and ten minutes, or `force`."""
    assert isinstance(solver, Expensive)
    spec = problem.spec
    n_bytes, minutes = solver.cost(spec)
    fits = n_bytes <= (available_memory() or np.inf) and minutes <= _MOST_MINUTES
    if solver.force or fits:
        return None
    return (
        f"would take about {n_bytes / 2**30:.1f} GiB and {minutes:.0f} minutes for "
        f"{spec.n_samples} samples, {spec.n_kernels} kernels and {spec.n_outputs} "
        f"outputs ({type(solver).__name__}(force=True) runs it anyway)"
    )
