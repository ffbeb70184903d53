"""MKLogistic, MKCox and MKGLM: smooth convex losses, with probabilities, risks or means.

A task makes the function φ of the outputs (:mod:`manykernels.losses.smooth`) from the targets of
samples, and turns outputs into answers. The rest is the same for all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..domains import Domain
from ..kernels.samples import Samples
from ..losses.base import Loss, ProblemSpec
from ..losses.smooth import Cox, Logistic, Multinomial, Poisson, SmoothFunction, SmoothLoss
from ..metrics.survival import concordance_index
from ..solvers.path import GridPoint, walk_grid
from ..survival import StepFunction, cumulative_baseline_hazard, survival_curves, survival_target
from ..survival.targets import check_informative
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, KernelEstimator, estimator, fits
from .held_out import (
    HeldOut,
    HeldOutLogits,
    HeldOutMeans,
    HeldOutRisks,
    SplitOutputs,
    explained_deviance,
    predicted_means,
)
from .inputs import (
    TrainingRows,
    by_blocks,
    centred_rows,
    matched_by_label,
    rows_of_any_targets,
    targeted_rows,
)
from .kernel_data import Learnt, WeightParameters
from .learning import Point, Task, fit_model, share_workspace, target_groups
from .prediction import KernelClassifier, KernelRegressor, LabelParameters
from .search import (
    ChoiceParameters,
    ChosenWeights,
    Grid,
    checked_norms,
    checked_regs,
    chosen_by,
    chosen_for_labels,
    outputs_of_splits,
    validation_curve,
)

# Relative gap of the inner problem as a part of `tol`, because it is part of the certified gap.
_INNER_SHARE = 0.01
#: λ of logistic regression by default, from far below to far above the unit variance of
#: normalised kernels.
LOGISTIC_REGS = tuple(np.logspace(-3, 3, 7).tolist())


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

    def described(self, data: Any, evaluation: Any) -> dict[str, Any]:
        """Return fitted attributes of the model that are particular to the task."""
        return {}

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        return ProblemSpec(SmoothLoss, len(rows), n_kernels, self.n_outputs(rows))

    def losses(self, data: Any, points: Sequence[Point]) -> list[Loss]:
        losses = []
        for function, point in zip(self.functions(data.samples), points, strict=True):
            reg = float(point.get("reg", self.reg))  # type: ignore[arg-type]
            losses.append(SmoothLoss(data.stack, function, reg, _INNER_SHARE * self.tol))
        return share_workspace(losses)

    def fitted(self, data: Any, learnt: Learnt, domains: Sequence[Domain]) -> dict[str, Any]:
        evaluations = learnt.evaluations
        coefficients = np.hstack([evaluation.coefficients for evaluation in evaluations])
        weights = learnt.weights if len(evaluations) > 1 else learnt.weights[0]
        return {
            **data.attributes,
            "dual_coef_": coefficients,
            "intercept_": np.concatenate([evaluation.biases for evaluation in evaluations]),
            "_predictor": data.predictor(weights, coefficients),
            **self.described(data, evaluations[0]),
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
        functions = self.functions(part.data.samples)
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

        failures = walk_grid(
            lambda reg: SmoothLoss(stack, function, reg, inner_tol), ps, regs, visit, tol=tol
        )
        split.record.failures.extend(failures)
        return split


# -- MKLogistic: logistic regression of two or more classes ---------------------------------------


@dataclass(frozen=True)
class LogisticTask(SmoothTask):
    """Logistic regression: one output for two classes, else one for each."""

    class_weight: Any = None
    multi_label: str = "separate"

    def rows(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
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
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": POSITIVE,
        "class_weight": CLASS_WEIGHT,
    }

    _probabilities = "scores"

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
@estimator(LabelParameters, LogisticAttributes, ChoiceParameters, ChosenWeights)
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
        λ to try; by default seven from 1e-3 to 1e3.
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        A number of folds, by default five: shuffled with a fixed seed, with the classes in equal
        parts. Rows that repeat others stay together, and a class of a single sample is in no test
        part. A pair is a validation set.
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

    ps: Any = None
    regs: Any = None
    class_weight: Any = None
    scoring: Any = "neg_log_loss"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "class_weight": CLASS_WEIGHT,
    }

    _probabilities = "scores"
    validation_curve = validation_curve

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
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


# -- MKCox: proportional hazards of censored times ------------------------------------------------


#: λ of Cox models by default.
COX_REGS = tuple(np.logspace(-3, 4, 8).tolist())


@dataclass(frozen=True)
class CoxTask(SmoothTask):
    """Cox's proportional hazards; the targets are structured arrays with events and times."""

    ties: str = "efron"

    def rows(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> TrainingRows:
        targets = _as_records(y)
        rows = rows_of_any_targets(estimator, X, targets, sample_weight)
        rows = rows.in_groups(groups, len(targets), estimator)
        targets = targets[rows.numbers]
        check_informative(
            targets["event"],
            targets["time"],
            strata=_field(targets, "stratum"),
            entry=_field(targets, "entry"),
        )
        return replace(rows, targets=targets)

    def function(self, samples: Samples) -> SmoothFunction:
        targets = samples.targets
        return Cox(
            targets["time"],
            targets["event"],
            entry=_field(targets, "entry"),
            strata=_field(targets, "stratum"),
            ties=self.ties,  # type: ignore[arg-type]
            sample_weight=samples.weights,
        )

    def held_out(self, parts: list[SplitOutputs], tests: list[Samples]) -> HeldOut:
        parts = [replace(part, outputs=part.outputs[..., 0]) for part in parts]
        return HeldOutRisks(parts, tests)

    def described(self, data: Any, evaluation: Any) -> dict[str, Any]:
        targets, strata = data.samples.targets, _field(data.samples.targets, "stratum")
        hazard = cumulative_baseline_hazard(
            targets["event"],
            targets["time"],
            evaluation.outputs[:, 0],
            sample_weight=data.samples.weights,
            strata=strata,
            entry=_field(targets, "entry"),
        )
        return {"baseline_hazard_": hazard, "unique_times_": np.unique(targets["time"])}


def _field(records: np.ndarray, name: str) -> np.ndarray | None:
    """Return a field of a structured array; None if there is none of this name."""
    return records[name] if name in (records.dtype.names or ()) else None


def _as_records(y: Any) -> np.ndarray:
    """Return events and times, and entries and strata if there are some, as a structured array."""
    if not hasattr(y, "columns"):
        return np.asarray(y)
    kinds = {"event": np.bool_, "time": np.float64, "entry": np.float64, "stratum": object}
    names = [str(name) for name in y.columns]
    records = np.empty(len(y), dtype=[(name, kinds[name]) for name in names])
    for name in names:
        records[name] = y[name].to_numpy()
    return records


def _survival_table(y: Any, entry: Any = None, strata: Any = None) -> Any:
    """Return the columns of a survival target: a structured array, or a data frame with labels.

    Entries and strata are matched with y by label if both have labels, else by position.
    """
    event, time, index = survival_target(y)
    columns: dict[str, Any] = {"event": event, "time": time}
    for name, values in (("entry", entry), ("strata", strata)):
        if values is None:
            continue
        labels = getattr(values, "index", None)
        if index is not None and labels is not None and not labels.equals(index):
            if not labels.is_unique or len(labels) != len(index) or set(labels) != set(index):
                raise ValueError(
                    f"{name} and y have different row labels: pass {name} with the labels of y, "
                    f"or as an array in the order of its rows."
                )
            values = values.loc[index]
        array = np.asarray(values)
        if array.shape != time.shape:
            raise ValueError(
                f"{name} must have one entry for each of {len(time)} samples, got an array of "
                f"shape {array.shape}."
            )
        if name == "entry":
            array = array.astype(np.float64)
            wrong = ~(array < time)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    f"entry is {array[row]:g} and time {time[row]:g} at row {row}: a sample must "
                    "come under observation before its event or its end."
                )
        columns["stratum" if name == "strata" else name] = array
    if index is not None:
        import pandas as pd

        return pd.DataFrame(columns, index=index)
    kinds = [(name, object if name == "stratum" else v.dtype) for name, v in columns.items()]
    records = np.empty(len(time), dtype=kinds)
    for name, values in columns.items():
        records[name] = values
    return records


