"""The benchmark of samples that lack views, on a small problem."""

from __future__ import annotations

import numpy as np

from benchmarks.missing import GRID_QUICK, bounds, report, run_lacking, run_scattered, with_gaps


def tables(n_rows=60):
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 3
    centres = rng.normal(size=(3, 3, 4))
    return {
        f"view{j}": centre[y] + 0.5 * rng.normal(size=(n_rows, 4))
        for j, centre in enumerate(centres)
    }, y


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
