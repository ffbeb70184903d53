"""Support vector machines on one kernel against conic solvers, LIBSVM and known answers."""

from __future__ import annotations

import math
import subprocess
import sys

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR, OneClassSVM

from manykernels.smo import box, loops
from manykernels.smo.box import Ascent, solve_box
from manykernels.smo.program import BoxProblem
from tests.problems import slow

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


def points(m, seed=0):
    return np.random.default_rng(seed).normal(size=(m, 3))


def gaussian(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def signs(X, seed=0, share=0.5):
    """Two classes that overlap, `share` of them positive."""
    score = X[:, 0] + 0.7 * np.random.default_rng(seed).normal(size=len(X))
    return np.where(score > np.quantile(score, 1 - share), 1.0, -1.0)


def targets(X, seed=0):
    return np.sin(2 * X[:, 0]) + 0.2 * np.random.default_rng(seed).normal(size=len(X))


def hinge(y, C):
    ends = C * y
    return BoxProblem(y, np.minimum(ends, 0.0), np.maximum(ends, 0.0), np.zeros(len(y)))


def squared_hinge(y, C):
    lower, upper = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    return BoxProblem(y, lower, upper, np.ones(len(y)) / C)


def regression(t, C, epsilon=0.1):
    ends = C * np.ones(len(t))
    return BoxProblem(t, -ends, ends, np.zeros(len(t)), width=epsilon)


def one_class(weight, nu=0.3):
    zeros = np.zeros(len(weight))
    return BoxProblem(zeros, zeros, weight, zeros, total=nu * weight.sum())


def machine(kind, X, C, seed=0, share=0.5):
    """One of the four; C is a weight of samples where there is no C."""
    C = C * np.ones(len(X))
    if kind == "hinge":
        return hinge(signs(X, seed, share), C)
    if kind == "squared hinge":
        return squared_hinge(signs(X, seed, share), C)
    if kind == "one class":
        return one_class(C)
    return regression(targets(X, seed), C)


KINDS = ["hinge", "squared hinge", "regression", "one class"]


def objective(K, p, v):
    """D by its definition."""
    quadratic = v @ K @ v + p.ridge @ v**2
    return p.linear @ v - p.width * np.abs(v).sum() - quadratic / 2


def primal_objective(K, p, v, b):
    """P by its definition: every term at its best among bounds, kink and stationary points."""
    z = p.linear - K @ v - b
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.array([(z - p.width) / p.ridge, (z + p.width) / p.ridge])
    inner = np.where(p.ridge > 0, inner, 0.0)
    ends = np.array([p.lower, p.upper, np.zeros(len(v))])
    tried = np.clip(np.concatenate([inner, np.where(np.isfinite(ends), ends, 0.0)]), *ends[:2])
    terms = z * tried - p.width * np.abs(tried) - p.ridge * tried**2 / 2
    return v @ K @ v / 2 + b * p.total + terms.max(axis=0).sum()


def violation(K, p, v):
    """How much more it pays at most to raise one variable than it costs to lower another."""
    slope = p.linear - K @ v - p.ridge * v
    rise = slope - p.width * np.where(v >= 0, 1.0, -1.0)
    fall = slope - p.width * np.where(v > 0, 1.0, -1.0)
    return rise[v < p.upper].max(initial=-np.inf) - fall[v > p.lower].min(initial=np.inf)


def assert_feasible(p, v):
    assert np.all(v >= p.lower)
    assert np.all(v <= p.upper)
    assert abs(v.sum() - p.total) <= 1e-12 * max(np.abs(v).sum(), 1e-300)


def rounding(K, p, v):
    """Rounding error of sums of this size."""
    terms = np.abs(p.linear) @ np.abs(v) + np.abs(K).max() * np.abs(v).sum() ** 2
    # An error in an output costs as much as the bound of its variable says.
    ends = np.concatenate([p.lower, p.upper])
    price = np.abs(ends[np.isfinite(ends)]).sum()
    outputs = np.abs(p.linear).max() + np.abs(K).max() * np.abs(v).sum() + p.width
    return 1e-14 * (terms + p.ridge @ v**2 + price * outputs)


def check(K, p, answer):
    """Feasible, and its numbers are those of the definitions."""
    v = answer.v
    assert_feasible(p, v)
    slack = rounding(K, p, v)
    np.testing.assert_allclose(answer.product, K @ v, atol=1e-12 * (np.abs(K) @ np.abs(v)).max())
    assert answer.dual == pytest.approx(objective(K, p, v), rel=1e-10, abs=slack)
    here = primal_objective(K, p, v, answer.bias)
    assert answer.primal <= here + 1e-10 * abs(here) + slack
    assert answer.gap >= -slack
    expected = violation(K, p, v)
    if np.isfinite(expected):
        scale = np.abs(p.linear).max() + (np.abs(K) @ np.abs(v)).max() + (p.ridge * v).max()
        assert answer.violation == pytest.approx(expected, abs=1e-13 * scale)
    return answer


def solve(K, p, rel_gap=1e-11):
    ascent = Ascent(K, p)
    ascent.run_to_gap(rel_gap)
    return check(K, p, ascent.solution())


def conic(K, p, unit):
    """The optimum by an interior-point solver; variables in units of about their size."""
    values, vectors = np.linalg.eigh(K)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    x = cp.Variable(len(K))
    finite_low, finite_high = np.isfinite(p.lower), np.isfinite(p.upper)
    value = (p.linear / unit) @ x - (p.width / unit) * cp.norm1(x)
    value -= cp.sum_squares(roots.T @ x) / 2
    value -= cp.sum_squares(cp.multiply(np.sqrt(p.ridge), x)) / 2
    constraints = [cp.sum(x) == p.total / unit]
    if finite_low.any():
        constraints.append(x[finite_low] >= p.lower[finite_low] / unit)
    if finite_high.any():
        constraints.append(x[finite_high] <= p.upper[finite_high] / unit)
    problem = cp.Problem(cp.Maximize(value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value * unit**2


@pytest.mark.parametrize("kind", [*KINDS[:2], *slow(*KINDS[2:])])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2, *slow(1e5)])
def test_equals_a_conic_solver(kind, C):
    X = points(50)
    K, p = gaussian(X), machine(kind, X, C)
    answer = solve(K, p)
    assert answer.gap <= 1e-10 * abs(answer.dual)
    assert answer.dual == pytest.approx(conic(K, p, np.abs(answer.v).max()), rel=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_a_conic_solver_with_a_bound_per_sample_and_unequal_classes(kind):
    X = points(60, seed=1)
    C = np.random.default_rng(2).uniform(0.1, 10.0, 60)
    K, p = gaussian(X), machine(kind, X, C, share=0.1)
    assert solve(K, p).dual == pytest.approx(conic(K, p, unit=1.0), rel=1e-7)


# --- scikit-learn ---------------------------------------------------------------------------


def single(K):
    """As LIBSVM stores it."""
    return K.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("weighted", [False, *slow(True)])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e5])
