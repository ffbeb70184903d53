"""What a solver is and what it returns; the one duality gap of the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..domains import Array, Domain
from ..losses.base import Certificate, Evaluation, Loss


@dataclass(frozen=True)
class Progress:
    """One outer iteration, as shown to observers and kept in the history."""

    iteration: int
    n_inner_solves: int
    certificate: Certificate

    def __str__(self) -> str:
        c = self.certificate
        return (
            f"iteration {self.iteration:3d}  factorisations {self.n_inner_solves:3d}  "
            f"objective {c.primal:.10g}  relative gap {c.rel_gap:.2e}"
        )


#: Called once an iteration; a true answer asks the solver to stop where it is.
Observer = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Solution:
    """Weights, and the proof of how good they are."""

    weights: Array
    certificate: Certificate
    evaluation: Evaluation = field(repr=False)
    n_iter: int
    n_inner_solves: int
    history: list[Progress] = field(repr=False)


class Solver(Protocol):
    """Walks from some weights to the minimiser of a loss over a domain."""

    def solve(
        self,
        loss: Loss,
        domain: Domain,
        *,
        tol: float,
        max_iter: int,
        start: Array | None = None,
        observer: Observer | None = None,
    ) -> Solution: ...


def certify(evaluation: Evaluation, domain: Domain, tol: float) -> Certificate:
    """Certificate of the weights of `evaluation`.

    ``F(β) − min_B F ≤ σ_B(g) − β·g``, because F is convex with gradient −g: no b in B lowers
    F by more than ``(b − β)·g``. At the inner optimum this is the true primal–dual gap.
    """
    gap = domain.support(evaluation.gains) - float(evaluation.weights @ evaluation.gains)
    return Certificate(evaluation.value, evaluation.value - gap, gap, tol)
