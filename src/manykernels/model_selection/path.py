"""Kernel weights for every norm and regularisation of a grid: :func:`lp_path`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..discriminant import Samples, labelled_stack
from ..estimators.grid import checked_norms, checked_regs
from ..estimators.kernel_data import KernelData
from ..kernels import KernelStack
from ..kernels.transforms import preparation
from ..solvers.path import PAPER_NORMS, GridPoint, walk_grid
from ..utils.sklearn import warn_caller


@dataclass(frozen=True)
class LpPath:
    """Certified solutions on a grid of norms and regularisations.

    Attributes
    ----------
    ps, regs : ndarray of shape (n_ps,) and (n_regs,)
    kernel_names : list of str
    weights : ndarray of shape (n_ps, n_regs, n_kernels)
    objectives : ndarray of shape (n_ps, n_regs)
    rel_gaps : ndarray of shape (n_ps, n_regs)
        Relative duality gaps, bounds on the distance of each objective from its minimum. Infinite
        where the matrix cannot be factorised; weights and objective are NaN there.
    n_inner_solves : ndarray of shape (n_ps, n_regs)
    """

    ps: np.ndarray
    regs: np.ndarray
    kernel_names: list[str]
    weights: np.ndarray = field(repr=False)
    objectives: np.ndarray = field(repr=False)
    rel_gaps: np.ndarray = field(repr=False)
    n_inner_solves: np.ndarray = field(repr=False)


def lp_path(
    stack: KernelStack,
    y: ArrayLike,
    ps: ArrayLike | None = None,
    regs: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    normalize: str | None = "multiplicative",
    tol: float = 1e-5,
) -> LpPath:
    """Compute the kernel weights of :class:`~manykernels.MKFDA` for every p and λ.

    Parameters
    ----------
    stack : KernelStack
        Gram matrices of the training samples.
    y : array-like of shape (n_samples,)
        Class labels.
    ps : array-like, optional
        Norms, at least 1; by default the twelve norms of Yan et al. (2012).
    regs : array-like, optional
        Values of λ; by default eight from 1e-4 to 1e3.
    sample_weight : array-like of shape (n_samples,), optional
        Positive weights.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
    tol : float, default=1e-5
        Relative duality gap of every point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import model_selection, rbf_grid
    >>> X, y = load_iris(return_X_y=True)
    >>> stack = rbf_grid([0.1, 1, 10]).fit(X)(X)
    >>> path = model_selection.lp_path(stack, y, ps=[1, 2, 4], regs=[0.1, 1])
    >>> path.weights.shape
    (3, 2, 3)
    >>> path.rel_gaps.max() <= 1e-5
    np.True_
    """
    norms, regularizations = checked_norms(ps, PAPER_NORMS), checked_regs(regs)
    if not 0.0 < tol < np.inf:
        raise ValueError(f"tol must be positive and finite, got {tol!r}.")
    samples = labelled_stack("lp_path", stack, y, sample_weight)
    return path_of(samples, norms, regularizations, normalize, tol)


def path_of(
    samples: Samples, ps: np.ndarray, regs: np.ndarray, normalize: str | None, tol: float
) -> LpPath:
    """Return the path of labelled kernels over a grid of norms and regularisations."""
    data = KernelData.of(samples, preparation(normalize))
    shape = (len(ps), len(regs))
    path = LpPath(
        ps,
        regs,
        data.stack.names,
        np.full((*shape, data.stack.n_kernels), np.nan),
        np.full(shape, np.nan),
        np.full(shape, np.inf),
        np.zeros(shape, int),
    )

    def visit(point: GridPoint) -> None:
        here = point.norm_index, point.reg_index
        path.weights[here] = point.evaluation.weights
        path.objectives[here] = point.certificate.primal
        path.rel_gaps[here] = point.certificate.rel_gap
        path.n_inner_solves[here] = point.n_inner_solves

    failures = walk_grid(data.loss_at(data.fisher_coding()), ps, regs, visit, tol=tol)
    if failures:
        warn_caller(
            f"{len(failures)} of {path.rel_gaps.size} points of the path could not be solved "
            f"(first error: {failures[0]})",
            ConvergenceWarning,
        )
    if short := int(np.count_nonzero(np.isfinite(path.rel_gaps) & (path.rel_gaps > tol))):
        warn_caller(
            f"{short} of {path.rel_gaps.size} points of the path did not reach the relative gap "
            f"tol={tol:g}; see rel_gaps.",
            ConvergenceWarning,
        )
    return path
