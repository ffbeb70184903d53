"""Grids of norms p and regularisations λ: checks, the table of scores, warnings about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning

from .._warnings import warn_caller
from ..discriminant.held_out import HeldOut
from ..solvers import PAPER_NORMS

#: Ten λ, from far below to far above the unit variance of normalised kernels.
DEFAULT_REGS = tuple(np.logspace(-4, 3, 10).tolist())


def checked_norms(given: Any) -> np.ndarray:
    """Norms p of a grid, by default those of Yan et al. (2012)."""
    return _checked_values(given, PAPER_NORMS, "ps", 1.0, "at least 1")


def checked_regs(given: Any, default: tuple[float, ...] = DEFAULT_REGS) -> np.ndarray:
    """Regularisations λ of a grid."""
    regs = _checked_values(given, default, "regs", np.nextafter(0.0, 1.0), "positive")
    if np.isinf(regs).any():
        raise ValueError("regs must be finite.")
    return regs


def _checked_values(
    given: Any, default: tuple[float, ...], name: str, least: float, bound: str
) -> np.ndarray:
    values = np.asarray(default if given is None else given, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not (values >= least).all():
        raise ValueError(
            f"{name} must be a non-empty list of numbers, each {bound}; got {given!r}."
        )
    if len(np.unique(values)) < len(values):
        raise ValueError(f"{name} has equal values: {given!r}.")
    return values


def cv_results(
    held_out: HeldOut, scores: np.ndarray, ps: np.ndarray, regs: np.ndarray
) -> dict[str, Any]:
    """The table that scikit-learn's searches call ``cv_results_``; scores are (n_splits, p, λ)."""
    norms, regularizations = np.meshgrid(ps, regs, indexing="ij")
    mean = scores.mean(axis=0).ravel()
    parts = held_out.parts
    return {
        "params": [{"p": float(p), "reg": float(reg)} for p in ps for reg in regs],
        "param_p": norms.ravel(),
        "param_reg": regularizations.ravel(),
        **{f"split{k}_test_score": table.ravel() for k, table in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0).ravel(),
        "rank_test_score": rankdata(-np.nan_to_num(mean, nan=-np.inf), "min").astype(int),
        "rel_gap": np.max([part.rel_gaps for part in parts], axis=0).ravel(),
        "n_inner_solves": np.sum([part.n_inner_solves for part in parts], axis=0).ravel(),
    }


def refuse_unsolved(held_out: HeldOut, tol: float) -> None:
    """Warn once of all points that were not solved, or not to `tol`; raise if none was solved."""
    if not held_out.solved.any():
        raise ValueError(
            f"No point of the grid could be solved. The last one: {held_out.failures[-1]}"
        )
    converged = np.all([part.converged for part in held_out.parts], axis=0)
    remarks = []
    if short := int(np.count_nonzero(held_out.solved & ~converged)):
        worst = max(part.rel_gaps[part.n_inner_solves > 0].max() for part in held_out.parts)
        remarks.append(
            f"{short} of {converged.size} points of the grid did not reach the relative gap "
            f"{tol:g} (the worst has {worst:.1e})"
        )
    if missing := int(np.count_nonzero(~held_out.solved)):
        failures = held_out.failures
        first = f"the first: {failures[0]}" if failures else "a callback asked to stop"
        remarks.append(
            f"{missing} of {converged.size} points of the grid could not be solved and are "
            f"left out ({first})"
        )
    if remarks:
        warn_caller("; ".join(remarks) + ".", ConvergenceWarning)


def refuse_undefined(scoring: Any, mean: np.ndarray, held_out: HeldOut) -> None:
    """Warn if the scorer is undefined at some points of the grid; raise if it is at every one."""
    if np.isnan(mean).all():
        raise ValueError(
            f"scoring={scoring!r} gave nan at every point of the grid: it cannot judge these data."
        )
    if (unknown := np.isnan(mean) & held_out.solved).any():
        warn_caller(
            f"scoring={scoring!r} gave nan at {int(unknown.sum())} of {mean.size} points of the "
            "grid; they are ranked last.",
            UndefinedMetricWarning,
        )
