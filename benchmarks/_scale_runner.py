"""One fit of the benchmark of scale, in a process of its own, so that its memory can be told.

    python -m benchmarks._scale_runner PROBLEM ROWS METHOD

Prints a line of JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline

from benchmarks._meter import Meter
from benchmarks._scale_problems import (
    Rows,
    pendigits_kernels,
    simulated,
    simulated_kernels,
    tiled_pendigits,
)
from manykernels import MKFDA, MKFDACV, Nystrom
from manykernels.kernels import RBF

N_LANDMARKS = 200
# Rows that were not learnt from, on which models are scored.
N_FRESH = 3000
# λ of single fits, acting on kernels of variance one. Sums of squares grow with the rows.
REG = 10.0

PROBLEMS = {
    "simulated": (simulated, simulated_kernels),
    "pendigits": (tiled_pendigits, pendigits_kernels),
}


def single(rows: Rows, kernels: dict[str, RBF]) -> Any:
    """One p and one λ."""
    return MKFDA(kernels, p=1, reg=REG, approximation=Nystrom(N_LANDMARKS)).fit(*rows.lazy())


def grid(rows: Rows, kernels: dict[str, RBF]) -> Any:
    """Four p and eight λ, judged by five folds."""
    return MKFDACV(kernels, approximation=Nystrom(N_LANDMARKS)).fit(*rows.lazy())


def in_memory(rows: Rows, kernels: dict[str, RBF]) -> Any:
    """The same of rows that are in memory, as scikit-learn has them."""
    return MKFDACV(kernels, approximation=Nystrom(N_LANDMARKS)).fit(*rows.whole())


def scikit_learn(rows: Rows, kernels: dict[str, RBF]) -> Any:
    """Features of every kernel side by side, and a ridge classifier."""
    X, y = rows.whole()
    parts = []
    for name, kernel in kernels.items():
        gamma = kernel.__sklearn_clone__().fit(X[:5000])._factor()
        features = Nystroem(gamma=gamma, n_components=N_LANDMARKS, random_state=0)
        parts.append((name, make_pipeline(make_column_transformer((features, kernel.columns)))))
    return make_pipeline(FeatureUnion(parts), RidgeClassifier(alpha=REG)).fit(X, y)


METHODS = {
    "single": single,
    "grid": grid,
    "in memory": in_memory,
    "scikit-learn": scikit_learn,
}


def measured(problem: str, n_rows: int, method: str) -> dict[str, Any]:
    """Time, memory, weights and score of one fit."""
    make, kernels = PROBLEMS[problem]
    rows = make(n_rows)
    with warnings.catch_warnings(), Meter() as meter:
        model = METHODS[method](rows, kernels())
    X, y = rows.fresh(N_FRESH)
    found = {
        "problem": problem,
        "rows": n_rows,
        "method": method,
        "seconds": meter.seconds,
        "processor": meter.processor,
        "gib": meter.peak_bytes / 2**30,
        "accuracy": float(model.score(X, y)),
    }
    if hasattr(model, "weights_"):
        shares = model.weights_ / model.weights_.sum()
        found |= {
            "shares": dict(zip(model.kernel_names_, shares.tolist(), strict=True)),
            "rel_gap": model.certificate_.rel_gap,
            "converged": bool(model.certificate_.converged),
            "factorisations": int(model.n_inner_solves_),
            "errors": float(model.approximation_errors_.mean()),
        }
    if hasattr(model, "cv_results_"):
        found["chosen"] = f"p = {model.p_:.3g}, λ = {model.reg_:.3g}"
        found["grid solves"] = int(model.cv_results_["n_inner_solves"].sum())
    return found


def main(arguments: list[str]) -> None:
    problem, n_rows, method = arguments
    print(json.dumps(measured(problem, int(n_rows), method)))


if __name__ == "__main__":
    main(sys.argv[1:])
