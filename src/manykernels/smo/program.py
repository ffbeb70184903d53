"""The program of a support vector machine, all but its kernel, and what a point of it proves.

:mod:`manykernels.smo.box` has the maths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .face import Array, Indices

_SHORT = 0.1
_SNAP = 1e-13
_ROUNDING = 1e-15
_EQUAL = 1e-13
# What is spread is rounded, by as much as v itself where little of v is left: it is spread again.
_PASSES = 3
# Share of a gap, and of an objective, by which a machine may be worse than the best known.
_CLEARLY = 0.1
_SAME = 1e-10


@dataclass(frozen=True)
class BoxProblem:
    """All of the program but K; see the module.

    Parameters
    ----------
    linear : ndarray of shape (m,)
        c.
    lower, upper : ndarray of shape (m,)
        ``l ≤ 0 ≤ u``, infinite where r is positive only.
    ridge : ndarray of shape (m,), optional
        r ≥ 0, by default zero.
    width : float, default=0.0
        e.
    total : float, default=0.0
        s.
    """

    linear: Array
    lower: Array
    upper: Array
    ridge: Array
    width: float = 0.0
    total: float = 0.0

    def feasible(self, v: Array) -> Array:
        """A feasible point that is `v` where that is one, and close to it where it is not."""
        if (v < self.lower).any() or (v > self.upper).any():
            v = np.clip(v, self.lower, self.upper)
        for _ in range(_PASSES):
            missing = self.total - float(v.sum())
            if abs(missing) <= _EQUAL * max(abs(self.total), float(np.abs(v).sum())):
                # Rounding; moving a variable off its bound for it would be worse.
                break
            v = self._spread(v, missing)
        return v

    def _spread(self, v: Array, missing: float) -> Array:
        """`v` with as much more in all as is missing, up to rounding of that."""
        # Spread over the variables with room, in their order, those at a bound last.
        end, side = (self.upper, 1.0) if missing > 0 else (self.lower, -1.0)
        room = side * (end - v)
        order = np.argsort((v <= self.lower) | (v >= self.upper), kind="stable")
        share = np.empty(len(v))
        before = np.concatenate([[0.0], np.cumsum(room[order])[:-1]])
        share[order] = np.clip(abs(missing) - before, 0.0, room[order])
        # Rounding must not carry a variable beyond its bound, nor leave it just short of it.
        return np.where(share < room, np.clip(v + side * share, self.lower, self.upper), end)

    def snapped(self, v: Array) -> Array:
        """`v` with the variables that are off a bound, or off the kink, by rounding put there.

        A variable that can move both ways has a say in the bias, whatever the room it has.
        """
        reach = _SNAP * np.minimum(self.upper - self.lower, np.abs(v).max(initial=0.0))
        snapped = np.where(np.abs(v - self.upper) <= reach, self.upper, v)
        snapped = np.where(np.abs(v - self.lower) <= reach, self.lower, snapped)
        if self.width > 0.0:
            snapped = np.where(np.abs(v) <= reach, 0.0, snapped)
        return snapped if (snapped != v).any() else v

    def restricted(self, rows: Indices, v: Array, slopes: Array) -> BoxProblem:
        """The program of some of the variables, the others held where they are in `v`.

        `slopes` are ``c − K v`` at those rows without what they add to themselves.
        """
        return replace(
            self,
            linear=slopes,
            lower=self.lower[rows],
            upper=self.upper[rows],
            ridge=self.ridge[rows],
            # Not s less the others, whose rounding would be taken for something to move.
            total=float(v[rows].sum()),
        )

    def value(self, v: Array, f: Array) -> float:
        """D, with ``f = Kv``."""
        linear = float(self.linear @ v) - self.width * float(np.abs(v).sum())
        return linear - 0.5 * float(v @ f) - 0.5 * float(self.ridge @ (v * v))

    def bound(self, v: Array, f: Array) -> float:
        """P of the machine that v stands for."""
        return self.machine(v, f, *self.slopes(v, f))[0]

    def machine(self, v: Array, f: Array, up: Array, down: Array) -> tuple[float, float, float]:
        """P, t and b of the machine ``t v`` that v stands for.

        That is v itself with the bias on which its free variables agree, unless its P is clearly
        above what the best b or a multiple of v attain; `up` and `down` are its slopes.
        """
        found = self._best_machines(v, f, up, down)
        least = min(found)[0]
        allowed = least + _CLEARLY * max(least - self.value(v, f), 0.0) + _SAME * abs(least)
        own = self._machine(v, f, 1.0, self.bias(v, up, down))
        return next(machine for machine in (own, *found) if machine[0] <= allowed)

    def _best_machines(
        self, v: Array, f: Array, up: Array, down: Array
    ) -> list[tuple[float, float, float]]:
        """P, t and the best b of v and of the multiple that lacks no margin.

        A margin that is ε short costs Cε, but growing all of them by that share costs only as
        much of ``½v·f``: a great difference where C is large.
        """
        from ._loops import best_shift

        size = float(np.abs(self.linear).max(initial=0.0))
        short = float(up.max() - down.min()) / size if size else 0.0
        multiples = [1.0, 1.0 + short] if 0.0 < short < _SHORT else [1.0]
        rest = (self.ridge, self.lower, self.upper, self.width, self.total)
        return [
            self._machine(v, f, t, float(best_shift(self.linear - t * f, *rest)))
            for t in multiples
        ]

    def _machine(self, v: Array, f: Array, t: float, b: float) -> tuple[float, float, float]:
        """P of the machine ``t v`` with bias b, then t and b."""
        from ._loops import upper_bound

        rest = (self.ridge, self.lower, self.upper, self.width, self.total)
        loss = float(upper_bound(self.linear - t * f, *rest, b))
        return loss + 0.5 * t**2 * float(v @ f), t, b

    @cached_property
    def ceiling(self) -> float:
        """What D of variables without bounds cannot be above if K is PSD, or else it has none.

        P of the machine zero without bias; infinite where bounds keep D finite.
        """
        zeros = np.zeros(len(self.linear))
        if np.isfinite(self.upper - self.lower).all():
            return np.inf
        return self._machine(zeros, zeros, 1.0, 0.0)[0]

    def reach(self, v: Array) -> Array:
        """What an error of ``f_i`` costs at most: the slope of the loss beside its kink.

        That is the bound of a variable that is not zero, and the variable where it has none.
        """
        ends = np.maximum(-self.lower, self.upper)
        return np.where(v != 0.0, np.where(np.isfinite(ends), ends, np.abs(v)), 0.0)

    def slopes(self, v: Array, f: Array) -> tuple[Array, Array]:
        """up and down."""
        from ._loops import set_slopes

        up, down = np.empty(len(v)), np.empty(len(v))
        slopes = self.linear - f - self.ridge * v
        set_slopes(slopes, v, self.lower, self.upper, self.width, up, down)
        return up, down

    def solution(self, v: Array, f: Array, n_steps: int = 0) -> BoxSolution:
        """What v is worth, with ``f = Kv``."""
        up, down = self.slopes(v, f)
        primal, scale, bias = self.machine(v, f, up, down)
        reach = self.reach(v)
        terms = np.abs(self.linear) + np.abs(f) + abs(bias)
        return BoxSolution(
            v=v,
            product=f,
            bias=bias,
            scale=scale,
            primal=primal,
            dual=self.value(v, f),
            violation=float(up.max() - down.min()),
            n_steps=n_steps,
            reach=reach,
            rounding=float(np.finfo(float).eps * (reach @ terms)),
            scaled=bool(self.linear.any()),
        )

    def bias(self, v: Array, up: Array, down: Array) -> float:
        """b: where all free variables agree, or the middle of what the others allow."""
        from ._loops import BLOCKED

        free = self.free(v)
        if free.any():
            return float(0.5 * (up[free] + down[free]).mean())
        low, high = float(up.max()), float(down.min())
        known = [end for end in (low, high) if abs(end) < 0.5 * BLOCKED]
        return sum(known) / len(known) if known else 0.0

    def free(self, v: Array) -> NDArray[np.bool_]:
        """Variables that can move both ways at one slope."""
        inside = (v > self.lower) & (v < self.upper)
        return inside & (v != 0.0) if self.width else inside


@dataclass(frozen=True)
class BoxSolution:
    """A feasible v, the bias, and the proof.

    Attributes
    ----------
    v : ndarray of shape (m,)
    product : ndarray of shape (m,)
        Kv.
    bias : float
    scale : float
        t: the machine has the coefficients ``t v``.
    primal, dual : float
        Upper and lower bound on the maximum: P of the machine, and D of v.
    violation : float
        Largest up less smallest down.
    n_steps : int
        Pair steps taken.
    reach : ndarray of shape (m,)
        What errors of ``f_i`` cost at most.
    rounding : float
        Rounding error of the sums over samples.
    scaled : bool
        Whether c is not zero.
    """

    v: Array
    product: Array
    bias: float
    scale: float
    primal: float
    dual: float
    violation: float
    n_steps: int
    reach: Array
    rounding: float
    scaled: bool

    @property
    def gap(self) -> float:
        """``primal − dual``."""
        return self.primal - self.dual


def rounding(v: Array, largest: float) -> float:
    """What ``½vᵀKv`` cannot tell from zero, for entries of K up to `largest`."""
    return _ROUNDING * largest * float(np.abs(v).sum()) ** 2
