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

from collections.abc import Callable
from dataclasses import dataclass, replace
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


def support(gains: Any, p: float, n_blocks: int = 1) -> Any:
    """σ_B of blocks of weights, ``‖β‖_p ≤ 1, β ≥ 0`` in each."""
    return sum((_norm(own, _dual(p)) for own in np.split(gains, n_blocks)), Wide(0))


def outside(weights: Any, p: float, n_blocks: int = 1) -> float:
    """How far ``‖β‖_p`` of a block is above one, and the least weight below zero."""
    weights = np.asarray(weights, dtype=Wide)
    norms = [_norm(own, p) for own in np.split(weights, n_blocks)]
    return float(max(0, max(norms) - 1, -weights.min()))


def _dual(p: float) -> Any:
    return np.inf if p == 1 else Wide(1) if p == np.inf else Wide(p) / (Wide(p) - 1)


def _norm(values: Any, exponent: Any) -> Any:
    """``‖values‖`` of their positive parts."""
    values = np.maximum(values, Wide(0))
    largest = values.max()
    if largest == 0 or exponent == np.inf:
        return largest
    return largest * np.sum((values / largest) ** exponent) ** (1 / Wide(exponent))


@dataclass(frozen=True)
class Bounds:
    """An upper bound on F at the weights, and a lower one on its minimum.

    `predicted` is the objective of what the model predicts for its training rows, if there is one.
    """

    upper: float
    lower: float
    predicted: float | None = None

    @property
    def relative_gap(self) -> float:
        if not np.isfinite(self.upper):
            return np.inf
        gap = self.upper - self.lower
        return float(gap / abs(self.upper)) if self.upper else float(gap)

    def distance(self, primal: float) -> float:
        """How far a claimed objective is from those of the model and of its predictions."""
        objectives = [self.upper] if self.predicted is None else [self.upper, self.predicted]
        off = max(abs(primal - one) for one in objectives)
        return float(off / (abs(self.upper) or 1.0))


def fisher_targets(labels: Any, mass: Any) -> Any:
    """Columns H: Yan 2012 (18), or a for two classes, with weighted class sizes."""
    sizes = np.array([mass[labels == k].sum() for k in range(labels.max() + 1)], dtype=Wide)
    if len(sizes) == 2:
        return np.where(labels == 1, 1 / sizes[1], -1 / sizes[0])[:, None]
    total = sizes.sum()
    own = labels[:, None] == np.arange(len(sizes))
    return own * np.sqrt(total / sizes) - np.sqrt(sizes / total)


@dataclass(frozen=True)
class Square:
    """The program of the square loss: see the module.

    `parts` are the matrices M_j, or, in a :class:`FeatureSquare`, roots R of ``M_j = RRᵀ``;
    `targets` are SH. In A the M_j are added to `ridge` times the identity. Where that is zero,
    `constant` (m, 1) is the unit vector that targets and parts are orthogonal to.
    """

    parts: list[Any]
    targets: Any
    ridge: float = 1.0
    constant: Any = None

    def gains(self, solution: Any) -> Any:
        return np.array([np.sum(solution * (part @ solution)) for part in self.parts])

    def bounds(self, weights: Any, p: float, witness: Any = None, n_blocks: int = 1) -> Bounds:
        """At these weights; `witness` is a U that is said to prove much, and tried as well."""
        solved = self.solved(np.asarray(weights, dtype=Wide))
        if solved is None:
            return Bounds(np.inf, -np.inf)
        solution, upper = solved
        tried = [solution] if witness is None else [solution, witness]
        return Bounds(upper, max(self._lower(one, p, n_blocks) for one in tried))

    def solved(self, weights: Any) -> tuple[Any, Any] | None:
        """U and F at some weights; None if A has no factor."""
        system = self.ridge * np.eye(len(self.targets), dtype=Wide)
        for weight, part in zip(weights, self.parts, strict=True):
            system = system + weight * part
        if self.constant is not None:
            system = system + np.trace(system) * self.constant @ self.constant.T
        solution = _solve_definite(system, self.targets)
        return None if solution is None else (solution, np.sum(self.targets * solution))

    def _lower(self, solution: Any, p: float, n_blocks: int) -> Any:
        """What U proves, scaled at its best."""
        quadratic = self.ridge * np.sum(solution**2) + support(self.gains(solution), p, n_blocks)
        return np.sum(self.targets * solution) ** 2 / quadratic


class FeatureSquare(Square):
    """The same with roots R as `parts`. A, whose entries hide the identity, is never formed.

    With ``R_β = [√β_j R_j]``, F is the least ``‖SH − R_βx‖² + ‖x‖²``, and ``U = SH − R_βx``.
    """

    def gains(self, solution: Any) -> Any:
        return np.array([np.sum((root.T @ solution) ** 2) for root in self.parts])

    def solved(self, weights: Any) -> tuple[Any, Any]:
        roots = [np.sqrt(w) * root for w, root in zip(weights, self.parts, strict=True) if w > 0]
        root = np.hstack(roots)
        system = np.vstack([root, np.eye(root.shape[1], dtype=Wide)])
        right = np.vstack([self.targets, np.zeros((root.shape[1], self.targets.shape[1]))])
        x = _least_squares(system, right)
        solution = self.targets - root @ x
        return solution, np.sum(solution**2) + np.sum(x**2)