class SurvivalEstimator(KernelEstimator):
    """Risk of an event, survival functions and cumulative hazard functions.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples, 1)
        ``predict(X) = Σ_j weights_[j] K_j(X, ·) @ dual_coef_``, with K_j normalised and centred.
    baseline_hazard_ : StepFunction, or dict of stratum to StepFunction
        Breslow's estimate of the cumulative hazard of a sample of risk zero.
    unique_times_ : ndarray
        The distinct times of the training samples.
    X_fit_ : array or dataframe
        Training rows, unless precomputed.
    """

    baseline_hazard_: ClassVar[Any]

    @by_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Risk of each row: the logarithm of its hazard relative to a sample of risk zero."""
        return self._outputs(X)[:, 0]

    def predict_survival_function(self, X: Any, strata: ArrayLike | None = None) -> np.ndarray:
        """Probability of no event up to a time, a :class:`~.survival.StepFunction` for each row.

        Parameters
        ----------
        X : table, dict of tables, Views, or KernelStack if precomputed
        strata : array-like of shape (n_rows,), optional
            Stratum of each row; needed if the model was fitted with strata.
        """
        return self._of_hazards(survival_curves, X, strata)

    def predict_cumulative_hazard_function(
        self, X: Any, strata: ArrayLike | None = None
    ) -> np.ndarray:
        """Cumulative hazard up to a time, a :class:`~.survival.StepFunction` for each row.

        Parameters are those of :meth:`predict_survival_function`.
        """
        return self._of_hazards(_hazard_functions, X, strata)

    def _of_hazards(self, curves: Callable[..., np.ndarray], X: Any, strata: Any) -> np.ndarray:
        risk = np.asarray(self.predict(X))
        hazard = self.baseline_hazard_
        if not isinstance(hazard, dict):
            if strata is not None:
                raise ValueError("strata were passed, but the model was fitted without strata.")
            return curves(hazard, risk)
        if strata is None or np.shape(strata) != risk.shape:
            raise ValueError(
                f"The model was fitted with strata ({', '.join(map(str, hazard))}), each with a "
                "baseline hazard of its own: pass strata=…, one for each row of X."
            )
        result = np.empty(len(risk), dtype=object)
        labels = np.asarray(strata).tolist()
        for label in dict.fromkeys(labels):
            if label not in hazard:
                raise ValueError(
                    f"Stratum {label!r} was not in training; there were "
                    f"{', '.join(map(repr, hazard))}."
                )
            rows = np.flatnonzero([each == label for each in labels])
            result[rows] = curves(hazard[label], risk[rows])
        return result

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Harrell's concordance index on new samples; y as in ``fit``."""
        matched = matched_by_label(self, X, _survival_table(y), sample_weight)
        X, truth, sample_weight = matched[:3]
        truth, risk = _as_records(truth), np.asarray(self.predict(X))
        return concordance_index(truth["event"], truth["time"], risk, sample_weight=sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _hazard_functions(hazard: StepFunction, risk: np.ndarray) -> np.ndarray:
    """Return ``exp(f) H(t)`` for each of the outputs f."""
    functions = np.empty(len(risk), dtype=object)
    for i, factor in enumerate(np.exp(risk)):
        functions[i] = StepFunction(hazard.x, factor * hazard.y, end=hazard.end)
    return functions


@estimator()
class TiesParameters:
    """Parameters of Cox models.

    Parameters
    ----------
    ties : {"efron", "breslow"}, default="efron"
        Partial likelihood of events at the same time.
    """

    ties: str = "efron"

    _parameter_constraints: ClassVar[dict[str, Any]] = {"ties": [StrOptions({"efron", "breslow"})]}


_SURVIVAL_GROUPS = """groups : array-like of shape (n_samples,), optional
            Labels of groups of samples, such as patients with several samples, that no split
            divides between training and test.
        """
_SURVIVAL_FIT = """{what}

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix, dict of these or Views, or KernelStack
            Training samples, as for the other estimators.
        y : structured array, data frame, pair or array
            Whether the event was observed, and the time of the event or of the last observation:
            a structured array with the fields event and time (scikit-survival's ``Surv``), a data
            frame with two such columns, a pair ``(event, time)``, or an array with two columns.
            The event is boolean or 0 and 1; 1 is an event, not a censored sample. A data frame is
            matched with the rows of X by label.
        sample_weight : array-like of shape (n_samples,), optional
            With Breslow's ties a sample of weight two counts as two.
        {groups}entry : array-like of shape (n_samples,), optional
            Times at which samples came under observation (left truncation).
        strata : array-like of shape (n_samples,), optional
            Groups with baseline hazards of their own; samples are compared within groups.
        """


@storable
@estimator(WeightParameters, TiesParameters)
class MKCox(SurvivalEstimator):
    """ℓp-norm multiple kernel Cox regression of censored survival times.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with the logarithm f of the relative
    hazard in the feature space of the weighted sum, and proves how close to the best weights it
    got. With one linear kernel and ``normalize=None`` it is Cox's proportional hazards model with
    a ridge penalty.

    Parameters
    ----------
    reg : float, default=1.0
        λ > 0 of ``−log partial likelihood + λ/2 ‖f‖²``, acting on the kernels after centring and
        `normalize`. Losses are summed over the events, not averaged.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. "analytic" (closed-form updates) and "sip" (cutting planes)
        can be used, too.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKCox
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> time = rng.exponential(np.exp(-X[:, 0]))
    >>> censored = rng.exponential(2.0, 200)
    >>> y = (time <= censored, np.minimum(time, censored))
    >>> model = MKCox(reg=10.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    >>> round(model.predict_survival_function(X[:1])[0](0.5), 1)
    0.6
    """

    reg: float = 1.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {"reg": POSITIVE}

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, entry: Any = None, strata: Any = None
    ) -> Self:
        return self._fit(X, _survival_table(y, entry, strata), sample_weight)

    fit.__doc__ = _SURVIVAL_FIT.format(what="Learn kernel weights and the risk.", groups="")

    @fits
    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from targets that were read."""
        task = CoxTask(float(self.reg), self.normalize, self.tol, self.ties)
        return fit_model(self, task, X, y, sample_weight)


@storable
@estimator(ChoiceParameters, ChosenWeights, TiesParameters)
class MKCoxCV(SurvivalEstimator):
    """Multiple kernel Cox regression with p and λ chosen by cross-validation.

    All norms and regularisations of a grid are solved as one path, each from its neighbours and
    each with a certificate. They are scored on samples that neither the kernel weights nor the
    model have seen: in folds, or on a validation set.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 4/3, 2 and ∞.
    regs : array-like of float, optional
        λ to try; by default eight from 1e-3 to 1e4.
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        A number of folds, by default five: shuffled with a fixed seed, with events in equal
        parts. Rows that repeat others stay together. A pair is a validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is Harrell's concordance index.

    Attributes
    ----------
    p_, reg_ : float
        The point of the grid with the best score, of equal ones the simplest; see
        `one_standard_error`.
    left_out_predictions_ : ndarray of shape (n_samples,)
        Risk of each training row by the model without its fold, at the p and λ that are best in
        the other folds: what `left_out_score_` is the score of. NaN in rows that no split tests.
        Not if `cv` is a validation set.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKCoxCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 3))
    >>> time = rng.exponential(np.exp(-X[:, 0]))
    >>> model = MKCoxCV(ps=[1, 2], regs=[1, 10, 100]).fit(X, (np.ones(150, bool), time))
    >>> bool(model.left_out_score_ > 0.65)
    True
    """

    ps: Any = None
    regs: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
    }

    validation_curve = validation_curve

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        entry: Any = None,
        strata: Any = None,
    ) -> Self:
        return self._fit(X, _survival_table(y, entry, strata), sample_weight, groups)

    fit.__doc__ = _SURVIVAL_FIT.format(
        what="Choose p and λ, then learn from all samples.", groups=_SURVIVAL_GROUPS
    )

    @fits
    def _fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from targets that were read."""
        task = CoxTask(None, self.normalize, self.tol, self.ties)
        grid = Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs, COX_REGS)})
        return fit_model(self, task, X, y, sample_weight, groups, grid)


