"""What localized machines refuse or warn of, and what an interruption leaves behind."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from manykernels import KernelUnion, LocalizedOneClassSVM, LocalizedSVC
from manykernels.gating import KernelComponents, Sigmoid, descent, objective
from manykernels.kernels import RBF, Linear
from manykernels.solvers import Newton
from tests.estimators.registry import (
    changed,
    every_descent,
    every_gate_on_features,
    every_localized,
    made,
    refused,
)

M = 30
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (M, 3))
Y = (X[:, 0] > X[:, 1]).astype(int)
TARGETS = {"two": Y, "three": np.arange(M) % 3, "values": X[:, 2] ** 2, "none": None}
KERNELS = [("line", Linear()), ("wide", RBF(0.5))]
UNION = KernelUnion(KERNELS).fit(X)
STACK, BLOCK = UNION(X), UNION(X[:4] + 0.1, X)
WITH = STACK.with_features(X)


# Descents to where the objective ends; test_localized_held_out.py has those with held-out samples.
UNREGULARIZED = {"quasi_newton": True, "tol": 1e-4, "penalty": 0.0, "early_stopping": 0}


def make(entry, kernels=KERNELS, **params):
    # Gates of estimators that choose a penalty are learnt one from the other.
    options = {"tol": UNREGULARIZED["tol"]} if entry.chooses else UNREGULARIZED
    return entry.make(kernels, **{**options, **params})


def fit(entry, kernels=KERNELS, data=X, **params):
    return make(entry, kernels, **params).fit(data, TARGETS[entry.target])


# -- what the gate looks at --------------------------------------------------------------------


@every_gate_on_features
def test_features_that_do_not_vary(entry):
    constant = np.column_stack([X, np.ones(M)])
    with refused("gating features are constant on the training rows.*without a gate"):
        fit(entry, data=constant, features=[3])
    with refused("gating features are constant"):
        fit(entry, "precomputed", STACK.with_features(np.ones((M, 2))))
    same = np.ones((M, M))
    with refused("gating features are constant on the training rows.*without a gate"):
        fit(entry, "precomputed", same, features=None, normalize=None)


@every_gate_on_features
def test_no_features_on_a_stack(entry):
    plain = {"features": None, "normalize": None}
    for data in (STACK, np.asarray(STACK), STACK.kernel(0)):
        model = fit(entry, "precomputed", data, **plain)
        named = fit(entry, "precomputed", data, **{**plain, "features": KernelComponents()})
        assert_array_equal(model.gate(data), named.gate(data))
        message = r"no columns for the features of the gate: pass stack.with_features\(table\)"
        for columns in (slice(None), [0], 1, PCA(1), Linear()):
            with refused(message + ".*or None, principal components of the kernels"):
                fit(entry, "precomputed", data, features=columns, normalize=None)
    model = fit(entry, "precomputed", WITH, features=slice(None))
    for method in (model.predict, model.gate, model.evaluations, model.active_kernels):
        with refused("fitted on the table of a stack, which this one lacks: .*with_features"):
            method(BLOCK)


def test_a_kernel_that_the_stack_does_not_have():
    with refused("no kernel 'shape', only line, wide"):
        made(LocalizedSVC, "precomputed", features="shape").fit(WITH, Y)


@every_gate_on_features
def test_features_that_are_not_finite(entry):
    broken = changed(X, (4, 1), np.nan)
    with refused(r"\(NaN\) at row 4"):
        fit(entry, data=broken)
    frame = pd.DataFrame(broken, columns=["a", "b", "c"])
    clean = [("line", Linear().on(["a", "c"]))]
    with refused(r"features of the gate: .*not finite \(NaN\) at row 4, column 'b'"):
        fit(entry, clean, frame, features=slice(None))
    # Components of the kernels look at what these do.
    for features in (["c"], None):
        model = fit(entry, clean, frame, features=features)
        assert len(model.predict(frame)) == M


@every_gate_on_features
def test_another_width_at_prediction(entry):
    with refused(f"X has 2 features, but {entry.name} is expecting 3 features"):
        fit(entry).predict(X[:, :2])
    on_table = fit(entry, "precomputed", WITH)
    new = BLOCK.with_features(np.ones((4, 2)))
    for method in (on_table.predict, on_table.gate, on_table.evaluations):
        with refused("X has 2 columns, but the gate was fitted on a table of 3"):
            method(new)
    for weight in (np.ones(M), np.arange(M) > 2):
        on_map = make(entry, "precomputed", features="wide")
        on_map.fit(STACK, TARGETS[entry.target], sample_weight=weight)
        for method in (on_map.predict, on_map.gate, on_map.evaluations):
            with refused(f"X has 20 features, but {entry.name} is expecting {M} features"):
                method(BLOCK[:, :20])


def test_another_length():
    with refused("one row per row of the stack, 30; got an array of shape"):
        STACK.with_features(X[:-1])


def test_other_columns_of_a_dataframe_at_prediction():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = made(LocalizedSVC, features=["c"]).fit(frame, Y)
    with refused("must be in the same order"):
        model.gate(frame[["b", "a", "c"]])
    with refused("columns='z' cannot be selected"):
        made(LocalizedSVC, features="z").fit(frame, Y)


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ([7], ValueError, r"columns=\[7\] cannot be selected"),
        (9, ValueError, "between 1 and 3, got 9"),
        (PCA, TypeError, "is a class; pass an instance"),
        (X, TypeError, "matrix of features is given as the X"),
        (True, TypeError, "pass None, columns"),
    ],
    ids=["column", "components", "class", "matrix", "flag"],
)
def test_things_a_gate_cannot_look_at(features, error, message):
    for kernels, data in ((KERNELS, X), ("precomputed", WITH)):
        with refused(message, error):
            made(LocalizedSVC, kernels, features=features).fit(data, Y)


# -- parameters and targets --------------------------------------------------------------------


@every_localized
def test_gates_that_do_not_exist(entry):
    with refused(r"no gate named 'relu': a gate is one of 'softmax', 'sigmoid', 'gaussian'"):
        fit(entry, gating="relu")


def test_one_sample_is_no_problem():
    with refused("1 sample"):
        LocalizedOneClassSVM().fit(X[:1])


@every_localized
def test_before_fit(entry):
    model = make(entry)
    for method in (model.predict, model.gate, model.active_kernels, model.evaluations):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(NotFittedError):
        model.region_summary()


@every_localized
def test_more_kernels_than_samples(entry):
    few = [*range(5), *range(15, 20)]
    y = TARGETS[entry.target]
    kernels = [(f"rbf{j}", RBF(0.1 * (j + 1))) for j in range(14)]
    for gating in ("softmax", "gaussian"):
        model = make(entry, kernels, gating=gating).fit(X[few], None if y is None else y[few])
        assert model.gate(X).shape[-2:] == (M, 14)
        assert len(model.predict(X)) == M


# -- warnings ----------------------------------------------------------------------------------


@every_descent
def test_steps_that_do_not_suffice(entry):
    message = rf"{entry.name} stopped while the objective still changed by .* > tol=1e-09"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = fit(entry, max_iter=1, tol=1e-9)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.finished_
    assert not model.certificate_.converged


@pytest.fixture
def plain_solves(monkeypatch):
    """How many machines were trained for each set of plain kernel weights."""
    counts = []

    class Counted(Newton):
        def solve(self, *problem, **options):
            solution = super().solve(*problem, **options)
            counts.append(solution.n_inner_solves)
            return solution

    monkeypatch.setattr(descent, "Newton", Counted)
    return counts


@every_descent
def test_a_gate_that_is_saturated_everywhere(entry, plain_solves):
    message = r"the gate was saturated everywhere in \d+ of the starts, which were drawn again"
    with pytest.warns(ConvergenceWarning, match=message):
        model = fit(entry, gating=Sigmoid(scale=1e6))
    gates = model.gate(X)
    assert np.all((gates < 1e-8) | (gates > 1 - 1e-8))
    n_gates = 3 if entry.variant == "separate" else 1
    # Each start was made again three times at most.
    assert model.n_inner_solves_ - sum(plain_solves) <= 4 * n_gates
    assert len(model.predict(X)) == M


# -- interruptions -----------------------------------------------------------------------------


@pytest.fixture
def interrupt(monkeypatch):
    """Have the machines of this test interrupted (Ctrl-C) at the given training."""
    trained = []

    def at(when):
        for kind in (objective.BoxMachine, objective.MulticlassMachine, objective.SquareMachine):

            def train(self, K, original=kind.train):
                trained.append(self)
                if len(trained) == when:
                    raise KeyboardInterrupt
                return original(self, K)

            monkeypatch.setattr(kind, "train", train)
        return trained

    return at


@every_descent
@pytest.mark.parametrize("when", [2, 5])
def test_an_interruption_leaves_the_best_model_so_far(entry, when, interrupt, plain_solves):
    whole = fit(entry, tol=1e-7, max_iter=1000)
    assert whole.finished_
    plain_solves.clear()
    trained = interrupt(when)
    with pytest.warns(ConvergenceWarning, match=f"{entry.name} was interrupted: .* unfinished"):
        model = fit(entry, tol=1e-7, max_iter=1000, n_init=2)
    assert not model.finished_
    # Gates that had not had their turn are left at plain weights: one machine for each.
    assert len(trained) == when + (2 if entry.variant == "separate" else 0)
    assert model.n_inner_solves_ - sum(plain_solves) == len(trained) - 1
    history, complete = model.history_["objective"], whole.history_["objective"]
    if entry.variant == "separate":
        assert model.history_["machine"][-3:] == [0, 1, 2]
        history = history[:-2]
    assert history == complete[: len(history)]
    assert len(history) > 1 or when == 2
    assert len(model.predict(X)) == M
    assert model.gate(X).shape[-2:] == (M, 2)
    assert len(model.region_summary()) == (6 if entry.variant == "separate" else 2)


@every_descent
def test_an_interruption_before_the_first_machine_is_passed_on(entry, interrupt):
    interrupt(1)
    model = make(entry)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, TARGETS[entry.target])
    with pytest.raises(NotFittedError):
        model.predict(X)


@every_descent
def test_a_fit_after_an_interrupted_one_is_whole(entry, interrupt):
    expected = fit(entry)
    interrupt(3)
    with pytest.warns(ConvergenceWarning, match="unfinished"):
        model = fit(entry)
    model.fit(X, TARGETS[entry.target])
    assert model.finished_
    assert_array_equal(entry.scores(model, X), entry.scores(expected, X))