def regression_objective(targets: Any, outputs: Any, squares: Any, reg: Any) -> Any:
    """``‖H − f‖² + λ‖f‖²`` of outputs at the samples, `squares` being the products of the f."""
    misfit = np.asarray(targets, dtype=Wide) - outputs
    return np.sum(misfit**2) + Wide(reg) * np.trace(squares)


# Predictions that are off by more than this share of an output have none of it.
_NOISE = 0.01


def regression_turn(targets: Any, outputs: Any, squares: Any, reg: Any, predicted: Any) -> Any:
    """The best linear combinations of `outputs`, of least ``‖H − f‖² + λ‖f‖²``.

    What a discriminant says are linear functions of its regression, which these restore. Outputs
    that are lost in the rounding errors of what is `predicted` are left out, which can only raise
    the objective.
    """
    lengths = np.sqrt(np.sum(outputs**2, axis=0))
    said = np.sqrt(np.sum((outputs - predicted) ** 2, axis=0)) < _NOISE * lengths
    turn = np.zeros((outputs.shape[1], targets.shape[1]), dtype=Wide)
    if not said.any():
        return turn
    lengths = lengths[said]
    outputs = outputs[:, said] / lengths
    squares = squares[np.ix_(said, said)] / lengths / lengths[:, None]
    system = outputs.T @ outputs + Wide(reg) * squares
    scaled = turn[said]
    for _ in range(3):  # refined, as the system is solved in double precision
        left = outputs.T @ targets - system @ scaled
        scaled += np.linalg.lstsq(system.astype(float), left.astype(float), rcond=1e-13)[0]
    turn[said] = scaled / lengths[:, None]
    return turn


def _least_squares(matrix: Any, right: Any) -> Any:
    """Solution of a least-squares problem of full rank by Householder reflections.

    Rows may be of very different sizes: sorted, and with columns by their length, each has errors
    relative to itself (Cox and Higham 1998).
    """
    order = np.argsort(-np.max(np.abs(matrix), axis=1), kind="stable")
    work, n_columns = np.hstack([matrix, right])[order], matrix.shape[1]
    places = np.arange(n_columns)
    for k in range(n_columns):
        pivot = k + int(np.argmax(np.sum(work[k:, k:n_columns] ** 2, axis=0)))
        work[:, [k, pivot]] = work[:, [pivot, k]]
        places[[k, pivot]] = places[[pivot, k]]
        mirror = work[k:, k].copy()
        mirror[0] += np.copysign(np.sqrt(np.sum(mirror**2)), mirror[0])
        mirror /= np.sqrt(np.sum(mirror**2))
        work[k:, k:] -= 2 * np.outer(mirror, mirror @ work[k:, k:])
    solution = np.zeros((n_columns, right.shape[1]), dtype=Wide)
    for k in range(n_columns - 1, -1, -1):
        known = work[k, k + 1 : n_columns] @ solution[places[k + 1 :]]
        solution[places[k]] = (work[k, n_columns:] - known) / work[k, k]
    return solution


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

    def objective(self, norm: Any, outputs: Any, bias: Any) -> Any:
        """P of a machine whose squared norm, outputs with bias, and bias are these."""
        slopes = self.linear - np.asarray(outputs, dtype=Wide)
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
        return norm / 2 + bias * Wide(self.total) + responses.sum()

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
    witness: Any = None,
    *,
    outputs: Any = None,
    n_blocks: int = 1,
    identity: Any = None,
) -> Bounds:
    """Of machines that share their weights; `kernels` are those of the loss.

    `outputs` (m, n_machines) are those that the model predicts. Where 1/C is learnt, its weight
    is the first one, and `identity` the diagonal of the matrix that it multiplies.
    """
    weights = np.asarray(weights, dtype=Wide)
    coefficients = np.asarray(coefficients, dtype=Wide)
    own = weights if identity is None else weights[1:]
    combined = sum(weight * kernel for weight, kernel in zip(own, kernels, strict=True))
    upper = predicted = Wide(0)
    for k, (machine, column, bias) in enumerate(zip(machines, coefficients, biases, strict=True)):
        if identity is not None:
            machine = replace(machine, ridge=weights[0] * identity)
        products = combined @ column
        upper += machine.objective(column @ products, products + bias, bias)
        if outputs is not None:
            predicted += machine.objective(column @ products, outputs[:, k], bias)
    if identity is not None:
        kernels = [np.diag(identity), *kernels]
        machines = [replace(machine, ridge=Wide(0)) for machine in machines]
    points = [coefficients] if witness is None else [coefficients, witness.T]

    def forms(v: Any) -> Any:
        return np.array([v @ (kernel @ v) for kernel in kernels])

    lower = max(machine_lower(forms, machines, one, p, n_blocks) for one in points)
    return Bounds(upper, lower, None if outputs is None else predicted)


def machine_lower(
    forms: Callable[[Any], Any], machines: list[Machine], points: Any, p: float, n_blocks: int = 1
) -> Any:
    """What points, made feasible and scaled at their best, prove of the minimum.

    `forms` are ``vᵀK_jv`` of every kernel.
    """
    linear = quadratic = gains = Wide(0)
    for machine, point in zip(machines, points, strict=True):
        v = machine.feasible(point)
        first, second = machine.unpenalised(v)
        linear, quadratic = linear + first, quadratic + second
        gains = gains + forms(v) / 2
    quadratic += support(gains, p, n_blocks)
    scale = Wide(1)
    if quadratic > 0 and all(machine.total == 0.0 for machine in machines):
        scale = np.clip(linear / (2 * quadratic), Wide(0), Wide(1))
    return scale * linear - scale**2 * quadratic
