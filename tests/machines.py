"""Small support vector machines of several kernels, shared by the test suites."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from manykernels import KernelStack
from manykernels.losses.svm import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    JointSquaredHingeLoss,
    OneClassLoss,
    SquaredHingeLoss,
)
from tests.problems import labels_for, random_gram_matrices

C, EPSILON, NU = 2.0, 0.2, 0.3


def gram_matrices(m, seed=0):
    """Two Gaussian kernels and two of low rank."""
    X = np.random.default_rng(seed).standard_normal((m, 4))

    def gaussian(columns, gamma):
        return np.exp(-gamma * ((X[:, None, columns] - X[:, columns]) ** 2).sum(2))

    low = random_gram_matrices(3, m, seed)[1:]
    return np.array([gaussian([0, 1], 0.5), low[0], gaussian([2, 3], 1.0), low[1]])


def stacks(m):
    base = gram_matrices(m)
    near = 1e-9 * gram_matrices(m, seed=9)[1:2]
    return {
        "plain": base,
        "near duplicates": np.concatenate([base, base[:1], base[1:2] + near]),
        "zero kernel": np.concatenate([base, np.zeros((1, m, m))]),
        "one kernel": base[:1],
        "scales far apart": base * np.array([1e-6, 1.0, 1e6, 1.0])[:, None, None],
    }


def signs_for(m, n_classes=2, seed=0):
    """Labels that the first Gaussian kernel can learn, up to noise."""
    if n_classes > 2:
        return 2.0 * (labels_for(m, n_classes, seed)[:, None] == np.arange(n_classes)) - 1.0
    X = np.random.default_rng(seed).standard_normal((m, 4))
    noise = np.random.default_rng(seed + 1).standard_normal(m)
    return np.where(X[:, 0] * X[:, 1] + 0.3 * noise > 0.0, 1.0, -1.0)


def targets_for(m):
    X = np.random.default_rng(0).standard_normal((m, 4))
    return 3.0 + X[:, 0] ** 2 + np.sin(X[:, 2]) + 0.2 * np.cos(17.0 * np.arange(m))


LOSSES = {
    "hinge": lambda K, **o: HingeLoss(K, signs_for(K.shape[0]), C, **o),
    "squared hinge": lambda K, **o: SquaredHingeLoss(K, signs_for(K.shape[0]), C, **o),
    "joint squared hinge": lambda K, **o: JointSquaredHingeLoss(K, signs_for(K.shape[0]), **o),
    "epsilon": lambda K, **o: EpsilonInsensitiveLoss(K, targets_for(K.shape[0]), C, EPSILON, **o),
    "one class": lambda K, **o: OneClassLoss(K, NU, **o),
    "three outputs": lambda K, **o: HingeLoss(K, signs_for(K.shape[0], 3), C, **o),
}


def machine(kind, matrices, inner_tol=1e-9):
    """A loss on kernels (n, m, m)."""
    return LOSSES[kind](KernelStack.from_arrays(matrices), inner_tol=inner_tol)


def check_feasible(loss, point):
    """Bounds hold exactly, sums up to rounding."""
    for problem, v in zip(loss.problems, point.dual.T, strict=True):
        assert (v >= problem.lower).all()
        assert (v <= problem.upper).all()
        assert abs(v.sum() - problem.total) <= 1e-11 * max(np.abs(v).sum(), 1.0)


def primal_optimum(kind, matrices, p, n_blocks=1):
    """Minimum of the primal of several kernels, as written by Kloft et al. (2011).

    ``½(Σ_j ‖w_j‖^r)^{2/r}`` with r = 2p/(p + 1) is ``½ Σ ‖w_j‖²/β_j`` at the best β. Where the
    weights are a product of balls it is the sum of such terms (Lei et al. 2016).
    """
    m = matrices.shape[1]
    parts = []
    for K in matrices:
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-13 * values[-1]
        parts.append(vectors[:, kept] * np.sqrt(values[kept]))
    W = [cp.Variable(part.shape[1]) for part in parts]
    b = cp.Variable()
    f = sum(part @ w for part, w in zip(parts, W, strict=True))
    norms = [cp.norm(w) for w in W]
    r = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    width = len(norms) // n_blocks
    size = sum(
        cp.square(cp.pnorm(cp.hstack(norms[first : first + width]), r)) / 2
        for first in range(0, len(norms), width)
    )
    y = signs_for(m)
    cost = {
        "hinge": lambda: C * cp.sum(cp.pos(1 - cp.multiply(y, f + b))),
        "squared hinge": lambda: C / 2 * cp.sum(cp.square(cp.pos(1 - cp.multiply(y, f + b)))),
        "epsilon": lambda: C * cp.sum(cp.pos(cp.abs(targets_for(m) - f - b) - EPSILON)),
        "one class": lambda: cp.sum(cp.pos(-f - b)) + NU * m * b,
    }[kind]()
    problem = cp.Problem(cp.Minimize(size + cost))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value
