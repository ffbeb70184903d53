"""Norms on proteins: splits, choices and tables, on random sequences."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import _command, protein
from benchmarks._yan2012_protein import NORM_NAMES, NORMS, PENALTIES, PROTEIN_ERRORS, REGS


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    places = np.repeat(["a", "b", "c"], [30, 20, 12])
    letters = {"a": "ACDEFGAC", "b": "ACDEFGFG", "c": "ACDEFGKL"}
    texts = ["".join(rng.choice(list(letters[place]), rng.integers(20, 40))) for place in places]
    return np.array(["MK", *texts], dtype=object), np.array(["a", *places])


@pytest.fixture(scope="module")
def result(data):
    return protein.run(*data, n_splits=2, most=20, norms=NORMS)


def test_figures_of_the_paper_are_complete():
    assert len(NORMS) == len(NORM_NAMES) == 10
    assert len(REGS) == len(PENALTIES) == 9
    for errors in PROTEIN_ERRORS.values():
        assert {method: len(row) for method, row in errors.items()} == dict.fromkeys(
            protein.METHODS, 10
        )


def test_splits_are_small_and_have_no_protein_twice(data):
    split = protein.draw(*data, 0, 20)
    assert len(split.y_train) + len(split.y_test) == 52
    assert split.n_judged == round(0.2 * len(split.y_train))
    assert split.train.names[0] == "whole:1 letters"
    assert split.test.shape[:2] == (len(split.y_test), len(split.y_train))
    # Another protein is never the same: a similarity of one is that of a protein with itself.
    assert split.test.kernel(4).max() < 1.0 - 1e-9
    again = protein.draw(*data, 0, 20)
    np.testing.assert_array_equal(again.test.data, split.test.data)
    assert not np.array_equal(protein.draw(*data, 1, 20).y_train, split.y_train)


def test_runs_are_of_all_norms(result):
    for method, spec in protein.METHODS.items():
        errors = protein.errors_of(result, method)
        assert errors.shape == (2, 10)
        assert (errors < 100).all()
        one = result["methods"][method]
        assert set(np.ravel(one["chosen"])) <= set(spec.values)
        np.testing.assert_allclose(one["weights"].sum(axis=1), 1.0)
        # At p = ∞ all weights are equal.
        np.testing.assert_allclose(one["weights"][-1], 1.0 / len(result["kernels"]), rtol=1e-6)
        held_out = np.array(one["held_out"])
        chosen = protein.at_chosen_norm(result, method)
        assert chosen[1] == errors[1, held_out[1].argmax()]


def test_page_and_rows(result, monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    _command.write_results("protein", {"multiloc": result}, protein.page)
    page = (tmp_path / "protein.md").read_text(encoding="utf-8")
    assert page.count("MK-FDA is best at p = ") == 1
    assert "| plant (paper)" in page
    assert "| whole:3 of 5 letters " in page
    rows = protein.paper_rows(_command.read_results("protein"))
    assert [round(row.theirs, 2) for row in rows] == [1.92, 3.23, 0.9]
    assert [row.lower_is_better for row in rows] == [False, False, True]


def test_regularisation_becomes_less():
    assert protein.METHODS["MK-FDA"].values[0] == 1.0
    assert protein.METHODS["MK-FDA"].values == tuple(sorted(REGS, reverse=True))
    assert list(protein.METHODS["MK-SVM"].values) == sorted(PENALTIES)
