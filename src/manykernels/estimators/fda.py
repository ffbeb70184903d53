"""MKFDA: ℓp-norm multiple kernel Fisher discriminant analysis, binary and multiclass."""

from __future__ import annotations

import warnings
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

from .._sklearn import Interval, StrOptions, check_sample_weight, check_y
from ..domains import lp_domain
from ..kernels.transforms import preparation
from ..losses import SquareLoss
from ..solvers import SOLVERS, Progress
from ._discriminant import Discriminant, fisher_targets
from ._inputs import KernelInput


def _gives_probabilities(estimator: MKFDA) -> bool:
    # scikit-learn's check of decision values against probabilities hands a table to every
    # unfitted estimator that has both methods, pairwise ones too, where no table can be fitted.
    return not estimator._is_precomputed or hasattr(estimator, "classes_")


class MKFDA(
    KernelInput,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """ℓp-norm multiple kernel Fisher discriminant analysis.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, such that Fisher's discriminant in the
    feature space of the weighted sum separates the classes best, and proves how close to the
    best weights it got.

    Parameters
    ----------
    kernels : None, KernelUnion, kernel, list of (name, kernel) or "precomputed", default=None
        What is compared. None takes a linear and five Gaussian kernels of all columns. With
        "precomputed", X is a :class:`KernelStack`, an array (rows, cols, n_kernels) or one
        kernel matrix.
    p : float in [1, inf], default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum.
    reg : float, default=0.1
        λ > 0, acting on the kernels after centring and `normalize`.
    solver : {"newton"} or a solver object, default="newton"
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        How kernels are made comparable, with constants of the training rows: unit variance
        in feature space, unit length of every sample, or unit trace after centring.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities for the decision; by default the weighted frequencies.
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.
    max_iter : int, default=50
        Most outer iterations.
    verbose : bool, default=False
        Print a line per outer iteration. Progress bars: ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Learnt kernel weights, of the normalised kernels.
    kernel_names_ : list of str
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged``.
    classes_ : ndarray of shape (n_classes,)
    priors_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_samples, n_classes), or (n_samples, 1) if binary
        ``decision_function(X) = Σ_j weights_[j] K_j(X, ·) @ dual_coef_ + intercept_``, with
        K_j normalised and centred.
    intercept_ : ndarray of shape (n_classes,) or (1,)
    scalings_ : ndarray of shape (n_samples, n_directions)
        The same for :meth:`transform`.
    means_ : ndarray of shape (n_classes, n_directions)
        Class means in the space of :meth:`transform`.
    reg_ : float
    n_iter_ : int
        Outer iterations.
    n_factorizations_ : int
        Factorisations of a matrix of all training rows, the unit of cost.
    solver_ : str
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_factorizations`` at each iteration.
    X_fit_ : array or dataframe
        Training rows, unless precomputed.
    union_ : KernelUnion
        Fitted kernels, unless precomputed.

    Notes
    -----
    The outputs of the discriminant at the training samples, each left out in turn (in closed
    form, kernel weights held), give the class means and the pooled covariance; a new sample
    goes to the nearest mean in that metric, with priors, as in linear discriminant analysis.
    Probabilities are therefore not those of a fit to its own training outputs.

    References
    ----------
    F. Yan, J. Kittler, K. Mikolajczyk, A. Tahir. Non-sparse multiple kernel Fisher discriminant
    analysis. JMLR 13, 2012.
    J. Ye, S. Ji, J. Chen. Multi-class discriminant kernel learning via convex programming.
    JMLR 9, 2008.

    Examples
    --------
    >>> from manykernels import MKFDA, views_union
    >>> from manykernels.datasets import load_digit_views
    >>> views, y = load_digit_views(noise=1)
    >>> X, union = views_union(views)
    >>> model = MKFDA(union, p=1, reg=10.0).fit(X[:900], y[:900])
    >>> model.certificate_.rel_gap < 1e-6
    True
    >>> for name, weight in zip(model.kernel_names_, model.weights_):
    ...     print(f"{name:10s} {weight:.3f}")
    pixels     0.526
    rows       0.074
    columns    0.000
    gradients  0.112
    fourier    0.132
    coarse     0.155
    noise1     0.000
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 1, None, closed="both")],
        "reg": [Interval(Real, 0, None, closed="neither")],
        "normalize": [StrOptions({"multiplicative", "spherical", "trace"}), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "priors": ["array-like", None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 2.0,
        reg: float = 0.1,
        solver: Any = "newton",
        normalize: str | None = "multiplicative",
        class_weight: Any = None,
        priors: Any = None,
        tol: float = 1e-6,
        max_iter: int = 50,
        verbose: bool = False,
    ):
        self.kernels = kernels
        self.p = p
        self.reg = reg
        self.solver = solver
        self.normalize = normalize
        self.class_weight = class_weight
        self.priors = priors
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

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
        task = self._init_callback_context(max_subtasks=self.max_iter + 1)
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        data, labels, weights, multiplicity = self._validated(X, y, sample_weight)
        stack = self._training_stack(data, weights)
        transform = preparation(self.normalize)
        stack = transform.fit_transform(stack, weights)
        masses = np.bincount(labels, weights=weights)
        self.priors_ = self._checked_priors(masses)
        targets = fisher_targets(labels, masses)
        loss = SquareLoss(stack, targets, self.reg, weights)

        def observer(progress: Progress) -> bool:
            if self.verbose:
                print(f"[MKFDA] {progress}")
            step = task.subcontext(task_name=f"iteration {progress.iteration}")
            step.call_on_fit_task_begin(estimator=self, X=X, y=y)
            return bool(step.call_on_fit_task_end(estimator=self, X=X, y=y))

        solution = solver.solve(
            loss, lp_domain(self.p), tol=self.tol, max_iter=self.max_iter, observer=observer
        )
        self._warn_unless_converged(solution.certificate)
        self.weights_ = solution.weights
        self.certificate_ = solution.certificate
        self.n_iter_ = solution.n_iter
        self.n_factorizations_ = solution.n_inner_solves
        self.solver_ = type(solver).__name__.lower()
        self.reg_ = float(self.reg)
        self.history_ = {
            "objective": [step.certificate.primal for step in solution.history],
            "rel_gap": [step.certificate.rel_gap for step in solution.history],
            "n_factorizations": [step.n_inner_solves for step in solution.history],
        }
        self._remember_kernels(stack, self.weights_, transform)
        left_out = solution.evaluation.leave_one_out(multiplicity, from_mean=True)
        discriminant = Discriminant.learn(
            coefficients=solution.evaluation.outputs @ loss.rotation / self.reg,
            outputs=left_out @ loss.rotation,
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

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_rows, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    @available_if(_gives_probabilities)
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
        if y is None:
            raise ValueError("MKFDA requires y to be passed, but the target y is None.")
        data = self._read_training(X)
        y = check_y(y, multi_output=False)
        check_classification_targets(y)
        check_consistent_length(data, y)
        weights = multiplicity = None
        if sample_weight is not None:
            multiplicity = check_sample_weight(
                sample_weight, data, dtype=np.float64, ensure_non_negative=True
            )
            kept = np.flatnonzero(multiplicity > 0)
            if len(kept) < len(y):
                data = self._without(data, kept)
                y, multiplicity = y[kept], multiplicity[kept]
            weights = multiplicity
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"MKFDA needs samples of at least 2 classes, got {n_classes} class: "
                f"{self.classes_.tolist()}."
            )
        if (len(labels) if weights is None else weights.sum()) <= n_classes == len(labels):
            raise ValueError(
                f"MKFDA needs more samples than classes: {len(labels)} samples of "
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

    def _warn_unless_converged(self, certificate: Any) -> None:
        if not certificate.converged:
            warnings.warn(
                f"MKFDA stopped at relative gap {certificate.rel_gap:.2e} > tol={self.tol:g}; "
                "the weights are at most that far from optimal. Raise max_iter or tol.",
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
