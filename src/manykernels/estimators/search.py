"""Parameters chosen by cross-validation: splits, scores and the choice of a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..discriminant import N_FOLDS, Samples
from ..domains import lp_domain
from ..kernels.tables import Table, check_numbers
from ..losses.square import NotPositiveDefiniteError
from ..metrics import SCORERS
from ..solvers.evidence import Evidence
from ..solvers.path import GridPoint, GridRecord, solved_in_all, walk_grid
from ..survival import survival_array
from ..utils.folds import about_groups, positions_among, splits_of_rows, warn_of_untested
from ..utils.sklearn import warn_caller
from .base import FitTask, KernelEstimator, estimator
from .grid import Grid
from .held_out import HeldOut, HeldOutDecisions, HeldOutLabels, HeldOutValues, SplitOutputs
from .inputs import Source, block_while_fitting, matched_by_label
from .kernel_data import KernelsOfTargets, TrainingKernels
from .training_rows import TrainingRows, indicator_matrix, is_multilabel
from .weights import distinct_rows

# -- scores ----------------------------------------------------------------------------------


def standard_errors(scores: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the first axis, the splits; NaN if there is only one."""
    n_splits = len(scores)
    if n_splits < 2:
        return np.full(scores.shape[1:], np.nan)
    errors: np.ndarray = scores.std(axis=0, ddof=1) / np.sqrt(n_splits)
    return errors


def cv_results(grid: Grid, scores: np.ndarray, records: Sequence[GridRecord]) -> dict[str, Any]:
    """The table that scikit-learn's searches call ``cv_results_``; scores are (n_splits, …)."""
    kept = grid.distinct
    mean = scores.mean(axis=0).ravel()[kept]
    table = {
        **grid.columns(),
        **{f"split{k}_test_score": table.ravel() for k, table in enumerate(scores)},
        "mean_test_score": scores.mean(axis=0).ravel(),
        "std_test_score": scores.std(axis=0).ravel(),
        "se_test_score": standard_errors(scores).ravel(),
        "rel_gap": np.max([record.rel_gaps for record in records], axis=0).ravel(),
        "n_inner_solves": np.sum([record.n_inner_solves for record in records], axis=0).ravel(),
    }
    return {
        "params": [params for params, keep in zip(grid.params, kept, strict=True) if keep],
        **{name: values[kept] for name, values in table.items()},
        "rank_test_score": rankdata(-np.nan_to_num(mean, nan=-np.inf), "min").astype(int),
    }


def refuse_unsolved(records: Sequence[GridRecord], tol: float) -> None:
    """Warn once of all points that were not solved, or not to `tol`; raise if none was solved."""
    solved = solved_in_all(records)
    failures = [failure for record in records for failure in record.failures]
    if not solved.any():
        last = f"The last one: {failures[-1]}" if failures else "A callback asked to stop."
        raise ValueError(f"No point of the grid could be solved. {last}")
    converged = np.all([record.converged for record in records], axis=0)
    remarks = []
    if short := int(np.count_nonzero(solved & ~converged)):
        worst = max(record.rel_gaps[record.solved].max() for record in records)
        reason = (
            f"the worst has {worst:.1e}"
            if worst > tol
            else "rounding errors are larger: subtract the mean of targets that are far from zero"
        )
        remarks.append(
            f"{short} of {solved.size} points of the grid did not reach the relative gap "
            f"{tol:g} ({reason})"
        )
    if missing := int(np.count_nonzero(~solved)):
        first = f"the first: {failures[0]}" if failures else "a callback asked to stop"
        remarks.append(
            f"{missing} of {solved.size} points of the grid could not be solved and are "
            f"left out ({first})"
        )
    if remarks:
        warn_caller("; ".join(remarks) + ".", ConvergenceWarning)


def refuse_undefined(scoring: Any, mean: np.ndarray, solved: np.ndarray) -> None:
    """Warn if the scorer is undefined at some points of the grid; raise if it is at every one."""
    if np.isnan(mean).all():
        raise ValueError(
            f"scoring={scoring!r} gave nan at every point of the grid: it cannot judge these "
            "data. Test parts may be too small for it: R², the default of regressors, needs two "
            "samples. Choose another scoring, or fewer folds."
        )
    if (unknown := np.isnan(mean) & solved).any():
        warn_caller(
            f"scoring={scoring!r} gave nan at {int(unknown.sum())} of {mean.size} points of the "
            "grid; they are ranked last.",
            UndefinedMetricWarning,
        )


