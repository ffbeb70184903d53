"""A dozen samples, for tests of what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd

from manykernels import KernelStack

N_ROWS = 12
rng = np.random.default_rng(0)
X = rng.normal(size=(N_ROWS, 3))
Y = np.arange(N_ROWS) % 2
GRAM = X @ X.T
BLOCK = rng.normal(size=(4, 3)) @ X.T
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def layers(*matrices):
    return np.stack(matrices, axis=-1)


def on_table(entry, data=X, kernels=None, y=Y, **params):
    return entry.make(kernels, **params).fit(data, entry.targets(y))


def on_kernels(entry, data, y=Y, sample_weight=None, **params):
    """A fit to ready-made kernels."""
    return entry.make("precomputed", **params).fit(data, entry.targets(y), sample_weight)


def in_form(entry, form, y=Y, sample_weight=None):
    """A fit to a table, a kernel matrix or a stack."""
    if form == "table":
        return entry.make().fit(X, entry.targets(y), sample_weight)
    data = {"matrix": GRAM, "stack": KernelStack.from_arrays(GRAM)}[form]
    return on_kernels(entry, data, y, sample_weight)
