"""MKLogistic and MKGLM: smooth convex losses, with probabilities or means.

A task makes the function φ of the outputs (:mod:`manykernels.losses.smooth`) from the targets of
samples, and turns outputs into answers. The rest is the same for all of them. Cox regression is
in :mod:`.cox`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..discriminant import Samples
from ..domains import Domain
from ..kernels.tables import Table
from ..losses.base import Loss, ProblemSpec
from ..losses.smooth import (
    Logistic,
    Multinomial,
    Poisson,
    SmoothFunction,
    refuse_infinite_biases,
    refuse_wrong_gradient,
)
from ..losses.smooth_loss import SmoothLoss
from ..solvers.path import GridPoint, walk_grid
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, KernelEstimator, estimator, fits
from .grid import Grid, checked_norms, checked_regs
from .held_out import (
    HeldOut,
    HeldOutLogits,
    HeldOutMeans,
    KnownMeans,
    SplitOutputs,
    explained_deviance,
    predicted_means,
)
from .inputs import by_blocks, matched_by_label
from .learning import Point, Task, fit_model, share_workspace, target_groups
from .prediction import KernelClassifier, KernelRegressor, LabelParameters
from .search import (
    ChoiceParameters,
    ChosenWeights,
    KernelSetParameters,
    chosen_by,
    chosen_for_labels,
    outputs_of_splits,
    validation_curve,
)
from .training_rows import TrainingRows, centred_rows, centred_values
from .weights import Learnt, WeightParameters

# Relative gap of the inner problem as a part of `tol`, because it is part of the certified gap.
_INNER_SHARE = 0.01
#: λ of logistic regression by default, from far below to far above the unit variance of
#: normalised kernels.
LOGISTIC_REGS = tuple(np.logspace(-5, 3, 9).tolist())


@dataclass(frozen=True)
class SmoothTask(Task):
    """A smooth convex function of the outputs, plus λ/2 times their squared norm.

    `reg` is None where every point of a grid has its own.
    """

    reg: float | None = None
    normalize: str | None = "multiplicative"
    tol: float = 1e-4

    @abstractmethod
    def function(self, samples: Samples) -> SmoothFunction:
        """Return φ of the outputs of these samples."""

    def functions(self, samples: Samples) -> list[SmoothFunction]:
        """Return every φ that has kernel weights of its own."""
        return [self.function(samples)]

    @abstractmethod
    def held_out(self, parts: list[SplitOutputs], tests: list[Samples]) -> HeldOut:
        """Return the answers of the models of all splits."""

    def n_outputs(self, rows: TrainingRows) -> int:
        """Return the number of outputs of a sample."""
        return 1

    def described(self, data: Any, evaluations: Sequence[Any]) -> dict[str, Any]:
        """Return fitted attributes of the model that are particular to the task."""
        return {"intercept_": np.concatenate([point.biases for point in evaluations])}

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        return ProblemSpec(SmoothLoss, len(rows), n_kernels, self.n_outputs(rows))

    def losses(self, data: Any, points: Sequence[Point]) -> list[Loss]:
        losses = []
        for function, point in zip(self.functions(data.samples), points, strict=True):
            reg = float(point.get("reg", self.reg))  # type: ignore[arg-type]
            losses.append(SmoothLoss(data.stack, function, reg, _INNER_SHARE * self.tol))
        return share_workspace(losses)

    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        evaluations = learnt.evaluations
        coefficients = np.hstack([evaluation.coefficients for evaluation in evaluations])
        weights = learnt.weights if len(evaluations) > 1 else learnt.weights[0]
        return {
            **data.attributes,
            "dual_coef_": coefficients,
            "_predictor": data.predictor(weights, coefficients),
            **self.described(data, evaluations),
        }

    def choose(self, search: Any, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        outputs = outputs_of_splits(search, self, self.outputs, grid)
        held_out = self.held_out([split for (split,) in outputs], search.tests)
        choice, attributes = chosen_by(
            search.estimator, grid, held_out, search.tested, search.samples
        )
        return [choice.params], attributes

    def outputs(
        self, part: Any, grid: Grid, tol: float, progress: FitTask, starts: Any = None
    ) -> list[SplitOutputs]:
        """Return the outputs of the test samples of a split at every point of the grid."""
        try:
            functions = self.functions(part.data.samples)
        except ValueError as error:
            raise ValueError(
                f"Nothing can be learnt from the training part of a split: {error} Pass a cv with "
                "other splits."
            ) from error
        return [self._outputs(part, function, grid, tol, progress) for function in functions]

    def _outputs(
        self, part: Any, function: SmoothFunction, grid: Grid, tol: float, progress: FitTask
    ) -> SplitOutputs:
        (ps, regs), stack = grid.values.values(), part.data.stack
        inner_tol = _INNER_SHARE * tol
        split = SplitOutputs.unsolved(grid.shape, (part.n_test, function.n_outputs))

        def visit(point: GridPoint) -> bool:
            at, evaluation = (point.norm_index, point.reg_index), point.evaluation
            outputs = part.outputs(evaluation, evaluation.coefficients) + evaluation.biases
            solved = split.note(at, grid.at(at), outputs, point.certificate, point.n_inner_solves)
            return progress(solved)

        losses: deque[SmoothLoss] = deque(maxlen=1)

        def loss_at(reg: float) -> SmoothLoss:
            loss = SmoothLoss(stack, function, reg, inner_tol)
            if losses:
                loss.start_near(losses[0])
            losses.append(loss)
            return loss

        failures = walk_grid(loss_at, ps, regs, visit, tol=tol)
        split.record.failures.extend(failures)
        return split


# -- MKLogistic: logistic regression of two or more classes ---------------------------------------


@dataclass(frozen=True)
class LogisticTask(SmoothTask):
    """Logistic regression: one output for two classes, else one for each."""

    class_weight: dict[Any, float] | str | None = None
    multi_label: str = "separate"

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        return centred_rows(estimator, X, y, sample_weight, self.class_weight, groups=groups)

    def n_losses(self, targets: Any) -> int:
        n_labels = 1 if np.ndim(targets) < 2 else targets.shape[1]
        return len(target_groups(n_labels, self.multi_label))

    def n_outputs(self, rows: TrainingRows) -> int:
        if rows.n_labels is not None:
            return rows.n_labels // self.n_losses(rows.labels)
        return 1 if len(rows.classes) == 2 else len(rows.classes)

    def function(self, samples: Samples) -> SmoothFunction:
        n_classes = len(samples.classes)
        if n_classes == 2:
            return Logistic(2.0 * samples.labels - 1.0, samples.weights)
        return Multinomial(samples.labels, n_classes, samples.weights)

    def functions(self, samples: Samples) -> list[SmoothFunction]:
        if samples.n_labels is None or self.multi_label == "shared":
            return [self.function(samples)]
        return [self.function(samples.label(k)) for k in range(samples.n_labels)]

    def held_out(self, parts: list[SplitOutputs], tests: list[Samples]) -> HeldOut:
        return HeldOutLogits(parts, tests)

    def choose(self, search: Any, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        n_labels = search.samples.n_labels
        if n_labels is None:
            return super().choose(search, grid)
        groups = target_groups(n_labels, self.multi_label)
        outputs = outputs_of_splits(search, self, self.outputs, grid, n_losses=len(groups))
        held_out: list[HeldOut] = []
        for parts, group in zip(zip(*outputs, strict=True), groups, strict=True):
            for i, k in enumerate(group.tolist()):
                splits = [replace(part, outputs=part.outputs[..., [i]]) for part in parts]
                tests = [test.label(k) for test in search.tests]
                held_out.append(self.held_out(splits, tests))
        choices, attributes = chosen_for_labels(search, grid, held_out, groups)
        return [choice.params for choice in choices], attributes


class LogisticAttributes:
    """Fitted attributes of logistic regressions.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples, n_classes), or (n_samples, 1) if binary
        ``decision_function(X) = Σ_j weights_[j] K_j(X, ·) @ dual_coef_ + intercept_``, with
        K_j normalised and centred.
    intercept_ : ndarray of shape (n_classes,) or (1,)
    X_fit_ : array or dataframe
        Training rows, unless precomputed.
    """


@storable
@estimator(LabelParameters, LogisticAttributes, WeightParameters)
class MKLogistic(KernelClassifier):
    """ℓp-norm multiple kernel logistic regression, binary and multinomial.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with a logistic regression on the
    weighted sum, and proves how close to the best weights it got. With one kernel and
    ``normalize=None`` it is scikit-learn's ``LogisticRegression(C=1/reg)`` on the features of the
    kernel. Its probabilities need no calibration.

    Parameters
    ----------
    reg : float, default=1.0
        λ > 0 of ``Σ_i −log P(y_i | x_i) + λ/2 ‖f‖²``, acting on the kernels after centring and
        `normalize`. Losses are summed over the samples, not averaged.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. "analytic" (closed-form updates) and "sip" (cutting planes)
        can be used, too.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKLogistic
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLogistic(reg=0.1).fit(X, y)
    >>> model.certificate_.converged
    True
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    reg: float = 1.0
    class_weight: dict[Any, float] | str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": POSITIVE,
        "class_weight": CLASS_WEIGHT,
    }

    _probabilities = "scores"

    @fits
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kernel weights and the regression.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            Class labels of any kind, or 0 and 1 for each of several labels.
        """
        options = self.class_weight, self.multi_label
        task = LogisticTask(float(self.reg), self.normalize, self.tol, *options)
        return fit_model(self, task, X, y, sample_weight)


@storable
@estimator(
    LabelParameters, LogisticAttributes, ChoiceParameters, KernelSetParameters, ChosenWeights
)
class MKLogisticCV(KernelClassifier):
    """Multiple kernel logistic regression with p and λ chosen by cross-validation.

    All norms and regularisations of a grid are solved as one path, each from its neighbours and
    each with a certificate. They are scored on samples that neither the kernel weights nor the
    regression have seen: in folds, or on a validation set.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 4/3, 2 and ∞.
    regs : array-like of float, optional
        λ to try; by default nine from 1e-5 to 1e3.
    scoring : str, callable or None, default="neg_log_loss"
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is accuracy.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.

    Attributes
    ----------
    p_, reg_ : float, or ndarray of shape (n_labels,)
        The point of the grid with the best score; of equal ones, with the smallest log loss. See
        `one_standard_error`.
    left_out_log_proba_ : ndarray of shape (n_samples, n_classes)
        Logarithms of the class probabilities of each training row by the model without its fold,
        at the p and λ that are best in the other folds: what `left_out_score_` is the score of.
        NaN in rows that no split tests. Not if `cv` is a validation set.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKLogisticCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLogisticCV(ps=[1, 2], regs=[0.1, 1, 10]).fit(X, y)
    >>> model.validation_curve().shape
    (2, 3)
    >>> model.best_score_ > -0.2
    True
    """

    ps: ArrayLike | None = None
    regs: ArrayLike | None = None
    class_weight: dict[Any, float] | str | None = None
    scoring: Any = "neg_log_loss"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "class_weight": CLASS_WEIGHT,
    }

    _probabilities = "scores"
    validation_curve = validation_curve

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            Class labels of any kind, or 0 and 1 for each of several labels.
        """
        options = self.class_weight, self.multi_label
        task = LogisticTask(None, self.normalize, self.tol, *options)
        grid = Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs, LOGISTIC_REGS)})
        return fit_model(self, task, X, y, sample_weight, groups, grid)


