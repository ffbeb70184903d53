"""Localized estimators and their plain twins, for tests of penalties and early stopping."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKOneClassSVM,
)
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import made

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (90, 2))
X_TEST = rng.uniform(-1, 1, (400, 2))


def corner(table):
    """Classes with one straight line between them on each side."""
    return table[:, 1] > np.abs(table[:, 0])


LINES = [("left", Linear()), ("right", Linear())]
# All of them count in plain multiple kernel learning.
PAIRS = [("first", RBF(1.0).on([0])), ("second", RBF(1.0).on([1])), ("both", RBF(2.0))]
THREE = (X[:, 0] > 0).astype(int) + corner(X)
VALUES = np.abs(X[:, 0]) + 0.2 * X[:, 1]
TWINS = {
    "svc": (LocalizedSVC, MKSVC, {"C": 2.0}, corner(X)),
    "svc of three": (LocalizedSVC, MKSVC, {}, THREE),
    "separate": (LocalizedSVC, MKSVC, {"multi_class": "separate"}, THREE),
    "svr": (LocalizedSVR, MKSVR, {"epsilon": 0.05}, VALUES),
    "one class": (LocalizedOneClassSVM, MKOneClassSVM, {"nu": 0.3}, None),
    "fda": (LocalizedFDA, MKFDA, {}, corner(X)),
    "fda of three": (LocalizedFDA, MKFDA, {}, THREE),
}
every_twin = pytest.mark.parametrize("twin", TWINS)
JUDGED = pytest.mark.parametrize("twin", [name for name in TWINS if name != "one class"])


def localized(twin, kernels=PAIRS, **params):
    kind, _, own, y = TWINS[twin]
    return made(kind, kernels, **{**own, **params}).fit(X, y)


def plain(twin, kernels=PAIRS):
    """Nearer to the optimum than the weights of a gate need be."""
    _, kind, own, y = TWINS[twin]
    return kind(kernels, tol=1e-9, **own).fit(X, y)


def scores(model, data=X_TEST):
    decide = model.predict if isinstance(model, LocalizedSVR | MKSVR) else model.decision_function
    return decide(data)


def assert_plain(model, twin, expected=None):
    """Whether a model is that of plain multiple kernel learning."""
    expected = plain(twin) if expected is None else expected
    # The relative gap of plain weights is 1e-4, as a rule far less; objectives are flat there.
    assert_allclose(model.plain_weights_, expected.weights_, atol=2e-3)
    found, known = scores(model), scores(expected)
    size = np.abs(known).max()
    if "fda" in twin:
        # Outputs are the same; calibration of MKFDA also knows how weights change with samples.
        known = np.reshape(known, (len(known), -1)).T
        for column, other in zip(np.reshape(found, (len(found), -1)).T, known, strict=True):
            assert np.corrcoef(column, other)[0, 1] > 1 - 1e-6
        assert_allclose(found.T, known.squeeze(), rtol=0, atol=0.01 * size)
    else:
        atol = 1e-3 if twin in ("separate", "svr") else 1e-6
        assert_allclose(found, known, rtol=0, atol=atol * size)


def steps(model):
    """Steps of the final descent, which may be none."""
    return len(model.history_["objective"]) - 1
