"""Three straight lines on the motorcycle data (figure 7 of the paper): no table to hold beside.

C = 1000 and ε = 16 as there. Times are standardised and kernels left as they are: a linear
kernel of one column with unit diagonal knows nothing but the sign. All three lines share one
intercept, so that they pass through one point; the kernel ``1 + x x'`` gives each its own.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._localized_problems import AS_THE_PAPER
from benchmarks._tables import markdown
from manykernels import LocalizedSVR
from manykernels.kernels import Kernel, Linear, Polynomial

PENALTY, TUBE, N_FOLDS, N_LINES = 1000.0, 16.0, 10, 3


@dataclass(frozen=True)
class Lines:
    """A fit: mean square errors, and the intervals in which each line counts most."""

    name: str
    left_out: float
    fitted: float
    support: float
    regions: str


def measure(quick: bool) -> list[Lines]:
    """Both kernels, and one SVR with a Gaussian kernel to compare with."""
    X, y = _data.mcycle()
    if quick:
        X, y = X[::3], y[::3]
    scaler = StandardScaler().fit(X)
    table = scaler.transform(X)
    found = []
    kernels: dict[str, Kernel] = {
        "three linear kernels": Linear(),
        "three of 1 + x x'": Polynomial(1, gamma=1.0),
    }
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, kernel in kernels.items():
            lines = [(f"line{i}", kernel) for i in range(N_LINES)]
            options = {"C": PENALTY, "epsilon": TUBE, "normalize": None}
            model = LocalizedSVR(lines, gating="softmax", **options).set_params(**AS_THE_PAPER)
            found.append(_lines(name, model, table, X[:, 0], y))
    single = SVR(C=PENALTY, epsilon=TUBE, gamma=2.0)
    found.append(_lines("one SVR, Gaussian kernel", single, table, X[:, 0], y))
    return found


def _lines(name: str, model: Any, table: np.ndarray, times: np.ndarray, y: np.ndarray) -> Lines:
    folds = KFold(N_FOLDS, shuffle=True, random_state=0).split(table)
    errors = np.empty(len(y))
    for train, other in folds:
        errors[other] = model.fit(table[train], y[train]).predict(table[other]) - y[other]
    model.fit(table, y)
    return Lines(
        name=name,
        left_out=float(np.mean(errors**2)),
        fitted=float(np.mean((model.predict(table) - y) ** 2)),
        support=100.0 * len(model.support_) / len(y),
        regions=_regions(model, table, times) if hasattr(model, "gate") else "",
    )


def _regions(model: LocalizedSVR, table: np.ndarray, times: np.ndarray) -> str:
    """Where each line counts most, with the slope of the fit inside."""
    order = np.argsort(times, kind="stable")
    largest = model.gate(table)[order].argmax(axis=1)
    bounds = np.r_[0, np.flatnonzero(np.diff(largest)) + 1, len(largest)]
    fit = model.predict(table)[order]
    sorted_times = times[order]
    parts = []
    for start, end in itertools.pairwise(bounds):
        low, high = sorted_times[start], sorted_times[end - 1]
        rise = (fit[end - 1] - fit[start]) / (high - low) if high > low else 0.0
        parts.append(f"{low:g}–{high:g} ms ({rise:+.1f} g/ms)")
    return ", ".join(parts)


def table(lines: list[Lines]) -> str:
    """Markdown table."""
    header = ["fit", "MSE, left out", "MSE, fitted", "SV %", "regions (mean slope of the fit)"]
    rows = [
        [
            line.name,
            f"{line.left_out:.0f}",
            f"{line.fitted:.0f}",
            f"{line.support:.0f}",
            line.regions,
        ]
        for line in lines
    ]
    return markdown(header, rows)
