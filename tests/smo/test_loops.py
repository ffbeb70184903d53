"""Compiled loops of machines against plain versions of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from manykernels.smo.loops import best_bias, snap, upper_bound
from tests.smo.test_box import KINDS, few, machine, points, seeds

STEP_ERROR = 1e-13


def snapped_one_by_one(v, lower, upper, width, error):
    reach = error * np.minimum(upper - lower, np.abs(v).max())
    snapped = np.where(np.abs(v - upper) <= reach, upper, v)
    snapped = np.where(np.abs(v - lower) <= reach, lower, snapped)
    return np.where(np.abs(v) <= reach, 0.0, snapped) if width > 0 else snapped


@few
@given(seeds, st.sampled_from([0.0, 0.1]), st.booleans())
def test_snapping_to_bounds(seed, width, bounded):
    rng = np.random.default_rng(seed)
    upper = rng.uniform(0.5, 2.0, 12)
    lower = -upper if width else np.zeros(12)
    nudge = rng.choice([0.0, 0.3, 3.0], 12) * STEP_ERROR * rng.choice([-1.0, 1.0], 12)
    v = np.clip(rng.choice([0.0, 0.5, 1.0], 12) * upper + nudge, lower, upper)
    if not bounded:
        upper = np.full(12, np.inf)
    expected = snapped_one_by_one(v, lower, upper, width, STEP_ERROR)
    found = v.copy()
    moved = snap(found, lower, upper, width, STEP_ERROR)
    assert_array_equal(found, expected)
    assert moved == (expected != v).any()


@few
@given(st.sampled_from(KINDS), st.integers(4, 40), st.floats(1e-3, 1e3), seeds)
def test_no_bias_is_better_than_the_best(kind, m, size, seed):
    rng = np.random.default_rng(seed)
    p = machine(kind, points(m, seed), rng.uniform(0.1, 2.0, m), seed)
    slopes = p.linear - size * rng.standard_normal(m)
    terms = p.ridge, p.lower, p.upper, p.width, p.total
    found = upper_bound(slopes, *terms, best_bias(slopes, *terms))
    # The least P of straight pieces is where two of them meet; between them are others.
    ends = np.concatenate([slopes, slopes - p.width, slopes + p.width])
    others = rng.uniform(ends.min() - size, ends.max() + size, 200)
    least = min(upper_bound(slopes, *terms, b) for b in (*ends, *others))
    ends = np.concatenate([p.lower, p.upper])
    rounding = 1e-13 * np.abs(slopes).max() * np.abs(ends[np.isfinite(ends)]).sum()
    assert found <= least + rounding + 1e-12 * abs(least)
