"""One iteration of Newton's method: each of its ideas alone."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels.domains import lp_domain
from manykernels.solvers import Newton, newton
from manykernels.solvers.newton import Cuts
from manykernels.solvers.papers.descent import analytic_update
from tests.problems import random_gram_matrices, square_loss

DOMAIN = lp_domain(1.5)


@pytest.fixture
def loss():
    return square_loss(random_gram_matrices(4, 30), 3, reg=0.05)


def begin(loss, tol=1e-9):
    point = loss.evaluate(DOMAIN.start(loss.n_kernels))
    cuts = Cuts()
    cuts.add(point)
    return point, cuts, newton.Search(loss, DOMAIN, point, cuts, tol, 1.0)


def reject(monkeypatch, *, updates):
    """No step improves enough; nor do analytic updates, if asked for."""
    monkeypatch.setattr(newton, "improves", lambda *points: False)
    if updates:
        monkeypatch.setattr(newton, "_WORTHWHILE", np.inf)


def test_the_newton_step_comes_first(loss):
    point, cuts, iteration = begin(loss)
    found = iteration.run()
    assert iteration.n_solves == len(cuts) == 1
    assert newton.improves(found, point, DOMAIN)


def test_then_the_analytic_update(loss, monkeypatch):
    reject(monkeypatch, updates=False)
    monkeypatch.setattr(newton, "_WORTHWHILE", 1e-3)
    point, cuts, iteration = begin(loss)
    found = iteration.run()
    assert iteration.n_solves == len(cuts) == 2
    expected = np.exp(analytic_update(np.log(point.weights), point.gains, DOMAIN))
    np.testing.assert_allclose(found.weights, expected, rtol=1e-12)
    assert found.value < point.value


def test_then_cuts_and_at_last_the_lowest_trial(loss, monkeypatch):
    reject(monkeypatch, updates=True)
    _, cuts, iteration = begin(loss)
    found = iteration.run()
    assert iteration.n_solves == len(cuts) - 1 <= 17
    best = Newton().solve(loss, DOMAIN, tol=1e-10).certificate.primal
    assert found.value == pytest.approx(best, rel=1e-4)
    assert best * (1 - 1e-3) <= iteration.bound.value <= best * (1 + 1e-12)


def test_a_point_that_cuts_prove_good_enough_is_kept(loss, monkeypatch):
    reject(monkeypatch, updates=True)
    point, _, iteration = begin(loss, tol=0.5)
    assert iteration.run() is point
