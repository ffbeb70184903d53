"""The benchmark of certificates on some fits, and the oracle against known answers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq

from benchmarks import _command
from benchmarks._certificate_oracle import (
    FeatureSquare,
    Machine,
    Wide,
    machine_bounds,
    outside,
    regression_turn,
    support,
)
from benchmarks._certificate_smooth import SmoothFit, WideLogistic, draw_smooth
from benchmarks.certificates import (
    DRAWN,
    Verdict,
    counted,
    examine,
    examined,
    main,
    section,
)
from manykernels.domains import lp_domain
from manykernels.losses.smooth import Logistic
from manykernels.losses.smooth_loss import SmoothLoss


@pytest.mark.parametrize("kind", list(DRAWN))
def test_no_certified_fit_is_wrong(kind):
    verdicts = [examine(seed, kind) for seed in range(30)]
    text = "\n".join(section(counted(verdicts)))
    assert "certified fits 0 are above 2 · tol, or outside." in text
    certified = [verdict for verdict in verdicts if verdict.status == "certified"]
    assert len(certified) >= 20
    claims_too_much = replace(certified[0], found=3.0 * certified[0].tol)
    assert claims_too_much.is_wrong
    text = "\n".join(section(counted([claims_too_much])))
    assert "Of 1 certified fits 1 are above 2 · tol, or outside." in text
    assert f"| {claims_too_much.seed} " in text


FOUND = [
    # Weights outside of the ball, as 1/C had been raised.
    *[("joint", seed) for seed in (20, 71, 319)],
    # Dual variables that grew until they overflowed.
    ("joint", 1369),
    # Coefficients whose sum is not zero.
    *[("regions", seed) for seed in (399, 593)],
    # Rounding errors of features.
    *[("features", seed) for seed in (15, 145, 389, 436)],
]


@pytest.mark.parametrize(("kind", "seed"), FOUND)
def test_fits_that_claimed_too_much(kind, seed):
    assert not examine(seed, kind).is_wrong


WRONGLY_DOUBTED = [
    # Directions of a discriminant without a part in the outputs.
    *[("joint", seed) for seed in (201661, 401813)],
    # Biases that belong to a mean in double precision.
    *[("features", seed) for seed in (101074, 101965, 102276, 102467, 301611, 400540)],
    # Products of features and dual variables from matrices of large numbers.
    ("features", 300801),
    # An identity that is lost in such matrices.
    *[("features", seed) for seed in (301558, 301997)],
    # Dual variables that are differences of large numbers, from features of other blocks of rows.
    *[("features", seed) for seed in (100664, 301695)],
]


@pytest.mark.parametrize(("kind", "seed"), WRONGLY_DOUBTED)
def test_fits_whose_claims_hold(kind, seed):
    verdict = examine(seed, kind)
    assert verdict.status == "certified"
    assert not verdict.is_wrong


def test_bounds_of_large_features():
    """The exact minimum, in rational numbers, where λ is 1e-22 of the squares of the features."""
    rng = np.random.default_rng(0)
    roots = 1e11 * rng.standard_normal((9, 2))
    targets = rng.standard_normal((9, 1))
    a, b = ([Fraction(float(entry)) for entry in column] for column in roots.T)
    h = [Fraction(float(entry)) for entry in targets[:, 0]]
    aa, ab, bb = _product(a, a) + 1, _product(a, b), _product(b, b) + 1
    ah, bh = _product(a, h), _product(b, h)
    explained = (bb * ah**2 - 2 * ab * ah * bh + aa * bh**2) / (aa * bb - ab**2)
    exact = _product(h, h) - explained
    square = FeatureSquare([column[:, None].astype(Wide) for column in roots.T], targets)
    bounds = square.bounds([1.0, 1.0], np.inf)
    assert float(bounds.upper) == pytest.approx(float(exact), rel=1e-12)
    assert float(bounds.lower) == pytest.approx(float(exact), rel=1e-12)
    assert bounds.lower <= bounds.upper * (1 + 1e-15)


def _product(first, second):
    return sum(x * y for x, y in zip(first, second, strict=True))


def test_directions_that_say_nothing_are_left_out():
    outputs = np.array([[1.0, 1e-15], [-1.0, 2e-15], [0.0, -3e-15]], dtype=Wide)
    targets = np.array([[1.0], [-1.0], [5.0]])
    predicted = outputs + 1e-15
    turn = regression_turn(targets, outputs, np.eye(2), 0.0, predicted)
    np.testing.assert_allclose(turn.astype(float), [[1.0], [0.0]], atol=1e-12)


@pytest.mark.parametrize("kind", ["kernels", "features", "smooth"])
def test_weights_in_another_order_are_wrong(kind):
    """The oracle objects to most models whose weights were exchanged."""
    doubted = []
    for seed in range(40):
        fit = DRAWN[kind](seed)
        try:
            model, warned = fit.run()
        except ValueError:
            continue
        weights = model.weights_
        if warned or weights.ndim > 1 or np.ptp(weights) < 0.1:
            continue
        if kind == "smooth":
            model = replace(model, solution=replace(model.solution, weights=weights[::-1]))
        else:
            model.weights_ = weights[::-1].copy()
        bounds, certificate = fit.judge(model), model.certificate_
        found = max(bounds.relative_gap, bounds.distance(certificate.primal))
        doubted.append(found > 2.0 * certificate.tol)
    assert len(doubted) >= 10
    assert np.mean(doubted) > 0.8


def smooth_fit(seed):
    """A fit whose function is not refused, and the function."""
    while True:
        fit = draw_smooth(seed)
        try:
            return fit, fit.make()
        except ValueError:
            seed += 1000


@pytest.mark.parametrize("seed", range(40))
def test_smooth_functions_written_twice(seed):
    fit, function = smooth_fit(seed)
    f = np.random.default_rng(seed).normal(size=(fit.n_samples, function.n_outputs))
    definition, wide = fit.definition, f.astype(Wide)
    assert float(definition.value(wide)) == pytest.approx(function.value(f), rel=1e-10)
    slopes = definition.gradient(wide)
    size = np.abs(function.gradient(f)).max()
    np.testing.assert_allclose(
        slopes.astype(float), function.gradient(f), rtol=1e-9, atol=1e-12 * size
    )
    again = definition.gradient(definition.inverse(-slopes, wide + 0.1 * np.sin(wide)))
    np.testing.assert_allclose(again.astype(float), slopes.astype(float), atol=1e-14 * size)
    balanced = definition.gradient(definition.balanced(wide))
    assert not fit.definition.has_bias or np.abs(balanced.sum(axis=0)).max() <= 1e-15 * size


def test_bounds_of_a_logistic_machine_that_is_known():
    """Samples at ±1 on a line: the slope w minimises 2 log(1 + exp(−w)) + w²/2."""
    w = brentq(lambda w: w - 2.0 / (1.0 + np.exp(w)), 0.0, 2.0, xtol=1e-15)
    expected = 2.0 * np.log1p(np.exp(-w)) + 0.5 * w**2
    options = {"p": 1.0, "reg": 1.0, "tol": 1e-8, "inner_tol": 1e-10, "solver": "newton"}
    options |= {"normalize": None, "center": False}
    labels, mass = np.array([0, 1]), np.ones(2)
    kernels = [np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros((2, 2))]
    fit = SmoothFit(
        options, kernels, None, mass, lambda: Logistic([-1, 1]), WideLogistic(labels, mass), None
    )
    model, warned = fit.run()
    bounds = fit.judge(model)
    assert not warned
    assert float(bounds.upper) == pytest.approx(expected, rel=1e-10)
    assert float(bounds.lower) == pytest.approx(expected, rel=1e-10)
    assert float(bounds.predicted) == pytest.approx(expected, rel=1e-10)
    # Other weights are worse, and the bound remains below.
    loss = SmoothLoss(model.stack, Logistic([-1, 1]), 1.0)
    worse = replace(model.solution, weights=np.array([0.5, 0.5]))
    worse = replace(worse, evaluation=loss.evaluate(worse.weights))
    doubted = fit.judge(replace(model, solution=worse))
    assert doubted.upper > expected + 0.01
    assert doubted.lower <= expected + 1e-10


def test_results_are_kept(tmp_path):
    path = tmp_path / "results.jsonl"
    first = list(examined("kernels", range(3), path))
    assert len(path.read_text().splitlines()) == 3
    again = list(examined("kernels", range(4), path))
    assert again[:3] == first
    assert len(path.read_text().splitlines()) == 4


def test_other_seeds_are_parts_of_their_own(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    assert main(["--sets", "kernels", "--fits", "3", "--write"]) == 0
    assert main(["--sets", "kernels,joint", "--fits", "2", "--first", "5000", "--write"]) == 0
    text = (tmp_path / "certificates.md").read_text(encoding="utf-8")
    assert "Seeds 0 to 2." in text
    assert [line.split("|")[2:4] for line in text.splitlines() if "| 5000 " in line] == [
        [" 5000        ", "            2 "]
    ] * 2


def test_weights_outside_are_wrong():
    inside = Verdict(0, "MKFDA", "MKFDA()", "certified", tol=1e-3)
    assert not inside.is_wrong
    assert replace(inside, outside=1e-6).is_wrong
    assert outside(np.array([0.6, 0.8]), 2.0) < 1e-15
    assert outside(np.array([0.6, 0.9]), 2.0) > 0.08
    assert outside(np.array([0.6, 0.8, 0.8, 0.8]), 2.0, 2) > 0.1


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
def test_support_functions(p):
    gains = np.array([1.0, 3.0, 0.0, 2.0])
    assert float(support(gains.astype(Wide), p)) == pytest.approx(lp_domain(p).support(gains))


def test_bounds_of_a_machine_that_is_known():
    """Two samples at ±1 on a line: v = ±½, b = 0, F = ½."""
    kernel = np.outer([1, -1], [1, -1]).astype(Wide)
    machine = Machine(np.array([1.0, -1.0]), np.array([0.0, -9.0]), np.array([9.0, 0.0]))
    bounds = machine_bounds([kernel], [machine], [[0.5, -0.5]], [0.0], [1.0], 2.0, None)
    assert float(bounds.upper) == float(bounds.lower) == 0.5
    worse = machine_bounds([kernel], [machine], [[0.4, -0.4]], [0.0], [1.0], 2.0, None)
    assert worse.upper > 0.5
    assert worse.lower <= 0.5
