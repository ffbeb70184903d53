"""The program of a support vector machine, all but its kernel, and what a point of it proves.

:mod:`manykernels.smo.box` has the maths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .face import Array, Indices

_SHORT = 0.1
_SNAP = 1e-13
_ROUNDING = 1e-15
_EQUAL = 1e-13
# What is spread is rounded, by as much as v itself where little of v is left: it is spread again.
_PASSES = 3


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
        """P at the best b, of v or of a multiple of it.

        A margin that is ε short costs Cε, but growing all of them by that share costs only as
        much of ``½v·f``: a great difference where C is large.
        """
        up, down = self.slopes(v, f)
        size = float(np.abs(self.linear).max(initial=0.0))
        short = float(up.max() - down.min()) / size if size else 0.0
        multiples = [1.0, 1.0 + short] if 0.0 < short < _SHORT else [1.0]
        return min(self._bound(v, f, t) for t in multiples)

    def _bound(self, v: Array, f: Array, t: float) -> float:
        """P of the machine ``t v`` at the best b."""
        from ._loops import best_shift, upper_bound

        rest = (self.ridge, self.lower, self.upper, self.width, self.total)
        slopes = self.linear - t * f
        b = best_shift(slopes, *rest)
        return float(upper_bound(slopes, *rest, b)) + 0.5 * t**2 * float(v @ f)

    def slopes(self, v: Array, f: Array) -> tuple[Array, Array]:
        """up and down."""
        from ._loops import set_slopes

        up, down = np.empty(len(v)), np.empty(len(v))
        slopes = self.linear - f - self.ridge * v
        set_slopes(slopes, v, self.lower, self.upper, self.width, up, down)
        return up, down

    def solution(self, v: Array, f: Array, n_steps: int = 0, largest: float = 0.0) -> BoxSolution:
        """What v is worth, with ``f = Kv`` and the largest entry of K."""
        up, down = self.slopes(v, f)
        return BoxSolution(
            v=v,
            product=f,
            bias=self.bias(v, up, down),
            primal=self.bound(v, f),
            dual=self.value(v, f),
            violation=float(up.max() - down.min()),
            n_steps=n_steps,
            rounding=rounding(v, largest),
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
    primal, dual : float
        Upper and lower bound on the maximum.
    violation : float
        Largest up less smallest down.
    n_steps : int
        Pair steps taken.
    rounding : float
        What ``½vᵀKv`` cannot tell from zero.
    scaled : bool
        Whether c is not zero.
    """

    v: Array
    product: Array
    bias: float
    primal: float
    dual: float
    violation: float
    n_steps: int
    rounding: float
    scaled: bool

    @property
    def gap(self) -> float:
        """``primal − dual``."""
        return self.primal - self.dual


def rounding(v: Array, largest: float) -> float:
    """What ``½vᵀKv`` cannot tell from zero, for entries of K up to `largest`."""
    return _ROUNDING * largest * float(np.abs(v).sum()) ** 2
