"""Sums and products of kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from manykernels.kernels import RBF, Cosine, Intersection, Laplacian, Linear, Polynomial
from manykernels.kernels.composition import Constant

tables = arrays(np.float64, (5, 2), elements=st.floats(0, 10, width=32))
atoms = st.sampled_from(
    [Linear(), RBF(0.5), Laplacian(0.2), Polynomial(2, 0.1), Cosine(), Intersection()]
) | st.floats(0.125, 5).map(Constant)
kernels = st.recursive(
    atoms,
    lambda inner: st.builds(
        lambda a, b, plus: a + b if plus else a * b, inner, inner, st.booleans()
    ),
    max_leaves=4,
)


@given(kernels, kernels, tables)
def test_value_of_sum_and_product(a, b, X):
    assert_allclose((a + b)(X), a(X) + b(X))
    assert_allclose((a * b)(X), a(X) * b(X))


@pytest.mark.slow
@given(kernels, kernels, kernels, tables)
def test_ring_laws(a, b, c, X):
    assert_array_equal((a + b)(X), (b + a)(X))
    assert_array_equal((a * b)(X), (b * a)(X))
    assert_allclose(((a + b) + c)(X), (a + (b + c))(X), rtol=1e-9)
    assert_allclose((a * (b + c))(X), (a * b + a * c)(X), rtol=1e-9)
    assert_array_equal((a + 0)(X), a(X))
    assert_array_equal((1 * a)(X), a(X))


@given(kernels, tables)
def test_combinations_stay_psd(kernel, X):
    assert kernel.is_psd
    eigenvalues = np.linalg.eigvalsh(kernel(X))
    assert eigenvalues[0] >= -1e-9 * max(eigenvalues[-1], 1e-300)


@given(kernels, tables)
def test_diag_of_combinations(kernel, X):
    assert_allclose(kernel.diag(X), np.diagonal(kernel(X)), rtol=1e-9)


def test_numbers_become_constants():
    for kernel in (2 * Linear(), np.float64(2) * Linear(), np.int64(2) * Linear()):
        assert repr(kernel) == "Product(left=Constant(value=2.0), right=Linear())"
    assert repr(Linear() + 1) == "Sum(left=Linear(), right=Constant())"


def test_nested_parameters():
    kernel = RBF() + Linear() * RBF(gamma=2.0)
    kernel.set_params(left__gamma=0.5, right__right__width=3.0)
    assert kernel.left.gamma == 0.5
    assert clone(kernel).get_params()["right__right__width"] == 3.0


def test_parts_are_fitted_as_clones():
    X = np.random.default_rng(0).normal(size=(6, 2))
    rbf = RBF(gamma="median")
    kernel = (rbf + Linear()).fit(X)
    assert not hasattr(rbf, "gamma_")
    assert_allclose(kernel(X), clone(rbf).fit(X)(X) + Linear()(X))


def test_unfitted_part_is_named():
    with pytest.raises(NotFittedError, match=r"RBF\(gamma='scale'\)"):
        (RBF() + 1)([[1.0]])


@pytest.mark.parametrize(
    ("kernel", "is_psd"),
    [
        (Linear() + 1, True),
        (Linear() * -1, False),
        (Linear() + Polynomial(coef0=-1.0), False),
    ],
)
def test_psd_when_both_are(kernel, is_psd):
    assert kernel.is_psd is is_psd


@pytest.mark.parametrize("other", ["rbf", None, [1.0], np.eye(2)])
def test_other_operands_are_refused(other):
    with pytest.raises(TypeError):
        RBF() + other
    with pytest.raises(TypeError):
        other * RBF()


def test_parts_must_be_kernels():
    with pytest.raises(ValueError, match="'right' parameter of Sum"):
        (RBF() + Linear()).set_params(right="linear").fit([[1.0]])


def test_overflow_of_a_product():
    with pytest.raises(ValueError, match=r"'Product'.* row 0, column 0"):
        (Linear() * Linear())([[1e100]])
