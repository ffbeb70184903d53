"""The benchmark of importances measures what it says, on a few problems."""

from __future__ import annotations

import numpy as np

from benchmarks import importance
from benchmarks._command import with_environment


def test_a_few_problems(capsys):
    assert importance.main(["--quick", "--sets", "fda-log-loss"]) == 0
    assert "MKFDA, p = 1" in capsys.readouterr().out


def test_shares_are_counted_by_view():
    found = importance.measure(importance.SETS["fda-accuracy"], 2)
    for shares in ("falls", "alone", "zero", "weights"):
        assert found[shares].shape == (3,)
        assert set(found[shares]) <= {0.0, 0.5, 1.0}
    text = importance.page(with_environment({"fda-accuracy": found}))
    assert "| MKFDA, p = 1 | accuracy |        2 |" in text


def test_the_views_are_what_they_are_called():
    views, y = importance.draw(2000, np.random.default_rng(0), classes=False)
    found = [abs(np.corrcoef(views[name][:, 0], y)[0, 1]) for name in importance.VIEWS]
    assert found[0] > found[1] > 0.2 > found[2]
