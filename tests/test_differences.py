"""The helper of all derivative tests: right claims pass, slightly wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differences import assert_derivatives, derivative

# Function, point, derivative: gentle, steep (a fixed step of 1e-5 errs by 1e-4 of the slope in
# the second), linear, with rounding, with a kink in the slope and next to one.
CASES = {
    "sine": (np.sin, 1.0, np.cos(1.0)),
    "steep": (lambda x: np.sin(3e3 * x), 1.0, 3e3 * np.cos(3e3)),
    "line": (lambda x: 5.0 * x, 0.3, 5.0),
    "large constant": (lambda x: 1e6 + np.exp(x), 0.0, 1.0),
    "small": (lambda x: 1e-30 * np.exp(x), 0.0, 1e-30),
    "kinked slope": (lambda x: x * np.abs(x) + x, 0.0, 1.0),
    "next to a kink": (lambda x: np.abs(x - 1e-4), 0.0, -1.0),
    "cubic without a slope of order three elsewhere": (lambda x: x**3, 1.0, 3.0),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_and_are_small(name):
    f, x, expected = CASES[name]
    slope, error = derivative(f, x, 1.0)
    assert abs(slope - expected) <= error
    assert error <= 1e-4 * abs(expected)


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_claim_fails(name):
    f, x, expected = CASES[name]

    def of_vector(v):
        return f(v[0])

    assert_derivatives([expected], of_vector, [x])
    with pytest.raises(AssertionError, match="claimed"):
        assert_derivatives([1.001 * expected], of_vector, [x])


def test_bounds_hold_at_random():
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b, c = rng.standard_normal((3, 4)) * 10.0 ** rng.uniform(-2, 2, (3, 1))

        def f(x, a=a, b=b, c=c):
            return a * np.sin(b * x) + c * x**2

        slope, error = derivative(f, 0.7, 1.0)
        expected = a * b * np.cos(0.7 * b) + 1.4 * c
        assert (np.abs(slope - expected) <= error + 1e-12 * np.abs(expected)).all()


def test_each_entry_is_compared_with_its_own_coordinate():
    A = np.arange(12.0).reshape(4, 3)
    assert_derivatives(A.T, lambda x: A @ x, np.ones(3))
    with pytest.raises(AssertionError, match="claimed"):
        assert_derivatives(A, lambda x: A @ x, np.ones(3))
    with pytest.raises(AssertionError, match="entry"):
        assert_derivatives(A[::-1].T, lambda x: A @ x, np.ones(3))


def test_a_difference_within_rounding_is_an_error():
    noise = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="known up to"):
        assert_derivatives([1.0], lambda x: x[0] + 1e-3 * noise.standard_normal(), [0.0])
