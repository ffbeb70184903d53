"""A run of a solver: what it reports while it iterates, and what it returns.

**The observer protocol.** A solver reports every outer iterate to :meth:`Run.record`, beginning
with the weights it starts from. The run certifies it, appends a :class:`Progress` to the history
and calls the observer, if there is one, with that progress: once per outer iteration, in order,
``iteration`` counting from 0. Its certificate is that of the best weights so far with the best
lower bound so far, so the gap never grows. A true answer asks the solver to stop; it then returns
the best weights so far like any other solution. An exception that an observer raises reaches the
caller of ``solve``. Auxiliary problems (a coarse one for the start, one of few kernels) are not
reported; `n_inner_solves` includes those that cost as much as an inner solve of the whole problem.

The certificate of the solution, and of the last entry of the history, is computed again at the
end from the kernels, the returned model and the dual variables of the bound. It may differ by
rounding from the one that the observer has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .._rounding import ACCUMULATED
from ..domains import Array, Domain
from ..losses.base import Certificate, Evaluation, Loss
from .certificate import NO_BOUND, Bound, certify


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
