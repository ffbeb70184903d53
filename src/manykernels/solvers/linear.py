"""Linear programs that grow by rows and columns, solved by HiGHS from the last basis.

    min_x  c·x   s.t.  l ≤ A x ≤ u ,   lower ≤ x ≤ upper

Cutting planes add rows, column generation adds columns. A simplex basis stays primal or dual
feasible then, so that few steps are needed after each addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..domains import Array

# Feasibility tolerance of HiGHS, the smallest that it accepts, and its default, for programs whose
# numbers are so different that the first is lost in rounding errors.
_FEASIBILITY, _EASY_FEASIBILITY = 1e-10, 1e-7


@dataclass(frozen=True)
class LinearSolution:
    """Values of the columns, multipliers of the rows, and what went wrong if anything did.

    The multiplier of a row is ``∂minimum/∂bound``: not negative where its lower bound holds.
    """

    values: Array
    multipliers: Array
    failure: str


class LinearProgram:
    """A linear program without columns and rows, to which these are added."""

    def __init__(self) -> None:
        import highspy  # slow to import, and most users never need it

        status = highspy.HighsModelStatus
        self._optimal, self._undecided = status.kOptimal, (status.kSolveError, status.kUnknown)
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs.setOptionValue("output_flag", False)
        self._set_tolerance(_FEASIBILITY)

    def add_columns(self, costs: Any, lower: float | Array = 0.0, matrix: Any = None) -> None:
        """Variables that are at least `lower`; `matrix` (n_rows, n_new) has their entries of A."""
        costs = np.asarray(costs, dtype=np.float64)
        n_new = len(costs)
        entries = sparse.csc_array((self._highs.getNumRow(), n_new) if matrix is None else matrix)
        self._highs.addCols(
            n_new,
            costs,
            *_bounds(lower, np.inf, n_new),
            entries.nnz,
            *(index.astype(np.int32) for index in (entries.indptr, entries.indices)),
            entries.data.astype(np.float64),
        )

    def add_rows(self, lower: float | Array, matrix: Any, upper: float | Array = np.inf) -> None:
        """Constraints ``lower ≤ matrix @ x ≤ upper``."""
        entries = sparse.csr_array(matrix)
        self._highs.addRows(
            entries.shape[0],
            *_bounds(lower, upper, entries.shape[0]),
            entries.nnz,
            *(index.astype(np.int32) for index in (entries.indptr, entries.indices)),
            entries.data.astype(np.float64),
        )

    def change_costs(self, costs: Array) -> None:
        """Other costs c of all columns."""
        self._highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    @property
    def n_rows(self) -> int:
        return int(self._highs.getNumRow())

    @property
    def n_steps(self) -> int:
        """Simplex iterations of the last solution."""
        return int(self._highs.getInfo().simplex_iteration_count)

    def _set_tolerance(self, tolerance: float) -> None:
        for side in ("primal", "dual"):
            self._highs.setOptionValue(f"{side}_feasibility_tolerance", tolerance)

    def solve(self) -> LinearSolution:
        """The solution, starting from that before the last additions."""
        self._highs.run()
        if self._highs.getModelStatus() in self._undecided:
            self._highs.clearSolver()
            self._set_tolerance(_EASY_FEASIBILITY)
            self._highs.run()
            self._set_tolerance(_FEASIBILITY)
        status = self._highs.getModelStatus()
        solution = self._highs.getSolution()
        failure = "" if status == self._optimal else self._highs.modelStatusToString(status)
        return LinearSolution(np.array(solution.col_value), np.array(solution.row_dual), failure)


def _bounds(lower: float | Array, upper: float | Array, n: int) -> tuple[Array, Array]:
    """Both as arrays; HiGHS takes what IEEE calls infinite for its own infinity."""
    return tuple(np.full(n, bound, dtype=np.float64) for bound in (lower, upper))  # type: ignore[return-value]
