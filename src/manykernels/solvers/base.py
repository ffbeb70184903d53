"""The interface of solvers, the registry of them, and the refusal of problems that do not fit.

A solver lists its needs. A problem that does not meet them is refused before any work, in one
sentence that says which solvers take it. What a solver reports and returns is in
:mod:`~manykernels.solvers.base`.
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

# -- Lower bounds on the minimum of F, and the duality gap: one formula for all solvers -----------
#
# The inner solution α found at weights β gives a plane below F, because ``D(α, b)`` is linear in
# b:
#
#     F(b) ≥ D(α, b) = c − b·g   for all b,    g = −∇F(β) ,   c = D(α, β) + β·g
#
# Its least value over the domain B is ``c − σ_B(g)``, a lower bound on the minimum. At weights β
#
#     F(β) − min_B F ≤ F(β) − (c − σ_B(g)) = σ_B(g) − β·g + slack
#
# where the slack ``F(β) − D(α, β)`` is zero if the inner problem is solved exactly. This is the
# duality gap of the two problems ``min_b max_α D`` and ``max_α min_b D``.


@dataclass(frozen=True)
class Bound:
    """A lower bound on the minimum of F over a domain; bounds compare by their value.

    `dual` are the dual variables α that prove it, where they are known. `constant` is at most the
    c of their plane, so that α also proves ``constant − σ(g(α))`` over a set of other kernels.
    """

    value: float = float("-inf")
    dual: Array | None = field(default=None, repr=False)
    constant: float = float("-inf")

    def __lt__(self, other: Bound) -> bool:
        return self.value < other.value

    @classmethod
    def of(cls, point: Evaluation, domain: Domain) -> Bound:
        """The bound that the inner solution at one point proves."""
        constant, gains = plane(point)
        gap = domain.support(gains) - float(point.weights @ gains)
        return cls(point.value - gap - point.slack, point.dual, constant)


NO_BOUND = Bound()


def plane(point: Evaluation) -> tuple[float, Array]:
    """c and g of the plane at a point."""
    constant = point.value - point.slack + float(point.weights @ point.gains)
    return constant, point.gains


def certify(
    evaluation: Evaluation, domain: Domain, tol: float, bound: Bound = NO_BOUND
) -> Certificate:
    """Certificate of the weights of `evaluation`, for the relative gap `tol`.

    The better of its own bound and of `bound`, from other weights, counts. Gains with errors ε_j
    move a bound by no more than ``σ_B(ε)``, which is part of the rounding error.
    """
    best = max(Bound.of(evaluation, domain), bound)
    rounding = evaluation.rounding + domain.support(evaluation.gain_errors)
    gap = evaluation.value - best.value
    return Certificate(evaluation.value, best.value, gap, tol, rounding, best.dual)


# -- A run of a solver: what it reports while it iterates, and what it returns --------------------
#
# **The observer protocol.** A solver reports every outer iterate to :meth:`Run.record`, beginning
# with the weights it starts from. The run certifies it, appends a :class:`Progress` to the history
# and calls the observer, if there is one, with that progress: once per outer iteration, in order,
# ``iteration`` counting from 0. Its certificate is that of the best weights so far with the best
# lower bound so far, so the gap never grows. A true answer asks the solver to stop; it then
# returns the best weights so far like any other solution. An exception that an observer raises
# reaches the caller of ``solve``. Auxiliary problems (a coarse one for the start, one of few
# kernels) are not reported; `n_inner_solves` includes those that cost as much as an inner solve of
# the whole problem.
#
# The certificate of the solution, and of the last entry of the history, is computed again at the
# end from the kernels, the returned model and the dual variables of the bound. It may differ by
# rounding from the one that the observer has seen.


@dataclass(frozen=True)
class Progress:
    """One outer iteration, as shown to observers and kept in the history.

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


#: See the module: called once per outer iteration; a true answer asks the solver to stop.
Observer = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Solution:
    """Weights, the loss at them, and the certificate of how good they are.

    `n_iter` is the length of the history: the start and the outer iterations. `status` says why
    the solver ended where the certificate does not, and is empty otherwise.
    """

    weights: Array
    certificate: Certificate
    evaluation: Evaluation = field(repr=False)
    n_iter: int
    n_inner_solves: int
    history: list[Progress] = field(repr=False)
    status: str = ""


