"""Principal components of the mean kernel: what a gate looks at by default.

All kernels count the same, whatever they compare: several tables, texts, matrices that are given.
A few components suffice for a gate, and with a few it cannot fit single samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy import linalg

from .._rounding import ACCUMULATED
from ..kernels import KernelStack
from .gates import Array

# Most training samples from whose kernels the components are learnt; new samples are compared with
# these. With more of them five components hardly change, and each costs a row of every kernel.
_MOST_LANDMARKS = 500


@dataclass(frozen=True)
class KernelComponents:
    """The first principal components of the mean of the normalised kernels.

    The default of ``gating_features``, with five components.

    Parameters
    ----------
    n_components : int, default=5
        How many; fewer where the kernels have fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.gating import KernelComponents
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> model = LocalizedSVC(gating_features=KernelComponents(2), random_state=0)
    >>> model.fit(X, X[:, 0] > 0).gating_coef_["weights"].shape[1]
    2
    """

    n_components: int = 5

    def __post_init__(self) -> None:
        number = self.n_components
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"n_components must be an integer of at least 1, got {number!r}.")

    def learn(self, stack: KernelStack, counts: np.ndarray | None) -> Components:
        """Learn from the kernels of training samples; `counts` say how often each counts.

        With ``K = Σ_p K_p/P``, weights w of sum one and mean w·K = k̄, the axes are eigenvectors u
        of ``√W (K − 1k̄ᵀ − k̄1ᵀ + w·k̄) √W`` with eigenvalues λ. The component of a sample x is
        ``Σ_i √(w_i/λ) u_i (k(x, x_i) − k̄_i)``; it does not need the mean of k(x, ·), because
        ``Σ_i √w_i u_i = 0``.
        """
        rows = np.arange(len(stack))
        if len(rows) > _MOST_LANDMARKS:
            drawn = np.random.default_rng(0).choice(rows, _MOST_LANDMARKS, replace=False)
            rows = np.sort(drawn)
        mean = stack[np.ix_(rows, rows)].combine(self.weights(stack.n_kernels))
        weights = np.ones(len(rows)) if counts is None else counts[rows]
        weights = weights / weights.sum()
        roots, centre = np.sqrt(weights), weights @ mean
        centred = mean - centre - centre[:, None] + float(weights @ centre)
        last = len(rows) - 1
        n_wanted = max(1, min(self.n_components, last))
        values, vectors = linalg.eigh(
            roots[:, None] * centred * roots, subset_by_index=[last + 1 - n_wanted, last]
        )
        values, vectors = values[::-1], vectors[:, ::-1]
        # Compared with the kernels before centring, whose rounding error the centred ones have.
        kept = values > ACCUMULATED * float(weights @ np.abs(mean.diagonal()))
        if not kept.any():
            # One component that is the same for all: kernels cannot tell the samples apart.
            return Components(rows, np.zeros((len(rows), 1)), np.zeros(1))
        axes = roots[:, None] * vectors[:, kept] / np.sqrt(values[kept])
        # Eigenvectors have arbitrary signs. By the sign of its skewness a component is the same on
        # every computer, and if rows are repeated or in another order.
        skewness = weights @ (centred @ axes) ** 3
        axes = axes * np.where(skewness < 0.0, -1.0, 1.0)
        return Components(rows, axes, centre @ axes)

    @staticmethod
    def weights(n_kernels: int) -> Array:
        """Those of the kernels in their mean."""
        return np.full(n_kernels, 1.0 / n_kernels)


@dataclass(frozen=True)
class Components:
    """Components ``K(x, ·) @ axes − offsets`` of the mean kernel with the training `rows`."""

    rows: np.ndarray
    axes: Array
    offsets: Array