def test_decision_values_are_those_of_libsvm(C, weighted):
    X = points(80)
    K, y, t = single(gaussian(X)), signs(X), targets(X)
    weight = np.random.default_rng(3).uniform(0.2, 3.0, 80) if weighted else np.ones(80)
    tight = {"kernel": "precomputed", "tol": 1e-8}
    svc = SVC(C=C, **tight).fit(K, y, weight)
    svr = SVR(C=C, epsilon=0.1, **tight).fit(K, t, weight)
    both = [
        (hinge(y, C * weight), svc.decision_function(K)),
        (regression(t, C * weight), svr.predict(K)),
    ]
    for p, expected in both:
        answer = solve(K, p)
        np.testing.assert_allclose(answer.product + answer.bias, expected, atol=3e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.05, 0.32, 0.89])
def test_one_class_decision_values_are_those_of_libsvm(nu, weighted):
    K = single(gaussian(points(80)))
    weight = np.random.default_rng(3).uniform(0.2, 3.0, 80) if weighted else np.ones(80)
    other = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9).fit(K, sample_weight=weight)
    answer = solve(K, one_class(weight, nu))
    expected = other.decision_function(K)
    np.testing.assert_allclose(answer.product + answer.bias, expected, atol=1e-6)


def test_with_everything_at_its_bound_the_bias_is_the_middle_as_in_libsvm():
    X = points(40)
    K, y = single(gaussian(X)), signs(X)
    answer = solve_box(K, hinge(y, 1e-4), tol=1e-10)
    np.testing.assert_array_equal(answer.v, 1e-4 * y)
    svc = SVC(C=1e-4, kernel="precomputed", tol=1e-10).fit(K, y)
    assert answer.bias == pytest.approx(svc.intercept_[0], abs=1e-9)
    up, down = (y - K @ answer.v)[y < 0].max(), (y - K @ answer.v)[y > 0].min()
    assert answer.bias == pytest.approx((up + down) / 2)


