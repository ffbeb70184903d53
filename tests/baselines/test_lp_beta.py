"""LPBeta and LPB: machines and weights by hand, limit cases, laws, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from manykernels import MKSVC, KernelUnion
from manykernels.baselines import LPB, LPBeta
from manykernels.baselines.lp_beta import MarginProgram
from manykernels.kernels import RBF, Linear
from manykernels.kernels.composition import Constant
from manykernels.solvers.programs import LinearProgram, LinearSolution
from tests.estimators.registry import Recorder
from tests.problems import slow

KERNELS = [
    ("first", RBF(0.5).on([0])),
    ("second", RBF(0.5).on([1])),
    ("flat", Linear()),
    ("noise", RBF(1.0).on([3])),
]
NAMES = [name for name, _ in KERNELS]


def samples(n_rows, n_classes, seed=0):
    """Two columns tell the classes, two are noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, 4))
    X[:, 0] += 1.5 * (y == 0)
    X[:, 1] += 1.5 * (y == 1)
    return X, y


DATA = {n_classes: samples(45, n_classes) for n_classes in (2, 3)}
NEW = samples(20, 3, seed=1)[0]
FOLDS = {n: list(StratifiedKFold(3).split(X, y)) for n, (X, y) in DATA.items()}
every_number_of_classes = pytest.mark.parametrize("n_classes", [2, *slow(3)])
both = pytest.mark.parametrize("kind", [LPBeta, *slow(LPB)])


def machine(kernel, C, X, y):
    return MKSVC([kernel], C=C, tol=1e-8).fit(X, y)


def outputs_by_hand(n_classes, C, kernels=KERNELS):
    """Outputs of machines for samples that they have not seen, and the labels of these."""
    X, y = DATA[n_classes]
    found = []
    for kernel in kernels:
        parts = [
            machine(kernel, C, X[train], y[train]).decision_function(X[test])
            for train, test in FOLDS[n_classes]
        ]
        found.append(np.concatenate(parts))
    outputs = np.array(found)
    if n_classes == 2:
        outputs = np.stack([-outputs, outputs], axis=2)
    return outputs, np.concatenate([y[test] for _, test in FOLDS[n_classes]])


def fit(kind, n_classes, kernels=KERNELS, **params):
    X, y = DATA[n_classes]
    params = {"Cs": [1.0], "tol": 1e-8, "cv": FOLDS[n_classes], **params}
    return kind(kernels, **params).fit(X, y)


# -- known answers ---------------------------------------------------------------------------


@both
@every_number_of_classes
def test_weights_and_outputs_are_those_of_separate_machines(kind, n_classes):
    model = fit(kind, n_classes, nu=0.4)
    outputs, labels = outputs_by_hand(n_classes, 1.0)
    shared = kind is LPBeta or n_classes == 2
    expected = MarginProgram(outputs, labels, np.ones(len(labels)), 0.4, shared).solve(1e-8)
    assert_allclose(model.weights_, expected.weights, atol=1e-6)
    assert model.rho_ == pytest.approx(expected.rho, abs=1e-6)
    assert model.certificate_.primal == pytest.approx(expected.certificate.primal, abs=1e-6)
    assert model.certificate_.converged
    scores = np.array(
        [machine(kernel, 1.0, *DATA[n_classes]).decision_function(NEW) for kernel in KERNELS]
    )
    if model.weights_.ndim == 1:
        by_hand = np.tensordot(model.weights_, scores, 1)
    else:
        by_hand = np.einsum("cm,mic->ic", model.weights_, scores)
    assert_allclose(model.decision_function(NEW), by_hand, atol=1e-6)
    best = by_hand > 0 if n_classes == 2 else by_hand.argmax(axis=1)
    assert_array_equal(model.predict(NEW), best)


@both
@every_number_of_classes
@pytest.mark.parametrize("nu", [0.1, 1.0])
def test_one_kernel_is_its_machine(kind, n_classes, nu):
    X, y = DATA[n_classes]
    model = kind(KERNELS[:1], Cs=[0.7], nu=nu, tol=1e-8).fit(X, y)
    expected = machine(KERNELS[0], 0.7, X, y)
    assert_array_equal(np.unique(model.weights_), [1.0])
    assert_allclose(model.decision_function(NEW), expected.decision_function(NEW), atol=1e-6)
    assert_array_equal(model.support_, expected.support_)


