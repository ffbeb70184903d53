"""Which views matter, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.base import is_classifier
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length

from ..display import ImportanceDisplay
from ..estimators.inputs import check_targets, matched_by_label, read_training, rows_that_count
from ..estimators.prediction import is_multilabel
from ..utils.folds import about_repeats
from ..utils.sklearn import check_sample_weight, num_samples, warn_caller
from ..utils.versions import aligned
from .intervals import UNKNOWN, Intervals, Mean
from .study import (
    Study,
    ViewKernels,
    at_chosen_norm,
    checked_learner,
    checked_scoring,
    of_plain_sum,
    refuse_without_probabilities,
    searches,
    splits_of,
    views_of,
    without_search,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- How much kernel weights owe to the samples at hand: weights learnt from half-samples ---------
#
# A half-sample is a fit on the same kernels in which half of the samples count twice and the
# others not at all, so that the regularisation stays in proportion. Estimates from halves of the
# samples vary about as much as those of new samples of full size would: the variance of a mean
# over half of n samples, given all of them, is ``s²(2/n − 1/n)``. Where they lie is another
# matter. Fewer different samples tell the views apart less well, so that weights of half-samples
# are nearer to each other than those of all samples, and quantiles of them may not even contain
# these. So an interval has the width of half-samples, and the weight learnt from all samples in
# its middle, as far as shares from 0 to 1 go. How often that covers the mean weight of new
# samples of the same size is measured in docs/benchmarks/importance.md.


def half_samples(
    strata: np.ndarray, groups: np.ndarray, number: int, rng: np.random.RandomState
) -> Iterator[Any]:
    """Counts 0 and 2 of the rows, one half after the other; each stratum is halved.

    Groups of rows are in a half or not. The second of two halves has the groups that the first has
    not. A stratum of one group is in every half.
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


def shares_of_views(fitted: Any, names: list[str], views: list[ViewKernels]) -> np.ndarray:
    """Part of each view in the sum of the weights of a model, (n_views,).

    Machines and regions with weights of their own count alike. `names` are those of the kernels
    of the model, some of which it may have cut into bands, ``"name[range]"``.
    """
    weights = np.asarray(fitted.weights_)
    weights = weights.reshape(-1, weights.shape[-1])
    weights = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    of_kernel = np.zeros(len(names))
    for name, weight in zip(fitted.kernel_names_, weights, strict=True):
        of_kernel[names.index(name if name in names else name.rpartition("[")[0])] += weight
    return np.array([of_kernel[view.kernels].sum() for view in views])


def share_intervals(shares: np.ndarray, resampled: np.ndarray, confidence: float) -> np.ndarray:
    """(low, high) of every share, (n_views, 2), from those of resamples, (n_resamples, n_views).

    Student's, with the standard deviation of the resamples; NaN with less than two of these.
    """
    if len(resampled) < 2:
        return np.full((len(shares), 2), np.nan)
    quantile = stats.t.isf((1.0 - confidence) / 2.0, len(resampled) - 1)
    half = quantile * np.std(resampled, axis=0, ddof=1)
    return np.clip(np.column_stack([shares - half, shares + half]), 0.0, 1.0)


def resampled_shares(
    study: Study, learner: Any, views: list[ViewKernels], counts: Iterator[np.ndarray]
) -> Iterator[np.ndarray]:
    """Shares of the views by models of resamples, one after the other."""
    names = study.stack.names
    for resample in counts:
        own = resample if study.counts is None else resample * study.counts
        yield shares_of_views(study.fit(learner, slice(None), own), names, views)


# -- The table of :func:`~manykernels.view_importance`, to print, to draw and to compute with -----


