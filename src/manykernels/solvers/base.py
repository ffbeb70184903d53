"""What a solver is and what it returns; the one duality gap of the package.

A solver names what it needs of a problem. A problem that does not fit is refused before any
work, in one sentence that says which solvers take it: :func:`refuse_unfit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Certificate, Evaluation, Loss, Outline


@dataclass(frozen=True)
class Progress:
    """One outer iteration, as shown to observers and kept in the history."""

    iteration: int
    n_inner_solves: int
    certificate: Certificate

    def __str__(self) -> str:
        c = self.certificate
        return (
            f"iteration {self.iteration:3d}  inner solves {self.n_inner_solves:3d}  "
            f"objective {c.primal:.10g}  relative gap {c.rel_gap:.2e}"
        )


#: Called once an iteration; a true answer asks the solver to stop where it is.
Observer = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Solution:
    """Weights, and the proof of how good they are.

    `status` is what a solver has to say about its end beyond the certificate, or empty.
    """

    weights: Array
    certificate: Certificate
    evaluation: Evaluation = field(repr=False)
    n_iter: int
    n_inner_solves: int
    history: list[Progress] = field(repr=False)
    status: str = ""


@dataclass(frozen=True)
class Bound:
    """A lower bound on the minimum, and the dual variables that prove it, where they are known."""

    value: float = float("-inf")
    dual: Array | None = field(default=None, repr=False)

    def __lt__(self, other: Bound) -> bool:
        return self.value < other.value


NO_BOUND = Bound()


def certify(
    evaluation: Evaluation, domain: Domain, tol: float, bound: Bound = NO_BOUND
) -> Certificate:
    """Certificate of the weights of `evaluation`.

    ``F(β) − min_B F ≤ σ_B(g) − β·g``, because F is convex with gradient −g: no b in B lowers
    F by more than ``(b − β)·g``. At the inner optimum this is the true primal–dual gap. An
    evaluation that is not exact adds its own `slack`. `bound` is what other weights have proved
    about the minimum before.

    Gains off by ε_j move the bound by no more than ``σ_B(ε)``.
    """
    gap = domain.support(evaluation.gains) - float(evaluation.weights @ evaluation.gains)
    own = Bound(evaluation.value - gap - evaluation.slack, evaluation.dual)
    best = max(own, bound)
    rounding = evaluation.rounding + domain.support(evaluation.gain_errors)
    gap = evaluation.value - best.value
    return Certificate(evaluation.value, best.value, gap, tol, rounding, best.dual)


def refuse_indefinite(
    solution: Solution, domain: Domain, loss: HasKernels, names: list[str]
) -> None:
    """Raise ValueError if a kernel cannot be positive semi-definite, as the problem supposes.

    A quadratic form below zero proves it: the loss would rise with the weight of that kernel. So
    does a value below what has been proved of the minimum. Neither matters within the tolerance.
    """
    certificate, evaluation = solution.certificate, solution.evaluation
    allowed = certificate.tol * abs(certificate.primal)
    gains = loss.kernel_weights(evaluation.gains)
    lowest = gains + loss.kernel_weights(evaluation.gain_errors)
    rises = [domain.support(row) for row in np.diag(np.maximum(-lowest, 0.0))]
    worst = int(np.argmax(rises))
    proved = rises[worst] > allowed
    if not proved and certificate.gap < -allowed - certificate.rounding:
        kernels = [loss.kernel(len(evaluation.gains) - len(names) + j) for j in range(len(names))]
        worst = int(np.argmin([np.linalg.eigvalsh(kernel)[0] for kernel in kernels]))
        proved = True
    if proved:
        raise ValueError(
            f"Kernel {names[worst]!r} is not positive semi-definite: its part in the objective is "
            f"{gains[worst]:.3g}, where none is below zero, and the relative gap "
            f"{certificate.rel_gap:.2g} proves nothing. Build the stack with "
            'KernelStack.from_arrays(..., psd="clip") to remove the negative part, raise reg, or '
            "leave the kernel out."
        )


class HasKernels(Protocol):
    """What is asked of a loss to name a kernel."""

    def kernel_weights(self, weights: Array) -> Array:
        """Those of the weights that belong to kernels."""
        ...

    def kernel(self, which: int) -> Array:
        """The matrix that a weight belongs to."""
        ...


@dataclass(frozen=True)
class Problem:
    """What solvers may ask before they take a problem."""

    outline: Outline
    domain: Domain
    tol: float


#: Each says what is missing, as in "works at p=1 only", or None.
Need = Callable[["Solver", Problem], str | None]

#: The one to name first.
DEFAULT_SOLVER = "newton"

#: By the name users give: all solvers of the package.
SOLVERS: dict[str, type[Solver]] = {}


class Solver(ABC):
    """Walks from some weights to the minimiser of a loss over a domain."""

    name: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    #: Outer iterations that are enough, unless a problem is hard.
    default_max_iter: ClassVar[int] = 50
    #: Whether a few columns of the kernels at a time are enough, so that none need be stored.
    by_columns: ClassVar[bool] = False

    def __init_subclass__(cls, name: str, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
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
            Most outer iterations; by default what the solver usually needs.
        start : ndarray of shape (n_kernels,), optional
            Weights to start from, for solvers that can.
        observer : callable, optional
            Sees the progress of every outer iteration; a true answer ends the walk.
        """
        refuse_unfit(self, Problem(loss.outline, domain, tol))
        walk = Walk(domain, tol, self.default_max_iter if max_iter is None else max_iter, observer)
        status = self._walk(loss, domain, walk, start)
        return walk.solution(loss, status or "")

    @abstractmethod
    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str | None:
        """Take the steps, telling `walk` of every point; return what is to be said of the end."""