# -- The splits into training and test samples behind a parameter ``cv`` --------------------------


# Folds with cv=None, as in scikit-learn.
_DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class Split:
    """One split, whose kernels are not cut yet.

    `test` are positions in `samples`, or the samples of a validation set, or a list of folds of
    all samples, which are left out in closed form. Kernels `of_targets` are learnt anew.
    """

    samples: Samples
    train: np.ndarray | None
    test: Any
    of_targets: KernelsOfTargets | None = None

    def parts(self) -> tuple[Samples, Any]:
        """Return the training samples, and the test samples or folds."""
        if self.train is None:
            return self.samples, self.test
        if self.of_targets is not None:
            return self.of_targets.split(self.samples, self.train, self.test)
        return self.samples.split(self.train, self.test)

    def select(self, kernels: np.ndarray) -> Split:
        """Return the same split of some of the kernels."""
        test = self.test.select(kernels) if isinstance(self.test, Samples) else self.test
        of_targets = None if self.of_targets is None else self.of_targets.select(kernels)
        return Split(self.samples.select(kernels), self.train, test, of_targets)

    @property
    def tested(self) -> np.ndarray | None:
        """Positions of the training rows that are tested; None for a validation set."""
        if isinstance(self.test, list):
            return np.concatenate(self.test)
        return None if self.train is None else np.asarray(self.test)

    @property
    def test_samples(self) -> Samples:
        """Test samples, fold after fold, with the kernels of all samples."""
        samples: Samples = self.test
        return samples if self.tested is None else self.samples.take(self.tested)


