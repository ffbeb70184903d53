"""A fit that fails or is interrupted leaves the model that was there, whole, or none."""

import inspect
import sys
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import manykernels
from manykernels import KernelUnion
from manykernels.kernels import RBF, Linear
from manykernels.solvers import Newton
from tests.estimators.registry import answers, changed, every_estimator, every_variant, those
from tests.problems import slow

M = 24
rng = np.random.default_rng(0)
X, OTHER, NEW = rng.normal(size=(M, 3)), rng.normal(size=(M + 6, 4)), rng.normal(size=(5, 3))


class Evaluations:
    """How often the kernel below was evaluated, and when it is interrupted."""

    count, stop = 0, None


def product(X, Y):
    Evaluations.count += 1
    if Evaluations.count == Evaluations.stop:
        raise KeyboardInterrupt
    return X @ Y.T


KERNELS = [("function", product), ("wide", RBF(0.5)), ("line", Linear())]

also_first = pytest.mark.parametrize("fitted", [True, *slow(False)], ids=["refit", "first fit"])


def state(model):
    return {name: joblib.hash(value) for name, value in vars(model).items()}


@contextmanager
def left_as_it_was(model, error, match=None):
    """Inside, a fit fails with `error`; afterwards the model is what it was."""
    before = state(model)
    known = answers(model, NEW) if fitted(model) else None
    with pytest.raises(error, match=match):
        yield
    assert state(model) == before
    if known is None:
        assert not fitted(model)
        with pytest.raises(NotFittedError):
            model.predict(NEW)
    else:
        for new, old in zip(answers(model, NEW), known, strict=True):
            assert_array_equal(new, old)


def fitted(model):
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def model_of(entry, fitted, **params):
    # Several iterations, so that there is something to interrupt.
    model = entry.make(KERNELS, **({"p": 1.5} if entry.has_p else {}))
    if fitted:
        model.fit(X, entry.y_of(X))
    # Parameters of the fit that fails, and none of the model that stays.
    return model.set_params(**params)


@every_variant
@also_first
def test_bad_targets_or_weights(entry, fitted):
    model, y = model_of(entry, fitted), entry.y_of(OTHER)
    with left_as_it_was(model, ValueError, "inconsistent|sample_weight"):
        if y is None:
            model.fit(OTHER, sample_weight=-np.ones(len(OTHER)))
        else:
            model.fit(OTHER, y[:-1])
    if y is not None and y.ndim == 1:
        with left_as_it_was(model, ValueError):
            model.fit(OTHER, np.full(len(OTHER), np.nan))


@every_variant
@also_first
def test_bad_tables(entry, fitted):
    model = model_of(entry, fitted)
    with left_as_it_was(model, ValueError, r"\(NaN\) at row 3|^regions: Input X contains NaN"):
        model.fit(changed(OTHER, (3, 1), np.nan), entry.y_of(OTHER))


@every_variant
@also_first
@pytest.mark.parametrize("k", [1, *slow(2)])
def test_a_kernel_that_is_interrupted(entry, fitted, k, monkeypatch):
    """Localized models, too: they keep the best gate so far only once there is one."""
    model = model_of(entry, fitted, kernels=[*KERNELS, ("again", product)])
    with left_as_it_was(model, KeyboardInterrupt):
        monkeypatch.setattr(Evaluations, "count", 0)
        monkeypatch.setattr(Evaluations, "stop", k)
        model.fit(OTHER, entry.y_of(OTHER))


class FailsHalfWay:
    """Newton's method, until the second iteration."""

    def solve(self, loss, domain, **options):
        def observer(progress):
            if progress.iteration == 1:
                raise FloatingPointError("half-way")

        return Newton().solve(loss, domain, **{**options, "observer": observer, "tol": 1e-14})


@those(lambda entry: entry.has_solver)
@also_first
def test_a_solver_that_fails_half_way(entry, fitted):
    model = model_of(entry, fitted, solver=FailsHalfWay())
    with left_as_it_was(model, FloatingPointError, "half-way"):
        model.fit(OTHER, entry.y_of(OTHER))


