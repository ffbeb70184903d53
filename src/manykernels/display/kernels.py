"""Displays of the alignment of kernels, and of the views that samples have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from ..baselines.alignment import Alignments
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..kernels.views import are_views, as_views
from .base import (
    BLUE,
    GREY,
    GUIDE,
    Display,
    bare,
    heat_map,
    ink,
    named_ticks,
    required,
    shaped,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..estimators.base import KernelEstimator


# Largest number of kernels with names; with more, a line is less than a tenth of an inch high.
_MOST_NAMES = 60


@dataclass(eq=False)
class AlignmentDisplay(Display):
    """Centred alignments of kernels with each other, and with the targets.

    The alignment is the cosine between two centred kernel matrices: 1 for kernels that are equal
    up to a factor and a constant, 0 for kernels that have nothing in common.

    Parameters
    ----------
    alignment : ndarray of shape (n_kernels, n_kernels)
    kernel_names : list of str
    with_targets : ndarray of shape (n_kernels,), optional
        Alignments with the kernel of the targets, drawn as the last row.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    im_ : AxesImage
    order_ : ndarray of int
        Order of the kernels in the plot.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import rbf_grid
    >>> from manykernels.display import AlignmentDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = AlignmentDisplay.from_stack(rbf_grid([0.1, 1, 10]).fit(X)(X), y)
    >>> display.im_.get_array().shape  # and a row for y
    (4, 3)
    """

    alignment: np.ndarray
    kernel_names: list[str]
    with_targets: np.ndarray | None = None

    def __post_init__(self) -> None:
        number = len(self.kernel_names)
        table = f"{number} × {number}, a row and a column for every kernel"
        self.alignment = shaped("alignment", self.alignment, number, number, of=table)
        if self.with_targets is not None:
            each = f"a number for each of {number} kernels"
            self.with_targets = shaped("with_targets", self.with_targets, number, of=each)

    @classmethod
    def from_stack(
        cls,
        stack: KernelStack,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the alignments of precomputed kernels.

        Parameters
        ----------
        stack : KernelStack
            Gram matrices of the training samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Classes or numbers.
        ax, **kwargs
            As for :meth:`plot`.
        """
        if y is None:
            alignment, with_targets = stack.alignment(centered=True), None
        else:
            check_consistent_length(stack, y)
            alignments = Alignments.of(stack, _columns(y), None)
            alignment, with_targets = alignments.cosines, alignments.with_targets
        if np.isnan(alignment).any():
            raise ValueError(
                "The stack has missing kernels (NaN), for which alignments are not defined: leave "
                "out the samples that lack kernels, or complete the stack."
            )
        return cls(alignment, list(stack.names), with_targets).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the alignments of the kernels of a fitted estimator, between the rows of X.

        Parameters
        ----------
        estimator : one with kernels, such as MKFDA
        X : as for ``estimator.fit``
        y, ax, **kwargs
            As for :meth:`from_stack`.
        """
        why = "pass precomputed kernels to AlignmentDisplay.from_stack."
        union = required(estimator, "union_", why)
        return cls.from_stack(union(X), y, ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, clustered: bool = True, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        clustered : bool, default=True
            Whether to sort kernels such that similar kernels are neighbours.
        **kwargs
            Passed to ``ax.imshow``.
        """
        number = len(self.kernel_names)
        self.order_ = _clustered(self.alignment) if clustered else np.arange(number)
        table = self.alignment[np.ix_(self.order_, self.order_)]
        names = [self.kernel_names[j] for j in self.order_]
        rows = list(names)
        if self.with_targets is not None:
            table = np.vstack([table, self.with_targets[self.order_]])
            rows.append("y")
        each = min(0.44, 9.0 / number)
        size = (2.6 + each * number, 2.1 + 0.8 * each * len(rows))
        ax = self._begin(ax, size)
        self.im_ = heat_map(ax, table, rows, names, 1.0, **kwargs)
        if number > _MOST_NAMES:
            ax.set(xticks=[], yticks=[])
        if self.with_targets is not None:
            ax.axhline(number - 0.5, color=ink(ax), linewidth=1.2)
        titled(ax, "Centred alignment")
        return self


def _columns(y: ArrayLike) -> np.ndarray:
    """Return centred columns, whose inner products are the kernel of the targets."""
    if type_of_target(y) in ("binary", "multiclass"):
        columns = LabelBinarizer().fit_transform(y).astype(np.float64)
    else:
        values = np.asarray(y, dtype=np.float64)
        columns = values.reshape(len(values), -1)
    centred: np.ndarray = columns - columns.mean(axis=0)
    return centred


