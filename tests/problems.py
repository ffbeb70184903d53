"""Small problems shared by the test suites."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from manykernels import KernelStack
from manykernels.discriminant import fisher_targets
from manykernels.domains import lp_domain
from manykernels.kernels.on_demand import RegionalKernels
from manykernels.kernels.transforms import Center, preparation
from manykernels.losses.base import ProblemSpec
from manykernels.losses.features import FeatureLoss, FeatureSums
from manykernels.losses.square import SquareLoss
from manykernels.solvers import SOLVERS
from manykernels.solvers.base import Problem, complaint

PAPER_PS = [1.0, *(1 + 2.0**-k for k in range(6, 0, -1)), 2.0, 3.0, 4.0, 8.0, np.inf]


def takes(name, spec, domain):
    """Whether a solver can be asked; a case that it refuses is no case of a law on answers."""
    return complaint(SOLVERS[name](), Problem(spec, domain, 1e-6)) is None


def _takes_the_square_loss(name):
    spec = ProblemSpec(SquareLoss, n_samples=30, n_kernels=3, n_outputs=1)
    return any(takes(name, spec, lp_domain(p)) for p in (1.0, 2.0))


#: Solvers that a discriminant can use at some p.
SQUARE_SOLVERS = sorted(filter(_takes_the_square_loss, SOLVERS))


def random_gram_matrices(n_kernels, n_rows, seed=0, rank=None):
    """PSD matrices of different rank and spectrum."""
    rng = np.random.default_rng(seed)
    matrices = []
    for j in range(n_kernels):
        factor = rng.standard_normal((n_rows, rank or 2 + 2 * j))
        factor *= np.exp(-rng.uniform(0, 2) * np.arange(factor.shape[1]))
        matrices.append(factor @ factor.T)
    return np.array(matrices)


def labels_for(n_rows, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    return rng.permutation(np.arange(n_rows) % n_classes)


def square_loss(
    matrices, n_classes=2, reg=0.1, seed=0, sample_weight=None, normalize="multiplicative"
):
    """Square loss on centred kernels with Fisher's targets."""
    labels = labels_for(matrices.shape[1], n_classes, seed)
    stack = KernelStack.from_arrays(matrices)
    stack = preparation(normalize).fit_transform(stack, sample_weight=sample_weight)
    masses = np.bincount(labels, weights=sample_weight).astype(float)
    return SquareLoss(stack, fisher_targets(labels, masses), reg, sample_weight)


def region_factors(n_regions, n_rows, seed=0):
    """Roots of shares that sum to one; regions along the rows, so that all of them differ."""
    rng = np.random.default_rng(seed)
    place = np.linspace(0, n_regions - 1, n_rows) + 0.3 * rng.standard_normal(n_rows)
    shares = np.exp(-2.0 * (place - np.arange(n_regions)[:, None]) ** 2)
    return np.sqrt(shares / shares.sum(axis=0))


def regional_square_loss(matrices, factors, n_classes=2, reg=0.1, seed=0):
    """Square loss on centred kernels of regions with Fisher's targets."""
    labels = labels_for(matrices.shape[1], n_classes, seed)
    stack = preparation("multiplicative", center=False).fit_transform(
        KernelStack.from_arrays(matrices)
    )
    regional = Center().fit_transform(RegionalKernels(stack, factors, factors))
    masses = np.bincount(labels).astype(float)
    return SquareLoss(regional, fisher_targets(labels, masses), reg)


def dense_kernels(loss):
    """The kernels of a loss as one array (n_kernels, m, m), sample weights applied."""
    kernels = np.moveaxis(np.asarray(loss.kernels), -1, 0)
    if loss.sample_weight is None:
        return kernels, loss.targets
    roots = np.sqrt(loss.sample_weight)
    return kernels * np.outer(roots, roots), loss.targets * roots[:, None]


def feature_loss(loss):
    """The same loss on explicit features: m of each kernel, from its eigenvectors."""
    kernels, targets = dense_kernels(loss)
    values, vectors = np.linalg.eigh(kernels)
    parts = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    Z = np.hstack(list(parts))
    kernel_of = np.repeat(np.arange(len(kernels)), kernels.shape[1])
    sums = FeatureSums(
        Z.T @ Z, Z.T @ targets, targets.T @ targets, kernel_of, len(kernels), len(targets)
    )
    return FeatureLoss(sums, loss.reg)


def slow(*cases):
    """Cases of a parametrised test that only `make test-slow` runs."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def some_slow(names, *waiting):
    """Names of cases, of which only `make test-slow` runs some."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in waiting)) for name in names]


def scikit_learn_checks(estimator):
    """Checks of scikit-learn that an estimator does not pass, and how many it does."""
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    broken = [
        f"{result['check_name']}: {result['exception']!r}"
        for result in results
        if result["status"] in ("failed", "xfail")
    ]
    return broken, sum(result["status"] == "passed" for result in results)


# Sample weights against repeated rows, which these checks shuffle. Folds are drawn by the order of
# the rows, so that they cannot hold where something is chosen or judged by folds. (With its λ of
# 1e-8, left-out outputs of KimFDA are known to fewer digits than the checks compare.)
WEIGHTS_AND_REPEATS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def broken_unexpectedly(broken, estimator):
    """Lines about checks that were to pass."""
    name = type(estimator).__name__
    by_folds = (
        "CV" in name
        or "Localized" in name
        or name in ("KimFDA", "BestKernel", "LPBeta", "LPB")
        or getattr(getattr(estimator, "denoise", None), "variance", None) == "cv"
    )
    expected = WEIGHTS_AND_REPEATS if by_folds else set()
    return [line for line in broken if line.split(":")[0] not in expected]
