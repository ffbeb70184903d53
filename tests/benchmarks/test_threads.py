"""The page on threads, made of measured values."""

from __future__ import annotations

import json

from benchmarks import threads


def test_a_search_is_timed(capsys):
    threads.run(n_jobs=1, n_rows=120, limited=True)
    assert json.loads(capsys.readouterr().out)["clock"] > 0.0


def test_the_page_has_medians_and_the_load():
    seconds = {"2 x 1": {"clock": [1.0, 3.0, 2.0], "processors": [4.0, 4.5, 5.0]}}
    environment = {"versions": {"numpy": "2.0"}, "machine": "a machine"}
    part = {"environment": environment, "seconds": seconds, "load": 1.5, "n_cores": 2}
    page = threads.page({"300": part})
    assert "## 300 rows" in page
    row = next(line for line in page.splitlines() if line.startswith("| 2 "))
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["2", "1", "2.00", "4.50"]
    assert "Load: 1.5." in page
