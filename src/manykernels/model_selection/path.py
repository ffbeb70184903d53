"""lp_path: kernel weights for every norm and regularisation of a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._sklearn import check_y
from ..estimators._discriminant import fisher_targets
from ..estimators.fda_cv import DEFAULT_REGS, checked_grid
from ..kernels import KernelStack
from ..kernels.transforms import preparation
from ..solvers import PAPER_NORMS, GridPoint, walk_grid


@dataclass(frozen=True)
class LpPath:
    """Certified solutions of a grid.

    Attributes
    ----------
    ps : ndarray of shape (n_ps,)
    regs : ndarray of shape (n_regs,)
    kernel_names : list of str
    weights : ndarray of shape (n_ps, n_regs, n_kernels)
    objectives : ndarray of shape (n_ps, n_regs)
    rel_gaps : ndarray of shape (n_ps, n_regs)
        How far each objective is from the least at most, relative to itself.
    n_factorizations : ndarray of shape (n_ps, n_regs)
    """

    ps: np.ndarray
    regs: np.ndarray
    kernel_names: list[str]
    weights: np.ndarray = field(repr=False)
    objectives: np.ndarray = field(repr=False)
    rel_gaps: np.ndarray = field(repr=False)
    n_factorizations: np.ndarray = field(repr=False)


def lp_path(
    stack: KernelStack,
    y: Any,
    ps: Any = None,
    regs: Any = None,
    *,
    sample_weight: Any = None,
    normalize: str | None = "multiplicative",
    tol: float = 1e-5,
) -> LpPath:
    """Kernel weights of :class:`~manykernels.MKFDA` for every p and λ.

    Parameters
    ----------
    stack : KernelStack
        Gram matrices of the training samples.
    y : array-like of shape (n_samples,)
        Class labels.
    ps : array-like, optional
        Norms, at least 1; by default the twelve of Yan et al. (2012).
    regs : array-like, optional
        λ; by default ten from 1e-4 to 1e3.
    sample_weight : array-like of shape (n_samples,), optional
        Positive weights.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
    tol : float, default=1e-5
        Relative gap of every point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import rbf_grid
    >>> from manykernels.model_selection import lp_path
    >>> X, y = load_iris(return_X_y=True)
    >>> stack = rbf_grid([0.1, 1, 10]).fit(X)(X)
    >>> path = lp_path(stack, y, ps=[1, 2, 4], regs=[0.1, 1])
    >>> path.weights.shape
    (3, 2, 3)
    >>> path.rel_gaps.max() <= 1e-5
    np.True_
    """
    norms = checked_grid(ps, PAPER_NORMS, "ps", 1.0)
    regularizations = checked_grid(regs, DEFAULT_REGS, "regs", np.nextafter(0.0, 1.0))
    y = check_y(y, multi_output=False)
    check_classification_targets(y)
    check_consistent_length(stack, y)
    weights = None
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != y.shape or not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError("sample_weight must be one positive number per sample.")
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"lp_path needs samples of at least 2 classes, got {classes.tolist()}.")
    prepared = preparation(normalize).fit_transform(stack, sample_weight=weights)
    shape = (len(norms), len(regularizations))
    path = LpPath(
        norms,
        regularizations,
        stack.names,
        np.empty((*shape, stack.n_kernels)),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape, int),
    )

    def visit(point: GridPoint) -> None:
        here = point.norm_index, point.reg_index
        path.weights[here] = point.evaluation.weights
        path.objectives[here] = point.certificate.primal
        path.rel_gaps[here] = point.certificate.rel_gap
        path.n_factorizations[here] = point.n_inner_solves

    targets = fisher_targets(labels, np.bincount(labels, weights=weights).astype(float))
    walk_grid(prepared, targets, norms, regularizations, visit, sample_weight=weights, tol=tol)
    return path
