"""The benchmark of regions, on data that need no files."""

from __future__ import annotations

import numpy as np

from benchmarks import regions


def test_scores_and_solves_are_reported(monkeypatch, capsys):
    monkeypatch.setattr(regions, "ROWS", 90)
    assert regions.main(["--quick", "--sets", "gauss4,wine"]) == 0
    page = capsys.readouterr().out
    assert page.count("| gauss4") == 1 + 4
    assert page.count("| wine") == 1 + 4
    assert "not reached" not in page


def test_without_sharpness_there_is_no_difference(monkeypatch):
    monkeypatch.setattr(regions, "ROWS", 90)
    values = regions.scores("diabetes", 2)
    np.testing.assert_allclose(values[:, 1], values[:, 0], atol=1e-3)
