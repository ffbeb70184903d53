"""Matrices row by row: the same machines, from fewer rows, none of them computed twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.smo import box
from manykernels.smo.box import Ascent
from manykernels.smo.loops import gather
from manykernels.smo.program import Rows
from tests.smo.test_box import KINDS, check, few, gaussian, hinge, machine, points, seeds


class Watched(Rows):
    """Rows of K, NaN until they are needed; `filled` has those that were, in order."""

    def __init__(self, K):
        values = np.full(K.shape, np.nan)
        self.filled = []

        def fill(rows):
            values[rows] = K[rows]
            self.filled += list(rows)

        super().__init__(values, fill, K.diagonal())


def two_kernels(m=150, seed=0):
    X = points(m, seed)
    return X, gaussian(X), gaussian(X, 0.6)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kind", KINDS)
def test_machines_are_the_same_row_by_row(kind, C):
    X, near, K = two_kernels()
    p = machine(kind, X, C)
    start = Ascent(near, p)
    start.run_to_gap(1e-9)
    for v in (None, start.v):
        rows = Watched(K)
        answers = []
        for matrix in (K, rows):
            ascent = Ascent(matrix, p, v)
            ascent.run_to_gap(1e-9)
            answers.append(check(K, p, ascent.solution()))
        whole, lazy = answers
        assert_array_equal(lazy.v, whole.v)
        assert lazy.n_steps == whole.n_steps
        assert len(set(rows.filled)) == len(rows.filled)


def test_a_warm_start_reads_few_rows_besides_those_of_support_vectors():
    X, near, K = two_kernels(400)
    # Classes that do not overlap have few support vectors.
    p = hinge(np.sign(X[:, 0]), 10.0)
    start = Ascent(near, p)
    start.run_to_gap(1e-9)
    rows = Watched(K)
    ascent = Ascent(rows, p, start.v)
    ascent.run_to_gap(1e-9)
    n_support = int((ascent.v != 0).sum())
    assert n_support < 100
    assert len(rows.filled) < 2 * n_support + 50
    assert np.isnan(rows.values).any()


@few
@given(st.sets(st.integers(0, 19)), st.sets(st.integers(0, 19), min_size=1), seeds)
def test_parts_have_the_values_of_the_whole(before, kept, seed):
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((20, 20))
    K = K + K.T
    rows = Watched(K)
    rows.need(np.array(sorted(before), dtype=np.intp))
    chosen = np.array(sorted(kept))
    part = rows.part(chosen)
    assert_array_equal(part.ready, [k in before for k in chosen])
    assert_array_equal(part.diagonal, K.diagonal()[chosen])
    assert_array_equal(part.whole(), K[np.ix_(chosen, chosen)])
    assert sorted(rows.filled) == sorted(before | kept)
    assert_array_equal(gather(K, chosen), K[np.ix_(chosen, chosen)])


@few
@given(seeds)
def test_products_need_the_rows_of_entries_other_than_zero(seed):
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((15, 15))
    K = K + K.T
    v = rng.standard_normal(15) * (rng.uniform(size=15) < 0.4)
    rows = Watched(K)
    assert_allclose(rows.product(v), K @ v, rtol=1e-12, atol=1e-13)
    assert_array_equal(np.sort(rows.filled), np.flatnonzero(v))
    assert_array_equal(rows.whole(), K)
    assert len(rows.filled) == 15


def test_a_complete_matrix_is_not_copied():
    K = gaussian(points(5))
    rows = Rows.of(K)
    assert rows.whole() is K
    assert Rows.of(rows) is rows


@pytest.mark.parametrize("kind", KINDS)
def test_beginning_with_the_nearest_variables_changes_nothing(kind, monkeypatch):
    X, near, K = two_kernels(300)
    p = machine(kind, X, 3.0, share=0.1)
    start = Ascent(near, p)
    start.run_to_gap(1e-9)
    answers = []
    for share in (box._NEAREST, np.inf):
        if np.isinf(share):
            # All of them: as after a cold start.
            monkeypatch.setattr(box._ActiveSet, "nearest", lambda active, bias: active)
        ascent = Ascent(K, p, start.v)
        ascent.run(1e-8)
        answers.append(check(K, p, ascent.solution()))
        assert answers[-1].violation <= 1e-8
    assert answers[0].dual == pytest.approx(answers[1].dual, rel=1e-9)
