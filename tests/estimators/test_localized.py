"""Localized machines of the paper: with one kernel, by hand, at the gates, and under laws."""

import pickle
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, OneClassSVM

from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    KernelUnion,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKOneClassSVM,
)
from manykernels.gating.gates import GATES
from manykernels.kernels import RBF, Linear, Polynomial
from tests.estimators.registry import COMPARED, PAPER, Noted, made
from tests.problems import slow, some_slow

N_TRAIN, N_TEST = 60, 15
rng = np.random.default_rng(0)
EVERYTHING = rng.uniform(-1, 1, (N_TRAIN + N_TEST, 2))
X, X_TEST = EVERYTHING[:N_TRAIN], EVERYTHING[N_TRAIN:]
CORNER = np.where(X[:, 1] > np.abs(X[:, 0]), "in", "out")
THREE = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > np.abs(X[:, 0]))]
VALUES = np.abs(X[:, 0]) + 0.2 * X[:, 1]
PAIRS = [("wide", RBF(0.3)), ("line", Linear()), ("narrow", RBF(4.0))]
STACK = KernelUnion(PAIRS).fit(X)(X).with_features(X)
TEST_STACK = KernelUnion(PAIRS).fit(X)(X_TEST, X).with_features(X_TEST)

MACHINES = {
    "binary": (LocalizedSVC, {"C": 5.0}, CORNER),
    "shared": (LocalizedSVC, {}, THREE),
    "separate": (LocalizedSVC, {"multi_class": "separate"}, THREE),
    "single": (LocalizedSVC, {"multi_class": "single"}, THREE),
    "regression": (LocalizedSVR, {}, VALUES),
    "one class": (LocalizedOneClassSVM, {"nu": 0.3}, None),
    "fda": (LocalizedFDA, {}, CORNER),
    "fda of three": (LocalizedFDA, {}, THREE),
}
LONG = ("separate", "single", "fda of three")
every_machine = pytest.mark.parametrize("machine", some_slow(MACHINES, *LONG))


def make(machine, kernels=PAIRS, **params):
    kind, own, _ = MACHINES[machine]
    how = {**PAPER, "quasi_newton": True, "tol": 1e-3}
    return made(kind, kernels, **{**how, **own, **params})


def fit(machine, kernels=PAIRS, data=X, sample_weight=None, **params):
    return make(machine, kernels, **params).fit(data, MACHINES[machine][2], sample_weight)


@cache
def fitted(machine, form="table"):
    """A model that several tests look at and none changes."""
    return fit(machine) if form == "table" else fit(machine, "precomputed", STACK)


def scores(model, data=X_TEST):
    decide = model.predict if isinstance(model, LocalizedSVR) else model.decision_function
    return decide(data)


def each(items):
    """A list for every gate, also where there is one."""
    return items if isinstance(items[0], list) else [items]


def descents(model):
    """J at every point, a list for every gate."""
    values = np.array(model.history_["objective"])
    machine = np.array(model.history_.get("machine", np.zeros(len(values))))
    return [values[machine == k] for k in np.unique(machine)]


# -- one kernel and nothing to gate ------------------------------------------------------------

NORMALIZATIONS = pytest.mark.parametrize("normalize", ["spherical", "multiplicative", None])
WEIGHT = np.random.default_rng(1).uniform(0.3, 2.0, N_TRAIN)
with_and_without_weights = pytest.mark.parametrize(
    "weight", [None, *slow(WEIGHT)], ids=["", "weighted"]
)
PLAIN = {
    "binary": (MKSVC, {"C": 5.0, "tol": 1e-9}),
    "shared": (MKSVC, {"tol": 1e-9}),
    "separate": (MKSVC, {"tol": 1e-9}),
    "regression": (MKSVR, {"tol": 1e-9}),
    "one class": (MKOneClassSVM, {"nu": 0.3, "tol": 1e-9}),
    "fda": (MKFDA, {}),
    "fda of three": (MKFDA, {}),
}


