"""Duality gaps recomputed from kernels and a returned model, in extended precision.

Nothing here uses the losses, solvers or certificates of the package. In the notation of the
package: kernels K_j, weights β in B, ``K_β = Σ_j β_j K_j``.

Fisher discriminant, S the roots of the sample weights, ``M_j = S K_j S/λ``:

    A = I + M_β,  U = A⁻¹SH,  F(β) = tr(HᵀSU),  g_j = tr(UᵀM_jU)
    min_B F ≥ 2 tr(HᵀSU) − tr(UᵀU) − σ_B(g)

Support vector machines, a the coefficients and b the intercept that were returned, f = K_β a:

    F(β) ≤ P = ½ a·f + b s + Σ_i max_{l ≤ v ≤ u} {(c_i − f_i − b) v − e|v|}
    min_B F ≥ c·v − e Σ|v_i| − σ_B(g),   g_j = ½ vᵀK_jv     for every feasible v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Wide = np.longdouble


def centred(matrix: Any, mass: Any) -> tuple[Any, Any]:
    """A kernel centred with these sample weights, and what was taken away: o_i + o_l."""
    shares = mass / mass.sum()
    taken = np.zeros(len(matrix), dtype=Wide)
    for _ in range(2):  # the second time what rounding has left of large offsets
        means = matrix @ shares
        offset = means - (means @ shares) / 2
        matrix, taken = matrix - offset - offset[:, None], taken + offset
    return matrix, taken


def support(gains: Any, p: float) -> Any:
    """σ_B of the ball ``‖β‖_p ≤ 1, β ≥ 0``."""
    gains = np.maximum(gains, Wide(0))
    largest = gains.max()
    if largest == 0 or p == 1:
        return largest
    if p == np.inf:
        return gains.sum()
    q = Wide(p) / (Wide(p) - 1)
    return largest * np.sum((gains / largest) ** q) ** (1 / q)


@dataclass(frozen=True)
class Bounds:
    """An upper bound on F at the weights, and a lower one on its minimum."""

    upper: float
    lower: float

    @property
    def relative_gap(self) -> float:
        if not np.isfinite(self.upper):
            return np.inf
        gap = self.upper - self.lower
        return float(gap / abs(self.upper)) if self.upper else float(gap)


def fisher_targets(labels: Any, mass: Any) -> Any:
    """Columns H: Yan 2012 (18), or a for two classes, with weighted class sizes."""
    sizes = np.array([mass[labels == k].sum() for k in range(labels.max() + 1)], dtype=Wide)
    if len(sizes) == 2:
        return np.where(labels == 1, 1 / sizes[1], -1 / sizes[0])[:, None]
    total = sizes.sum()
    own = labels[:, None] == np.arange(len(sizes))
    return own * np.sqrt(total / sizes) - np.sqrt(sizes / total)


def fisher_bounds(
    kernels: list[Any],
    labels: Any,
    mass: Any,
    reg: float,
    weights: Any,
    p: float,
    witness: Any,
) -> Bounds:
    """Of a Fisher discriminant at its weights; `kernels` as normalised, not centred.

    Here and below `witness` is a dual point that is said to prove much; it is tried as well.
    """
    roots = np.sqrt(np.asarray(mass, dtype=Wide))[:, None]
    parts = [roots * centred(kernel, mass)[0] * roots.T / Wide(reg) for kernel in kernels]
    witness = None if witness is None else witness.astype(Wide) / roots

    def gains(solution: Any) -> Any:
        return np.array([np.sum(solution * (part @ solution)) for part in parts])

    return _square_bounds(parts, gains, roots * fisher_targets(labels, mass), weights, p, witness)


def feature_bounds(
    features: list[Any],
    labels: Any,
    mass: Any,
    reg: float,
    weights: Any,
    p: float,
    coefficients: Any,
) -> Bounds:
    """Of a Fisher discriminant on the centred and normalised features Z_j of every kernel.

    Gains are ``g_j = ‖Z_jᵀU‖²/λ``, a square that rounding cannot make negative. The witness is
    ``U = H − ZV`` with the coefficients V that the model gives.
    """
    roots = np.sqrt(np.asarray(mass, dtype=Wide))[:, None]
    features = [roots * own / np.sqrt(Wide(reg)) for own in features]
    targets = roots * fisher_targets(labels, mass)
    outputs = np.hstack(features) @ coefficients.astype(Wide) * np.sqrt(Wide(reg))

    def gains(solution: Any) -> Any:
        return np.array([np.sum((own.T @ solution) ** 2) for own in features])

    parts = [own @ own.T for own in features]
    return _square_bounds(parts, gains, targets, weights, p, targets - outputs)


def _square_bounds(
    parts: list[Any], gains: Any, targets: Any, weights: Any, p: float, witness: Any
) -> Bounds:
    """Of the square loss with the matrices M_j; the function `gains` computes the g_j of any U."""
    system = np.eye(len(targets), dtype=Wide)
    for weight, part in zip(np.asarray(weights, dtype=Wide), parts, strict=True):
        system = system + weight * part
    solution = _solve_definite(system, targets)
    if solution is None:
        return Bounds(np.inf, -np.inf)
    upper = np.sum(targets * solution)
    tried = [solution] if witness is None else [solution, witness]
    return Bounds(upper, max(_fisher_lower(gains(one), targets, one, p) for one in tried))


def _fisher_lower(gains: Any, targets: Any, solution: Any, p: float) -> Any:
    """What U proves, scaled at its best."""
    quadratic = np.sum(solution**2) + support(gains, p)
    return np.sum(targets * solution) ** 2 / quadratic


def _solve_definite(matrix: Any, right: Any) -> Any:
    """Solution by a Cholesky factorisation, refined once; None if there is no factor."""
    size = len(matrix)
    factor = np.zeros_like(matrix)
    for k in range(size):
        column = matrix[k:, k] - factor[k:, :k] @ factor[k, :k]
        if not column[0] > 0:
            return None
        factor[k:, k] = column / np.sqrt(column[0])

    def solved(columns: Any) -> Any:
        out = np.array(columns)
        for k in range(size):
            out[k] = (out[k] - factor[k, :k] @ out[:k]) / factor[k, k]
        for k in range(size - 1, -1, -1):
            out[k] = (out[k] - factor[k + 1 :, k] @ out[k + 1 :]) / factor[k, k]
        return out

    first = solved(right)
    return first + solved(right - matrix @ first)


@dataclass(frozen=True)
class Machine:
    """The program of one support vector machine: see the module."""

    linear: Any
    lower: Any
    upper: Any
    width: float = 0.0
    total: float = 0.0
    ridge: Any = 0.0

    def primal(self, coefficients: Any, products: Any, bias: Any) -> Any:
        """P of the returned machine."""
        slopes = self.linear - products - bias
        if np.any(self.ridge):
            best = np.clip(slopes / self.ridge, self.lower, self.upper)
            responses = slopes * best - self.ridge * best**2 / 2
        else:
            at_ends = (
                slopes * self.upper - self.width * np.abs(self.upper),
                slopes * self.lower - self.width * np.abs(self.lower),
            )
            responses = np.maximum(*at_ends)
            inside = (self.lower <= 0) & (self.upper >= 0)
            responses = np.where(inside, np.maximum(responses, 0), responses)
        norm = coefficients @ products / 2
        return norm + bias * Wide(self.total) + responses.sum()

    def feasible(self, coefficients: Any) -> Any:
        """A feasible point that is the coefficients, or close to them."""
        v = np.array(coefficients, dtype=Wide)
        if self.total == 0.0:
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = np.where(v > 0, v / self.upper, v / self.lower)
            v = v / max(Wide(1), np.max(np.where(v != 0, excess, 0)))
        v = np.clip(v, self.lower, self.upper)
        for _ in range(3):
            missing = Wide(self.total) - v.sum()
            room = (self.upper - v) if missing > 0 else (v - self.lower)
            room = np.where(np.isfinite(room), room, np.abs(missing))
            free = np.where((v > self.lower) & (v < self.upper), room, 0)
            room = free if free.sum() >= abs(missing) else room
            if missing == 0 or not room.sum() > 0:
                break
            v = np.clip(v + missing * room / room.sum(), self.lower, self.upper)
        return v

    def unpenalised(self, v: Any) -> tuple[Any, Any]:
        """The terms of D that are linear and quadratic in v, without kernels."""
        linear = self.linear @ v - self.width * np.abs(v).sum()
        return linear, np.sum(self.ridge * v**2) / 2


def machine_bounds(
    kernels: list[Any],
    machines: list[Machine],
    coefficients: Any,
    biases: Any,
    weights: Any,
    p: float,
    witness: Any,
) -> Bounds:
    """Of machines that share their weights; `kernels` are those of the loss."""
    weights = np.asarray(weights, dtype=Wide)
    coefficients = np.asarray(coefficients, dtype=Wide)
    combined = sum(weight * kernel for weight, kernel in zip(weights, kernels, strict=True))
    upper = Wide(0)
    for machine, column, bias in zip(machines, coefficients, biases, strict=True):
        upper += machine.primal(column, combined @ column, bias)
    lower = _machine_lower(kernels, machines, coefficients, p)
    if witness is not None:
        lower = max(lower, _machine_lower(kernels, machines, witness.T, p))
    return Bounds(upper, lower)


def _machine_lower(kernels: list[Any], machines: list[Machine], points: Any, p: float) -> Any:
    """What points, made feasible and scaled at their best, prove of the minimum."""
    linear = quadratic = Wide(0)
    gains = np.zeros(len(kernels), dtype=Wide)
    for machine, point in zip(machines, points, strict=True):
        v = machine.feasible(point)
        first, second = machine.unpenalised(v)
        linear, quadratic = linear + first, quadratic + second
        gains += np.array([v @ (kernel @ v) / 2 for kernel in kernels])
    quadratic += support(gains, p)
    scale = Wide(1)
    if quadratic > 0 and all(machine.total == 0.0 for machine in machines):
        scale = np.clip(linear / (2 * quadratic), Wide(0), Wide(1))
    return scale * linear - scale**2 * quadratic