def test_each_kernel_has_the_penalty_of_most_right_answers():
    Cs = [10.0, 0.001, 0.1]
    model = fit(LPBeta, 3, Cs=Cs)
    scores = []
    for C in sorted(Cs):
        outputs, labels = outputs_by_hand(3, C)
        scores.append(np.mean(outputs.argmax(axis=2) == labels, axis=1))
    # The first of equal ones, which is the smallest; folds are equally large.
    assert_array_equal(model.C_, np.sort(Cs)[np.argmax(scores, axis=0)])
    assert len(np.unique(model.C_)) > 1
    alike = fit(LPBeta, 3, Cs=Cs[::-1])
    assert_array_equal(alike.C_, model.C_)
    assert_allclose(alike.weights_, model.weights_, atol=1e-6)
    assert model.n_inner_solves_ == 3 * 4 * 3 + np.count_nonzero(model.weights_)


def test_right_answers_are_weighted():
    X, y = DATA[3]
    Cs = [0.01, 0.1, 1.0]
    counts = np.random.default_rng(2).integers(1, 6, len(X))
    model = LPBeta(KERNELS, Cs=Cs, cv=FOLDS[3], tol=1e-8).fit(X, y, sample_weight=counts)
    scores = np.zeros((len(KERNELS), len(Cs)))
    for j, kernel in enumerate(KERNELS):
        for k, C in enumerate(Cs):
            for train, test in FOLDS[3]:
                alone = MKSVC([kernel], C=C).fit(X[train], y[train], sample_weight=counts[train])
                scores[j, k] += alone.score(X[test], y[test], sample_weight=counts[test])
    assert_array_equal(model.C_, np.array(Cs)[np.argmax(scores.round(9), axis=1)])


def test_a_validation_set_is_one_split():
    X, y = DATA[3]
    train, test = FOLDS[3][0]
    inside = LPBeta(KERNELS, Cs=[1.0], tol=1e-8, cv=[(train, test)]).fit(X, y)
    beside = LPBeta(KERNELS, Cs=[1.0], tol=1e-8, cv=(X[test], y[test])).fit(X[train], y[train])
    assert_allclose(beside.weights_, inside.weights_, atol=1e-9)
    assert inside.n_splits_ == beside.n_splits_ == 1


def test_two_classes_share_their_machines():
    beta, b = (fit(kind, 2) for kind in (LPBeta, LPB))
    assert_array_equal(b.weights_, beta.weights_)
    assert_array_equal(b.decision_function(NEW), beta.decision_function(NEW))


def test_a_weight_for_every_class_finds_what_it_is_told_by():
    """The first class differs in one column, the second in another."""
    X, y = samples(120, 3)
    model = LPB(KERNELS[:2], Cs=[1.0]).fit(X, y)
    assert model.weights_[0, 0] > 0.6
    assert model.weights_[1, 1] > 0.6
    assert_allclose(model.weights_.sum(axis=1), 1.0)
    shared = LPBeta(KERNELS[:2], Cs=[1.0]).fit(X, y)
    assert model.certificate_.primal < shared.certificate_.primal


# -- laws ------------------------------------------------------------------------------------


@both
@every_number_of_classes
def test_permuted_kernels_permute_the_weights(kind, n_classes):
    order = np.array([2, 0, 3, 1])
    model = fit(kind, n_classes)
    permuted = fit(kind, n_classes, [KERNELS[j] for j in order])
    assert_allclose(permuted.weights_, model.weights_[..., order], atol=1e-6)
    assert_allclose(permuted.decision_function(NEW), model.decision_function(NEW), atol=1e-6)


