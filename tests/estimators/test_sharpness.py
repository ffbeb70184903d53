"""The sharpness of regions that is chosen: by hand, where regions help, where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVR,
    KernelUnion,
)
from manykernels.estimators.regional import CANDIDATES
from manykernels.gating.descent import ClassJudge, HeldOutCurve, HeldOutLosses, ValueJudge
from manykernels.kernels import Linear
from manykernels.utils.folds import stratified_folds
from tests.estimators.registry import made
from tests.problems import slow

_rng = np.random.default_rng(0)
X = _rng.uniform(-1, 1, (120, 2))
CORNER = (X[:, 1] > np.abs(X[:, 0])).astype(int)
VALUES = np.abs(X[:, 0])
NOISE = _rng.integers(2, size=len(X))
LINES = [("line", Linear()), ("first", Linear().on([0]))]
KINDS = {
    "classes": (ConvexLocalizedSVC, MKSVC, CORNER),
    "values": (ConvexLocalizedSVR, MKSVR, VALUES),
    "discriminant": (ConvexLocalizedFDA, MKFDA, CORNER),
}


@pytest.mark.parametrize("kind", KINDS)
def test_regions_are_sharp_where_they_help(kind):
    local, plain, y = KINDS[kind]
    model = local(LINES, regions=4).fit(X, y)
    assert model.regions_.sharpness in CANDIDATES[1:]
    assert model.score(X, y) > plain(LINES).fit(X, y).score(X, y) + 0.02


@pytest.mark.slow
@pytest.mark.parametrize("local", [ConvexLocalizedSVC, ConvexLocalizedFDA])
def test_noise_has_no_regions(local):
    chosen = [local(LINES).fit(X, np.roll(NOISE, k)).regions_.sharpness for k in range(0, 100, 20)]
    assert chosen.count(0.0) >= 4


@pytest.mark.parametrize("kind", KINDS)
def test_where_regions_do_not_help_the_model_is_the_plain_one(kind):
    local, plain, _ = KINDS[kind]
    noisy = X[:, 0] + np.random.default_rng(1).normal(scale=0.5, size=len(X))
    y = noisy if kind == "values" else (noisy > 0).astype(int)
    model, expected = local(LINES).fit(X, y), plain(LINES).fit(X, y)
    assert_allclose(model.weights_, [expected.weights_], rtol=1e-11)
    assert model.regions_.n_regions == 1
    assert_array_equal(model.memberships(X), np.ones((len(X), 1)))
    decide = "predict" if kind == "values" else "decision_function"
    assert_allclose(getattr(model, decide)(X), getattr(expected, decide)(X), atol=1e-8)


@pytest.mark.parametrize("kind", ["classes", *slow("values")])
def test_the_choice_by_hand(kind):
    """Estimators of a given sharpness, fitted without each fold."""
    local, _, y = KINDS[kind]
    stack = KernelUnion(LINES).fit(X)(X)
    labels = np.zeros(len(y), int) if kind == "values" else y
    folds = stratified_folds(labels, np.arange(len(y)), 3)
    judge = ValueJudge(y) if kind == "values" else ClassJudge.of(y, 2, None)
    judged = []
    for sharpness in CANDIDATES:
        outputs = np.empty((len(y), 1))
        for test in folds:
            train = np.delete(np.arange(len(y)), test)
            model = made(local, "precomputed", regions=4, sharpness=sharpness)
            model.fit(stack[np.ix_(train, train)], y[train])
            decide = getattr(model, "decision_function", model.predict)
            outputs[test, 0] = decide(stack[np.ix_(test, train)])
        samples = np.concatenate(folds)
        judged.append(judge(outputs[samples], samples))
    expected = CANDIDATES[HeldOutCurve(judged).clearly_best]
    chosen = local("precomputed", regions=4).fit(stack, y)
    assert chosen.regions_.sharpness == expected
    given = made(local, "precomputed", regions=4, sharpness=expected).fit(stack, y)
    assert_allclose(chosen.weights_, given.weights_)


def test_a_small_gain_is_not_clear():
    rng = np.random.default_rng(1)
    losses = rng.uniform(size=50)
    plain = HeldOutLosses(losses, np.zeros(50))
    # Half of them better by 1.0, half of them worse by 0.98.
    noisy = HeldOutLosses(losses - np.tile([1.0, -0.98], 25), np.zeros(50))
    better = HeldOutLosses(losses - 0.01, np.zeros(50))
    worse = HeldOutLosses(losses - 0.5, np.ones(50))
    assert HeldOutCurve([plain, better]).clearly_best == 1
    assert HeldOutCurve([plain, worse]).clearly_best == 0
    assert noisy.loss < plain.loss
    assert HeldOutCurve([plain, noisy]).clearly_best == 0
    assert HeldOutCurve([plain, plain]).clearly_best == 0


def test_counts_are_repetitions():
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 4, 30).astype(float)
    first, second = rng.uniform(size=(2, 30))
    weighted, repeated = [], []
    for losses in (first, second):
        weighted.append(HeldOutLosses(losses, losses, counts))
        again = np.repeat(losses, counts.astype(int))
        repeated.append(HeldOutLosses(again, again))
        assert weighted[-1].loss == pytest.approx(repeated[-1].loss)
    for a, b in [(0, 1), (1, 0)]:
        found = weighted[a].clearly_better(weighted[b])
        assert found == repeated[a].clearly_better(repeated[b])


@pytest.mark.filterwarnings("ignore:There are . regions")
def test_few_samples_and_one_region_have_plain_weights():
    assert made(ConvexLocalizedSVC, LINES).fit(X[:2], [0, 1]).regions_.sharpness == 0.0
    assert made(ConvexLocalizedSVC, LINES, regions=1).fit(X, CORNER).regions_.sharpness == 0.0


def test_a_given_sharpness_is_kept():
    assert (
        made(ConvexLocalizedSVC, LINES, sharpness=1.25).fit(X, CORNER).regions_.sharpness == 1.25
    )
    with pytest.raises(ValueError, match="sharpness"):
        made(ConvexLocalizedSVC, LINES, sharpness="sharp").fit(X, CORNER)
