"""The comparison with himalaya: our side of it end to end, on few rows."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import ridge

ENVIRONMENT = {"versions": {"numpy": "2.0"}, "machine": "a machine"}
OURS = {"seconds": [0.5, 0.7], "r2": [0.7, 0.8], "versions": {"numpy": "2.0"}}
THEIRS = {"seconds": [2.0, 4.0], "r2": [0.6, 0.85], "versions": {"himalaya": "0.4"}}
PART = {
    "environment": ENVIRONMENT,
    **{"n_train": 300, "n_test": 300, "n_kernels": 16, "n_targets": 2, "failed": []},
}
BOTH = {**PART, "contenders": {"random": THEIRS, "p1": OURS}}


def test_a_small_run_is_measured_and_reported(monkeypatch, capsys):
    monkeypatch.delenv(ridge.VARIABLE, raising=False)
    assert ridge.main(["--quick", "--sets", "views", "--contenders", "random,one,p1"]) == 0
    shown = capsys.readouterr().out
    assert "himalaya is left out" in shown
    assert "views, MKRidgeCV, p = 1:" in shown
    assert "75 training and 75 test rows, 16 kernels, 24 targets." in shown
    assert "| himalaya" not in shown


def test_all_get_the_same_centred_problem(tmp_path):
    path = tmp_path / "problem.npz"
    assert ridge.write_problem(path, ridge.views(), 0, 100) == (50, 50)
    with np.load(path) as file:
        assert file["train"].shape == (16, 50, 50)
        assert file["test"].shape == (16, 50, 50)
        np.testing.assert_allclose(file["train"].sum(axis=2), 0.0, atol=1e-9)
        np.testing.assert_allclose(np.einsum("jii->j", file["train"]), 50)
        np.testing.assert_allclose(file["y_train"].mean(axis=0), 0.0, atol=1e-12)
        assert np.bincount(file["fold"]).tolist() == [10] * 5


def test_ratios_and_differences():
    row = next(line for line in ridge.table(BOTH).splitlines() if "MKRidgeCV" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["MKRidgeCV, p = 1", "0.60", "0.2", "0.7500", "+0.0250"]


def test_the_page_names_versions_or_the_way_to_have_them():
    assert "himalaya: himalaya 0.4." in ridge.page({"views": BOTH})
    alone = {**PART, "contenders": {"p1": OURS}}
    assert "himalaya is left out" in ridge.page({"views": alone})


def test_the_goal_is_held_only_if_faster_and_not_worse():
    faster = {**PART, "contenders": {"random50": THEIRS, "candidates": OURS}}
    assert ridge.goal(faster).endswith("0.2 of its time, +0.0250, held.")
    slower = {**PART, "contenders": {"random50": OURS, "candidates": THEIRS}}
    assert ridge.goal(slower).endswith("MISSED.")
    assert ridge.goal(BOTH) == ""


def test_the_instructions_are_those_of_the_module():
    lines = ridge.instructions().splitlines()
    assert ridge.VARIABLE in lines[0]
    assert lines[1].strip() == "python -m venv X"
    assert "himalaya==" in lines[2]
    assert lines[-1].strip() == f"export {ridge.VARIABLE}=X/bin/python"


def test_a_contender_that_fails_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(ridge, "CONTENDERS", {"nobody": "Nobody"})
    assert ridge.main(["--quick", "--sets", "diabetes", "--contenders", "nobody"]) == 1
    assert "Nobody: failed. KeyError: 'nobody'" in capsys.readouterr().err


def test_unknown_contenders_are_refused(capsys):
    with pytest.raises(SystemExit):
        ridge.main(["--contenders", "nobody"])
    assert "unknown: nobody" in capsys.readouterr().err
