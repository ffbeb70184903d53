"""What all estimators that learn kernel weights share: a solver, its progress, its proof."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._sklearn import Interval, check_sample_weight, check_y, num_samples
from ..domains import lp_domain
from ..losses import Outline
from ..solvers import SOLVERS, Problem, Progress, Solution, Solver, refuse_unfit
from ._inputs import KernelInput


class WeightLearner(KernelInput, CallbackSupportMixin, BaseEstimator):
    """Base of estimators with the parameters named below."""

    p: float
    solver: Any
    tol: float
    max_iter: int | None
    verbose: Any
    #: What an inner solution is, in the name of the attribute that counts them.
    _inner_solves: ClassVar[str] = "n_factorizations"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 1, None, closed="both")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    # -- rows ------------------------------------------------------------------------------

    def _weighted_rows(
        self, data: Any, y: np.ndarray | None, sample_weight: Any
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """Data, targets and weights of the rows that count, whose numbers are `_kept_rows`."""
        n_rows = num_samples(data)
        self._kept_rows = np.arange(n_rows)
        if sample_weight is None:
            return data, y, None
        weights = check_sample_weight(
            sample_weight, data, dtype=np.float64, ensure_non_negative=True
        )
        kept = np.flatnonzero(weights > 0)
        if not len(kept):
            raise ValueError(
                f"All sample weights are zero: {type(self).__name__} has nothing to learn from."
            )
        self._kept_rows = kept
        if len(kept) == n_rows:
            return data, y, weights
        return self._without(data, kept), None if y is None else y[kept], weights[kept]

    def _labelled_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None]:
        """Data, class labels as given, labels 0 … c−1 and weights of the rows that count."""
        name = type(self).__name__
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        data = self._read_training(X)
        y = check_y(y, multi_output=False)
        check_classification_targets(y)
        check_consistent_length(data, y)
        data, y, weights = self._weighted_rows(data, y, sample_weight)
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"{name} needs samples of at least 2 classes, got {n_classes} class: "
                f"{self.classes_.tolist()}."
            )
        return data, y, labels, weights

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

    def _minimize(self, loss: Any, solver: Any, observer: Any) -> Solution:
        return solver.solve(
            loss,
            lp_domain(self.p),
            tol=self.tol,
            max_iter=self._iteration_limit(solver),
            observer=observer,
        )

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

    def _warn_unless_converged(self, solution: Solution) -> None:
        certificate = solution.certificate
        if not certificate.converged:
            remark = f" ({status})" if (status := getattr(solution, "status", "")) else ""
            warnings.warn(
                f"{type(self).__name__} stopped at relative gap {certificate.rel_gap:.2e} > "
                f"tol={self.tol:g}{remark}; the weights are at most that far from optimal. "
                'Raise max_iter or tol, or use solver="newton".',
                ConvergenceWarning,
                stacklevel=4,  # past fit and the wrapper of its callbacks
            )


def class_factors(
    class_weight: Any, y: np.ndarray, labels: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Factor of each sample's weight; "balanced" gives all classes the same total."""
    if class_weight != "balanced":
        factors = compute_sample_weight(class_weight, y)
        if not np.all((factors > 0) & (factors < np.inf)):
            raise ValueError(
                f"class_weight must be positive and finite for every class, got {class_weight}."
            )
        return factors
    masses = np.bincount(labels, weights=counts)
    return (counts.sum() / (len(masses) * masses))[labels]
