"""The benchmark of samples that lack views, on a small problem."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from sklearn.impute import KNNImputer

from benchmarks.missing import (
    GRID_QUICK,
    NeighboursOfViews,
    bounds,
    report,
    run_lacking,
    run_scattered,
    with_gaps,
)


def tables(n_rows=60):
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 3
    centres = rng.normal(size=(3, 3, 4))
    return {
        f"view{j}": centre[y] + 0.5 * rng.normal(size=(n_rows, 4))
        for j, centre in enumerate(centres)
    }, y


def test_neighbours_of_views_are_those_of_single_columns():
    X = np.hstack(list(with_gaps(tables(120)[0], 0.4, 0).values()))
    ours, theirs = NeighboursOfViews(), KNNImputer(n_neighbors=5)
    assert_allclose(ours.fit_transform(X[:80]), theirs.fit_transform(X[:80]), rtol=1e-12)
    assert_allclose(ours.transform(X[80:]), theirs.transform(X[80:]), rtol=1e-12)


def test_no_sample_lacks_every_view():
    gaps = with_gaps(tables()[0], 0.7, 0)
    lacking = np.array([np.isnan(table).all(axis=1) for table in gaps.values()])
    assert 0.4 < lacking.mean() < 0.8
    assert not lacking.all(axis=0).any()


def test_contenders_are_judged_on_the_same_gaps_and_the_page_tells():
    options = (GRID_QUICK, 1, 60)
    rows = [*run_scattered("small", *tables(), options), *run_lacking("small", *tables(), options)]
    assert all(row.mean > 0.5 for row in rows)
    page = report(rows)
    assert bounds(rows) in page
    assert page.count("| conditional") == 3
    assert page.count("| trained without the view") == 1
