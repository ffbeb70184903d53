"""Laws of losses that the tests of several of them state."""

from __future__ import annotations

import numpy as np

from tests.differences import assert_derivatives


def some_weights(loss, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 1.0, loss.n_kernels)


def assert_derivatives_of(loss, value):
    """Gains are minus the gradient of ``value(loss, weights)``, the Hessian is theirs."""
    weights = some_weights(loss)
    point = loss.evaluate(weights)
    gains, hessian = point.gains, point.hessian()
    assert_derivatives(-gains, lambda w: value(loss, w), weights)
    assert_derivatives(-hessian, lambda w: loss.evaluate(w).gains, weights)


def assert_a_point_keeps_its_derivatives(loss):
    """Hessian and diagonal of the inverse are the same after another evaluation of the loss."""
    first = loss.evaluate(some_weights(loss, 0))
    expected = first.hessian()
    diagonal = first.inverse_diagonal()
    loss.evaluate(some_weights(loss, 1))
    np.testing.assert_allclose(first.hessian(), expected, rtol=1e-12)
    np.testing.assert_allclose(first.inverse_diagonal(), diagonal, rtol=1e-12)
    np.testing.assert_allclose(first.hessian(), expected, rtol=1e-12)


def assert_convex_along_a_segment(loss, seed, mix):
    """F is below its chord, and gains have one sign, between two random points."""
    a, b = np.random.default_rng(seed).uniform(0, 1, (2, loss.n_kernels))
    points = [loss.evaluate(w) for w in (a, b, mix * a + (1 - mix) * b)]
    chord = mix * points[0].value + (1 - mix) * points[1].value
    assert points[2].value <= chord + 1e-12 * abs(chord)
    assert all((point.gains >= 0).all() for point in points)
