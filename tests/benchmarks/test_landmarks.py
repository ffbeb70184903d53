"""The benchmark of landmarks on a few rows, and the picture of its page."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._landmarks_picture import curves, draw
from benchmarks.landmarks import _divided, section


@pytest.fixture(scope="module")
def page():
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    views = {name: rng.normal(2.0 * y[:, None], size=(160, 2)) for name in ("one", "two")}
    problem = _divided(views, y, np.arange(100), np.arange(100, 160))
    return "# Page\n\n## small\n\n" + section("small", problem, quick=True, most=100)


def test_the_curve_is_read_from_the_page(page):
    ((curve, exact),) = curves(page).values()
    assert list(curve) == [50, 100]
    assert exact > 90.0
    assert curve[100] == pytest.approx(exact)  # all rows are landmarks


def test_the_curve_is_drawn(page):
    (axes,) = draw(page, 200).axes
    assert axes.get_title(loc="left") == "small"
    line = axes.lines[-1]
    assert line.get_xdata().tolist() == [50, 100]
