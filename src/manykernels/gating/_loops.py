"""Compiled sums of gated kernels."""

from __future__ import annotations

from typing import Any

from .._compiled import compiled


@compiled(fastmath={"reassoc", "contract", "nsz"})
def add_gated(kernel: Any, gate: Any, out: Any) -> None:
    """``out += diag(gate) kernel diag(gate)``; rows where the gate is 0 are skipped."""
    n = len(gate)
    for i in range(n):
        if gate[i] == 0.0:
            continue
        row, target, own = kernel[i], out[i], gate[i]
        for j in range(n):
            target[j] += own * gate[j] * row[j]