# -- MKGLM: counts, and any smooth convex loss of the user ----------------------------------------


#: Makes φ of targets and sample weights.
SmoothLossMaker = Callable[..., SmoothFunction]


def _counts(y: np.ndarray, sample_weight: Any = None) -> Poisson:
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


def _loss_maker(loss: Any) -> SmoothLossMaker:
    return GLM_LOSSES[loss] if isinstance(loss, str) else loss


@dataclass(frozen=True)
class GLMTask(SmoothTask):
    """Any smooth convex loss of one output per sample."""

    loss: Any = "poisson"

    def rows(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> TrainingRows:
        return targeted_rows(estimator, X, y, sample_weight, groups=groups)

    def function(self, samples: Samples) -> SmoothFunction:
        function = _loss_maker(self.loss)(samples.targets, sample_weight=samples.weights)
        if not isinstance(function, SmoothFunction) or function.n_outputs != 1:
            raise TypeError(
                "loss(y, sample_weight=…) must return a SmoothFunction with one output per "
                f"sample, got {function!r}."
            )
        return function

    def held_out(self, parts: list[SplitOutputs], tests: list[Samples]) -> HeldOut:
        parts = [replace(part, outputs=part.outputs[..., 0]) for part in parts]
        link = self.function(tests[0]).link
        return HeldOutMeans(parts, tests, _loss_maker(self.loss), link)

    def described(self, data: Any, evaluation: Any) -> dict[str, Any]:
        return {"link_": self.function(data.samples).link}


@estimator()
class GeneralizedRegressor(KernelRegressor):
    """Regression with a smooth convex loss.

    Parameters
    ----------
    loss : "poisson" or callable, default="poisson"
        "poisson" is for counts, with the logarithm of their mean as output. A callable is given
        the targets, ``loss(y, sample_weight=w)``, and returns a
        :class:`~manykernels.losses.smooth.SmoothFunction`: value, gradient and Hessian of a
        convex function of the outputs. It may be a subclass of it.

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

    @by_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Predicted mean of each row."""
        return predicted_means(super().predict(X), self.link_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D² on new samples: the share of the loss of the best constant that is explained."""
        X, y, sample_weight = matched_by_label(self, X, y, sample_weight)[:3]
        function = _loss_maker(self.loss)(np.asarray(y, float), sample_weight=sample_weight)
        return explained_deviance(function, super().predict(X))


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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the regression."""
        task = GLMTask(float(self.reg), self.normalize, self.tol, self.loss)
        return fit_model(self, task, X, y, sample_weight)


@storable
@estimator(ChoiceParameters, ChosenWeights)
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

    ps: Any = None
    regs: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
    }

    validation_curve = validation_curve

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose p and λ, then learn from all samples."""
        task = GLMTask(None, self.normalize, self.tol, self.loss)
        grid = Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs, GLM_REGS)})
        return fit_model(self, task, X, y, sample_weight, groups, grid)
