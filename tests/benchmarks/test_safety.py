"""The benchmark of checks: it runs, plants what it says and tells what is missed."""

from dataclasses import replace

import numpy as np

from benchmarks import _command, safety

PRICE = safety.Price("small", 1.0, libsvm=1.0, both=2.0, check=0.5, single=0.3, exact=9.0)


def test_a_planted_eigenvalue_is_there():
    features = np.random.default_rng(0).normal(size=(6, 4))
    u = np.full(6, 6**-0.5)
    planted = safety.planted(features @ features.T, u, 0.25)
    np.testing.assert_allclose(planted @ u, -0.25 * u, atol=1e-12)
    assert np.linalg.eigvalsh(planted)[1] > -1e-12


def test_the_worst_ratio_is_reported():
    slow = replace(PRICE, machine="slow", C=100.0, both=3.0)
    assert "worst 3.00 (slow, C = 100): MISSED" in safety.verdicts([PRICE, slow])[0]
    assert "at most 2 asked, worst 2.00 (small, C = 1): held" in safety.verdicts([PRICE])[0]
    too_fast_for_the_clock = replace(PRICE, libsvm=0.0)
    assert "worst inf (small, C = 1): MISSED" in safety.verdicts([too_fast_for_the_clock])[0]


def test_from_the_command_line_to_the_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    monkeypatch.setattr(safety, "_REPEATS", 1)
    assert safety.main(["--quick", "--sets", "clean", "--write"]) == 0
    page = (tmp_path / "safety.md").read_text(encoding="utf-8")
    for text in (page, capsys.readouterr().out):
        assert "Check and fit over SVC.fit: at most 2 asked" in text
        assert "ρ = 0.001" in text
        assert "two samples" in text
