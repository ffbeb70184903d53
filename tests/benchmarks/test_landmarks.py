"""The benchmark of landmarks on a few rows, and the picture of its page."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._command import with_environment
from benchmarks._landmarks_picture import draw
from benchmarks.landmarks import DEFAULT_LANDMARKS, _divided, findings, measure, page


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    views = {name: rng.normal(2.0 * y[:, None], size=(160, 2)) for name in ("one", "two")}
    problem = _divided(views, y, np.arange(100), np.arange(100, 160))
    return with_environment({"small": measure("small", problem, quick=True, most=100)})


def test_a_small_curve_and_its_page(results):
    part = results["small"]
    assert [row["landmarks"] for row in part["curve"]] == [50, 100]
    assert part["exact"]["accuracy"] > 90.0
    # All rows are landmarks.
    assert part["curve"][-1]["accuracy"] == pytest.approx(part["exact"]["accuracy"])
    text = page(results)
    assert "100 rows to learn from, 60 to test, 2 kernels." in text
    assert "| exact " in text
    assert "| LeverageScores |" in text


def test_the_default_is_compared_with_twice_as_many_and_with_exact_kernels():
    def row(accuracy, seconds, **more):
        return {"accuracy": accuracy, "seconds": seconds, **more}

    curve = [
        row(90.0, 1.0, landmarks=DEFAULT_LANDMARKS),
        row(90.25, 3.0, landmarks=2 * DEFAULT_LANDMARKS),
    ]
    text = findings({"a": {"curve": curve, "exact": row(90.5, 9.0)}})
    assert "by +0.25 to +0.25 points and take 3.0 to 3.0 times as long" in text
    assert "Exact kernels change it by +0.50 to +0.50 points" in text


def test_the_curve_is_drawn(results):
    (axes,) = draw(results, 200).axes
    assert axes.get_title(loc="left") == "small"
    line = axes.lines[-1]
    assert line.get_xdata().tolist() == [50, 100]
