"""Sparsity of a set of kernels: their weights under several norms p, and their alignment.

The smaller p, the fewer kernels get a weight; the p that predicts best indicates the "intrinsic
sparsity" of a set of kernels (Yan 2012, section 3.3): low if the kernels complement each other,
high if most are noise or redundant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ..discriminant import labelled_stack
from ..display.base import BLUE, GUIDE, VERMILION, norm_name, shades
from ..kernels import KernelStack
from ..metrics.classwise import effective_number, in_use
from ..model_selection.path import path_of
from ..solvers.path import PAPER_NORMS
from ..utils.versions import aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Digits of the weights, relative to the largest, by which kernels are ranked: at a minimum F grows
# quadratically, so that a relative gap of 1e-6 determines the weights to about 1e-3.
_RANK_DIGITS = 3


@dataclass(frozen=True)
class SparsityReport:
    """Weights of a set of kernels under several norms, returned by :func:`sparsity_report`.

    Attributes
    ----------
    names : list of str
        Names of the kernels.
    ps : ndarray of shape (n_ps,)
        Norms, in the order passed.
    weights : ndarray of shape (n_ps, n_kernels)
        Learnt weights of the normalised kernels.
    rel_gaps : ndarray of shape (n_ps,)
        Relative duality gaps, which bound the suboptimality of each row.
    n_inner_solves : int
        Total number of factorisations.
    alignment, centered_alignment : ndarray of shape (n_kernels, n_kernels)
        Cosines between the kernels, uncentred and centred in feature space.
    kept_variance : ndarray of shape (n_kernels,) or None
        Fraction of the variance of each kernel that denoising keeps, as passed.
    rank_correlation : ndarray of shape (n_ps,) or None
        Spearman's coefficient between weights and kept variance. NaN where one of them is
        constant: at p = ∞ and wherever else all weights are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import rbf_grid
    >>> from manykernels.reporting import sparsity_report
    >>> X = np.random.default_rng(0).standard_normal((40, 2))
    >>> stack = rbf_grid([0.5, 1, 2]).fit(X)(X)
    >>> report = sparsity_report(stack, X[:, 0] > 0, ps=[1, np.inf])
    >>> report.weights[1], report.effective_numbers[1].round(2).tolist()
    (array([1., 1., 1.]), 3.0)
    """

    names: list[str]
    ps: np.ndarray
    weights: np.ndarray
    rel_gaps: np.ndarray = field(repr=False)
    n_inner_solves: int
    alignment: np.ndarray = field(repr=False)
    centered_alignment: np.ndarray = field(repr=False)
    kept_variance: np.ndarray | None = field(default=None, repr=False)
    rank_correlation: np.ndarray | None = field(default=None, repr=False)

    @property
    def shares(self) -> np.ndarray:
        """Weights divided by their sum, (n_ps, n_kernels), comparable between different p."""
        return self.weights / self.weights.sum(axis=1, keepdims=True)

    @property
    def effective_numbers(self) -> np.ndarray:
        """Effective number of kernels at each p, (n_ps,); see :func:`effective_number`."""
        return effective_number(self.weights)

    @property
    def _norms(self) -> list[str]:
        return [norm_name(p, digits=7) for p in self.ps]

    def as_table(self) -> str:
        """Return a table with a line per p.

        Columns are the effective number of kernels, the number of kernels in use, the largest
        share, the duality gap and, with kept variances, Spearman's coefficient.
        """
        header = ["p", "effective", "in use", "largest", "gap"]
        columns = [
            self._norms,
            [f"{number:.2f}" for number in self.effective_numbers],
            [f"{number}" for number in np.count_nonzero(in_use(self.weights), axis=1)],
            [f"{share:.1%}" for share in self.shares.max(axis=1)],
            [f"{max(gap, 0.0):.0e}" for gap in self.rel_gaps],
        ]
        if self.rank_correlation is not None:
            header.append("Spearman")
            correlations = self.rank_correlation
            columns.append(["–" if np.isnan(value) else f"{value:+.2f}" for value in correlations])
        return aligned([header, *zip(*columns, strict=True)])

    def __str__(self) -> str:
        """Return the table, the shares of all kernels in per cent, and the largest alignments."""
        percent = [[f"{100 * share:.1f}" for share in row] for row in self.shares.T]
        rows = [[name, *row] for name, row in zip(self.names, percent, strict=True)]
        shares = aligned([["share, %", *self._norms], *rows])
        return "\n\n".join([self.as_table(), shares, self._largest_alignments()])

    def _largest_alignments(self) -> str:
        if len(self.names) == 1:
            return "There is only one kernel, so there are no alignments."
        first, second = np.triu_indices(len(self.names), k=1)
        matrices = {"alignment": self.alignment, "centred alignment": self.centered_alignment}
        lines = []
        for title, matrix in matrices.items():
            values = matrix[first, second]
            most = int(values.argmax())
            lines.append(
                f"{title}: mean {values.mean():.2f}, most {values[most]:.2f} between "
                f"{self.names[first[most]]} and {self.names[second[most]]}"
            )
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw shares and effective numbers against p, and the centred alignment.

        With kept variances, also draw their rank correlation with the weights. Needs matplotlib.
        """
        import matplotlib.pyplot as plt

        n_panels = 3 if self.rank_correlation is None else 4
        height = max(3.2, 1.2 + 0.22 * len(self.names))
        widths = [1.5, 1.0, 1.2, 1.1][:n_panels]
        fig, axes = plt.subplots(
            1,
            n_panels,
            figsize=(3.1 * sum(widths), height),
            width_ratios=widths,
            layout="constrained",
        )
        n_kernels = len(self.names)
        self._draw_matrix(axes[0], 100 * self.shares.T, aspect="auto")
        self._label_norms(axes[0], "Share of the weights, %")
        self._draw_curve(axes[1], self.effective_numbers, n_kernels, BLUE)
        axes[1].set_ylim(0, 1.08 * n_kernels)
        self._label_norms(axes[1], "Effective number of kernels")
        # Cosines between positive semi-definite matrices are not negative.
        self._draw_matrix(axes[2], self.centered_alignment, vmax=1)
        axes[2].set_xticks([])
        axes[2].set_title("Centred alignment", loc="left", fontsize=10)
        if self.rank_correlation is not None:
            self._draw_curve(axes[3], self.rank_correlation, 0.0, VERMILION)
            axes[3].set_ylim(-1.05, 1.05)
            self._label_norms(axes[3], "Spearman with kept variance")
        return fig

    def _draw_matrix(self, ax: Axes, matrix: np.ndarray, **options: Any) -> None:
        image = ax.imshow(matrix, cmap=shades(), vmin=0, **options)
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
        ax.set_yticks(range(len(self.names)), self.names)
        ax.tick_params(length=0)

    def _draw_curve(self, ax: Axes, values: np.ndarray, reference: float, color: str) -> None:
        ax.plot(values, "o-", color=color, markersize=4)
        ax.axhline(reference, **GUIDE)

    def _label_norms(self, ax: Axes, title: str) -> None:
        ax.set_xticks(range(len(self.ps)), [norm_name(p) for p in self.ps], rotation=90)
        ax.set_xlim(-0.5, len(self.ps) - 0.5)
        ax.tick_params(length=0)
        ax.set_xlabel("p")
        ax.set_title(title, loc="left", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)


