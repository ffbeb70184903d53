"""MKFDACV: norm and regularisation chosen for the price of a few dozen fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed

from .._sklearn import StrOptions
from .._warnings import warn_caller
from ..discriminant import LabelledKernels
from ..discriminant.decision import checked_priors, fisher_regression
from ..discriminant.held_out import HeldOut, HeldOutScores, Test, held_out_scores
from ..kernels import Bands, Denoise
from ..solvers import PAPER_NORMS
from ._base import CLASS_WEIGHT, PRIORS, KernelEstimator, estimator, fits
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._multilabel import fit_labels, is_multilabel
from ._outputs import (
    DiscriminantTransformer,
    KernelClassifier,
    Probabilities,
    gives_probabilities,
)
from ._progress import FitTask
from ._rows import discriminant_rows
from ._splits import Splits
from .fda import fisher_preparation, learn_discriminant

# Models that only judge are solved to this multiple of `tol`: no score can tell the difference,
# and every second Newton step is saved. (The response of the weights in closed form needs `tol`:
# it takes every positive weight for one that can change.)
_LOOSER = 100.0

#: Ten regularisations, from almost none to more than all kernels together.
DEFAULT_REGS = tuple(np.logspace(-4, 3, 10).tolist())

Parts = list[tuple[LabelledKernels, Test]]


@estimator
class MKFDACV(DiscriminantTransformer, Probabilities, KernelClassifier, KernelEstimator):
    """Multiple kernel Fisher discriminant analysis with p and λ chosen by cross-validation.

    All norms and regularisations of a grid are solved as one path, each from its neighbours and
    each with a certificate. They are judged by samples that neither the kernel weights nor the
    discriminant nor its decision rule have seen: in folds, or on a validation set.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default the twelve of Yan et al. (2012).
    regs : array-like of float, optional
        λ to try; by default ten from 1e-4 to 1e3.
    cv : None, int, splitter, iterable of splits, (X_val, y_val) or "closed-form", default=None
        None takes five folds with the classes in equal parts, whatever the order of the rows;
        equal rows stay together, and a class of a single sample is never judged. "closed-form"
        leaves out fifty such folds in turn without refitting; the change of the kernel weights
        is taken to first order. Only a fiftieth of the samples is lost for learning, and no
        copies of kernels are made. A pair is a validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is accuracy.
    denoise : Denoise, Bands or None, default=None
        As for :class:`MKFDA`, learnt again in every fold.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities for the decision; by default the weighted frequencies.
    tol : float, default=1e-5
        Relative duality gap of the final fit, and of all models with ``cv="closed-form"``. Models
        of other splits are solved to a hundred times that.
    n_jobs : int, optional
        Folds at the same time.
    verbose : bool, default=False
        Print a line per point of the grid. Progress bars, which show the points that are done of
        all: ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    p_, reg_ : float, or ndarray of shape (n_labels,)
        The choice: best score, of equals the smallest log loss.
    estimators_ : list of MKFDACV
        With several labels per sample only: one per label, all on the same kernels.
    best_score_ : float
        The score of the choice. At each point of the grid it estimates what new samples would
        give, with models learnt from fewer samples (a little low); the best of many points is
        also the luckiest, so that `best_score_` is a little high where the grid is large and
        samples are few. For a figure to be quoted, put MKFDACV itself into ``cross_val_score``.
    cv_results_ : dict
        ``param_p``, ``param_reg``, ``split<i>_test_score``, ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, ``rel_gap`` (largest of the splits) and
        ``n_inner_solves`` (sum of them), one entry per point of the grid. Points whose matrix
        cannot be factorised have the score NaN and an infinite gap.
    cv_rule_ : str
        The rule by which all points were judged, "indicator" or "discriminant": the better one
        at the largest p, by the log loss of held-out samples. The final fit chooses for itself,
        see `rule_`.
    n_splits_ : int
    weights_ : ndarray of shape (n_kernels,)
        Learnt kernel weights, of the normalised kernels; like the following, of the fit to all
        samples.
    certificate_ : Certificate
    denoise_ : Denoise, Bands or None
        Fitted on the training kernels, such as `denoise_.n_components_`.
    n_iter_, n_inner_solves_, solver_, history_
        As for :class:`MKFDA`.

    Notes
    -----
    Kernels are computed once, for all rows: a width that a kernel takes from the data is that of
    all training rows, in every fold.

    In every fold the scales of the kernels, their weights, the discriminant and, where it has to
    be learnt, the rule come from the samples that are left in. (With ``cv="closed-form"`` scales
    and `denoise` are those of all samples.) Class scores become probabilities by two numbers that
    all splits of a point share.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDACV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKFDACV(ps=[1, 2], regs=[0.1, 1, 10]).fit(X, y)
    >>> model.validation_curve().shape
    (2, 3)
    >>> model.best_score_ > 0.95
    True
    """

    ps: Any = None
    regs: Any = None
    cv: Any = None
    scoring: Any = None
    denoise: Any = None
    class_weight: Any = None
    priors: Any = None
    tol: float = 1e-5
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "cv": ["cv_object", tuple, StrOptions({"closed-form"}), None],
        "scoring": [str, callable, None],
        "denoise": [Denoise, Bands, None],
        "class_weight": CLASS_WEIGHT,
        "priors": PRIORS,
        "n_jobs": [None, int],
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            With several labels per sample every label is a problem of its own, with its own
            p, λ and weights, on the same kernels.
        """
        if is_multilabel(y):
            return fit_labels(self, X, y, sample_weight)
        ps = checked_grid(self.ps, PAPER_NORMS, "ps", 1.0)
        regs = checked_grid(self.regs, DEFAULT_REGS, "regs", np.nextafter(0.0, 1.0))
        if np.isinf(regs).any():
            raise ValueError("regs must be finite.")
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight)
        kernels = TrainingKernels.of(rows, rows.weights)
        samples = kernels.labelled(rows)
        priors = checked_priors(self.priors, samples)
        parts = list(Splits(self, rows, kernels.source, samples).parts(np.asarray(y)))
        compares_rules = len(samples.classes) > 2
        task = FitTask.begin(self, X, y, len(parts) * (1 + compares_rules) + 1)
        rule = self._better_rule(samples, parts, ps, regs, task) if compares_rules else "indicator"
        held = self._held_out(samples, parts, ps, regs, (rule,), task)
        choice = _Choice.of(self, held, rule, ps, regs)
        learning = WeightLearning.at(self, choice.p)
        transform, denoise = fisher_preparation(self.normalize, self.denoise)
        final = task.subtask("final fit", learning.max_iter + 1)
        fitted = learn_discriminant(
            kernels,
            samples,
            transform,
            priors,
            learning,
            final,
            make_loss=lambda problem: problem.loss(choice.reg),
            regress=fisher_regression,
        )
        final.end()
        return self._keep(
            task,
            rows.attributes,
            kernels.source.attributes,
            fitted,
            choice.attributes,
            n_splits_=len(parts),
            denoise_=denoise,
        )

    def _better_rule(
        self,
        samples: LabelledKernels,
        parts: Parts,
        ps: np.ndarray,
        regs: np.ndarray,
        task: FitTask,
    ) -> str:
        """The rule that is better at the largest p."""
        both = ("indicator", "discriminant")
        held = self._held_out(samples, parts, ps.max(keepdims=True), regs, both, task, "rules, ")
        return held.better_rule()

    def _held_out(
        self,
        samples: LabelledKernels,
        parts: Parts,
        ps: np.ndarray,
        regs: np.ndarray,
        rules: tuple[str, ...],
        task: FitTask,
        purpose: str = "",
    ) -> HeldOut:
        """Scores of the grid on held-out samples."""
        n_parts = len(parts)
        scores: list[HeldOutScores] = Parallel(n_jobs=None if n_parts == 1 else self.n_jobs)(
            delayed(_scores_of_part)(
                train,
                test,
                fisher_preparation(self.normalize, self.denoise)[0],
                ps,
                regs,
                rules,
                self._tol_of_judges,
                task.part(f"{purpose}split {k + 1}/{n_parts}", len(ps) * len(regs)),
            )
            for k, (train, test) in enumerate(parts)
        )
        tests = [
            test if isinstance(test, LabelledKernels) else samples.of(np.concatenate(test))
            for _, test in parts
        ]
        given = None if self.priors is None else np.asarray(self.priors, dtype=float)
        return HeldOut(scores, tests, samples.frequencies, given)

    @property
    def _tol_of_judges(self) -> float:
        return self.tol if isinstance(self.cv, str) else _LOOSER * self.tol

    def validation_curve(self) -> np.ndarray:
        """Mean scores of the grid, one row per p and one column per λ."""
        n_regs = len(np.unique(self.cv_results_["param_reg"]))
        curve: np.ndarray = self.cv_results_["mean_test_score"].reshape(-1, n_regs)
        return curve

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # With several labels per sample, the model of every label answers for itself.

    def decision_function(self, X: Any) -> np.ndarray:
        """As :meth:`MKFDA.decision_function`; (n_rows, n_labels) with several labels."""
        if hasattr(self, "estimators_"):
            return self._by_label(X, lambda model, block: model.decision_function(block))
        return super().decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class, or an indicator matrix with several labels."""
        if hasattr(self, "estimators_"):
            return self._by_label(X, lambda model, block: model.predict(block))
        return super().predict(X)

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, or those of every label, (n_rows, n_labels)."""
        if hasattr(self, "estimators_"):
            return self._by_label(X, lambda model, block: model.predict_proba(block)[:, 1])
        return super().predict_proba(X)

    @available_if(gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`."""
        if hasattr(self, "estimators_"):
            return np.log(self.predict_proba(X))
        return super().predict_log_proba(X)

    def transform(self, X: Any) -> np.ndarray:
        """Discriminant directions, one per label with several labels."""
        if hasattr(self, "estimators_"):
            return self._by_label(X, lambda model, block: model.transform(block))
        return super().transform(X)

    def _by_label(self, X: Any, ask: Any) -> np.ndarray:
        answers: np.ndarray = self._expansion.answers(self, X, ask)
        return answers


def _scores_of_part(train: LabelledKernels, test: Test, *grid: Any) -> HeldOutScores:
    """Scores of one split, its task being the last argument."""
    task: FitTask = grid[-1]
    scores = held_out_scores(train, test, *grid)
    task.end()
    return scores


@dataclass(frozen=True)
class _Choice:
    """The point of the grid with the best score, of equals the one of smallest log loss."""

    p: float
    reg: float
    attributes: dict[str, Any]

    @classmethod
    def of(
        cls, model: MKFDACV, held: HeldOut, rule: str, ps: np.ndarray, regs: np.ndarray
    ) -> _Choice:
        if not held.solved.any():
            raise ValueError(
                f"No point of the grid could be solved. The last one: {held.failures[-1]}"
            )
        scores = held.judged_by(check_scoring(model, scoring=model.scoring), rule)
        mean = scores.mean(axis=0)
        _warn_of_points(model, held)
        _warn_of_scores(model, mean, held)
        best_score = float(np.nanmax(mean))
        equals = np.argwhere(mean == best_score).tolist()
        i, j = min(equals, key=lambda at: held.mean_log_loss(rule, *at))
        norms, regularizations = np.meshgrid(ps, regs, indexing="ij")
        flat = mean.ravel()
        worse = np.where(np.isnan(flat), -np.inf, flat)
        parts = held.parts
        results = {
            "params": [{"p": float(p), "reg": float(reg)} for p in ps for reg in regs],
            "param_p": norms.ravel(),
            "param_reg": regularizations.ravel(),
            **{f"split{k}_test_score": table.ravel() for k, table in enumerate(scores)},
            "mean_test_score": flat,
            "std_test_score": scores.std(axis=0).ravel(),
            "rank_test_score": 1 + np.sum(worse[:, None] < worse, axis=1),
            "rel_gap": np.max([part.rel_gaps for part in parts], axis=0).ravel(),
            "n_inner_solves": np.sum([part.n_inner_solves for part in parts], axis=0).ravel(),
        }
        p, reg = float(ps[i]), float(regs[j])
        attributes = {
            "p_": p,
            "reg_": reg,
            "best_score_": best_score,
            "cv_results_": results,
            "cv_rule_": rule,
        }
        return cls(p, reg, attributes)


def _warn_of_scores(model: MKFDACV, mean: np.ndarray, held: HeldOut) -> None:
    """Refuse a scorer that judges no point; name one that does not judge all."""
    if np.isnan(mean).all():
        raise ValueError(
            f"scoring={model.scoring!r} gave nan at every point of the grid: it cannot judge "
            "these data."
        )
    if (unknown := np.isnan(mean) & held.solved).any():
        warn_caller(
            f"scoring={model.scoring!r} gave nan at {int(unknown.sum())} of "
            f"{mean.size} points of the grid; they are ranked last.",
            UndefinedMetricWarning,
        )


def _warn_of_points(model: MKFDACV, held: HeldOut) -> None:
    """One warning for all points that are not what was asked for."""
    converged = np.all([part.converged for part in held.parts], axis=0)
    short = int(np.count_nonzero(held.solved & ~converged))
    remarks = []
    if short:
        worst = max(part.rel_gaps[part.n_inner_solves > 0].max() for part in held.parts)
        remarks.append(
            f"{short} of {converged.size} points of the grid did not reach the relative gap "
            f"{model._tol_of_judges:g} (the worst has {worst:.1e})"
        )
    if missing := int(np.count_nonzero(~held.solved)):
        first = f"the first: {held.failures[0]}" if held.failures else "a callback asked to stop"
        remarks.append(
            f"{missing} of {converged.size} points of the grid could not be solved and are "
            f"left out ({first})"
        )
    if remarks:
        warn_caller("; ".join(remarks) + ".", ConvergenceWarning)


def checked_grid(given: Any, default: tuple[float, ...], name: str, least: float) -> np.ndarray:
    """Values of a grid as an array; each at least `least`, none twice."""
    values = np.asarray(default if given is None else given, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not (values >= least).all():
        bound = "at least 1" if least == 1.0 else "positive"
        raise ValueError(
            f"{name} must be a non-empty list of numbers, each {bound}; got {given!r}."
        )
    if len(np.unique(values)) < len(values):
        raise ValueError(f"{name} has equal values: {given!r}.")
    return values
