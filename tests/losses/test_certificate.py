"""What a certificate says, what proves it, and how large its rounding error is."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.kernels.transforms import Center
from manykernels.losses.base import Certificate
from manykernels.losses.inexact import BlockAscent, InexactEvaluation
from manykernels.losses.kim import KimLoss
from manykernels.losses.square import SquareLoss
from manykernels.losses.svm import BoxAscent, HingeLoss, InexactBoxPoint
from manykernels.solvers import SOLVERS, Newton
from manykernels.solvers.base import certify
from tests.problems import random_gram_matrices, square_loss

STATUSES = [
    (1e-7, 0.0, "certified"),
    (1e-7, 1e-7, "certified"),
    (-1e-9, 1e-8, "certified"),
    (0.0, 1e-3, "limited by rounding"),
    (1e-3, 1e-2, "limited by rounding"),
    (1e-3, 1e-9, "stopped"),
    (1.0, 0.0, "stopped"),
]


@pytest.mark.parametrize(("gap", "rounding", "status"), STATUSES)
def test_a_gap_that_may_be_rounding_proves_nothing(gap, rounding, status):
    certificate = Certificate(1.0, 1.0 - gap, gap, 1e-6, rounding)
    assert certificate.status == status
    assert certificate.converged == (status == "certified")
    assert certificate.message.count(". ") <= 1
    assert certificate.message.endswith(".")
    assert str(certificate) == f"{status}: {certificate.message}"
    assert "at most -" not in certificate.message


def test_an_objective_of_zero():
    assert Certificate(0.0, 0.0, 0.0, 1e-6).status == "certified"
    nothing = Certificate(1e-17, -1e-17, 2e-17, 1e-6, 1e-15)
    assert nothing.status == "limited by rounding"
    assert "lost in rounding errors" in nothing.message


def test_the_claim_of_a_certificate():
    certificate = Certificate(2.0, 1.5, 0.5, 1e-6)
    # One sentence that holds whatever the numbers, and names the attributes that are proved.
    assert certificate.claim == Certificate(1.0, 1.0, 0.0, 1e-3).claim
    assert certificate.claim.count(".") == 1
    assert all(f"`{name}`" in certificate.claim for name in ("primal", "dual", "gap"))


def signs(m, seed=0):
    return np.where(np.random.default_rng(seed).random(m) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6])
def test_rounding_errors_of_quadratic_forms(shift):
    """Those of centred kernels, in extended precision, are near the estimate and not above it."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(20):
        X = rng.standard_normal((60, 3)) + shift
        stack = Center().fit_transform(KernelStack.from_arrays([X @ X.T]))
        v = rng.standard_normal((60, 1))
        wide = (X @ X.T).astype(np.longdouble)
        means = wide.mean(axis=0)
        centred = wide - means - means[:, None] + means.mean()
        exact = float(np.sum(v * (centred @ v)))
        found = float(np.sum(v * stack.apply(v)[0]))
        worst = max(worst, abs(found - exact) / float(stack.form_errors(v, v)[0]))
    assert 1e-3 < worst < 1.0


def indefinite_pair():
    """A kernel that says nothing of the targets, and one whose form is below zero there."""
    m = 20
    labels = np.arange(m) % 2
    targets = np.where(labels == 1, 2.0 / m, -2.0 / m)[:, None]
    along = targets / np.linalg.norm(targets)
    across = np.zeros((m, 1))
    across[:4, 0] = [1.0, 1.0, -1.0, -1.0]
    across /= 2.0
    hole = across @ across.T - 9e-6 * along @ along.T
    return KernelStack.from_arrays([across @ across.T, hole]), targets


def test_gains_are_not_clipped():
    stack, targets = indefinite_pair()
    point = SquareLoss(stack, targets, 1e-4).evaluate(np.array([0.5, 0.5]))
    assert point.gains[1] < -0.01 * point.value
    # F is convex all the same: the plane at one point lies below F at another.
    other = SquareLoss(stack, targets, 1e-4).evaluate(np.array([1.0, 0.0]))
    assert point.value - point.gains @ (other.weights - point.weights) <= other.value * (1 + 1e-12)


