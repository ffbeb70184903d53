"""SDP and SDPApprox: against Newton, against the literal programs of Ye 2008, at the edges."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from manykernels.domains import LpBall, Simplex, TraceSimplex
from manykernels.losses.base import ProblemSpec
from manykernels.losses.square import JointSquareLoss, SquareLoss
from manykernels.solvers import SDP, Newton, SDPApprox
from manykernels.solvers.base import Problem, Run, certify, refuse_unfit
from manykernels.solvers.papers.conic import CentralPath
from tests.problems import dense_kernels, random_gram_matrices, slow, square_loss

M = 50


def joint(loss, unit=1.0):
    """The same problem with λ among the weights."""
    return JointSquareLoss(loss.kernels, loss.targets, unit, loss.sample_weight)


def stacks():
    base = random_gram_matrices(4, M)
    near = base[:1] + 1e-9 * random_gram_matrices(1, M, seed=9)
    return {
        "plain": base,
        "near duplicates": np.concatenate([base, base[:1], near]),
        "zero": np.concatenate([base, np.zeros((1, M, M))]),
        "one": base[:1],
        "scales": base * np.array([1e-4, 1.0, 1e2, 1e4])[:, None, None],
        "many": random_gram_matrices(M + 10, M, rank=3),
    }


@pytest.mark.parametrize("learns_reg", [False, *slow(True)], ids=["λ given", "λ learnt"])
@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@pytest.mark.parametrize("name", stacks())
def test_optimum_is_that_of_newton(name, n_classes, learns_reg):
    for normalize in ("trace", None):
        loss = square_loss(stacks()[name], n_classes, reg=0.1, normalize=normalize)
        if learns_reg:
            loss = joint(loss, 1.0 / M if normalize == "trace" else 1.0)
        found = SDP().solve(loss, Simplex(), tol=1e-8)
        best = Newton().solve(loss, Simplex(), tol=1e-9)
        assert found.certificate.converged, (normalize, found.certificate, found.status)
        assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-6)
        assert found.status == ""
        assert found.n_iter <= 30
        assert found.weights.min() >= 0.0
        if name == "zero":
            assert found.weights[-1] == 0.0


@pytest.mark.parametrize("learns_reg", [False, True], ids=["λ given", "λ learnt"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sample_weights(n_classes, learns_reg):
    weights = np.random.default_rng(1).uniform(0.2, 3.0, M)
    loss = square_loss(random_gram_matrices(4, M), n_classes, sample_weight=weights)
    loss = joint(loss) if learns_reg else loss
    found = SDP().solve(loss, Simplex(), tol=1e-8)
    best = Newton().solve(loss, Simplex(), tol=1e-9)
    assert found.certificate.converged
    np.testing.assert_allclose(found.weights, best.weights, atol=1e-3)


@pytest.mark.parametrize("reg", [1e-4, 1e-2, 1.0, 100.0])
def test_every_reg_within_thirty_steps(reg):
    loss = square_loss(random_gram_matrices(6, M), 4, reg=reg)
    solution = SDP().solve(loss, Simplex(), tol=1e-10)
    assert solution.certificate.converged
    assert solution.n_iter <= 30


def test_prices_of_kernels():
    plain = square_loss(random_gram_matrices(4, 25), 3, normalize=None)
    domain = TraceSimplex(plain.kernels.row_diag.sum(axis=1))
    found = SDP().solve(plain, domain, tol=1e-9)
    best = Newton().solve(plain, domain, tol=1e-9)
    assert domain.gauge(found.weights) == pytest.approx(1.0)
    np.testing.assert_allclose(found.weights, best.weights, rtol=1e-3, atol=1e-9)


def literal_optimum(loss, blocks):
    """Σt of the program with one matrix for each block of columns, as the paper has it."""
    if isinstance(loss, JointSquareLoss):
        matrices = [loss.kernel(i) for i in range(loss.n_kernels)]
        constant = np.zeros_like(matrices[0])
        targets = loss.targets if loss.roots is None else loss.targets * loss.roots
    else:
        kernels, targets = dense_kernels(loss)
        matrices = kernels / loss.reg
        constant = np.eye(len(targets))
    scale = np.linalg.norm(targets)
    theta = cp.Variable(len(matrices), nonneg=True)
    t = cp.Variable(targets.shape[1])
    A = constant + sum(w * (N + N.T) / 2 for w, N in zip(theta, matrices, strict=True))
    conditions = [cp.sum(theta) == 1]
    for block in blocks:
        H = targets[:, block] / scale
        arrow = cp.bmat([[A, H], [H.T, cp.diag(t[block])]])
        conditions.append((arrow + arrow.T) / 2 >> 0)
    problem = cp.Problem(cp.Minimize(cp.sum(t)), conditions)
    problem.solve(solver=cp.CLARABEL)
    return problem.value * scale**2


def approximate_value(loss, weights):
    """(32) at given θ: Σt, t such that diag(t) ⪰ HᵀA⁻¹H."""
    C = loss.targets.T @ loss.evaluate(weights).residuals
    scale = np.trace(C)
    t = cp.Variable(len(C))
    problem = cp.Problem(cp.Minimize(cp.sum(t)), [cp.diag(t) - (C + C.T) / 2 / scale >> 0])
    problem.solve(solver=cp.CLARABEL)
    return problem.value * scale


def twelve_samples(n_classes, learns_reg, weighted, rank=None):
    """A problem small enough for the literal programs."""
    sample_weight = np.random.default_rng(1).uniform(0.5, 2.0, 12) if weighted else None
    matrices = random_gram_matrices(3, 12, rank=rank)
    loss = square_loss(matrices, n_classes, 0.2, sample_weight=sample_weight)
    return joint(loss) if learns_reg else loss


@pytest.mark.parametrize("weighted", [False, *slow(True)])
@pytest.mark.parametrize("learns_reg", [False, *slow(True)], ids=["λ given", "λ learnt"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore::UserWarning:cvxpy")
def test_the_literal_exact_programs(n_classes, learns_reg, weighted):
    """(8), (29), (41) and (45) with a matrix for each class."""
    loss = twelve_samples(n_classes, learns_reg, weighted)
    value = literal_optimum(loss, [[k] for k in range(loss.targets.shape[1])])
    primal = SDP().solve(loss, Simplex(), tol=1e-9).certificate.primal
    assert primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, *slow(True)])
@pytest.mark.parametrize("learns_reg", [False, *slow(True)], ids=["λ given", "λ learnt"])
@pytest.mark.parametrize("n_classes", [*slow(3), 4])
@pytest.mark.filterwarnings("ignore::UserWarning:cvxpy")
def test_the_literal_approximate_programs(n_classes, learns_reg, weighted):
    """(32) and (45): the optimum, its weights, and an optimum of (29) that is smaller."""
    loss = twelve_samples(n_classes, learns_reg, weighted, rank=4)
    value = literal_optimum(loss, [list(range(n_classes))])
    found = SDPApprox().solve(loss, Simplex(), tol=1e-9)
    assert found.status == "the single constraint (32) is an approximation"
    assert approximate_value(loss, found.weights) == pytest.approx(value, rel=1e-6)
    exact = SDP().solve(loss, Simplex(), tol=1e-9).certificate
    assert exact.primal <= found.certificate.primal * (1 + 1e-9)
    assert exact.primal < 0.999 * value


@pytest.mark.parametrize("solver", [SDP(), SDPApprox()], ids=lambda s: s.name)
def test_kernels_without_any_gain(solver):
    usual = square_loss(random_gram_matrices(2, 20), 3)
    nothing = square_loss(np.zeros((2, 20, 20)), 3, normalize=None)
    assert solver.solve(nothing, Simplex()).certificate.gap == 0.0
    assert solver.solve(usual, Simplex()).certificate.gap > 0.0


def test_the_approximation_does_not_pass_for_the_optimum():
    loss = square_loss(random_gram_matrices(4, M), 4, reg=0.1)
    found = SDPApprox().solve(loss, Simplex(), tol=1e-6)
    best = Newton().solve(loss, Simplex(), tol=1e-9).certificate.primal
    assert not found.certificate.converged
    assert best < found.certificate.primal <= best + found.certificate.gap
    again = certify(loss.evaluate(found.weights), Simplex(), 1e-6)
    assert again.gap == pytest.approx(found.certificate.gap, rel=1e-8)


def test_for_two_classes_there_is_nothing_to_approximate():
    loss = square_loss(random_gram_matrices(4, M), 2, reg=0.1)
    one, other = (solver.solve(loss, Simplex(), tol=1e-8) for solver in (SDP(), SDPApprox()))
    np.testing.assert_array_equal(one.weights, other.weights)
    assert other.status == ""
    assert other.certificate.converged


@pytest.mark.parametrize("solver", [SDP(), SDPApprox()], ids=lambda s: s.name)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_targets_does_not_matter(solver, scale):
    loss = square_loss(random_gram_matrices(4, 30), 3)
    scaled = SquareLoss(loss.kernels, scale * loss.targets, loss.reg)
    usual = solver.solve(loss, Simplex())
    other = solver.solve(scaled, Simplex())
    np.testing.assert_allclose(other.weights, usual.weights, atol=1e-6)
    assert other.certificate.primal == pytest.approx(scale**2 * usual.certificate.primal)


@pytest.mark.parametrize("coupled", [False, True])
def test_the_proven_distance_holds_at_every_iterate(coupled):
    loss = square_loss(random_gram_matrices(5, 30), 4, reg=0.01)
    basis = loss.rotation if coupled else np.eye(loss.spec.n_outputs)
    program = CentralPath(loss, Run(Simplex(), 1e-6, 50), basis, coupled=coupled)
    iterates = [program.start()]
    for _ in range(12):
        iterates.append(program.advance(iterates[-1]))
    sums = [np.trace(one.at.C) + np.trace(one.T) for one in iterates]
    best = min(sums)
    for total, one in zip(sums, iterates, strict=True):
        np.testing.assert_allclose(np.diag(one.X), 1.0, atol=1e-9)
        assert min(np.linalg.eigvalsh(one.X)[0], np.linalg.eigvalsh(one.T)[0]) > 0.0
        assert total - best <= one.distance + 1e-12 * best
    assert iterates[-1].distance < 1e-5 * best


def test_limits_and_observers_leave_an_honest_certificate():
    loss = square_loss(random_gram_matrices(5, 30), 3, reg=1e-3)
    limited = SDP().solve(loss, Simplex(), tol=1e-12, max_iter=2)
    assert limited.n_iter == 3
    assert not limited.certificate.converged
    again = certify(loss.evaluate(limited.weights), Simplex(), 1e-12)
    assert again.gap >= limited.certificate.gap * (1 - 1e-8)
    stopped = SDP().solve(loss, Simplex(), observer=lambda progress: progress.iteration == 1)
    assert stopped.n_iter == 2
    unfinished = SDPApprox().solve(loss, Simplex(), max_iter=2)
    assert unfinished.status.endswith("after 2 steps")


@pytest.mark.parametrize("solver", [SDP(), SDPApprox()], ids=lambda s: s.name)
def test_an_unreachable_tolerance_ends_with_a_status(solver):
    loss = square_loss(random_gram_matrices(4, 20), 2, reg=1e-3)
    solution = solver.solve(loss, Simplex(), tol=1e-300)
    assert solution.certificate.rel_gap < 1e-11
    assert "cannot continue after" in solution.status or solution.certificate.exhausted
    assert solution.n_iter <= 101


@pytest.mark.parametrize("solver", [SDP(), SDPApprox()], ids=lambda s: s.name)
def test_problems_that_do_not_fit_are_refused(solver, monkeypatch):
    name = f"solver={solver.name!r}"
    small = ProblemSpec(SquareLoss, 100, 5, 1)
    with pytest.raises(ValueError, match=f"{name} works at p=1 only"):
        refuse_unfit(solver, Problem(small, LpBall(2.0), 1e-6))
    with pytest.raises(ValueError, match=f"{name} works for the square loss only"):
        refuse_unfit(solver, Problem(ProblemSpec(object, 100, 5, 1), Simplex(), 1e-6))
    large = Problem(ProblemSpec(SquareLoss, 50_000, 20, 1), Simplex(), 1e-6)
    with pytest.raises(ValueError, match=r"GiB and \d+ minutes for 50000 samples, 20 kernels"):
        refuse_unfit(solver, large)
    refuse_unfit(type(solver)(force=True), large)
    refuse_unfit(solver, Problem(small, Simplex(), 1e-6))
    monkeypatch.setattr("manykernels.solvers.base.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"force=True.*solver='newton'"):
        refuse_unfit(solver, Problem(small, Simplex(), 1e-6))
