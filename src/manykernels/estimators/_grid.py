"""Grids of named parameters: checks, the table of scores, warnings about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning

from .._warnings import warn_caller
from ..solvers import GridRecord, solved_in_all

#: p by default: the fewest kernels, the plain sum, and two between. On ten data sets MKFDACV was
#: as accurate as with the twelve of Yan et al. (2012) and ten λ, in 0.37 of the time.
DEFAULT_NORMS = (1.0, 4.0 / 3.0, 2.0, np.inf)
#: Eight λ, from far below to far above the unit variance of normalised kernels.
DEFAULT_REGS = tuple(np.logspace(-4, 3, 8).tolist())
#: Penalties on a gate: plain multiple kernel learning, and two gates, the second as free as in
#: estimators with a given penalty.
DEFAULT_GATE_PENALTIES = (np.inf, 0.03, 0.003)
#: p by default of machines that choose C too. Those with gates or regions have the same, so that
#: where neither helps the choice is the one without them.
MACHINE_NORMS = (1.0, 1.5, np.inf)
# The least positive number, for values that have to be above zero.
_POSITIVE = np.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class Grid:
    """Values of named parameters; a point has one of each, the last one changing fastest."""

    values: dict[str, np.ndarray]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each parameter has."""
        return tuple(len(values) for values in self.values.values())

    @property
    def size(self) -> int:
        """Number of points."""
        return int(np.prod(self.shape))

    def at(self, position: Sequence[int]) -> dict[str, float]:
        """Parameters of one point."""
        pairs = zip(self.values.items(), position, strict=True)
        return {name: values[k].item() for (name, values), k in pairs}

    @property
    def params(self) -> list[dict[str, float]]:
        """Parameters of every point."""
        return [self.at(position) for position in product(*map(range, self.shape))]

    def columns(self) -> dict[str, np.ndarray]:
        """Value of each parameter at every point, as scikit-learn's searches call them."""
        meshes = np.meshgrid(*self.values.values(), indexing="ij")
        return {
            f"param_{name}": mesh.ravel() for name, mesh in zip(self.values, meshes, strict=True)
        }


# -- values ----------------------------------------------------------------------------------


def checked_norms(given: Any, default: tuple[float, ...] = DEFAULT_NORMS) -> np.ndarray:
    """Norms p of a grid."""
    return _checked_values(given, default, "ps", 1.0, "at least 1")


def checked_regs(given: Any, default: tuple[float, ...] = DEFAULT_REGS) -> np.ndarray:
    """Regularisations λ of a grid."""
    return checked_positive(given, default, "regs")


def checked_positive(given: Any, default: ArrayLike, name: str) -> np.ndarray:
    """Positive and finite values of the parameter `name` of an estimator."""
    return _checked_finite(given, default, name, _POSITIVE, "positive")


def checked_non_negative(given: Any, default: ArrayLike, name: str) -> np.ndarray:
    """Finite values of the parameter `name` that are not below zero."""
    return _checked_finite(given, default, name, 0.0, "at least 0")


def checked_gate_penalties(given: Any) -> np.ndarray:
    """Penalties on a gate; with infinity it is constant."""
    return _checked_values(given, DEFAULT_GATE_PENALTIES, "penalties", 0.0, "at least 0")


def checked_region_numbers(given: Any, default: ArrayLike) -> np.ndarray:
    """Numbers of regions to choose from."""
    values = np.asarray(default if given is None else given, dtype=object)
    if values.ndim != 1 or len(values) == 0 or not all(map(_is_region_number, values)):
        raise ValueError(
            "regions must be a non-empty list of whole numbers, each at least 1; got "
            f"{given!r}. Regions that are found in another way, by a clustering or columns of X, "
            "are not chosen here: pass them to ConvexLocalizedSVC or ConvexLocalizedSVR, and "
            "search for the rest with GridSearchCV."
        )
    return _refused_equal(values.astype(np.intp), given, "regions")


def _is_region_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def checked_sharpnesses(given: Any, default: ArrayLike) -> np.ndarray:
    """How sharp the boundaries of regions may be; infinity gives each sample to one region."""
    return _checked_values(given, default, "sharpnesses", 0.0, "at least 0")


def _checked_finite(
    given: Any, default: ArrayLike, name: str, least: float, bound: str
) -> np.ndarray:
    values = _checked_values(given, default, name, least, bound)
    if np.isinf(values).any():
        raise ValueError(f"{name} must be finite.")
    return values


def _checked_values(
    given: Any, default: ArrayLike, name: str, least: float, bound: str
) -> np.ndarray:
    values = np.asarray(default if given is None else given, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not (values >= least).all():
        raise ValueError(
            f"{name} must be a non-empty list of numbers, each {bound}; got {given!r}."
        )
    return _refused_equal(values, given, name)


def _refused_equal(values: np.ndarray, given: Any, name: str) -> np.ndarray:
    if len(np.unique(values)) < len(values):
        raise ValueError(f"{name} has equal values: {given!r}.")
    return values


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
    mean = scores.mean(axis=0).ravel()
    return {
        "params": grid.params,
        **grid.columns(),
        **{f"split{k}_test_score": table.ravel() for k, table in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0).ravel(),
        "se_test_score": standard_errors(scores).ravel(),
        "rank_test_score": rankdata(-np.nan_to_num(mean, nan=-np.inf), "min").astype(int),
        "rel_gap": np.max([record.rel_gaps for record in records], axis=0).ravel(),
        "n_inner_solves": np.sum([record.n_inner_solves for record in records], axis=0).ravel(),
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
        remarks.append(
            f"{short} of {solved.size} points of the grid did not reach the relative gap "
            f"{tol:g} (the worst has {worst:.1e})"
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
