"""The benchmark of building kernels, on small tables."""

from __future__ import annotations

import numpy as np

from benchmarks._tables import measured_with
from benchmarks.building import after, fits, laplacian, measure, page, wide


def test_both_ways_give_the_same_numbers_and_the_page_tells():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 12)), np.arange(60) % 3
    pairs = [*fits(X + y[:, None], y), *laplacian([(50, 3)]), *wide(30, 60), *after(150)]
    table, stack = pairs[0].prepare()
    np.testing.assert_allclose(table().weights_, stack().weights_, rtol=1e-6)
    named, plain = pairs[4].prepare()
    np.testing.assert_array_equal(named(), plain())
    inside, beforehand = pairs[5].prepare()
    np.testing.assert_allclose(inside().data, beforehand().data, rtol=1e-9)
    rows = [measure(pair, 1, 1) for pair in pairs]
    assert all(row.seconds > 0.0 and row.reference > 0.0 for row in rows)
    part = {"environment": measured_with(), "rows": [vars(row) for row in rows]}
    text = page({"all": part})
    assert text.count("MKFDA, 60 rows") == 2
    assert text.count("frame / array") == 2