def _clustered(alignment: np.ndarray) -> np.ndarray:
    """Return the leaves of average-linkage clustering, in which neighbours are similar."""
    if len(alignment) < 3:
        return np.arange(len(alignment))
    distances = np.clip(1.0 - (alignment + alignment.T) / 2.0, 0.0, None)
    np.fill_diagonal(distances, 0.0)
    order: np.ndarray = leaves_list(linkage(squareform(distances), "average", True))
    return order


# -- Missing views --------------------------------------------------------------------------------


# Largest number of patterns that are drawn; the others are counted together.
_MOST = 20


@dataclass(eq=False)
class MissingViewsDisplay(Display):
    """Patterns of missing views: a line for each pattern, the most frequent first.

    Filled squares are views that the samples of a pattern have, empty squares are missing views.
    The number of samples of each pattern is at the right, the share of samples that have each
    view is below.

    Parameters
    ----------
    patterns : ndarray of bool of shape (n_patterns, n_views)
        True for views that the samples have.
    counts : ndarray of int of shape (n_patterns,)
        Number of samples of each pattern.
    view_names : list of str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    present_, lacking_ : PathCollection
        Filled and empty squares.

    Examples
    --------
    >>> import pandas as pd
    >>> from manykernels.display import MissingViewsDisplay
    >>> genes = pd.DataFrame({"g": [1.0, 2.0, 3.0]}, index=["ann", "bob", "cy"])
    >>> scans = pd.DataFrame({"s": [1.0, 2.0]}, index=["bob", "cy"])
    >>> display = MissingViewsDisplay.from_views({"genes": genes, "scans": scans})
    >>> display.data()["patterns"], display.data()["counts"]
    ([[True, True], [True, False]], [2, 1])
    """

    patterns: np.ndarray
    counts: np.ndarray
    view_names: list[str]

    def __post_init__(self) -> None:
        self.patterns, self.counts = np.asarray(self.patterns), np.asarray(self.counts)
        if self.patterns.dtype != bool or self.patterns.ndim != 2:
            raise ValueError("patterns must be a table of bool, patterns by views.")
        if self.patterns.shape != (len(self.counts), len(self.view_names)):
            raise ValueError(
                f"patterns must be {len(self.counts)} × {len(self.view_names)}, counts by views; "
                f"got the shape {self.patterns.shape}."
            )

    @classmethod
    def from_views(cls, X: Table, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the views of samples.

        Parameters
        ----------
        X : Views, or a dict of tables
            Data frames of a dict are matched by label; a sample need not be in all of them. A row
            with only missing values counts as missing.
        ax, **kwargs
            As for :meth:`plot`.
        """
        if not are_views(X):
            raise ValueError(
                f"X must be Views or a dict of tables, one for every view; got {type(X).__name__}."
            )
        views = as_views(X, join="outer")
        patterns, counts = np.unique(views.present, axis=0, return_counts=True)
        # By decreasing count, then by decreasing number of views.
        order = np.lexsort((-patterns.sum(axis=1), -counts))
        return cls(patterns[order], counts[order], views.names).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, top: int = _MOST, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        top : int, default=20
            Largest number of patterns to draw.
        **kwargs
            Passed to ``ax.scatter`` for the filled squares.
        """
        shown, counts = self.patterns[:top], self.counts[:top]
        n_shown, n_views = shown.shape
        ax = self._begin(ax, (2.6 + 0.5 * n_views, 1.7 + 0.27 * max(n_shown, 2)))
        squares = {"marker": "s", "s": 70.0, "color": BLUE, **kwargs}
        self.present_ = ax.scatter(*np.argwhere(shown)[:, ::-1].T, **squares)
        empty = {**squares, "color": None, "facecolors": "none", "edgecolors": GREY}
        self.lacking_ = ax.scatter(*np.argwhere(~shown)[:, ::-1].T, **empty, alpha=0.5)
        total = int(self.counts.sum())
        lines = [f"{count} ({count / total:.0%})" for count in counts.tolist()]
        if len(self.counts) > top:
            rest = self.counts[top:]
            lines.append(f"{rest.sum()} in {len(rest)} other patterns")
        ax.set_yticks(range(len(lines)), lines)
        ax.yaxis.tick_right()
        have = self.counts @ self.patterns / total
        names = [f"{name} {share:.0%}" for name, share in zip(self.view_names, have, strict=True)]
        named_ticks(ax, "x", range(n_views), names)
        ax.set(xlim=(-0.6, n_views - 0.4), ylim=(len(lines) - 0.4, -0.6))
        for line in range(n_shown):
            ax.axhline(line, zorder=0, **GUIDE)
        bare(ax)
        titled(ax, f"Views of {total} samples")
        return self
