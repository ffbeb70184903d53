"""Smooth losses: their functions, the inner problem, and certificates against other programs."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from manykernels import KernelStack
from manykernels.domains import Product, lp_domain
from manykernels.kernels.on_demand import RegionalKernels
from manykernels.losses.cox import Cox
from manykernels.losses.smooth import (
    DenseCurvature,
    Logistic,
    Multinomial,
    Poisson,
    SmoothFunction,
    SoftmaxCurvature,
)
from manykernels.losses.smooth_loss import SmoothLoss
from manykernels.solvers import SOLVERS, Newton
from manykernels.solvers.base import Problem, complaint
from tests.differences import assert_derivatives
from tests.problems import region_factors, slow

M = 20


def random_cox(rng, m, **options):
    time = rng.integers(1, 8, m).astype(float)
    event = rng.random(m) < 0.7
    event[0] = True
    return Cox(time, event, **options)


def weights_for(rng, m):
    return rng.choice([1e-3, 0.5, 1.0, 3.0, 1e3], m)


def repeats_for(rng, m):
    """How often samples occur, which may be never."""
    return np.append(1.0, rng.choice([0.0, 1.0, 1.0, 2.0, 5.0], m - 1))


def strata_for(rng, m):
    return rng.integers(0, 3, m)


def counts_for(rng, m):
    return np.append(rng.poisson(2.0, m - 1), 3)


FUNCTIONS = {
    "logistic": lambda rng, m: Logistic(np.where(rng.permutation(m) % 3, 1, -1)),
    "logistic, weights": lambda rng, m: Logistic(
        np.where(rng.permutation(m) % 3, 1, -1), weights_for(rng, m)
    ),
    "logistic, repeats": lambda rng, m: Logistic(
        np.where(rng.permutation(m) % 3, 1, -1), repeats_for(rng, m)
    ),
    "logistic, no bias": lambda rng, m: Logistic(np.ones(m), has_bias=False),
    "logistic, labels": lambda rng, m: Logistic(
        np.where(np.arange(m)[:, None] % [2, 3, 5], 1, -1), rng.uniform(0.2, 3.0, (m, 3))
    ),
    "multinomial": lambda rng, m: Multinomial(rng.permutation(m) % 3),
    "multinomial, repeats": lambda rng, m: Multinomial(
        rng.permutation(m) % 3, sample_weight=repeats_for(rng, m)
    ),
    "multinomial, weights": lambda rng, m: Multinomial(
        rng.permutation(m) % 4, sample_weight=weights_for(rng, m)
    ),
    "poisson": lambda rng, m: Poisson(counts_for(rng, m)),
    "poisson, weights": lambda rng, m: Poisson(
        counts_for(rng, m), 3.0 * rng.normal(size=m), weights_for(rng, m)
    ),
    "cox, breslow": lambda rng, m: random_cox(rng, m, ties="breslow"),
    "cox, efron": lambda rng, m: random_cox(rng, m),
    "cox, strata": lambda rng, m: random_cox(rng, m, strata=strata_for(rng, m)),
    "cox, repeats": lambda rng, m: random_cox(
        rng, m, sample_weight=repeats_for(rng, m), ties="breslow"
    ),
    "cox, weights": lambda rng, m: random_cox(
        rng, m, sample_weight=weights_for(rng, m), ties="breslow"
    ),
    "cox, all": lambda rng, m: random_cox(
        rng,
        m,
        entry=rng.uniform(-4.0, 0.9, m),
        strata=strata_for(rng, m),
        sample_weight=weights_for(rng, m),
    ),
}


def draw(name, seed=0, m=M):
    return FUNCTIONS[name](np.random.default_rng(seed), m)


def features_for(seed=0, m=M, n_kernels=3):
    """Features of kernels of ranks 1, 2, …, of different size."""
    rng = np.random.default_rng(seed + 1000)
    return [rng.normal(size=(m, 1 + j)) * 10.0 ** rng.uniform(-0.5, 0.5) for j in range(n_kernels)]


def stack_of(features):
    return KernelStack.from_arrays([Z @ Z.T for Z in features])


# -- Functions ------------------------------------------------------------------------------------


def dense(function, outputs):
    """The Hessian as a matrix, whatever its kind: E of a vanishing kernel."""
    m, c = outputs.shape
    inverse = function.curvature(outputs).inverse_sum(np.zeros((m, m)))
    columns = np.eye(m * c).reshape(m, c, m * c)
    return inverse.apply(columns).reshape(m * c, m * c)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_functions(name):
    function = draw(name, m=9)
    shape = 9, function.n_outputs
    f = np.random.default_rng(3).normal(size=shape)
    gradient, hessian = function.gradient(f), dense(function, f)
    assert_derivatives(gradient.ravel(), lambda x: function.value(x.reshape(shape)), f.ravel())
    assert_derivatives(hessian, lambda x: function.gradient(x.reshape(shape)).ravel(), f.ravel())
    ones = np.kron(np.ones((9, 1)), np.eye(shape[1]))
    np.testing.assert_allclose(
        function.curvature(f).totals(), ones.T @ hessian @ ones, atol=1e-9 * hessian.max()
    )


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_running_sums_of_risk_sets(ties, spread, seed):
    """Against sums that are written out, which left truncation before all times has."""
    rng = np.random.default_rng(seed)
    m = 40
    time, event = rng.integers(1, 9, m).astype(float), rng.random(m) < 0.7
    options = {
        "strata": rng.integers(0, 3, m),
        "ties": ties,
        "sample_weight": rng.integers(0, 4, m) + rng.random(m),
    }
    fast, plain = Cox(time, event, **options), Cox(time, event, entry=np.zeros(m), **options)
    f = spread * rng.normal(size=(m, 1))
    assert fast.value(f) == pytest.approx(plain.value(f), rel=1e-12)
    np.testing.assert_allclose(fast.gradient(f), plain.gradient(f), atol=1e-12)
    hessian = plain.hessian(f)
    np.testing.assert_allclose(dense(fast, f), hessian, atol=1e-12 * hessian.max())


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("seed", range(4))
def test_rounding_errors_of_the_gradient_of_cox(spread, seed):
    """Against sums of longer floats, written out."""
    rng = np.random.default_rng(seed)
    m = 40
    time, event = rng.permutation(m).astype(float), rng.random(m) < 0.7
    weight = rng.choice([0.5, 1.0, 5.0], m)
    function = Cox(time, event, sample_weight=weight)
    # The larger the output the earlier the event: expected events are close to observed ones.
    f = (spread * np.sort(rng.normal(size=m))[np.argsort(np.argsort(-time))])[:, None]
    wide = f[:, 0].astype(np.longdouble)
    powers = weight[:, None] * np.exp(wide[:, None] - wide) * (time[:, None] >= time)
    shares = powers / powers.sum(axis=0)
    expected = shares[:, event] @ weight[event] - weight * event
    errors = np.abs(function.gradient(f)[:, 0] - expected)
    assert errors.sum() <= 4.0 * function.gradient_errors(f).sum()
    point = SmoothLoss(stack_of(features_for(m=m)), function, 1e-3).evaluate(np.full(3, 0.3))
    assert (point.gain_errors > 0.0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_operator_of_newton_steps(name):
    """E = (H⁻¹ + Q)⁻¹ and its forms, against dense matrices."""
    function = draw(name, m=9)
    c, rng = function.n_outputs, np.random.default_rng(4)
    f, root = rng.normal(size=(9, c)), rng.normal(size=(9, 5))
    kernel = root @ root.T
    hessian, wide = dense(function, f), np.kron(kernel, np.eye(c))
    expected = np.linalg.solve(np.eye(9 * c) + hessian @ wide, hessian)
    inverse = function.curvature(f).inverse_sum(kernel)
    columns = rng.normal(size=(9, c, 4))
    size = np.abs(expected).max()
    np.testing.assert_allclose(
        inverse.apply(columns).reshape(9 * c, 4),
        expected @ columns.reshape(9 * c, 4),
        atol=1e-9 * size,
    )
    single = rng.normal(size=(9, 2))
    forms = np.einsum("mi,mknl,nj->kilj", single, expected.reshape(9, c, 9, c), single)
    np.testing.assert_allclose(inverse.gram(single), forms, atol=1e-9 * size)


@pytest.mark.parametrize("name", ["multinomial", "multinomial, weights"])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_newton_steps_by_conjugate_gradients(name, scale):
    """Against the equations of the step as one dense system."""
    function = draw(name, m=9)
    c, rng = function.n_outputs, np.random.default_rng(4)
    f, root = rng.normal(size=(9, c)), rng.normal(size=(9, 5))
    kernel = scale * root @ root.T
    hessian, ones = dense(function, f), np.kron(np.ones((9, 1)), np.eye(c))
    wide = np.kron(kernel, np.eye(c))
    dual = -function.gradient(f)
    residual = dual + function.gradient(rng.normal(size=(9, c)))
    system = np.block(
        [
            [np.eye(9 * c) + hessian @ wide, hessian @ ones],
            [ones.T @ hessian @ wide, ones.T @ hessian @ ones],
        ]
    )
    right = np.append(residual.ravel(), dual.sum(axis=0))
    changes, shifts = np.split(np.linalg.lstsq(system, right)[0], [9 * c])
    expected = kernel @ changes.reshape(9, c) + shifts
    # Errors relative to a large objective are small.
    size = 1e10 * np.vdot(residual, kernel @ residual)
    step, biases = function.curvature(f).cheap_step(kernel, residual, dual.sum(axis=0), size)
    moved = kernel @ step + biases
    # A change of all classes together has no effect.
    moved, expected = (x - x.mean(axis=1, keepdims=True) for x in (moved, expected))
    np.testing.assert_allclose(moved, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("kernel", "outputs", "size"),
    [
        (np.eye(9), np.zeros((9, 3)), 0.0),  # nothing to compare errors with
        (np.eye(9), np.tile([1e3, 0.0, 0.0], (9, 1)), 1.0),  # no curvature
        (np.zeros((9, 9)), np.zeros((9, 3)), 1.0),  # no kernel
        (-9e9 * np.eye(9), np.zeros((9, 3)), 1.0),  # no kernel either
    ],
)
def test_no_newton_step_by_conjugate_gradients(kernel, outputs, size):
    function = draw("multinomial", m=9)
    curvature, dual = function.curvature(outputs), -function.gradient(outputs)
    assert curvature.cheap_step(kernel, dual, None, size) is None


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("reg", [1e-2, 1.0, 100.0])
def test_several_classes_take_no_factorisation_of_each(reg, has_bias, monkeypatch):
    """Not even from a start that is far off."""
    rng = np.random.default_rng(5)
    labels = rng.permutation(60) % 6
    features = [rng.normal(size=(60, 8)) + labels[:, None] for _ in range(3)]
    loss = SmoothLoss(stack_of(features), Multinomial(labels, has_bias=has_bias), reg)
    exact = loss.evaluate(np.full(3, 0.5))
    monkeypatch.setattr(SoftmaxCurvature, "cheap_step", lambda *arguments: None)
    by_factors = SmoothLoss(loss.kernels, loss.function, reg).evaluate(np.full(3, 0.5))
    assert exact.value == pytest.approx(by_factors.value, rel=2e-8)
    monkeypatch.undo()
    monkeypatch.setattr(SoftmaxCurvature, "inverse_sum", None)
    again = SmoothLoss(loss.kernels, loss.function, reg).evaluate(np.full(3, 0.5))
    assert again.value == exact.value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_start_near_another_regularisation(name):
    """It saves steps, and does not change the solution."""
    function, stack, weights = draw(name), stack_of(features_for()), np.array([0.2, 0.5, 0.3])
    first = SmoothLoss(stack, function, 1.0)
    first.evaluate(weights[::-1])
    second = SmoothLoss(stack, function, 0.1)
    second.start_near(first)
    point, alone = second.evaluate(weights), SmoothLoss(stack, function, 0.1).evaluate(weights)
    error = 2e-8 * abs(alone.value) + alone.rounding + point.rounding
    assert abs(point.value - alone.value) <= error


def cox_by_loops(f, time, event, weight, entry, strata, ties):
    """The negative log partial likelihood, from its definition."""
    total = 0.0
    for key in sorted({(strata[i], time[i]) for i in range(len(f)) if event[i] and weight[i]}):
        stratum, moment = key
        risk = tied_risk = tied_weight = 0.0
        tied = 0
        for i in range(len(f)):
            if strata[i] != stratum:
                continue
            if time[i] >= moment and entry[i] < moment:
                risk += weight[i] * np.exp(f[i])
            if time[i] == moment and event[i] and weight[i]:
                tied += 1
                tied_risk += weight[i] * np.exp(f[i])
                tied_weight += weight[i]
                total -= weight[i] * f[i]
        for term in range(tied):
            part = term / tied if ties == "efron" else 0.0
            total += tied_weight / tied * np.log(risk - part * tied_risk)
    return total


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("seed", range(5))
def test_cox_is_the_partial_likelihood(ties, seed):
    rng = np.random.default_rng(seed)
    m = 25
    time, event = rng.integers(1, 7, m), rng.random(m) < 0.6
    weight, entry, strata = weights_for(rng, m), rng.uniform(-3, 0.9, m), strata_for(rng, m)
    weight[rng.integers(m)] = 0.0
    event[0] = weight[0] = True
    function = Cox(time, event, entry=entry, strata=strata, ties=ties, sample_weight=weight)
    values = []
    for f in rng.normal(size=(3, m)):
        loops = cox_by_loops(f, time, event, weight, entry, strata, ties)
        values.append((function.value(f[:, None]), loops))
    fast, slow_ = np.array(values).T
    np.testing.assert_allclose(np.diff(fast), np.diff(slow_), rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "logistic, no bias"])
def test_the_least_value_is_zero(name):
    """φ may be as small as one likes, and is not negative."""
    function = draw(name)
    shape = M, function.n_outputs
    least = minimize(
        lambda x: (function.value(x.reshape(shape)), function.gradient(x.reshape(shape)).ravel()),
        np.zeros(M * function.n_outputs),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-9},
    )
    start = function.value(np.zeros(shape))
    # Samples that leave before others enter are no better off by any outputs.
    most = start if name == "cox, all" else 1e-2 * start
    assert -1e-9 * start <= least.fun <= most


def test_outputs_far_apart():
    """No overflow of exponentials, and the values of a shifted sum."""
    far = np.array([[-800.0], [0.0], [900.0]])
    function = Cox([1.0, 2.0, 3.0], [True, True, True])
    assert function.value(far) == pytest.approx(1700 + 900)
    np.testing.assert_allclose(function.gradient(far)[:, 0], [-1.0, -1.0, 2.0])
    assert Logistic([1, -1, 1]).value(far) == pytest.approx(800 + np.log(2))
    classes = Multinomial([0, 1, 0])
    assert classes.value(np.hstack([far, -far])) == pytest.approx(1600 + np.log(2))
    assert np.isfinite(classes.gradient(np.hstack([far, -far]))).all()


BAD = [
    (lambda: Logistic([0, 1]), "signs must be -1 or 1"),
    (lambda: Logistic([1, 1]), "single class"),
    (lambda: Logistic([1, -1], [1.0, 0.0]), "single class"),
    (lambda: Logistic([1, -1], [1.0, -1.0]), "in row 1"),
    (lambda: Logistic([1, -1], [1.0]), "one weight for each of 2"),
    (lambda: Logistic([[1, 1], [-1, 1]]), "single class in column 1"),
    (lambda: Logistic([[1, -1], [-1, 1]], np.ones((2, 3))), "for each of its signs"),
    (lambda: Logistic(np.ones((2, 2, 2))), "one or two dimensions"),
    (lambda: Multinomial([0.5, 1]), "integers"),
    (lambda: Multinomial([0, 3], 3), "from 0 to 2"),
    (lambda: Multinomial([0, 2]), "Class 1 has no sample"),
    (lambda: Poisson([1, -2]), "got -2 in row 1"),
    (lambda: SmoothLoss(stack_of(features_for()), Poisson(np.zeros(M)), 1.0), "all zero"),
    (lambda: Poisson([1, 2], [0.0]), "offset must have 2 entries"),
    (lambda: Cox([1, np.nan], [True, True]), "time must be finite, got nan in row 1"),
    (lambda: Cox([1, 2], [False, False]), "event must be True"),
    (lambda: Cox([1, 2], [True, True], entry=[0, 2]), "in row 1"),
    (lambda: Cox([1, 2], [True, True], ties="exact"), "ties must be"),
    (lambda: Cox([1, 2], [True, True], strata=[1]), "strata must have 2 entries"),
    (lambda: Cox([1, 2], [True]), "event must have 2 entries"),
    (lambda: SmoothLoss(stack_of(features_for()), draw("poisson"), 0.0), "reg must be positive"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- Against other programs -----------------------------------------------------------------------


def in_cvxpy(function, f):
    """φ of an expression (m, c), written down a second time."""
    if isinstance(function, Logistic):
        losses = cp.logistic(-cp.multiply(function.signs, f))
        return cp.sum(cp.multiply(function.sample_weight, losses))
    if isinstance(function, Multinomial):
        rows = [
            weight * (cp.log_sum_exp(f[i]) - f[i, function.labels[i]])
            for i, weight in enumerate(function.sample_weight)
        ]
        return cp.sum(rows)
    if isinstance(function, Poisson):
        y, w = function.counts[:, 0], function.sample_weight[:, 0]
        logs = f[:, 0] + function.offset[:, 0]
        least = np.sum(w[y > 0] * (y * np.log(np.maximum(y, 1)) - y)[y > 0])
        return w @ (cp.exp(logs) - cp.multiply(y, logs)) + least
    terms = []
    for risk, factor, shift in zip(
        function.terms.risks, function.terms.factors, function.terms.shifts, strict=True
    ):
        held = np.flatnonzero(risk)
        total = cp.log_sum_exp(f[held, 0] + np.log(risk[held]))
        terms.append(factor * (total - shift))
    return cp.sum(terms) - function.event_weight @ f[:, 0]


def optimum(function, features, reg, p):
    """min_β F of a general solver: φ(Σ_j Z_jW_j) + (λ/2)‖(‖W_j‖)_j‖_r², r = 2p/(p + 1)."""
    m, c = len(features[0]), function.n_outputs
    blocks = [cp.Variable((Z.shape[1], c)) for Z in features]
    f = sum(Z @ W for Z, W in zip(features, blocks, strict=True))
    if function.has_bias:
        f = f + np.ones((m, 1)) @ cp.Variable((1, c))
    if p == np.inf:
        squares = cp.sum([cp.sum_squares(W) for W in blocks])
    else:
        norms = cp.hstack([cp.norm(W, "fro") for W in blocks])
        squares = cp.square(cp.norm1(norms) if p == 1 else cp.pnorm(norms, 2 * p / (p + 1)))
    problem = cp.Problem(cp.Minimize(in_cvxpy(function, f) + 0.5 * reg * squares))
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return problem.value


def agrees_with_cvxpy(name, p, reg, seed, m=M):
    function, features = draw(name, seed, m), features_for(seed, m)
    expected = optimum(function, features, reg, p)
    solution = Newton().solve(
        SmoothLoss(stack_of(features), function, reg), lp_domain(p), tol=1e-8
    )
    certificate = solution.certificate
    assert certificate.converged
    # Clarabel's own tolerance is 1e-8, of numbers that are larger than the sum.
    assert certificate.primal == pytest.approx(expected, rel=2e-6)
    assert certificate.gap >= -certificate.rounding


SMALL = [
    ("logistic", 1.0),
    ("logistic, no bias", 8.0),
    ("logistic, repeats", 4 / 3),
    ("multinomial", 1.0),
    ("multinomial, repeats", np.inf),
    ("poisson", 2.0),
    ("cox, efron", 1.0),
    ("cox, breslow", 4 / 3),
    ("cox, repeats", 2.0),
    ("cox, strata", np.inf),
]


@pytest.mark.parametrize(("name", "p"), SMALL)
def test_agrees_with_a_conic_solver(name, p):
    agrees_with_cvxpy(name, p, 0.5, 0, m=12)


# Weights from 1e-3 to 1e3 are beyond what the conic solver reaches to its tolerance.
TAME = [name for name in FUNCTIONS if "weights" not in name and "all" not in name]


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
@pytest.mark.parametrize("name", TAME)
def test_agrees_with_a_conic_solver_on_many_problems(name, p):
    """220 problems in all."""
    for seed in range(5):
        agrees_with_cvxpy(name, p, 10.0 ** (seed / 2 - 1), seed)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_kernel_is_logistic_regression(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    labels = np.digitize(X[:, 0] + rng.normal(size=60), [0.0] if n_classes == 2 else [-0.7, 0.7])
    weight = rng.uniform(0.5, 2.0, 60)
    model = LogisticRegression(C=1 / 0.3, tol=1e-10, max_iter=10**4)
    model.fit(X, labels, sample_weight=weight)
    if n_classes == 2:
        function = Logistic(2 * labels - 1, weight)
    else:
        function = Multinomial(labels, sample_weight=weight)
    loss = SmoothLoss(KernelStack.from_arrays([X @ X.T]), function, 0.3, 1e-16)
    point = loss.evaluate(np.ones(1))
    np.testing.assert_allclose((X.T @ point.coefficients).T, model.coef_, atol=1e-6)
    decision = model.decision_function(X).reshape(60, -1)
    shifted = point.outputs - point.outputs.mean(axis=1, keepdims=True) * (n_classes > 2)
    decision = decision - decision.mean(axis=1, keepdims=True) * (n_classes > 2)
    np.testing.assert_allclose(shifted, decision, atol=1e-6)
    np.testing.assert_allclose(
        X @ X.T @ point.coefficients + point.biases, point.outputs, atol=1e-10
    )


@pytest.mark.parametrize("name", ["cox, efron", "cox, all", "poisson"])
def test_one_kernel_by_a_general_method(name):
    function = draw(name)
    X = features_for()[2]
    reg = 0.3

    def objective(w):
        f = X @ w[:-1, None] + w[-1] * function.has_bias
        slopes = function.gradient(f)[:, 0]
        bias = slopes.sum() * function.has_bias
        return (
            function.value(f) + 0.5 * reg * w[:-1] @ w[:-1],
            np.append(X.T @ slopes + reg * w[:-1], bias),
        )

    found = minimize(objective, np.zeros(4), jac=True, options={"gtol": 1e-9})
    loss = SmoothLoss(KernelStack.from_arrays([X @ X.T]), function, reg)
    point = loss.evaluate(np.ones(1))
    assert point.value == pytest.approx(found.fun, rel=1e-7)
    np.testing.assert_allclose(X.T @ point.coefficients[:, 0], found.x[:-1], atol=2e-5)


# -- Solvers --------------------------------------------------------------------------------------


def test_solvers_that_take_smooth_losses():
    spec = SmoothLoss(stack_of(features_for()), draw("logistic"), 1.0).spec
    able = {
        p: sorted(
            name
            for name, kind in SOLVERS.items()
            if complaint(kind(), Problem(spec, lp_domain(p), 1e-6)) is None
        )
        for p in (1.0, 2.0)
    }
    assert able[1.0] == ["analytic", "newton", "reduced-gradient", "silp", "sip"]
    assert able[2.0] == ["analytic", "newton", "sip"]


@pytest.mark.parametrize("name", ["logistic", *slow("multinomial", "poisson"), "cox, efron"])
@pytest.mark.parametrize(
    ("solver", "p", "tol"),
    [
        ("analytic", 2.0, 1e-6),
        ("sip", 2.0, 1e-4),
        ("silp", 1.0, 1e-4),
        ("reduced-gradient", 1.0, 1e-4),
    ],
)
def test_solvers_agree(name, solver, p, tol):
    stack, function = stack_of(features_for()), draw(name)
    exact = SmoothLoss(stack, function, 0.2, 1e-12)
    by_newton = Newton().solve(exact, lp_domain(p), tol=1e-9)
    other = SOLVERS[solver]().solve(SmoothLoss(stack, function, 0.2), lp_domain(p), tol=tol)
    assert by_newton.certificate.converged
    assert by_newton.n_inner_solves <= 9
    assert other.certificate.rel_gap <= tol
    assert other.certificate.primal == pytest.approx(by_newton.certificate.primal, rel=tol)
    assert other.certificate.dual <= by_newton.certificate.primal * (1 + 1e-12)


@pytest.mark.parametrize("p", [1.0, 1.5, np.inf])
def test_weights_of_regions(p):
    factors = region_factors(2, M)
    regional = RegionalKernels(stack_of(features_for()), factors, factors)
    function = draw("logistic")
    loss = SmoothLoss(regional, function, 0.2, 1e-12)
    solution = Newton().solve(loss, Product(lp_domain(p), 2))
    assert solution.certificate.converged
    matrices = [np.outer(root, root) * (Z @ Z.T) for root in factors for Z in features_for()]
    plain = SmoothLoss(KernelStack.from_arrays(matrices), function, 0.2, 1e-12)
    assert plain.evaluate(solution.weights).value == pytest.approx(
        solution.certificate.primal, rel=1e-10
    )


@pytest.mark.parametrize("name", ["logistic", "multinomial", "cox, efron"])
def test_many_kernels_on_active_sets(name):
    rng = np.random.default_rng(0)
    stack = KernelStack.from_arrays([np.outer(x, x) for x in rng.normal(size=(150, M))])
    solution = Newton().solve(SmoothLoss(stack, draw(name), 0.5), lp_domain(1.0))
    certificate = solution.certificate
    assert certificate.converged
    assert (solution.weights > 0).sum() < 30
    again = SmoothLoss(stack, draw(name), 0.5).evaluate(solution.weights)
    assert again.value == pytest.approx(certificate.primal, rel=1e-7)
    best = Newton().solve(SmoothLoss(stack, draw(name), 0.5, 1e-12), lp_domain(1.0), tol=1e-9)
    assert best.certificate.converged
    assert certificate.dual <= best.certificate.primal <= certificate.primal * (1 + 1e-9)


def test_bounds_of_convex_combinations():
    """A mean of dual variables proves at least the mean of what they prove."""
    stack = stack_of(features_for())
    for name in ("logistic", "cox, efron"):
        loss = SmoothLoss(stack, draw(name), 0.2)
        points = [loss.evaluate(w) for w in np.random.default_rng(0).uniform(0, 1, (4, 3))]
        mean = sum(0.25 * point.dual for point in points)
        constants = [p.value - p.slack + p.weights @ p.gains for p in points]
        point = loss.dual_point(mean)
        assert point.linear - point.quadratic == pytest.approx(np.mean(constants), rel=1e-9)
        np.testing.assert_allclose(point.gains, loss.gains_at(mean), rtol=1e-8)
        best = Newton().solve(loss, lp_domain(2.0), tol=1e-9).certificate.primal
        assert loss.lower_bound(mean, lp_domain(2.0).support) <= best
        # Dual variables of which nothing is known are replaced by known ones.
        fresh = SmoothLoss(stack, draw(name), 0.2)
        assert fresh.lower_bound(mean, lp_domain(2.0).support) <= best


class Huber(SmoothFunction):
    """Quadratic up to one, linear beyond; `whole` has the Hessian as a matrix."""

    def __init__(self, y, whole=False):
        self.y, self.n_outputs, self.whole = y, y.shape[1], whole

    def value(self, outputs):
        size = np.abs(outputs - self.y)
        return float(np.sum(np.where(size < 1, 0.5 * size**2, size - 0.5)))

    def gradient(self, outputs):
        return np.clip(outputs - self.y, -1.0, 1.0)

    def hessian(self, outputs):
        diagonal = (np.abs(outputs - self.y) < 1).astype(float)
        return np.diag(diagonal.ravel()) if self.whole else diagonal


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("whole", [False, True])
def test_a_function_of_the_user(p, whole):
    features = features_for()
    rng = np.random.default_rng(0)
    y = np.column_stack([features[2] @ [1.0, -1, 2], rng.standard_t(2, M)]) + 3.0
    loss = SmoothLoss(stack_of(features), Huber(y, whole), 0.3)
    solution = Newton().solve(loss, lp_domain(p), tol=1e-7)
    assert solution.certificate.converged
    blocks = [cp.Variable((Z.shape[1], 2)) for Z in features]
    bias = cp.Variable((1, 2))
    f = sum(Z @ W for Z, W in zip(features, blocks, strict=True)) + np.ones((M, 1)) @ bias
    norms = cp.hstack([cp.norm(W, "fro") for W in blocks])
    penalty = 0.15 * cp.square(cp.pnorm(norms, 2 * p / (p + 1)))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum(cp.huber(f - y)) + penalty))
    problem.solve(solver=cp.CLARABEL)
    assert solution.certificate.primal == pytest.approx(problem.value, rel=1e-6)


# -- Samples --------------------------------------------------------------------------------------


def function_on(name, rows, weight, seed=0):
    """One of the functions on some of the rows, with repeats, and their weights."""
    rng = np.random.default_rng(seed)
    if name == "logistic":
        return Logistic(np.where(rng.permutation(M) % 3, 1, -1)[rows], weight)
    if name == "multinomial":
        return Multinomial((rng.permutation(M) % 3)[rows], sample_weight=weight)
    if name == "poisson":
        return Poisson(counts_for(rng, M)[rows], rng.normal(size=M)[rows], weight)
    time, event = rng.integers(1, 8, M), rng.random(M) < 0.7
    return Cox(time[rows], event[rows], ties=name.split()[1], sample_weight=weight)


KINDS = ["logistic", "multinomial", "poisson", "cox breslow"]


def fitted(name, rows, weight):
    stack = KernelStack.from_arrays([(Z @ Z.T)[np.ix_(rows, rows)] for Z in features_for()])
    loss = SmoothLoss(stack, function_on(name, rows, weight), 0.3, 1e-12)
    return Newton().solve(loss, lp_domain(1.5), tol=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_weights_count_like_repeats(name):
    counts = np.arange(M) % 3 + 1
    weighted = fitted(name, np.arange(M), counts.astype(float))
    repeated = fitted(name, np.repeat(np.arange(M), counts), None)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-5)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    np.testing.assert_allclose(
        weighted.evaluation.outputs, repeated.evaluation.outputs[first], atol=1e-4
    )


@pytest.mark.parametrize("name", [*KINDS, "cox efron"])
def test_a_weight_of_zero_is_no_sample(name):
    weight = np.where(np.arange(M) % 5 == 2, 0.0, 1.5)
    kept = np.flatnonzero(weight)
    held, left = fitted(name, np.arange(M), weight), fitted(name, kept, weight[kept])
    assert held.certificate.primal == pytest.approx(left.certificate.primal, rel=1e-9)
    assert np.all(held.evaluation.coefficients[weight == 0] == 0)
    np.testing.assert_allclose(held.weights, left.weights, atol=1e-5)


@pytest.mark.parametrize("name", ["logistic", "multinomial", "poisson"])
@pytest.mark.parametrize("grouped", [False, True])
def test_left_out_outputs(name, grouped):
    """One Newton step is close to the machines of all other samples."""
    weights = np.array([0.5, 0.3, 0.2])
    features = features_for()
    stack = stack_of(features)
    groups = np.arange(M) // 2 if grouped else np.arange(M)
    loss = SmoothLoss(stack, function_on(name, np.arange(M), None), 3.0, 1e-15)
    point = loss.evaluate(weights)
    approximate = point.leave_one_out(groups if grouped else None)
    kernel = stack.combine(weights)
    exact = np.empty_like(approximate)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups != group)
        others = SmoothLoss(
            KernelStack.from_arrays([kernel[np.ix_(rows, rows)]]),
            function_on(name, rows, None),
            3.0,
        ).evaluate(np.ones(1))
        out = np.flatnonzero(groups == group)
        exact[out] = kernel[np.ix_(out, rows)] @ others.coefficients + others.biases
    if name == "multinomial":
        exact -= exact.mean(axis=1, keepdims=True)
        approximate = approximate - approximate.mean(axis=1, keepdims=True)
        trained = point.outputs - point.outputs.mean(axis=1, keepdims=True)
    else:
        trained = point.outputs
    # Much closer than the outputs of the machine that has seen the samples.
    assert np.abs(approximate - exact).mean() <= 0.2 * np.abs(trained - exact).mean()


def test_left_out_outputs_of_a_quadratic_function_are_exact():
    class Quadratic(Huber):
        def value(self, outputs):
            return 0.5 * float(np.sum((outputs - self.y) ** 2))

        def gradient(self, outputs):
            return outputs - self.y

        def hessian(self, outputs):
            return np.ones_like(outputs)

    y = np.random.default_rng(0).normal(size=(M, 2))
    kernel = sum(Z @ Z.T for Z in features_for())
    point = SmoothLoss(KernelStack.from_arrays([kernel]), Quadratic(y), 0.7).evaluate(np.ones(1))
    left_out = point.leave_one_out()
    for i in range(0, M, 6):
        rows = np.flatnonzero(np.arange(M) != i)
        others = SmoothLoss(
            KernelStack.from_arrays([kernel[np.ix_(rows, rows)]]), Quadratic(y[rows]), 0.7
        ).evaluate(np.ones(1))
        expected = kernel[i, rows] @ others.coefficients + others.biases
        np.testing.assert_allclose(left_out[i], expected, rtol=1e-6)


def test_cox_has_no_left_out_outputs():
    point = SmoothLoss(stack_of(features_for()), draw("cox, efron"), 1.0).evaluate(np.ones(3))
    with pytest.raises(TypeError, match="use folds"):
        point.leave_one_out()


# -- Extremes -------------------------------------------------------------------------------------


def extreme_functions():
    far = np.linspace(-1, 1, M)
    hundred = np.repeat([1.0, 2.0], M // 2)
    return {
        "separable": Logistic(np.sign(far)),
        "one positive": Logistic(np.where(np.arange(M) == 3, 1, -1)),
        "ten classes": Multinomial(np.arange(M) % 10),
        "huge counts": Poisson(10.0 ** np.linspace(0, 6, M)),
        "huge offsets": Poisson(np.arange(M), 1000.0 + 5 * far),
        "one count": Poisson(np.where(np.arange(M) == 3, 1, 0)),
        "one event": Cox(np.arange(M), np.arange(M) == 3),
        "last event": Cox(np.arange(M), np.arange(M) == M - 1),
        "two times": Cox(hundred, np.ones(M)),
        "two times, Breslow": Cox(hundred, np.ones(M), ties="breslow"),
        "extreme weights": Logistic(np.sign(far), 10.0 ** np.linspace(-3, 3, M)),
        "extreme weights of ten": Multinomial(
            np.arange(M) % 10, sample_weight=10.0 ** np.linspace(-3, 3, M)
        ),
        "every stratum alone": Cox(np.arange(M), np.ones(M), strata=np.arange(M) // 2),
    }


def extreme_stack():
    """Low rank, equal rows, zero, constant and of sizes far apart."""
    X = np.random.default_rng(0).normal(size=(M, 3))
    X[:6] = X[-6:]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return KernelStack.from_arrays(
        [
            X @ X.T,
            np.zeros((M, M)),
            np.full((M, M), 3.0),
            np.exp(-squares),
            1e-4 * X[:, :1] @ X[:, :1].T,
        ]
    )


@pytest.mark.parametrize("name", extreme_functions())
@pytest.mark.parametrize("reg", [1e-6, 1.0, 1e6])
def test_extremes(name, reg):
    function, stack = extreme_functions()[name], extreme_stack()
    for p in (1.0, 2.0, np.inf):
        loss = SmoothLoss(stack, function, reg)
        solution = Newton().solve(loss, lp_domain(p), tol=1e-5)
        certificate = solution.certificate
        assert certificate.gap >= -certificate.rounding - 1e-15 * certificate.primal
        # Coefficients of 1e11, whose products lose 11 digits.
        is_lost = name == "huge counts" and reg == 1e-6
        assert certificate.status == ("limited by rounding" if is_lost else "certified")
        assert np.isfinite(solution.evaluation.outputs).all()
        assert solution.n_inner_solves <= 40


def test_kernels_that_are_all_zero():
    for name in ("logistic", "multinomial", "poisson", "cox, efron"):
        loss = SmoothLoss(KernelStack.from_arrays(np.zeros((2, M, M))), draw(name), 1.0)
        solution = Newton().solve(loss, lp_domain(1.0))
        assert solution.certificate.converged
        assert np.ptp(solution.evaluation.outputs, axis=0).max() == 0.0


def test_a_kernel_that_is_not_positive_semi_definite():
    loss = SmoothLoss(KernelStack.from_arrays([-np.eye(M)], psd="ignore"), draw("logistic"), 1e-3)
    with pytest.raises(ValueError, match="positive definite"):
        loss.evaluate(np.ones(1))


def test_poisson_samples_without_weight_may_have_infinite_means():
    function = Poisson([0, 0, 2], [0.0, 800.0, 0.0], [1.0, 0.0, 1.0])
    outputs = np.array([[0.0], [0.0], [np.log(2.0)]])
    assert function.value(outputs) == pytest.approx(1.0)
    np.testing.assert_allclose(function.gradient(outputs)[:, 0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(function.hessian(outputs)[:, 0], [1.0, 0.0, 2.0])
    infinite = Poisson([0, 3, 2], [800.0, 800.0, 0.0])
    assert infinite.value(outputs) == np.inf
    assert np.isinf(infinite.gradient(outputs)[:2]).all()


def smooth_kernels(m, seed=0, offset=0.0):
    """A Gaussian and a linear kernel."""
    X = np.random.default_rng(seed).normal(size=(m, 2)) + offset
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.array([np.exp(-squares), X @ X.T])


@pytest.mark.parametrize(("reg", "status"), [(1e-7, "certified"), (1e-9, "limited by rounding")])
def test_counts_that_are_almost_met(reg, status):
    """α are differences of outputs and logarithms of counts, with few digits of their own."""
    counts = np.random.default_rng(1).poisson(1000.0, M)
    loss = SmoothLoss(KernelStack.from_arrays(smooth_kernels(M)), Poisson(counts), reg)
    certificate = Newton().solve(loss, lp_domain(2.0), tol=1e-4).certificate
    assert certificate.status == status
    assert -certificate.rounding <= certificate.gap <= 1e-4 * certificate.primal


def test_a_machine_is_as_good_as_it_is_said_to_be():
    """Outputs from the coefficients, in extended precision."""
    counts = np.random.default_rng(1).poisson(1000.0, M)
    matrices, function = smooth_kernels(M), Poisson(counts)
    loss = SmoothLoss(KernelStack.from_arrays(matrices), function, 1e-8)
    point = loss.evaluate(np.array([0.5, 0.5]))
    kernel = 0.5 * matrices.astype(np.longdouble).sum(axis=0)
    products = kernel @ point.coefficients
    outputs = (products + point.biases).astype(float)
    norm = 0.5e-8 * float(np.vdot(point.coefficients, products))
    assert point.value == pytest.approx(function.value(outputs) + norm, rel=1e-6)


class NoisyKernels:
    """Kernels whose products with coefficients have the given error in every row."""

    def __init__(self, stack, error):
        self.stack, self.error = stack, error

    def __getattr__(self, name):
        return getattr(self.stack, name)

    def form_errors(self, left, right):
        return np.full(self.stack.n_kernels, self.error * np.abs(left).sum())


def test_rounding_errors_that_act_through_the_curvature():
    """Where φ is almost least, errors of outputs count by their squares."""
    counts = np.random.default_rng(1).poisson(1000.0, M)
    kernels = NoisyKernels(KernelStack.from_arrays(smooth_kernels(M)), 1e-13)
    point = SmoothLoss(kernels, Poisson(counts), 1e-7).evaluate(np.array([0.5, 0.5]))
    # An error of 1e-13/λ in the outputs; the curvature is the mean count, and the slopes are 1e-6.
    assert point.rounding == pytest.approx(0.5 * 1e-12 * counts.sum(), rel=0.1)


def test_outputs_that_overflow():
    """A kernel that is indefinite beside λ: no machine, but a finite objective and a reason."""
    X = np.random.default_rng(0).normal(size=(M, 2))
    stack = KernelStack.from_arrays([(X @ X.T).astype(np.float32)])
    counts = np.random.default_rng(1).poisson(1000.0 * np.exp(X[:, 0]))
    loss = SmoothLoss(stack, Poisson(counts, 5.0 * X[:, 1] ** 2), 1e-7)
    certificate = Newton().solve(loss, lp_domain(2.0)).certificate
    assert certificate.status == "limited by rounding"
    assert np.isfinite([certificate.primal, certificate.dual]).all()


class CountingMultinomial(Multinomial):
    n_values = 0

    def value(self, outputs):
        self.n_values += 1
        return super().value(outputs)


def test_kernels_that_are_too_large_for_their_digits():
    """λ is lost beside kernels of 1e18. The machine is no worse than without kernels."""
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 1.0, 5.0], M)
    function = CountingMultinomial(rng.permutation(M) % 4, sample_weight=weights)
    stack = KernelStack.from_arrays(1e18 * smooth_kernels(M, 1))
    point = SmoothLoss(stack, function, 1.0).evaluate(np.array([0.5, 0.5]))
    assert point.value <= function.value(np.zeros((M, 4)))
    assert point.rounding >= point.slack
    # Biases of outputs that are far out are not searched for very long.
    assert function.n_values < 5000


def test_bounds_if_no_combination_is_found(monkeypatch):
    """Dual variables are then replaced by the nearest known ones."""

    def fail(*arguments, **options):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", fail)
    loss = SmoothLoss(stack_of(features_for()), draw("logistic"), 0.2)
    points = [loss.evaluate(w) for w in np.random.default_rng(0).uniform(0, 1, (4, 3))]
    mean = 0.9 * points[2].dual + 0.1 * points[0].dual
    support = lp_domain(2.0).support
    assert loss.lower_bound(mean, support) == loss.lower_bound(points[2].dual, support)


def test_a_dense_hessian_of_zero():
    inverse = DenseCurvature(np.zeros((3, 3))).inverse_sum(np.eye(3))
    assert not inverse.apply(np.ones((3, 1, 2))).any()
