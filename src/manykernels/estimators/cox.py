"""MKCox and MKCoxCV: proportional hazards of censored survival times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..discriminant import Samples
from ..kernels.tables import Table, object_array
from ..losses.cox import Cox
from ..losses.smooth import SmoothFunction
from ..metrics.survival import concordance_index
from ..scale.rows import is_dask
from ..survival import (
    cumulative_baseline_hazard,
    hazard_functions,
    survival_array,
    survival_curves,
)
from ..survival.targets import check_entry, check_informative, check_strata, survival_table
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import POSITIVE, KernelEstimator, estimator, fits, inherited
from .grid import Grid, checked_norms, checked_regs
from .held_out import HeldOut, HeldOutRisks, SplitOutputs
from .inputs import by_blocks, matched_by_label
from .learning import fit_model
from .search import ChoiceParameters, ChosenWeights, KernelSetParameters, validation_curve
from .smooth import SmoothTask
from .training_rows import TrainingRows, rows_of_any_targets
from .weights import WeightParameters

#: λ of Cox models by default.
COX_REGS = tuple(np.logspace(-3, 4, 8).tolist())


# -- Targets: events and times, and perhaps entries and strata ------------------------------------


def survival_records(
    y: ArrayLike, entry: ArrayLike | None = None, strata: ArrayLike | None = None
) -> np.ndarray:
    """Return events and times, and entries and strata if there are some, as a structured array."""
    targets = survival_array(y)
    columns = {name: targets[name] for name in ("event", "time")}
    if entry is not None:
        columns["entry"] = check_entry(entry, targets["time"])
    if strata is not None:
        numbers, labels = check_strata(strata, len(targets))
        columns["stratum"] = object_array(labels)[numbers]
    kinds = [(name, values.dtype) for name, values in columns.items()]
    records = np.empty(len(targets), dtype=kinds)
    for name, values in columns.items():
        records[name] = values
    return records


def _check_informative(samples: Samples) -> None:
    """Raise an error if a Cox model cannot learn anything from these targets."""
    check_informative(
        samples.targets["event"],
        samples.targets["time"],
        strata=samples.strata,
        entry=samples.entry,
    )


@dataclass(frozen=True)
class CoxTask(SmoothTask):
    """Cox's proportional hazards; the targets are structured arrays with events and times."""

    ties: str = "efron"

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: Any,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        rows = rows_of_any_targets(estimator, X, y, sample_weight, centred=True)
        rows = rows.in_groups(groups, len(y), estimator)
        rows = replace(rows, targets=y[rows.numbers])
        _check_informative(Samples(None, rows.targets))
        return rows

    def function(self, samples: Samples) -> SmoothFunction:
        _check_informative(samples)
        strata = samples.strata
        return Cox(
            samples.targets["time"],
            samples.targets["event"],
            entry=samples.entry,
            strata=None if strata is None else check_strata(strata, len(samples))[0],
            ties=self.ties,  # type: ignore[arg-type]
            sample_weight=samples.weights,
        )

    def held_out(self, parts: list[SplitOutputs], tests: list[Samples]) -> HeldOut:
        parts = [replace(part, outputs=part.outputs[..., 0]) for part in parts]
        return HeldOutRisks(parts, tests)

    def described(self, data: Any, evaluations: Sequence[Any]) -> dict[str, Any]:
        samples, targets = data.samples, data.samples.targets
        hazard = cumulative_baseline_hazard(
            targets["event"],
            targets["time"],
            evaluations[0].outputs[:, 0],
            sample_weight=samples.weights,
            strata=samples.strata,
            entry=samples.entry,
        )
        return {"baseline_hazard_": hazard, "unique_times_": np.unique(targets["time"])}


# -- Estimators -----------------------------------------------------------------------------------


Fit = TypeVar("Fit", bound=Callable[..., Any])


