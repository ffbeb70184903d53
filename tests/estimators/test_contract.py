"""What every fitted estimator has, whatever it learns and however."""

import inspect
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKFDA, MKFDACV, MKSVC, MKSVCCV, MKRidge, baselines, estimators
from manykernels.kernels import kernels_for
from tests.estimators.registry import (
    ONE_OF_EACH,
    PAIRS,
    X_TEST,
    Recorder,
    X,
    Y,
    answers,
    every_estimator,
    every_variant,
    those,
    waits,
)

REPLACED = ("n_factorizations_", "n_svm_solves_", "n_machines_")


FITTED = {}


def fitted(entry):
    """A model that several tests look at and none changes."""
    if str(entry) not in FITTED:
        FITTED[str(entry)] = entry.fit()
    return FITTED[str(entry)]


def test_every_estimator_is_in_the_registry():
    public = [getattr(room, name) for room in (estimators, baselines) for name in room.__all__]
    assert {kind for kind in public if isinstance(kind, type)} == {e.kind for e in ONE_OF_EACH}


# -- certificate, history, counters ----------------------------------------------------------


@every_variant
def test_a_certificate_says_what_is_known(entry):
    model = fitted(entry)
    certificate = model.certificate_
    # Where nobody has given one, it is that of the machine.
    assert certificate.tol == (model.tol or model.estimator_.tol)
    assert certificate.converged is True
    for text in (certificate.status, certificate.message, certificate.claim):
        assert isinstance(text, str)
        assert text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@those(lambda entry: (entry.localized or "max_iter" in entry.parameters) and not entry.chooses)
def test_a_certificate_of_a_fit_that_ends_early(entry):
    options = {"p": 1.1} if entry.has_p else {}
    if entry.localized:
        # Else held-out samples say that it has ended where it should.
        options = {"early_stopping": 0}
    finished = entry.fit(**options).certificate_
    model = entry.fit(max_iter=1, tol=1e-9, **options)
    assert model.certificate_.converged is False
    assert model.certificate_.status != finished.status
    assert model.certificate_.claim == finished.claim


@every_variant
def test_a_history_has_one_entry_per_iteration(entry):
    history = fitted(entry).history_
    assert isinstance(history, dict)
    of_this_kind = "gradient_norm" if entry.descends else "rel_gap"
    assert {"objective", "n_inner_solves", of_this_kind} <= history.keys()
    assert all(isinstance(values, list) for values in history.values())
    assert len({len(values) for values in history.values()}) == 1
    assert len(history["objective"]) >= 1
    assert np.all(np.diff(history["n_inner_solves"]) >= 1)


@every_variant
def test_iterations_and_inner_solves_are_counted(entry):
    model = fitted(entry)
    for count in (model.n_iter_, model.n_inner_solves_):
        assert isinstance(count, int)
        assert count >= 1
    assert model.n_inner_solves_ >= model.history_["n_inner_solves"][-1]
    assert not [name for name in REPLACED if hasattr(model, name)]


# -- callbacks -------------------------------------------------------------------------------


@every_variant
def test_callbacks_are_told_of_every_task(entry):
    recorder = Recorder()
    model = entry.make(PAIRS).set_callbacks(recorder).fit(X, entry.y)
    assert recorder.calls == ["setup", "teardown"]
    assert Counter(map(id, recorder.begun)) == Counter(map(id, recorder.ended))
    whole = recorder.begun[0]
    assert whole is recorder.ended[-1]
    assert (whole.task_name, whole.parent) == ("fit", None)
    n_iter = 1 if entry.chooses else model.n_iter_
    assert len(recorder.parts_of(whole)) >= n_iter
    for task in recorder.begun:
        assert task.max_subtasks is None or len(recorder.parts_of(task)) <= task.max_subtasks
    expected = answers(fitted(entry), X_TEST)
    for found, known in zip(answers(model, X_TEST), expected, strict=True):
        assert_array_equal(found, known)


