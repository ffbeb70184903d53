"""Sample weights that double precision cannot count are left out or refused, by row and value."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVR,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKOneClassSVM,
)
from manykernels.baselines import KimFDA
from manykernels.kernels import RBF, Linear

M = 40
rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(M, 3)), rng.normal(size=(10, 3))
Y = (X[:, 0] + 0.3 * rng.normal(size=M) > 0).astype(int)
T = X[:, 0] + 0.1 * rng.normal(size=M)
KERNELS = [("line", Linear()), ("wide", RBF(0.5))]
SEEDED = {"random_state": 0}
MODELS = {
    "MKFDA": (MKFDA(KERNELS), Y),
    "MKFDACV": (MKFDACV(KERNELS, ps=[1, 2], regs=[0.1, 1.0]), Y),
    "KimFDA": (KimFDA(KERNELS, reg=0.1), Y),
    "MKSVC": (MKSVC(KERNELS), Y),
    "MKSVR": (MKSVR(KERNELS), T),
    "MKOneClassSVM": (MKOneClassSVM(KERNELS), None),
    "LocalizedFDA": (LocalizedFDA(KERNELS, **SEEDED), Y),
    "LocalizedSVC": (LocalizedSVC(KERNELS, **SEEDED), Y),
    "LocalizedSVR": (LocalizedSVR(KERNELS, **SEEDED), T),
    "LocalizedOneClassSVM": (LocalizedOneClassSVM(KERNELS, **SEEDED), None),
}
DISCRIMINANTS = [name for name in MODELS if "FDA" in name]
every_model = pytest.mark.parametrize("name", MODELS)


def weights(row, value, others=1.0):
    w = np.full(M, others)
    w[row] = value
    return w


def fit(name, sample_weight):
    model, y = MODELS[name]
    return clone(model).fit(X, y, sample_weight=sample_weight)


def outputs(model):
    return (
        model.decision_function(NEW) if hasattr(model, "decision_function") else model.predict(NEW)
    )


@every_model
@pytest.mark.parametrize("tiny", [1e-200, 5e-324, 1e-17])
def test_a_weight_that_is_rounding_beside_the_others_is_none(name, tiny):
    assert_array_equal(outputs(fit(name, weights(7, tiny))), outputs(fit(name, weights(7, 0.0))))


@every_model
def test_small_weights_are_not_dropped(name):
    """Weights of 1/m, of boosting, and one that is far below, but above rounding."""
    model = fit(name, weights(7, 1e-10) / M)
    assert len(model._kept_rows) == M


@every_model
@pytest.mark.parametrize("value", [1e-200, 1e-13, 1e13, 1e30, 1e300])
def test_weights_all_too_small_or_large(name, value):
    shown = re.escape(f"{value:g}")
    message = (
        rf"sample_weight is {shown} at row 0, the median .* between 1e-12 and 1e\+12, "
        ".*Divide them by their mean"
    )
    with pytest.raises(ValueError, match=message):
        fit(name, np.full(M, value))


@every_model
@pytest.mark.parametrize("value", [1e30, 1e300])
def test_a_weight_beside_which_the_others_are_lost(name, value):
    limit = r"1e\+06" if name in DISCRIMINANTS else r"1e\+12"
    shown = re.escape(f"{value:g}")
    message = rf"sample_weight is {shown} at row 7, more than {limit} times the median .*, 0\.5:"
    with pytest.raises(ValueError, match=message):
        fit(name, weights(7, value, others=0.5))


@pytest.mark.parametrize("name", ["MKFDA", "KimFDA", "MKSVC", "MKSVR", "MKOneClassSVM"])
def test_a_million_can_be_counted(name):
    """Rounding depends on the order of rows: what it changes stays small."""
    model, y = MODELS[name]
    w = weights(7, 1e6)
    order = np.random.default_rng(1).permutation(M)
    shuffled = clone(model).fit(X[order], None if y is None else y[order], sample_weight=w[order])
    expected = outputs(fit(name, w))
    assert_allclose(outputs(shuffled), expected, rtol=0, atol=1e-3 * np.abs(expected).max())


def test_boosting_may_let_weights_vanish():
    boosted = AdaBoostClassifier(MKSVC(KERNELS, C=10.0), n_estimators=5, random_state=0)
    assert boosted.fit(X, Y).score(X, Y) > 0.8


def test_masked_weights():
    with pytest.raises(ValueError, match="sample_weight has a masked entry at 3"):
        fit("MKSVC", np.ma.masked_array(np.ones(M), np.arange(M) == 3))
