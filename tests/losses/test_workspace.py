"""Arrays that evaluations use in turn: who has them, and what is computed again."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.kernels.transforms import Center
from manykernels.losses.inexact import BlockAscent, InexactEvaluation
from manykernels.losses.on_demand import Workspace
from manykernels.losses.svm import HingeLoss
from manykernels.solvers import Newton
from tests.losses.laws import some_weights
from tests.problems import random_gram_matrices, square_loss


@pytest.fixture
def count(monkeypatch):
    """Factorisations so far."""
    calls = []
    cholesky = Workspace.cholesky

    def counted(self):
        calls.append(self)
        return cholesky(self)

    monkeypatch.setattr(Workspace, "cholesky", counted)
    return lambda: len(calls)


def test_a_new_lease_ends_the_one_before():
    workspace = Workspace(3)
    first = workspace.lend()
    assert not first.ended
    second = workspace.lend()
    assert first.ended
    assert not second.ended


def test_factor_and_products():
    workspace, matrices = Workspace(6), random_gram_matrices(2, 6)
    A = matrices[1] + np.eye(6)
    workspace.matrix[:] = A
    np.testing.assert_array_equal(workspace.diagonal, np.diag(A))
    assert workspace.cholesky()
    columns = np.asfortranarray(np.arange(12.0).reshape(6, 2))
    np.testing.assert_allclose(workspace.solve(columns), np.linalg.solve(A, columns))
    half = workspace.half_solve(columns)
    np.testing.assert_allclose(half.T @ half, columns.T @ np.linalg.solve(A, columns))
    back = workspace.half_solve(half, transposed=False)
    np.testing.assert_allclose(back, np.linalg.solve(A, columns))
    workspace.matrix[:] = -A
    assert not workspace.cholesky()

    roots = np.linspace(0.5, 2.0, 6)[:, None]
    workspace.multiply(KernelStack.from_arrays(matrices), columns, roots)
    expected = [((roots * K * roots.T) @ columns).T.ravel() for K in matrices]
    np.testing.assert_allclose(workspace.flat_products, expected)


@pytest.mark.parametrize("p", [1.0, 1.5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_factorises_once_per_evaluation(n_classes, p, count):
    loss = square_loss(random_gram_matrices(5, 30), n_classes, reg=1e-2)
    solution = Newton().solve(loss, lp_domain(p), tol=1e-8)
    assert count() == solution.n_inner_solves


def test_derivatives_factorise_again_only_if_released(count):
    loss = square_loss(random_gram_matrices(3, 30), 3)
    first = loss.evaluate(some_weights(loss, 0))
    first.hessian()
    first.sensitivity(np.array([0, 2]))
    assert count() == 1
    later = loss.evaluate(some_weights(loss, 1))
    assert count() == 2
    first.hessian()
    first.model_hessian(0.0)
    assert count() == 3
    later.inverse_diagonal()
    assert count() == 4
    # That has overwritten the factor.
    assert first.released
    assert later.released
    later.restore()
    assert count() == 5


def test_a_loss_of_some_kernels_has_a_workspace_of_its_own(count):
    loss = square_loss(random_gram_matrices(3, 30), 3)
    point = loss.evaluate(some_weights(loss))
    loss.restricted(np.array([0, 2])).evaluate(np.array([0.5, 0.5]))
    assert not point.released
    point.hessian()
    assert count() == 2


def test_a_point_without_a_factorisation_has_none_until_it_is_needed(count):
    loss = square_loss(random_gram_matrices(3, 30), 2)
    weights = some_weights(loss)
    ascent = BlockAscent.of(loss, 10)
    for _ in range(3):
        ascent.sweep(weights)
    point = InexactEvaluation.of(loss, ascent, weights)
    assert point.released
    assert count() == 0
    point.hessian()
    assert not point.released
    assert count() == 1


def test_a_single_stored_kernel_is_not_copied():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    K, signs = X @ X.T, np.where(X[:, 0] > 0.0, 1.0, -1.0)
    plain = KernelStack.from_arrays(K)
    centred = Center().fit_transform(plain)
    values = []
    for stack in (plain, centred):
        loss = HingeLoss(stack, signs, 1.0)
        point = loss.evaluate(np.ones(1))
        assert "matrix" not in vars(loss.workspace)
        assert not stack.data.flags.writeable
        values.append(point.value)
        # A weight that changes the values, or an offset that would take digits, needs a copy.
        loss.evaluate(np.full(1, 0.5))
        assert "matrix" in vars(loss.workspace)
    np.testing.assert_allclose(values[0], values[1], rtol=1e-7)
    distances = ((X[:, None] - X) ** 2).sum(axis=2) / 2
    for other in (K + 1e4, -distances):
        stack = KernelStack(other[None], ["a"], gram=True, checked=True)
        loss = HingeLoss(Center().fit_transform(stack), signs, 1.0)
        np.testing.assert_allclose(loss.evaluate(np.ones(1)).value, values[1], rtol=1e-7)
        assert "matrix" in vars(loss.workspace)
