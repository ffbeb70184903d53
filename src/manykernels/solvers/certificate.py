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

    Attributes
    ----------
    value : float
    dual : ndarray of shape (n_samples, n_outputs) or None
        Dual variables α that prove it, where they are known.
    constant : float
        c of the plane of α, or less. The same α proves ``c − σ(g(α))`` over another domain, or
        with the gains of other kernels.
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
    """Certificate of the weights of `evaluation`, by the better of its own bound and `bound`.

    Gains with errors ε_j move the bound by no more than ``σ_B(ε)``; that is part of the rounding
    error of the certificate.

    Parameters
    ----------
    evaluation : Evaluation
        The loss at the weights.
    domain : Domain
    tol : float
        The relative gap asked for.
    bound : Bound, optional
        A bound that is known from other weights.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.domains import lp_domain
    >>> from manykernels.losses import SquareLoss
    >>> from manykernels.solvers import certify
    >>> stack = KernelStack.from_arrays(np.eye(4)[None])
    >>> point = SquareLoss(stack, np.array([[1.0], [1], [-1], [-1]]), 1.0).evaluate(np.ones(1))
    >>> certify(point, lp_domain(2), tol=1e-6).converged
    True
    """
    best = max(Bound.of(evaluation, domain), bound)
    rounding = evaluation.rounding + domain.support(evaluation.gain_errors)
    gap = evaluation.value - best.value
    return Certificate(evaluation.value, best.value, gap, tol, rounding, best.dual)
