"""Support vector machines with several kernels: laws of their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC, SVR

from manykernels import MKSVC, MKSVR, MKOneClassSVM
from manykernels.kernels import RBF, Linear
from tests.estimators.random_problems import (
    EPSILON,
    N_KERNELS,
    N_TRAIN,
    NU,
    PS,
    C,
    Problem,
    every_normalization,
    few,
    norms,
    seeds,
)
from tests.problems import slow

KINDS = {
    "two classes": "MKSVC, two classes",
    "three classes": "MKSVC, three classes",
    "separate": "MKSVC, separate",
    "single": "MKSVC, single",
    "squared hinge": "MKSVC, squared hinge",
    "joint": "MKSVC, joint",
    "regression": "MKSVR",
    "one class": "MKOneClassSVM",
}
# At unit trace and this C all samples are within the margin, and no bias is better than others.
determined = st.sampled_from(["multiplicative", "spherical", None])


def problem_of(kind, seed=0):
    return Problem(KINDS[kind], seed)


# -- symmetries ------------------------------------------------------------------------------


@few
@given(seed=seeds, p=norms, normalize=determined)
def test_targets_turned_round_turn_the_regression_round(seed, p, normalize):
    problem = problem_of("regression", seed)
    model = problem.fit(p=p, normalize=normalize)
    turned = problem.fit(y=5.0 - problem.y, p=p, normalize=normalize)
    problem.assert_close(5.0 - problem.decide(turned), problem.decide(model))


@pytest.mark.parametrize("kind", ["two classes", "three classes", "squared hinge", "regression"])
def test_two_halves_weigh_at_p_1_as_the_whole(kind):
    """Half of a kernel doubles ‖f‖², so C has to double too."""
    problem = problem_of(kind, 3)
    halves = np.array([problem.train[1] / 2, problem.train[1] / 2])
    whole = problem.fit(problem.train[1:2], p=1, normalize=None)
    split = problem.fit(halves, p=1, normalize=None, C=2 * C)
    problem.assert_same_optimum(split, whole, 2.0)
    test, diagonals = np.array([problem.test[1] / 2] * 2), problem.test_diag
    expected = problem.decide(whole, problem.test[1:2], diagonals[1:2])
    problem.assert_close(problem.decide(split, test, diagonals[:2]), expected, 1e-6)


@pytest.mark.parametrize("kind", ["two classes", *slow("separate", "squared hinge", "regression")])
@few
@given(seed=seeds, p=norms)
def test_trace_is_multiplicative_with_another_c(kind, seed, p):
    problem = problem_of(kind, seed)
    multiplicative = problem.fit(p=p, C=0.1)
    trace = problem.fit(p=p, C=0.1 * N_TRAIN, normalize="trace")
    problem.assert_same_optimum(trace, multiplicative, N_TRAIN)
    problem.assert_close(problem.decide(trace), problem.decide(multiplicative))


def test_joint_learns_c_on_the_scale_of_the_kernels():
    problem = problem_of("joint", 4)
    multiplicative, trace = problem.fit(p=1), problem.fit(p=1, normalize="trace")
    assert_allclose(trace.C_, N_TRAIN * multiplicative.C_, rtol=1e-4)
    problem.assert_close(trace.weights_, multiplicative.weights_)
    problem.assert_close(problem.decide(trace), problem.decide(multiplicative))


# -- limits ----------------------------------------------------------------------------------


@few
@given(seed=seeds)
def test_the_plain_sum_is_the_machine_of_scikit_learn(seed):
    for kind, theirs in (
        ("two classes", SVC(kernel="precomputed", C=C, tol=1e-8)),
        ("regression", SVR(kernel="precomputed", C=C, epsilon=EPSILON, tol=1e-8)),
    ):
        problem = problem_of(kind, seed)
        decision = problem.decide(problem.fit(p=np.inf, normalize=None))
        theirs.fit(problem.train.sum(axis=0), problem.y)
        decide = theirs.predict if kind == "regression" else theirs.decision_function
        problem.assert_close(decision, decide(problem.test.sum(axis=0)), 1e-5)


@few
@given(seed=seeds, p=norms)
def test_shared_weights_are_no_better_than_separate_ones(seed, p):
    separate = problem_of("separate", seed).fit(p=p).certificate_
    shared = problem_of("three classes", seed).fit(p=p).certificate_
    assert separate.dual <= shared.primal
    assert separate.primal <= shared.primal + separate.gap
    if p == np.inf:
        assert_allclose(separate.primal, shared.primal, rtol=1e-8)


# -- several machines ------------------------------------------------------------------------


@few
@given(seed=seeds, p=norms, normalize=every_normalization)
def test_separate_machines_are_binary_ones(seed, p, normalize):
    problem = problem_of("separate", seed)
    model = problem.fit(p=p, normalize=normalize)
    assert model.weights_.shape == (3, N_KERNELS)
    binary = problem_of("two classes", seed)
    machines = [
        binary.fit(y=(problem.y == k).astype(int), p=p, normalize=normalize) for k in range(3)
    ]
    decisions = np.stack([binary.decide(machine) for machine in machines], axis=1)
    assert_allclose(problem.decide(model), decisions, rtol=1e-12, atol=1e-12)
    assert_array_equal(model.weights_, [machine.weights_ for machine in machines])
    assert_allclose(
        model.certificate_.primal, sum(machine.certificate_.primal for machine in machines)
    )
    assert model.n_inner_solves_ == sum(machine.n_inner_solves_ for machine in machines)
    assert_array_equal(
        model.support_, np.unique(np.concatenate([machine.support_ for machine in machines]))
    )


def test_two_classes_are_one_machine_either_way():
    problem = problem_of("two classes", 1)
    shared, separate = (problem.fit(multi_class=way) for way in ("shared", "separate"))
    assert_array_equal(shared.weights_, separate.weights_)
    assert shared.weights_.shape == (N_KERNELS,)
    assert_array_equal(problem.decide(shared), problem.decide(separate))


@pytest.mark.parametrize("p", [1, *slow(1.5, 2), np.inf])
@pytest.mark.parametrize("normalize", ["multiplicative", "trace", None])
def test_a_learnt_c_is_the_best_given_one(p, normalize):
    """1/C takes its part of the ball, and leaves the kernels a smaller one of radius r."""
    problem = problem_of("joint", 6)
    model = problem.fit(p=p, normalize=normalize)
    unit = 1.0 / N_TRAIN if normalize == "trace" else 1.0
    share = 1.0 / (model.C_ * unit)
    radius = 1.0 if p == np.inf else (1.0 - share**p) ** (1.0 / p)
    assert_allclose(np.linalg.norm([share, *model.weights_], p), 1.0, rtol=1e-9)
    given = problem_of("squared hinge", 6).fit(
        radius * normalised(problem.train, normalize), p=p, normalize=None, C=model.C_
    )
    problem.assert_same_optimum(given, model)
    problem.assert_close(radius * given.weights_, model.weights_)
    full, other = np.zeros(N_TRAIN), np.zeros(N_TRAIN)
    full[model.support_], other[given.support_] = model.dual_coef_[0], given.dual_coef_[0]
    problem.assert_close(other, full)
    problem.assert_close(given.intercept_, model.intercept_)


# -- weights of samples ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["two classes", *slow("three classes", "separate"), "squared hinge"]
)
@pytest.mark.parametrize("p", PS)
def test_balanced_classes_are_weighted_samples(kind, p):
    """With the kernels as they are; their scales are taken before classes count."""
    problem = problem_of(kind, 5)
    n_classes = len(np.unique(problem.y))
    y = (np.arange(N_TRAIN) % 7 % 5).clip(max=n_classes - 1)
    balance = len(y) / (n_classes * np.bincount(y))
    params = {"p": p, "normalize": None}
    weighted = problem.fit(y=y, sample_weight=balance[y], **params)
    for class_weight in ("balanced", dict(enumerate(balance))):
        model = problem.fit(y=y, class_weight=class_weight, **params)
        assert_array_equal(model.weights_, weighted.weights_)
        assert_array_equal(problem.decide(model), problem.decide(weighted))
    assert not np.allclose(problem.decide(problem.fit(y=y, **params)), problem.decide(weighted))


# -- certificate -----------------------------------------------------------------------------


def normalised(kernels, normalize):
    traces = np.trace(kernels, axis1=1, axis2=2) - kernels.sum(axis=(1, 2)) / kernels.shape[1]
    if normalize == "spherical":
        roots = np.sqrt(np.einsum("jii->ji", kernels))
        return kernels / (roots[:, :, None] * roots[:, None])
    divisors = {"multiplicative": traces / kernels.shape[1], "trace": traces}
    return kernels if normalize is None else kernels / divisors[normalize][:, None, None]


def support_function(gains, p):
    return np.linalg.norm(gains, np.inf if p == 1 else 1 if p == np.inf else p / (p - 1))


def signs_by_hand(kind, problem):
    """Target of every sample in every machine."""
    targets = problem.y[:, None].astype(float)
    if kind in ("three classes", "separate"):
        return np.where(problem.y[:, None] == np.arange(3), 1.0, -1.0)
    return 2.0 * targets - 1.0 if kind in ("two classes", "squared hinge") else targets


def primal_by_hand(kind, problem, model, kernels):
    """Primal objective, from coefficients, weights and bias."""
    targets, v = signs_by_hand(kind, problem), np.zeros((N_TRAIN, len(model.dual_coef_)))
    v[model.support_] = model.dual_coef_.T
    weights = np.broadcast_to(model.weights_, (v.shape[1], N_KERNELS))
    f = np.einsum("kj,jrc,ck->rk", weights, kernels, v)
    norms = np.sum(v * f, axis=0)
    f = f + model.intercept_
    slack = np.maximum(0.0, 1.0 - targets * f)
    if kind == "single":
        others = problem.y[:, None] != np.arange(3)
        margins = f[np.arange(N_TRAIN), problem.y][:, None] - f
        loss = C * np.sum(np.maximum(0.0, 2.0 - margins), axis=0, where=others)
    elif kind == "squared hinge":
        loss = 0.5 * C * np.sum(slack**2, axis=0)
    elif kind == "regression":
        loss = C * np.maximum(0.0, np.abs(targets - f) - EPSILON).sum(axis=0)
    elif kind == "one class":
        loss = np.maximum(0.0, -f).sum(axis=0) - NU * N_TRAIN * model.offset_
    else:
        loss = C * slack.sum(axis=0)
    return float(np.sum(0.5 * norms + loss))


def dual_by_hand(kind, problem, v, kernels, p):
    """Dual objective at the dual variables `v`, (n_samples, n_machines)."""
    targets = signs_by_hand(kind, problem)
    if kind == "single":
        linear = -2.0 * np.sum(v, where=problem.y[:, None] != np.arange(3))
    elif kind == "squared hinge":
        linear = np.sum(targets * v - v**2 / (2 * C))
    elif kind == "regression":
        linear = np.sum(targets * v - EPSILON * np.abs(v))
    else:
        linear = 0.0 if kind == "one class" else np.sum(targets * v)
    gains = 0.5 * np.einsum("rk,jrc,ck->kj", v, kernels, v)
    if kind != "separate":
        gains = gains.sum(axis=0, keepdims=True)
    return float(linear - sum(support_function(g, p) for g in gains))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "joint"])
@few
@given(
    seed=seeds,
    p=st.sampled_from([1, 1.5, np.inf]),
    tol=st.sampled_from([1e-2, 1e-9]),
    normalize=every_normalization,
)
def test_the_certificate_by_hand(kind, seed, p, tol, normalize):
    problem = problem_of(kind, seed)
    model = problem.fit(p=p, tol=tol, normalize=normalize)
    kernels = normalised(problem.train, normalize)
    certificate = model.certificate_
    primal = primal_by_hand(kind, problem, model, kernels)
    dual = dual_by_hand(kind, problem, certificate.dual_point, kernels, p)
    rounding = 1e-9 * abs(primal)
    assert_allclose(certificate.primal, primal, rtol=0, atol=rounding)
    assert_allclose(certificate.dual, dual, rtol=0, atol=rounding)
    assert certificate.dual <= primal + rounding
    assert_allclose(certificate.gap, certificate.primal - certificate.dual, atol=rounding)
    assert certificate.converged
    assert certificate.rel_gap <= tol
    for weights in np.atleast_2d(model.weights_):
        assert np.linalg.norm(weights, p) <= 1 + 1e-9
        assert np.all(weights >= 0)


def test_history_of_separate_machines_has_one_entry_per_iteration():
    model = problem_of("separate", 0).fit(p=1.1)
    assert {len(values) for values in model.history_.values()} == {model.n_iter_}


# -- what it is for --------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("p", [1, 2])
def test_nu_is_between_the_outliers_and_the_support_vectors(nu, p):
    X = np.random.default_rng(0).normal(size=(120, 3))
    model = MKOneClassSVM(p=p, nu=nu, tol=1e-8).fit(X)
    assert np.mean(model.predict(X) == -1) <= nu <= len(model.support_) / len(X)
    assert_allclose(np.mean(model.predict(X) == -1), nu, atol=0.05)


SOLVERS_AT = {
    1: ["sip", "silp", "analytic", "interleaved", "reduced-gradient", "qcqp"],
    2: ["sip", "analytic", "interleaved", "smo-mkl"],
}
PROBLEMS = {
    "two classes": (MKSVC, {}),
    "three classes": (MKSVC, {}),
    "regression": (MKSVR, {}),
    "one class": (MKOneClassSVM, {"nu": 0.2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical"), None])
def test_predictions_do_not_depend_on_the_solver(kind, normalize):
    """Nor on whether kernels are stored or computed when they are needed."""
    make, params = PROBLEMS[kind]
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(40, 3)) + 1.0, rng.normal(size=(9, 3)) + 1.0
    target = {
        "two classes": X[:, 0] > X[:, 1],
        "three classes": X.argmax(axis=1),
        "regression": np.sin(X[:, 0]),
        "one class": None,
    }[kind]
    kernels = [("wide", RBF(0.1)), ("narrow", RBF(1.0)), ("flat", Linear())]
    for p, names in SOLVERS_AT.items():
        settings = {"p": p, "normalize": normalize, **params}
        expected = make(kernels, tol=1e-6, **settings).fit(X, target)
        for name in names:
            model = make(kernels, solver=name, tol=1e-4, **settings).fit(X, target)
            ours, theirs = model.certificate_, expected.certificate_
            assert abs(ours.primal - theirs.primal) <= ours.gap + theirs.gap + 1e-9
            decide = "predict" if make is MKSVR else "decision_function"
            found, known = (getattr(one, decide)(new) for one in (model, expected))
            problem_of(kind).assert_close(found, known, 0.05)
