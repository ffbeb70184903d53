"""Why figures differ from the paper's: what more steps and more starts do, measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._localized_problems import AS_THE_PAPER, TO_THE_END, Method, Problem
from benchmarks._localized_protocol import cut
from benchmarks._tables import markdown

LEARNING = (2, 5, 10, 20, 50, 100, 200)
STARTS: dict[str, dict[str, Any]] = {
    "at most 20 gradient steps": AS_THE_PAPER,
    "to the end": TO_THE_END,
    "to the end, best J of 5 starts": {**TO_THE_END, "n_init": 5},
}


def learning(problem: Problem) -> str:
    """MULTIFEAT: J and accuracies after so many steps on the gate, ten folds of one draw."""
    method = problem.methods["LMKL sigmoid, to the end"]
    rows = []
    for n_steps in LEARNING:
        J, *costs, support = _means(problem, method, C=1.0, max_iter=n_steps, tol=1e-12)
        accuracies = [f"{100 - cost:.2f}" for cost in costs]
        rows.append([str(n_steps), f"{J:.2f}", *accuracies, f"{support:.1f}"])
    header = ["steps at most", "J", "accuracy % on training samples", "on test samples", "SV %"]
    return (
        "Why *to the end* is worse here: a lower J is not a better classifier, once the training "
        "samples are separated. Sigmoid gate, C = 1, quasi-Newton steps, first division:\n\n"
        f"{markdown(header, rows)}"
    )


def starts(problem: Problem) -> str:
    """CONCRETE: J and errors with few steps, all steps, and five random starts."""
    rows = []
    for name in ("LMKL softmax", "LMKL softmax, 5 linear"):
        for how, options in STARTS.items():
            method = Method(
                clone(problem.methods[f"{name}, to the end"].estimator).set_params(**options),
                problem.methods[name].table,
            )
            J, *costs, support = _means(problem, method, C=100.0, epsilon=4.0)
            errors = [f"{cost:.1f}" for cost in costs]
            rows.append([name, how, f"{J:.0f}", *errors, f"{support:.1f}"])
    header = ["method", "descent", "J", "MSE on training samples", "on test samples", "SV %"]
    return (
        "What steps and starts change here: C = 100, ε = 4, first division:\n\n"
        f"{markdown(header, rows, n_left=2)}"
    )


def _means(problem: Problem, method: Method, **options: float) -> list[float]:
    """J, cost on training and test samples and support vectors in per cent, over the folds."""
    draw = problem.draw(0)
    found = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # few steps on purpose
        for train, _ in draw.folds:
            model = clone(method.estimator).set_params(**options)
            blocks = [cut(draw, method, part, train) for part in (train, draw.test)]
            model.fit(blocks[0], draw.targets[train])
            pairs = zip(blocks, (train, draw.test), strict=True)
            costs = [problem.cost(model, block, draw.targets[part]) for block, part in pairs]
            found.append([model.objective_, *costs, 100 * len(model.support_) / len(train)])
    return [float(mean) for mean in np.mean(found, axis=0)]


#: By data set.
REASONS: dict[str, Callable[[Problem], str]] = {"mfeat": learning, "concrete": starts}