@dataclass(frozen=True)
class Splits:
    """Training and test parts, cut from kernels that are computed once for all rows.

    Kernels that learn from targets are computed again in every part, from its training rows.
    `estimator` has the parameter ``cv``; `source` gives the kernels of a validation set.
    """

    estimator: KernelEstimator
    rows: TrainingRows
    source: Source
    samples: Samples

    def of(self, y: ArrayLike | None) -> list[Split]:
        """Return all splits; `y` has the targets of all rows of X.

        The test part of ``cv="closed-form"`` is a list of folds of the training part.
        """
        y = np.asarray(y) if self.samples.n_labels is None else indicator_matrix(y)
        return list(self._each(y))

    @cached_property
    def _of_targets(self) -> KernelsOfTargets | None:
        return KernelsOfTargets.of(self.rows, self.source, self.samples.common_weights)

    def _each(self, y: np.ndarray) -> Iterator[Split]:
        cv, samples = self.estimator.cv, self.samples
        if isinstance(cv, str):
            if self._of_targets is not None:
                names = ", ".join(map(repr, self._of_targets.union.names_))
                raise ValueError(
                    f"cv={cv!r} does not go with kernels that learn from targets ({names}), which "
                    "know the targets of all rows: pass a number of folds, such as cv=5."
                )
            yield Split(samples, None, self._folds(N_FOLDS))
        elif cv is None or is_number(cv):
            for k, test in enumerate(self._folds(_DEFAULT_FOLDS if cv is None else int(cv))):
                yield self._checked(np.delete(np.arange(len(self.rows)), test), test, k)
        elif is_validation_set(cv):
            yield Split(samples, None, self._validation_part(cv))
        else:
            groups, classifies = self.rows.given_groups, samples.classes is not None
            for k, split in enumerate(splits_of_rows(cv, y, groups, classifier=classifies)):
                train, test = (positions_among(self.rows.numbers, part) for part in split)
                yield self._checked(train, test, k)

    def _folds(self, n_folds: int) -> list[np.ndarray]:
        """Divide the rows into folds of whole groups."""
        if n_folds < 2:
            raise ValueError(f"cv={n_folds}: at least 2 folds are needed.")
        folds = self.samples.folds(n_folds)
        told = self.rows.given_groups is not None  # when the rows were read
        if self.estimator.verbose and not told and (message := about_groups(self.rows.groups)):
            print(f"[{type(self.estimator).__name__}] {message}")
        if len(folds) < 2:
            name, way_out = type(self.estimator).__name__, "Pass a validation set as cv."
            if name.endswith("CV"):
                way_out = (
                    "Choose its parameters yourself, with the estimator without CV in its name."
                )
            lacking = "there are no" if self.samples.classes is None else "no class has"
            several = "two samples that are not repeats of each other"
            if self.rows.given_groups is not None:
                several = "samples of two groups that can be divided"
            raise ValueError(
                f"{name} cannot be judged by folds: {lacking} {several} "
                f"(n_samples = {len(self.rows)}). {way_out}"
            )
        if self.samples.classes is not None and self.rows.given_groups is None:
            warn_of_untested(self.samples.labels, self.samples.classes, folds)
        return folds

    def _checked(self, train: np.ndarray, test: np.ndarray, split: int) -> Split:
        """Return the split; raise if nothing can be learnt or tested."""
        classes = self.samples.classes
        if classes is not None:
            labels = self.samples.labels[train].reshape(len(train), -1)
            left = np.array([np.bincount(column, minlength=len(classes)) for column in labels.T])
            if (left == 0).any():
                label = int(np.argmax((left == 0).any(axis=1)))
                absent = classes[left[label] == 0].tolist()
                of_label = "" if self.samples.n_labels is None else f" in label {label}"
                raise ValueError(
                    f"Split {split} leaves no training samples of {absent}{of_label}: "
                    "use fewer folds, or stratified ones (cv=int)."
                )
        elif len(train) < 2:  # kernels of a single sample have no variance
            raise ValueError(
                f"Split {split} leaves {len(train)} training samples: at least 2 are needed."
            )
        if len(test) == 0:
            raise ValueError(f"Split {split} has no test samples.")
        return Split(self.samples, train, test, self._of_targets)

    def _validation_part(self, pair: tuple[Any, ...]) -> Samples:
        if len(pair) != 2:
            raise ValueError(
                f"cv is a tuple of {len(pair)}: a validation set is a pair (X_val, y_val); "
                "several splits are a list of pairs (train, test)."
            )
        X_val, y_val = pair
        X_val, y_val, *_ = matched_by_label(
            self.estimator, X_val, self.estimator._as_targets(y_val)
        )
        if is_multilabel(y_val):
            y_val = indicator_matrix(y_val)
        targets = self._validation_targets(y_val)
        block = block_while_fitting(self.source, self.estimator, self.rows.data, X_val)
        if len(block) != len(targets) or not len(targets):
            word = "values" if self.samples.classes is None else "labels"
            raise ValueError(
                f"The validation set has {len(block)} rows and {len(targets)} {word}: one is "
                "needed per row, and at least one row."
            )
        return Samples(block, targets, self.samples.classes)

    def _validation_targets(self, y: ArrayLike) -> np.ndarray:
        """Return the targets of a validation set, coded as those of training."""
        classes, trained = self.samples.classes, self.samples.targets
        if trained.dtype.names:
            if "stratum" in trained.dtype.names:
                raise ValueError(
                    "cv is a validation set, whose strata are not known: pass all rows to fit, "
                    "and as cv the split of these rows, [(train, test)]."
                )
            return survival_array(y)
        y_val = np.asarray(y)
        if classes is not None:
            if y_val.ndim == 0 or y_val.shape[1:] != trained.shape[1:]:
                given = self.samples.n_labels or "one"
                raise ValueError(
                    f"The labels of the validation set have shape {y_val.shape}, those of "
                    f"training are {given} per sample."
                )
            unseen = np.setdiff1d(y_val, classes)
            if len(unseen):
                raise ValueError(
                    f"The validation set has classes that training has not: {unseen.tolist()}. "
                    "Leave these samples out, or put some of each class into training."
                )
            return np.searchsorted(classes, y_val)
        if y_val.ndim == 0 or y_val.shape[1:] != trained.shape[1:]:
            raise ValueError(
                f"The values of the validation set have shape {y_val.shape}, those of training "
                f"{trained.shape}."
            )
        check_numbers(y_val, "y_val")
        if not np.isfinite(y_val.astype(np.float64)).all():
            raise ValueError("The values of the validation set contain NaN or infinity.")
        return y_val.astype(np.float64)