def sparsity_report(
    stack: KernelStack,
    y: ArrayLike,
    *,
    ps: Sequence[float] = PAPER_NORMS,
    reg: float = 0.1,
    normalize: str | None = "multiplicative",
    kept_variance: ArrayLike | None = None,
    tol: float = 1e-6,
) -> SparsityReport:
    """Learn the weights of a set of kernels under several norms, and compare the kernels.

    The report has weights, not scores: weights learnt from all labels do not show which p predicts
    best; use cross-validation, :class:`~manykernels.MKFDACV`, for that. All norms are solved as
    one path, :func:`~manykernels.model_selection.lp_path`.

    Parameters
    ----------
    stack, y : KernelStack and array-like of shape (n_samples,)
        Kernel matrices of the training samples, and their classes.
    ps : sequence of float in [1, inf], default: the twelve of Yan et al. (2012)
    reg : float, default=0.1
        λ of :class:`~manykernels.MKFDA`, the same for all p.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        Normalisation of the kernels, as in :class:`~manykernels.MKFDA`.
    kept_variance : array-like of shape (n_kernels,), optional
        Fraction of the variance of each kernel that denoising keeps. Noisy kernels should keep
        little and get small weights; the rank correlation of the two measures whether they do
        (Yan 2010, Fig. 3).
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.

    Returns
    -------
    report : SparsityReport
        ``print(report)`` prints it, ``report.plot()`` draws it.

    References
    ----------
    F. Yan, J. Kittler, K. Mikolajczyk, A. Tahir. Non-sparse multiple kernel Fisher discriminant
    analysis. JMLR 13, 2012.
    F. Yan, J. Kittler, K. Mikolajczyk. Multiple kernel learning and feature space denoising.
    ICMLC 2010.

    Examples
    --------
    >>> from manykernels import kernels_for
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.reporting import sparsity_report
    >>> views, y = load_digit_views(noise=1)
    >>> X = views[:200]
    >>> stack = kernels_for(X, "rbf").fit(X)(X)
    >>> report = sparsity_report(stack, y[:200], ps=[1, 2, float("inf")], reg=10)
    >>> print(report.as_table())
    p    effective  in use  largest    gap
    ...
    >>> bool(report.effective_numbers[0] < report.effective_numbers[1])
    True
    """
    norms = np.atleast_1d(np.asarray(ps, dtype=np.float64))
    if norms.ndim != 1 or not len(norms):
        raise ValueError(f"ps must be a sequence of norms, got {ps!r}.")
    if not 0.0 < reg < np.inf:
        raise ValueError(f"reg must be positive and finite, got {reg!r}.")
    samples = labelled_stack("sparsity_report", stack, y)
    kept = None if kept_variance is None else np.asarray(kept_variance, dtype=np.float64)
    if kept is not None and (kept.shape != (stack.n_kernels,) or not np.isfinite(kept).all()):
        raise ValueError(
            f"kept_variance must be {stack.n_kernels} finite numbers, one per kernel; got "
            f"{kept_variance!r}."
        )
    path = path_of(samples, norms, np.array([reg]), normalize, tol)
    weights = path.weights[:, 0]
    return SparsityReport(
        names=list(stack.names),
        ps=norms,
        weights=weights,
        rel_gaps=path.rel_gaps[:, 0],
        n_inner_solves=int(path.n_inner_solves.sum()),
        alignment=stack.alignment(),
        centered_alignment=stack.alignment(centered=True),
        kept_variance=kept,
        rank_correlation=None if kept is None else _rank_correlations(weights, kept),
    )


def _rank_correlations(weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return Spearman's coefficients of the rows of `weights`; NaN where weights are equal."""
    relative = np.round(weights / weights.max(axis=1, keepdims=True), _RANK_DIGITS)
    constant = (np.ptp(relative, axis=1) == 0.0) | (np.ptp(kept) == 0.0)
    rows = zip(relative, constant, strict=True)
    return np.array(
        [np.nan if equal else stats.spearmanr(row, kept).statistic for row, equal in rows]
    )
