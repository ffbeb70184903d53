"""Lower bounds on the minimum of F, and the duality gap: one formula for all solvers.

The inner solution α found at weights β gives a plane that lies below F, because ``D(α, b)`` is
linear in b:

    F(b) ≥ D(α, b) = c − b·g   for all b,    g = −∇F(β) ,   c = D(α, β) + β·g

Over the domain B it is at least ``c − σ_B(g)``, which bounds the minimum. At weights β

    F(β) − min_B F ≤ F(β) − (c − σ_B(g)) = σ_B(g) − β·g + slack

where the slack ``F(β) − D(α, β)`` is zero if the inner problem is solved exactly. Then this is
the duality gap of the two problems ``min_b max_α D`` and ``max_α min_b D``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..domains import Array, Domain
from ..losses.base import Certificate, Evaluation


@dataclass(frozen=True)
class Bound:
    """A lower bound on the minimum of F over a domain; bounds compare by their value.

    `dual` are the dual variables α that prove it, where they are known, and `constant` is c of
    their plane or less: the same α proves ``c − σ(g(α))`` with the gains of other kernels.
    """

    value: float = float("-inf")
    dual: Array | None = field(default=None, repr=False)
    constant: float = float("-inf")

    def __lt__(self, other: Bound) -> bool:
        return self.value < other.value

    @classmethod
    def of(cls, point: Evaluation, domain: Domain) -> Bound:
        """What the inner solution at one point proves."""
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
    """Certificate of the weights of `evaluation`, to be compared with the relative gap `tol`.

    `bound` is what is known of the minimum from other weights; the better bound counts. Gains
    with errors ε_j move a bound by no more than ``σ_B(ε)``, which is part of the rounding error.
    """
    best = max(Bound.of(evaluation, domain), bound)
    rounding = evaluation.rounding + domain.support(evaluation.gain_errors)
    gap = evaluation.value - best.value
    return Certificate(evaluation.value, best.value, gap, tol, rounding, best.dual)
