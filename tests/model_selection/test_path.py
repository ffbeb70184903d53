"""lp_path on labels and stacks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKFDA, KernelStack, rbf_grid
from manykernels.model_selection import leave_one_out, lp_path
from tests.problems import random_gram_matrices

X, Y = load_iris(return_X_y=True)


def test_points_are_fits():
    stack = rbf_grid([0.1, 1.0, 10.0]).fit(X)(X)
    names = np.array(["a", "b", "c"])[Y]
    path = lp_path(stack, names, ps=[1, 1.5, np.inf], regs=[0.1, 10.0], tol=1e-8)
    assert path.kernel_names == stack.names
    for i, p in enumerate(path.ps):
        for j, reg in enumerate(path.regs):
            model = MKFDA("precomputed", p=p, reg=reg, tol=1e-8).fit(stack, names)
            assert path.objectives[i, j] == pytest.approx(model.certificate_.primal, rel=1e-7)
            np.testing.assert_allclose(path.weights[i, j], model.weights_, atol=1e-3)


def test_defaults_are_the_norms_of_the_papers():
    stack = KernelStack.from_arrays(random_gram_matrices(3, 24))
    path = lp_path(stack, np.arange(24) % 3)
    assert path.weights.shape == (12, 8, 3)
    assert path.rel_gaps.max() <= 1e-5
    assert path.n_inner_solves.sum() <= 250


def test_sample_weights_are_repeated_samples():
    matrices = random_gram_matrices(3, 20)
    y = np.arange(20) % 2
    weight = np.ones(20)
    weight[:6] = 2
    rows = np.concatenate([np.arange(20), np.arange(6)])
    weighted = lp_path(
        KernelStack.from_arrays(matrices), y, [1.5], [0.1], sample_weight=weight, tol=1e-9
    )
    repeated = lp_path(
        KernelStack.from_arrays(matrices[:, rows][:, :, rows]), y[rows], [1.5], [0.1], tol=1e-9
    )
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ps": [0.5]}, "each at least 1"),
        ({"ps": []}, "non-empty"),
        ({"ps": [2, 2]}, "equal values"),
        ({"regs": [-1.0]}, "each positive"),
        ({"regs": [np.nan]}, "each positive"),
        ({"regs": [np.inf]}, "regs must be finite"),
        ({"y": np.ones(12)}, "at least 2 classes"),
        ({"sample_weight": np.zeros(12)}, "one positive number per sample"),
    ],
)
def test_bad_input(change, message):
    stack = KernelStack.from_arrays(random_gram_matrices(2, 12))
    options = {"y": np.arange(12) % 2, **change}
    with pytest.raises(ValueError, match=message):
        lp_path(stack, options.pop("y"), **options)


@pytest.mark.parametrize("tol", [0.0, -1.0, float("nan"), float("inf")])
def test_an_invalid_tolerance_is_refused(tol):
    stack = KernelStack.from_arrays(random_gram_matrices(2, 20))
    with pytest.raises(ValueError, match="tol must be positive and finite"):
        lp_path(stack, np.arange(20) % 2, tol=tol)


@pytest.mark.parametrize("function", [lp_path, lambda K, y: leave_one_out(K, y, [1.0])])
def test_a_plain_array_is_refused_with_the_way_out(function):
    with pytest.raises(ValueError, match=r"takes a KernelStack .*from_arrays"):
        function(random_gram_matrices(2, 20), np.arange(20) % 2)


def test_points_that_cannot_be_solved_are_marked():
    K = random_gram_matrices(1, 20)[0]
    v = np.ones(20) - 20.0 * (np.arange(20) == 3)
    stack = KernelStack.from_arrays([K - 0.01 * np.outer(v, v)], psd="ignore")
    with pytest.warns(ConvergenceWarning, match="1 of 2 points of the path could not be solved"):
        path = lp_path(stack, np.arange(20) % 2, ps=[2.0], regs=[1e-4, 1e3], normalize=None)
    assert np.isinf(path.rel_gaps[0, 0])
    assert np.isnan(path.weights[0, 0]).all()
    assert path.rel_gaps[0, 1] <= 1e-5