# --- conditions, bounds, starts -------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.1, 1e3])
def test_no_violation_is_above_the_tolerance(kind, C):
    X = points(60)
    K, p = gaussian(X), machine(kind, X, C)
    for tol in (1e-1, 1e-3, 1e-6, 1e-9):
        answer = check(K, p, solve_box(K, p, tol=tol))
        assert answer.violation <= tol
        assert violation(K, p, answer.v) <= tol * 1.001


@given(seeds, st.sampled_from(KINDS), st.sampled_from([1e-2, 1.0, 1e3]), st.integers(0, 40))
@few
def test_the_optimum_lies_between_dual_and_primal_wherever_one_stops(seed, kind, C, max_steps):
    """From anywhere, feasible or not."""
    rng = np.random.default_rng(seed)
    X = points(20, seed)
    K, p = gaussian(X), machine(kind, X, C, seed, share=0.3)
    best = solve(K, p)
    assert best.gap <= 1e-9 * abs(best.dual) + rounding(K, p, best.v)
    start = None if seed % 3 == 0 else C * rng.normal(size=20) * 10.0 ** rng.integers(-2, 3)
    answer = check(K, p, solve_box(K, p, start=start, max_steps=max_steps))
    assert answer.n_steps <= max_steps
    slack = rounding(K, p, answer.v) + rounding(K, p, best.v)
    assert answer.dual <= best.primal + slack
    assert answer.primal >= best.dual - slack
    finished = check(K, p, solve_box(K, p, start=start, tol=1e-7 * (1 + C)))
    assert finished.dual == pytest.approx(best.dual, rel=1e-4, abs=1e-6)


@given(seeds, st.sampled_from(KINDS))
@example(seed=26538, kind="hinge")  # nearly all of v cancels
@few
def test_feasible_points_stay_where_they_are_and_others_come_close(seed, kind):
    rng = np.random.default_rng(seed)
    X = points(15, seed)
    p = machine(kind, X, rng.uniform(0.1, 3.0, 15), seed)
    v = p.feasible(rng.normal(size=15) * 10.0 ** rng.integers(-3, 4))
    assert_feasible(p, v)
    np.testing.assert_array_equal(p.feasible(v), v)
    off = v + 1e-3 * rng.normal(size=15)
    again = p.feasible(off)
    assert_feasible(p, again)
    assert np.abs(again - off).sum() <= 3 * np.abs(off - v).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_takes_fewer_steps(kind):
    X = points(150)
    p = machine(kind, X, 10.0)
    near, here = gaussian(X, 0.49), gaussian(X, 0.5)
    cold = solve_box(here, p, tol=1e-6)
    warm = solve_box(here, p, start=solve_box(near, p, tol=1e-6).v, tol=1e-6)
    assert warm.n_steps < 0.9 * cold.n_steps
    assert warm.dual == pytest.approx(cold.dual, rel=1e-6)
    assert solve_box(here, p, start=cold.v, tol=2e-6).n_steps == 0


