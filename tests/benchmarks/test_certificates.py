"""The benchmark of certificates on some fits, and the oracle against known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks._certificate_oracle import Machine, Wide, machine_bounds, outside, support
from benchmarks._certificate_problems import DRAWN
from benchmarks.certificates import Verdict, examine, examined, report
from manykernels.domains import lp_domain


@pytest.mark.parametrize("kind", list(DRAWN))
def test_no_certified_fit_is_wrong(kind):
    verdicts = [examine(seed, kind) for seed in range(30)]
    text = report(verdicts)
    assert "certified fits 0 are above 2 · tol, or outside." in text
    certified = [verdict for verdict in verdicts if verdict.status == "certified"]
    assert len(certified) >= 20
    claims_too_much = replace(certified[0], found=3.0 * certified[0].tol)
    assert claims_too_much.is_wrong
    assert f"| {claims_too_much.seed} " in report([claims_too_much])


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


def test_results_are_kept(tmp_path):
    path = tmp_path / "results.jsonl"
    first = list(examined("kernels", range(3), path))
    assert len(path.read_text().splitlines()) == 3
    again = list(examined("kernels", range(4), path))
    assert again[:3] == first
    assert len(path.read_text().splitlines()) == 4


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