def complaint(solver: Solver, problem: Problem) -> str | None:
    """The first need of `solver` that `problem` does not meet."""
    answers = (need(solver, problem) for need in solver.needs)
    return next((answer for answer in answers if answer is not None), None)


def refuse_unfit(solver: Solver, problem: Problem) -> None:
    """Raise ValueError if `solver` cannot take `problem`, naming those that can."""
    missing = complaint(solver, problem)
    if missing is None:
        return
    able = [name for name, other in SOLVERS.items() if complaint(other(), problem) is None]
    able.sort(key=lambda name: name != DEFAULT_SOLVER)
    ways = " or ".join(f"solver={name!r}" for name in able) or "no other solver"
    raise ValueError(f"solver={solver.name!r} {missing}; {ways} takes this problem.")


class Walk:
    """The way of a solver: its history, the best weights seen and the best bound proved."""

    def __init__(
        self, domain: Domain, tol: float, max_iter: int, observer: Observer | None
    ) -> None:
        self.domain = domain
        self.tol = tol
        self.max_iter = max_iter
        self.observer = observer
        self.history: list[Progress] = []
        self.n_inner_solves = 0
        self._best: Evaluation | None = None
        self._bound = NO_BOUND

    def arrive(self, point: Evaluation, n_inner_solves: int = 1, bound: Bound = NO_BOUND) -> bool:
        """Note a point and what it cost; True if the walk is to end here.

        `bound` is a lower bound on the minimum that the solver knows of.
        """
        self.n_inner_solves += n_inner_solves
        if self._best is None or point.value <= self._best.value:
            self._best = point
        proved = certify(point, self.domain, self.tol, max(self._bound, bound))
        self._bound = Bound(proved.dual, proved.dual_point)
        certificate = self.certificate
        progress = Progress(len(self.history), self.n_inner_solves, certificate)
        self.history.append(progress)
        stop = self.observer is not None and self.observer(progress)
        return bool(stop) or certificate.exhausted or progress.iteration >= self.max_iter

    @property
    def best(self) -> Evaluation:
        """The point with the least loss so far."""
        assert self._best is not None, "a walk has at least one point"
        return self._best

    @property
    def certificate(self) -> Certificate:
        """Of the best weights, with the best bound."""
        return certify(self.best, self.domain, self.tol, self._bound)

    def solution(self, loss: Loss, status: str) -> Solution:
        """The best weights and what a look at the kernels, not the way here, proves of them."""
        found = self.best.reassessed()
        certificate = certify(found, self.domain, self.tol)
        bound = self._bound
        if bound.value > certificate.dual:
            # Dual variables of other weights, or a mixture of them, prove more.
            if bound.dual is not None:
                bound = Bound(loss.lower_bound(bound.dual, self.domain.support), bound.dual)
            certificate = certify(found, self.domain, self.tol, bound)
        self.history[-1] = replace(self.history[-1], certificate=certificate)
        return Solution(
            weights=found.weights,
            certificate=certificate,
            evaluation=found,
            n_iter=len(self.history),
            n_inner_solves=self.n_inner_solves,
            history=self.history,
            status=status,
        )
