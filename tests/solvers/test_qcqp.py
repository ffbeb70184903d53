"""The quadratically constrained programs: against cvxpy as printed, scales, failures, size."""

from __future__ import annotations

from dataclasses import replace

import clarabel
import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKFDA, KernelStack
from manykernels.domains import TraceSimplex, lp_domain
from manykernels.losses.base import HasDualProgram, ProblemSpec
from manykernels.losses.kim import KimLoss
from manykernels.losses.square import JointSquareLoss, SquareLoss
from manykernels.losses.svm import BoxLoss
from manykernels.solvers import QCQP, Newton
from manykernels.solvers.base import Problem, refuse_unfit
from tests.machines import LOSSES, C, gram_matrices, machine, signs_for
from tests.problems import dense_kernels, random_gram_matrices, slow, square_loss


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learnt", [False, *slow(True)], ids=["given reg", "learnt reg"])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate", "ignore::UserWarning:cvxpy")
def test_optimum_is_that_of_the_printed_program(n_classes, learnt):
    """Ye 2008 (34) and (46)."""
    loss = square_loss(random_gram_matrices(4, 14), n_classes, normalize="spherical", reg=0.3)
    kernels, targets = dense_kernels(loss)
    size = np.abs(targets).max()
    if learnt:
        kernels = np.concatenate([np.eye(14)[None], kernels])
        loss = JointSquareLoss(loss.kernels, loss.targets)
    traces = np.trace(kernels, axis1=1, axis2=2)
    beta, t = cp.Variable(targets.shape), cp.Variable()
    # The value at learnt λ is in the hundreds, more than the oracle takes: A is scaled.
    reg = 1e-2 if learnt else loss.reg
    objective = cp.sum(cp.multiply(beta, targets / size)) - t / (4 * reg)
    if not learnt:
        objective -= cp.sum_squares(beta) / 4
    constraints = [
        t >= sum(cp.quad_form(b, cp.psd_wrap(K)) for b in beta.T) / r
        for K, r in zip(kernels, traces, strict=True)
    ]
    problem = cp.Problem(cp.Maximize(objective), constraints)
    problem.solve(solver=cp.CLARABEL)
    value = problem.value * size**2 / (reg if learnt else 1.0)
    solution = QCQP().solve(loss, TraceSimplex(traces), tol=1e-6)
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(value, rel=1e-6)
    multipliers = np.array([np.ravel(c.dual_value)[0] for c in constraints]) * 4 * reg / traces
    np.testing.assert_allclose(solution.weights, multipliers, atol=1e-4 * multipliers.max())


def printed_by_lanckriet(name, matrices, y, C):
    """SM1, SM2 and SM2_C of Lanckriet et al. (2004) with c = 1, in their own terms."""
    alpha, t = cp.Variable(len(y), nonneg=True), cp.Variable()
    constraints = [y @ alpha == 0]
    for K in matrices:
        G = np.outer(y, y) * K
        constraints.append(t >= cp.quad_form(alpha, cp.psd_wrap(G)) / np.trace(K))
    objective = 2 * cp.sum(alpha) - t
    if name == "SM1":
        constraints.append(alpha <= C)
    elif name == "SM2":
        objective -= cp.sum_squares(alpha) / C
    else:
        constraints.append(t >= cp.sum_squares(alpha) / len(y))
    problem = cp.Problem(cp.Maximize(objective), constraints)
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SM1", "hinge"),
        pytest.param("SM2", "squared hinge", marks=pytest.mark.slow),
        pytest.param("SM2_C", "joint squared hinge", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_machines_are_those_of_lanckriet(name, kind):
    matrices = gram_matrices(60)
    prices = np.trace(matrices, axis1=1, axis2=2)
    if name == "SM2_C":
        prices = np.concatenate([[60.0], prices])
    domain = TraceSimplex(prices)
    loss = machine(kind, matrices)
    solution = QCQP().solve(loss, domain, tol=1e-6)
    best = Newton().solve(machine(kind, matrices), domain, tol=1e-8)
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-6)
    # Their dual is twice ours.
    value = printed_by_lanckriet(name, matrices, signs_for(60), C) / 2.0
    assert solution.certificate.primal == pytest.approx(value, rel=1e-6)
    shares = solution.weights * prices
    np.testing.assert_allclose(shares, best.weights * prices, atol=1e-3)