@those(lambda entry: entry.chooses and not entry.localized, waiting=waits)
def test_points_of_a_grid_are_told_as_parts_of_all(entry):
    recorder = Recorder()
    model = entry.make(PAIRS).set_callbacks(recorder).fit(X, entry.y)
    # Two norms, or two penalties on a gate; machines of all labels are learnt at each.
    n_points = 2 * (1 if entry.kind is MKSVCCV else np.size(getattr(model, "p_", None)))
    parts = [task for task in recorder.begun if task.parent is recorder.begun[0]]
    whole = [task for task in parts if task.max_subtasks == n_points]
    assert len(whole) == model.n_splits_
    assert all(len(recorder.parts_of(task)) == n_points for task in whole)


@pytest.mark.slow
def test_points_of_a_grid_are_told_from_other_processes():
    """Callbacks that are sent there are copies; what they are told must not fail."""
    options = {"ps": [2], "regs": [1.0], "cv": 2}
    model = MKFDACV(PAIRS, n_jobs=2, **options).set_callbacks(Recorder()).fit(X, Y)
    expected = MKFDACV(PAIRS, **options).fit(X, Y)
    assert_array_equal(model.decision_function(X_TEST), expected.decision_function(X_TEST))


@those(lambda entry: entry.localized and not entry.chooses)
def test_a_callback_can_stop_the_fit_of_a_gate(entry):
    model = entry.make(PAIRS, tol=1e-9).set_callbacks(Recorder(stop_after=2))
    with pytest.warns(ConvergenceWarning, match=f"{entry.name} .*callback asked") as caught:
        model.fit(X, entry.y)
    assert caught[0].filename == __file__
    assert not model.certificate_.converged
    assert len(model.history_["objective"]) <= (4 if entry.variant == "separate" else 2)
    assert np.isfinite(entry.scores(model, X_TEST)).all()
    assert len(model.predict(X_TEST)) == len(X_TEST)
    assert np.isfinite(model.gate(X_TEST)).all()


# -- what an estimator is made of ------------------------------------------------------------

# scikit-learn keeps these on estimators with callbacks.
OF_SCIKIT_LEARN = {"_skl_callbacks", "_parent_callback_ctx", "_sklearn_output_config"}


@every_variant
def test_a_fitted_estimator_has_one_private_attribute(entry):
    model = entry.make(PAIRS).set_callbacks(Recorder()).fit(X, entry.y)
    others = {name for name in vars(model) if not name.endswith("_")} - entry.parameters
    assert others - OF_SCIKIT_LEARN == {"_predictor"}
    unfitted = entry.make(PAIRS)
    assert vars(unfitted).keys() == entry.parameters


def bases_of_the_package(kind):
    return [
        base
        for base in inspect.getmro(kind)
        if base.__module__.startswith("manykernels") and base is not kind
    ]


@every_estimator
def test_an_estimator_has_few_bases(entry):
    assert issubclass(entry.kind, BaseEstimator)
    assert len(bases_of_the_package(entry.kind)) <= 3


def test_no_estimator_is_another():
    kinds = [entry.kind for entry in ONE_OF_EACH]
    assert {(a, b) for a in kinds for b in kinds if a is not b and issubclass(a, b)} == set()
    assert not isinstance(MKFDACV(), MKFDA)


@pytest.mark.parametrize("model", [MKFDA(), MKRidge(), MKSVC()], ids=lambda m: type(m).__name__)
def test_kernels_are_made_once_per_fit(model, monkeypatch):
    calls = []

    def counted(*args, **options):
        calls.append(args)
        return kernels_for(*args, **options)

    monkeypatch.setattr("manykernels.estimators.inputs.kernels_for", counted)
    X = np.random.default_rng(0).standard_normal((30, 2))
    model.fit(X, (X[:, 0] > 0).astype(int))
    assert len(calls) == 1