# -- MKGLM: counts, and any smooth convex loss of the user ----------------------------------------


#: Makes φ of targets and sample weights.
SmoothLossMaker = Callable[..., SmoothFunction]


def _counts(y: np.ndarray, sample_weight: ArrayLike | None = None) -> Poisson:
    """Return the Poisson loss of counts; fractions are refused."""
    fractional = y != np.floor(y)
    if fractional.any():
        row = int(np.argmax(fractional))
        raise ValueError(
            f'loss="poisson" takes counts, and y is {y[row]:g} at row {row}. Rates are passed '
            "with loss=Poisson of manykernels.losses.smooth, and exposures as sample_weight."
        )
    return Poisson(y, sample_weight=sample_weight)


#: λ by default.
GLM_REGS = tuple(np.logspace(-3, 4, 8).tolist())
#: Losses by name.
GLM_LOSSES: dict[str, SmoothLossMaker] = {"poisson": _counts}
# Values of the parameter `loss` for targets that are not negative.
_OF_COUNTS = ("poisson", Poisson)


def loss_maker(loss: Any) -> SmoothLossMaker:
    """Return the function that makes φ for a value of the parameter `loss`."""
    return GLM_LOSSES[loss] if isinstance(loss, str) else loss


@dataclass(frozen=True)
class GLMTask(SmoothTask):
    """Any smooth convex loss of one output per sample."""

    loss: Any = "poisson"

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        rows = centred_values(estimator, X, y, sample_weight, groups=groups)
        if self.loss in _OF_COUNTS:
            # All targets, so that errors have the number of the row.
            loss_maker(self.loss)(np.asarray(y, np.float64).ravel())
        function = self.function(Samples(None, rows.targets, weights=rows.weights))
        if self.loss not in _OF_COUNTS:
            # Outputs on both sides of the best constant.
            sides = np.linspace(-0.5, 0.5, len(rows))[:, None]
            refuse_wrong_gradient(function, function.initial_biases() + sides)
        return rows

    def function(self, samples: Samples) -> SmoothFunction:
        function = loss_maker(self.loss)(samples.targets, sample_weight=samples.weights)
        if not isinstance(function, SmoothFunction) or function.n_outputs != 1:
            raise TypeError(
                "loss(y, sample_weight=…) must return a SmoothFunction with one output per "
                f"sample, got {function!r}."
            )
        refuse_infinite_biases(function)
        return function

    def held_out(self, parts: list[SplitOutputs], tests: list[Samples]) -> HeldOut:
        parts = [replace(part, outputs=part.outputs[..., 0]) for part in parts]
        loss = loss_maker(self.loss)
        return HeldOutMeans(parts, tests, loss, loss(tests[0].targets, sample_weight=None).link)

    def described(self, data: Any, evaluations: Sequence[Any]) -> dict[str, Any]:
        function = self.function(data.samples)
        if self.loss not in _OF_COUNTS:
            refuse_wrong_gradient(function, evaluations[0].outputs)
        return {**super().described(data, evaluations), "link_": function.link}


