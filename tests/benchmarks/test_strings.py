"""The benchmark of string kernels, on short strings."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._tables import measured_with
from benchmarks.strings import KERNELS, by_vectorizer, main, measure, page, proteins
from manykernels.kernels import Spectrum


def test_both_ways_give_the_same_numbers():
    strings = proteins(12, 30, 0)
    np.testing.assert_allclose(by_vectorizer(strings, 2), Spectrum(2)(strings), atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_measured(name):
    row = measure(name, proteins(12, 30, 0), proteins(3, 30, 1), 1)
    assert row.gram > 0.0
    assert row.block > 0.0
    assert (row.reference is None) == (not name.startswith("Spectrum"))
    assert row.difference is None or row.difference < 1e-13
    part = {"environment": measured_with(), "sizes": [12, 30, 3], "rows": [vars(row)]}
    assert f"| {name} |" in page({"Spectrum": part})


def test_command(capsys):
    assert main(["--quick", "--sets", "WeightedDegree"]) == 0
    assert "200 × 200" in capsys.readouterr().out