class Interruption(BaseException):
    """Unlike KeyboardInterrupt, localized machines do not take it for a wish to stop here."""


class Told:
    """How often the callback below was told something, when it raises an error, and which.

    Not in the callback, which is part of the state of an estimator.
    """

    count, stop, error = 0, None, None


class RaisingCallback:
    def _told(self):
        Told.count += 1
        if Told.count == Told.stop:
            raise Told.error

    def setup(self, estimator, context):
        self._told()

    def teardown(self, estimator, context):
        self._told()

    def on_fit_task_begin(self, estimator, context, **given):
        self._told()

    def on_fit_task_end(self, estimator, context, **given):
        self._told()


@those(lambda entry: hasattr(entry.kind, "set_callbacks"))
@also_first
def test_a_callback_that_raises(entry, fitted, monkeypatch):
    monkeypatch.setattr(Told, "count", 0)
    model_of(entry, False).set_callbacks(RaisingCallback()).fit(OTHER, entry.y_of(OTHER))
    n_told = Told.count
    assert n_told >= 6
    model = model_of(entry, fitted).set_callbacks(RaisingCallback())
    error = Interruption if entry.localized else KeyboardInterrupt
    monkeypatch.setattr(Told, "error", error)
    # At setup; at the begin of the fit and of its first part, and the end of that; at the end
    # of the fit and at teardown.
    for stop in (1, 2, 3, 4, n_told - 1, n_told):
        monkeypatch.setattr(Told, "count", 0)
        monkeypatch.setattr(Told, "stop", stop)
        with left_as_it_was(model, error):
            model.fit(OTHER, entry.y_of(OTHER))


class CallsOfThePackage:
    """Counts calls of functions of the package, and raises Interruption at one of them.

    Not of generators: these are also called when they are collected, where nothing can be raised.
    """

    ROOT = str(Path(manykernels.__file__).parent)

    def __init__(self, stop=None):
        self.stop, self.count = stop, 0

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if event != "call" or code.co_flags & inspect.CO_GENERATOR:
            return
        if code.co_filename.startswith(self.ROOT):
            self.count += 1
            if self.count == self.stop:
                raise Interruption

    def __enter__(self):
        self._outer = sys.getprofile()
        sys.setprofile(self)
        return self

    def __exit__(self, *exception):
        sys.setprofile(self._outer)


@every_variant
@pytest.mark.parametrize(
    "fitted", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["refit", "first fit"]
)
def test_an_interruption_anywhere(entry, fitted):
    model, y = model_of(entry, fitted), entry.y_of(OTHER)
    # What is computed once and kept, such as the form of a domain, is there from now on.
    clone(model).fit(OTHER, y)
    another = clone(model)
    with CallsOfThePackage() as calls:
        another.fit(OTHER, y)
    # From the first call, which is the decorator's; the last ones set attributes.
    spread = np.linspace(2, calls.count, 5).astype(int)
    last = np.arange(max(2, calls.count - 3), calls.count)
    for stop in np.union1d(spread, last):
        with left_as_it_was(model, Interruption), CallsOfThePackage(stop):
            model.fit(OTHER, y)


@pytest.mark.slow
@every_variant
def test_a_fit_after_one_that_failed(entry):
    model = model_of(entry, fitted=True)
    expected = clone(model).fit(X, entry.y_of(X))
    with CallsOfThePackage(300), pytest.raises(Interruption):
        model.fit(OTHER, entry.y_of(OTHER))
    model.fit(X, entry.y_of(X))
    for new, old in zip(answers(model, NEW), answers(expected, NEW), strict=True):
        assert_array_equal(new, old)


@every_estimator
def test_kernels_given_by_the_user_stay_unfitted(entry):
    union = KernelUnion([("line", Linear()), ("wide", RBF())])
    model = model_of(entry, fitted=False, kernels=union)
    with CallsOfThePackage(300), pytest.raises(Interruption):
        model.fit(OTHER, entry.y_of(OTHER))
    assert not hasattr(union, "kernels_")
