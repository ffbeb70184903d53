"""MKFDACV: norm and regularisation chosen for the price of a few dozen fits."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed

from .._sklearn import Interval, StrOptions
from .._warnings import warn_caller
from ..solvers import PAPER_NORMS, GridPoint
from ._fitting import all_or_nothing
from ._grid import HeldOut, HeldOutScores, TestPart, TrainingPart, held_out_scores
from ._multilabel import MultilabelMixin, is_multilabel
from ._probabilities import gives_probabilities
from ._splits import SplitsMixin
from .fda import MKFDA

# Models that only judge are solved to this multiple of `tol`: no score can tell the difference,
# and every second Newton step is saved. (The response of the weights in closed form needs `tol`:
# it takes every positive weight for one that can change.)
_LOOSER = 100.0

#: Ten regularisations, from almost none to more than all kernels together.
DEFAULT_REGS = tuple(np.logspace(-4, 3, 10).tolist())


class MKFDACV(MultilabelMixin, SplitsMixin, MKFDA):
    """Multiple kernel Fisher discriminant analysis with p and λ chosen by cross-validation.

    All norms and regularisations of a grid are solved as one path, each from its neighbours and
    each with a certificate. They are judged by samples that neither the kernel weights nor the
    discriminant nor its decision rule have seen: in folds, or on a validation set.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        As for :class:`MKFDA`. Kernels are computed once, for all rows: a width that a kernel
        takes from the data is that of all training rows, in every fold.
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
    normalize, denoise, class_weight, priors
        As for :class:`MKFDA`.
    tol : float, default=1e-5
        Relative duality gap of the final fit, and of all models with ``cv="closed-form"``. Models
        of other splits are solved to a hundred times that.
    n_jobs : int, optional
        Folds at the same time.
    verbose : bool, default=False
        Print a line per point of the grid.

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
        ``n_factorizations`` (sum of them), one entry per point of the grid. Points whose matrix
        cannot be factorised have the score NaN and an infinite gap.
    cv_rule_ : str
        The rule by which all points were judged, "indicator" or "discriminant": the better one
        at the largest p, by the log loss of held-out samples. The final fit chooses for itself,
        see `rule_`.
    n_splits_ : int

    All attributes of :class:`MKFDA`, of the fit to all samples.

    Notes
    -----
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "cv": ["cv_object", tuple, StrOptions({"closed-form"}), None],
        "scoring": [str, callable, None],
        "normalize": MKFDA._parameter_constraints["normalize"],
        "denoise": MKFDA._parameter_constraints["denoise"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "priors": ["array-like", None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [None, int],
        "verbose": ["verbose"],
    }
    solver = "newton"

    def __init__(
        self,
        kernels: Any = None,
        *,
        ps: Any = None,
        regs: Any = None,
        cv: Any = None,
        scoring: Any = None,
        normalize: str | None = "multiplicative",
        denoise: Any = None,
        class_weight: Any = None,
        priors: Any = None,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.kernels = kernels
        self.ps = ps
        self.regs = regs
        self.cv = cv
        self.scoring = scoring
        self.normalize = normalize
        self.denoise = denoise
        self.class_weight = class_weight
        self.priors = priors
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    # What MKFDA takes as parameters is chosen here.
    @property
    def p(self) -> float:  # type: ignore[override]
        return self.p_

    @property
    def reg(self) -> float:  # type: ignore[override]
        return self._best_reg

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix, or KernelStack if precomputed
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            With several labels per sample every label is a problem of its own, with its own
            p, λ and weights, on the same kernels.
        sample_weight : array-like of shape (n_samples,), optional
        """
        self._validate_params()
        if is_multilabel(y):
            return self._fit_labels(X, y, sample_weight)
        self.__dict__.pop("estimators_", None)
        ps = checked_grid(self.ps, PAPER_NORMS, "ps", 1.0)
        regs = checked_grid(self.regs, DEFAULT_REGS, "regs", np.nextafter(0.0, 1.0))
        if np.isinf(regs).any():
            raise ValueError("regs must be finite.")
        data, labels, weights, multiplicity = self._validated(X, y, sample_weight)
        self._checked_priors(np.bincount(labels, weights=weights))
        self._stack = super()._training_stack(data, weights)
        whole = TrainingPart(self._stack, labels, weights, multiplicity)
        try:
            self._choose(ps, regs, self._held_out(whole, np.asarray(y), ps, regs))
            return super().fit(X, y, sample_weight)
        finally:
            del self._stack

    def _training_stack(self, data: Any, weights: Any, solver: Any = None) -> Any:
        return self._stack

    def _reg_at_unit_variance(self) -> None:
        """None: kernels are cut before λ is chosen."""
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def decision_function(self, X: Any) -> np.ndarray:
        """As :meth:`MKFDA.decision_function`; (n_rows, n_labels) with several labels."""
        if hasattr(self, "estimators_"):
            return self._by_label(X, lambda one, block: one.decision_function(block))
        return super().decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class, or an indicator matrix with several labels."""
        if hasattr(self, "estimators_"):
            return self._by_label(X, lambda one, block: one.predict(block))
        return super().predict(X)

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, or those of every label, (n_rows, n_labels)."""
        if hasattr(self, "estimators_"):
            return self._by_label(X, lambda one, block: one.predict_proba(block)[:, 1])
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
            return self._by_label(X, lambda one, block: one.transform(block))
        return super().transform(X)

    def _held_out(
        self, whole: TrainingPart, y: np.ndarray, ps: np.ndarray, regs: np.ndarray
    ) -> HeldOut:
        """Scores of the grid on held-out samples, by the rule that is better at the largest p."""
        parts = list(self._parts(whole, y))
        self.n_splits_ = len(parts)
        tests = [
            test if isinstance(test, TestPart) else whole.rows(np.concatenate(test))
            for _, test in parts
        ]
        frequencies = whole.masses / whole.masses.sum()
        given = None if self.priors is None else np.asarray(self.priors, dtype=float)

        def run(norms: np.ndarray, rules: tuple[str, ...]) -> HeldOut:
            jobs = None if len(parts) == 1 else self.n_jobs
            scores: list[HeldOutScores] = Parallel(n_jobs=jobs)(
                delayed(held_out_scores)(
                    train,
                    test,
                    self._preparation(),
                    norms,
                    regs,
                    rules,
                    self._tol_of_judges,
                    self._notifier(k),
                )
                for k, (train, test) in enumerate(parts)
            )
            return HeldOut(scores, tests, frequencies, self.classes_, given)

        self.cv_rule_ = "indicator"
        if len(self.classes_) > 2:
            trial = run(np.array([ps.max()]), ("indicator", "discriminant"))
            self.cv_rule_ = trial.better_rule()
        return run(ps, (self.cv_rule_,))

    @property
    def _tol_of_judges(self) -> float:
        return self.tol if isinstance(self.cv, str) else _LOOSER * self.tol

    def _notifier(self, split: int) -> _Notifier | None:
        return _Notifier(type(self).__name__, split, self.n_splits_) if self.verbose else None

    def _choose(self, ps: np.ndarray, regs: np.ndarray, held: HeldOut) -> None:
        scorer = check_scoring(self, scoring=self.scoring)
        scores = held.judged_by(scorer, self.cv_rule_)
        tables = held.parts
        mean = scores.mean(axis=0)
        failures = [failure for table in tables for failure in table.failures]
        if not held.solved.any():
            raise ValueError(f"No point of the grid could be solved. The last one: {failures[-1]}")
        self._warn_of_points(held, failures)
        if np.isnan(mean).all():
            raise ValueError(
                f"scoring={self.scoring!r} gave nan at every point of the grid: it cannot judge "
                "these data."
            )
        if (unknown := np.isnan(mean) & held.solved).any():
            warn_caller(
                f"scoring={self.scoring!r} gave nan at {int(unknown.sum())} of "
                f"{mean.size} points of the grid; they are ranked last.",
                UndefinedMetricWarning,
            )
        self.best_score_ = float(np.nanmax(mean))
        best = np.argwhere(mean == self.best_score_).tolist()
        i, j = min(best, key=lambda at: held.mean_log_loss(self.cv_rule_, *at))
        self.p_, self._best_reg = float(ps[i]), float(regs[j])
        norms, regularizations = np.meshgrid(ps, regs, indexing="ij")
        flat = mean.ravel()
        worse = np.where(np.isnan(flat), -np.inf, flat)
        self._shape = mean.shape
        self.cv_results_ = {
            "params": [{"p": float(p), "reg": float(reg)} for p in ps for reg in regs],
            "param_p": norms.ravel(),
            "param_reg": regularizations.ravel(),
            **{f"split{k}_test_score": table.ravel() for k, table in enumerate(scores)},
            "mean_test_score": flat,
            "std_test_score": scores.std(axis=0).ravel(),
            "rank_test_score": 1 + np.sum(worse[:, None] < worse, axis=1),
            "rel_gap": np.max([table.rel_gaps for table in tables], axis=0).ravel(),
            "n_factorizations": np.sum(
                [table.n_factorizations for table in tables], axis=0
            ).ravel(),
        }

    def _warn_of_points(self, held: HeldOut, failures: list[str]) -> None:
        """One warning for all points that are not what was asked for."""
        converged = np.all([part.converged for part in held.parts], axis=0)
        short = int(np.count_nonzero(held.solved & ~converged))
        remarks = []
        if short:
            worst = max(part.rel_gaps[part.n_factorizations > 0].max() for part in held.parts)
            remarks.append(
                f"{short} of {converged.size} points of the grid did not reach the relative gap "
                f"{self._tol_of_judges:g} (the worst has {worst:.1e})"
            )
        if missing := int(np.count_nonzero(~held.solved)):
            remarks.append(
                f"{missing} of {converged.size} points of the grid could not be solved and are "
                f"left out (the first: {failures[0]})"
            )
        if remarks:
            warn_caller("; ".join(remarks) + ".", ConvergenceWarning)

    def validation_curve(self) -> np.ndarray:
        """Mean scores of the grid, one row per p and one column per λ."""
        return self.cv_results_["mean_test_score"].reshape(self._shape)


class _Notifier:
    """Prints points of the grid as they come."""

    def __init__(self, name: str, split: int, n_splits: int):
        self.name, self.split, self.n_splits = name, split, n_splits

    def __call__(self, point: GridPoint, p: float) -> None:
        print(
            f"[{self.name}] split {self.split + 1}/{self.n_splits}  p {p:.6g}  "
            f"reg {point.loss.reg:.3g}  factorisations {point.n_inner_solves}  "
            f"relative gap {point.certificate.rel_gap:.1e}"
        )


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
