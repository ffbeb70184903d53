"""Samples in several views, some of which are needed, and some of which are not."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from manykernels import KernelStack
from manykernels.kernels import RBF
from manykernels.solvers import Newton

KERNEL = RBF(gamma="scale")


def views_and_classes(n=60, seed=0):
    """A strong view, a weaker one that adds to it, and noise."""
    rng = np.random.default_rng(seed)
    strong, weak, noise = rng.standard_normal((3, n, 2))
    signal = 2.0 * strong[:, 0] + weak[:, 0]
    y = (signal + 0.3 * rng.standard_normal(n) > 0).astype(int)
    return {"strong": strong, "weak": weak, "noise": noise}, y


def views_and_numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    strong, weak, noise = rng.standard_normal((3, n, 2))
    y = 2.0 * strong[:, 0] + weak[:, 0] + 0.3 * rng.standard_normal(n)
    return {"strong": strong, "weak": weak, "noise": noise}, y


def stack_of(views, kernel=KERNEL):
    """Kernel matrices of all views."""
    return KernelStack.from_arrays({name: clone(kernel).fit(X)(X) for name, X in views.items()})


class CountingSolver:
    """Newton's method, counting its calls, also those by copies of the solver."""

    name = "newton"
    calls = 0

    def solve(self, loss, domain, **options):
        CountingSolver.calls += 1
        return Newton().solve(loss, domain, **options)
