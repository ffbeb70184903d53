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
from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVR,
    KernelUnion,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKOneClassSVM,
)
from manykernels.baselines import KimFDA
from manykernels.kernels import RBF, Linear
from manykernels.solvers import Newton

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

TWO, LABELS = (lambda X: (X[:, 0] > X[:, 1]).astype(int)), (lambda X: (X[:, :2] > 0).astype(int))


def three(X):
    return np.digitize(X[:, 0], [-0.4, 0.4])


def number(X):
    return X[:, 0] ** 2


def nothing(X):
    return None


GRID = {"ps": [1, 2], "regs": [0.1, 1.0]}
SEEDED = {"random_state": 0}
MODELS = {
    "MKFDA": (MKFDA(KERNELS, p=1.5), three),
    "MKFDACV": (MKFDACV(KERNELS, **GRID), three),
    "MKFDACV with folds": (MKFDACV(KERNELS, cv=2, **GRID), TWO),
    "MKFDACV with labels": (MKFDACV(KERNELS, **GRID), LABELS),
    "KimFDA": (KimFDA(KERNELS, p=1.5, reg=0.1), TWO),
    "MKSVC": (MKSVC(KERNELS, p=1.5), TWO),
    "MKSVC, separate": (MKSVC(KERNELS, p=1.5, multi_class="separate"), three),
    "MKSVR": (MKSVR(KERNELS, p=1.5), number),
    "MKOneClassSVM": (MKOneClassSVM(KERNELS, p=1.5), nothing),
    "LocalizedFDA": (LocalizedFDA(KERNELS, **SEEDED), three),
    "LocalizedSVC": (LocalizedSVC(KERNELS, **SEEDED), three),
    "LocalizedSVR": (LocalizedSVR(KERNELS, **SEEDED), number),
    "LocalizedOneClassSVM": (LocalizedOneClassSVM(KERNELS, **SEEDED), nothing),
}
LEARNS_WEIGHTS = [name for name in MODELS if not name.startswith("Localized")]
HAS_SOLVER = [name for name in LEARNS_WEIGHTS if not name.startswith("MKFDACV")]
HAS_CALLBACKS = [name for name in LEARNS_WEIGHTS if name != "MKFDACV with labels"]
every_model = pytest.mark.parametrize("name", MODELS)
also_first = pytest.mark.parametrize("fitted", [True, False], ids=["refit", "first fit"])


def answers(model):
    methods = ("predict", "decision_function", "predict_proba", "transform", "gate")
    return [getattr(model, method)(NEW) for method in methods if hasattr(model, method)]


def state(model):
    return {name: joblib.hash(value) for name, value in vars(model).items()}


@contextmanager
def left_as_it_was(model, error, match=None):
    """Inside, a fit fails with `error`; afterwards the model is what it was."""
    before = state(model)
    known = answers(model) if fitted(model) else None
    with pytest.raises(error, match=match):
        yield
    assert state(model) == before
    if known is None:
        assert not fitted(model)
        with pytest.raises(NotFittedError):
            model.predict(NEW)
    else:
        for new, old in zip(answers(model), known, strict=True):
            assert_array_equal(new, old)


def fitted(model):
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def model_of(name, fitted, **params):
    model, target = MODELS[name]
    model = clone(model)
    if fitted:
        model.fit(X, target(X))
    # Parameters of the fit that fails, and none of the model that stays.
    return model.set_params(**params), target


@every_model
@also_first
def test_bad_targets_or_weights(name, fitted):
    model, target = model_of(name, fitted)
    y = target(OTHER)
    with left_as_it_was(model, ValueError, "inconsistent|sample_weight"):
        if y is None:
            model.fit(OTHER, sample_weight=-np.ones(len(OTHER)))
        else:
            model.fit(OTHER, y[:-1])
    if y is not None and y.ndim == 1:
        with left_as_it_was(model, ValueError):
            model.fit(OTHER, np.full(len(OTHER), np.nan))


@every_model
@also_first
def test_bad_tables(name, fitted):
    model, target = model_of(name, fitted)
    broken = OTHER.copy()
    broken[3, 1] = np.nan
    with left_as_it_was(model, ValueError, "contains NaN"):
        model.fit(broken, target(OTHER))


