"""Derivatives by central differences, with an error bound that the function itself supplies.

A central difference of step h errs by truncation, h²f‴/6, and by rounding, about ε|f|/h. Which
step balances the two depends on f, so none is fixed: h goes down a ladder. Between two of its
rungs the difference changes by many times the truncation error of the lower one, h²f‴/6·(8² − 1),
or, where the steps are too small, by the rounding errors themselves; either way that change
tells the error of the lower rung. The rung with the smallest bound is taken.
"""

from __future__ import annotations

import numpy as np

_RATIO, _N_STEPS, _N_ROUNDING = 8.0, 7, 2
# Of the largest claimed entry: the rounding error that a claim itself may have, and the error
# bound from which on differences tell a right claim from a wrong one no more. Of f: the error
# bound that is as good as differences get.
_CLAIM_ROUNDING, _TELLING, _INVISIBLE = 1e-9, 1e-3, 1e-8


def derivative(f, x, direction, reach=1e-2):
    """Derivative of f (a number or an array) at x along a direction, and a bound of its error.

    No step is longer than `reach`.
    """
    x, direction = np.asarray(x, dtype=float), np.asarray(direction, dtype=float)
    steps = reach * _RATIO ** -np.arange(_N_STEPS)
    ahead, behind = (np.array([f(x + s * direction) for s in sign * steps]) for sign in (1, -1))
    steps = steps.reshape(-1, *(1,) * (ahead.ndim - 1))
    slopes = (ahead - behind) / (2 * steps)
    changes = np.abs(np.diff(slopes, axis=0))
    # Truncation may cancel on one rung by accident, hardly on two.
    truncation = np.maximum(changes[1:], changes[:-1] / _RATIO**2)
    # Rounding errors have no such order; they are read off the last rungs, where they prevail.
    # At the least f and its argument, x + h, are rounded.
    sizes = np.maximum(np.abs(ahead), np.abs(behind)) + np.abs(slopes) * np.abs(x).max()
    unit = 2 * np.finfo(float).eps * sizes.max(axis=0)
    rounding = np.maximum(unit, (changes * steps[1:])[-_N_ROUNDING:].max(axis=0))
    errors = truncation + rounding / steps[2:]
    best = np.argmin(errors, axis=0)[None]
    return tuple(np.take_along_axis(part, best, axis=0)[0] for part in (slopes[2:], errors))


def assert_derivatives(claimed, f, x, reach=1e-2):
    """Compare `claimed[j]` with the derivative of f along the j-th coordinate of x.

    The tolerance is the error bound of the difference. It has to be small against the largest
    entry claimed, or against f, by whose rounding smaller slopes are hidden: a test that no wrong
    claim would fail is an error too.
    """
    claimed, x = np.asarray(claimed, dtype=float), np.asarray(x, dtype=float)
    found = [derivative(f, x, unit, reach) for unit in np.eye(len(x))]
    slopes, errors = (np.array(part) for part in zip(*found, strict=True))
    assert slopes.shape == claimed.shape, f"{claimed.shape} claimed, {slopes.shape} found"
    size = np.abs(claimed).max()
    assert errors.max() <= max(_TELLING * size, _INVISIBLE * np.abs(f(x)).max()), (
        f"differences are known up to {errors.max():.1e} only, the claim has size {size:.1e}"
    )
    wrong = np.abs(slopes - claimed) - errors - _CLAIM_ROUNDING * size
    worst = np.unravel_index(np.argmax(wrong), wrong.shape)
    assert wrong[worst] <= 0.0, (
        f"entry {worst}: {claimed[worst]} claimed, {slopes[worst]} ± {errors[worst]:.1e} found"
    )
