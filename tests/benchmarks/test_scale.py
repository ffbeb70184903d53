"""What the benchmark of scale says of results: slopes, bounds, relevant views."""

from __future__ import annotations

import pytest

from benchmarks import _command, scale
from benchmarks._scale_problems import RELEVANT
from benchmarks.scale import beside, found_relevant, page, slope, verdicts

SHARES = {f"view{j}": (0.3 if j in RELEVANT else 0.01) for j in range(10)}


def result(rows, seconds, method="single", gib=1.0, shares=None):
    return {
        "rows": rows,
        "method": method,
        "seconds": seconds,
        "processor": 2 * seconds,
        "gib": gib,
        "rel_gap": 1e-8,
        "factorisations": 5,
        "accuracy": 0.8,
        "shares": shares or SHARES,
    }


def test_slopes_begin_where_time_should_be_linear():
    results = [result(10**3, 50.0), result(10**5, 1.0), result(10**6, 10.0), result(10**7, 100.0)]
    assert slope(results) == pytest.approx(1.0)


def test_bounds_that_are_missed_are_named():
    fits = [result(10**5, 10.0), result(10**6, 500.0, gib=2.0)]
    text = "\n".join(verdicts(fits, relevant=True))
    assert "500 s, bound 180 (MISSED)" in text
    assert "2.00 GiB, bound 1.5 (MISSED)" in text
    assert "power 1.70 of the rows (1 ± 0.1: MISSED)" in text
    fine = "\n".join(verdicts([result(10**5, 10.0), result(10**6, 100.0)], relevant=True))
    assert "MISSED" not in fine
    assert "in 2 of 2 fits" in fine


def test_relevant_views_have_the_largest_weights():
    assert found_relevant(SHARES)
    assert not found_relevant({**SHARES, "view9": 2.0})


def test_ratios_beside_scikit_learn():
    text = beside([result(20000, 9.0), result(20000, 4.0), *[result(10**5, 4.0)] * 2])
    assert "2.25 (MISSED)" in text
    assert "1.00 (held)" in text


def test_sizes_of_other_runs_stay_on_the_page(monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "PAGES", tmp_path)

    def run(problem, n_rows, method):
        seconds = n_rows / 10**4 + (5 if method == "grid" else 1)
        return result(n_rows, seconds, method)

    monkeypatch.setattr(scale, "run", run)
    assert scale.main(["--sets", "simulated", "--write"]) == 0
    assert scale.main(["--sets", "simulated,scikit-learn", "--most", "1e5", "--write"]) == 0
    found = _command.read_results("scale")
    assert list(found)[:2] == ["simulated 1e+03", "simulated 1e+04"]
    text = page(found)
    assert text.count("| 1e7") == 1
    assert "single, 1e+07 rows: 1001 s, bound 1200 (held)" in text
    assert "## Beside scikit-learn" in text