@dataclass(frozen=True, repr=False)
class ViewImportance:
    """What each view is worth; made by :func:`~manykernels.view_importance`.

    Intervals are arrays whose last axis is (low, high). What an interruption has left unknown is
    NaN.

    Attributes
    ----------
    names : list of str
        Of the views.
    scoring : str
        Name of the score. Larger is better.
    method : str
        How samples were kept from the models that are judged by them.
    confidence : float
        Of all intervals.
    score, score_interval : float and ndarray of shape (2,)
        With all views.
    fall, fall_interval : ndarray of shape (n_views,) and (n_views, 2)
        How much the score falls without the view, everything else learnt again.
    alone, alone_interval : ndarray of shape (n_views,) and (n_views, 2)
        The score with the view only. NaN where it has no kernel of its own.
    weight : ndarray of shape (n_views,)
        Share of the view in the sum of the learnt weights.
    resampled_weights : ndarray of shape (n_resamples, n_views)
        The same, learnt from half-samples.
    negligible : float
        Share of weight above which a view counts as chosen: less is not determined by the
        relative gap `tol` of the estimator.
    plain_sum, plain_sum_interval : float and ndarray of shape (2,)
        The score with all views where all kernels have the same weight.
    gain, gain_interval : float and ndarray of shape (2,)
        How much higher the score is with learnt weights.
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
        """How often half-samples gave the view a weight that is not negligible, (n_views,)."""
        if not len(self.resampled_weights):
            return np.full(len(self.names), np.nan)
        return np.mean(self.resampled_weights > self.negligible, axis=0)

    @property
    def weight_interval(self) -> np.ndarray:
        """Of the share of the weights, by its spread over half-samples, (n_views, 2)."""
        return share_intervals(self.weight, self.resampled_weights, self.confidence)

    def rows(self) -> list[dict[str, Any]]:
        """A dict per view; the keys are the columns of :meth:`to_frame`."""
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
        """The table as a pandas data frame, one row per view. Needs pandas; else `rows`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas; rows() gives the same without.") from error
        return pd.DataFrame(self.rows()).set_index("view")

    def __str__(self) -> str:
        """The table, and the lines about all views together."""
        header = ["view", "fall without", "", "alone", "", "weight", "", "chosen"]
        cells = [
            [
                name,
                _number(self.fall[j], sign=True),
                _interval(self.fall_interval[j], sign=True),
                _number(self.alone[j]),
                _interval(self.alone_interval[j]),
                _number(self.weight[j]),
                _interval(self.weight_interval[j]),
                "–" if np.isnan(self.chosen[j]) else f"{self.chosen[j]:.0%}",
            ]
            for j, name in enumerate(self.names)
        ]
        return "\n".join(
            [
                f"{self.scoring}, {self.method}; intervals at {self.confidence:.0%}",
                f"all views {_number(self.score)} {_interval(self.score_interval)}",
                "",
                aligned([header, *cells]),
                "",
                f"plain sum {_number(self.plain_sum)} {_interval(self.plain_sum_interval)}, "
                f"gain of learnt weights {_number(self.gain, sign=True)} "
                f"{_interval(self.gain_interval, sign=True)}",
            ]
        )

    __repr__ = __str__

    def plot(self, axes: Sequence[Axes] | None = None) -> Figure:
        """Draw falls, scores alone and weights, each with its interval.

        It is an :class:`~manykernels.display.ImportanceDisplay`.

        Parameters
        ----------
        axes : sequence of three matplotlib axes, optional
            Where to draw; by default in a new figure.
        """
        return ImportanceDisplay.from_importance(self, ax=axes).figure_


def _number(value: float, *, sign: bool = False) -> str:
    return "–" if np.isnan(value) else f"{value:+.3f}" if sign else f"{value:.3f}"


def _interval(bounds: np.ndarray, *, sign: bool = False) -> str:
    if np.isnan(bounds).any():
        return ""
    return f"[{', '.join(_number(bound, sign=sign) for bound in bounds)}]"


# -- The models that are compared, and the table of what they tell --------------------------------


class Models:
    """All models that are compared; what is not yet computed is None."""

    def __init__(
        self, study: Study, learner: Any, fitted: Any, views: list[ViewKernels], verbose: bool
    ) -> None:
        self.study, self.fitted, self.views, self.verbose = study, fitted, views, verbose
        self.plain, self.learner = without_search(learner, fitted), at_chosen_norm(learner, fitted)
        self.done = 0
        self.all = study.losses(self.learner, slice(None), fitted)
        self.without: list[np.ndarray | None] = [None] * len(views)
        self.alone: list[np.ndarray | None] = [None] * len(views)
        self.plain_sum: np.ndarray | None = None
        self.shares: list[np.ndarray] = []
        self._note("all views", self.all)

    def learn(self, resamples: Iterator[np.ndarray]) -> None:
        """Everything, in an order that an interruption leaves the most important part of."""
        study, every = self.study, np.arange(self.study.stack.n_kernels)
        for j, view in enumerate(self.views):
            rest = np.setdiff1d(every, view.kernels)
            self.without[j] = self._losses(f"without {view.name!r}", self.learner, rest)
        equal = of_plain_sum(self.learner, len(every))
        self.plain_sum = self.all if equal is None else self._losses("plain sum", equal, every)
        for j, view in enumerate(self.views):
            if len(view.own):
                self.alone[j] = self._losses(f"only {view.name!r}", self.learner, view.own)
        for k, shares in enumerate(resampled_shares(study, self.plain, self.views, resamples)):
            self.shares.append(shares)
            self._note(f"half-sample {k + 1}")

    def _losses(self, title: str, learner: Any, kernels: np.ndarray) -> np.ndarray:
        try:
            losses = self.study.losses(learner, kernels)
        except ValueError as error:
            raise ValueError(f"Model {title}: {error}") from error
        self._note(title, losses)
        return losses

    def _note(self, title: str, losses: np.ndarray | None = None) -> None:
        if losses is not None:
            self.done += 1
        if not self.verbose:
            return
        scoring = self.study.scoring
        told = (
            "" if losses is None else f"  {scoring.name} {scoring.best - np.nanmean(losses):.4f}"
        )
        print(f"[view_importance] {title}{told}")

    def result(self, confidence: float) -> ViewImportance:
        """The table of what is known."""
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
        )

        def scored(losses: np.ndarray | None) -> Mean:
            return UNKNOWN if losses is None else scoring.score(intervals.of(losses))

        def worse(losses: np.ndarray | None) -> Mean:
            return UNKNOWN if losses is None else intervals.of_difference(losses, self.all)

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
            alone=np.array([own.value for own in alone]),
            alone_interval=np.array([own.interval for own in alone]),
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
    repeats = about_repeats(study.groups)
    return f"{how}; {repeats}" if repeats else how


