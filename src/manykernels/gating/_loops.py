"""Compiled sums over gated kernels.

`kernels` are (P, m, m) and symmetric, `gates` are the outputs of the gate by kernel, (P, m).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import compiled

_FAST = {"reassoc", "contract", "nsz"}


@compiled(fastmath=_FAST)
def fill_rows(kernels: Any, gates: Any, rows: Any, out: Any) -> None:
    """`rows` of ``Σ_p diag(gate_p) K_p diag(gate_p)``, into those of `out`.

    Kernel by kernel, so that neighbouring rows are read one after the other. A row is not read
    where the gate is 0.
    """
    n_kernels, n = gates.shape
    for i in rows:
        out[i] = 0.0
    for p in range(n_kernels):
        gate = gates[p]
        for i in rows:
            row, target, own = kernels[p, i], out[i], gate[i]
            if own != 0.0:
                for j in range(n):
                    target[j] += own * gate[j] * row[j]


@compiled(fastmath=_FAST)
def weighted_sums(kernels: Any, gates: Any, weights: Any, rows: Any, out: Any) -> None:
    """``out[a, p] = Σ_b weights[a, b] K_p[rows[a], rows[b]] gate_p[rows[b]]``.

    `weights` is symmetric, so that half of all pairs are enough. If `rows` are all, in their
    order, rows of kernels are read as they are.
    """
    n_kernels, n = len(gates), len(rows)
    gate, sums, gathered = np.empty(n), np.empty(n), np.empty(n)
    for p in range(n_kernels):
        for a in range(n):
            gate[a] = gates[p, rows[a]]
            sums[a] = 0.0
        for a in range(n):
            row = kernels[p, rows[a]]
            if n < len(row):
                for b in range(a + 1):
                    gathered[b] = row[rows[b]]
                row = gathered
            pairs, own, total = weights[a], gate[a], 0.0
            for b in range(a):
                value = row[b] * pairs[b]
                total += value * gate[b]
                sums[b] += value * own
            sums[a] += total + row[a] * pairs[a] * own
        out[:, p] = sums
