"""The guard counts what really happens, and finds what has grown."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.linalg

from benchmarks import guard
from manykernels.losses.on_demand import Workspace

SIZE = guard.LEAST


def test_factorisations_are_counted_where_they_happen():
    matrix = np.eye(SIZE)
    with guard.counting() as counts:
        workspace = Workspace(SIZE)
        workspace.matrix[:] = matrix
        assert workspace.cholesky()
        workspace.solve(np.ones((SIZE, 2)))
        workspace.inverse()
        np.linalg.eigh(np.array([matrix] * 3))
        scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix), np.ones(SIZE))
        np.linalg.eigh(np.eye(SIZE - 1))  # too small to count
    expected = {"factorisations": 2, "solves": 2, "inverses": 1, "decompositions": 3}
    assert dict(counts) == expected
    with guard.counting() as again:
        pass
    np.linalg.eigh(matrix)
    assert not again


def test_passes_over_kernels_are_counted():
    stack = guard.problem()["stack"]
    with guard.counting() as counts:
        stack.combine(np.ones(stack.n_kernels))
        stack.apply(np.ones((len(stack), 1)))
        stack.select([0]).apply(np.ones((len(stack), 1)))
    assert counts == {"passes": 3}


def test_growth_is_found(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(guard, "BOUNDS", tmp_path / "guard.json")
    assert guard.main(["--fits", "mkfda binary", "--write"]) == 0
    assert guard.main(["--fits", "mkfda binary"]) == 0
    bounds = json.loads(guard.BOUNDS.read_text())
    bounds["mkfda binary"]["factorisations"] -= 1
    guard.BOUNDS.write_text(json.dumps(bounds))
    capsys.readouterr()
    assert guard.main(["--fits", "mkfda binary"]) == 1
    number = bounds["mkfda binary"]["factorisations"]
    expected = f"mkfda binary: factorisations {number + 1}, at most {number}\n"
    assert capsys.readouterr().err == expected


def test_a_little_more_memory_is_no_growth():
    assert not guard.above("fit", {"peak": 1.09}, {"peak": 1.0})
    assert guard.above("fit", {"peak": 1.11, "passes": 2}, {"peak": 1.0, "passes": 1}) == [
        "fit: peak 1.11, at most 1",
        "fit: passes 2, at most 1",
    ]


def test_unknown_fits_are_refused():
    with pytest.raises(SystemExit):
        guard.main(["--fits", "nothing"])