def view_importance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_resamples: int = 50,
    confidence: float = 0.95,
    sample_weight: Any = None,
    random_state: Any = 0,
    verbose: bool = False,
) -> ViewImportance:
    """Which views matter for a prediction, with intervals.

    A kernel weight is not an importance. Of two equal views one may get all the weight (p = 1),
    or each a half; a view of small weight may be the only one that tells two classes apart; and
    weights have no error bars. For every view this gives instead

    - **fall**: how much the score falls when the view is left out and everything is learnt again.
      It answers whether the view tells anything that the others do not.
    - **alone**: the score with this view only. It answers how much the view tells by itself.
    - **weight** and **chosen**: its share of the learnt weights, the spread of that share over
      half-samples, and how often it is more than nothing. They answer whether another sample
      would have given the same model.

    and, once, the **gain**: how much better learnt weights are than the plain sum of all kernels.

    Parameters
    ----------
    estimator : MKFDA, MKRidge, MKSVC or another that learns a weight per kernel at a norm p
        With its kernels; it is copied, not fitted. Of one with a search, such as MKFDACV, p is
        chosen once, with all views, and the other parameters are chosen again for every set of
        views.
    X, y : as for ``estimator.fit``
        The views of a dict or of :class:`~manykernels.Views` are what is compared. In a single
        table and in precomputed kernels (unless :meth:`KernelStack.with_views` says otherwise)
        every kernel is a view. Samples that lack all views of a model have no part in it.
    groups : dict of str to list of str, optional
        Kernel names of every view, in place of the above. Kernels of no view are always used.
    scoring : str or callable, optional
        For classes "accuracy" (by default) or "neg_log_loss", which notices more if the estimator
        has probabilities; for numbers "r2" (by default), "neg_mean_squared_error" or
        "neg_mean_absolute_error". A function ``loss(y, predictions)`` returns an array with one
        loss per sample; the score is minus its mean.
    cv : int, splitter or iterable of splits, optional
        Folds that are held out. By default samples are left out in closed form where the estimator
        has that (square loss), in the folds of a search, and else in five folds. Every sample may
        be tested once. Rows that repeat others are left out together with them.
    n_resamples : int, default=50
        Number of half-samples. With less than two, weights have no intervals.
    confidence : float in (0, 1), default=0.95
    sample_weight : array-like of shape (n_samples,), optional
        In fits and scores a sample of weight two counts as two; in intervals it is one sample.
    random_state : int, RandomState or None, default=0
        Draws half-samples, and folds where `cv` is a number.
    verbose : bool, default=False
        Print a line per model.

    Returns
    -------
    importance : ViewImportance
        ``print(importance)`` shows it, ``importance.plot()`` draws it, ``importance.to_frame()``
        is a table.

    Notes
    -----
    *What is not said.* Each of two equal views can be left out without a fall, and both of them
    have high scores alone: that is what a fall of nothing with a high score alone means. To see
    what the pair is worth, name it in `groups`. A fall is measured with this estimator and these
    kernels; it is no statement about causes.

    *Intervals.* All losses are those of samples that the model has not seen, and falls and gains
    are paired: means over samples of the difference between two models at the same sample.
    Student's interval of such a mean is used; of losses that are never negative, that of the
    logarithm of the mean, so that no score is better than the best one. Models of different folds
    share most of their samples, so the variance is ``s²(1/n + 1/n_train)`` (Nadeau and Bengio
    2003), about twice that of independent samples. To half the width of intervals of falls and
    gains, 2/n standard deviations of the losses are added in quadrature, which is what a view of
    noise changes by chance, and then ``√tol`` of them, which is what the accuracy of two fits
    leaves open. Accuracy has Wilson's interval, and its differences that of Agresti and Min, with
    the same number of independent samples. R² takes the variance of y as given. What intervals are
    to cover is the score of these models on new samples. How often they do is measured in
    docs/benchmarks/importance.md.

    A share of the weights has Student's interval, cut at 0 and 1, with the standard deviation over
    half-samples. What it is to cover is the mean share that models of as many new samples have.

    *Closed form.* A sample is left out exactly for given kernel weights, and to first order for
    the change of the weights; see the notes of :class:`~manykernels.MKFDA`. Folds are
    held out instead where a sample is known in another way: with `denoise`, with ``reg="joint"``
    or with a solver by columns. Two numbers that turn scores into probabilities are those of all
    samples, so that log losses are too small by about 2/n, of all sets alike. A search chooses λ
    or C from all samples, the judged ones included, as ``best_score_`` does; scores are a little
    high by that, of all sets alike.

    *Plain sum.* Without a search, each of n kernels has the weight ``n^(−1/p)``, so that equal
    and learnt weights have the same norm and the same regularisation.

    *Cost.* Kernels are computed once, and scales that they take from data are those of all
    samples. There are two models per view, two of all views and one per half-sample; where
    folds are held out a model is as many fits as there are folds, after a search if the estimator
    has one. After an interruption (Ctrl-C) what was computed so far is returned, with a warning.

    References
    ----------
    C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.
    A. Agresti, Y. Min. Simple improved confidence intervals for comparing matched proportions.
    Statistics in Medicine 24, 2005.

    Examples
    --------
    Two views that tell the same, and one that tells nothing:

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

    Neither of the two is needed. One of them is:

    >>> pair = {"pair": ["first", "same"], "noise": ["noise"]}
    >>> result = view_importance(
    ...     MKFDA(RBF(), p=1, reg=1.0), views, y, groups=pair, n_resamples=0
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
    _check_numbers(n_resamples, confidence)
    learner = checked_learner(estimator)
    judge = checked_scoring(scoring, of_classes=is_classifier(estimator))
    refuse_without_probabilities(learner, judge)
    X, y, sample_weight = matched_by_label(estimator, X, y, sample_weight)
    data = read_training(estimator, X)
    y = _checked_targets(estimator, data.X, y)
    kept, counts = _counted_rows(estimator, data.X, sample_weight)
    if len(kept) < len(y):
        data = data.keep(kept)
    stack, source = data.compute(counts, True, None)
    views = views_of(stack, getattr(source, "union", None), data.X, groups)
    rng = check_random_state(random_state)
    seed = rng.randint(np.iinfo(np.int32).max)

    groups = data.groups
    every = Study(stack._changed(groups=groups), y[kept], counts, judge, None)
    fitted = every.fit(learner, slice(None))
    splits = splits_of(cv, fitted, y, kept, groups, seed)
    n_folds = int(fitted.n_splits_) if splits is None and searches(learner) else 1
    study = replace(every, splits=splits, n_folds=n_folds)
    models = Models(study, learner, fitted, views, verbose)
    strata = study.y if is_classifier(estimator) else np.zeros(len(kept), int)
    try:
        models.learn(half_samples(strata, groups, n_resamples, rng))
    except KeyboardInterrupt:
        warn_caller(
            f"view_importance was interrupted after {models.done} models; what the others would "
            "have told is NaN.",
            RuntimeWarning,
        )
    return models.result(confidence)


# -- what is passed --------------------------------------------------------------------------


def _check_numbers(n_resamples: Any, confidence: Any) -> None:
    if not isinstance(n_resamples, Integral) or isinstance(n_resamples, bool) or n_resamples < 0:
        raise ValueError(f"n_resamples must be an integer, 0 or more; got {n_resamples!r}.")
    if not isinstance(confidence, Real) or not 0.0 < float(confidence) < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}.")


def _checked_targets(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """One target per row of X, or several numbers."""
    if y is None:
        raise ValueError("view_importance requires y: importance is that for predicting y.")
    if is_multilabel(y):
        raise ValueError(
            "y has several labels per sample: ask for the importance of one label at a time, with "
            "y[:, k]."
        )
    check_targets(y)
    targets = np.asarray(y)
    check_consistent_length(X, targets)
    return column_or_1d(targets) if is_classifier(estimator) else targets


def _counted_rows(
    estimator: Any, X: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers of the rows that count, and how many samples each stands for."""
    if sample_weight is None:
        return np.arange(int(num_samples(X))), None
    weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    kept = rows_that_count(type(estimator).__name__, weights)
    return kept, weights[kept]
