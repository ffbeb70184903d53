"""Principal axes of kernels with sample weights, and transforms that cut kernels along them.

A sample of weight w counts as w equal samples. With ``S = diag(√w)`` and the weighted mean
subtracted from the features Φ, their covariance is ``ΦᵀS²Φ``. The eigenvectors of
``SKS = UΔUᵀ`` then give the axes ``v_k = ΦᵀS u_k/√δ_k`` and the coordinates
``z_k(x) = k(x, ·) S u_k/√δ_k``, and so

    K_b = K S U_b Δ_b⁻¹ U_bᵀ S K,      K_t ↦ K_t (S U_b) (Δ_b⁻¹ U_bᵀ S K).

In the columns of samples with positive weight ``Δ_b⁻¹ U_bᵀ S K = U_bᵀ S⁻¹``, which needs no
division by small eigenvalues. Nor does a range that ends with the last axis: its kernel is what
the axes U_a before it leave, ``K_t − K_t (S U_a)(U_aᵀ S⁻¹)``.

All eigenvalues are computed even if few axes are kept. Most of the cost is the reduction to
tridiagonal form: a tenth of the axes would take half the time, by LAPACK or by Lanczos.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from .._memory import require_memory
from .._rounding import ACCUMULATED, EPS
from ._transformed import Samples
from .stack import KernelStack
from .transforms import Center, StackTransform, centered_trace


@dataclass(frozen=True)
class Axes:
    """Some principal axes of one kernel; ``(K_t @ left) @ right`` projects a block on them."""

    #: Eigenvalues Δ_b, in descending order.
    values: np.ndarray
    #: ``S U_b``, of shape (m, n_axes).
    left: np.ndarray
    #: ``Δ_b⁻¹ U_bᵀ S K``, of shape (n_axes, m).
    right: np.ndarray


def spectrum(K: np.ndarray, weights: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of SKS in descending order, and eigenvectors in columns.

    Negative eigenvalues are set to zero, and so are the smallest ones whose sum is within
    `rounding`: they are rounding errors, which a scaling to unit variance may amplify.
    """
    roots = np.sqrt(weights)
    values, vectors = linalg.eigh(K * roots * roots[:, None], driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    values[np.cumsum(values) <= rounding] = 0.0
    return values[::-1], vectors[:, ::-1]


def leading_axes(
    K: np.ndarray, weights: np.ndarray, values: np.ndarray, vectors: np.ndarray
) -> Axes:
    """The axes of the leading eigenvalues `values`."""
    leading = np.ascontiguousarray(vectors[:, : len(values)])
    if np.all(weights == 1.0):
        return Axes(values, leading, leading.T)
    roots = np.sqrt(weights)[:, None]
    left = roots * leading
    without = weights == 0.0
    right = (leading / np.where(without[:, None], 1.0, roots)).T
    right[:, without] = (left.T @ K[:, without]) / values[:, None]
    return Axes(values, left, right)


def n_leading(values: np.ndarray, share: float) -> int:
    """The smallest number of leading values that add up to `share` of the sum of all.

    All of them, if what the others add is within rounding error.
    """
    sums = np.cumsum(values)
    number = 1 + int(np.searchsorted(sums, (share - ACCUMULATED) * sums[-1]))
    return len(values) if sums[number - 1] >= (1.0 - ACCUMULATED) * sums[-1] else number


class Cut(NamedTuple):
    """A range of axes that becomes a kernel; without `stop`, all axes from `start` on."""

    name: str
    start: int
    stop: int | None

    def self_similarities(self, by_axis: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """The diagonal of this kernel, from those of single axes and that of all axes."""
        if self.stop is None:
            return whole - by_axis.sum(axis=1)
        return by_axis[:, self.start : self.stop].sum(axis=1)


# Takes the position of a kernel, its centred matrix and its eigenvalues; returns the cuts.
Cutter = Callable[[int, np.ndarray, np.ndarray], list[Cut]]


class SpectralTransform(StackTransform):
    """Base of the transforms that cut kernels along their axes; a subclass decides where.

    If the training stack is not centred, it is centred first, and so are the blocks to transform.
    If it is centred, they must be too.
    """

    @abstractmethod
    def _cutter(self, stack: KernelStack, weights: np.ndarray, y: Any) -> Cutter:
        """Check the parameters, and return the function that cuts one kernel."""

    def most_kernels(self, n_kernels: int) -> int:
        """The largest number of kernels that `n_kernels` can be cut into."""
        return n_kernels

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        if not isinstance(stack, KernelStack):
            raise ValueError(
                f"{type(self).__name__} needs whole kernel matrices, but these are computed by "
                "columns; use another solver."
            )
        cut = self._cutter(stack, weights, y)
        require_memory(
            (self.most_kernels(stack.n_kernels), len(stack), len(stack)),
            f"The stack of kernels that {type(self).__name__} makes",
        )
        trace, rounding = centered_trace(stack, weights)
        self.center_ = None if stack.centered else Center()
        if self.center_ is not None:
            stack = self.center_.fit_transform(stack, sample_weight=weights)
        self.eigenvalues_ = np.zeros((stack.n_kernels, len(stack)))
        self._axes: list[Axes] = []
        self._cuts: list[Cut] = []
        sources, diagonals, counts = [], [], []
        for j in range(stack.n_kernels):
            K = stack.kernel(j)
            if trace[j] <= rounding[j]:
                K[:] = 0.0  # a constant kernel, up to rounding error
            self.eigenvalues_[j], vectors = spectrum(K, weights, rounding[j])
            cuts = cut(j, K, self.eigenvalues_[j])
            n_axes = max(c.start if c.stop is None else c.stop for c in cuts)
            axes = leading_axes(K, weights, self.eigenvalues_[j, :n_axes], vectors)
            self._axes.append(axes)
            self._cuts += cuts
            sources += [j] * len(cuts)
            by_axis = axes.right.T**2 * axes.values
            diagonals += [c.self_similarities(by_axis, K.diagonal()) for c in cuts]
            # The rank as numpy.linalg.matrix_rank defines it.
            values = self.eigenvalues_[j]
            rank = np.count_nonzero(values > len(values) * EPS * values[0])
            counts += [(rank if c.stop is None else c.stop) - c.start for c in cuts]
        self.sources_ = np.array(sources)
        self._diagonals = np.array(diagonals)
        self.n_components_ = np.array(counts)
        self.kernel_names_ = [c.name for c in self._cuts]

    def _transform(self, stack: KernelStack) -> KernelStack:
        if stack.n_kernels != len(self._axes):
            raise ValueError(
                f"The stack has {stack.n_kernels} kernels, but {type(self).__name__} was fitted "
                f"on {len(self._axes)}."
            )
        if self.center_ is not None:
            stack = self.center_.transform(stack)
        elif not stack.centered:
            raise ValueError(
                f"{type(self).__name__} was fitted on centred kernels, and this stack is not: "
                "transform it with the Center of the training stack first."
            )
        shape = (len(self._cuts), *stack.shape[:2])
        require_memory(shape, f"The stack of kernels that {type(self).__name__} makes")
        data = np.empty(shape)
        row_diag = None if stack.row_diag is None else np.empty(shape[:2])
        for j, axes in enumerate(self._axes):
            K = stack.kernel(j)
            scores = K @ axes.left
            for i in np.flatnonzero(self.sources_ == j):
                c = self._cuts[i]
                if c.stop is None:
                    np.subtract(K, scores @ axes.right, out=data[i])
                else:
                    np.matmul(scores[:, c.start : c.stop], axes.right[c.start : c.stop], data[i])
                if row_diag is not None and stack.row_diag is not None:
                    by_axis = scores**2 / axes.values
                    row_diag[i] = c.self_similarities(by_axis, stack.row_diag[j])
        if stack.gram:
            row_diag = np.einsum("jii->ji", data).copy()
        col_diag = row_diag if stack.gram else self._diagonals
        return stack._with_data(
            data,
            names=self.kernel_names_,
            views=None,
            guarantees=stack.guarantees.of_centered(),
            _scale=np.ones(len(data)),
            _rows=Samples(row_diag, names=stack.row_samples),
            _cols=Samples(col_diag, names=stack.col_samples),
        )

    def sources(self, kernels: np.ndarray) -> np.ndarray:
        return np.array(list(dict.fromkeys(self.sources_[kernels].tolist())), dtype=int)

    def select(self, kernels: np.ndarray) -> Self:
        chosen = np.atleast_1d(np.arange(len(self._cuts))[kernels])
        needed = self.sources(chosen)
        new = copy(self)
        new._cuts = [self._cuts[i] for i in chosen]
        new.sources_ = np.array([needed.tolist().index(j) for j in self.sources_[chosen]])
        new._axes = [self._axes[j] for j in needed]
        for position, axes in enumerate(new._axes):
            # Drop the axes before the first and after the last that a chosen kernel needs.
            mine = [i for i in range(len(chosen)) if new.sources_[i] == position]
            if any(new._cuts[i].stop is None for i in mine):
                continue
            first = min(new._cuts[i].start for i in mine)
            part = slice(first, max(new._cuts[i].stop or 0 for i in mine))
            new._axes[position] = Axes(axes.values[part], axes.left[:, part], axes.right[part])
            for i in mine:
                name, start, stop = new._cuts[i]
                new._cuts[i] = Cut(name, start - first, (stop or 0) - first)
        new._diagonals = self._diagonals[chosen]
        new.n_components_ = self.n_components_[chosen]
        new.kernel_names_ = [c.name for c in new._cuts]
        for name in ("eigenvalues_", *self._per_kernel):
            setattr(new, name, getattr(self, name)[needed])
        if self.center_ is not None:
            new.center_ = self.center_.select(needed)
        return new
