"""A run of a solver: what it reports while it iterates, and what it returns.

**The observer protocol.** A solver reports every outer iterate to :meth:`Run.record`, beginning
with the weights it starts from. The run certifies it, appends a :class:`Progress` to the history
and calls the observer, if there is one, with that progress: once per outer iteration, in order,
``iteration`` counting from 0. Its certificate is that of the best weights so far with the best
lower bound so far, so the gap never grows. A true answer asks the solver to stop; it then returns
the best weights so far like any other solution. An exception that an observer raises ends the
run and reaches the caller of ``solve``. Problems that a solver solves on the way (a coarse one for
the start, one of few kernels) are not reported; what they cost is part of `n_inner_solves` where
it is of the size of an inner solve of the whole problem.

The certificate of the solution, and of the last entry of the history, is computed again at the
end from the kernels and the returned model alone. It may differ by rounding from the one that
the observer has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..domains import Array, Domain
from ..losses.base import Certificate, Evaluation, Loss
from .certificate import NO_BOUND, Bound, certify


@dataclass(frozen=True)
class Progress:
    """One outer iteration, as shown to observers and kept in the history.

    `n_inner_solves` counts the inner problems solved so far: factorisations of an m×m matrix,
    support vector machines, or for solvers by columns sweeps over the samples.
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
    """Weights, the loss there, and the proof of how good they are.

    `n_iter` is the length of the history, outer iterations and the start. `status` is what the
    solver has to say about its end beyond the certificate, or empty.
    """

    weights: Array
    certificate: Certificate
    evaluation: Evaluation = field(repr=False)
    n_iter: int
    n_inner_solves: int
    history: list[Progress] = field(repr=False)
    status: str = ""


class Run:
    """The history of a solver, the best weights seen and the best lower bound proved.

    It is to end at the relative gap `tol`, or after `max_iter` outer iterations after the start.
    """

    def __init__(
        self, domain: Domain, tol: float, max_iter: int, observer: Observer | None = None
    ) -> None:
        self.domain = domain
        self.tol = tol
        self.max_iter = max_iter
        self.observer = observer
        self.history: list[Progress] = []
        self.n_inner_solves = 0
        self._best: Evaluation | None = None
        self._bound = NO_BOUND

    def record(self, point: Evaluation, n_inner_solves: int = 1, bound: Bound = NO_BOUND) -> bool:
        """Record an outer iterate and what it cost; True if the solver is to stop.

        `bound` is a lower bound on the minimum that the solver knows from elsewhere.
        """
        self.n_inner_solves += n_inner_solves
        if self._best is None or point.value <= self._best.value:
            self._best = point
        self._bound = max(Bound.of(point, self.domain), self._bound, bound)
        certificate = self.certificate
        progress = Progress(len(self.history), self.n_inner_solves, certificate)
        self.history.append(progress)
        stop = self.observer is not None and self.observer(progress)
        return bool(stop) or certificate.exhausted or progress.iteration >= self.max_iter

    @property
    def best(self) -> Evaluation:
        """The point with the least loss so far."""
        assert self._best is not None, "a run has at least one point"
        return self._best

    @property
    def certificate(self) -> Certificate:
        """Of the best weights, with the best bound."""
        return certify(self.best, self.domain, self.tol, self._bound)

    def solution(self, loss: Loss, status: str) -> Solution:
        """The best weights, certified anew by products computed from the kernels."""
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
