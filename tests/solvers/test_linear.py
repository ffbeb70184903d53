"""Linear programs that grow: the same as solved at once, in fewer steps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from manykernels.solvers.programs import LinearProgram

rng = np.random.default_rng(0)
N_ROWS, N_COLUMNS = 12, 9
MATRIX = rng.uniform(0.1, 1.0, (N_ROWS, N_COLUMNS))
COSTS = rng.uniform(1.0, 2.0, N_COLUMNS)
NEEDS = rng.uniform(1.0, 3.0, N_ROWS)


def oracle(n_rows=N_ROWS, n_columns=N_COLUMNS):
    matrix, needs = MATRIX[:n_rows, :n_columns], NEEDS[:n_rows]
    return linprog(COSTS[:n_columns], A_ub=-matrix, b_ub=-needs)


@pytest.mark.parametrize("n_first", [1, 4, N_ROWS])
def test_rows_may_come_later(n_first):
    program = LinearProgram()
    program.add_columns(COSTS)
    for n_rows in range(n_first, N_ROWS + 1):
        new = slice(program.n_rows, n_rows)
        program.add_rows(NEEDS[new], MATRIX[new])
        found, expected = program.solve(), oracle(n_rows)
        assert found.failure == ""
        assert COSTS @ found.values == pytest.approx(expected.fun, rel=1e-9)
        # The multipliers prove it.
        assert found.multipliers @ NEEDS[:n_rows] == pytest.approx(expected.fun, rel=1e-9)
        assert (found.multipliers >= 0).all()
        assert (found.multipliers @ MATRIX[:n_rows] <= COSTS + 1e-9).all()


def test_columns_may_come_later():
    program = LinearProgram()
    program.add_rows(NEEDS, np.empty((N_ROWS, 0)))
    for k in range(1, N_COLUMNS + 1):
        program.add_columns(COSTS[k - 1 : k], matrix=MATRIX[:, k - 1 : k])
        found = program.solve()
        assert len(found.values) == k
        assert COSTS[:k] @ found.values == pytest.approx(oracle(n_columns=k).fun, rel=1e-9)


def test_a_basis_is_a_good_start():
    program = LinearProgram()
    program.add_columns(COSTS)
    program.add_rows(NEEDS, MATRIX)
    program.solve()
    before = program.n_steps
    program.add_columns([COSTS[0]], matrix=MATRIX[:, :1])
    found = program.solve()
    assert program.n_steps <= 1 < before
    assert COSTS @ found.values[:-1] + COSTS[0] * found.values[-1] == pytest.approx(oracle().fun)


def test_bounds_of_rows_and_columns():
    """min x − 2y with −1 ≤ x, y ≥ 0 and x + y = 3 is at the bound of x."""
    program = LinearProgram()
    program.add_columns([1.0, -2.0], np.array([-1.0, 0.0]))
    program.add_rows(3.0, [[1.0, 1.0]], 3.0)
    found = program.solve()
    assert_allclose(found.values, [-1.0, 4.0])
    assert_allclose(found.multipliers, [-2.0])


def test_the_reason_for_stopping_is_reported():
    program = LinearProgram()
    program.add_columns([-1.0])
    assert program.solve().failure == "Unbounded"


class Undecided:
    """HiGHS that cannot decide a program at its smallest tolerance."""

    def __init__(self, highs, undecided):
        self.highs, self.undecided, self.tolerances = highs, undecided, []

    def __getattr__(self, name):
        return getattr(self.highs, name)

    def run(self):
        self.tolerances.append(self.highs.getOptionValue("dual_feasibility_tolerance")[1])
        return self.highs.run()

    def getModelStatus(self):  # noqa: N802
        return self.undecided if len(self.tolerances) == 1 else self.highs.getModelStatus()


def test_what_cannot_be_decided_is_tried_again_with_the_usual_tolerance():
    program = LinearProgram()
    program.add_columns(COSTS)
    program.add_rows(NEEDS, MATRIX)
    program._highs = Undecided(program._highs, program._undecided[0])
    found = program.solve()
    assert found.failure == ""
    assert COSTS @ found.values == pytest.approx(oracle().fun)
    program.solve()
    assert_allclose(program._highs.tolerances, [1e-10, 1e-7, 1e-10])


def test_large_entries():
    """HiGHS refuses entries above 1e15, and the rows were missing without a word."""
    program = LinearProgram()
    program.add_columns([1.0, 2.0])
    program.add_rows(np.array([3.0, 5e21]), np.array([[1.0, 1.0], [0.0, 5e21]]))
    assert program.n_rows == 2
    found = program.solve()
    assert found.failure == ""
    assert_allclose(found.values, [2.0, 1.0], rtol=1e-9)
    # Multipliers are those of the rows as they were given.
    assert_allclose(found.multipliers, [1.0, 1.0 / 5e21], rtol=1e-9)
    program.add_columns([0.5], matrix=np.array([[1.0], [5e21]]))
    assert_allclose(program.solve().values, [0.0, 0.0, 3.0], atol=1e-9)


@pytest.mark.parametrize("what", ["rows", "columns"])
def test_what_highs_refuses_is_told(what):
    program = LinearProgram()
    program.add_columns([1.0, 2.0])
    program.add_rows(1.0, np.ones((1, 2)))
    if what == "rows":
        program.add_rows(1.0, np.array([[np.inf, 1.0]]))
    else:
        program.add_columns([1.0], matrix=np.array([[1e20]]))
    found = program.solve()
    assert f"HiGHS refuses 1 {what}" in found.failure
    assert len(found.multipliers) == program.n_rows
