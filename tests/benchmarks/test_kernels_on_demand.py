"""The benchmark of kernels on demand, on few of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks._command import with_environment
from benchmarks.kernels_on_demand import MODELS, TOL, findings, fit, page


def test_models_are_fitted_and_the_page_tells():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    y = np.where(X[:, 0] * X[:, 1] > 0, "M", "R")
    rows = [fit(name, 400, X, y) for name in MODELS]
    for row in rows:
        assert row.n_kernels == 400
        assert 0 < row.n_weights < 100
        assert 1 <= row.n_sweeps < 10
        assert row.rel_gap <= TOL
        assert row.processor >= row.sweeping > 0.0
    text = page(with_environment({"400": {"rows": rows}}))
    assert text.count("| MKSVC") == text.count("| MKFDA") == 1
    assert findings(rows) == ""
    many = replace(rows[0], n_kernels=10**5, seconds=60.0, sweeping=100.0, n_sweeps=5)
    assert "1.0 minutes of the clock" in findings([many])
    assert "4 GiB: held)." in findings([many])
    assert "0.20 ms of the processor per kernel, so 5 sweeps would take 17" in findings([many])
    assert "4 GiB: MISSED)." in findings([replace(many, seconds=500.0)])
    assert "not run" not in findings([many, replace(many, n_kernels=10**6)])
