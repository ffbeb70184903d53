"""The benchmark of certificates on some fits, and the oracle against known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks._certificate_oracle import Machine, Wide, machine_bounds, support
from benchmarks.certificates import examine, report
from manykernels.domains import lp_domain


@pytest.mark.parametrize("kind", ["kernels", "features"])
def test_no_certified_fit_is_wrong(kind):
    verdicts = [examine(seed, kind) for seed in range(60)]
    text = report(verdicts)
    assert "0 have an independent gap above 2 · tol" in text
    certified = [verdict for verdict in verdicts if verdict.status == "certified"]
    assert len(certified) >= 40
    claims_too_much = replace(certified[0], found=3.0 * certified[0].tol)
    assert claims_too_much.is_wrong
    assert f"| {claims_too_much.seed} " in report([claims_too_much])


def test_a_greatest_cut_of_zero():
    """Its relative rise was a division by zero."""
    verdict = examine(578, "features")
    assert "solver=sip" in verdict.title
    assert not verdict.is_wrong


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
