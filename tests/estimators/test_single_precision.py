"""Fits from kernels in single precision, on disk: exact, and without copies of the kernels."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from manykernels import MKFDA, MKSVC, MKSVR, KernelStack, MKRidge, rbf_grid
from tests.problems import slow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = (X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=150) / 3 > 0.5) + (X[:, 2] > 1.0)
UNION = rbf_grid([0.5, 1, 2, 4, 8]).fit(X)
MODELS = [
    MKFDA("precomputed", p=1),
    MKFDA("precomputed"),
    MKFDA("precomputed", reg="joint", normalize="trace"),
    MKFDA("precomputed", normalize="spherical"),
    MKSVC("precomputed", tol=1e-6),
    MKSVR("precomputed", p=1, tol=1e-6),
    MKRidge("precomputed", tol=1e-6),
]


@pytest.mark.parametrize("model", [*MODELS[:5], *slow(*MODELS[5:])], ids=repr)
def test_the_certificate_is_that_of_the_kernels_as_they_are_stored(tmp_path, model):
    stack = UNION(X, dtype=np.float32, memmap=tmp_path / "stack.npy")
    copy = KernelStack.from_arrays(stack.data.astype(np.float64), stack.names)
    weights, certificates, outputs = [], [], []
    for given in (stack, copy):
        model.fit(given, Y)
        weights.append(model.weights_)
        certificates.append(model.certificate_)
        outputs.append(model.predict(given[:20]))
    assert_allclose(*weights, rtol=0, atol=1e-9)
    single, double = certificates
    assert single.converged
    for name in ("primal", "dual", "gap"):
        size = 1e-9 * abs(double.primal)
        assert abs(getattr(single, name) - getattr(double, name)) <= size
    # Rounding errors are those of sums in double precision.
    assert_allclose(single.rounding, double.rounding, rtol=1e-3)
    assert_allclose(*outputs, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MKFDA, MKRidge])
def test_no_copy_of_the_kernels(tmp_path, kind):
    """A fit holds a few matrices, not the kernels: 700 rows are enough for a coarse problem."""
    m, n_kernels = 700, 40
    table = np.random.default_rng(1).normal(size=(m, 3))
    labels = (table[:, 0] > 0) + (table[:, 1] > 0.5)
    union = rbf_grid(np.logspace(-0.5, 1, n_kernels)).fit(table)
    stack = union(table, dtype=np.float32, memmap=tmp_path / "stack.npy")
    tracemalloc.start()
    try:
        kind("precomputed", reg=1.0).fit(stack, labels)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * 8 * m**2 < stack.data.nbytes
