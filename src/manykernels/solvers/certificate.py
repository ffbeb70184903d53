"""Lower bounds on the minimum of F, and the duality gap: one formula for all solvers.

The inner solution α found at weights β gives a plane below F, because ``D(α, b)`` is linear in b:

    F(b) ≥ D(α, b) = c − b·g   for all b,    g = −∇F(β) ,   c = D(α, β) + β·g

Its least value over the domain B is ``c − σ_B(g)``, a lower bound on the minimum. At weights β

    F(β) − min_B F ≤ F(β) − (c − σ_B(g)) = σ_B(g) − β·g + slack

where the slack ``F(β) − D(α, β)`` is zero if the inner problem is solved exactly. This is the
duality gap of the two problems ``min_b max_α D`` and ``max_α min_b D``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..domains import Array, Domain
from ..losses.base import Certificate, Evaluation


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