def is_number(cv: Any) -> bool:
    """Whether ``cv`` is a number of folds."""
    return isinstance(cv, Integral) and not isinstance(cv, bool)


def is_validation_set(cv: Any) -> bool:
    """Whether ``cv`` is a pair (X_val, y_val), and not a tuple of (train, test) pairs."""
    return isinstance(cv, tuple) and not all(
        isinstance(one, tuple) and len(one) == 2 for one in cv
    )


# -- The choice of a point of a grid by scores of held-out samples --------------------------------


# What makes a model simpler, the first in the list before the next: +1 if larger values do. Every
# region has weights of its own. Of the norms, p = ∞ is the simplest: it has no weights to learn.
_SIMPLER = {"n_regions": -1.0, "sharpness": -1.0, "p": +1.0, "penalty": +1.0}
# What regularises more strongly, which decides between equal scores only. On 260 samples of 26
# data sets the strongest λ within a standard error costs 0.6 points of accuracy, the best 0.1.
_STRONGER = {"reg": +1.0, "C": -1.0, "epsilon": +1.0}
# Values of parameters at which a model with a gate, or with regions, is that of plain weights.
_PLAIN = {"penalty": np.inf, "n_regions": 1.0}


@estimator()
class ChoiceParameters:
    """Parameters and attributes of estimators that choose a point of a grid.

    Parameters
    ----------
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        A number of folds, by default five, shuffled with a fixed seed. Groups and repeated rows
        stay together. Folds have classes, or events of survival times, in equal parts; a class of
        a single sample is in no test part. A pair is a validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is the method ``score`` of the
        estimator: accuracy for classes, R² for numbers.
    one_standard_error : bool, default=False
        Choose the simplest model of those with a mean score within one standard error of the best,
        instead of the best one. Simplest is the fewest regions and the smallest sharpness; there,
        the largest p, nearest to the plain sum of kernels, which learns no weights; there, the
        largest penalty on a gate. λ, C and ε are then those with the best score.
    n_jobs : int, optional
        Number of splits that are computed in parallel.
    verbose : bool, default=False
        Print a line per point of the grid. Progress bars: ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    best_score_ : float
        The mean score at the chosen point. A mean score estimates the score on new samples. It is
        a little low, since models of splits learn from fewer samples; the best of many is a little
        high, since it was selected, in particular with a large grid and few samples. See
        `left_out_score_`.
    left_out_score_ : float
        The score of all held-out samples together, those of each split by the point of the grid
        that is best in the other splits: what to expect of new samples. It has seen none of the
        samples it is the score of, neither in learning nor in choosing. (If there is a single
        split, it is `best_score_`.)
    cv_results_ : dict
        One entry per point of the grid: ``params``, ``param_<name>``, ``split<i>_test_score``,
        ``mean_test_score``, ``std_test_score``, ``se_test_score`` (standard error of the mean over
        splits, NaN if there is one), ``rank_test_score``, ``rel_gap`` (largest of the splits) and
        ``n_inner_solves`` (sum of them). Points that cannot be solved have the score NaN and an
        infinite gap.
    n_splits_ : int
    test_fold_ : ndarray of shape (n_samples,)
        The split that tested each training row, -1 for none, as in
        :class:`~sklearn.model_selection.PredefinedSplit`. Not if `cv` is a validation set.
    """

    cv: Any = None
    scoring: Any = None
    one_standard_error: bool = False
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cv": ["cv_object", tuple, None],
        "scoring": [str, callable, None],
        "one_standard_error": ["boolean"],
        "n_jobs": [None, int],
    }


def validation_curve(self: Any) -> np.ndarray:
    """Mean scores of the grid, with one axis per parameter, in the order of ``params``.

    Where each of several labels or targets has its own, the first axis is that of these. The
    score of the weights of largest evidence, if they were tried, is the last row: it does not
    depend on λ.
    """
    check_is_fitted(self)
    if not hasattr(self, "cv_results_"):
        raise AttributeError(
            "There is no validation curve: every target took the best of shared candidate "
            "weights. With certify=True p and λ are chosen from a grid."
        )
    several = isinstance(self.cv_results_, list)
    tables = self.cv_results_ if several else [self.cv_results_]
    curves = np.array([_curve(table) for table in tables])
    return curves if several else curves[0]


