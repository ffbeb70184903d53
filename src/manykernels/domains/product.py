"""Weights in blocks, each of which is bounded independently of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .base import Array, ConicForm, Domain


@dataclass(frozen=True)
class Product(Domain):
    """Blocks of weights, as many in each, every block in the domain `part`.

    With kernels of several regions these are the weights of each region (Lei et al. 2016):
    ``‖β_l‖_p ≤ 1`` for every region l. A block that has neither gains nor weights, as that of an
    empty region, gets the weights that `part` starts from.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.domains import LpBall, Product
    >>> Product(LpBall(2.0), 2).support(np.array([3.0, 4.0, 0.0, 2.0]))
    7.0
    """

    part: Domain
    n_blocks: int

    def __post_init__(self) -> None:
        if self.n_blocks < 1 or self.part.n_blocks > 1:
            raise ValueError("A product has at least one block, and its part has no blocks.")

    def _blocks(self, values: Array) -> Array:
        if len(values) % self.n_blocks:
            raise ValueError(
                f"{len(values)} weights are no {self.n_blocks} blocks of equal length."
            )
        return values.reshape(self.n_blocks, -1)

    @property
    def start_is_optimal(self) -> bool:
        return self.part.start_is_optimal

    def supports(self, gains: Array) -> Array:
        # Zero weights are in the domain, so a block whose gains are all negative supports zero.
        return np.array([max(self.part.support(own), 0.0) for own in self._blocks(gains)])

    def support(self, gains: Array) -> float:
        return float(self.supports(gains).sum())

    def maximizer(self, gains: Array) -> Array:
        return np.concatenate([self.part.maximizer(own) for own in self._blocks(gains)])

    def gauge(self, weights: Array) -> float:
        return max(self.part.gauge(own) for own in self._blocks(weights))

    def onto_boundary(self, weights: Array) -> Array:
        part = self.part
        return np.concatenate(
            [
                part.onto_boundary(own) if own.any() else part.start(len(own))
                for own in self._blocks(weights)
            ]
        )

    def start(self, n_kernels: int) -> Array:
        return np.tile(self.part.start(n_kernels // self.n_blocks), self.n_blocks)

    def equilibrium(self, strength: Array, shift: Array, level: Array) -> Array:
        blocks = zip(self._blocks(strength), self._blocks(shift), level[:, None], strict=True)
        return np.concatenate([self.part.equilibrium(*own) for own in blocks])

    def balance(self, log_strength: Array) -> Array:
        part = self.part
        return np.concatenate(
            [
                part.balance(own) if np.isfinite(own).any() else np.log(part.start(len(own)))
                for own in self._blocks(log_strength)
            ]
        )

    def settle(self, weights: Array, gains: Array) -> Array:
        return np.concatenate(
            [
                self.part.settle(own, worth) if (worth > 0.0).any() else own
                for own, worth in zip(self._blocks(weights), self._blocks(gains), strict=True)
            ]
        )

    def level_set(self, weights: Array) -> tuple[Array, Array, Array] | None:
        found = [self.part.level_set(own) for own in self._blocks(weights)]
        levels = [level for level in found if level is not None]
        if len(levels) < len(found):
            return None
        values, gradients, curvatures = (
            np.concatenate(some) for some in zip(*levels, strict=True)
        )
        return values, gradients, curvatures

    def restricted(self, kernels: NDArray[np.intp]) -> Domain:
        raise TypeError("Some of the kernels of several regions are no blocks of equal length.")

    def conic_form(self, n_kernels: int) -> ConicForm:
        # The forms of the parts side by side, with x before t, and then in the order of rows that
        # a conic form has: other inequalities, signs of x, cones.
        n = n_kernels // self.n_blocks
        form = self.part.conic_form(n)
        height, width = form.matrix.shape
        signs = form.first_sign_row + np.arange(n)
        others = np.setdiff1d(np.arange(form.n_nonnegative), signs)
        cones = np.arange(form.n_nonnegative, height)
        blocks = np.arange(self.n_blocks)[:, None]
        rows = np.concatenate([(blocks * height + own).ravel() for own in (others, signs, cones)])
        extra = np.arange(n, width)
        cols = np.concatenate([(blocks * width + own).ravel() for own in (np.arange(n), extra)])
        matrix = sparse.kron(sparse.eye(self.n_blocks), form.matrix, format="csr")[rows][:, cols]
        return ConicForm(
            matrix.tocsc(),
            np.tile(form.bound, self.n_blocks)[rows],
            self.n_blocks * form.n_nonnegative,
            self.n_blocks * len(others),
            form.power_exponents * self.n_blocks,
        )


def product_domain(part: Domain, n_blocks: int) -> Domain:
    """The domain of `n_blocks` blocks of weights, each in `part`: for one block `part` itself."""
    return part if n_blocks == 1 else Product(part, n_blocks)