def test_swapped_classes_turn_the_decision_round():
    X, y = DATA[2]
    model, swapped = (
        LPBeta(KERNELS, tol=1e-8).fit(X, labels).decision_function(NEW) for labels in (y, 1 - y)
    )
    assert_allclose(swapped, -model, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@both
@every_number_of_classes
def test_a_constant_kernel_changes_nothing(kind, n_classes):
    model = fit(kind, n_classes, nu=0.8)
    assert model.certificate_.primal < 0, "else a machine that says nothing is better"
    padded = fit(kind, n_classes, [("one", Constant()), *KERNELS], nu=0.8)
    assert not padded.weights_[..., 0].any()
    assert_allclose(padded.weights_[..., 1:], model.weights_, atol=1e-6)
    assert_allclose(padded.decision_function(NEW), model.decision_function(NEW), atol=1e-6)


@both
def test_a_kernel_twice_is_this_kernel(kind):
    model = fit(kind, 3)
    twice = fit(kind, 3, [*KERNELS, ("again", KERNELS[0][1])])
    together = twice.weights_[..., :4].copy()
    together[..., 0] += twice.weights_[..., 4]
    assert_allclose(together, model.weights_, atol=1e-6)
    assert_allclose(twice.decision_function(NEW), model.decision_function(NEW), atol=1e-6)


@both
def test_a_weight_of_two_is_two_samples(kind):
    X, y = DATA[3]
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    counts[:6] = 2
    rows = np.repeat(np.arange(len(X)), counts)
    weighted = kind(KERNELS, tol=1e-9).fit(X, y, sample_weight=counts)
    repeated = kind(KERNELS, tol=1e-9).fit(X[rows], y[rows])
    assert_array_equal(weighted.C_, repeated.C_)
    assert weighted.rho_ == pytest.approx(repeated.rho_, abs=1e-5)
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-5)
    assert_allclose(weighted.decision_function(NEW), repeated.decision_function(NEW), atol=1e-5)


def test_machines_without_weight_are_not_kept():
    model = fit(LPBeta, 3, nu=0.8)
    unused = np.flatnonzero(model.weights_ == 0.0)
    assert len(unused)
    assert not model.dual_coef_[unused].any()
    assert model.dual_coef_.shape == (4, 3, len(model.support_))
    union = KernelUnion(KERNELS).fit(DATA[3][0])
    precomputed = LPBeta("precomputed", Cs=[1.0], tol=1e-8, cv=FOLDS[3], nu=0.8)
    precomputed.fit(union(DATA[3][0]), DATA[3][1])
    new = union(NEW, DATA[3][0])
    assert_allclose(precomputed.decision_function(new), model.decision_function(NEW), atol=1e-6)


# -- what is refused, what is told -----------------------------------------------------------


@both
@pytest.mark.parametrize("nu", [0.0, 1.5])
def test_nu_beyond_its_range(kind, nu):
    with pytest.raises(ValueError, match=rf"'nu' parameter of {kind.__name__} .*\(0.0, 1.0\]"):
        fit(kind, 2, nu=nu)


@pytest.mark.parametrize("Cs", [[], [0.0], [-1.0, 1.0], [np.nan], 1.0, [1.0, 1.0], [np.inf]])
def test_invalid_penalties(Cs):
    with pytest.raises(ValueError, match="Cs"):
        fit(LPBeta, 2, Cs=Cs)


def test_invalid_folds():
    X, y = DATA[2]
    first = np.flatnonzero(y == 0)
    with pytest.raises(ValueError, match=r"Split 0 leaves no training samples of \[1\]"):
        LPBeta(KERNELS, cv=[(first, np.flatnonzero(y == 1))]).fit(X, y)
    alike = np.repeat([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]], 4, axis=0)
    labels = np.repeat([0, 1], 4)
    message = r"LPBeta cannot be judged by folds: .* \(n_samples = 8\). Pass a validation set as"
    with pytest.raises(ValueError, match=message):
        LPBeta(KERNELS).fit(alike, labels)
    assert LPBeta(KERNELS, cv=(alike, labels)).fit(alike, labels).score(alike, labels) == 1.0


def test_a_callback_that_stops_before_every_kernel_has_a_machine():
    X, y = DATA[2]
    model = LPBeta(KERNELS, Cs=[1.0]).set_callbacks(Recorder(stop_after=1))
    with pytest.raises(ValueError, match=r"No machine of kernel 'second' .* callback asked"):
        model.fit(X, y)


def test_an_unsolved_program_is_reported(monkeypatch):
    def fails(self):
        return LinearSolution(np.zeros(1 + 45 + 4), np.zeros(self.n_rows), "Time limit reached")

    monkeypatch.setattr(LinearProgram, "solve", fails)
    with pytest.warns(ConvergenceWarning, match="LPBeta is stopped. The relative gap is"):
        model = fit(LPBeta, 2)
    assert_allclose(model.weights_, 0.25)
    assert not model.certificate_.converged


@both
@pytest.mark.parametrize(
    "check",
    [
        check_sample_weight_equivalence_on_dense_data,
        *slow(check_sample_weight_equivalence_on_sparse_data),
    ],
)
def test_weights_are_repeats_where_several_kernels_are_as_good(kind, check):
    """In scikit-learn's problem the machines of two kernels have the same margins."""
    assert check(kind.__name__, kind()) is None  # it raises if predictions differ