def _curve(table: dict[str, Any]) -> np.ndarray:
    """Return the mean scores of a table with the axes of the grid."""
    if (sets := table.get("param_kernel_set")) is not None:
        each = [sets == name for name in dict.fromkeys(sets.tolist())]
        kept = [name for name in table if name.startswith("param_") and name != "param_kernel_set"]
        kept.append("mean_test_score")
        return np.array([_curve({name: table[name][rows] for name in kept}) for rows in each])
    columns = [values for name, values in table.items() if name.startswith("param_")]
    shape = [len(np.unique(values[~np.isnan(values)])) for values in columns]
    scores = table["mean_test_score"]
    if not (by_evidence := np.isnan(columns[0])).any():
        return scores.reshape(shape)
    # The last row is the score of the weights of largest evidence, which no other value changes.
    row = np.full((1, *(max(n, 1) for n in shape[1:])), scores[by_evidence].item())
    return np.vstack([scores[~by_evidence].reshape(shape), row]) if shape[0] else row


class ChosenWeights:
    """Parameters and attributes of those that learn kernel weights at every point of a grid.

    Parameters
    ----------
    tol : float, default=1e-4, or 1e-5 for discriminants and ridge regression
        Relative duality gap of every model, those of splits included.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Learnt kernel weights, of the normalised kernels: those of the fit to all samples.
    certificate_, n_iter_, n_inner_solves_, solver_, history_
        Of the same fit, as for the estimator with a given p.
    """


@estimator()
class KernelSetParameters:
    """Parameters and attributes of those that choose among sets of kernels.

    Parameters
    ----------
    kernel_sets : dict of str to list of str, optional
        Sets of kernels that compete: a list of names, as in `kernel_names_`, for the name of every
        set. ``"*"``, ``"?"`` and ``"[...]"`` in a name stand for any letters, one letter and one
        of several, so that ``{"linear": ["*linear*"], "all": ["*"]}`` asks whether linear kernels
        are enough. Every set is tried at all points of the grid in the same splits. Of equal
        scores, and of those within one standard error if `one_standard_error`, the set that is
        listed first is taken. By default one set of all kernels. Several targets or labels must
        share their weights; an `approximation` is refused.

    Attributes
    ----------
    kernel_set_ : str
        With `kernel_sets`: name of the set that was chosen. The model is that of this set alone;
        `kernel_names_` and `weights_` are those of its kernels. Behind `left_out_score_`, the set
        of a split is the best one in the other splits, too.
    """

    kernel_sets: Mapping[str, Sequence[str]] | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {"kernel_sets": [Mapping, None]}


@dataclass(frozen=True)
class Choice:
    """The point of a grid that was chosen, and the table it was chosen by.

    `positions` are the points that would have been chosen without each of the splits, by the
    scores of the others; of a single split, the point itself.
    """

    position: tuple[int, ...]
    positions: list[tuple[int, ...]]
    params: dict[str, Any]
    attributes: dict[str, Any]

    @classmethod
    def of(
        cls,
        estimator: KernelEstimator,
        grid: Grid,
        held_out: HeldOut,
        scorer: Callable[..., float],
    ) -> Choice:
        """Return the point with the best mean score.

        The estimator has the :class:`ChoiceParameters`. Of points with equal scores, the loss
        decides or, for regressors, the simplest is chosen. Of points with gates or regions and no
        lower score, the one with the least loss of held-out samples is chosen if it is clearly
        less than without.
        """
        scores, records = held_out.scores(scorer), held_out.records
        refuse_unsolved(records, estimator.tol)
        refuse_undefined(estimator.scoring, scores.mean(axis=0), solved_in_all(records))
        one_error = bool(estimator.one_standard_error)
        chosen = _chosen(grid, scores, held_out, one_error)
        positions = [chosen]
        if len(scores) > 1:
            positions = [
                _chosen(grid, np.delete(scores, k, axis=0), held_out, one_error)
                for k in range(len(scores))
            ]
        params = grid.at(chosen)
        attributes = {
            **{f"{name}_": value for name, value in params.items()},
            "best_score_": float(scores.mean(axis=0)[chosen]),
            "cv_results_": cv_results(grid, scores, records),
            "n_splits_": len(scores),
        }
        return cls(chosen, positions, params, attributes)