@pytest.mark.parametrize("kind", KINDS[:3])
def test_leaving_out_variables_changes_nothing(kind, monkeypatch):
    X = points(600)
    K, p = gaussian(X), machine(kind, X, 3.0, share=0.1)
    sizes = set()
    plain = loops.ascend

    def spying(*arguments):
        sizes.add(len(arguments[7]))
        return plain(*arguments)

    monkeypatch.setattr(loops, "ascend", spying)
    shrinking = check(K, p, solve_box(K, p, tol=1e-7))
    assert min(sizes) < 500
    sizes.clear()
    monkeypatch.setattr(box, "_WORTH_SHRINKING", 0.0)
    whole = check(K, p, solve_box(K, p, tol=1e-7))
    assert sizes == {600}
    assert max(shrinking.violation, whole.violation) <= 1e-7
    assert shrinking.dual == pytest.approx(whole.dual, rel=1e-9)
    np.testing.assert_allclose(shrinking.product, whole.product, atol=1e-6)
    assert shrinking.bias == pytest.approx(whole.bias, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_same_and_the_kernel_is_not_written(kind):
    X = points(120)
    K, p = gaussian(X), machine(kind, X, 10.0)
    K.flags.writeable = False
    before = [p.linear.copy(), p.lower.copy(), p.upper.copy(), p.ridge.copy()]
    start = np.linspace(-1, 1, 120)
    start.flags.writeable = False
    one, other = solve_box(K, p, start=start), solve_box(K, p, start=start)
    np.testing.assert_array_equal(one.v, other.v)
    assert (one.bias, one.primal, one.n_steps) == (other.bias, other.primal, other.n_steps)
    Ascent(K, p).run_to_gap(1e-9)
    for array, copy in zip((p.linear, p.lower, p.upper, p.ridge), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_solution_stays_as_it_is_when_the_ascent_goes_on():
    X = points(60)
    ascent = Ascent(gaussian(X), machine("hinge", X, 10.0))
    ascent.run(1e-1, 20)
    early = ascent.solution()
    v, product = early.v.copy(), early.product.copy()
    ascent.run_to_gap(1e-9)
    np.testing.assert_array_equal(early.v, v)
    np.testing.assert_array_equal(early.product, product)
    assert ascent.solution().dual > early.dual


# --- solving for the free variables ---------------------------------------------------------


@given(seeds, st.sampled_from(KINDS), st.sampled_from([1e-1, 1e1, 1e4]), st.integers(0, 60))
@few
def test_polishing_never_lowers_the_objective_and_stays_feasible(seed, kind, C, n_steps):
    X = points(25, seed)
    X[5:10] = X[:5]
    # Of full rank but for equal rows, or of rank three, or of rank six.
    K = [gaussian(X), X @ X.T, (1 + X[:, :2] @ X[:, :2].T) ** 2][seed % 3]
    p = machine(kind, X, C, seed, share=0.4)
    ascent = Ascent(K, p)
    ascent.run(1e-9, n_steps)
    before = objective(K, p, ascent.v)
    ascent.polish()
    assert_feasible(p, ascent.v)
    assert objective(K, p, ascent.v) >= before - rounding(K, p, ascent.v)
    check(K, p, ascent.solution())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_the_gap_asked_for_is_reached(kind, C):
    X = points(200)
    K, p = gaussian(X, 2.0), machine(kind, X, C)
    ascent = Ascent(K, p)
    ascent.run_to_gap(1e-10)
    answer = check(K, p, ascent.solution())
    assert answer.gap <= 1e-10 * abs(answer.dual)
    assert ascent.gap == answer.gap


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("C", [1.0, *slow(1e4)])
def test_the_gap_asked_for_is_reached_with_few_features(kind, C):
    """The system of the free variables is singular on the way."""
    X = points(80)
    for K in (X @ X.T, (1 + X @ X.T) ** 2):
        p = machine(kind, X, C)
        ascent = Ascent(K, p)
        ascent.run_to_gap(1e-10)
        answer = check(K, p, ascent.solution())
        assert answer.gap <= 1e-10 * abs(answer.dual)
        assert ascent.n_steps < 4000 * 80


# --- known answers and bad kernels ----------------------------------------------------------


@pytest.mark.parametrize("C", [0.5, 5.0])
def test_two_samples(C):
    """α = min(C, 2/‖x − x'‖²), the margin halfway."""
    K = np.array([[4.0, 1.0], [1.0, 2.0]])
    answer = solve(K, hinge(np.array([1.0, -1.0]), C))
    alpha = min(C, 2 / (4 + 2 - 2 * 1))
    np.testing.assert_allclose(answer.v, [alpha, -alpha], rtol=1e-12)
    assert answer.dual == pytest.approx(2 * alpha - 2 * alpha**2)
    squared = solve(K, squared_hinge(np.array([1.0, -1.0]), C))
    assert squared.v[0] == pytest.approx(2 / (4 + 2 / C))


def test_samples_that_share_nothing():
    """Two against one, K = I: α = (2/3, 2/3, 4/3), b = 1/3."""
    answer = solve(np.eye(3), hinge(np.array([1.0, 1.0, -1.0]), 10.0))
    np.testing.assert_allclose(answer.v, [2 / 3, 2 / 3, -4 / 3], rtol=1e-9)
    assert answer.bias == pytest.approx(1 / 3)
    many = solve(np.eye(100), hinge(np.tile([1.0, -1.0], 50), 10.0))
    np.testing.assert_allclose(many.v, np.tile([1.0, -1.0], 50), rtol=1e-9)
    assert many.dual == pytest.approx(50)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_kernel_that_distinguishes_no_samples(value):
    """Zero or constant: all of the smaller class at its bound, the constant machine for it."""
    K = np.full((30, 30), value)
    y = np.where(np.arange(30) < 10, 1.0, -1.0)
    answer = solve(K, hinge(y, 2.0))
    assert answer.dual == pytest.approx(2 * 10 * 2.0)
    np.testing.assert_array_equal(answer.v[:10], 2.0)
    np.testing.assert_allclose(answer.product + answer.bias, -1.0, atol=1e-9)
    # ½C(Σ_y (1 − yb)²) is least where b is the mean of y.
    squared = solve(K, squared_hinge(y, 2.0))
    assert squared.bias == pytest.approx(y.mean())
    assert squared.dual == pytest.approx(((1 - y * y.mean()) ** 2).sum())
    t = np.arange(30.0)
    tube = solve(K, regression(t, 2.0, epsilon=0.0))
    assert tube.dual == pytest.approx(2.0 * np.abs(t - 14.5).sum())
    sphere = solve(K, one_class(np.ones(30)))
    assert sphere.dual == pytest.approx(-value * 81 / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.1, 1e3])
def test_repeated_samples_share_what_one_of_all_their_weight_has(kind, C):
    X = points(20)
    counts = np.random.default_rng(1).integers(1, 4, 20)
    K, row = gaussian(X), np.repeat(np.arange(20), counts)
    p = machine(kind, X, C * counts)
    total = p.total
    written_out = BoxProblem(
        p.linear[row],
        (p.lower / counts)[row],
        (p.upper / counts)[row],
        (p.ridge * counts)[row],
        p.width,
        total,
    )
    one, many = solve(K, p), solve(K[np.ix_(row, row)], written_out)
    assert many.dual == pytest.approx(one.dual, rel=1e-9)
    np.testing.assert_allclose(many.product, one.product[row], rtol=1e-4, atol=1e-5)
    assert many.bias == pytest.approx(one.bias, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_with_negative_eigenvalues_of_rounding(kind):
    X = points(80)
    K = single(X @ X.T)
    assert np.linalg.eigvalsh(K)[0] < -1e-8
    p = machine(kind, X, 10.0)
    answer = solve_box(K, p, tol=1e-3)
    assert_feasible(p, answer.v)
    assert answer.violation <= 1e-3
    noise = 1e-6 * np.abs(answer.v).sum() ** 2
    # The origin lies among the samples: one class has the zero machine.
    expected = 0.0 if kind == "one class" else conic(K, p, unit=10.0)
    assert answer.dual == pytest.approx(expected, rel=1e-4, abs=noise)
    ascent = Ascent(K, p)
    ascent.run_to_gap(1e-6)
    assert_feasible(p, ascent.v)
    assert ascent.gap <= 1e-6 * abs(answer.dual) + noise


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("power", [-40, 40])
def test_units_of_the_kernel_do_not_matter(kind, power):
    """K → sK with bounds and ridge in proportion; exact, as s is a power of two."""
    X = points(60)
    s = 2.0**power
    K, p = gaussian(X), machine(kind, X, 10.0)
    is_sphere = kind == "one class"
    scaled = BoxProblem(
        p.linear,
        p.lower / (1 if is_sphere else s),
        p.upper / (1 if is_sphere else s),
        p.ridge * s,
        p.width,
        p.total,
    )
    one, other = Ascent(K, p), Ascent(s * K, scaled)
    one.run_to_gap(1e-9)
    other.run_to_gap(1e-9)
    np.testing.assert_array_equal(other.v * (1 if is_sphere else s), one.v)
    assert other.n_steps == one.n_steps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_kernels_far_from_one(kind, scale):
    """Bounds left as they are: nothing can be learnt, or nothing need be paid."""
    X = points(60)
    K, p = scale * gaussian(X), machine(kind, X, 1.0)
    ascent = Ascent(K, p)
    ascent.run_to_gap(1e-8)
    answer = check(K, p, ascent.solution())
    assert answer.gap <= 1e-8 * abs(answer.dual) + rounding(K, p, answer.v)


def test_regression_without_a_tube():
    X = points(50)
    K, t = single(gaussian(X)), targets(X)
    p = regression(t, 1.0, epsilon=0.0)
    answer = solve(K, p)
    assert answer.dual == pytest.approx(conic(K, p, unit=1.0), rel=1e-7)
    other = SVR(C=1.0, epsilon=0.0, kernel="precomputed", tol=1e-9).fit(K, t)
    np.testing.assert_allclose(answer.product + answer.bias, other.predict(K), atol=1e-6)


def test_regression_within_the_tube():
    t = np.linspace(-1.0, 2.0, 20)
    answer = solve(gaussian(points(20)), regression(t, 5.0, epsilon=3.0))
    np.testing.assert_array_equal(answer.v, 0.0)
    assert answer.dual == 0.0
    assert answer.primal == pytest.approx(0.0, abs=1e-12)
    assert answer.bias == pytest.approx(0.5)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_one_class_of_all_samples_and_next_to_none(share):
    K = gaussian(points(30))
    nu = 1.0 if share else 1e-6
    p = one_class(np.ones(30), nu)
    answer = solve(K, p)
    if share:
        np.testing.assert_array_equal(answer.v, 1.0)
        assert -answer.bias >= K.sum(axis=0).max() - 1e-12
    assert answer.dual == pytest.approx(conic(K, p, answer.v.max()), rel=1e-7)


def test_a_total_without_bounds():
    """Three samples that share nothing have a third of it each: D = −½ · 3 · (1 + 1)."""
    ends = np.full(3, np.inf)
    p = BoxProblem(np.zeros(3), -ends, ends, np.ones(3), total=3.0)
    answer = solve(np.eye(3), p)
    np.testing.assert_allclose(answer.v, 1.0)
    assert answer.dual == pytest.approx(-3.0)
    assert answer.primal == pytest.approx(-3.0)


def test_a_single_class_has_the_zero_machine():
    answer = solve(gaussian(points(10)), hinge(np.ones(10), 1.0))
    np.testing.assert_array_equal(answer.v, 0.0)
    assert answer.bias == 1.0
    assert answer.primal == pytest.approx(0.0, abs=1e-12)


def test_ties_are_broken_alike_whatever_the_size():
    """All pairs equal: the answer is equal too, beyond one block of the search."""
    y = np.tile([1.0, -1.0], 300)
    K = np.eye(600) + 0.5
    answer = solve(K, hinge(y, 0.25))
    np.testing.assert_array_equal(answer.v, 0.25 * y)
    free = solve(K, hinge(y, 9.0))
    np.testing.assert_allclose(free.v, y, rtol=1e-8)


@pytest.mark.slow
def test_importing_the_machines_does_not_load_the_compiler():
    code = "import manykernels.smo, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sums_are_right_to_the_last_digit():
    rng = np.random.default_rng(0)
    v = rng.uniform(-1.0, 1.0, 50)
    v[::5] = 1.0
    v[1] += 1e-13 - v.sum()
    problem = BoxProblem(np.zeros(50), np.full(50, -1.0), np.ones(50), np.zeros(50))
    balanced = problem.balanced(v)
    assert abs(math.fsum(v)) > 5e-14
    assert abs(math.fsum(balanced)) < 2e-16
    assert np.count_nonzero(balanced != v) == 1
    # Without a variable between its bounds nothing changes.
    at_bounds = np.tile([1.0, -1.0], 25)
    np.testing.assert_array_equal(problem.balanced(at_bounds), at_bounds)