@estimator()
class GeneralizedRegressor(KernelRegressor):
    """Regression with a smooth convex loss.

    Parameters
    ----------
    loss : "poisson" or callable, default="poisson"
        "poisson" is for counts, with the logarithm of their mean as output. A callable is given
        the targets, ``loss(y, sample_weight=w)`` with weights or None, and returns a
        :class:`~manykernels.losses.smooth.SmoothFunction`: value, gradient and Hessian of a
        convex function of the outputs. It may be a subclass of it. Rates, which need not be whole
        numbers, have the loss :class:`~manykernels.losses.smooth.Poisson`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples, 1)
        Outputs are ``Σ_j weights_[j] K_j(X, ·) @ dual_coef_ + intercept_``, with K_j normalised
        and centred.
    intercept_ : ndarray of shape (1,)
    link_ : {"identity", "log"}
        Whether outputs are predictions or the logarithms of predictions.
    X_fit_ : array or dataframe
        Training rows, unless precomputed.
    """

    loss: Any = "poisson"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(GLM_LOSSES)), callable]
    }

    link_: ClassVar[str]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss in _OF_COUNTS
        return tags

    @by_blocks
    def predict(self, X: Table) -> np.ndarray:
        """Predicted mean of each row."""
        return predicted_means(super().predict(X), self.link_)

    def _known(self, predictions: np.ndarray) -> KnownMeans:
        """Return a model with these predictions, for scorers."""
        return KnownMeans(predictions, self.link_, loss_maker(self.loss))

    def score(self, X: Table, y: ArrayLike, sample_weight: Any = None) -> float:
        """D² on new samples: the share of the loss of the best constant that is explained."""
        X, y, sample_weight = matched_by_label(self, X, y, sample_weight)[:3]
        targets, outputs = np.asarray(y, np.float64), np.asarray(super().predict(X))
        return explained_deviance(loss_maker(self.loss), targets, outputs, sample_weight)


