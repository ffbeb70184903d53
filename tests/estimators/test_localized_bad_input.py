"""What localized machines refuse or warn of, and what an interruption leaves behind."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from manykernels import (
    KernelStack,
    KernelUnion,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
)
from manykernels.gating import Sigmoid, Softmax, machines
from manykernels.kernels import RBF, Linear

M = 30
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (M, 3))
Y = (X[:, 0] > X[:, 1]).astype(int)
THREE = np.arange(M) % 3
KERNELS = [("line", Linear()), ("wide", RBF(0.5))]
UNION = KernelUnion(KERNELS).fit(X)
STACK, BLOCK = UNION(X), UNION(X[:4] + 0.1, X)
WITH = STACK.with_features(X)

MODELS = {
    "binary": (LocalizedSVC, {}, Y),
    "shared": (LocalizedSVC, {}, THREE),
    "separate": (LocalizedSVC, {"multi_class": "separate"}, THREE),
    "single": (LocalizedSVC, {"multi_class": "single"}, THREE),
    "regression": (LocalizedSVR, {}, X[:, 2] ** 2),
    "one class": (LocalizedOneClassSVM, {}, None),
    "fda": (LocalizedFDA, {}, Y),
}
every_model = pytest.mark.parametrize("name", MODELS)


def make(name, kernels=KERNELS, **params):
    kind, own, _ = MODELS[name]
    how = {"random_state": 0, "quasi_newton": True, "tol": 1e-4}
    return kind(kernels, **{**how, **own, **params})


def fit(name, kernels=KERNELS, data=X, **params):
    return make(name, kernels, **params).fit(data, MODELS[name][2])


def refused(message, error=ValueError):
    return pytest.raises(error, match=message)


def changed(table, where, value):
    table = table.copy()
    table[where] = value
    return table


# -- what the gate looks at --------------------------------------------------------------------


@every_model
def test_features_that_do_not_vary(name):
    constant = np.column_stack([X, np.ones(M)])
    with refused("gating features are constant on the training rows.*without a gate"):
        fit(name, data=constant, gating_features=[3])
    with refused("gating features are constant"):
        fit(name, "precomputed", STACK.with_features(np.ones((M, 2))))


@every_model
def test_no_features_on_a_stack(name):
    for data in (STACK, np.asarray(STACK), STACK.kernel(0)):
        with refused(r"gate needs features of its own: stack.with_features\(table\), or gating_f"):
            fit(name, "precomputed", data, normalize=None)
    model = fit(name, "precomputed", WITH)
    for method in (model.predict, model.gate, model.evaluations, model.active_kernels):
        with refused("gate needs features of its own.*one of line, wide"):
            method(BLOCK)


def test_a_kernel_that_the_stack_does_not_have():
    with refused("no kernel 'shape', only line, wide"):
        fit("binary", "precomputed", WITH, gating_features="shape")


@every_model
def test_features_that_are_not_finite(name):
    broken = changed(X, (4, 1), np.nan)
    with refused("Input X contains NaN"):
        fit(name, data=broken)
    frame = pd.DataFrame(broken, columns=["a", "b", "c"])
    clean = [("line", Linear().on(["a", "c"]))]
    with refused(r"gating_features: .*not finite \(NaN\) at row 4, column 'b'"):
        fit(name, clean, frame)
    model = fit(name, clean, frame, gating_features=["c"])
    assert len(model.predict(frame)) == M


@every_model
def test_another_width_at_prediction(name):
    kind = MODELS[name][0].__name__
    with refused(f"X has 2 features, but {kind} is expecting 3 features"):
        fit(name).predict(X[:, :2])
    on_table = fit(name, "precomputed", WITH)
    new = BLOCK.with_features(np.ones((4, 2)))
    for method in (on_table.predict, on_table.gate, on_table.evaluations):
        with refused("X has 2 columns, but the gate was fitted on a table of 3"):
            method(new)
    for weight in (np.ones(M), np.arange(M) > 2):
        on_map = make(name, "precomputed", gating_features="wide")
        on_map.fit(STACK, MODELS[name][2], sample_weight=weight)
        for method in (on_map.predict, on_map.gate, on_map.evaluations):
            with refused(f"X has 20 features, but {kind} is expecting {M} features"):
                method(BLOCK[:, :20])


def test_another_length():
    with refused("one row per row of the stack, 30; got an array of shape"):
        STACK.with_features(X[:-1])
    with refused(r"inconsistent numbers of samples: \[30, 29\]"):
        LocalizedSVC().fit(X, Y[:-1])
    with refused(r"inconsistent numbers of samples: \[30, 29\]"):
        LocalizedSVR("precomputed").fit(WITH, X[:-1, 0])


def test_other_columns_of_a_dataframe_at_prediction():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LocalizedSVC(gating_features=["c"], random_state=0).fit(frame, Y)
    with refused("must be in the same order"):
        model.gate(frame[["b", "a", "c"]])
    with refused("columns='z' cannot be selected"):
        LocalizedSVC(gating_features="z").fit(frame, Y)


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
            LocalizedSVC(kernels, gating_features=features).fit(data, Y)


# -- parameters and targets --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("binary", "C", 0.0),
        ("binary", "C", -1.0),
        ("regression", "C", 0.0),
        ("regression", "epsilon", -0.1),
        ("one class", "nu", 0.0),
        ("one class", "nu", 1.1),
        ("fda", "reg", 0.0),
        ("binary", "multi_class", "ovo"),
        ("binary", "gating", 3),
        ("binary", "gating", Softmax),
        *[("binary", "n_init", n) for n in (0, -1, 1.5)],
        *[("binary", "gate_tol", t) for t in (-0.1, 1.0)],
        ("binary", "tol", 0.0),
        ("binary", "max_iter", 0),
        ("binary", "normalize", "unit"),
        ("binary", "quasi_newton", "yes"),
        ("binary", "random_state", "seed"),
    ],
)
def test_parameters_outside_their_range(name, parameter, value):
    kind = MODELS[name][0].__name__
    message = f"The '{parameter}' parameter of {kind} must be .*Got {re.escape(repr(value))}"
    with refused(message):
        fit(name, **{parameter: value})


@every_model
def test_gates_that_do_not_exist(name):
    with refused(r"no gate named 'relu': a gate is one of 'softmax', 'sigmoid', 'gaussian'"):
        fit(name, gating="relu")


def test_samples_that_are_no_problem():
    with refused("at least 2 classes, got 1 class"):
        LocalizedSVC().fit(X, np.zeros(M))
    with refused("LocalizedSVR requires y"):
        LocalizedSVR().fit(X, None)
    with refused("more samples than classes: 4 samples of 4 classes"):
        LocalizedFDA().fit(X[:4], np.arange(4))
    with refused("1 sample"):
        LocalizedOneClassSVM().fit(X[:1])
    with refused("at least one non-zero number"):
        LocalizedSVC().fit(X, Y, sample_weight=np.zeros(M))
    with refused("Negative values in data passed to `sample_weight`"):
        LocalizedSVC().fit(X, Y, sample_weight=-np.ones(M))


@every_model
def test_before_fit(name):
    model = make(name)
    for method in (model.predict, model.gate, model.active_kernels, model.evaluations):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(NotFittedError):
        model.region_summary()


@every_model
def test_more_kernels_than_samples(name):
    few = [*range(5), *range(15, 20)]
    y = MODELS[name][2]
    kernels = [(f"rbf{j}", RBF(0.1 * (j + 1))) for j in range(14)]
    for gating in ("softmax", "gaussian"):
        model = make(name, kernels, gating=gating).fit(X[few], None if y is None else y[few])
        assert model.gate(X).shape[-2:] == (M, 14)
        assert len(model.predict(X)) == M


def test_spherical_test_block_without_self_similarities():
    model = fit("binary", "precomputed", WITH)
    block = KernelStack.from_arrays(BLOCK.data, BLOCK.names).with_features(X[:4])
    with refused(r"needs the self-similarities k\(x, x\).*row_diag="):
        model.predict(block)


# -- warnings ----------------------------------------------------------------------------------


@every_model
def test_steps_that_do_not_suffice(name):
    kind = MODELS[name][0].__name__
    message = rf"{kind} stopped while the objective still changed by .* > tol=1e-09"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = fit(name, max_iter=1, tol=1e-9)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.finished_
    assert not model.certificate_.converged


@every_model
def test_a_gate_that_is_saturated_everywhere(name):
    message = r"the gate was saturated everywhere in \d+ of the starts, which were made again"
    with pytest.warns(ConvergenceWarning, match=message):
        model = fit(name, gating=Sigmoid(1e6))
    gates = model.gate(X)
    assert np.all((gates < 1e-8) | (gates > 1 - 1e-8))
    n_gates = 3 if name == "separate" else 1
    # Each start was made again three times at most.
    assert model.n_inner_solves_ <= 4 * n_gates
    assert len(model.predict(X)) == M


# -- interruptions -----------------------------------------------------------------------------


@pytest.fixture
def interrupt(monkeypatch):
    """Have the machines of this test interrupted (Ctrl-C) at the given training."""
    trained = []

    def at(when):
        for kind in (machines.BoxMachine, machines.MulticlassMachine, machines.SquareMachine):

            def train(self, K, original=kind.train):
                trained.append(K.shape)
                if len(trained) == when:
                    raise KeyboardInterrupt
                return original(self, K)

            monkeypatch.setattr(kind, "train", train)
        return trained

    return at


@every_model
@pytest.mark.parametrize("when", [2, 5])
def test_an_interruption_leaves_the_best_model_so_far(name, when, interrupt):
    whole = fit(name, tol=1e-7, max_iter=1000)
    assert whole.finished_
    kind = MODELS[name][0].__name__
    trained = interrupt(when)
    with pytest.warns(ConvergenceWarning, match=f"{kind} was interrupted: .* unfinished"):
        model = fit(name, tol=1e-7, max_iter=1000, n_init=2)
    assert not model.finished_
    # Gates that had not had their turn are left at their starts: one machine for each.
    assert len(trained) == when + (2 if name == "separate" else 0)
    assert model.n_inner_solves_ == len(trained) - 1
    history, complete = model.history_["objective"], whole.history_["objective"]
    if name == "separate":
        assert model.history_["machine"][-3:] == [0, 1, 2]
        history = history[:-2]
    assert history == complete[: len(history)]
    assert len(history) > 1 or when == 2
    assert len(model.predict(X)) == M
    assert model.gate(X).shape[-2:] == (M, 2)
    assert len(model.region_summary()) == (6 if name == "separate" else 2)


@every_model
def test_an_interruption_before_the_first_machine_is_passed_on(name, interrupt):
    interrupt(1)
    model = make(name)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, MODELS[name][2])
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_fit_after_an_interrupted_one_is_whole(interrupt):
    expected = fit("binary")
    interrupt(3)
    with pytest.warns(ConvergenceWarning, match="unfinished"):
        model = fit("binary")
    model.fit(X, Y)
    assert model.finished_
    assert_array_equal(model.decision_function(X), expected.decision_function(X))
