"""Explicit features beside kernel matrices: a small run, and what the page says of it."""

from __future__ import annotations

from benchmarks import approximation
from benchmarks._command import with_environment


def test_a_small_run_from_end_to_end(capsys, monkeypatch):
    monkeypatch.setattr(approximation, "ROWS_QUICK", 60)
    assert approximation.main(["--quick", "--sets", "friedman2"]) == 0
    shown = capsys.readouterr().out
    assert "friedman2 {'n_rows': 60" in shown
    assert "| Friedman 2 | R²    |   60 |" in shown


def test_differences_are_those_of_the_features_and_have_their_standard_errors():
    def fit(score, seconds):
        return {"score": score, "seconds": seconds, "gib": 0.5}

    pairs = [[fit(0.9, 4.0), fit(0.88, 2.0)], [fit(0.8, 6.0), fit(0.8, 2.0)]]
    part = {
        "title": "A set",
        "regression": False,
        "rows": [{"n_rows": 500, "fits": pairs}],
        "without": "",
    }
    page = approximation.page(with_environment({"set": part}))
    assert "in 0 of 1 rows of the table, 10 times faster in 0, and both in 0. So kernel" in page
    row = next(line for line in page.splitlines() if "A set" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:9] == ["accuracy", "500", "85.0", "84.0", "-1.0 ± 1.0", "5.0", "2.0", "2.5"]