@storable
@estimator(WeightParameters)
class MKGLM(GeneralizedRegressor):
    """ℓp-norm multiple kernel regression with a Poisson loss or any smooth convex loss.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with a function in the feature space
    of the weighted sum, and proves how close to the best weights it got. With one linear kernel
    and ``normalize=None`` it is scikit-learn's ``PoissonRegressor(alpha=reg / n_samples)``.

    Parameters
    ----------
    reg : float, default=1.0
        λ > 0 of ``φ(f) + λ/2 ‖f‖²``, acting on the kernels after centring and `normalize`. Losses
        are summed over the samples, not averaged.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. "analytic" (closed-form updates) and "sip" (cutting planes)
        can be used, too.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKGLM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0]))
    >>> model = MKGLM().fit(X, y)
    >>> bool(model.score(X, y) > 0.3)
    True
    """

    reg: float = 1.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {"reg": POSITIVE}

    @fits
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kernel weights and the regression."""
        task = GLMTask(float(self.reg), self.normalize, self.tol, self.loss)
        return fit_model(self, task, X, y, sample_weight)


@storable
@estimator(ChoiceParameters, KernelSetParameters, ChosenWeights)
class MKGLMCV(GeneralizedRegressor):
    """Multiple kernel regression with a smooth convex loss, p and λ chosen by cross-validation.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 4/3, 2 and ∞.
    regs : array-like of float, optional
        λ to try; by default eight from 1e-3 to 1e4.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is D², the share of the loss of
        the best constant that is explained.

    Attributes
    ----------
    p_, reg_ : float
        The point of the grid with the best score, of equal ones the simplest; see
        `one_standard_error`.
    left_out_predictions_ : ndarray of shape (n_samples,)
        Prediction of each training row by the model without its fold, at the p and λ that are
        best in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKGLMCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0]))
    >>> model = MKGLMCV(ps=[1, 2], regs=[1, 10, 100]).fit(X, y)
    >>> bool(model.left_out_score_ > 0.1)
    True
    """

    ps: ArrayLike | None = None
    regs: ArrayLike | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
    }

    validation_curve = validation_curve

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p and λ, then learn from all samples."""
        task = GLMTask(None, self.normalize, self.tol, self.loss)
        grid = Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs, GLM_REGS)})
        return fit_model(self, task, X, y, sample_weight, groups, grid)
