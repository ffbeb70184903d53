"""The benchmark of samples that lack views, on a small problem."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.impute import KNNImputer

from benchmarks._command import with_environment
from benchmarks.missing import (
    GRID_QUICK,
    NeighboursOfViews,
    Row,
    bounds,
    page,
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
    text = page(with_environment({"small": {"rows": rows}}))
    assert text.count("| conditional") == 3
    assert text.count("| trained without the view") == 1


@pytest.mark.parametrize(("mean", "judged"), [(0.95, "held"), (0.951, "MISSED")])
def test_the_better_completion_is_compared_with_the_best_imputer(mean, judged):
    means = {"mean": 0.9, "conditional": 0.95, "iterative": 0.8, "iMML MOFA": mean}
    rows = [Row("small", "40% missing", name, value, 0, 1, 2.0) for name, value in means.items()]
    line = bounds(rows)
    assert line.startswith("- small, 40% missing: conditional 0.950, best imputer (iMML MOFA)")
    assert line.endswith(judged)


def test_rows_of_imml_are_shown_beside_the_others():
    rows = [Row("a", what, "mean", 0.9, 0.8, 1.0, 2.0) for what in ("20%", "40%")]
    foreign = [Row("a", "20%", "iMML MOFA", 0.9, 0.8, 1.0, 2.0)]
    text = page(with_environment({"a": {"rows": rows}, "iMML on a": {"rows": foreign}}))
    table = [line for line in text.splitlines() if line.startswith("| a ")]
    assert ["iMML" in line for line in table] == [False, True, False]