class Run:
    """The history of a solver, the point of least F so far and the best lower bound so far."""

    best: Evaluation

    def __init__(
        self, domain: Domain, tol: float, max_iter: int, observer: Observer | None = None
    ) -> None:
        self.domain, self.tol, self.max_iter, self.observer = domain, tol, max_iter, observer
        self.history: list[Progress] = []
        self.n_inner_solves = 0
        self.bound = NO_BOUND

    def record(self, point: Evaluation, n_inner_solves: int = 1, bound: Bound = NO_BOUND) -> bool:
        """Record an iterate, its inner solves, any other bound; True if the solver is to stop."""
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
        """Of the best weights, with the best bound."""
        return certify(self.best, self.domain, self.tol, self.bound)

    def solution(self, loss: Loss, status: str) -> Solution:
        """The best weights, certified by products that are computed again from the kernels.

        Weights outside of the domain, whose F may be below its minimum there, are scaled first.
        """
        found = self.best.reassessed()
        excess = self.domain.gauge(found.weights)
        if excess > 1.0 + ACCUMULATED:
            found = loss.evaluate(found.weights / excess)
        certificate = certify(found, self.domain, self.tol)
        bound = self.bound
        if bound.value > certificate.dual:
            # Dual variables of other weights, or a convex combination of them, prove more.
            if bound.dual is not None:
                bound = Bound(loss.lower_bound(bound.dual, self.domain.support), bound.dual)
            certificate = certify(found, self.domain, self.tol, bound)
        certificate = replace(certificate, note=loss.note(found))
        self.history[-1] = replace(self.history[-1], certificate=certificate)
        n_iter, n_solves = len(self.history), self.n_inner_solves
        return Solution(found.weights, certificate, found, n_iter, n_solves, self.history, status)


@dataclass(frozen=True)
class Problem:
    """What a solver may inspect before any work, to refuse the problem if need be."""

    spec: ProblemSpec
    domain: Domain
    tol: float


#: Returns why a solver refuses a problem, as in "works at p=1 only", or None if it takes it.
Need = Callable[["Solver", Problem], str | None]

#: The solver that estimators use unless told otherwise, named first where another one refuses.
DEFAULT_SOLVER = "newton"

#: All solvers of the package, by the name that users give.
SOLVERS: dict[str, type[Solver]] = {}


class Solver(ABC):
    """Minimises a loss over a weight domain.

    A subclass gives its name as a class keyword, which enters it in :data:`SOLVERS`, and
    implements :meth:`_minimize`. All its options have defaults, so that ``SOLVERS[name]()``
    makes one. Estimators read the attributes below and call :meth:`solve`, nothing else.

    Attributes
    ----------
    name : str
        The name by which users choose it.
    needs : tuple of callables
        Conditions on the problem, see :mod:`manykernels.solvers.base`.
    default_max_iter : int
        Outer iterations that are enough, unless a problem is hard.
    by_columns : bool
        Whether it reads kernels a few columns at a time, so that estimators need not store
        kernel matrices; `cache_bytes` is its memory for columns kept between iterations.
    on_demand : bool or None
        Whether kernels are to be computed when they are needed, for kernels that are too many to
        be stored; None leaves it to the estimator, by the memory there is, and False to nobody.
    """

    name: str
    needs: ClassVar[tuple[Need, ...]] = ()
    # Newton steps; most problems take fewer than ten.
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
            Limit on outer iterations; by default `default_max_iter`.
        start : ndarray of shape (n_kernels,), optional
            Weights to start from; some solvers ignore them.
        observer : callable, optional
            Called with the :class:`Progress` of every outer iteration; a true answer ends the run.

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

        Returns the status of the :class:`Solution`, if there is one.
        """


def as_solver(given: Any) -> Solver:
    """The solver of that name, or the given object as a solver.

    Any object with a method ``solve`` will do, which is called with `loss`, `domain`, `tol`,
    `max_iter` and `observer`. Attributes of :class:`Solver` that it lacks get their defaults.

    Examples
    --------
    >>> from manykernels.solvers import SIP
    >>> from manykernels.solvers.base import as_solver
    >>> as_solver("newton"), as_solver(SIP(eps=1e-4))
    (Newton(coarse_tol=0.001, on_demand=None), SIP(eps=0.0001))
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
    """A solver whose ``solve`` is that of another object, which is no :class:`Solver`."""

    # Only Solver.solve calls it, and that is replaced.
    _minimize = None  # type: ignore[assignment]

    def __init__(self, given: Any) -> None:
        self.name = getattr(given, "name", type(given).__name__.lower())
        self.default_max_iter = getattr(given, "default_max_iter", Solver.default_max_iter)
        self.by_columns = getattr(given, "by_columns", Solver.by_columns)
        self.cache_bytes = getattr(given, "cache_bytes", Solver.cache_bytes)
        self.on_demand = getattr(given, "on_demand", Solver.on_demand)
        self.solve = given.solve  # type: ignore[method-assign]


def start_or_uniform(start: Array | None, loss: Loss, domain: Domain) -> Array:
    """The given start, or the point of the domain that treats all kernels alike."""
    return domain.start(loss.n_kernels) if start is None else start


def weights_are_free(loss: Loss, domain: Domain) -> bool:
    """Whether there are weights to learn: several kernels, and a start that may not be optimal."""
    return loss.n_kernels > 1 and not domain.start_is_optimal


