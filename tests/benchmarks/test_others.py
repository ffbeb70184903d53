"""Stacking and xRFM beside ours: one division, differences, the page."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from scipy import sparse

from benchmarks import others
from benchmarks._default_sets import SETS
from benchmarks._tables import measured_with

# Predicts the target of the training row that is nearest in the first column.
RUNNER = """
import sys
import numpy as np

with np.load(sys.argv[1]) as arrays:
    X, y, new = arrays["X"], arrays["y"], arrays["new"]
    nearest = np.abs(new[:, :1] - X[:, 0]).argmin(axis=1)
np.savez(sys.argv[2], predicted=y[nearest], seconds=0.5)
"""


def part(regression, n_views=1, **scores):
    return {
        "environment": measured_with(),
        "n_train": 40,
        "n_views": n_views,
        "regression": regression,
        "scores": scores,
    }


@pytest.mark.parametrize("kind", ["trees", "logistic"])
def test_stacking_learns_from_every_view(kind):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    words = sparse.csr_matrix((rng.random((80, 12)) < 0.2 + 0.5 * y[:, None]).astype(float))
    tables = {"a": sparse.csr_matrix(rng.normal(size=(80, 3))), "b": words}
    model = others.stacked(tables, kind).fit(others.joined(tables), y)
    assert [name for name, _ in model.estimators] == ["a", "b"]
    assert model.score(others.joined(tables), y) > 0.9
    weights = np.abs(model.final_estimator_.coef_).ravel()
    assert weights[1] > 2 * weights[0]


@pytest.mark.parametrize("name", ["wine", "diabetes"])
def test_xrfm_gets_standardised_columns_and_its_answers_are_translated(
    name, monkeypatch, tmp_path
):
    data = SETS[name]
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=60)
    y = 50.0 + 9.0 * numbers if data.regression else np.where(numbers > 0, "high", "low")
    tables = {"X": np.column_stack([1000.0 + 7.0 * numbers, rng.normal(size=60)])}
    runner = tmp_path / "runner.py"
    runner.write_text(RUNNER)
    monkeypatch.setattr(others, "RUNNER", runner)
    monkeypatch.setenv(others.VARIABLE, sys.executable)
    score, seconds = others.xrfm(data, tables, y, np.arange(40), np.arange(40, 60))
    assert score > 0.9
    assert seconds == 0.5


def test_the_page():
    ours, other = [(0.9, 1.0), (0.8, 3.0)], [(0.92, 0.5), (0.86, 0.5)]
    several = {"stacked trees": other, "stacked logistic": ours}
    page = others.page(
        {
            "mfeat": part(False, 6, MKFDACV=ours, **several),
            "wine": part(False, MKFDACV=ours, xRFM=other),
            "diabetes": part(True, MKRidgeCV=other, xRFM=ours),
        }
    )
    assert "- stacked trees minus MKFDACV: +4.0 points in the mean of 1 sets" in page
    assert "better on 1 (Wine)" in page
    assert "- xRFM minus MKRidgeCV: -4.0 points" in page
    assert re.search(r"\| Wine +\| +40 \| +85\.0 \| +2 \| +\+4\.0 ± 2\.0 \| 0\.5 \|", page)
    assert "pip install" not in page
