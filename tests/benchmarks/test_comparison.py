"""The comparison of all methods: a small run from end to end, its page, its resume folder."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from benchmarks import comparison
from benchmarks.comparison import METHODS, TWO_CLASSES, DataSet
from manykernels import MKFDA, MKSVC
from manykernels.baselines import KimFDA


def wine():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return {"first": X[:, :6], "others": X[:, 6:]}, y


def two_wines():
    views, y = wine()
    return {name: table[y < 2] for name, table in views.items()}, y[y < 2]


def ready_made():
    views, y = wine()
    return np.stack([table @ table.T for table in views.values()], axis=-1), y


@pytest.fixture
def small(monkeypatch, tmp_path):
    sets = {
        "wine": DataSet("Wine", wine),
        "two": DataSet("Two wines", two_wines),
        "kernels": DataSet("Wine, ready-made", ready_made),
    }
    methods = {
        "fda": MKFDA("precomputed"),
        "svc": MKSVC("precomputed"),
        "KimFDA": KimFDA("precomputed"),
    }
    monkeypatch.setattr(comparison, "SETS", sets)
    monkeypatch.setattr(comparison, "SETS_QUICK", list(sets))
    monkeypatch.setattr(comparison, "METHODS", methods)
    monkeypatch.setattr(comparison, "FOLDER", tmp_path / "cells")
    monkeypatch.setattr(comparison, "ROWS_QUICK", 60)
    return tmp_path / "cells"


def test_a_small_run_from_end_to_end(small, capsys):
    assert comparison.main(["--quick"]) == 0
    shown = capsys.readouterr().out
    for title in ("Wine", "Two wines", "Wine, ready-made"):
        assert f"## {title}\n\n60 rows, " in shown
    assert "KimFDA is not ranked: it was compared on two only." in shown
    assert "Nemenyi" in shown
    assert shown.count("| KimFDA") == 2  # one set, and the list of methods
    assert len(list(small.glob("*/*.json"))) == 2 * (2 + 3 + 2)


def test_the_same_command_goes_on(small, capsys):
    comparison.main(["--quick", "--sets", "wine"])
    first = capsys.readouterr().out
    assert "Ranks need several data sets." in first
    comparison.main(["--quick", "--sets", "wine"])
    again = capsys.readouterr().out
    assert "4 of 4 cells were finished before" in again
    assert first.partition("# All methods")[2] == again.partition("# All methods")[2]


def test_missing_data_are_left_out(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert comparison.main(["--quick", "--sets", "bbc"]) == 1
    assert "Skipped: bbc." in capsys.readouterr().err


def test_rows_are_drawn_with_classes_in_equal_parts():
    stack, y = DataSet("Wine", wine).sample(90)
    assert len(stack) == len(y) == 90
    counts = np.bincount(load_wine().target)
    np.testing.assert_allclose(np.bincount(y), 90 * counts / counts.sum(), atol=1)
    stack, y = DataSet("Wine", ready_made).sample(1000)
    assert stack.shape == (178, 178, 2)


def test_methods_take_kernels_and_their_names_are_known():
    assert set(METHODS) >= TWO_CLASSES
    for method in METHODS.values():
        assert method.kernels == "precomputed"