@with_and_without_weights
@NORMALIZATIONS
@pytest.mark.parametrize("machine", some_slow(PLAIN, *LONG))
def test_one_kernel_is_the_plain_machine(machine, normalize, weight):
    kernel = RBF(0.5) if normalize == "spherical" else Polynomial(degree=2)
    kind, params = PLAIN[machine]
    plain = kind(kernel, normalize=normalize, **params)
    plain.fit(X, MACHINES[machine][2], sample_weight=weight)
    model = fit(machine, kernel, normalize=normalize, sample_weight=weight)
    assert_array_equal(model.gate(X_TEST), np.ones_like(model.gate(X_TEST)))
    expected = (
        plain.predict(X_TEST) if machine == "regression" else plain.decision_function(X_TEST)
    )
    assert_allclose(scores(model), expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    if hasattr(plain, "predict_proba"):
        assert_allclose(model.predict_proba(X_TEST), plain.predict_proba(X_TEST), atol=1e-6)


def test_one_kernel_is_that_of_scikit_learn():
    rbf = {"kernel": "rbf", "gamma": 0.5, "tol": 1e-8}
    for theirs, machine in [
        (SVC(C=5.0, **rbf), "binary"),
        (SVR(**rbf), "regression"),
        (OneClassSVM(nu=0.3, **rbf), "one class"),
    ]:
        y = MACHINES[machine][2]
        theirs.fit(X, y)
        model = fit(machine, RBF(0.5), normalize=None)
        sign = -1.0 if machine == "binary" and model.classes_[0] != theirs.classes_[0] else 1.0
        decide = theirs.predict if machine == "regression" else theirs.decision_function
        assert_allclose(scores(model), sign * decide(X_TEST), rtol=0, atol=1e-6)
        order = np.argsort(theirs.support_)
        assert_array_equal(model.support_, theirs.support_[order])
        assert_allclose(model.dual_coef_, theirs.dual_coef_[:, order], rtol=0, atol=1e-5)
        assert_array_equal(model.n_support_, theirs.n_support_)


# -- the multiclass machine --------------------------------------------------------------------


def test_the_single_machine_is_the_quadratic_program_at_its_gate():
    rng = np.random.default_rng(3)
    table = rng.uniform(-1, 1, (150, 2))
    y = (table[:, 0] > 0).astype(int) + (table[:, 1] > np.abs(table[:, 0]))
    train, test, labels = table[:120], table[120:], y[:120]
    gammas = [0.5, 5.0]
    kernels = [(f"g{gamma}", RBF(gamma)) for gamma in gammas]
    model = made(LocalizedSVC, kernels, multi_class="single", threshold=0.0, **PAPER)
    model.fit(train, labels)
    assert model.n_iter_ > 1
    eta, new = model.gate(train), model.gate(test)

    def gated(rows, gates):
        blocks = [rbf_kernel(rows, train, gamma=gamma) for gamma in gammas]
        return sum(np.outer(gates[:, p], eta[:, p]) * block for p, block in enumerate(blocks))

    K = gated(train, eta)
    root = np.linalg.cholesky(K + 1e-10 * np.eye(120))
    own = np.eye(3)[labels]
    alpha = cp.Variable((120, 3), nonneg=True)
    d = cp.multiply(own, cp.sum(alpha, axis=1, keepdims=True) @ np.ones((1, 3))) - alpha
    program = cp.Problem(
        cp.Maximize(2 * cp.sum(alpha) - 0.5 * cp.sum_squares(root.T @ d)),
        [alpha <= 1.0, cp.multiply(own, alpha) == 0, cp.sum(d, axis=0) == 0],
    )
    program.solve(solver=cp.CLARABEL)
    assert_allclose(model.objective_, program.value, rtol=1e-6)
    expected = gated(test, new) @ d.value
    found = model.decision_function(test) - model.intercept_
    assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


@pytest.mark.slow
def test_the_single_machine_of_ten_classes_and_many_samples():
    table, y = load_digits(return_X_y=True)
    train, test = slice(0, 1500), slice(1500, None)
    kernels = [("wide", RBF(1e-3)), ("narrow", RBF(5e-3))]
    how = {**PAPER, "features": 2, "max_iter": 2, "tol": 1e-8}
    model = made(LocalizedSVC, kernels, multi_class="single", **how)
    with pytest.warns(ConvergenceWarning, match="2 steps taken"):
        model.fit(table[train], y[train])
    assert model.history_["objective"][-1] < model.history_["objective"][0]
    assert model.certificate_.inner_gap <= 1e-7
    assert model.score(table[test], y[test]) > 0.93


# -- predictions -------------------------------------------------------------------------------


def normalized(normalize):
    """All three kernels between all samples, as the training samples scale them."""
    kernels = [rbf_kernel(EVERYTHING, gamma=0.3), EVERYTHING @ EVERYTHING.T]
    kernels.append(rbf_kernel(EVERYTHING, gamma=4.0))
    for K in kernels:
        train = K[:N_TRAIN, :N_TRAIN]
        if normalize == "spherical":
            roots = np.sqrt(np.diag(K))
            yield K / np.outer(roots, roots)
        elif normalize is None:
            yield K
        else:
            trace = np.trace(train) - train.sum() / N_TRAIN
            yield K / trace * (N_TRAIN if normalize == "multiplicative" else 1)


def by_hand(model, kernels, old, new):
    """``Σ_p Σ_i η_p(x) k_p(x, x_i) η_p(x_i) v_i + b`` at given gates."""
    dual = np.zeros((N_TRAIN, len(model.dual_coef_)))
    dual[model.support_] = model.dual_coef_.T
    expected = np.zeros((N_TEST, dual.shape[1]))
    for k in range(dual.shape[1]):
        own, theirs = (old[k], new[k]) if old.ndim == 3 else (old, new)
        for p, K in enumerate(kernels):
            block = K[N_TRAIN:, :N_TRAIN]
            expected[:, k] += theirs[:, p] * (block @ (own[:, p] * dual[:, k]))
    return (expected + model.intercept_).squeeze()


@pytest.mark.slow
@every_machine
@pytest.mark.parametrize("normalize", ["spherical", "multiplicative", "trace", None])
def test_scores_are_the_gated_sums_by_hand(machine, normalize):
    for kernels, data, new in [(PAIRS, X, X_TEST), ("precomputed", STACK, TEST_STACK)]:
        model = fit(machine, kernels, data, normalize=normalize, threshold=0.0)
        expected = by_hand(model, list(normalized(normalize)), model.gate(data), model.gate(new))
        assert_allclose(scores(model, new), expected, rtol=1e-8, atol=1e-10)


def ones(A, B):
    return np.ones((len(A), len(B)))


def tiny(A, B):
    return 1e-20 * (A @ B.T)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize(
    ("kernel", "normalize"),
    [(ones, "multiplicative"), pytest.param(tiny, None, marks=pytest.mark.slow)],
    ids=["nothing", "tiny"],
)
@every_machine
def test_a_negligible_kernel_keeps_its_place(machine, kernel, normalize):
    model = fit(machine, [("gone", kernel), *PAIRS], normalize=normalize, threshold=0.0)
    gates = model.gate(X_TEST)
    assert gates.shape[-1] == 4
    own = 0.0 if normalize else 1e-20
    kernels = [own * EVERYTHING @ EVERYTHING.T, *normalized(normalize)]
    expected = by_hand(model, kernels, model.gate(X), gates)
    assert_allclose(scores(model), expected, rtol=1e-8, atol=1e-10)


@every_machine
def test_nothing_large_is_kept(machine):
    for form in ("table", "stack"):
        assert len(pickle.dumps(fitted(machine, form))) < 8 * N_TRAIN**2


# -- gates -------------------------------------------------------------------------------------


@every_machine
@pytest.mark.parametrize("gating", ["softmax", *slow("sigmoid", "gaussian")])
def test_gates_are_the_outputs_of_the_formula(machine, gating):
    model = fit(machine, gating=gating)
    gates = model.gate(X_TEST)
    n_gates = 3 if machine == "separate" else 1
    assert gates.shape == ((3,) if n_gates == 3 else ()) + (N_TEST, 3)
    standard = (X_TEST - X.mean(axis=0)) / X.std(axis=0)
    coefficients = model.gating_coef_ if n_gates == 3 else [model.gating_coef_]
    for gate, coef in zip(gates.reshape(n_gates, N_TEST, 3), coefficients, strict=True):
        if gating == "gaussian":
            away = ((standard[:, None] - coef["centres"]) ** 2).sum(axis=2)
            a = -away / coef["widths"] ** 2
        else:
            a = standard @ coef["weights"].T + coef["bias"]
        open_ = np.exp(a - a.max(axis=1, keepdims=True))
        expected = open_ / open_.sum(axis=1, keepdims=True)
        assert_allclose(gate, 1 / (1 + np.exp(-a)) if gating == "sigmoid" else expected, atol=1e-9)
    assert_array_equal(model.active_kernels(X_TEST), gates > model.gating.threshold)
    assert_allclose(model.gate(X_TEST[3:4]), gates[..., 3:4, :], rtol=1e-12)


@every_machine
def test_the_summary_of_regions_counts_training_samples(machine):
    model = fitted(machine)
    summary = model.region_summary()
    gates = model.gate(X).reshape(-1, N_TRAIN, 3)
    assert len(summary) == 3 * len(gates)
    for row, (k, p) in zip(summary, np.ndindex(len(gates), 3), strict=True):
        assert row["kernel"] == model.kernel_names_[p] == PAIRS[p][0]
        assert row.get("gate", 0) == k
        assert row["mean_gate"] == pytest.approx(gates[k, :, p].mean())
        assert row["n_active"] == np.sum(gates[k, :, p] > model.gating.threshold)
        assert row["n_largest"] == np.sum(gates[k].argmax(axis=1) == p)
        assert row["n_support"] == np.sum(gates[k, model.support_, p] > model.gating.threshold)
    assert sum(row["n_largest"] for row in summary) == N_TRAIN * len(gates)


def test_a_machine_without_support_vectors():
    model = made(LocalizedSVR, PAIRS, epsilon=10.0, **PAPER).fit(X, VALUES)
    assert len(model.support_) == 0
    assert_allclose(np.ptp(model.predict(X_TEST)), 0.0)
    assert [row["n_support"] for row in model.region_summary()] == [0, 0, 0]


# Two blobs far from each other, with narrow and with wide waves: gates become sharp.
SIDE = np.repeat([-1.0, 1.0], 60)
FAR = np.random.default_rng(5).uniform(-1, 1, (120, 1)) + 8 * SIDE[:, None]
WAVES = np.where(SIDE < 0, np.sin(6 * FAR[:, 0]), np.sin(FAR[:, 0]))


@pytest.mark.parametrize("gating", ["softmax", *slow("gaussian")])
def test_kernels_are_compared_only_where_both_gates_are_open(gating):
    kernels = [("narrow", Noted(10.0)), ("wide", Noted(0.3))]
    how = {**PAPER, "gating": gating, "threshold": 0.0, "tol": 1e-6, "max_iter": 1000}
    model = made(LocalizedSVR, kernels, C=10.0, **how).fit(FAR, WAVES)
    every = model.predict(FAR)
    saved = [model.evaluations(FAR).saved]
    for threshold in (1e-6, 1e-4, 1e-2):
        model.set_params(gating__threshold=threshold)
        COMPARED.clear()
        found = model.predict(FAR)
        counted = model.evaluations(FAR)
        assert sum(new * old for _, new, old in COMPARED) == counted.computed
        assert counted.total == 2 * 120 * len(model.support_)
        assert counted.saved == counted.total - counted.computed
        saved.append(counted.saved)
        # Every term left out has a gate of at most the threshold; the rest of it is at most one.
        bound = threshold * 2 * np.abs(model.dual_coef_).sum()
        assert_allclose(found, every, rtol=0, atol=bound)
    assert saved == sorted(saved)
    assert saved[-1] > counted.total / 4
    assert np.any(found != every)


def test_all_gates_shut_leave_the_intercept():
    model = fit("binary").set_params(gating__threshold=0.99999999)
    assert not model.active_kernels(X_TEST).any()
    assert model.evaluations(X_TEST).computed == 0
    assert_array_equal(scores(model), np.full(N_TEST, model.intercept_[0]))


# -- laws --------------------------------------------------------------------------------------


@every_machine
@pytest.mark.parametrize("quasi_newton", [True, *slow(False)])
def test_the_objective_never_rises(machine, quasi_newton):
    model = fit(machine, quasi_newton=quasi_newton, gating="sigmoid", max_iter=1000)
    histories = descents(model)
    assert all(np.diff(history).max(initial=-1.0) <= 0.0 for history in histories)
    assert model.objective_ == pytest.approx(sum(history[-1] for history in histories))
    assert model.n_iter_ == max(len(history) for history in histories) - 1
    assert model.n_inner_solves_ > model.n_iter_
    assert model.finished_


@every_machine
def test_fits_can_be_repeated(machine):
    model = fitted(machine)
    assert_array_equal(scores(fit(machine)), scores(model))
    other = fit(machine, random_state=1)
    assert np.any(scores(other) != scores(model))
    y = MACHINES[machine][2]
    twice = make(machine).fit(X[::2], None if y is None else y[::2]).fit(X, y)
    assert_array_equal(scores(twice), scores(model))


@pytest.mark.slow
@every_machine
@pytest.mark.parametrize("gating", GATES)
def test_more_starts_are_never_worse(machine, gating):
    one, three = (fit(machine, gating=gating, n_init=n, tol=1e-2) for n in (1, 3))
    assert all(len(values) == 3 for values in each(three.restart_objectives_))
    if machine != "separate":  # there the later gates have other starts
        assert_allclose(three.restart_objectives_[0], one.objective_, rtol=1e-9)
        rounding = 1e-9 * abs(one.objective_)
        assert three.objective_ == min(three.restart_objectives_) <= one.objective_ + rounding


@pytest.mark.parametrize("machine", ["binary", *slow("shared", "single", "regression")])
def test_doubled_weights_and_half_the_penalty(machine):
    C = MACHINES[machine][1].get("C", 1.0)
    expected = fit(machine, sample_weight=WEIGHT)
    model = fit(machine, sample_weight=2 * WEIGHT, C=C / 2)
    assert_allclose(model.history_["objective"], expected.history_["objective"], rtol=1e-6)
    assert_allclose(scores(model), scores(expected), rtol=1e-4, atol=1e-5)


def test_doubled_weights_and_twice_the_regularization():
    expected = fit("fda", sample_weight=WEIGHT, reg=0.1)
    model = fit("fda", sample_weight=2 * WEIGHT, reg=0.2)
    assert_allclose(model.gate(X_TEST), expected.gate(X_TEST), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("gating", ["softmax", "sigmoid", "cluster"])
@every_machine
def test_a_weight_of_two_is_a_repeated_sample(machine, gating):
    counts = np.random.default_rng(2).integers(0, 3, N_TRAIN)
    y, rows = MACHINES[machine][2], np.repeat(np.arange(N_TRAIN), counts)
    model = fit(machine, sample_weight=counts, gating=gating)
    repeated = make(machine, gating=gating).fit(X[rows], None if y is None else y[rows])
    assert_allclose(model.gate(X_TEST), repeated.gate(X_TEST), atol=1e-4)
    assert_allclose(scores(model), scores(repeated), rtol=1e-3, atol=1e-4)


def test_the_order_of_kernels_does_not_matter_to_the_best_of_several_starts():
    """Starts are random, so columns of the gate are not simply permuted; the objective is."""
    found = [fit("binary", kernels, n_init=4, tol=1e-6) for kernels in (PAIRS, PAIRS[::-1])]
    assert_allclose(found[0].objective_, found[1].objective_, rtol=1e-2)


def test_regions_of_a_corner():
    lines = [("left", Linear()), ("right", Linear())]
    model = fit("binary", lines, C=100.0, normalize=None, n_init=3, tol=1e-5)
    assert model.score(X, CORNER) > SVC(kernel="linear", C=100.0).fit(X, CORNER).score(X, CORNER)
    largest = model.gate(np.array([[-0.8, 0.0], [0.8, 0.0]])).argmax(axis=1)
    assert largest[0] != largest[1]
