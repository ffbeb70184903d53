"""Every solver on the same problems: values agree within the sum of the gaps, gaps are true."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels.domains import Product, TraceSimplex, lp_domain
from manykernels.losses.base import ProblemSpec
from manykernels.losses.square import JointSquareLoss
from manykernels.solvers import SILP, SIP, SOLVERS, Newton
from manykernels.solvers.base import Problem, certify, refuse_unfit
from tests.problems import (
    SQUARE_SOLVERS,
    random_gram_matrices,
    region_factors,
    regional_square_loss,
    slow,
    square_loss,
    takes,
)

PS = [1.0, 1 + 2.0**-6, 1 + 2.0**-3, 2.0, 8.0, np.inf]
# Some solvers are slow where p is near 1.
every_p = pytest.mark.parametrize(
    "p", [PS[0], *slow(*PS[1:3]), PS[3], *slow(PS[4]), PS[5]], ids=lambda p: f"p={p:g}"
)
# Cutting planes are slow; what they prove is checked at the tolerance they reach.
TOLERANCES = {"sip": 1e-3, "silp": 1e-3}


def stacks():
    base = random_gram_matrices(4, 30)
    near = 1e-9 * random_gram_matrices(1, 30, seed=9)
    return {
        "plain": base,
        "near duplicates": np.concatenate([base, base[:1], base[1:2] + near]),
        "zero kernel": np.concatenate([base, np.zeros((1, 30, 30))]),
        "one kernel": base[:1],
        "fewer samples than kernels": random_gram_matrices(15, 10, rank=3),
        "scales far apart": base * np.array([1e-6, 1.0, 1e6, 1.0])[:, None, None],
    }


def losses(n_classes, **options):
    return {name: square_loss(K, n_classes, **options) for name, K in stacks().items()}


def joint(loss):
    return JointSquareLoss(loss.kernels, loss.targets, 1.0, loss.sample_weight)


def check_against_newton(name, loss, domain):
    tol = TOLERANCES.get(name, 1e-6)
    reference = Newton().solve(loss, domain, tol=1e-9)
    solution = SOLVERS[name]().solve(loss, domain, tol=tol)
    best, found = reference.certificate, solution.certificate
    rounding = 1e-9 * abs(best.primal)
    assert abs(found.primal - best.primal) <= found.gap + best.gap + rounding
    assert found.dual <= best.primal + rounding
    assert solution.weights.min() >= 0.0
    assert domain.gauge(solution.weights) <= 1.0 + 1e-9
    again = certify(loss.evaluate(solution.weights), domain, tol)
    assert again.primal == pytest.approx(found.primal, rel=1e-8)
    assert again.gap >= found.gap - rounding
    assert solution.n_iter == len(solution.history)
    assert solution.n_inner_solves >= 1
    gaps = [step.certificate.gap for step in solution.history]
    assert min(gaps) >= -rounding
    assert (np.diff(gaps) <= rounding).all(), "the best gap never grows"
    return solution


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@every_p
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_values_agree_within_the_gaps(name, p, n_classes):
    domain = lp_domain(p)
    for loss in losses(n_classes).values():
        if takes(name, loss.spec, domain):
            solution = check_against_newton(name, loss, domain)
            if name != "sdp-approx" or n_classes == 2:
                assert solution.certificate.rel_gap <= 1e-2
        else:
            with pytest.raises(ValueError, match="takes this problem"):
                SOLVERS[name]().solve(loss, domain)


def priced(n_classes, learnt):
    """A problem on the trace simplex, λ given or a price like the others."""
    loss = square_loss(random_gram_matrices(4, 30), n_classes, normalize=None)
    traces = loss.kernels.row_diag.sum(axis=1)
    if learnt:
        return joint(loss), TraceSimplex(np.concatenate([[30.0], traces]))
    return loss, TraceSimplex(traces)


PRICED = [
    (name, n_classes, learnt)
    for name in sorted(SOLVERS)
    for n_classes in (2, 4)
    for learnt in (False, True)
    for loss, domain in [priced(n_classes, learnt)]
    if takes(name, loss.spec, domain)
]


@pytest.mark.parametrize(
    ("name", "n_classes", "learnt"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[1] > 2)) for case in PRICED],
)
def test_trace_simplex_and_learnt_regularization(name, n_classes, learnt):
    check_against_newton(name, *priced(n_classes, learnt))


@pytest.mark.parametrize("name", SQUARE_SOLVERS)
def test_sample_weights_are_repeated_samples(name):
    matrices = random_gram_matrices(3, 20)
    weight = np.ones(20)
    weight[:5] = 2.0
    weighted = square_loss(matrices, 2, sample_weight=weight)
    rows = np.concatenate([np.arange(20), np.arange(5)])
    labels = weighted.targets[rows]
    repeated = square_loss(matrices[:, rows][:, :, rows], 2)
    repeated.targets[:] = labels
    repeated = type(repeated)(repeated.kernels, labels, repeated.reg)
    domain = lp_domain(1.0 if takes(name, weighted.spec, lp_domain(1.0)) else 2.0)
    solver = SOLVERS[name]()
    tol = TOLERANCES.get(name, 1e-6)
    one = solver.solve(weighted, domain, tol=tol)
    other = solver.solve(repeated, domain, tol=tol)
    allowed = one.certificate.gap + other.certificate.gap + 1e-9 * one.certificate.primal
    assert abs(one.certificate.primal - other.certificate.primal) <= allowed


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@pytest.mark.parametrize("learnt", [False, *slow(True)], ids=["given reg", "learnt reg"])
def test_the_programs_of_ye_have_one_optimum(n_classes, learnt):
    loss = square_loss(random_gram_matrices(5, 50), n_classes, normalize="trace", reg=5e-4)
    if learnt:
        loss = JointSquareLoss(loss.kernels, loss.targets, 1 / 50)
    domain = lp_domain(1.0)
    best = Newton().solve(loss, domain, tol=1e-9).certificate.primal
    for name in ("sdp", "qcqp"):
        found = SOLVERS[name]().solve(loss, domain, tol=1e-6)
        assert found.certificate.primal == pytest.approx(best, rel=1e-6)
        assert found.certificate.rel_gap <= 1e-6
    cuts = SILP(eps=1e-6).solve(loss, domain, tol=1e-6)
    assert cuts.certificate.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("name", SQUARE_SOLVERS)
def test_an_observer_can_stop_any_solver(name):
    loss = square_loss(random_gram_matrices(6, 40), 3, reg=1e-2)
    domain = lp_domain(1.0 if takes(name, loss.spec, lp_domain(1.0)) else 1.1)
    seen = []

    def stop_at_once(progress):
        seen.append(progress)
        return True

    solution = SOLVERS[name]().solve(loss, domain, tol=1e-7, observer=stop_at_once)
    assert len(seen) == solution.n_iter == 1
    assert np.isfinite(solution.certificate.gap)


class Untouched:
    """A loss that nobody may evaluate."""

    spec = joint(square_loss(random_gram_matrices(2, 10), 2)).spec
    n_kernels = 3


TAKING = [name for name in sorted(SOLVERS) if takes(name, Untouched.spec, lp_domain(2.0))]


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - set(TAKING)))
def test_a_refusal_comes_before_any_work(name):
    with pytest.raises(ValueError, match=f"solver='{name}' .*; solver='newton'"):
        SOLVERS[name]().solve(Untouched(), lp_domain(2.0))


@pytest.mark.parametrize("name", TAKING)
def test_nothing_is_refused_that_fits(name):
    assert refuse_unfit(SOLVERS[name](), Problem(Untouched.spec, lp_domain(2.0), 1e-6)) is None


class Shrunk:
    """A square loss whose inner solutions are all too short: tα in the place of α.

    Then ``D(tα, b) = 2t tr(HᵀU) − t² tr(UᵀA(b)U)``, so D is (2t − t²)F at the weights of U.
    """

    def __init__(self, loss, t):
        self.loss, self.t = loss, t
        self.n_kernels = loss.n_kernels
        self.spec = ProblemSpec(Shrunk, 30, loss.n_kernels, 1)

    def within(self, gauge):
        return self

    def in_sweeps(self):
        return self

    def note(self, evaluation):
        return ""

    def evaluate(self, weights):
        point = self.loss.evaluate(weights)
        return ShrunkEvaluation(point, self.t)

    def lower_bound(self, dual, support):
        return -np.inf  # the loss itself would find out by how much they are too short

    def coarse(self):
        return None


class ShrunkEvaluation:
    rounding, hyperbolic = 0.0, True

    def __init__(self, point, t):
        self.point = point
        self.weights, self.value = point.weights, point.value
        self.gains = t**2 * point.gains
        self.dual = t * point.dual
        self.slack = (1 - t) ** 2 * point.value
        self.gain_errors, self.dual = point.gain_errors, t * point.dual

    def reassessed(self):
        return self

    def model_hessian(self, gap):
        return self.point.model_hessian(gap)


def shrunk(t):
    return Shrunk(square_loss(random_gram_matrices(5, 30), 3, reg=1e-2), t)


FOR_ANY_LOSS = [
    (name, p)
    for name in sorted(SOLVERS)
    for p in (1.0, 1.5)
    if takes(name, shrunk(1.0).spec, lp_domain(p))
]


@pytest.mark.parametrize(("name", "p"), FOR_ANY_LOSS)
@pytest.mark.parametrize("t", [0.99, *slow(0.8)])
def test_certificates_stay_true_for_inexact_inner_solutions(name, t, p):
    loss, domain = shrunk(t), lp_domain(p)
    exact = loss.loss
    best = Newton().solve(exact, domain, tol=1e-9).certificate
    solution = SOLVERS[name]().solve(loss, domain, tol=1e-6, max_iter=60)
    found = solution.certificate
    for certificate in [found, *(step.certificate for step in solution.history)]:
        assert certificate.dual <= best.primal * (1 + 1e-9)
        assert certificate.primal >= best.dual
    assert not found.converged
    assert found.rel_gap <= 0.1


def test_every_problem_has_a_solver():
    given = square_loss(random_gram_matrices(2, 10), 2)
    for p in PS:
        for loss in (given, joint(given)):
            assert any(takes(name, loss.spec, lp_domain(p)) for name in SOLVERS)


def test_the_papers_test_of_cutting_planes_is_the_default_end():
    loss = square_loss(random_gram_matrices(5, 30), 2, reg=1e-2)
    loose = SIP(eps=1e-2).solve(loss, lp_domain(1.0), tol=1e-7)
    strict = SIP(eps=1e-5).solve(loss, lp_domain(1.0), tol=1e-7)
    assert loose.n_inner_solves < strict.n_inner_solves
    assert loose.certificate.primal >= strict.certificate.primal
    assert "|1 − S/θ|" in loose.status


# -- weights of regions ----------------------------------------------------------------------

FACTORS = region_factors(3, 30)
# The second region is empty, and the third is all that the first leaves.
WITH_EMPTY = np.array([FACTORS[0], np.zeros(30), np.sqrt(1.0 - FACTORS[0] ** 2)])


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@every_p
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_weights_of_regions(name, p, n_classes):
    domain = Product(lp_domain(p), 3)
    for factors in (FACTORS, WITH_EMPTY):
        loss = regional_square_loss(random_gram_matrices(4, 30), factors, n_classes)
        if takes(name, loss.spec, domain):
            solution = check_against_newton(name, loss, domain)
            assert solution.certificate.rel_gap <= 1e-2
        else:
            with pytest.raises(ValueError, match="takes this problem"):
                SOLVERS[name]().solve(loss, domain)


ONE_NORM = ["dual", "qcqp", "reduced-gradient", "sdp", "sdp-approx", "silp"]


@pytest.mark.parametrize("name", ONE_NORM)
def test_programs_with_one_norm_refuse_several(name):
    loss = regional_square_loss(random_gram_matrices(2, 30), FACTORS)
    for p in (1.0, 2.0):
        with pytest.raises(ValueError, match="one norm of all weights, not one for each region"):
            SOLVERS[name]().solve(loss, Product(lp_domain(p), 3))


@pytest.mark.parametrize(
    "p", [1.0, *slow(1.1, 4 / 3, 2.0, 4.0), np.inf], ids=lambda p: f"p={p:.3g}"
)
@pytest.mark.parametrize("reg", [1e-3, 0.1, 10.0])
def test_newton_needs_few_inner_solves_for_regions(p, reg):
    matrices = random_gram_matrices(15, 80)
    loss = regional_square_loss(matrices, region_factors(4, 80), 3, reg)
    solution = Newton().solve(loss, Product(lp_domain(p), 4), tol=1e-6)
    assert solution.certificate.converged
    assert solution.n_inner_solves <= 10


@pytest.mark.parametrize("p", [PS[0], *slow(*PS[1:])], ids=lambda p: f"p={p:g}")
@pytest.mark.parametrize("name", ["newton", "analytic", "sip", "coordinate"])
def test_one_block_is_the_plain_domain(name, p):
    loss = square_loss(random_gram_matrices(4, 30), 3)
    tol = TOLERANCES.get(name, 1e-6)
    plain, one = (
        SOLVERS[name]().solve(loss, domain, tol=tol, max_iter=50)
        for domain in (lp_domain(p), Product(lp_domain(p), 1))
    )
    np.testing.assert_array_equal(one.weights, plain.weights)
    assert one.certificate.gap == plain.certificate.gap
    assert one.n_inner_solves == plain.n_inner_solves


@pytest.mark.parametrize("p", [1.0, 1.5, np.inf], ids=lambda p: f"p={p:g}")
def test_equal_shares_everywhere_are_plain_weights(p):
    """The mean over regions of weights in a ball is in the ball, and all that counts."""
    matrices = random_gram_matrices(4, 30)
    everywhere = np.full((3, 30), np.sqrt(1 / 3))
    plain_loss = square_loss(matrices, 3)
    plain = Newton().solve(plain_loss, lp_domain(p), tol=1e-9)
    loss = regional_square_loss(matrices, everywhere, 3)
    found = Newton().solve(loss, Product(lp_domain(p), 3), tol=1e-9)
    assert found.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-8)
    mean = found.weights.reshape(3, -1).mean(axis=0)
    assert lp_domain(p).gauge(mean) <= 1.0 + 1e-9
    assert plain_loss.evaluate(mean).value == pytest.approx(found.certificate.primal, rel=1e-9)


def test_a_learnt_regularization_has_no_norm_in_common_with_several_regions():
    loss = square_loss(random_gram_matrices(5, 30), 2)
    with pytest.raises(ValueError, match=r"cannot learn reg or C with .* no other solver takes"):
        Newton().solve(joint(loss), Product(lp_domain(2.0), 2))
