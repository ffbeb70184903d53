"""The comparison of rules of choice: the rows it draws, and a small run from end to end."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from benchmarks import choices
from manykernels import MKSVC


@pytest.mark.parametrize("divide", [choices.few_rows, choices.more_rows])
def test_training_and_test_rows_are_apart(divide):
    y = np.repeat(np.arange(20), 30)
    train, test = divide(y, 0)
    assert len(np.intersect1d(train, test)) == 0
    assert set(y[train]) == set(y[test])
    assert np.bincount(y[train])[np.unique(y[train])].min() >= 3
    assert not np.array_equal(divide(y, 1)[0], train)


def test_categories_are_quarters():
    X = np.arange(40.0).reshape(20, 2)
    frame = choices.in_categories({"X": X})["X"]
    assert [frame.iloc[:, 0].tolist().count(letter) for letter in "abcd"] == [5, 5, 5, 5]


def test_machines_without_offsets():
    X, y = load_wine(return_X_y=True)
    model = choices.without_offsets(X, y).set_params(ps=[2.0], Cs=[0.01]).fit(X[::3], y[::3])
    plain = MKSVC(p=2.0, C=0.01).fit(X[::3], y[::3])
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@pytest.mark.slow
def test_a_small_run_from_end_to_end(capsys, monkeypatch):
    monkeypatch.setattr(choices, "NOISE", (1,))
    assert choices.main(["--quick", "--sets", "wine", "diabetes"]) == 0
    shown = capsys.readouterr().out
    rules = (choices.MACHINES, choices.DISCRIMINANTS, choices.REGRESSIONS, choices.RELEVANCE)
    for rule in (rule for some in rules for rule in some):
        assert f"| {rule.name} " in shown
    assert "wine, categories" in shown
    assert "views of noise" in shown


def test_data_that_are_not_there_are_left_out(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert choices.main(["--quick", "--sets", "sonar"]) == 1
    assert "Skipped: sonar." in capsys.readouterr().err
