"""What all estimators that learn kernel weights share: a solver, its progress, its proof."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning

from .._sklearn import Interval
from .._warnings import warn_caller
from ..domains import lp_domain
from ..losses import Outline
from ..solvers import SOLVERS, Problem, Progress, Solution, Solver, as_solver, refuse_unfit
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

    def _chosen_solver(self) -> Solver:
        return as_solver(self.solver)

    def _iteration_limit(self, solver: Solver) -> int:
        given: int | None = getattr(self, "max_iter", None)
        return solver.default_max_iter if given is None else given

    def _refuse_unfit(self, solver: Any, outline: Outline) -> None:
        """Before any kernel is computed."""
        refuse_unfit(solver, Problem(outline, lp_domain(self.p), self.tol))

    def _observer(self, task: Any, X: Any, y: Any) -> _Observer:
        return _Observer(self, task, X, y)

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
        self.solver_ = solver.name
        self.history_ = {
            "objective": [step.certificate.primal for step in solution.history],
            "rel_gap": [step.certificate.rel_gap for step in solution.history],
            self._inner_solves: [step.n_inner_solves for step in solution.history],
        }

    def _warn_unless_converged(self, solution: Solution, solver: Any, observer: _Observer) -> None:
        certificate = solution.certificate
        if certificate.converged:
            return
        name, remark = type(self).__name__, getattr(solution, "status", "")
        if certificate.status == "stopped":
            remark = f" ({remark})" if remark else ""
            message = (
                f"{name} stopped at relative gap {certificate.rel_gap:.2e} > "
                f"tol={self.tol:g}{remark}; the weights are at most that far from optimal. "
                + self._way_out(solution, solver, observer)
            )
        else:
            message = f"{name} is {certificate.status}. {certificate.message}"
        warn_caller(message, ConvergenceWarning)

    def _way_out(self, solution: Solution, solver: Any, observer: _Observer) -> str:
        """Why the solver ended where it did, and what would take it further."""
        if observer.stopped:
            return "A callback asked for it."
        limit = self._iteration_limit(solver)
        if max((step.iteration for step in solution.history), default=0) >= limit:
            cause, way = f"max_iter={limit} was reached", "raise max_iter or tol"
        else:
            cause, way = "No more progress was made, tol is less than can be had", "raise tol"
        other = "" if isinstance(solver, SOLVERS[DEFAULT_SOLVER]) else _OR_THE_DEFAULT
        return f"{cause}: {way}{other}."


_OR_THE_DEFAULT = f", or use solver={DEFAULT_SOLVER!r}"


class _Observer:
    """Tells callbacks how a solver gets on, and remembers whether one of them stopped it."""

    def __init__(self, estimator: WeightLearner, task: Any, X: Any, y: Any):
        self._estimator, self._task, self._X, self._y = estimator, task, X, y
        self.stopped = False

    def __call__(self, progress: Progress) -> bool:
        if self._estimator.verbose:
            print(f"[{type(self._estimator).__name__}] {progress}")
        told = {"estimator": self._estimator, "X": self._X, "y": self._y}
        step = self._task.subcontext(task_name=f"iteration {progress.iteration}")
        step.call_on_fit_task_begin(**told)
        asked_to_stop = bool(step.call_on_fit_task_end(**told))
        self.stopped |= asked_to_stop
        return asked_to_stop