def refuse_single_split(estimator: KernelEstimator, n_splits: int) -> None:
    """Raise if a standard error is asked for, but there is only one split."""
    if estimator.one_standard_error and n_splits < 2:
        raise ValueError(
            "one_standard_error=True needs the scores of several splits, but "
            f"cv={estimator.cv if isinstance(estimator.cv, str) else type(estimator.cv).__name__} "
            "gives one: use folds, such as cv=5, or one_standard_error=False."
        )


def _chosen(
    grid: Grid, scores: np.ndarray, held_out: HeldOut, one_standard_error: bool
) -> tuple[int, ...]:
    """Return the best point by the scores of some splits, see :meth:`Choice.of`."""
    mean, plain = scores.mean(axis=0), _plain(grid)
    if np.isfinite(mean[plain]).any():
        chosen = _best(grid, np.where(plain, mean, np.nan), held_out)
        rivals = _positions(~plain & (mean >= mean[chosen]))
        if rivals:
            best = min(rivals, key=lambda at: held_out.losses_at(at).loss)
            if held_out.losses_at(best).clearly_better(held_out.losses_at(chosen)):
                chosen = best
    else:
        chosen = _best(grid, mean, held_out)
    if one_standard_error:
        # A single split has no standard error.
        error = float(np.nan_to_num(standard_errors(scores)[chosen]))
        within = _positions(mean >= mean[chosen] - error)
        simplest = max(_simplicity(grid, at, _SIMPLER) for at in within)
        scores_there = np.full(mean.shape, np.nan)
        for at in within:
            if _simplicity(grid, at, _SIMPLER) == simplest:
                scores_there[at] = mean[at]
        chosen = _best(grid, scores_there, held_out)
    return chosen


def _best(grid: Grid, mean: np.ndarray, held_out: HeldOut) -> tuple[int, ...]:
    """Return the point with the highest score; of equal scores, the least loss or simplest."""
    equals = _of_first_set(grid, _positions(mean == np.nanmax(mean)))
    if len(equals) == 1 or not held_out.loss_breaks_ties:
        return _simplest(grid, equals)
    fewest = _with_fewest_regions(grid, equals)
    costs = {at: held_out.losses_at(at).loss for at in fewest}
    return _simplest(grid, [at for at in fewest if costs[at] == min(costs.values())])


def _plain(grid: Grid) -> np.ndarray:
    """Return a mask of the points whose kernel weights are the same in all regions."""
    columns, mask = grid.columns(), np.zeros(grid.size, dtype=bool)
    for name, value in _PLAIN.items():
        mask |= columns.get(f"param_{name}", np.nan) == value
    return mask.reshape(grid.shape)


def _positions(mask: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(position) for position in np.argwhere(mask).tolist()]


