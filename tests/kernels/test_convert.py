"""What can stand for a kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from manykernels.kernels import RBF, KernelUnion
from manykernels.kernels.adapters import (
    CallableKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    as_kernel,
)

X = np.random.default_rng(0).gamma(1.0, size=(9, 3))


@pytest.mark.parametrize("name", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_names_mean_what_they_mean_in_scikit_learn(name):
    kernel = as_kernel(name).fit(X)
    assert_allclose(kernel(X, X[:4]), pairwise_kernels(X, X[:4], metric=name), rtol=1e-12)


@pytest.mark.parametrize("name", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_pairwise_kernel_takes_every_name(name):
    assert_allclose(PairwiseKernel(name)(X), pairwise_kernels(X, metric=name), rtol=1e-12)


def test_a_kernel_stays_itself():
    kernel = RBF()
    assert as_kernel(kernel) is kernel


def test_gaussian_process_kernel_shows_its_parameters():
    kernel = as_kernel(2.0 * gp.RBF(length_scale=3.0))
    assert isinstance(kernel, GaussianProcessKernel)
    kernel.set_params(kernel__k2__length_scale=1.0)
    assert_allclose(kernel(X), 2.0 * RBF(gamma=0.5)(X))
    assert clone(kernel).get_params()["kernel__k2__length_scale"] == 1.0


@pytest.mark.parametrize(
    ("kernel", "is_psd"),
    [
        (gp.RBF(), True),
        (gp.RBF() + gp.WhiteKernel(), True),
        (gp.PairwiseKernel(metric="sigmoid"), False),
        (gp.RBF() * gp.ExpSineSquared(), False),
        (gp.RBF() ** 0.5, False),
        ("linear", True),
        ("sigmoid", False),
        ("additive_chi2", False),
        (np.dot, False),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_only_what_is_certain_counts_as_psd(kernel, is_psd):
    assert as_kernel(kernel).is_psd is is_psd


def test_negative_factors_make_a_kernel_indefinite():
    negative = gp.ConstantKernel(-1.0)
    for kernel in (negative, negative * gp.RBF(), gp.RBF() + gp.WhiteKernel(-0.1)):
        assert not as_kernel(kernel).is_psd


def test_parameters_of_a_pairwise_kernel_end_the_certainty():
    assert PairwiseKernel("rbf").is_psd
    assert not PairwiseKernel("rbf", params={"gamma": -1.0}).is_psd


def test_function_of_two_tables():
    kernel = as_kernel(lambda A, B: A @ B.T)
    assert isinstance(kernel, CallableKernel)
    assert_allclose(kernel.fit(X)(X, X[:2]), X @ X[:2].T)


def test_what_a_function_returns_is_not_written_to():
    kept = np.eye(9)
    kept.flags.writeable = False
    assert as_kernel(lambda A, B: kept)(X) is not kept


def skewed(A, B):
    return A @ (B + np.arange(3)).T


def scalar(A, B):
    return 1.0


def test_function_that_is_not_a_kernel():
    with pytest.raises(ValueError, match="'skewed' is not symmetric"):
        as_kernel(skewed)(X)
    with pytest.raises(ValueError, match=r"scalar returned shape \(\) instead of .* \(9, 9\)"):
        as_kernel(scalar)(X)


@pytest.mark.parametrize(
    "wrong", [None, 3, RBF, ["rbf"], LinearRegression(), KernelUnion([("a", "rbf")])], ids=repr
)
def test_everything_else_is_refused_with_a_list(wrong):
    with pytest.raises(TypeError, match=r"is not a kernel: .*'rbf'.*gaussian_process.*f\(X, Y\)"):
        as_kernel(wrong)


def test_unknown_name_is_refused_with_a_list():
    with pytest.raises(ValueError, match=r"no kernel named 'gauss': .*'rbf'"):
        as_kernel("gauss")


def test_unknown_metric():
    with pytest.raises(ValueError, match="'metric' parameter of PairwiseKernel"):
        PairwiseKernel("gauss").fit(X)
