"""Which views matter, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length

from .._sklearn import check_sample_weight, num_samples
from .._warnings import warn_caller
from ..estimators._inputs import matched_by_label, read_training
from ..estimators._multilabel import is_multilabel
from ..estimators._rows import check_targets, rows_that_count
from .learners import checked_learner, refuse_without_probabilities, searches
from .models import Models
from .result import ViewImportance
from .scoring import checked_scoring
from .stability import half_samples
from .study import Study, splits_of
from .views import views_of


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
