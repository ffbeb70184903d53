"""What kernel discriminants share: fit from X and y to scores, whatever the loss."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from ..kernels import KernelStack
from ..kernels.transforms import Chain
from ..losses import Outline
from ..losses.left_out import LeftOut
from ._fitting import all_or_nothing
from ._probabilities import GivesProbabilities
from ._rows import class_factors
from ._rules import Decision, folds_for_rules
from ._weight_learner import WeightLearner


@dataclass(frozen=True)
class Regression:
    """Functions of a sample that tell the classes apart.

    Attributes
    ----------
    coefficients : ndarray of shape (m, k)
        Of the training samples, in each of k functions.
    left_out : LeftOut
        Outputs of the functions, learnt without the sample.
    rotation : ndarray of shape (c, k) or None
        From columns of the Fisher targets to those of the outputs, if these are a regression on
        such targets.
    """

    coefficients: np.ndarray
    left_out: LeftOut
    rotation: np.ndarray | None


class KernelDiscriminant(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    GivesProbabilities,
    ClassifierMixin,
    WeightLearner,
):
    """Base of classifiers that learn kernel weights by some loss and score by a projection.

    A subclass has the parameters named below and says which transform its kernels need, which
    loss it minimises and what its outputs are.
    """

    class_weight: Any
    priors: Any
    # Weighted centring cancels what a heavy sample is weighted with: errors grow as its square.
    _heaviest = 1e6

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **WeightLearner._parameter_constraints,
        "priors": ["array-like", None],
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

    def _folds_for_rules(self, labels: np.ndarray, stack: KernelStack) -> list[np.ndarray]:
        """Folds by which the rule and its calibration are judged."""
        return folds_for_rules(labels, stack)

    @abstractmethod
    def _regression(
        self,
        evaluation: Any,
        loss: Any,
        multiplicity: np.ndarray | None,
        folds: list[np.ndarray],
    ) -> Regression:
        """The functions that classes are judged by, and their outputs at samples left out."""

    @all_or_nothing
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
            What is rounding beside the median of the weights counts as zero; a weight of more than
            1e6 times the median is refused.
        """
        self._validate_params()
        solver = self._chosen_solver()
        task = self._init_callback_context(max_subtasks=self._iteration_limit(solver) + 1)
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        data, labels, weights, multiplicity = self._validated(X, y, sample_weight)
        self._refuse_unfit(solver, self._outline(len(labels), self._count_kernels(data)))
        transform = self._preparation()
        stack = self._prepared_stack(data, transform, weights, labels, solver)
        self.priors_ = self._checked_priors(np.bincount(labels, weights=weights))
        loss = self._make_loss(stack, labels, weights)
        observer = self._observer(task, X, y)
        solution = self._minimize(loss, solver, observer, stack.names)
        self._warn_unless_converged(solution, solver, observer)
        self.weights_ = loss.kernel_weights(solution.weights)
        self.reg_ = loss.regularization(solution.weights)
        self._record(solution, solver)
        self._remember_kernels(stack, self.weights_, transform)
        folds = self._folds_for_rules(labels, stack)
        regression = self._regression(solution.evaluation, loss, multiplicity, folds)
        decision = Decision.learn(
            regression.left_out,
            labels,
            weights,
            self.priors_,
            regression.rotation,
            float(len(labels) if multiplicity is None else multiplicity.sum()),
        )
        self.rule_ = decision.rule.name
        self.scalings_ = regression.coefficients @ decision.discriminant.turn
        self.means_ = decision.discriminant.means @ decision.discriminant.turn
        self.dual_coef_ = decision.coefficients(regression.coefficients)
        self.intercept_ = decision.intercept
        task.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_rows,), or scores of all classes (n_rows, n_classes)."""
        check_is_fitted(self, "dual_coef_")
        scores = self._project(X, self.dual_coef_) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def transform(self, X: Any) -> np.ndarray:
        """Project on the discriminant directions, at most n_classes − 1, best first.

        Within-class covariance is the identity, so Euclidean distances to `means_` are what
        the decision compares where `rule_` is "discriminant".
        """
        check_is_fitted(self, "scalings_")
        return self._project(X, self.scalings_)

    @property
    def _n_features_out(self) -> int:
        return self.scalings_.shape[1]

    def _validated(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Training data, labels 0 … c−1, weights and multiplicity, of rows that count.

        `sample_weight` says how often a sample occurs; `class_weight` how much it matters.
        The weights are their product, the multiplicity is the first alone.
        """
        data, y, labels, multiplicity = self._labelled_rows(X, y, sample_weight)
        weights, n_classes = multiplicity, len(self.classes_)
        if (len(labels) if weights is None else weights.sum()) <= n_classes == len(labels):
            raise ValueError(
                f"{type(self).__name__} needs more samples than classes: {len(labels)} samples of "
                f"{n_classes} classes leave no spread within classes."
            )
        if self.class_weight is not None:
            counts = np.ones(len(y)) if multiplicity is None else multiplicity
            weights = counts * class_factors(self.class_weight, y, labels, counts)
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