def complaint(solver: Solver, problem: Problem) -> str | None:
    """Why `solver` refuses `problem`, by the first need that is not met; None if it takes it."""
    needs = (_one_budget, _stored_kernels, *solver.needs)
    return next(filter(None, (need(solver, problem) for need in needs)), None)


def _one_budget(solver: Solver, problem: Problem) -> str | None:
    """A regularisation that is learnt has a norm in common with all weights."""
    if problem.spec.learns_reg and problem.domain.n_blocks > 1:
        return "cannot learn reg or C with weights of several regions: pass a number"
    return None


def _stored_kernels(solver: Solver, problem: Problem) -> str | None:
    """Kernels that are computed on demand can be used where few of them have a weight."""
    if not problem.spec.on_demand:
        return None
    if solver.on_demand is False:
        return "needs all kernels in memory, and these are computed on demand"
    if isinstance(problem.domain, Simplex):
        return None
    return (
        "can compute kernels on demand at p=1 only, where few of them have a weight: pass p=1, or "
        "so few kernels that they fit into memory"
    )


def refuse_unfit(solver: Solver, problem: Problem) -> None:
    """Raise ValueError if `solver` cannot take `problem`, naming those that can."""
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
    its lower bound proves it of some kernel. Neither matters within the tolerance.
    """
    certificate, evaluation = solution.certificate, solution.evaluation
    allowed = certificate.tol * abs(certificate.primal)
    gains = loss.kernel_weights(evaluation.gains)
    lowest = gains + loss.kernel_weights(evaluation.gain_errors)
    # Each alone, and only those that are negative: there may be very many kernels.
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


# -- What solvers need of a problem: each function returns why it is refused, or None -------------
#
# The answer completes the sentence "solver='x' …" of :func:`~manykernels.solvers.refuse_unfit`.


# Longest estimated time that starts without ``force=True``: about as long as a user may wait.
_MOST_MINUTES = 10.0


def square_loss(solver: Solver, problem: Problem) -> str | None:
    """The loss is that of Fisher's discriminant, with λ given or learnt."""
    kind = problem.spec.kind
    fits = issubclass(kind, SquareLoss)
    return None if fits else f"works for the square loss only, not for {kind.__name__}"


def box_loss(solver: Solver, problem: Problem) -> str | None:
    """The loss is that of a support vector machine, with bounds on each dual variable."""
    kind = problem.spec.kind
    fits = issubclass(kind, BoxLoss)
    return None if fits else f"works for support vector machines only, not for {kind.__name__}"


def dual_program(solver: Solver, problem: Problem) -> str | None:
    """The dual of the loss is a quadratic program."""
    kind = problem.spec.kind
    fits = hasattr(kind, "dual_program")
    return None if fits else f"needs a loss with a dual program, not {kind.__name__}"


def fixed_regularization(solver: Solver, problem: Problem) -> str | None:
    """λ or C is given, not learnt."""
    return 'needs a number for reg or C, not "joint"' if problem.spec.learns_reg else None


def one_bound(solver: Solver, problem: Problem) -> str | None:
    """All weights have one bound in common."""
    several = problem.domain.n_blocks > 1
    return "has one norm of all weights, not one for each region" if several else None


def on_a_simplex(solver: Solver, problem: Problem) -> str | None:
    """Weights live on one simplex."""
    fits = isinstance(problem.domain, Simplex)
    return None if fits else one_bound(solver, problem) or "works at p=1 only"


def smooth_norm(solver: Solver, problem: Problem) -> str | None:
    """The norm of the weights, one of all of them, has a smooth dual norm."""
    fits = isinstance(problem.domain, LpBall | Box)
    return None if fits else one_bound(solver, problem) or "works for p > 1 only"


@dataclass(frozen=True)
class Expensive(Solver):
    """A solver whose memory and time are estimated first; `force` starts it whatever they are."""

    force: bool = False

    @abstractmethod
    def cost(self, spec: ProblemSpec) -> tuple[float, float]:
        """Estimated bytes and minutes for a loss of this size."""


def affordable(solver: Solver, problem: Problem) -> str | None:
    """The estimates are within available memory and ten minutes, or the solver is forced."""
    assert isinstance(solver, Expensive)
    spec = problem.spec
    n_bytes, minutes = solver.cost(spec)
    fits = n_bytes <= (available_memory() or np.inf) and minutes <= _MOST_MINUTES
    if solver.force or fits:
        return None
    return (
        f"would take about {n_bytes / 2**30:.1f} GiB and {minutes:.0f} minutes for "
        f"{spec.n_samples} samples, {spec.n_kernels} kernels and {spec.n_outputs} "
        f"outputs ({type(solver).__name__}(force=True) tries all the same)"
    )
