"""Penalty and early stopping of gates: plain weights at step 0, and their purpose."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from manykernels import (
    MKSVC,
    MKSVR,
    KernelUnion,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    LocalizedSVRCV,
    MKOneClassSVM,
)
from manykernels.gating import Sigmoid
from manykernels.gating.descent import ClassJudge, HeldOutLosses, ValueJudge
from manykernels.gating.gates import as_gate
from manykernels.kernels import RBF
from tests.estimators.localized_problems import (
    JUDGED,
    LINES,
    PAIRS,
    VALUES,
    X_TEST,
    X,
    assert_plain,
    corner,
    every_twin,
    localized,
    plain,
    scores,
    steps,
)
from tests.estimators.registry import made

# Fits with gates, or of many machines, take long.
pytestmark = pytest.mark.slow

# -- step 0 is plain multiple kernel learning ------------------------------------------------


@every_twin
@pytest.mark.parametrize("gating", ["sigmoid", "softmax", "gaussian", "cluster", "instance"])
def test_one_kernel_is_the_plain_machine_with_every_gate(twin, gating):
    expected = scores(plain(twin, RBF(0.5)))
    model = localized(twin, RBF(0.5), gating=gating)
    assert_array_equal(model.gate(X_TEST), np.ones_like(model.gate(X_TEST)))
    assert_array_equal(model.plain_weights_.ravel(), 1.0)
    assert model.held_out_losses_ is None or model.held_out_losses_ == [None] * 3
    assert_allclose(scores(model), expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@every_twin
def test_a_strong_penalty_leaves_plain_multiple_kernel_learning(twin):
    expected = plain(twin)
    # Weights that an output of the gate can be the root of, see gates.py.
    assert np.all((expected.weights_ > 1e-5) & (expected.weights_ < 0.99))
    how = {"gating": "sigmoid", "penalty": 1e12, "early_stopping": 0}
    model = localized(twin, **how)
    assert_plain(model, twin, expected)
    gates = model.gate(X_TEST)
    assert np.ptp(gates, axis=-2).max() < 1e-8
    assert_allclose(gates.mean(axis=-2) ** 2, model.plain_weights_, atol=1e-8)


@JUDGED
def test_without_a_better_step_it_is_plain_multiple_kernel_learning(twin, monkeypatch):
    """Held-out samples that never gain say that no step is to be taken."""
    for judge in (ClassJudge, ValueJudge):
        monkeypatch.setattr(
            judge, "__call__", lambda *held_out: HeldOutLosses(np.ones(2), np.zeros(2))
        )
    model = localized(twin)
    assert len(model.history_["objective"]) == (3 if twin == "separate" else 1)
    assert_plain(model, twin)
    assert model.certificate_.status == "held out"
    assert model.finished_
    expected = np.expand_dims(model.plain_weights_, -2)
    assert_allclose(model.gate(X_TEST) ** 2, np.repeat(expected, 400, axis=-2), rtol=1e-9)


def test_plain_weights_of_a_kernel_that_does_not_count():
    kernels = [*PAIRS, ("noise", RBF(1e4))]
    expected = MKSVC(kernels).fit(X, corner(X))
    model = made(LocalizedSVC, kernels, penalty=1e12, early_stopping=0)
    model.fit(X, corner(X))
    assert_allclose(model.plain_weights_, expected.weights_, rtol=1e-9)
    # The gate is at least 0.001, and a millionth of a kernel remains.
    assert model.gate(X_TEST).min() >= 0.9e-3
    assert_allclose(scores(model), scores(expected), rtol=0, atol=1e-3)


# -- a constant gate is a weighted sum -------------------------------------------------------


@pytest.mark.parametrize("gating", ["sigmoid", "softmax"])
def test_a_constant_gate_is_a_sum_of_kernels(gating):
    """Softmax: weights β are those of ``η ∝ √β`` with C (Σ√β)²."""
    y, C = corner(X), 2.0
    model = localized("svc", gating=gating, penalty=1e12, early_stopping=0, normalize=None)
    eta, beta = model.gate(X[:1])[0], model.plain_weights_
    union = KernelUnion(PAIRS).fit(X)
    train, new = union(X), union(X_TEST, X)

    def summed(weights, stack):
        return sum(weight * stack.kernel(p) for p, weight in enumerate(weights))

    theirs = SVC(kernel="precomputed", C=C, tol=1e-8).fit(summed(eta**2, train), y)
    expected = theirs.decision_function(summed(eta**2, new))
    assert_allclose(scores(model), expected, rtol=0, atol=1e-4)
    if gating == "softmax":
        assert_allclose(eta, np.sqrt(beta) / np.sqrt(beta).sum(), atol=1e-5)
        C /= np.sqrt(beta).sum() ** 2
    else:
        assert_allclose(eta, np.sqrt(beta), atol=1e-5)
    theirs = SVC(kernel="precomputed", C=C, tol=1e-8).fit(summed(beta, train), y)
    assert_allclose(scores(model), theirs.decision_function(summed(beta, new)), rtol=0, atol=1e-4)


# -- the penalty -----------------------------------------------------------------------------


@pytest.mark.parametrize("gating", ["sigmoid", "softmax"])
@pytest.mark.parametrize("twin", ["svc", "svr", "fda", "one class"])
def test_a_larger_penalty_leaves_the_gate_nearer_to_plain_weights(twin, gating):
    away, objectives = [], []
    # With smaller penalties there are several local minima, for which this is no law.
    for penalty in (1e-2, 1e-1, 1.0, 10.0):
        how = {"penalty": penalty, "early_stopping": 0, "gating": gating, "tol": 1e-7}
        model = localized(twin, max_iter=2000, **how)
        anchor = as_gate(gating).anchor(model.plain_weights_, n_features=5)
        theta = np.column_stack([model.gating_coef_["weights"], model.gating_coef_["bias"]])
        away.append(np.linalg.norm(theta.ravel() - anchor))
        objectives.append(model.objective_)
    assert away == sorted(away, reverse=True)
    assert away[0] > 3 * away[-1]
    assert objectives == sorted(objectives)


@every_twin
def test_the_objective_with_its_penalty_never_rises(twin):
    model = localized(twin, early_stopping=0, gating="sigmoid")
    history = model.history_
    for k in set(history.get("machine", [0])):
        own = np.array(history.get("machine", np.zeros(len(history["objective"])))) == k
        assert np.diff(np.array(history["objective"])[own]).max(initial=-1.0) <= 0.0
    assert model.held_out_losses_ is None or model.held_out_losses_ == [None] * 3
    assert model.certificate_.status == "stationary"


# -- purpose of the penalty and of early stopping --------------------------------------------


def test_classes_of_pure_noise_leave_nearly_plain_predictions():
    agreement = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table, y = rng.normal(size=(360, 3)), rng.integers(0, 2, 150)
        regularized, free = (
            made(LocalizedSVC, PAIRS, **options).fit(table[:150], y)
            for options in ({}, {"penalty": 0.0, "early_stopping": 0})
        )
        known = MKSVC(PAIRS).fit(table[:150], y).predict(table)
        agreement.append([np.mean(model.predict(table) == known) for model in (regularized, free)])
    with_both, without = np.mean(agreement, axis=0)
    assert with_both > 0.95
    assert without < 0.9


def test_regions_are_learnt_where_there_are_some():
    y, truth = corner(X), corner(X_TEST)
    known = MKSVC(LINES, C=10.0, normalize=None).fit(X, y).score(X_TEST, truth)
    model = LocalizedSVC(LINES, C=10.0, normalize=None).fit(X, y)
    assert steps(model) > 0
    assert model.score(X_TEST, truth) > known + 0.05
    values = np.abs(X_TEST[:, 0]) + 0.2 * X_TEST[:, 1]
    how = {"C": 10.0, "epsilon": 0.01, "normalize": None}
    line = MKSVR(LINES, **how).fit(X, VALUES).score(X_TEST, values)
    model = made(LocalizedSVR, LINES, **how).fit(X, VALUES)
    assert model.score(X_TEST, values) > line + 0.3


def test_one_class_machines_are_not_much_worse_than_plain_ones():
    """They have nothing to be judged by; gates that could all open would be far worse."""
    table, y = load_iris(return_X_y=True)
    for label in range(3):
        own = np.flatnonzero(y == label)
        rows, rest = own[::2], np.setdiff1d(np.arange(150), own[::2])
        models = MKOneClassSVM(nu=0.1), LocalizedOneClassSVM(nu=0.1)
        found = [
            roc_auc_score(y[rest] == label, m.fit(table[rows]).decision_function(table[rest]))
            for m in models
        ]
        assert found[1] > found[0] - 0.05


# -- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("early_stopping", [0, 2, 5, np.int64(3)])
def test_penalty_and_early_stopping_are_parameters_of_the_gate(early_stopping):
    model = LocalizedSVC(PAIRS)
    options = {"gating__penalty": 0.1, "gating__early_stopping": early_stopping}
    model.set_params(**options).fit(X, corner(X))
    assert (model.held_out_losses_ is None) == (early_stopping == 0)
    twin = clone(model)
    assert (twin.gating.penalty, twin.gating.early_stopping) == (0.1, early_stopping)
    assert_array_equal(scores(twin.fit(X, corner(X))), scores(model))
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(scores(copy), scores(model))
    assert_array_equal(copy.gate(X_TEST), model.gate(X_TEST))
    assert np.array_equal(copy.held_out_losses_, model.held_out_losses_)


@pytest.mark.parametrize("value", [1, -1, True, "x", 2.5, None])
def test_numbers_of_folds_that_cannot_be(value):
    with pytest.raises(ValueError, match="'early_stopping' parameter of Sigmoid must be"):
        LocalizedSVR(gating=Sigmoid(early_stopping=value)).fit(X, VALUES)


@pytest.mark.parametrize("value", [-1.0, np.nan, "x", None])
def test_penalties_that_cannot_be(value):
    with pytest.raises(ValueError, match="'penalty' parameter of Sigmoid must be"):
        LocalizedSVR(gating=Sigmoid(penalty=value)).fit(X, VALUES)


@pytest.mark.parametrize("value", [np.inf, [0.1, 1.0]])
def test_penalties_of_estimators_that_choose_one(value):
    with pytest.raises(ValueError, match=r"penalty of the gate must be a finite .*LocalizedSVRCV"):
        LocalizedSVR(gating=Sigmoid(penalty=value)).fit(X, VALUES)


def test_several_starts_where_a_penalty_is_chosen():
    with pytest.raises(ValueError, match="n_init of the gate must be 1 in LocalizedSVRCV"):
        LocalizedSVRCV(gating=Sigmoid(n_init=2)).fit(X, VALUES)
