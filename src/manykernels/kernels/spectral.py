"""Denoised feature spaces and spectral bands: kernels cut along their principal axes.

Let K be a centred kernel of training samples, ``K = UΔUᵀ`` with eigenvalues in descending order
(Yan, Kittler and Mikolajczyk 2010, (13)). The k-th principal axis of the feature space is
``v_k = Φᵀu_k/√δ_k``, and a sample x has the coordinate ``z_k(x) = k(x, ·) u_k/√δ_k`` on it. The
kernel of the samples projected on some of the axes, those of the columns U_b, is therefore

    K_b = U_b Δ_b U_bᵀ,      K_t ↦ K_t U_b U_bᵀ

on training samples and for a centred block K_t between new and training samples. Each is a
kernel: it is positive semi-definite and defined for new samples. The axes are divided where the
leading eigenvalues add up to a given share of the trace, which is the variance.

* :class:`Denoise` keeps the leading axes only (section 3 of the paper), on the assumption that
  the others hold noise. How many is given, or chosen by a rule of ``VARIANCE_RULES``.
* :class:`Bands` makes a kernel of every range of axes, ``K = Σ_b K_b``. Learning their weights
  chooses axes and kernels in one convex program; section 5 of the paper asks for an objective
  that includes denoising.

:mod:`manykernels.kernels.axes` has the formulas with sample weights.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from .axes import Cut, Cutter, SpectralTransform, n_leading
from .stack import KernelStack

#: The shares of the variance that a rule chooses from.
VARIANCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
#: From a centred kernel (m, m) to its error when cut at each of ``VARIANCES``; NaN if unknown.
VarianceErrors = Callable[[np.ndarray], np.ndarray]
#: Rules that choose the variance, by the names that ``Denoise(variance=…)`` takes. Each is called
#: with labels, sample weights and the parameters `reg` and `folds`. The only rule, "cv",
#: is added by :mod:`manykernels.denoising`, since this folder imports no learning code.
VARIANCE_RULES: dict[str, Callable[[Any, np.ndarray, Any, Any], VarianceErrors]] = {}


class Denoise(SpectralTransform):
    """Keep the leading principal axes of every kernel, which hold a share of its variance.

    Parameters
    ----------
    variance : float in (0, 1], "cv" or sequence of float, default=0.9
        The share of the variance to keep: the fewest axes that hold as much are kept. A sequence
        has one share for each kernel. "cv" chooses one of ``VARIANCES`` (0.1, 0.2, …, 0.9, 0.95,
        0.99 and 1) for each kernel by the cross-validated error of a discriminant on this kernel
        alone. The axes are found without the held-out samples; `fit` needs the class labels.
    reg : float, optional
        λ of these discriminants, whose kernel has unit variance. Inside
        :class:`~manykernels.MKFDA` with a number for `reg` and ``normalize="multiplicative"``
        it defaults to that number; else to the best of 0.01, 0.1, 1, 10, 100 for every variance.
    folds : int, default=5
        Number of folds of "cv", each of which takes a decomposition per kernel.

    Attributes
    ----------
    variance_ : ndarray of shape (n_kernels,)
        The share given or chosen.
    n_components_ : ndarray of shape (n_kernels,)
        Number of axes kept.
    eigenvalues_ : ndarray of shape (n_kernels, n_samples)
        Spectra of the centred kernels, in descending order.
    cv_errors_ : ndarray of shape (n_kernels, 12)
        Squared error on held-out samples at each of ``VARIANCES``, relative to that of predicting
        the mean. NaN without "cv", for a constant kernel, and if samples are too alike to be
        divided into folds; such a kernel keeps all axes.

    Notes
    -----
    A stack that is not centred is centred first. A constant kernel becomes zero. Of variances
    that are equally good the largest is chosen.

    :class:`~manykernels.MKFDA` computes its probabilities from samples that are left out of the
    regression, but not when the axes are found. With a flat spectrum axes depend on single
    samples, so that few axes seem better than they are (docs/benchmarks/denoising.md).

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

    def __init__(self, variance: Any = 0.9, *, reg: float | None = None, folds: int = 5):
        self.variance = variance
        self.reg = reg
        self.folds = folds

    def _cutter(self, stack: KernelStack, weights: np.ndarray, y: Any) -> Cutter:
        self.variance_ = np.ones(stack.n_kernels)
        self.cv_errors_ = np.full((stack.n_kernels, len(VARIANCES)), np.nan)
        errors_of = None
        if isinstance(self.variance, str) and self.variance in VARIANCE_RULES:
            errors_of = VARIANCE_RULES[self.variance](y, weights, self.reg, self.folds)
        else:
            self.variance_[:] = self._checked_variance(stack.n_kernels)

        def cut(j: int, K: np.ndarray, values: np.ndarray) -> list[Cut]:
            if values[0] <= 0.0:
                return [Cut(stack.names[j], 0, 0)]
            if errors_of is not None:
                self.cv_errors_[j] = errors = errors_of(K)
                if np.isfinite(errors).all():
                    # Searched from the end: the largest of equally good variances.
                    self.variance_[j] = VARIANCES[len(errors) - 1 - errors[::-1].argmin()]
            stop = n_leading(values, self.variance_[j])
            return [Cut(stack.names[j], 0, None if stop == len(values) else stop)]

        return cut

    def _checked_variance(self, n_kernels: int) -> np.ndarray:
        several = not isinstance(self.variance, str | Real) and hasattr(self.variance, "__len__")
        values = list(self.variance) if several else [self.variance]
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


class Bands(SpectralTransform):
    """Cut every kernel into bands of its spectrum, each a kernel.

    Parameters
    ----------
    n_bands : int, default=3
        Bands of equal shares of the variance, as far as single eigenvalues allow.
    edges : sequence of float in (0, 1], optional
        The shares of the variance at which bands end, increasing, such as ``[0.5, 0.9, 1]``;
        replaces `n_bands`. If the last edge is below 1, the axes beyond it are left out.

    Attributes
    ----------
    kernel_names_ : list of str
        Such as "texture[0.5-0.9]".
    sources_ : ndarray of shape (n_outputs,)
        Position of the kernel that each band is cut from.
    n_components_ : ndarray of shape (n_outputs,)
        Number of axes of each band.
    eigenvalues_ : ndarray of shape (n_kernels, n_samples)
        As of :class:`Denoise`.

    Notes
    -----
    An axis across edges belongs to the lowest of its bands. A band without axes is left out. A
    stack that is not centred is centred first. A constant kernel becomes one kernel of zeros.

    Weights are learnt from an error on training samples. With little regularisation the last
    bands, which have the most axes, fit these best even if they hold noise. So `reg` has to be
    chosen as without bands (docs/benchmarks/denoising.md, examples/machines/plot_denoising.py).

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

    def __init__(self, n_bands: int = 3, *, edges: Any = None):
        self.n_bands = n_bands
        self.edges = edges

    def most_kernels(self, n_kernels: int) -> int:
        """The largest number of bands that `n_kernels` can be cut into."""
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

    def _cutter(self, stack: KernelStack, weights: np.ndarray, y: Any) -> Cutter:
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


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and 0.0 < float(value) <= 1.0


def _range_labels(edges: list[float]) -> list[str]:
    """Labels "0-0.5", "0.5-0.9", … with as many digits as make edges differ; 17 always do."""
    for digits in range(3, 18):
        labels = [f"{edge:.{digits}g}" for edge in (0.0, *edges)]
        if len(set(labels)) == len(labels):
            break
    return [f"{low}-{high}" for low, high in pairwise(labels)]
