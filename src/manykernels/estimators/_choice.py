"""The choice of a point of a grid by scores of held-out samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..gating.judging import Judged
from ..solvers import GridRecord, solved_in_all
from ._base import estimator
from ._grid import Grid, cv_results, refuse_undefined, refuse_unsolved, standard_errors

# What makes a model simpler, the first in the list before the next: +1 if larger values do. Every
# region has weights of its own. Sets of kernel weights grow with p, ``‖β‖_1 ≤ 1`` being the
# smallest; and λ, C and ε can be compared at one p only, because weighted sums of kernels grow
# with it.
_SIMPLER = {
    "n_regions": -1.0,
    "sharpness": -1.0,
    "p": -1.0,
    "penalty": +1.0,
    "reg": +1.0,
    "C": -1.0,
    "epsilon": +1.0,
}
# Values of parameters at which a model with a gate, or with regions, is that of plain weights.
_PLAIN = {"penalty": np.inf, "n_regions": 1.0}


@estimator
class ChoiceParameters:
    """Parameters and attributes of estimators that choose a point of a grid.

    Parameters
    ----------
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        A number of folds, by default five, shuffled with a fixed seed; rows that repeat others
        stay together. A pair is a validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is the score of the estimator.
    one_standard_error : bool, default=False
        Take the simplest point whose mean score is within one standard error of the best, instead
        of the best one. Simplest is the fewest regions and the smallest sharpness; there, the
        smallest p, whose weights are the sparsest, or the largest penalty on a gate; there, the
        strongest regularisation: the largest λ, the smallest C, the largest ε, in this order.
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

    cv_results_: ClassVar[dict[str, Any]]

    def validation_curve(self) -> np.ndarray:
        """Mean scores of the grid, with one axis per parameter, in the order of ``params``."""
        check_is_fitted(self)
        results = self.cv_results_
        shape = [len(np.unique(results[f"param_{name}"])) for name in results["params"][0]]
        return np.reshape(results["mean_test_score"], shape)


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


@dataclass(frozen=True)
class Choice:
    """The point of a grid that was chosen, and the table it was chosen by.

    `positions` are the points that would have been chosen without each of the splits, by the
    scores of the others; of a single split, the point itself.
    """

    position: tuple[int, ...]
    positions: list[tuple[int, ...]]
    params: dict[str, float]
    attributes: dict[str, Any]

    @classmethod
    def of(
        cls,
        estimator: Any,
        grid: Grid,
        scores: np.ndarray,
        records: Sequence[GridRecord],
        second: Callable[[tuple[int, ...]], float] | None = None,
        judged: Callable[[tuple[int, ...]], Judged] | None = None,
    ) -> Choice:
        """By scores (n_splits, …) of all points; of equals, that with the smallest `second`.

        The estimator has the :class:`ChoiceParameters`. Without `second`, the simplest of equals
        is chosen. Of points with gates or regions and no lower score, the one with the least loss
        of held-out samples, which `judged` tells, is chosen if it is clearly less than without.
        """
        refuse_unsolved(records, estimator.tol)
        refuse_undefined(estimator.scoring, scores.mean(axis=0), solved_in_all(records))
        one_error = bool(estimator.one_standard_error)
        chosen = _chosen(grid, scores, second, judged, one_error)
        positions = [chosen]
        if len(scores) > 1:
            positions = [
                _chosen(grid, np.delete(scores, k, axis=0), second, judged, one_error)
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


def refuse_single_split(estimator: Any, n_splits: int) -> None:
    """Raise if a standard error is asked for, but there is only one split."""
    if estimator.one_standard_error and n_splits < 2:
        raise ValueError(
            "one_standard_error=True needs the scores of several splits, but "
            f"cv={estimator.cv if isinstance(estimator.cv, str) else type(estimator.cv).__name__} "
            "gives one: use folds, such as cv=5, or one_standard_error=False."
        )


def _chosen(
    grid: Grid,
    scores: np.ndarray,
    second: Callable[[tuple[int, ...]], float] | None,
    judged: Callable[[tuple[int, ...]], Judged] | None,
    one_standard_error: bool,
) -> tuple[int, ...]:
    """The best point by the scores of some splits, see :meth:`Choice.of`."""
    mean, plain = scores.mean(axis=0), _plain(grid)
    if judged is not None and np.isfinite(mean[plain]).any():
        chosen = _best(grid, np.where(plain, mean, np.nan), second)
        rivals = _positions(~plain & (mean >= mean[chosen]))
        if rivals:
            best = min(rivals, key=lambda at: judged(at).loss)
            chosen = best if judged(best).clearly_better(judged(chosen)) else chosen
    else:
        chosen = _best(grid, mean, second)
    if one_standard_error:
        # A single split has no standard error.
        error = float(np.nan_to_num(standard_errors(scores)[chosen]))
        chosen = _simplest(grid, _positions(mean >= mean[chosen] - error))
    return chosen


def _best(
    grid: Grid, mean: np.ndarray, second: Callable[[tuple[int, ...]], float] | None
) -> tuple[int, ...]:
    """The point with the highest score; of equals, that with the smallest `second`."""
    equals = _positions(mean == np.nanmax(mean))
    if len(equals) == 1 or second is None:
        return _simplest(grid, equals)
    fewest = _with_fewest_regions(grid, equals)
    costs = {at: second(at) for at in fewest}
    return _simplest(grid, [at for at in fewest if costs[at] == min(costs.values())])


def _plain(grid: Grid) -> np.ndarray:
    """Which points have the same kernel weights everywhere, if there is something else."""
    columns, mask = grid.columns(), np.zeros(grid.size, dtype=bool)
    for name, value in _PLAIN.items():
        mask |= columns.get(f"param_{name}", np.nan) == value
    return mask.reshape(grid.shape)


def _positions(mask: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(position) for position in np.argwhere(mask).tolist()]


def _with_fewest_regions(grid: Grid, positions: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    numbers = [grid.at(position).get("n_regions", 1) for position in positions]
    return [at for at, number in zip(positions, numbers, strict=True) if number == min(numbers)]


def _simplest(grid: Grid, positions: list[tuple[int, ...]]) -> tuple[int, ...]:
    def simplicity(position: tuple[int, ...]) -> list[float]:
        params = grid.at(position)
        return [sign * params[name] for name, sign in _SIMPLER.items() if name in params]

    return max(positions, key=simplicity)
