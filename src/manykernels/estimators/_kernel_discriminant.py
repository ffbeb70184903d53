"""What kernel discriminants share: fit from X and y to scores, whatever the loss."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._sklearn import Interval, check_sample_weight, check_y
from ..domains import lp_domain
from ..kernels import KernelStack
from ..kernels.transforms import Chain
from ..losses import Outline
from ..solvers import SOLVERS, Problem, Progress, Solution, Solver, refuse_unfit
from ._discriminant import Discriminant
from ._inputs import KernelInput


def gives_probabilities(estimator: KernelDiscriminant) -> bool:
    """Whether an estimator has ``predict_proba`` at this moment."""
    # scikit-learn's check of decision values against probabilities hands a table to every
    # unfitted estimator that has both methods, pairwise ones too, where no table can be fitted.
    return not estimator._is_precomputed or hasattr(estimator, "classes_")


class KernelDiscriminant(
    KernelInput,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Base of classifiers that learn kernel weights by some loss and score by a projection.

    A subclass has the parameters named below and says which transform its kernels need, which
    loss it minimises and what its outputs are.
    """

    p: float
    solver: Any
    class_weight: Any
    priors: Any
    tol: float
    max_iter: int | None
    verbose: Any

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 1, None, closed="both")],
        "priors": ["array-like", None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    @abstractmethod
    def _preparation(self) -> Chain:
        """Unfitted transform that training kernels go through."""

    @abstractmethod
    def _outline(self, n_samples: int, n_kernels: int) -> Outline:
        """What the loss will be like, before kernels are computed."""

    @abstractmethod
    def _make_loss(
        self, stack: KernelStack, labels: np.ndarray, weights: np.ndarray | None
    ) -> Any:
        """The loss of prepared kernels and labels 0 … c−1."""

    @abstractmethod
    def _regression(
        self, evaluation: Any, loss: Any, multiplicity: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of training samples (m, k), and outputs by which classes are judged."""

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the discriminant.

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix, or KernelStack if precomputed
        y : array-like of shape (n_samples,)
            Class labels of any kind.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of two counts as a repeated sample, zero as none.
        """
        self._validate_params()
        solver = self._chosen_solver()
        given: int | None = getattr(self, "max_iter", None)
        limit = getattr(solver, "default_max_iter", 50) if given is None else given
        task = self._init_callback_context(max_subtasks=limit + 1)
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        data, labels, weights, multiplicity = self._validated(X, y, sample_weight)
        domain = lp_domain(self.p)
        if isinstance(solver, Solver):
            outline = self._outline(len(labels), self._count_kernels(data))
            refuse_unfit(solver, Problem(outline, domain, self.tol))
        stack = self._training_stack(data, weights, solver)
        transform = self._preparation()
        stack = transform.fit_transform(stack, labels, weights)
        self.priors_ = self._checked_priors(np.bincount(labels, weights=weights))
        loss = self._make_loss(stack, labels, weights)

        def observer(progress: Progress) -> bool:
            if self.verbose:
                print(f"[{type(self).__name__}] {progress}")
            step = task.subcontext(task_name=f"iteration {progress.iteration}")
            step.call_on_fit_task_begin(estimator=self, X=X, y=y)
            return bool(step.call_on_fit_task_end(estimator=self, X=X, y=y))

        solution = solver.solve(loss, domain, tol=self.tol, max_iter=limit, observer=observer)
        self._warn_unless_converged(solution)
        self.weights_ = loss.kernel_weights(solution.weights)
        self.reg_ = loss.regularization(solution.weights)
        self.certificate_ = solution.certificate
        self.n_iter_ = solution.n_iter
        self.n_factorizations_ = solution.n_inner_solves
        self.solver_ = getattr(solver, "name", type(solver).__name__.lower())
        self.history_ = {
            "objective": [step.certificate.primal for step in solution.history],
            "rel_gap": [step.certificate.rel_gap for step in solution.history],
            "n_factorizations": [step.n_inner_solves for step in solution.history],
        }
        self._remember_kernels(stack, self.weights_, transform)
        coefficients, outputs = self._regression(solution.evaluation, loss, multiplicity)
        discriminant = Discriminant.learn(
            coefficients=coefficients,
            outputs=outputs,
            labels=labels,
            sample_weight=weights,
            priors=self.priors_,
        )
        self.scalings_ = discriminant.scalings
        self.means_ = discriminant.means
        self.dual_coef_ = discriminant.dual_coef
        self.intercept_ = discriminant.intercept
        task.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_rows,), or scores of all classes (n_rows, n_classes)."""
        check_is_fitted(self, "dual_coef_")
        scores = self._project(X, self.dual_coef_) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_rows, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    @available_if(gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, (n_rows, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return log_softmax(scores, axis=1)

    def transform(self, X: Any) -> np.ndarray:
        """Project on the discriminant directions, at most n_classes − 1, best first.

        Within-class covariance is the identity, so Euclidean distances to `means_` are what
        the decision compares.
        """
        check_is_fitted(self, "scalings_")
        return self._project(X, self.scalings_)

    @property
    def _n_features_out(self) -> int:
        return self.scalings_.shape[1]

    def _chosen_solver(self) -> Any:
        if isinstance(self.solver, str) and self.solver in SOLVERS:
            return SOLVERS[self.solver]()
        if isinstance(self.solver, type) or not hasattr(self.solver, "solve"):
            raise ValueError(
                f"solver must be one of {sorted(SOLVERS)} or an object with a method solve, "
                f"got {self.solver!r}."
            )
        return self.solver

    def _validated(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Training data, labels 0 … c−1, weights and multiplicity, of rows that count.

        `sample_weight` says how often a sample occurs; `class_weight` how much it matters.
        The weights are their product, the multiplicity is the first alone.
        """
        name = type(self).__name__
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        data = self._read_training(X)
        y = check_y(y, multi_output=False)
        check_classification_targets(y)
        check_consistent_length(data, y)
        weights = multiplicity = None
        self._kept_rows = np.arange(len(y))
        if sample_weight is not None:
            multiplicity = check_sample_weight(
                sample_weight, data, dtype=np.float64, ensure_non_negative=True
            )
            kept = np.flatnonzero(multiplicity > 0)
            self._kept_rows = kept
            if len(kept) < len(y):
                data = self._without(data, kept)
                y, multiplicity = y[kept], multiplicity[kept]
            weights = multiplicity
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"{name} needs samples of at least 2 classes, got {n_classes} class: "
                f"{self.classes_.tolist()}."
            )
        if (len(labels) if weights is None else weights.sum()) <= n_classes == len(labels):
            raise ValueError(
                f"{name} needs more samples than classes: {len(labels)} samples of "
                f"{n_classes} classes leave no spread within classes."
            )
        if self.class_weight is not None:
            counts = np.ones(len(y)) if multiplicity is None else multiplicity
            weights = counts * _class_factors(self.class_weight, y, labels, counts)
        return data, labels, weights, multiplicity

    def _checked_priors(self, masses: np.ndarray) -> np.ndarray:
        if self.priors is None:
            return masses / masses.sum()
        priors = np.asarray(self.priors, dtype=np.float64)
        if priors.shape != masses.shape or priors.min() < 0 or not np.isclose(priors.sum(), 1):
            raise ValueError(
                f"priors must be {len(masses)} probabilities that sum to 1, one per class "
                f"{self.classes_.tolist()}; got {self.priors!r}."
            )
        return priors

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


def _class_factors(
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