@every_model
@also_first
@pytest.mark.parametrize("k", [1, 2])
def test_a_kernel_that_is_interrupted(name, fitted, k, monkeypatch):
    """Localized models, too: they keep the best gate so far only once there is one."""
    model, target = model_of(name, fitted, kernels=[*KERNELS, ("again", product)])
    with left_as_it_was(model, KeyboardInterrupt):
        monkeypatch.setattr(Evaluations, "count", 0)
        monkeypatch.setattr(Evaluations, "stop", k)
        model.fit(OTHER, target(OTHER))


class FailsHalfWay:
    """Newton's method, until the second iteration."""

    def solve(self, loss, domain, **options):
        def observer(progress):
            if progress.iteration == 1:
                raise FloatingPointError("half-way")

        return Newton().solve(loss, domain, **{**options, "observer": observer, "tol": 1e-14})


@pytest.mark.parametrize("name", HAS_SOLVER)
@also_first
def test_a_solver_that_fails_half_way(name, fitted):
    model, target = model_of(name, fitted, solver=FailsHalfWay())
    with left_as_it_was(model, FloatingPointError, "half-way"):
        model.fit(OTHER, target(OTHER))


class RaisingCallback:
    """Raises Ctrl-C where it is asked to, and only in the second fit."""

    def __init__(self, where):
        self.where, self.armed = where, False

    def _reach(self, place):
        if self.armed and place == self.where:
            raise KeyboardInterrupt

    def setup(self, estimator, context):
        self._reach("setup")

    def teardown(self, estimator, context):
        self._reach("teardown")

    def on_fit_task_begin(self, estimator, context, **given):
        self._reach(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, **given):
        self._reach(f"end {context.task_name}")


@pytest.mark.parametrize("name", HAS_CALLBACKS)
@also_first
@pytest.mark.parametrize(
    "where", ["setup", "begin fit", "begin iteration 0", "end iteration 0", "end fit", "teardown"]
)
def test_a_callback_that_raises(name, fitted, where):
    callback = RaisingCallback(where)
    model, target = model_of(name, fitted)
    model.set_callbacks(callback)
    callback.armed = True
    with left_as_it_was(model, KeyboardInterrupt):
        model.fit(OTHER, target(OTHER))


class Interruption(BaseException):
    """Unlike KeyboardInterrupt, localized machines do not take it for a wish to stop here."""


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


@every_model
@pytest.mark.parametrize(
    "fitted", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["refit", "first fit"]
)
def test_an_interruption_anywhere(name, fitted):
    model, target = model_of(name, fitted)
    # What is computed once and kept, such as the form of a domain, is there from now on.
    clone(model).fit(OTHER, target(OTHER))
    another = clone(model)
    with CallsOfThePackage() as calls:
        another.fit(OTHER, target(OTHER))
    # From the first call, which is the decorator's; the last ones set attributes.
    spread = np.linspace(2, calls.count, 5).astype(int)
    last = np.arange(max(2, calls.count - 3), calls.count)
    for stop in np.union1d(spread, last):
        with left_as_it_was(model, Interruption), CallsOfThePackage(stop):
            model.fit(OTHER, target(OTHER))


@pytest.mark.slow
@every_model
def test_a_fit_after_one_that_failed(name):
    model, target = model_of(name, fitted=True)
    expected = clone(model).fit(X, target(X))
    with CallsOfThePackage(300), pytest.raises(Interruption):
        model.fit(OTHER, target(OTHER))
    model.fit(X, target(X))
    for new, old in zip(answers(model), answers(expected), strict=True):
        assert_array_equal(new, old)


@pytest.mark.parametrize("name", ["MKFDA", "MKSVC", "LocalizedSVC"])
def test_kernels_given_by_the_user_stay_unfitted(name):
    model, target = model_of(name, fitted=False)
    union = KernelUnion([("line", Linear()), ("wide", RBF())])
    model.set_params(kernels=union)
    with CallsOfThePackage(300), pytest.raises(Interruption):
        model.fit(OTHER, target(OTHER))
    assert not hasattr(union, "kernels_")
