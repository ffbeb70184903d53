"""Importance of views, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import is_classifier
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length

from ..display import ImportanceDisplay
from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator, survival_records
from ..estimators.inputs import TrainingTable, matched_by_label, read_training
from ..estimators.training_rows import (
    check_targets,
    checked_groups,
    is_multilabel,
    refuse_useless_groups,
    rows_that_count,
    targets_for_kernels,
)
from ..kernels.tables import Table
from ..utils.folds import about_groups, group_numbers
from ..utils.sklearn import check_sample_weight, num_samples, warn_caller
from ..utils.versions import aligned
from .intervals import UNKNOWN, Intervals, Mean
from .scoring import Judged, checked_scoring, strata_of
from .study import (
    LearntKernels,
    Splits,
    Study,
    ViewKernels,
    at_chosen_norm,
    checked_learner,
    kernels_of_views,
    learns_kernels,
    of_plain_sum,
    refuse_without_probabilities,
    searches,
    splits_of,
    without_search,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- Variability of kernel weights: half-samples --------------------------------------------------
#
# A half-sample is a fit to the same kernels in which half of the samples count twice and the
# others not at all, so that the regularisation stays in proportion. Estimates from half-samples
# vary about as much as those from new samples of full size: the variance of a mean over half of n
# samples, given all of them, is ``s²(2/n − 1/n)``. Their location is biased: fewer distinct
# samples separate the views less well, so that weights of half-samples are nearer to each other
# than those of all samples, and their quantiles may not even contain these. Therefore an interval
# has the width of half-samples around the weight learnt from all samples, within 0 and 1. Its
# coverage of the mean weight of new samples of the same size is measured in
# docs/benchmarks/importance.md.


def half_samples(
    strata: np.ndarray, groups: np.ndarray, number: int, rng: np.random.RandomState
) -> Iterator[np.ndarray]:
    """Yield counts, 0 or 2, of the rows for stratified half-samples.

    Groups of rows stay together. Every second half-sample is the complement of the one before. A
    stratum of one group is in every half-sample.
    """
    _, first, group_of_row = np.unique(groups, return_index=True, return_inverse=True)
    strata = strata[first]
    half = np.zeros(len(strata), bool)
    for turn in range(number):
        half = ~half if turn % 2 else _first_half(strata, rng)
        chosen = half.copy()
        for stratum in np.unique(strata):
            members = np.flatnonzero(strata == stratum)
            if len(members) == 1:
                chosen[members] = True
        yield 2.0 * chosen[group_of_row]


def _first_half(strata: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    half = np.zeros(len(strata), bool)
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        half[members[: (len(members) + 1) // 2]] = True
    return half


def shares_of_views(
    fitted: KernelEstimator, names: list[str], views: list[ViewKernels]
) -> np.ndarray:
    """Return the share of each view in the weights of a model, (n_views,).

    Shares are averaged over machines and regions. `names` are the kernels of the model, some of
    which it may have split into bands, ``"name[range]"``.
    """
    weights = np.asarray(fitted.weights_)
    weights = weights.reshape(-1, weights.shape[-1])
    weights = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    of_kernel = np.zeros(len(names))
    for name, weight in zip(fitted.kernel_names_, weights, strict=True):
        of_kernel[names.index(name if name in names else name.rpartition("[")[0])] += weight
    return np.array([of_kernel[view.kernels].sum() for view in views])


def share_intervals(shares: np.ndarray, resampled: np.ndarray, confidence: float) -> np.ndarray:
    """Return the interval (low, high) of each share, (n_views, 2).

    Student's interval with the standard deviation of the `resampled` shares, of shape
    (n_resamples, n_views); NaN for fewer than two resamples.
    """
    if len(resampled) < 2:
        return np.full((len(shares), 2), np.nan)
    quantile = stats.t.isf((1.0 - confidence) / 2.0, len(resampled) - 1)
    half = quantile * np.std(resampled, axis=0, ddof=1)
    return np.clip(np.column_stack([shares - half, shares + half]), 0.0, 1.0)


def resampled_shares(
    study: Study, learner: KernelEstimator, views: list[ViewKernels], counts: Iterator[np.ndarray]
) -> Iterator[np.ndarray]:
    """Yield the shares of the views in models of resamples."""
    names = study.stack.names
    for resample in counts:
        weights = resample if study.counts is None else resample * study.counts
        yield shares_of_views(study.fit(learner, slice(None), weights), names, views)


# -- Result ---------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ViewImportance:
    """Importance of views, returned by :func:`~manykernels.view_importance`.

    Intervals are arrays whose last axis is (low, high). Values that were not computed because of
    an interruption are NaN.

    Attributes
    ----------
    names : list of str
        Names of the views.
    scoring : str
        Name of the score. Larger is better.
    method : str
        Description of the held-out samples.
    confidence : float
        Confidence level of all intervals.
    score, score_interval : float and ndarray of shape (2,)
        Score of all views.
    fall, fall_interval : ndarray of shape (n_views,) and (n_views, 2)
        Decrease of the score if the view is left out and the model is fitted again.
    alone, alone_interval : ndarray of shape (n_views,) and (n_views, 2)
        Score of the view alone. NaN if it has no kernel of its own.
    weight : ndarray of shape (n_views,)
        Share of the view in the learnt weights.
    resampled_weights : ndarray of shape (n_resamples, n_views)
        Shares in weights learnt from half-samples.
    negligible : float
        Share of weight above which a view counts as chosen: the relative gap `tol` of the
        estimator does not determine smaller shares.
    plain_sum, plain_sum_interval : float and ndarray of shape (2,)
        Score of all views with equal weights of the kernels.
    gain, gain_interval : float and ndarray of shape (2,)
        Increase of the score by learnt weights over equal weights.
    """

    names: list[str]
    scoring: str
    method: str
    confidence: float
    score: float
    score_interval: np.ndarray
    fall: np.ndarray
    fall_interval: np.ndarray
    alone: np.ndarray
    alone_interval: np.ndarray
    weight: np.ndarray
    resampled_weights: np.ndarray = field(repr=False)
    negligible: float
    plain_sum: float
    plain_sum_interval: np.ndarray
    gain: float
    gain_interval: np.ndarray

    @property
    def chosen(self) -> np.ndarray:
        """Fraction of half-samples in which the weight is not negligible, (n_views,)."""
        if not len(self.resampled_weights):
            return np.full(len(self.names), np.nan)
        return np.mean(self.resampled_weights > self.negligible, axis=0)

    @property
    def weight_interval(self) -> np.ndarray:
        """Interval of the share of weight, from its spread over half-samples, (n_views, 2)."""
        return share_intervals(self.weight, self.resampled_weights, self.confidence)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each view, whose keys are the columns of :meth:`to_frame`."""
        columns = {
            "fall": self.fall,
            "fall_low": self.fall_interval[:, 0],
            "fall_high": self.fall_interval[:, 1],
            "alone": self.alone,
            "alone_low": self.alone_interval[:, 0],
            "alone_high": self.alone_interval[:, 1],
            "weight": self.weight,
            "weight_low": self.weight_interval[:, 0],
            "weight_high": self.weight_interval[:, 1],
            "chosen": self.chosen,
        }
        return [
            {"view": name, **{key: float(column[j]) for key, column in columns.items()}}
            for j, name in enumerate(self.names)
        ]

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per view. Without pandas, use :meth:`rows`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas; rows() returns the same values without it."
            ) from error
        return pd.DataFrame(self.rows()).set_index("view")

    def __str__(self) -> str:
        """Return the table, and lines about all views together."""
        header = ["view", "fall without", "", "alone", "", "weight", "", "chosen"]
        cells = [
            [
                name,
                _number(self.fall[j], sign=True),
                shown_interval(self.fall_interval[j], sign=True),
                _number(self.alone[j]),
                shown_interval(self.alone_interval[j]),
                _number(self.weight[j]),
                shown_interval(self.weight_interval[j]),
                "–" if np.isnan(self.chosen[j]) else f"{self.chosen[j]:.0%}",
            ]
            for j, name in enumerate(self.names)
        ]
        return "\n".join(
            [
                f"{self.scoring}, {self.method}; intervals at {self.confidence:.0%}",
                f"all views {_number(self.score)} {shown_interval(self.score_interval)}",
                "",
                aligned([header, *cells]),
                "",
                f"plain sum {_number(self.plain_sum)} {shown_interval(self.plain_sum_interval)}, "
                f"gain of learnt weights {_number(self.gain, sign=True)} "
                f"{shown_interval(self.gain_interval, sign=True)}",
            ]
        )

    __repr__ = __str__

    def plot(self, axes: Sequence[Axes] | None = None) -> Figure:
        """Draw falls, scores alone and weights, each with its interval.

        The plot is an :class:`~manykernels.display.ImportanceDisplay`.

        Parameters
        ----------
        axes : sequence of three matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        return ImportanceDisplay.from_importance(self, ax=axes).figure_


def _number(value: float, *, sign: bool = False) -> str:
    return "–" if np.isnan(value) else f"{value:+.3f}" if sign else f"{value:.3f}"


def shown_interval(bounds: np.ndarray, *, sign: bool = False) -> str:
    if np.isnan(bounds).any():
        return ""
    return f"[{', '.join(_number(bound, sign=sign) for bound in bounds)}]"


# -- Models that are compared ---------------------------------------------------------------------


class Models:
    """Losses and shares of all models that are compared; None if not yet computed."""

    def __init__(
        self,
        study: Study,
        learner: KernelEstimator,
        fitted: KernelEstimator,
        views: list[ViewKernels],
        verbose: bool,
    ) -> None:
        self.study, self.fitted, self.views, self.verbose = study, fitted, views, verbose
        self.plain, self.learner = without_search(learner, fitted), at_chosen_norm(learner, fitted)
        self.done = 0
        self.all = study.judge(self.learner, slice(None), fitted)
        self.without: list[Judged | None] = [None] * len(views)
        self.alone: list[Judged | None] = [None] * len(views)
        self.plain_sum: Judged | None = None
        self.shares: list[np.ndarray] = []
        self._note("all views", self.all)

    def learn(self, resamples: Iterator[np.ndarray]) -> None:
        """Fit all models, the most important first in case of an interruption."""
        study, kernels = self.study, np.arange(self.study.stack.n_kernels)
        for j, view in enumerate(self.views):
            rest = np.setdiff1d(kernels, view.kernels)
            self.without[j] = self._judged(f"without {view.name!r}", self.learner, rest)
        equal = of_plain_sum(self.learner, len(kernels))
        self.plain_sum = self.all if equal is None else self._judged("plain sum", equal, kernels)
        for j, view in enumerate(self.views):
            if len(view.exclusive):
                self.alone[j] = self._judged(f"only {view.name!r}", self.learner, view.exclusive)
        for k, shares in enumerate(resampled_shares(study, self.plain, self.views, resamples)):
            self.shares.append(shares)
            self._note(f"half-sample {k + 1}")

    def _judged(self, title: str, learner: KernelEstimator, kernels: np.ndarray) -> Judged:
        try:
            model = self.study.judge(learner, kernels)
        except ValueError as error:
            raise ValueError(f"Model {title}: {error}") from error
        self._note(title, model)
        return model

    def _note(self, title: str, model: Judged | None = None) -> None:
        if model is not None:
            self.done += 1
        if not self.verbose:
            return
        scoring, score = self.study.scoring, ""
        if model is not None:
            known = ~np.isnan(model.losses)
            mean = np.average(model.losses[known], weights=self.study.weights[known])
            score = f"  {scoring.name} {scoring.best - mean:.4f}"
        print(f"[view_importance] {title}{score}")

    def result(self, confidence: float) -> ViewImportance:
        """Return the results of the models fitted so far."""
        study, scoring = self.study, self.study.scoring
        # At a minimum F grows quadratically: a relative gap determines weights, and with them
        # outputs, to its square root.
        slack = float(np.sqrt(self.fitted.tol))
        intervals = Intervals(
            study.weights,
            confidence,
            study.train_share,
            scoring.hit_or_miss,
            slack,
            study.groups,
            study.events,
            scoring.most,
        )

        def scored(model: Judged | None) -> Mean:
            return UNKNOWN if model is None else scoring.score(intervals.of(model.losses))

        def worse(model: Judged | None) -> Mean:
            if model is None:
                return UNKNOWN
            return intervals.of_difference(*study.paired(model, self.all))

        score, plain_sum, gain = scored(self.all), scored(self.plain_sum), worse(self.plain_sum)
        falls, alone = list(map(worse, self.without)), list(map(scored, self.alone))
        return ViewImportance(
            names=[view.name for view in self.views],
            scoring=scoring.name,
            method=_described(study),
            confidence=confidence,
            score=score.value,
            score_interval=score.interval,
            fall=np.array([fall.value for fall in falls]),
            fall_interval=np.array([fall.interval for fall in falls]),
            alone=np.array([mean.value for mean in alone]),
            alone_interval=np.array([mean.interval for mean in alone]),
            weight=shares_of_views(self.fitted, study.stack.names, self.views),
            resampled_weights=np.array(self.shares).reshape(-1, len(self.views)),
            negligible=slack,
            plain_sum=plain_sum.value,
            plain_sum_interval=plain_sum.interval,
            gain=gain.value,
            gain_interval=gain.interval,
        )


def _described(study: Study) -> str:
    n_folds = study.n_folds if study.splits is None else len(study.splits)
    how = f"{n_folds} folds held out" if n_folds > 1 else "samples left out in closed form"
    kept = about_groups(study.groups, given=study.given is not None)
    return f"{how}; {kept}" if kept else how


@dataclass(frozen=True)
class Begun:
    """Samples, kernels and a fitted model, as read from the arguments.

    Attributes
    ----------
    data : Table or Matrices
        Rows of X that count.
    source : TableSource or MatrixSource
        Fitted kernels, if they are not precomputed.
    study : Study
        Kernels and targets of these rows.
    learner, fitted : KernelEstimator
        The estimator for precomputed kernels, before and after the fit to all rows.
    y, given : ndarray
        Targets, and the labels of groups or None, of all rows of X.
    kept, numbers : ndarray of int
        Rows that count, and the groups of these that are left out together.
    rng : RandomState
    seed : int
        Seed of the folds.
    """

    data: Any
    source: Any
    study: Study
    learner: Any
    fitted: Any
    y: np.ndarray
    given: np.ndarray | None
    kept: np.ndarray
    numbers: np.ndarray
    rng: np.random.RandomState
    seed: int

    @classmethod
    def of(
        cls,
        name: str,
        estimator: Any,
        X: Any,
        y: Any,
        groups: Any,
        scoring: Any,
        sample_weight: Any,
        random_state: Any,
        entry: Any = None,
        strata: Any = None,
    ) -> Begun:
        """Read the arguments of the function `name`, compute the kernels and fit the model."""
        learner = checked_learner(estimator, name)
        score = checked_scoring(scoring, learner)
        refuse_without_probabilities(learner, score)
        y = None if y is None else estimator._as_targets(y)
        X, y, sample_weight, groups, entry, strata = matched_by_label(
            estimator, X, y, sample_weight, groups, entry=entry, strata=strata
        )
        data = read_training(estimator, X)
        y = _checked_targets(estimator, data.X, y, name, entry, strata)
        kept, counts = _counted_rows(estimator, data.X, sample_weight)
        given = None if groups is None else checked_groups(groups, len(y))
        if len(kept) < len(y):
            data = data.keep(kept)
        targets = y[kept]
        coded = _coded(targets) if is_classifier(estimator) else (None, None)
        stack, source = data.compute(
            counts, True, None, targets=targets_for_kernels(targets, *coded)
        )
        rng = check_random_state(random_state)
        seed = rng.randint(np.iinfo(np.int32).max)
        if given is None:
            numbers, labels = data.groups, None
        else:
            labels = given[kept]
            numbers = group_numbers(labels)
            refuse_useless_groups(labels, *coded)
        stack = stack._changed(groups=numbers)
        study = Study(stack, targets, counts, score, None, given=labels)
        if isinstance(data, TrainingTable) and learns_kernels(getattr(source, "union", None)):
            table = LearntKernels.of(data.X, data.kernels, relevance=data.relevance)
            study = replace(study, table=table)
        fitted = study.fit(learner, slice(None))
        return cls(data, source, study, learner, fitted, y, given, kept, numbers, rng, seed)

    def splits(self, cv: Any) -> Splits | None:
        """Return folds of the rows that count, as :func:`splits_of`."""
        return splits_of(cv, self.fitted, self.y, self.kept, self.numbers, self.seed, self.given)

    @property
    def strata(self) -> np.ndarray:
        """Labels by which half-samples are stratified, (n_rows,)."""
        strata = strata_of(self.fitted, self.study.y)
        return np.zeros(len(self.kept), int) if strata is None else strata


def view_importance(
    estimator: KernelEstimator,
    X: Table,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    views: Mapping[str, Sequence[str]] | None = None,
    scoring: str | Callable[..., Any] | None = None,
    cv: Any = None,
    n_resamples: int = 50,
    confidence: float = 0.95,
    sample_weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    verbose: bool = False,
) -> ViewImportance:
    """Measure the importance of views for a prediction, with confidence intervals.

    Kernel weights do not measure importance. Of two equal views one may get all the weight
    (p = 1), or each a half; a view of small weight may be the only one that separates two classes;
    and weights have no error bars. For each view, this function computes

    - **fall**: the decrease of the score if the view is left out and the model is fitted again.
      It shows whether the view has information that the others lack.
    - **alone**: the score of this view alone. It shows how much information the view has.
    - **weight** and **chosen**: its share of the learnt weights, the spread of this share over
      half-samples, and how often it is not negligible. They show whether other samples would
      have led to a similar model.

    and, once, the **gain**: the increase of the score by learnt weights over the plain sum of all
    kernels.

    Parameters
    ----------
    estimator : MKFDA, MKRidge, MKSVC, MKCox or another with a weight per kernel at a norm p
        Estimator with its kernels; it is cloned, not fitted. For an estimator with a search, such
        as MKFDACV, p is chosen once, with all views, and the other parameters are chosen again
        for every set of views.
    X, y : as for ``estimator.fit``
        The views are those of a dict or of :class:`~manykernels.Views`. In a single table, and in
        precomputed kernels without :meth:`KernelStack.with_views`, every kernel is a view.
        Samples that lack all views of a model are left out of it.
    groups : array-like of shape (n_samples,), optional
        Labels of the groups of samples, such as the patients of several samples each: samples of
        one group are left out together, and are one sample in intervals and half-samples.
    views : dict of str to list of str, optional
        Kernel names of each view, in place of the above. Kernels of no view are always used.
    scoring : str or callable, optional
        For classes "accuracy" (default), "balanced_accuracy" or, if the estimator has
        probabilities, "neg_log_loss", which is more sensitive, and of two classes "roc_auc"; for
        numbers "r2" (default), "neg_mean_squared_error" or
        "neg_mean_absolute_error"; for MKGLM also "d2" (default), the share of its loss that is
        explained; for survival times "concordance_index". A function ``loss(y, predictions)``
        must return an array with one loss per sample; the score is minus its mean.
    cv : int, splitter or iterable of splits, optional
        Folds that are held out. By default, samples are left out in closed form if the estimator
        supports it (square loss), in the folds of a search, and else in five folds. Every sample
        may be tested once. Repeated rows are left out together, unless there are `groups`.
    n_resamples : int, default=50
        Number of half-samples. With fewer than two, weights have no intervals.
    confidence : float in (0, 1), default=0.95
        Confidence level of the intervals.
    sample_weight : array-like of shape (n_samples,), optional
        In fits and scores a sample of weight two counts as two; in intervals it is one sample.
    entry, strata : array-like of shape (n_samples,), optional
        For survival times, as in ``MKCox.fit``. The concordance index is that of pairs within
        strata, and does not know of entries.
    random_state : int, RandomState or None, default=0
        Seed of the half-samples, and of the folds if `cv` is a number.
    verbose : bool, default=False
        Whether to print a line per model.

    Returns
    -------
    importance : ViewImportance
        ``print(importance)`` prints it, ``importance.plot()`` draws it, ``importance.to_frame()``
        returns a table.

    Notes
    -----
    *Interpretation.* Each of two equal views can be left out without a fall, and both have high
    scores alone; no fall with a high score alone indicates such redundancy. To measure the
    importance of the pair, pass it in `views`. A fall refers to this estimator and these kernels;
    it is not a statement about causes.

    *Intervals.* All losses are those of held-out samples, and falls and gains are paired: means
    over samples of the difference between two models at the same sample. Their interval is
    Student's; for nonnegative losses, that of the logarithm of the mean, so that no score exceeds
    the best possible one. Models of different folds share most of their samples, so the variance
    is ``s²(1/n + 1/n_train)`` (Nadeau and Bengio 2003), about twice that of independent samples.
    To half the width of intervals of falls and gains, 2/n standard deviations of the losses are
    added in quadrature, for the random effect of a view of noise, and then ``√tol`` standard
    deviations, for the finite accuracy of two fits. Accuracy has Wilson's interval, and its
    differences that of Agresti and Min, with the same number of independent samples. R² takes the
    variance of y as known, D² the loss of the best constant, and balanced accuracy the shares of
    the classes. In intervals of the concordance index, of the area under the ROC curve, and of
    their differences, the influences of samples on the index take the place of losses (the
    infinitesimal jackknife), and the number of events, or of samples of the rarer class, that of
    samples. The intervals are for
    the score of these models on new samples. Their coverage is measured in
    docs/benchmarks/importance.md, except for the concordance index and D².

    A share of the weights has Student's interval, clipped to [0, 1], with the standard deviation
    over half-samples. It is for the mean share in models of as many new samples.

    *Closed form.* A sample is left out exactly for given kernel weights, and to first order for
    the change of the weights; see the notes of :class:`~manykernels.MKFDA`. Folds are held out
    instead if a sample is used in another way: with `denoise`, with ``reg="joint"``, with a
    solver by columns or with kernels that learn from targets. The two numbers that calibrate
    probabilities are those of all samples, so that log losses are too small by about 2/n, equally
    for all sets of views. A search chooses λ or C from all samples, including those that are
    scored, as ``best_score_`` does; this makes scores slightly too high, equally for all sets of
    views.

    *Plain sum.* Without a search, each of n kernels has the weight ``n^(−1/p)``, so that equal
    and learnt weights have the same norm and the same regularisation.

    *Cost.* Kernels are computed once, with scales estimated from all samples; if some learn from
    targets, in every fit, from its samples. There are two models
    per view, two of all views and one per half-sample; if folds are held out, a model is as many
    fits as there are folds, after a search if the estimator has one. After an interruption
    (Ctrl-C), the results so far are returned, with a warning.

    References
    ----------
    C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.
    A. Agresti, Y. Min. Simple improved confidence intervals for comparing matched proportions.
    Statistics in Medicine 24, 2005.

    Examples
    --------
    Two views with the same information, and one of noise:

    >>> import numpy as np
    >>> from manykernels import MKFDA, view_importance
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(1)
    >>> y = rng.integers(0, 2, 120)
    >>> first = y[:, None] + 0.4 * rng.standard_normal((120, 2))
    >>> views = {"first": first, "same": 3 * first, "noise": rng.standard_normal((120, 2))}
    >>> result = view_importance(MKFDA(RBF(), p=1, reg=1.0), views, y, n_resamples=10)
    >>> for row in result.rows():
    ...     print(f"{row['view']:6s} fall {row['fall']:+.2f}   alone {row['alone']:.2f}")
    first  fall +0.00   alone 0.98
    same   fall +0.00   alone 0.98
    noise  fall -0.01   alone 0.54

    Neither of the two views is needed, but one of them is:

    >>> pair = {"pair": ["first", "same"], "noise": ["noise"]}
    >>> result = view_importance(
    ...     MKFDA(RBF(), p=1, reg=1.0), views, y, views=pair, n_resamples=0
    ... )
    >>> print(result)
    accuracy, samples left out in closed form; intervals at 95%
    all views 0.975 [0.898, 0.994]
    <BLANKLINE>
    view   fall without                    alone                  weight    chosen
    pair         +0.433  [+0.285, +0.554]  0.983  [0.911, 0.997]   0.957         –
    noise        -0.008  [-0.047, +0.031]  0.542  [0.417, 0.662]   0.043         –
    <BLANKLINE>
    plain sum 0.983 [0.911, 0.997], gain of learnt weights -0.008 [-0.047, +0.031]
    """
    check_numbers_of(n_resamples, confidence)
    if isinstance(groups, Mapping):
        raise TypeError("groups are labels of the samples; pass the kernels of views as views=...")
    begun = Begun.of(
        *("view_importance", estimator, X, y, groups, scoring, sample_weight, random_state),
        entry=entry,
        strata=strata,
    )
    study, learner, fitted, rng = begun.study, begun.learner, begun.fitted, begun.rng
    of_views = kernels_of_views(
        study.stack, getattr(begun.source, "union", None), begun.data.X, views
    )
    splits = begun.splits(cv)
    n_folds = int(fitted.n_splits_) if splits is None and searches(learner) else 1
    study = replace(study, splits=splits, n_folds=n_folds)
    models = Models(study, learner, fitted, of_views, verbose)
    try:
        models.learn(half_samples(begun.strata, begun.numbers, n_resamples, rng))
    except KeyboardInterrupt:
        warn_caller(
            f"view_importance was interrupted after {models.done} models; the values of the other "
            "models are NaN.",
            RuntimeWarning,
        )
    return models.result(confidence)


# -- validation of parameters ----------------------------------------------------------------


def check_numbers_of(n_resamples: object, confidence: object) -> None:
    if not isinstance(n_resamples, Integral) or isinstance(n_resamples, bool) or n_resamples < 0:
        raise ValueError(f"n_resamples must be an integer, 0 or more; got {n_resamples!r}.")
    if not isinstance(confidence, Real) or not 0.0 < float(confidence) < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}.")


def _checked_targets(
    estimator: KernelEstimator,
    X: Any,
    y: ArrayLike,
    name: str,
    entry: ArrayLike | None,
    strata: ArrayLike | None,
) -> np.ndarray:
    """Validate y for the function `name`: a target, or several numbers, per row of X.

    Survival times have entries and strata, if there are some, as fields.
    """
    if y is None:
        raise ValueError(f"{name} requires y: it measures importance for predicting y.")
    if is_multilabel(y):
        raise ValueError(
            "y has several labels per sample: compute the importance for one label at a time, "
            "with y[:, k]."
        )
    if isinstance(estimator, SurvivalEstimator):
        targets = survival_records(y, entry, strata)
        check_consistent_length(X, targets)
        return targets
    for option, given in (("entry", entry), ("strata", strata)):
        if given is not None:
            raise TypeError(
                f"{option} is for survival models, and {type(estimator).__name__} is none."
            )
    check_targets(y)
    targets = np.asarray(y)
    check_consistent_length(X, targets)
    return column_or_1d(targets) if is_classifier(estimator) else targets


def _coded(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of labels among the classes, and the classes."""
    classes, labels = np.unique(y, return_inverse=True)
    return labels, classes


def _counted_rows(
    estimator: KernelEstimator, X: Table, sample_weight: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the indices of rows with nonzero weight, and these weights."""
    if sample_weight is None:
        return np.arange(int(num_samples(X))), None
    weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    kept = rows_that_count(type(estimator).__name__, weights)
    return kept, weights[kept]