def _of_first_set(grid: Grid, positions: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if not grid.kernel_sets:
        return positions
    return [at for at in positions if at[0] == min(positions)[0]]


def _with_fewest_regions(grid: Grid, positions: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    numbers = [grid.at(position).get("n_regions", 1) for position in positions]
    return [at for at, number in zip(positions, numbers, strict=True) if number == min(numbers)]


def _simplest(grid: Grid, positions: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the simplest point; of equally simple ones, the most regularised."""
    return max(positions, key=lambda at: _simplicity(grid, at, {**_SIMPLER, **_STRONGER}))


def _simplicity(grid: Grid, position: tuple[int, ...], signs: dict[str, float]) -> list[float]:
    """Return values that are larger, the first before the next, the simpler a point is."""
    params = grid.at(position)
    # Weights of largest evidence are further from the plain sum than those of any norm.
    params["p"] = np.nan_to_num(params.get("p", 0.0), nan=0.0)
    values = [sign * params.get(name, 0.0) for name, sign in signs.items()]
    # Of sets of kernels, the one that is listed first is the simplest.
    return [-position[0], *values] if grid.kernel_sets else values


# -- The search for a point of a grid: splits, outputs at held-out samples, the choice ------------


@dataclass(frozen=True)
class Search:
    """Splits on which the models of a grid are learnt and judged; `samples` are all samples.

    The `task` has a part for every split, and one for the fit to all samples.
    """

    estimator: KernelEstimator
    samples: Samples
    splits: list[Split]
    task: FitTask

    @classmethod
    def of(
        cls,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        rows: TrainingRows,
        kernels: TrainingKernels,
        samples: Samples | None = None,
        n_passes: int = 1,
    ) -> Self:
        """Divide the rows, and begin the task of the fit, with `n_passes` over the splits."""
        if samples is None:
            # Machines weight the classes of every training part by themselves.
            samples = replace(kernels.samples(rows), weights=rows.counts)
        splits = Splits(estimator, rows, kernels.source, samples).of(y)
        refuse_single_split(estimator, len(splits))
        task = FitTask.begin(estimator, X, y, n_passes * len(splits) + 1)
        return cls(estimator, samples, splits, task)

    #: Whether splits are solved one after the other, each from the last one.
    one_by_one: ClassVar[bool] = False

    def part(self, task: Any, split: Split) -> Any:
        """Return the prepared kernels of a split, as the task prepares them."""
        return task.part(split, self.estimator.missing)

    @property
    def tests(self) -> list[Samples]:
        """Test samples of every split."""
        return [split.test_samples for split in self.splits]

    @property
    def tested(self) -> list[np.ndarray | None]:
        """Rows that every split tests; None for a validation set."""
        return [split.tested for split in self.splits]

    @property
    def moves_outputs(self) -> bool:
        """Whether decisions are those of the most probable class; not if classes are weighted."""
        return self.estimator.class_weight is None

    def choose(self, grid: Grid, outputs: list[SplitOutputs]) -> tuple[Choice, dict[str, Any]]:
        """Return the best point by decision values or values, and fitted attributes."""
        tests = self.tests
        held_out: HeldOut
        if self.samples.classes is None:
            values = [replace(part, outputs=part.outputs[..., 0]) for part in outputs]
            held_out = HeldOutValues(values, tests)
        else:
            held_out = HeldOutDecisions(
                outputs, tests, self.samples.frequencies, self.moves_outputs
            )
        choice, attributes = chosen_by(self.estimator, grid, held_out, self.tested, self.samples)
        if isinstance(held_out, HeldOutDecisions):
            attributes["calibration_"] = held_out.calibration(choice.position)
        return choice, attributes


def scorer_for(estimator: KernelEstimator) -> Callable[..., float]:
    """Return the scorer of the parameter `scoring`, by a name of scikit-learn's or of ours."""
    scoring = estimator.scoring
    if isinstance(scoring, str):
        scoring = SCORERS.get(scoring, scoring)
    scorer: Callable[..., float] = check_scoring(estimator, scoring=scoring)
    return scorer


def chosen_by(
    estimator: KernelEstimator,
    grid: Grid,
    held_out: HeldOut,
    tested: Sequence[np.ndarray | None],
    samples: Samples,
) -> tuple[Choice, dict[str, Any]]:
    """Return the best point of a grid, and fitted attributes of the choice.

    ``tested[k]`` are the rows of `samples` that split k tests; None for a validation set.
    """
    scorer = scorer_for(estimator)
    choice = Choice.of(estimator, grid, held_out, scorer)
    left_out = held_out.left_out(choice.position, choice.positions, tested, samples, scorer)
    return choice, {
        "left_out_score_": choice.attributes["best_score_"],
        **choice.attributes,
        **left_out,
    }


def chosen_for_labels(
    search: Any, grid: Grid, held_out: Sequence[HeldOut], groups: Sequence[np.ndarray]
) -> tuple[list[Choice], dict[str, Any]]:
    """Return the best point for every group of labels, and fitted attributes of the choices.

    ``held_out[k]`` are answers about label k; `groups` are positions of labels with one point.
    """
    choices, attributes = [], []
    for group in groups:
        judged = HeldOutLabels.of([held_out[k] for k in group], group)
        choice, chosen = chosen_by(search.estimator, grid, judged, search.tested, search.samples)
        choices.append(choice)
        attributes.append(chosen)
    return choices, joined_choices(attributes)


def joined_choices(attributes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the attributes of the only choice, or of several: arrays, columns and lists."""
    first = attributes[0]
    if len(attributes) == 1:
        return first
    joined = {}
    for name, value in first.items():
        if not all(name in chosen for chosen in attributes):
            continue  # λ, where that of largest evidence was chosen for some
        every = [chosen[name] for chosen in attributes]
        if name in ("n_splits_", "test_fold_"):
            joined[name] = value
        elif np.ndim(value) > 0:
            joined[name] = np.column_stack(every)
        else:
            joined[name] = every if isinstance(value, dict) else np.array(every)
    return joined


def walk_points(
    loss_at: Callable[[float], Any],
    grid: Grid,
    visit: Callable[[GridPoint], bool | None],
    tol: float,
    starts: Mapping[tuple[int, int], np.ndarray] | None,
) -> list[str]:
    """Visit all points of a grid of p and λ; return why some could not be solved.

    Of the row of largest evidence, p = NaN, only the first point is visited.
    """
    ps, regs = grid.values.values()
    norms = np.flatnonzero(~np.isnan(ps))
    failures: list[str] = []
    stopped = False

    def visit_norm(point: GridPoint) -> bool:
        nonlocal stopped
        stopped = bool(visit(replace(point, norm_index=int(norms[point.norm_index]))))
        return stopped

    if len(norms):
        failures = walk_grid(loss_at, ps[norms], regs, visit_norm, tol=tol, starts=starts)
    for row in np.flatnonzero(np.isnan(ps)).tolist():
        if stopped:
            break
        loss = loss_at(1.0)
        try:
            solution = Evidence(distinct_rows).solve(loss, lp_domain(1.0), tol=tol)
        except NotPositiveDefiniteError as error:
            failures.append(str(error))
            continue
        evaluation, certificate = solution.evaluation, solution.certificate
        visit(GridPoint(row, 0, loss, evaluation, certificate, solution.n_inner_solves))
    return failures


def outputs_of_splits(
    search: Any,
    task: Any,
    outputs: Callable[..., list[SplitOutputs]],
    grid: Grid,
    purpose: str = "",
    n_losses: int = 1,
) -> list[list[SplitOutputs]]:
    """Return the outputs of every split, by the models of its training part on a grid.

    ``outputs(part, grid, tol, progress, starts)`` are those of one split. `starts` has initial
    weights for each of the losses, where splits are solved one after the other.
    """
    tol, n_splits = search.estimator.tol, len(search.splits)
    progress = [
        search.task.part(f"{purpose}split {k + 1}/{n_splits}", n_losses * grid.size)
        for k in range(n_splits)
    ]
    opener = partial(search.part, task)
    if search.one_by_one:
        # Training parts have most of their samples in common: each starts from the last one.
        starts: list[dict[Any, Any]] = [{} for _ in range(n_losses)]
        return [
            _outputs_of_split(opener, split, outputs, grid, tol, part, starts)
            for split, part in zip(search.splits, progress, strict=True)
        ]
    # The kernels of a single split are not copied to another process.
    parallel = Parallel(n_jobs=None if n_splits == 1 else search.estimator.n_jobs)
    results: list[list[SplitOutputs]] = parallel(
        delayed(_outputs_of_split)(opener, split, outputs, grid, tol, part)
        for split, part in zip(search.splits, progress, strict=True)
    )
    return results


def _outputs_of_split(
    opener: Callable[[Any], Any],
    split: Any,
    outputs: Callable[..., list[SplitOutputs]],
    grid: Grid,
    tol: float,
    progress: FitTask,
    starts: list[dict[Any, Any]] | None = None,
) -> list[SplitOutputs]:
    """Return the outputs of one split, whose kernels are cut here, one set after the other."""
    if not grid.kernel_sets:
        found = outputs(opener(split), grid, tol, progress, starts)
        progress.end()
        return found
    of_sets = []
    for name, kernels in grid.kernel_sets.items():
        of_sets.append(
            outputs(opener(split.select(kernels)), grid.of_set(name), tol, progress, None)
        )
        if progress.stopped:
            break
    progress.end()
    return [SplitOutputs.of_sets(parts, grid.shape) for parts in zip(*of_sets, strict=True)]
