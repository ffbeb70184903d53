"""How the best kernel weights change with the targets, to first order."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._rounding import EPS
from ..domains import Array, Domain
from ..losses.left_out import LeavesOut

# Ridge relative to the curvature, which is singular where kernels are equal: how they share a
# weight has no effect. It changes the response by far less than the terms of second order do.
_RIDGE = 1e-10


def weight_response(evaluation: LeavesOut, domain: Domain) -> Array | None:
    """M of :mod:`manykernels.losses.left_out` at the minimiser of the loss over `domain`.

    At the minimiser ``g(β) = μ∇c(β)`` for the positive weights, where ``c(β) = 1`` is the
    boundary of the domain, with a c and a μ for every block of weights. The gains change with the
    targets by ``dg = 2Bᵀdh``, hence

        (∇²F + μ∇²c) dβ + ∇c dμ = 2Bᵀdh ,   ∇c·dβ = 0

    and P is the inverse of that matrix on the plane ``∇c·dβ = 0``. Weights that are zero stay
    zero. At a point that is only nearly the minimiser, weights that should be zero may be small
    instead, with gains below μ∇c. Such weights of β_j and slack ``s_j = μ∇c_j − g_j > 0`` follow
    ``β_j s_j = constant``, the path of interior-point methods: ``s_j/β_j`` joins the diagonal, so
    that they hardly move. Taken for positive ones they would move by far more than their size,
    where the curvature is small (large λ).

    None where the minimiser does not depend on the targets, as for p = ∞ or where each block has
    one positive weight; where there are too many
    samples for a factorisation; and where the curvature is all rounding error.
    """
    boundary = domain.level_set(evaluation.weights)
    positive = np.flatnonzero(evaluation.weights > 0.0)
    if boundary is None or len(positive) < 2 or not evaluation.factorized:
        return None
    gradient, curvature = (part[positive] for part in boundary[1:])
    slopes, hessian = evaluation.sensitivity(positive)
    # μ∇c·β = g·β over the weights of a block.
    block = domain.block_of(len(evaluation.weights))[positive]
    worth = domain.block_sums(evaluation.gains * evaluation.weights)
    size = domain.block_sums(boundary[1] * evaluation.weights)
    multiplier = worth / np.where(size > 0.0, size, 1.0)
    slack = np.maximum(multiplier[block] * gradient - evaluation.gains[positive], 0.0)
    stiffness = multiplier[block] * curvature + slack / evaluation.weights[positive]
    hessian[np.diag_indices(len(positive))] += stiffness
    # Units in which the curvature of every weight is one. Curvatures are squares of numbers with
    # relative errors of EPS: below EPS² they are rounding, and these weights do not change.
    sizes = np.diagonal(hessian)
    least = float(np.abs(sizes).max()) * EPS**2
    unit = np.where(sizes > least, 1.0 / np.sqrt(np.where(sizes > least, sizes, 1.0)), 0.0)
    # The normals of the boundaries, one column for each block with a weight that can change.
    normals = (gradient * unit)[:, None] * (block[:, None] == np.unique(block))
    lengths = np.linalg.norm(normals, axis=0)
    if not lengths.any():
        return None
    normals = normals[:, lengths > 0.0] / lengths[lengths > 0.0]
    scaled = hessian * unit * unit[:, None] + _RIDGE * np.eye(len(unit))
    plane = linalg.null_space(normals.T)
    if not plane.size:
        return None
    # P = plane (planeᵀ scaled plane)⁻¹ planeᵀ in these units, and M Mᵀ = 2 B P Bᵀ.
    try:
        root = linalg.cholesky(plane.T @ scaled @ plane, lower=True)
    except linalg.LinAlgError:
        return None
    half = linalg.solve_triangular(root, plane.T, lower=True)
    return np.asarray(slopes @ (np.sqrt(2.0) * unit[:, None] * half.T))
