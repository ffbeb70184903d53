"""Quadratic programs over a domain: those of low rank are the same programs."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels.domains import lp_domain
from manykernels.solvers import programs
from manykernels.solvers.programs import LowRank, minimize_above_planes, minimize_quadratic
from tests.problems import slow

N, RANK = 120, 10


def problem(seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((RANK, N)) * rng.uniform(0.1, 1.0, N)
    return -rng.uniform(0.5, 1.0, N) - factor.T @ rng.uniform(0, 1, RANK), factor.T @ factor


def test_low_rank_is_the_matrix():
    _, Q = problem()
    low = LowRank.of(Q + 1e-12 * np.trace(Q) * np.eye(N))
    assert low.factor.shape == (RANK, N)
    np.testing.assert_allclose(low.factor.T @ low.factor + np.diag(low.rest), Q, atol=1e-8)
    rows = np.arange(0, N, 2)
    diagonal, scale = np.linspace(1, 2, 60), np.linspace(0.1, 1, 60)
    system = np.diag(diagonal) + np.outer(scale, scale) * Q[::2, ::2]
    right = np.random.default_rng(1).standard_normal((60, 2))
    found = low.solve(diagonal, scale, rows, right)
    np.testing.assert_allclose(system @ found, right, atol=1e-7)


def test_full_rank_and_few_kernels_stay_dense():
    assert LowRank.of(np.eye(N)) is None
    assert LowRank.of(np.ones((10, 10))) is None


@pytest.mark.parametrize("p", [1.0, *slow(1 + 2.0**-6, 1.5, 2.0, 8.0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_minimum_is_that_of_the_dense_program(p, seed, monkeypatch):
    linear, Q = problem(seed)
    domain = lp_domain(p)
    lower = np.full(N, 1e-6)
    rng = np.random.default_rng(seed)
    # One plane is as steep as those of a machine at its bounds, and far below the others.
    slopes = rng.uniform(0.1, 1.0, (4, N)) * np.array([1.0, 1.0, 1.0, 1e10])[:, None]
    planes = (slopes @ domain.start(N) - np.array([0.0, 0.1, 0.2, 1e12]), slopes)

    def both():
        x = minimize_quadratic(linear, Q, domain, lower)
        y, shares = minimize_above_planes(linear, Q, domain, lower, planes)
        return x, y, shares

    few = both()
    monkeypatch.setattr(programs, "_MANY", N + 1)
    all_entries = both()

    def value(x, above=False):
        own = linear @ x + 0.5 * x @ Q @ x
        return own + (planes[0] - slopes @ x).max() if above else own

    assert value(few[0]) == pytest.approx(value(all_entries[0]), rel=1e-7)
    assert value(few[1], True) == pytest.approx(value(all_entries[1], True), rel=1e-5)
    for found in (few, all_entries):
        assert found[2].sum() == pytest.approx(1.0, rel=1e-4)
