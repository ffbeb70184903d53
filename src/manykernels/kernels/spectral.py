"""Denoising and spectral bands: kernels projected on some of their principal axes.

Let K be a centred kernel of training samples, ``K = UΔUᵀ`` with eigenvalues in descending order
(Yan, Kittler and Mikolajczyk 2010, (13)). The k-th principal axis of the feature space is
``v_k = Φᵀu_k/√δ_k``, and a sample x has the coordinate ``z_k(x) = k(x, ·) u_k/√δ_k`` on it. The
kernel of the samples projected on some of the axes, those of the columns U_b, is therefore

    K_b = U_b Δ_b U_bᵀ,      K_t ↦ K_t U_b U_bᵀ

on training samples and for a centred block K_t between new and training samples. Each is a
kernel: it is positive semi-definite and defined for new samples. The axes are divided where the
leading eigenvalues add up to a given share of the trace, which is the variance.

* :class:`Denoise` keeps the leading axes only (section 3 of the paper), on the assumption that
  the others hold noise. Their number follows from a share of the variance, which is a parameter
  or chosen by a rule of ``VARIANCE_RULES``.
* :class:`Bands` returns a kernel for every range of axes, ``K = Σ_b K_b``. Learning their weights
  selects axes and kernels in one convex program, as suggested in section 5 of the paper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from ..utils.numerics import ACCUMULATED, EPS, require_memory
from ..utils.storable import storable
from .operators import Samples
from .stack import KernelStack
from .transforms import Center, StackTransform, centered_trace

# -- Principal axes with sample weights -----------------------------------------------------------
#
# A sample of weight w counts as w equal samples. With ``S = diag(√w)`` and the weighted mean
# subtracted from the features Φ, their covariance is ``ΦᵀS²Φ``. The eigenvectors of
# ``SKS = UΔUᵀ`` then give the axes ``v_k = ΦᵀS u_k/√δ_k`` and the coordinates
# ``z_k(x) = k(x, ·) S u_k/√δ_k``, and so
#
#     K_b = K S U_b Δ_b⁻¹ U_bᵀ S K,      K_t ↦ K_t (S U_b) (Δ_b⁻¹ U_bᵀ S K).
#
# In the columns of samples with positive weight ``Δ_b⁻¹ U_bᵀ S K = U_bᵀ S⁻¹``, which needs no
# division by small eigenvalues. Nor does a range that ends with the last axis: its kernel is the
# remainder after the preceding axes U_a, ``K_t − K_t (S U_a)(U_aᵀ S⁻¹)``.
#
# All eigenvalues are computed even if few axes are kept. Most of the cost is the reduction to
# tridiagonal form: a tenth of the axes would take half the time, by LAPACK or by Lanczos.


@storable
@dataclass(frozen=True)
class Axes:
    """Principal axes of one kernel; ``(K_t @ left) @ right`` projects a block on them."""

    #: Eigenvalues Δ_b, in descending order.
    values: np.ndarray
    #: ``S U_b``, of shape (m, n_axes).
    left: np.ndarray
    #: ``Δ_b⁻¹ U_bᵀ S K``, of shape (n_axes, m).
    right: np.ndarray


def spectrum(K: np.ndarray, weights: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of SKS in descending order, and the eigenvectors in columns.

    Negative eigenvalues are set to zero, and so are the smallest ones whose sum is within
    `rounding`: they are rounding errors, which scaling to unit variance may amplify.
    """
    roots = np.sqrt(weights)
    values, vectors = linalg.eigh(K * roots * roots[:, None], driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    values[np.cumsum(values) <= rounding] = 0.0
    return values[::-1], vectors[:, ::-1]


def leading_axes(
    K: np.ndarray, weights: np.ndarray, values: np.ndarray, vectors: np.ndarray
) -> Axes:
    """Return the axes of the leading eigenvalues `values`."""
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
    """Return the smallest number of leading values that add up to `share` of their sum.

    It is the number of all values if the remaining ones are within rounding error.
    """
    sums = np.cumsum(values)
    number = 1 + int(np.searchsorted(sums, (share - ACCUMULATED) * sums[-1]))
    return len(values) if sums[number - 1] >= (1.0 - ACCUMULATED) * sums[-1] else number


@storable
class Cut(NamedTuple):
    """Range of axes that forms a kernel; if `stop` is None, all axes from `start` on."""

    name: str
    start: int
    stop: int | None

    def self_similarities(self, by_axis: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Return the diagonal of this kernel, from those of single axes and of all axes."""
        if self.stop is None:
            return whole - by_axis.sum(axis=1)
        return by_axis[:, self.start : self.stop].sum(axis=1)


# Function of the position of a kernel, its centred matrix and its eigenvalues.
Cutter = Callable[[int, np.ndarray, np.ndarray], list[Cut]]


class SpectralTransform(StackTransform):
    """Base class of transforms that divide kernels along their axes.

    If the training stack is not centred, it is centred first, and so are the blocks to transform.
    If it is centred, the blocks must be centred too.
    """

    @abstractmethod
    def _cutter(self, stack: KernelStack, weights: np.ndarray, y: object) -> Cutter:
        """Validate the parameters, and return the function that divides one kernel."""

    def most_kernels(self, n_kernels: int) -> int:
        """Return the largest number of outputs for `n_kernels` inputs."""
        return n_kernels

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        if not isinstance(stack, KernelStack):
            raise ValueError(
                f"{type(self).__name__} needs whole kernel matrices, but these are computed by "
                "columns; use another solver."
            )
        cut = self._cutter(stack, weights, y)
        require_memory(
            (self.most_kernels(stack.n_kernels), len(stack), len(stack)),
            f"The output of {type(self).__name__}",
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
        require_memory(shape, f"The output of {type(self).__name__}")
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
            outputs = [i for i in range(len(chosen)) if new.sources_[i] == position]
            if any(new._cuts[i].stop is None for i in outputs):
                continue
            first = min(new._cuts[i].start for i in outputs)
            kept = slice(first, max(new._cuts[i].stop or 0 for i in outputs))
            new._axes[position] = Axes(axes.values[kept], axes.left[:, kept], axes.right[kept])
            for i in outputs:
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


#: Candidate shares of the variance.
VARIANCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
#: Function of a centred kernel (m, m) that returns the error at each of ``VARIANCES``, or NaN.
VarianceErrors = Callable[[np.ndarray], np.ndarray]
#: Rules that choose the variance, by the value of ``Denoise(variance=…)``. Each is called
#: with labels, sample weights and the parameters `reg` and `folds`. The only rule, "cv",
#: is added by :mod:`manykernels.denoising`, since this folder imports no learning code.
VARIANCE_RULES: dict[str, Callable[[Any, np.ndarray, Any, Any, Any], VarianceErrors]] = {}


@storable
@dataclass(eq=False, repr=False)
class Denoise(SpectralTransform):
    """Keep the leading principal axes of every kernel, which hold a share of its variance.

    Parameters
    ----------
    variance : float in (0, 1], "cv" or sequence of float, default=0.9
        The share of the variance to keep: the smallest number of leading axes that hold this
        share is kept. A sequence has one share for each kernel. "cv" chooses one of ``VARIANCES``
        (0.1, 0.2, …, 0.9, 0.95, 0.99 and 1) for each kernel by the cross-validated error of a
        discriminant on this kernel alone. The axes are computed without the held-out samples;
        `fit` needs the class labels.
    reg : float, optional
        λ of these discriminants, whose kernel has unit variance. Inside
        :class:`~manykernels.MKFDA` with a number for `reg` and ``normalize="multiplicative"``
        it defaults to that number; else to the best of 0.01, 0.1, 1, 10, 100 for every variance.
    folds : int, default=5
        Number of folds of "cv"; each needs an eigendecomposition per kernel.

    Attributes
    ----------
    variance_ : ndarray of shape (n_kernels,)
        The share of the variance kept.
    n_components_ : ndarray of shape (n_kernels,)
        Number of axes kept.
    eigenvalues_ : ndarray of shape (n_kernels, n_samples)
        Spectra of the centred kernels, in descending order.
    cv_errors_ : ndarray of shape (n_kernels, 12)
        Squared error on held-out samples at each of ``VARIANCES``, relative to that of predicting
        the mean. NaN without "cv", for a constant kernel, and if too many samples are equal to
        be divided into folds; such a kernel keeps all axes.

    Notes
    -----
    A stack that is not centred is centred first. A constant kernel becomes zero. Among equally
    good variances the largest is chosen.

    :class:`~manykernels.MKFDA` computes its probabilities from samples that are left out of the
    regression, but not of the computation of the axes. With a flat spectrum, axes depend on single
    samples, so that the estimates for few axes are too optimistic (docs/benchmarks/denoising.md).

    References
    ----------
    F. Yan, J. Kittler, K. Mikolajczyk. Multiple kernel learning and feature space denoising.
    ICMLC 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import Denoise, KernelStack
    >>> X = np.array([[2.0, 0.1], [-2.0, 0.1], [0.0, -0.2]])
    >>> stack = KernelStack.from_arrays(X @ X.T)
    >>> Denoise(0.9).fit_transform(stack).kernel(0).round(9) + 0.0
    array([[ 4., -4.,  0.],
           [-4.,  4.,  0.],
           [ 0.,  0.,  0.]])
    """

    _per_kernel = ("variance_", "cv_errors_")

    variance: float | str | Sequence[float] = 0.9
    _: KW_ONLY
    reg: float | None = None
    folds: int = 5

    def _cutter(self, stack: KernelStack, weights: np.ndarray, y: object) -> Cutter:
        self.variance_ = np.ones(stack.n_kernels)
        self.cv_errors_ = np.full((stack.n_kernels, len(VARIANCES)), np.nan)
        errors_of = None
        if isinstance(self.variance, str) and self.variance == "cv":
            import_module("manykernels.denoising")  # adds the rule
            rule = VARIANCE_RULES[self.variance]
            errors_of = rule(y, weights, self.reg, self.folds, stack.groups)
        else:
            self.variance_[:] = self._checked_variance(stack.n_kernels)

        def cut(j: int, K: np.ndarray, values: np.ndarray) -> list[Cut]:
            if values[0] <= 0.0:
                return [Cut(stack.names[j], 0, 0)]
            if errors_of is not None:
                self.cv_errors_[j] = errors = errors_of(K)
                if np.isfinite(errors).all():
                    # Reversed, to find the largest of equally good variances.
                    self.variance_[j] = VARIANCES[len(errors) - 1 - errors[::-1].argmin()]
            stop = n_leading(values, self.variance_[j])
            return [Cut(stack.names[j], 0, None if stop == len(values) else stop)]

        return cut

    def _checked_variance(self, n_kernels: int) -> np.ndarray:
        several = not isinstance(self.variance, str | Real) and hasattr(self.variance, "__len__")
        values: list[object] = list(self.variance) if several else [self.variance]  # type: ignore[arg-type]
        if not all(map(_is_share, values)):
            raise ValueError(
                'variance must be a number in (0, 1], "cv", or a sequence of such numbers, one '
                f"per kernel; got {self.variance!r}."
            )
        if several and len(values) != n_kernels:
            raise ValueError(
                f"variance has {len(values)} numbers, but there are {n_kernels} kernels."
            )
        return np.array(values, dtype=np.float64)


@storable
class Bands(SpectralTransform):
    """Divide every kernel into bands of its spectrum, each of which is a kernel.

    Parameters
    ----------
    n_bands : int, default=3
        Number of bands of equal shares of the variance, as far as single eigenvalues allow.
    edges : sequence of float in (0, 1], optional
        The increasing shares of the variance at which bands end, such as ``[0.5, 0.9, 1]``;
        replaces `n_bands`. If the last edge is below 1, the axes beyond it are left out.

    Attributes
    ----------
    kernel_names_ : list of str
        Names of the bands, such as "texture[0.5-0.9]".
    sources_ : ndarray of shape (n_outputs,)
        Position of the input kernel of each band.
    n_components_ : ndarray of shape (n_outputs,)
        Number of axes of each band.
    eigenvalues_ : ndarray of shape (n_kernels, n_samples)
        Spectra of the centred kernels, in descending order.

    Notes
    -----
    An axis that spans several bands belongs to the lowest of them. A band without axes is left
    out. A stack that is not centred is centred first. A constant kernel becomes one zero kernel.

    Weights are learnt from the training error. With little regularisation the last bands, which
    have the most axes, fit the training samples best even if they hold noise. So `reg` has to be
    tuned as without bands (docs/benchmarks/denoising.md, examples/machines/plot_denoising.py).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import Bands, KernelStack
    >>> X = np.array([[2.0, 0.1], [-2.0, 0.1], [0.0, -0.2]])
    >>> stack = KernelStack.from_arrays(X @ X.T, names=["place"])
    >>> bands = Bands(edges=[0.5, 1]).fit_transform(stack)
    >>> bands
    KernelStack(2 kernels, 3 x 3: 'place[0-0.5]', 'place[0.5-1]')
    >>> np.allclose(bands.combine([1, 1]), X @ X.T)
    True
    """

    def __init__(self, n_bands: int = 3, *, edges: Sequence[float] | None = None):
        self.n_bands = n_bands
        self.edges = edges

    def most_kernels(self, n_kernels: int) -> int:
        """Return the largest number of bands of `n_kernels` kernels."""
        return n_kernels * len(self._checked_edges())

    def _checked_edges(self) -> list[float]:
        if self.edges is None:
            if not isinstance(self.n_bands, Integral) or self.n_bands < 1:
                raise ValueError(
                    f"n_bands must be an integer of at least 1, got {self.n_bands!r}."
                )
            return [b / self.n_bands for b in range(1, int(self.n_bands) + 1)]
        edges = list(self.edges) if hasattr(self.edges, "__len__") else []
        if not edges or not all(map(_is_share, edges)) or any(np.diff(edges) <= 0.0):
            raise ValueError(
                f"edges must be increasing numbers in (0, 1], at least one; got {self.edges!r}."
            )
        return [float(edge) for edge in edges]

    def _cutter(self, stack: KernelStack, weights: np.ndarray, y: object) -> Cutter:
        edges = self._checked_edges()
        ranges = _range_labels(edges)

        def cut(j: int, K: np.ndarray, values: np.ndarray) -> list[Cut]:
            name = stack.names[j]
            if values[0] <= 0.0:
                return [Cut(f"{name}[0-{edges[-1]:g}]", 0, 0)]
            cuts, start = [], 0
            for label, edge in zip(ranges, edges, strict=True):
                stop = n_leading(values, edge)
                if stop > start:
                    end = None if stop == len(values) else stop
                    cuts.append(Cut(f"{name}[{label}]", start, end))
                start = stop
            return cuts

        return cut


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and 0.0 < float(value) <= 1.0


def _range_labels(edges: list[float]) -> list[str]:
    """Return labels "0-0.5", "0.5-0.9", … with enough digits, at most 17, to distinguish edges."""
    for digits in range(3, 18):
        labels = [f"{edge:.{digits}g}" for edge in (0.0, *edges)]
        if len(set(labels)) == len(labels):
            break
    return [f"{low}-{high}" for low, high in pairwise(labels)]
