"""The protocol of Gönen and Alpaydın (2013), section 3.

C (and ε) with the lowest mean cost on the validation parts of all folds; the models of that
choice, one per fold, are judged on the test samples. A tie goes to the smaller value.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._localized_problems import Draw, Method, Problem
from manykernels import KernelStack


@dataclass(frozen=True)
class Fit:
    """One model: costs on validation and test samples, support vectors in per cent."""

    validation: float
    test: float
    support: float
    weights: np.ndarray
    n_active: float
    n_iter: int
    seconds: float


@dataclass(frozen=True)
class Chosen:
    """The models of one draw with the values chosen, and the seconds of all its models."""

    values: tuple[float, ...]
    fits: list[Fit]
    seconds: float


@dataclass(frozen=True)
class Result:
    """All draws of one problem, by method."""

    problem: Problem
    chosen: dict[str, list[Chosen]]

    @property
    def n_draws(self) -> int:
        return len(next(iter(self.chosen.values())))


def run(problem: Problem, n_draws: int) -> Result:
    """All methods on `n_draws` random divisions."""
    chosen: dict[str, list[Chosen]] = {name: [] for name in problem.methods}
    with warnings.catch_warnings(), threadpool_limits(1):
        # Steps are limited on purpose.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(n_draws):
            draw = problem.draw(seed)
            for name, method in problem.methods.items():
                chosen[name].append(_choose(problem, method, draw))
            _progress(f"{problem.name}: draw {seed + 1} of {n_draws}")
    return Result(problem, chosen)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _choose(problem: Problem, method: Method, draw: Draw) -> Chosen:
    grid = list(itertools.product(*problem.grid.values()))
    fits: dict[tuple[float, ...], list[Fit]] = {values: [] for values in grid}
    for train, other in draw.folds:
        parts = tuple(cut(draw, method, rows, train) for rows in (train, other, draw.test))
        for values in grid:
            options = dict(zip(problem.grid, values, strict=True))
            model = clone(method.estimator).set_params(**options)
            targets = [draw.targets[rows] for rows in (train, other, draw.test)]
            fits[values].append(_measure(problem, model, parts, targets))
    best = min(grid, key=lambda values: np.mean([fit.validation for fit in fits[values]]))
    seconds = sum(fit.seconds for row in fits.values() for fit in row)
    return Chosen(best, fits[best], seconds)


def cut(draw: Draw, method: Method, rows: np.ndarray, columns: np.ndarray) -> Any:
    """What an estimator is given of these samples."""
    table = draw.tables[method.table]
    if not isinstance(table, KernelStack):
        return table[rows]
    block = table if method.kernels is None else table.select(method.kernels)
    return block[np.ix_(rows, columns)]


def _measure(problem: Problem, model: Any, parts: tuple, targets: list[np.ndarray]) -> Fit:
    start = time.process_time()
    model.fit(parts[0], targets[0])
    seconds = time.process_time() - start
    if hasattr(model, "gate"):
        gates = model.gate(parts[2])
        weights, active = gates.mean(axis=0), float(model.active_kernels(parts[2]).sum(1).mean())
    else:
        weights, active = model.weights_, float((model.weights_ > 0).sum())
    return Fit(
        validation=problem.cost(model, parts[1], targets[1]),
        test=problem.cost(model, parts[2], targets[2]),
        support=100.0 * len(model.support_) / len(targets[0]),
        weights=weights,
        n_active=active,
        n_iter=model.n_iter_,
        seconds=seconds,
    )
