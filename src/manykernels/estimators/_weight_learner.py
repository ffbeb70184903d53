"""What all estimators that learn kernel weights share: a solver, its progress, its proof."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning

from .._sklearn import Interval
from ..domains import lp_domain
from ..losses import Outline
from ..solvers import SOLVERS, Problem, Progress, Solution, Solver, refuse_unfit
from ..solvers.base import DEFAULT_SOLVER, refuse_indefinite
from ._rows import RowWeights


class WeightLearner(RowWeights, CallbackSupportMixin, BaseEstimator):
    """Base of estimators with the parameters named below."""

    p: float
    solver: Any
    tol: float
    max_iter: int | None
    verbose: Any
    certificate_: Any
    #: What an inner solution is, in the name of the attribute that counts them.
    _inner_solves: ClassVar[str] = "n_factorizations"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 1, None, closed="both")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    # -- solving ---------------------------------------------------------------------------

    def _chosen_solver(self) -> Any:
        if isinstance(self.solver, str) and self.solver in SOLVERS:
            return SOLVERS[self.solver]()
        if isinstance(self.solver, type) or not hasattr(self.solver, "solve"):
            raise ValueError(
                f"solver must be one of {sorted(SOLVERS)} or an object with a method solve, "
                f"got {self.solver!r}."
            )
        return self.solver

    def _iteration_limit(self, solver: Any) -> int:
        given: int | None = getattr(self, "max_iter", None)
        return getattr(solver, "default_max_iter", 50) if given is None else given

    def _refuse_unfit(self, solver: Any, outline: Outline) -> None:
        """Before any kernel is computed."""
        if isinstance(solver, Solver):
            refuse_unfit(solver, Problem(outline, lp_domain(self.p), self.tol))

    def _observer(self, task: Any, X: Any, y: Any) -> Callable[[Progress], bool]:
        def observer(progress: Progress) -> bool:
            if self.verbose:
                print(f"[{type(self).__name__}] {progress}")
            step = task.subcontext(task_name=f"iteration {progress.iteration}")
            step.call_on_fit_task_begin(estimator=self, X=X, y=y)
            return bool(step.call_on_fit_task_end(estimator=self, X=X, y=y))

        return observer

    def _minimize(self, loss: Any, solver: Any, observer: Any, names: list[str]) -> Solution:
        """Solve for the weights of kernels with these names."""
        domain = lp_domain(self.p)
        solution: Solution = solver.solve(
            loss,
            domain,
            tol=self.tol,
            max_iter=self._iteration_limit(solver),
            observer=observer,
        )
        refuse_indefinite(solution, domain, loss, names)
        return solution

    def _record(self, solution: Solution, solver: Any) -> None:
        """What the way of the solver was, as attributes."""
        self.certificate_ = solution.certificate
        self.n_iter_ = solution.n_iter
        setattr(self, f"{self._inner_solves}_", solution.n_inner_solves)
        self.solver_ = getattr(solver, "name", type(solver).__name__.lower())
        self.history_ = {
            "objective": [step.certificate.primal for step in solution.history],
            "rel_gap": [step.certificate.rel_gap for step in solution.history],
            self._inner_solves: [step.n_inner_solves for step in solution.history],
        }

    def _warn_unless_converged(self, solution: Solution, *, frames: int = 2) -> None:
        """Warn where fit was called: `frames` calls up, of which its wrapper is one."""
        certificate = solution.certificate
        if certificate.converged:
            return
        name, remark = type(self).__name__, getattr(solution, "status", "")
        if certificate.status == "stopped":
            remark = f" ({remark})" if remark else ""
            other = "" if self.solver == DEFAULT_SOLVER else f', or use solver="{DEFAULT_SOLVER}"'
            message = (
                f"{name} stopped at relative gap {certificate.rel_gap:.2e} > "
                f"tol={self.tol:g}{remark}; the weights are at most that far from optimal. "
                f"Raise max_iter or tol{other}."
            )
        else:
            message = f"{name} is {certificate.status}. {certificate.message}"
        warnings.warn(message, ConvergenceWarning, stacklevel=2 + frames)
