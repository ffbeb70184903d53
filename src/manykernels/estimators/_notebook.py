"""What notebooks show below the diagram of a fitted estimator: weights and certificate."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from .._tables import bar, html, shortened

# Kernels that are listed, those with the largest shares: a glance, not a report.
_LISTED = 8


def learnt_html(estimator: Any) -> str:
    """Shares of the kernels and the certificate in a line; nothing if there are no weights."""
    learnt = vars(estimator)
    names, found = (
        learnt.get("kernel_names_"),
        learnt.get("weights_", learnt.get("plain_weights_")),
    )
    if names is None or found is None or np.shape(found)[-1] != len(names):
        return ""
    weights = np.asarray(found, dtype=float)
    weights = weights.reshape(-1, weights.shape[-1])
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0.0).mean(
        axis=0
    )
    order = np.argsort(-shares, kind="stable")[:_LISTED]
    most = float(shares.max()) or 1.0
    rows = [
        [shortened(str(names[j])), f"{shares[j]:.1%}", bar(float(shares[j]) / most)] for j in order
    ]
    certificate = learnt.get("certificate_", [])
    several = certificate if isinstance(certificate, list) else [certificate]
    notes = [f"{len(names) - len(order)} more kernels."] if len(names) > len(order) else []
    notes += [str(one) for one in several[:1]]
    kind = "share of weight" if len(weights) == 1 else "mean share of weight"
    title = f"<p>{escape(type(estimator).__name__)} has learnt:</p>"
    return f"<div>{title}{html(['kernel', kind, ''], rows, notes)}</div>"