def fits_survival(fit: Fit) -> Fit:
    """Decorator of ``fit``: as :func:`.base.fits`, for survival targets.

    Parameters
    ----------
    y : structured array, data frame, pair or array
        Whether the event was observed, and the time of the event or of the last observation:
        a structured array with the fields event and time (scikit-survival's ``Surv``), a data
        frame with two such columns, a pair ``(event, time)``, or an array with two columns.
        The event is boolean or 0 and 1; 1 is an event, not a censored sample. A data frame and
        a pair of Series are matched with the rows of X by label, as other targets are.
    sample_weight : array-like of shape (n_samples,), optional
        With Breslow's ties a sample of weight two counts as two. With Efron's, tied events have
        their mean weight.
    entry : array-like of shape (n_samples,), optional
        Times at which samples came under observation (left truncation). They are not at risk
        before. Concordance indices do not know of them.
    strata : array-like of shape (n_samples,), optional
        Parts of the samples with baseline hazards of their own; samples are compared within parts.
    """
    fit.__doc__ = inherited(fit.__doc__, [fits_survival.__doc__], {"Parameters": []})
    return fits(fit)


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

    def _as_targets(self, y: Any) -> Any:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        return survival_table(y.compute() if is_dask(y) else y)

    @by_blocks
    def predict(self, X: Table) -> np.ndarray:
        """Risk of each row: the logarithm of its hazard relative to a sample of risk zero."""
        return self._outputs(X)[:, 0]

    def predict_survival_function(self, X: Table, strata: ArrayLike | None = None) -> np.ndarray:
        """Probability of no event up to a time, a :class:`~.survival.StepFunction` for each row.

        Parameters
        ----------
        X : table, dict of tables, Views, or KernelStack if precomputed
        strata : array-like of shape (n_rows,), optional
            Stratum of each row; needed if the model was fitted with strata.
        """
        return self._of_hazards(survival_curves, X, strata)

    def predict_cumulative_hazard_function(
        self, X: Table, strata: ArrayLike | None = None
    ) -> np.ndarray:
        """Cumulative hazard up to a time, a :class:`~.survival.StepFunction` for each row.

        Parameters are those of :meth:`predict_survival_function`.
        """
        return self._of_hazards(hazard_functions, X, strata)

    def _of_hazards(
        self, curves: Callable[..., np.ndarray], X: Table, strata: ArrayLike | None
    ) -> np.ndarray:
        risk = np.asarray(self.predict(X))
        hazard = self.baseline_hazard_
        if not isinstance(hazard, dict):
            if strata is not None:
                raise ValueError("strata were passed, but the model was fitted without strata.")
            return curves(hazard, risk)
        if strata is None:
            raise ValueError(
                f"The model was fitted with strata ({', '.join(map(repr, hazard))}), each with a "
                "baseline hazard of its own: pass strata=…, one for each row of X."
            )
        numbers, labels = check_strata(strata, len(risk))
        result = np.empty(len(risk), dtype=object)
        for number, label in enumerate(labels):
            if label not in hazard:
                raise ValueError(
                    f"Stratum {label!r} was not in training; there were "
                    f"{', '.join(map(repr, hazard))}."
                )
            rows = numbers == number
            result[rows] = curves(hazard[label], risk[rows])
        return result

    def score(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        strata: ArrayLike | None = None,
    ) -> float:
        """Harrell's concordance index on new samples.

        Parameters
        ----------
        X, y : as in ``fit``
        sample_weight : array-like of shape (n_samples,), optional
            A pair of samples counts with the product of its weights.
        strata : array-like of shape (n_samples,), optional
            Groups within which samples are compared; by default all samples are.
        """
        matched = matched_by_label(self, X, self._as_targets(y), sample_weight, strata=strata)
        X, targets, sample_weight, _, strata = matched
        truth, risk = survival_array(targets), np.asarray(self.predict(X))
        return concordance_index(
            truth["event"], truth["time"], risk, sample_weight=sample_weight, strata=strata
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


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


@storable
@estimator(WeightParameters, TiesParameters)
class MKCox(SurvivalEstimator):
    """ℓp-norm multiple kernel Cox regression of censored survival times.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with the logarithm f of the relative
    hazard in the feature space of the weighted sum, and proves how close to the best weights it
    got. With one linear kernel and ``normalize=None`` it is Cox's proportional hazards model with
    a ridge penalty: the coefficients are those of scikit-survival's
    ``CoxPHSurvivalAnalysis(alpha=reg, ties=ties)``.

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

    @fits_survival
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        entry: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Self:
        """Learn kernel weights and the risk."""
        task = CoxTask(float(self.reg), self.normalize, self.tol, self.ties)
        return fit_model(self, task, X, survival_records(y, entry, strata), sample_weight)


@storable
@estimator(ChoiceParameters, KernelSetParameters, ChosenWeights, TiesParameters)
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
    scoring : str, callable or None, default="partial_likelihood"
        A name in :data:`manykernels.metrics.SCORERS`, or as in
        :class:`~sklearn.model_selection.GridSearchCV`; None is Harrell's concordance index. The
        default is the share of the deviance of held-out samples that is explained, which is less
        noisy than a concordance index and chose better models on five of eight data sets (and
        slightly worse ones on two). If there are strata, these scorers compare samples within
        strata; functions of your own do not know them. The share of the deviance falls with the
        number of samples, so that `left_out_score_`, of all rows together, is below `best_score_`,
        a mean over folds, even where that is not optimistic.

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
    >>> bool(model.left_out_score_ > 0.05)
    True
    """

    ps: ArrayLike | None = None
    regs: ArrayLike | None = None
    scoring: Any = "partial_likelihood"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
    }

    validation_curve = validation_curve

    @fits_survival
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        entry: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Self:
        """Choose p and λ, then learn from all samples."""
        task = CoxTask(None, self.normalize, self.tol, self.ties)
        grid = Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs, COX_REGS)})
        targets = survival_records(y, entry, strata)
        return fit_model(self, task, X, targets, sample_weight, groups, grid)
