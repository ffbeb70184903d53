"""Domains of kernel weights: convex sets B of non-negative weights.

A domain provides its support function ``σ_B(g) = max_{b ∈ B} b·g``, which certificates need, the
point where that maximum is attained, and ``x ∈ B`` as constraints of a conic program. No loss
but a tilted one increases with a weight, so there is a minimiser on the outer boundary of B.

Weights may be cut into blocks, each with a bound of its own (:class:`Product`): of a localized
machine, the weights of each region. Other domains have one block.
"""

from .base import Array, ConicForm, Domain
from .norms import Box, LpBall, Simplex, TraceSimplex, lp_domain
from .product import Product, product_domain

__all__ = [
    "Array",
    "Box",
    "ConicForm",
    "Domain",
    "LpBall",
    "Product",
    "Simplex",
    "TraceSimplex",
    "lp_domain",
    "product_domain",
]