@pytest.mark.parametrize("kind", LOSSES)
def test_any_point_made_feasible_proves_a_bound(kind):
    loss = machine(kind, gram_matrices(20))
    program, domain = loss.dual_program(), lp_domain(1.0)
    best = Newton().solve(loss, domain, tol=1e-8)
    assert isinstance(loss, HasDualProgram)
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-2, 1.0, 1e3):
        wild = size * rng.standard_normal(program.linear.shape)
        v = program.feasible(best.evaluation.dual + wild)
        assert (v >= program.lower).all()
        assert (v <= program.upper).all()
        np.testing.assert_allclose(v.sum(axis=0), program.totals, atol=1e-9 * (1.0 + size))
        bound = program.point(v, loss.products(v)).lower_bound(domain.support)
        # The certificate has the best of all.
        assert bound <= best.certificate.primal + 1e-9 * abs(best.certificate.primal)
    v = program.feasible(best.evaluation.dual)
    bound = program.point(v, loss.products(v)).lower_bound(domain.support)
    assert bound == pytest.approx(best.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("scale", [*slow(1e-6), 1e6])
@pytest.mark.parametrize("kind", ["hinge", "epsilon", "one class"])
def test_the_scale_of_kernels_and_bounds_does_not_matter(kind, scale):
    """F(K/a, aC, a problem in v/a) = a F: the same program in other units."""
    loss, domain = machine(kind, gram_matrices(30)), lp_domain(1.0)
    best = QCQP().solve(loss, domain).certificate
    problems = [
        replace(p, lower=scale * p.lower, upper=scale * p.upper, total=scale * p.total)
        for p in loss.problems
    ]
    kernels = KernelStack.from_arrays(gram_matrices(30) / scale)
    found = QCQP().solve(BoxLoss(kernels, problems), domain).certificate
    assert found.converged
    assert found.primal == pytest.approx(scale * best.primal, rel=2e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_labels_and_kernels_does_not_matter(scale):
    matrices = random_gram_matrices(4, 30)
    loss = square_loss(matrices, 3, reg=0.1)
    best = Newton().solve(loss, lp_domain(1.0), tol=1e-9)
    labels = SquareLoss(loss.kernels, scale * loss.targets, loss.reg)
    found = QCQP().solve(labels, lp_domain(1.0))
    assert found.certificate.rel_gap <= 1e-6
    assert found.certificate.primal == pytest.approx(scale**2 * best.certificate.primal, rel=1e-6)
    scaled = square_loss(scale * matrices, 3, reg=scale * 0.1, normalize=None)
    plain = square_loss(matrices, 3, reg=0.1, normalize=None)
    one, other = QCQP().solve(scaled, lp_domain(1.0)), QCQP().solve(plain, lp_domain(1.0))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-6)


class Failing:
    """A conic solver that returns a given status and solution."""

    status = clarabel.SolverStatus.DualInfeasible
    fill = np.nan

    def __init__(self, quadratic, linear, matrix, *args):
        self.sizes = len(linear), matrix.shape[0]

    def solve(self):
        self.x, self.z = (np.full(size, self.fill) for size in self.sizes)
        return self


@pytest.mark.parametrize("fill", [np.nan, 0.0, -1.0])
def test_without_a_solution_the_start_is_kept(monkeypatch, fill):
    monkeypatch.setattr(clarabel, "DefaultSolver", type("F", (Failing,), {"fill": fill}))
    loss = square_loss(random_gram_matrices(4, 20), 2, reg=1e-2)
    solution = QCQP().solve(loss, lp_domain(1.0))
    assert solution.status == "Clarabel ended as DualInfeasible"
    np.testing.assert_allclose(solution.weights, 0.25)
    assert not solution.certificate.converged
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = X[:, 0] + X[:, 1] ** 2 > 0.5
    with pytest.warns(ConvergenceWarning, match=r"relative gap .*\(Clarabel ended as Dual"):
        model = MKFDA(p=1, solver="qcqp").fit(X, y)
    assert model.certificate_.gap > 0


def test_iterations_are_limited():
    loss = square_loss(random_gram_matrices(4, 20), 2, reg=1e-2)
    solution = QCQP().solve(loss, lp_domain(1.0), max_iter=3)
    assert "MaxIterations" in solution.status
    assert np.isfinite(solution.certificate.gap)


def test_large_problems_are_refused_with_an_estimate():
    problem = Problem(ProblemSpec(SquareLoss, 5000, 20, 9), lp_domain(1.0), 1e-6)
    with pytest.raises(ValueError, match=r"GiB and \d+ minutes for 5000 samples, 20 kernels"):
        refuse_unfit(QCQP(), problem)
    refuse_unfit(QCQP(force=True), problem)
    with pytest.raises(ValueError, match="works at p=1 only"):
        refuse_unfit(QCQP(force=True), Problem(problem.spec, lp_domain(2.0), 1e-6))


def test_losses_without_a_dual_program_are_refused():
    problem = Problem(ProblemSpec(KimLoss, 50, 3, 1), lp_domain(1.0), 1e-6)
    with pytest.raises(
        ValueError, match=r"needs a loss with a dual program, not KimLoss; .*newton"
    ):
        refuse_unfit(QCQP(), problem)
