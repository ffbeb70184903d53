"""How the best kernel weights change with the targets, to first order."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._rounding import EPS
from ..domains import Array, Domain
from ..losses.square_evaluation import SquareEvaluation

# Ridge relative to the curvature, which is singular where kernels are equal: how they share a
# weight has no effect. It changes the response by far less than the terms of second order do.
_RIDGE = 1e-10


def weight_response(evaluation: SquareEvaluation, domain: Domain) -> Array | None:
    """M of :mod:`manykernels.losses.left_out` at the minimiser of the loss over `domain`.

    At the minimiser ``g(β) = μ∇c(β)`` for the positive weights, where ``c(β) = 1`` is the
    boundary of the domain. The gains change with the targets by ``dg = 2Bᵀdh``, hence

        (∇²F + μ∇²c) dβ + ∇c dμ = 2Bᵀdh ,   ∇c·dβ = 0

    and P is the inverse of that matrix on the plane ``∇c·dβ = 0``. Weights that are zero stay
    zero.

    None where the minimiser does not depend on the targets, as for p = ∞; where there are too many
    samples for a factorisation; and where the curvature is all rounding error.
    """
    boundary = domain.level_set(evaluation.weights)
    positive = np.flatnonzero(evaluation.weights > 0.0)
    if boundary is None or len(positive) < 2 or not evaluation.factorized:
        return None
    gradient, curvature = (part[positive] for part in boundary[1:])
    weights, gains = evaluation.weights[positive], evaluation.gains[positive]
    slopes, hessian = evaluation.sensitivity(positive)
    multiplier = (gains @ weights) / (gradient @ weights)
    hessian[np.diag_indices(len(positive))] += multiplier * curvature
    # Units in which the curvature of every weight is one. Curvatures are squares of numbers with
    # relative errors of EPS: below EPS² they are rounding, and these weights do not change.
    sizes = np.diagonal(hessian)
    least = float(np.abs(sizes).max()) * EPS**2
    unit = np.where(sizes > least, 1.0 / np.sqrt(np.where(sizes > least, sizes, 1.0)), 0.0)
    if not (gradient * unit).any():
        return None
    scaled = hessian * unit * unit[:, None] + _RIDGE * np.eye(len(unit))
    normal = (gradient * unit)[:, None]
    normal /= np.linalg.norm(normal)
    plane = linalg.null_space(normal.T)
    # P = plane (planeᵀ scaled plane)⁻¹ planeᵀ in these units, and M Mᵀ = 2 B P Bᵀ.
    try:
        root = linalg.cholesky(plane.T @ scaled @ plane, lower=True)
    except linalg.LinAlgError:
        return None
    half = linalg.solve_triangular(root, plane.T, lower=True)
    return np.asarray(slopes @ (np.sqrt(2.0) * unit[:, None] * half.T))
