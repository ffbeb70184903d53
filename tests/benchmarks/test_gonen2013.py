"""The second benchmark beside Gönen and Alpaydın (2013), on small problems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import _gonen2013 as parts
from benchmarks import gonen2013
from benchmarks._localized_problems import Draw, Problem
from benchmarks._localized_protocol import run
from manykernels import MKSVC, LocalizedSVC


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.standard_normal((60, 3)) + y[:, None], y


@pytest.fixture
def problem(rows):
    X, y = rows
    samples = np.arange(40)
    halves = samples[:20], samples[20:]
    folds = [halves, halves[::-1]] * 3

    def draw(seed):
        return Draw({"all": parts.one_kernel(X)}, y, folds, np.arange(40, 60))

    return Problem("small", "a small problem", draw, {}, {"C": [0.1, 1.0]}, "small")


def test_copies_are_equal_kernels_that_the_gate_can_look_into(rows):
    X, _ = rows
    stack = parts.one_kernel(X, 3)
    assert stack.n_kernels == 3
    for j in range(3):
        np.testing.assert_array_equal(stack.kernel(j), X @ X.T)
    np.testing.assert_array_equal(stack.features, X)


def test_one_copy_under_a_softmax_gate_is_the_plain_machine(problem):
    methods = {"plain": parts.single("all"), "one copy": parts.gated("softmax")}
    assert isinstance(methods["plain"].estimator, MKSVC)
    assert isinstance(methods["one copy"].estimator, LocalizedSVC)
    rows = gonen2013.measured(parts.lighter(problem, methods))
    assert rows["plain"].value == rows["one copy"].value
    assert rows["plain"].support == rows["one copy"].support
    assert rows["plain"].chosen == rows["one copy"].chosen


def test_fewer_training_parts_and_more_tables(problem, rows):
    X, _ = rows
    light = parts.lighter(
        problem, {"SVM": parts.single("more")}, lambda: {"more": parts.one_kernel(2 * X)}
    )
    draw = light.draw(0)
    assert len(draw.folds) == parts.N_FOLDS < len(problem.draw(0).folds)
    assert set(draw.tables) == {"all", "more"}
    (chosen,) = run(light, 1).chosen["SVM"]
    assert len(chosen.fits) == parts.N_FOLDS


def test_local_components_are_those_of_their_cluster():
    rng = np.random.default_rng(0)
    near, far = rng.standard_normal((2, 30, 2)) * [[[3.0, 0.1]], [[0.1, 3.0]]]
    X = np.vstack([near, far + 100.0])
    axes = [parts.LocalComponents(j, 2, 1).fit(X).axes_.components_[0] for j in (0, 1)]
    long = {int(np.abs(axis).argmax()) for axis in axes}
    assert long == {0, 1}
    assert parts.LocalComponents(0, 2, 1).fit_transform(X).shape == (60, 1)


def row(value, **changed):
    figures = {"deviation": 0.5, "support": 20.0, "n_iter": 3, "n_active": 2.0, "seconds": 1.0}
    return gonen2013.Row(value, **{**figures, **changed}, chosen=(1.0,), weights=np.ones(2))


def test_rows_beside_the_paper(problem):
    named = parts.lighter(problem, {}, name="Table 2")
    good = {"SVM fac": row(95.5), "SVM mor": row(68.7), "SVM new": row(10.0)}
    assert gonen2013.beside_the_paper(named, good) == (
        "Table 2: 2 of 2 rows as good as the paper's"
    )
    bad = {**good, "SVM fac": row(93.9)}
    assert "MISSED by SVM fac (93.90, paper 94.97)" in gonen2013.beside_the_paper(named, bad)
    assert "94.97 ± 0.87" in gonen2013.table(named, good)
    errors = parts.lighter(problem, {}, name="Fig. 8", errors=True)
    assert "1 of 1" in gonen2013.beside_the_paper(errors, {"5 lines": row(50.0)})
    assert "MISSED" in gonen2013.beside_the_paper(errors, {"5 lines": row(60.0)})


def test_page_names_all_tables_and_figures():
    section = gonen2013.Section("Some title", "", "| a |", ["held"])
    page = gonen2013.report([section])
    assert "## Some title\n\n| a |" in page
    first = " ".join(line[0] for line in gonen2013.INDEX)
    for name in ["Fig. 1", "Table 1", "Tables 4–6, Fig. 4", "Tables 8, 9", "Tables 10, 11"]:
        assert name in first
    docs = Path(gonen2013.__file__).parents[1] / "docs" / "benchmarks"
    for _, _, where in gonen2013.INDEX:
        if "](" in where:
            assert (docs / where.split("](")[1].split(")")[0]).exists()


def test_missing_data_skip_the_part(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert gonen2013.main(["--quick", "--sets", "olivetti"]) == 1
    assert "Olivetti faces" in capsys.readouterr().err
