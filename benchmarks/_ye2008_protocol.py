"""What the benchmarks beside Ye, Ji and Chen (2008) share: the discriminant, and one timed fit."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from manykernels import MKFDA, KernelStack

#: λ where it is given, and the tolerance at which SILP stops.
REG = 5e-4
EPS = 5e-4


def fda(reg: float | str, solver: Any) -> MKFDA:
    """The discriminant of the paper, on ready kernels."""
    return MKFDA("precomputed", p=1, normalize="trace", reg=reg, solver=solver)


@dataclass(frozen=True)
class Fit:
    """One method on one split."""

    accuracy: float
    weights: np.ndarray
    reg: float
    seconds: float
    rel_gap: float
    converged: bool
    n_train: int


def fitted(
    model: Any, stack: KernelStack, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> Fit:
    """Fit to some rows, and judge by others; seconds are those of the processor, one thread."""
    kernels, test_kernels = stack[np.ix_(train, train)], stack[np.ix_(test, train)]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted in the tables
        begin = time.process_time()
        model.fit(kernels, y[train])
        seconds = time.process_time() - begin
        accuracy = model.score(test_kernels, y[test])
    return Fit(
        accuracy=accuracy,
        weights=model.weights_ / model.weights_.sum(),
        reg=getattr(model, "reg_", np.nan),
        seconds=seconds,
        rel_gap=model.certificate_.rel_gap,
        converged=model.certificate_.converged,
        n_train=len(train),
    )


def accuracy(fits: list[Fit]) -> tuple[float, float]:
    """Mean and standard deviation over splits, in per cent."""
    values = [100 * fit.accuracy for fit in fits]
    return float(np.mean(values)), float(np.std(values))


def shown(parts: Iterable[Any], title: str, n_parts: int) -> Iterator[Any]:
    """The same, with a line of progress for each."""
    begin = time.perf_counter()
    for i, part in enumerate(parts, 1):
        seconds = time.perf_counter() - begin
        print(f"{title}: split {i} of {n_parts}, {seconds:.0f} s", file=sys.stderr, flush=True)
        yield part


def size(value: float) -> str:
    """A small number, for a table."""
    return f"{value:.1e}" if value else "0"


def share(value: float) -> str:
    """A weight of a kernel, for a table."""
    return f"{value:.3f}" if value >= 5e-4 else "0"
