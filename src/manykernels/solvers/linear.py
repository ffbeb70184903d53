"""Linear programs that grow by rows and columns, solved by HiGHS from the last basis.

    min_x  c·x   s.t.  l ≤ A x ≤ u ,   lower ≤ x ≤ upper

Cutting planes add rows, column generation adds columns. A simplex basis then stays primal or dual
feasible, so that few steps are needed after each addition.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ..domains import Array

# Feasibility tolerance of HiGHS, the smallest that it accepts, and its default, for programs with
# numbers of such different sizes that the first is lost in rounding errors.
_FEASIBILITY, _EASY_FEASIBILITY = 1e-10, 1e-7
# Rows with a larger entry are divided by it: HiGHS refuses entries above 1e15.
_LARGE_ENTRY = 1e9


@dataclass(frozen=True)
class LinearSolution:
    """Values of the columns, multipliers of the rows, and an error message or "".

    The multiplier of a row is ``∂minimum/∂bound``: non-negative where its lower bound is active.
    """

    values: Array
    multipliers: Array
    failure: str


class LinearProgram:
    """Linear program to which columns and rows are added."""

    def __init__(self) -> None:
        import highspy  # slow to import and rarely needed

        status = highspy.HighsModelStatus
        self._optimal, self._undecided = status.kOptimal, (status.kSolveError, status.kUnknown)
        self._error = highspy.HighsStatus.kError
        # Additions refused by HiGHS, for which there is no model status.
        self._refused = ""
        # Divisors of the rows.
        self._row_units = np.ones(0)
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs.setOptionValue("output_flag", False)
        self._set_tolerance(_FEASIBILITY)

    def add_columns(self, costs: Array, lower: float | Array = 0.0, matrix: Any = None) -> None:
        """Add variables of at least `lower`; `matrix` (n_rows, n_new) has their entries of A."""
        costs = np.asarray(costs, dtype=np.float64)
        n_new = len(costs)
        entries = sparse.csc_array((self._highs.getNumRow(), n_new) if matrix is None else matrix)
        scaled = entries.astype(np.float64)
        scaled.data /= self._row_units[scaled.indices]
        added = self._highs.addCols(
            n_new,
            costs,
            *_bounds(lower, np.inf, n_new),
            scaled.nnz,
            *(index.astype(np.int32) for index in (scaled.indptr, scaled.indices)),
            scaled.data,
        )
        self._note(added, f"{n_new} columns with entries up to {_largest(entries.data):.1e}")

    def add_rows(self, lower: float | Array, matrix: Any, upper: float | Array = np.inf) -> None:
        """Add constraints ``lower ≤ matrix @ x ≤ upper``."""
        entries = sparse.csr_array(matrix, dtype=np.float64)
        n_new = entries.shape[0]
        if not np.isfinite(entries.data).all():
            self._note(self._error, f"{n_new} rows with entries that are not finite")
            return
        sizes = np.array([_largest(entries.data[a:b]) for a, b in pairwise(entries.indptr)])
        # Powers of two, which cause no rounding errors.
        units = np.where(
            sizes > _LARGE_ENTRY, np.exp2(np.ceil(np.log2(np.maximum(sizes, 1.0)))), 1.0
        )
        scaled = sparse.diags_array(1.0 / units) @ entries
        added = self._highs.addRows(
            n_new,
            *(bound / units for bound in _bounds(lower, upper, n_new)),
            scaled.nnz,
            *(index.astype(np.int32) for index in (scaled.indptr, scaled.indices)),
            scaled.data,
        )
        if self._note(added, f"{n_new} rows with entries up to {_largest(entries.data):.1e}"):
            self._row_units = np.concatenate([self._row_units, units])

    def _note(self, status: Any, addition: str) -> bool:
        """Return True if HiGHS accepted an addition; if not, every later solution fails."""
        if status == self._error and not self._refused:
            self._refused = f"HiGHS refuses {addition}"
        return bool(status != self._error)

    def change_costs(self, costs: Array) -> None:
        """Change the costs c of all columns."""
        self._highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    @property
    def n_rows(self) -> int:
        return int(self._highs.getNumRow())

    @property
    def n_steps(self) -> int:
        """Number of simplex iterations of the last solution."""
        return int(self._highs.getInfo().simplex_iteration_count)

    def _set_tolerance(self, tolerance: float) -> None:
        for side in ("primal", "dual"):
            name = f"{side}_feasibility_tolerance"
            self._note(self._highs.setOptionValue(name, tolerance), f"{name}={tolerance:g}")

    def solve(self) -> LinearSolution:
        """Solve the program, starting from the solution before the last additions."""
        n_columns, n_rows = self._highs.getNumCol(), self.n_rows
        if self._refused:
            return LinearSolution(np.zeros(n_columns), np.zeros(n_rows), self._refused)
        ran = self._highs.run()
        if ran == self._error or self._highs.getModelStatus() in self._undecided:
            self._highs.clearSolver()
            self._set_tolerance(_EASY_FEASIBILITY)
            ran = self._highs.run()
            self._set_tolerance(_FEASIBILITY)
        status = self._highs.getModelStatus()
        solution = self._highs.getSolution()
        failure = "" if status == self._optimal else self._highs.modelStatusToString(status)
        if ran == self._error:
            failure = failure or "an error of HiGHS"
        values, multipliers = np.array(solution.col_value), np.array(solution.row_dual)
        if len(values) != n_columns or len(multipliers) != n_rows:
            failure = failure or "HiGHS has no solution"
            values, multipliers = np.zeros(n_columns), np.zeros(n_rows)
        return LinearSolution(values, multipliers / self._row_units, failure)


def _bounds(lower: float | Array, upper: float | Array, n: int) -> tuple[Array, Array]:
    """Return both as arrays; HiGHS treats IEEE infinity as its own."""
    return tuple(np.full(n, bound, dtype=np.float64) for bound in (lower, upper))  # type: ignore[return-value]


def _largest(entries: Array) -> float:
    return float(np.abs(entries).max(initial=0.0))