def test_what_a_factorisation_loses_is_in_the_value():
    """The value stays an upper bound and value − slack a lower one where A is ill-conditioned."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    stack = Center().fit_transform(KernelStack.from_arrays([X @ X.T, (X @ X.T) ** 2]))
    targets = (signs(40) - signs(40).mean())[:, None]
    loss = SquareLoss(stack, targets, 1e-12)
    point = loss.evaluate(np.array([0.5, 0.5]))
    wide = sum(0.5 * stack.kernel(j).astype(np.longdouble) for j in range(2)) / 1e-12
    wide += np.eye(40, dtype=np.longdouble)
    u, h = point.rotated_residuals.astype(np.longdouble), loss.rotated_targets
    below = float(2 * np.sum(h * u) - np.sum(u * (wide @ u)))
    residual = float(np.sum((h - wide @ u) ** 2))
    assert point.slack == pytest.approx(residual, abs=certify(point, lp_domain(2), 0.1).rounding)
    assert point.value - point.slack == pytest.approx(below, abs=point.rounding)


# -- what is reassessed ----------------------------------------------------------------------


def test_products_that_have_drifted_are_not_believed():
    stack = KernelStack.from_arrays(random_gram_matrices(3, 30))
    loss = HingeLoss(stack, signs(30), 1.0)
    weights = lp_domain(2).start(3)
    ascent = BoxAscent(loss, 30)
    for _ in range(5):
        ascent.visit_all(weights)
    honest = ascent.point(weights)
    drifted = InexactBoxPoint.of(loss, weights, ascent.dual, 0.9 * ascent.products)
    assert abs(drifted.value - honest.value) > 1e-5 * honest.value
    again = drifted.reassessed()
    assert again.value == pytest.approx(honest.value, rel=1e-12)
    # Small gains are sums of large terms: no closer than their own rounding errors.
    assert (np.abs(again.gains - honest.gains) <= honest.gain_errors).all()


def test_sweeps_that_have_drifted_are_not_believed():
    loss = square_loss(random_gram_matrices(3, 30), 3)
    weights = lp_domain(2).start(3)
    ascent = BlockAscent.of(loss, 10)
    for _ in range(3):
        ascent.sweep(weights)
    honest = InexactEvaluation.of(loss, ascent, weights)
    ascent.products = 0.9 * ascent.products
    drifted = InexactEvaluation.of(loss, ascent, weights)
    again = drifted.reassessed()
    np.testing.assert_allclose(again.gains, honest.gains, rtol=1e-12)
    exact = loss.evaluate(weights)
    assert again.value - again.slack <= exact.value <= again.value * (1 + 1e-12)


def losses():
    matrices = random_gram_matrices(4, 30)
    stack = KernelStack.from_arrays(matrices)
    weight = np.linspace(0.5, 2.0, 30)
    labels = (signs(30) > 0).astype(int)
    return {
        "square": square_loss(matrices, 3, reg=1e-2),
        "weighted square": SquareLoss(stack, signs(30)[:, None], 0.1, weight),
        "hinge": HingeLoss(stack, signs(30), 0.05),
        "kim": KimLoss(stack, labels, 0.1),
    }


@pytest.mark.parametrize("p", [1.0, 1.5, np.inf])
@pytest.mark.parametrize("kind", losses())
def test_the_dual_point_proves_the_bound(kind, p):
    loss, domain = losses()[kind], lp_domain(p)
    found = Newton().solve(loss, domain, tol=1e-8).certificate
    again = loss.lower_bound(found.dual_point, domain.support)
    assert again >= found.dual - 1e-10 * abs(found.primal)
    assert again <= found.primal + found.rounding


@pytest.mark.parametrize("name", ["newton", "sip", "analytic", "interleaved", "smo-mkl"])
def test_every_solver_is_reassessed(name, monkeypatch):
    """What is reported is computed from the kernels after the last step."""
    stack = KernelStack.from_arrays(random_gram_matrices(4, 30))
    loss, domain = HingeLoss(stack, signs(30), 1.0), lp_domain(1.5)
    solution = SOLVERS[name]().solve(loss, domain, tol=1e-4)
    certificate = solution.certificate
    point = solution.evaluation
    fresh = InexactBoxPoint.of(loss, solution.weights, point.dual, loss.products(point.dual))
    assert certificate.primal == pytest.approx(fresh.value, rel=1e-12)
    again = loss.lower_bound(certificate.dual_point, domain.support)
    assert again >= certificate.dual - 1e-12 * abs(certificate.primal)
