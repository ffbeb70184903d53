"""One contender of `benchmarks.ridge`, measured in a process of its own.

    python benchmarks/_ridge_runner.py CONTENDER PROBLEM.npz ...

Each file holds centred kernels of unit variance (`train` and `test`), centred targets (`y_train`
and `y_test`), the folds of the training rows as a number per row (`fold`), and the regularisations
to choose from (`regs`). Prints what was measured as a line of JSON per file. It needs NumPy and
scikit-learn, and manykernels or himalaya only for their own contenders: himalaya lives in an
environment of its own. Threads are limited by whoever starts it, through the environment.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit

_PACKAGES = ("manykernels", "himalaya", "numpy", "scipy", "scikit-learn")
# Rows of the fit that comes before the one that is timed.
WARM_UP_ROWS = 60
# Steps of himalaya's descent: its default of ten ends far from a minimum.
GRADIENT_STEPS = 100


class Himalaya:
    """MultipleKernelRidgeCV of himalaya: kernel weights and λ of each target by its CV error."""

    def __init__(self, solver: str, n_draws: int = 100) -> None:
        from himalaya.kernel_ridge import MultipleKernelRidgeCV

        self.make, self.solver, self.n_draws = MultipleKernelRidgeCV, solver, n_draws

    def fit(self, kernels: Any, y: Any, folds: Any, regs: Any) -> Any:
        params: dict[str, Any] = {"progress_bar": False}
        if self.solver == "random_search":
            params |= {"alphas": regs, "n_iter": self.n_draws}
        else:
            params |= {"initial_deltas": "ridgecv", "max_iter": GRADIENT_STEPS}
        model = self.make(
            kernels="precomputed",
            solver=self.solver,
            solver_params=params,
            cv=folds,
            random_state=0,
        )
        return model.fit(kernels, y)

    def predict(self, model: Any, kernels: Any) -> Any:
        return model.predict(kernels)


class OneKernel:
    """scikit-learn's ridge regression on the sum of the kernels, λ by a grid search."""

    def fit(self, kernels: Any, y: Any, folds: Any, regs: Any) -> Any:
        search = GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": regs}, cv=folds)
        return search.fit(kernels.sum(axis=0), y)

    def predict(self, model: Any, kernels: Any) -> Any:
        return model.predict(kernels.sum(axis=0))


class Ours:
    """MKRidgeCV with its norms, or with some of them; folds as given, or in closed form."""

    def __init__(self, **params: Any) -> None:
        from manykernels import KernelStack, MKRidgeCV

        self.make, self.stack, self.params = MKRidgeCV, KernelStack.from_arrays, params

    def fit(self, kernels: Any, y: Any, folds: Any, regs: Any) -> Any:
        params = {"cv": folds, "regs": regs, **self.params}
        return self.make("precomputed", **params).fit(self.stack(kernels), y)

    def predict(self, model: Any, kernels: Any) -> Any:
        return model.predict(self.stack(kernels, gram=False))


CONTENDERS = {
    "random": lambda: Himalaya("random_search"),
    "random50": lambda: Himalaya("random_search", 50),
    "gradient": lambda: Himalaya("hyper_gradient"),
    "one": OneKernel,
    "p1": lambda: Ours(ps=[1]),
    "norms": lambda: Ours(),
    "closed": lambda: Ours(cv="closed-form"),
    "separate": lambda: Ours(ps=[1], multi_target="separate"),
    "candidates": lambda: Ours(multi_target="separate", certify=False),
}


def measure(name: str, path: str) -> dict[str, Any]:
    """Time of a fit to all training rows, and R² of the test rows by target."""
    with np.load(path) as file:
        train, test, y, truth, fold, regs = (
            file[part] for part in ("train", "test", "y_train", "y_test", "fold", "regs")
        )
    contender = CONTENDERS[name]()
    few = slice(0, WARM_UP_ROWS)
    contender.fit(train[:, few, few], y[few], PredefinedSplit(fold[few]), regs)
    begin = time.process_time()
    model = contender.fit(train, y, PredefinedSplit(fold), regs)
    seconds = time.process_time() - begin
    predicted = np.asarray(contender.predict(model, test)).reshape(truth.shape)
    return {
        "contender": name,
        "seconds": seconds,
        "scores": np.atleast_1d(r2_score(truth, predicted, multioutput="raw_values")).tolist(),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    for path in sys.argv[2:]:
        print(json.dumps(measure(sys.argv[1], path)))
