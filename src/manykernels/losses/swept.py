"""A loss of kernels that are computed when they are needed, all of them in one sweep.

Where few kernels have a weight, F and its inner solution α need only these. All kernels are needed
for the gains,

    g_j(α) ,   j = 1 … n        (½ Σ_k v_kᵀM_jv_k in the letters of :mod:`.program`)

a number per kernel. A sweep computes the kernels block by block, takes the gains of a block, and
drops it: no more than one block per thread is in memory, whatever n is. Since a sweep costs much
more than the gains at one α, those at several are taken in the same one (:meth:`Loss.foresee`) and
kept for a while.

The loss of a block, and that of the kernels with a weight, is the plain one on a stack in memory.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .base import Array, DualPoint, Evaluation, Indices, Loss, Outline

if TYPE_CHECKING:
    from .workspace import WorkspaceLoss

# Dual variables whose gains are kept: those of the last rounds, one of which proves the best bound
# and is asked for again at the end. Two numbers per kernel each.
_KEPT = 6


class SweptLoss(Loss):
    """The loss `whole`, whose kernels are computed on demand.

    Attributes
    ----------
    n_sweeps : int
        How often all kernels were computed.
    """

    def __init__(self, whole: WorkspaceLoss) -> None:
        self.whole = whole
        self.learns_reg = whole.learns_reg  # type: ignore[misc]
        self.n_sweeps = 0
        self._foreseen: list[Array] = []
        self._known: dict[bytes, tuple[Array, Array]] = {}

    @property
    def outline(self) -> Outline:
        return self.whole.outline

    def evaluate(self, weights: Array) -> Evaluation:
        """Solve the inner problem of the kernels with a weight; gains follow when asked for."""
        held = np.flatnonzero(weights)
        if self.learns_reg:
            held = np.union1d(held, [0])
        found: Any = SweptEvaluation(self, held, self.restricted(held).evaluate(weights[held]))
        return cast("Evaluation", found)

    def within(self, gauge: Any) -> SweptLoss:
        part = copy(self)
        part.whole = self.whole.within(gauge)  # type: ignore[assignment]
        return part

    def note(self, evaluation: Any) -> str:
        return self.whole.note(evaluation)

    def foresee(self, dual: Array) -> None:
        self._foreseen.append(dual)

    def gains_at(self, dual: Array) -> Array:
        return self.swept(dual)[0]

    def swept(self, dual: Array) -> tuple[Array, Array]:
        """Gains of all kernels at some dual variables, and their rounding errors."""
        if dual.tobytes() not in self._known:
            duals = {one.tobytes(): one for one in (dual, *self._foreseen)}
            self._foreseen = []
            found = self._sweep(list(duals.values()))
            self._known.update(zip(duals, found, strict=True))
            for old in list(self._known)[:-_KEPT]:
                del self._known[old]
        return self._known[dual.tobytes()]

    def _sweep(self, duals: list[Array]) -> list[tuple[Array, Array]]:
        found = [(np.empty(self.n_kernels), np.empty(self.n_kernels)) for _ in duals]

        def visit(kernels: Any, positions: Indices) -> None:
            part: Any = self.whole.of_kernels(kernels)
            for dual, (gains, errors) in zip(duals, found, strict=True):
                gains[positions] = part.gains_at(dual)
                errors[positions] = part.gain_errors_at(dual)

        kernels: Any = self.whole.kernels
        kernels.visit(visit)
        self.n_sweeps += 1
        return found

    def dual_point(self, dual: Array) -> DualPoint:
        # All but the gains does not depend on the kernels.
        point = self.restricted(np.arange(1 + self.learns_reg)).dual_point(dual)
        return DualPoint(point.linear, point.quadratic, self.gains_at(dual), point.longest)

    def restricted(self, kernels: Indices) -> Loss:
        return self.whole.restricted(kernels)

    def kernel(self, which: int) -> Array:
        return self.whole.kernel(which)

    def regularization(self, weights: Array) -> float | None:
        return self.whole.regularization(weights)


class SweptEvaluation:
    """A loss at weights of which only those of the kernels `held` are not zero.

    All but weights and gains is that of `inner`, the evaluation of these kernels alone. It has
    derivatives with respect to their weights; those of all would be a matrix of all kernels.
    """

    def __init__(self, loss: SweptLoss, held: Indices, inner: Evaluation) -> None:
        self._loss, self.held, self.inner = loss, held, inner
        self.weights = np.zeros(loss.n_kernels)
        self.weights[held] = inner.weights
        self._swept: tuple[Array, Array] | None = None

    @property
    def gains(self) -> Array:
        return self._found[0]

    @property
    def gain_errors(self) -> Array:
        return self._found[1]

    @property
    def _found(self) -> tuple[Array, Array]:
        """Gains and their errors, found by a sweep when they are first asked for."""
        if self._swept is None:
            self._swept = self._loss.swept(self.inner.dual)
        return self._swept

    def reassessed(self) -> SweptEvaluation:
        """Itself: gains are computed from the kernels, never updated."""
        return self

    def sensitivity(self, kernels: Indices) -> Any:
        """As that of the square loss, of some of the kernels `held`."""
        inner: Any = self.inner
        return inner.sensitivity(np.searchsorted(self.held, kernels))

    def hessian(self) -> Array:
        raise TypeError("A loss of kernels on demand has no Hessian: use its restriction to some.")

    model_hessian = hessian

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)  # while it is being unpickled
        return getattr(self.inner, name)
