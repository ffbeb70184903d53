"""Base classes of classifiers, regressors and novelty detectors: from outputs to predictions.

Each mixin is one of scikit-learn's kinds of estimators. They need two members of the estimator:
the method `_outputs`, ``Σ_i coefficient_i k(x, x_i)`` of every output, and `intercept_`.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    OutlierMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..discriminant import Samples
from ..kernels.tables import Table
from ..scale.blocks import comes_in_blocks, refuse_unread
from ..utils.folds import effective_size
from ..utils.numerics import EPS, ROUNDING
from ..utils.sklearn import Interval, StrOptions
from ..utils.storable import storable
from .base import NON_NEGATIVE, POSITIVE, KernelEstimator, estimator
from .held_out import chosen_classes
from .inputs import by_blocks, in_container, matched_by_label, scored


def takes_tables(estimator: KernelEstimator) -> bool:
    """Whether an estimator is a fitted classifier, or can be fitted to a table."""
    return not estimator._is_precomputed or hasattr(estimator, "classes_")


def gives_probabilities(estimator: KernelEstimator) -> bool:
    """Whether an estimator has ``predict_proba`` at this moment."""
    # Not before a fit to precomputed kernels: scikit-learn's check of decision values against
    # probabilities fits any unfitted estimator that has both methods to a table.
    return estimator._probabilities is not None and takes_tables(estimator)


@estimator()
class LabelParameters:
    """Parameters and attributes of classifiers that take several labels per sample.

    Parameters
    ----------
    multi_label : {"separate", "shared"}, default="separate"
        Where y is an indicator matrix, with several labels per sample, each label has kernel
        weights of its own, or all share the one weight vector that minimises the sum of their
        losses. What is chosen by cross-validation is chosen for each label by its scores, or for
        all of them by the means of these. A `class_weight` acts on the loss of every label, and
        not on the scales of kernels.

    Attributes
    ----------
    n_labels_ : int
        Number of labels per sample, only if y was an indicator matrix: `classes_` are then the
        numbers of its columns. Where it says n_classes in the shape of an attribute, it has an
        entry for every label. If separate, `weights_` has a row for each, the certificate is that
        of the sum over labels, and chosen parameters and scores are arrays (n_labels,),
        `cv_results_` a list.
    """

    multi_label: str = "separate"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "multi_label": [StrOptions({"separate", "shared"})]
    }


def _has_kernels(estimator: KernelEstimator) -> bool:
    """Whether an estimator computes kernels, and no explicit features."""
    return getattr(estimator, "approximation", None) is None


class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Classifier by the largest score; of several labels, by the sign of each score.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    classes_: ClassVar[np.ndarray]
    intercept_: ClassVar[np.ndarray]
    calibration_: ClassVar[Any]
    n_labels_: ClassVar[int]

    #: Whether class scores are log-odds ("scores"), become log-odds by `calibration_`
    #: ("calibrated"), or have no probabilities.
    _probabilities: ClassVar[str | None] = None

    @property
    def _has_labels(self) -> bool:
        """Whether the estimator was fitted to several labels per sample."""
        return hasattr(self, "n_labels_")

    @by_blocks
    def decision_function(self, X: Table) -> np.ndarray:
        """Scores of the classes, or of several labels, (n_rows, n_classes).

        For two classes one score per row, (n_rows,), positive for the second class.
        """
        scores = self._outputs(X) + self.intercept_
        if self._probabilities == "calibrated":
            calibrations = self.calibration_ if self._has_labels else [self.calibration_]
            scores += np.concatenate([calibration.offsets for calibration in calibrations])
        return scores[:, 0] if len(self.classes_) == 2 and not self._has_labels else scores

    @by_blocks
    def predict(self, X: Table) -> np.ndarray:
        """Class of each row, or an indicator matrix of several labels, (n_rows, n_labels)."""
        scores = self.decision_function(X)
        return (
            (scores > 0).astype(int) if self._has_labels else self.classes_[chosen_classes(scores)]
        )

    @available_if(gives_probabilities)
    @by_blocks
    def predict_proba(self, X: Table) -> np.ndarray:
        """Class probabilities, or those of several labels, (n_rows, n_classes)."""
        if self._probabilities == "calibrated":
            return np.exp(self.predict_log_proba(X))
        scores = self.decision_function(X)
        if self._has_labels:
            return expit(scores)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    @available_if(gives_probabilities)
    @by_blocks
    def predict_log_proba(self, X: Table) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`, (n_rows, n_classes)."""
        scores = self.decision_function(X)
        calibrated = self._probabilities == "calibrated"
        if self._has_labels:
            if not calibrated:
                return log_expit(scores)
            pairs = zip(self.calibration_, scores.T, strict=True)
            logs = [calibration.log_probabilities(values)[:, 1] for calibration, values in pairs]
            return np.column_stack(logs)
        if calibrated:
            return self.calibration_.log_probabilities(scores)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return log_softmax(scores, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        exact = getattr(self, "approximation", None) is None
        tags.classifier_tags.multi_label = hasattr(self, "multi_label") and exact
        return tags

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on new samples; rows of X and y are matched as in ``fit``.

        Of several labels, the share of samples with all labels right.
        """
        return scored(super().score, self, X, y, sample_weight)


@estimator()
class KernelDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelClassifier):
    """Fisher's discriminant: priors of its decision, and projection on its directions.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Class probabilities for the decision; by default the weighted frequencies.

    Attributes
    ----------
    priors_ : ndarray of shape (n_classes,)
    rule_ : {"indicator", "discriminant"}
        How outputs of the regression become class scores; see the notes of :class:`MKFDA`.
    dual_coef_ : ndarray of shape (n_samples, n_classes), or (n_samples, 1) if binary
        ``decision_function(X) = Σ_j weights_[j] K_j(X, ·) @ dual_coef_ + intercept_``, with
        K_j normalised and centred.
    intercept_ : ndarray of shape (n_classes,) or (1,)
    scalings_ : ndarray of shape (n_samples, n_directions)
        Coefficients of :meth:`transform`, on the same kernels.
    means_ : ndarray of shape (n_classes, n_directions)
        Class means in the space of :meth:`transform`.
    X_fit_ : array or dataframe
        Training rows, unless precomputed.
    """

    priors: ArrayLike | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {"priors": ["array-like", None]}

    scalings_: ClassVar[np.ndarray]
    _probabilities = "scores"

    def transform(self, X: Table) -> np.ndarray:
        """Project on the discriminant directions, at most n_classes − 1, best first.

        The within-class covariance is the identity there: if `rule_` is "discriminant", the
        decision compares Euclidean distances to `means_`.
        """
        check_is_fitted(self, "scalings_")
        return in_container(self, self._projected(X), X)

    @by_blocks
    def _projected(self, X: Table) -> np.ndarray:
        return self._outputs(X, self.scalings_)

    @property
    def _n_features_out(self) -> int:
        return self.scalings_.shape[1]


class KernelRegressor(RegressorMixin, KernelEstimator):
    """Regression with one output, which is the value."""

    intercept_: ClassVar[np.ndarray]

    @by_blocks
    def predict(self, X: Table) -> np.ndarray:
        """Value of each row."""
        return self._outputs(X)[:, 0] + self.intercept_[0]

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² on new samples; rows of X and y are matched as in ``fit``."""
        return scored(super().score, self, X, y, sample_weight)


# -- Prediction intervals -------------------------------------------------------------------------


@storable
@dataclass(frozen=True)
class LeftOutResiduals:
    """Residuals of training rows that were left out, and their quantiles.

    Attributes
    ----------
    values : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Targets minus predictions by models that were trained without the row.
    weights : ndarray of shape (n_rows,) or None
        Sample weights; None if all are equal.
    size : float
        Number of rows, or of groups of rows that were left out together. If their weights differ,
        the effective number, ``(Σw)²/Σw²``.
    """

    values: np.ndarray
    weights: np.ndarray | None
    size: float

    @classmethod
    def attributes(cls, samples: Samples, predictions: np.ndarray | None) -> dict[str, Any]:
        """Return the fitted attribute; none without predictions or without finite ones."""
        if predictions is None:
            return {}
        values = samples.targets - predictions
        rows = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if not rows.any():
            return {}
        weights, groups = (
            None if given is None else given[rows] for given in (samples.counts, samples.groups)
        )
        size = effective_size(int(rows.sum()), groups, weights)
        return {"left_out_residuals_": cls(values[rows], weights, size)}

    def quantiles(self, coverage: float) -> np.ndarray:
        """Return the ends of the interval of new residuals, (2,) or (2, n_targets).

        Beyond each end are new residuals with a probability of ``(1 − coverage)/2`` at most. A new
        residual has each rank among the others with the same probability, ``1/(size + 1)``, and
        so each end is the residual with the rank of the quantile, rounded outwards.
        """
        tail = (1.0 - coverage) / 2.0
        if tail * (self.size + 1.0) < 1.0 - ROUNDING:
            least = int(np.ceil(1.0 / tail - 1.0 - ROUNDING))
            raise ValueError(
                f"coverage={coverage:g} needs {least} independent left-out samples or more, but "
                f"there are {self.size:.4g}: choose a coverage of at most "
                f"{max(1.0 - 2.0 / (self.size + 1.0), 0.0):.3g}."
            )
        rows = self.values.reshape(len(self.values), -1)
        weights = np.ones(len(rows)) if self.weights is None else self.weights
        mass = weights / weights.sum() * self.size / (self.size + 1.0)
        ends = np.empty((2, rows.shape[1]))
        for k, column in enumerate(rows.T):
            for end, sign in enumerate((-1.0, 1.0)):
                order = np.argsort(sign * column, kind="stable")
                # The smallest residual that has enough mass on its inner side.
                enough = np.cumsum(mass[order]) >= 1.0 - tail - ROUNDING
                ends[end, k] = column[order][min(int(enough.argmax()), len(order) - 1)]
        return ends[:, 0] if self.values.ndim == 1 else ends


class IntervalRegressor(RegressorMixin, KernelEstimator):
    """Regression with prediction intervals from left-out residuals.

    Attributes
    ----------
    left_out_residuals_ : LeftOutResiduals
        Targets minus `left_out_predictions_`, in ``values``, with ``quantiles(coverage)``, from
        which :meth:`predict_interval` is computed.
    """

    left_out_residuals_: ClassVar[LeftOutResiduals]

    def predict_interval(self, X: Table, coverage: float = 0.9) -> np.ndarray:
        """Interval that contains the target of each new row with a given probability.

        The ends are the prediction plus quantiles of the residuals of left-out training rows, so
        that errors need not be normal, nor symmetric. The same width is used for all rows: the
        coverage is that of the mean over new samples like the training samples. It may be lower
        where errors are larger, such as at the ends of the range of X. If the model was fitted
        with groups, new samples are of new groups. Rows count by their sample weights.

        Parameters
        ----------
        X : table
            New rows, as for :meth:`predict`.
        coverage : float in (0, 1), default=0.9
            Probability that the interval contains the target.

        Returns
        -------
        intervals : ndarray of shape (n_rows, 2) or (n_rows, n_targets, 2)
            Lower and upper ends.
        """
        check_is_fitted(self)
        if not isinstance(coverage, Real) or not 0.0 < float(coverage) < 1.0:
            raise ValueError(f"coverage must be between 0 and 1, such as 0.9; got {coverage!r}.")
        name = type(self).__name__
        if not hasattr(self, "left_out_residuals_"):
            raise ValueError(
                f"This {name} has no left-out predictions of its training rows, from which "
                "prediction intervals are computed: fit it with folds, such as cv=5."
            )
        predicted = self.predict(X)  # type: ignore[attr-defined]
        low, high = self.left_out_residuals_.quantiles(float(coverage))
        return np.stack([predicted + low, predicted + high], axis=-1)


@estimator()
class EpsilonParameters:
    """Parameters of an ε-insensitive regression.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of deviations beyond ε, acting on the kernels after `normalize`.
    epsilon : float, default=0.1
        Deviations up to this cost nothing.
    """

    C: float = 1.0
    epsilon: float = 0.1

    _parameter_constraints: ClassVar[dict[str, Any]] = {"C": POSITIVE, "epsilon": NON_NEGATIVE}


@estimator()
class TargetRegressor(IntervalRegressor):
    """Ridge regression of one target or several.

    Parameters
    ----------
    multi_target : {"shared", "separate"}, default="shared"
        Several targets are learnt with one weight vector for all or with one for each.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        ``predict(X) = Σ_j weights_[j] K_j(X, ·) @ dual_coef_ + intercept_``, with K_j normalised
        and centred.
    intercept_ : ndarray of shape (n_targets,)
        Weighted means of the targets.
    X_fit_ : array or dataframe
        Training rows, unless precomputed.
    """

    multi_target: str = "shared"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "multi_target": [StrOptions({"shared", "separate"})]
    }

    dual_coef_: ClassVar[np.ndarray]
    intercept_: ClassVar[np.ndarray]

    @by_blocks
    def predict(self, X: Table) -> np.ndarray:
        """Values of each row, (n_rows,) or (n_rows, n_targets) as y was."""
        values = self._outputs(X) + self.intercept_
        coefficients = vars(self).get("dual_coef_", vars(self).get("coef_"))
        return values[:, 0] if coefficients.ndim == 1 else values

    @available_if(_has_kernels)
    def predict_by_view(self, X: Table) -> dict[str, np.ndarray]:
        """Contribution of each view to :meth:`predict`.

        Predictions are the sum of all contributions and `intercept_`.

        Parameters
        ----------
        X : as for ``predict``, in memory

        Returns
        -------
        dict of str to ndarray of shape (n_rows,) or (n_rows, n_targets)
            By the names of the views, if X is a dict or `Views`; otherwise by those of the
            kernels. Kernels without weight are left out.
        """
        check_is_fitted(self)
        refuse_unread(X, matrices=self._is_precomputed)
        if comes_in_blocks(X):
            raise TypeError(
                "Predictions by view need X in memory: pass blocks of rows, such as "
                "X.partitions[0].compute()."
            )
        predictor, data = self._predictor, self._predictor.source.read(self, X)
        single = self.dual_coef_.ndim == 1
        parts = {
            view: predictor.restricted(kernels).outputs_of(data)
            for view, kernels in predictor.kernels_by_view().items()
        }
        return {view: part[:, 0] if single else part for view, part in parts.items()}

    @available_if(_has_kernels)
    def score_by_view(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> dict[str, np.ndarray]:
        """Share of each view in R² of every target on new samples.

        The share of the contribution f_v is ``Σ_i f_v(x_i) (2 y_i − f(x_i)) / Σ_i y_i²``, with y
        and all contributions centred (Pratt's product measure). A share may be negative, where a
        view corrects another one. The shares sum to R² of the centred predictions, which is that
        of :meth:`score` unless the means of y and of the predictions differ.

        Returns
        -------
        dict of str to ndarray of shape (n_targets,), or to float
            Views as in :meth:`predict_by_view`.

        References
        ----------
        J. W. Pratt. Dividing the indivisible: using simple symmetry to partition variance
        explained. Tampere Conference in Statistics, 1987.
        """
        X, y, weight = matched_by_label(self, X, y, sample_weight)[:3]
        y = np.asarray(y, dtype=np.float64)
        parts = self.predict_by_view(X)
        if any(part.shape != y.shape for part in parts.values()):
            shape = next(iter(parts.values())).shape
            raise ValueError(f"y has the shape {y.shape}, and predictions have {shape}.")
        parts = {
            view: part - np.average(part, axis=0, weights=weight) for view, part in parts.items()
        }
        y = y - np.average(y, axis=0, weights=weight)
        rest = 2.0 * y - sum(parts.values())
        size = np.average(y**2, axis=0, weights=weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                view: np.average(part * rest, axis=0, weights=weight) / size
                for view, part in parts.items()
            }

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² on new samples; rows of X and y are matched as in ``fit``."""
        return scored(super().score, self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


# Free support vectors of a one-class machine lie on its boundary: their score equals the offset
# up to errors. The offset may be wrong by 1e-10 of itself, `_SHARE_OF_VALUE` of the inner solver
# (measured: by 2e-15 in 83 of 107 machines, in the others by about the inner tolerance) ...
_BOUNDARY = 1e-10
# ... and a score by a few rounding errors of its terms.
_TERMS = 5 * EPS


def boundary_shift(intercept: np.ndarray, size: float) -> np.ndarray:
    """Added to the intercept of a one-class machine, so that samples on its boundary are inside.

    `size` bounds the terms whose sum is a score.
    """
    return _BOUNDARY * np.abs(intercept) + _TERMS * size


@estimator()
class NoveltyDetector(OutlierMixin, KernelEstimator):
    """One output, which says whether samples are like those of training.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        At most this share of the training samples is left outside, and at least this share are
        support vectors.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
    offset_ : float
        ``−intercept_``: ``decision_function = score_samples − offset_``.
    """

    nu: float = 0.5

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "nu": [Interval(Real, 0, 1, closed="right")]
    }

    offset_: ClassVar[float]

    @by_blocks
    def score_samples(self, X: Table) -> np.ndarray:
        """How similar each row is to the training samples, without the offset."""
        return self._outputs(X)[:, 0]

    @by_blocks
    def decision_function(self, X: Table) -> np.ndarray:
        """Signed distance from the boundary, negative outside."""
        return self.score_samples(X) - self.offset_

    @by_blocks
    def predict(self, X: Table) -> np.ndarray:
        """1 inside, −1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
