"""One contender of `benchmarks.easymkl`, measured in a process of its own.

    python benchmarks/_easymkl_runner.py CONTENDER PROBLEM [ROWS]

Prints what was measured as one line of JSON. It needs NumPy and scikit-learn, and manykernels or
MKLpy only for their own contenders: MKLpy lives in an environment of its own. Threads are
limited by whoever starts it, through the environment.
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split

# Of exp(−γ‖x − z‖²) on pixels between 0 and 1: from nearly constant to nearly the identity.
GAMMAS = np.logspace(-3, 1, 10)
WARM_UP_ROWS = 100
TEST_SIZE = 1 / 3
SVM_C = 1.0
LAM = 0.1  # EasyMKL's own default

_PACKAGES = ("manykernels", "MKLpy", "torch", "cvxopt", "numba", "numpy", "scipy", "scikit-learn")
# Short fits are repeated more often, one that takes this long by itself is not repeated.
_MOST_FITS, _ENOUGH_SECONDS = 10, 10.0


# -- contenders ----------------------------------------------------------------------------


class Ours:
    """An estimator of manykernels on a stack."""

    def __init__(self, name: str, *, module: str = "manykernels", **parameters: Any) -> None:
        import manykernels

        self.make = getattr(import_module(module), name)
        self.from_arrays = manykernels.KernelStack.from_arrays
        self.parameters = parameters

    def prepare(self, matrices: np.ndarray) -> Any:
        return self.from_arrays(matrices)

    def fit(self, kernels: Any, y: np.ndarray) -> Any:
        return self.make("precomputed", **self.parameters).fit(kernels, y)

    def predict(self, model: Any, matrices: np.ndarray) -> np.ndarray:
        return model.predict(self.from_arrays(matrices, gram=False))

    def extras(self, model: Any) -> dict[str, Any]:
        return {
            "rel_gap": float(model.certificate_.rel_gap),
            # As of EasyMKL below: where every class has its own weights, their mean.
            "weights": np.atleast_2d(model.weights_).mean(axis=0).tolist(),
        }


class EasyMKL:
    """EasyMKL of MKLpy 0.6, which takes kernels as a list of tensors."""

    def __init__(self, learner: str) -> None:
        import torch
        from MKLpy.algorithms import KOMD
        from MKLpy.algorithms import EasyMKL as Estimator
        from sklearn.svm import SVC

        torch.set_num_threads(1)
        self.make, self.tensor = Estimator, torch.from_numpy
        self.learner = {"svc": lambda: SVC(C=SVM_C), "komd": lambda: KOMD(lam=LAM)}[learner]

    def prepare(self, matrices: np.ndarray) -> Any:
        return [self.tensor(matrix) for matrix in matrices]  # they share memory

    def fit(self, kernels: Any, y: np.ndarray) -> Any:
        # A learner is named each time: the default is one object that all models share.
        return self.make(learner=self.learner(), lam=LAM).fit(kernels, self.tensor(y))

    def predict(self, model: Any, matrices: np.ndarray) -> np.ndarray:
        """Labels by the scores: one-vs-one, its predict gives positions in place of labels."""
        scores = model.decision_function(self.prepare(matrices))
        if isinstance(scores, dict):  # one array per class, against the rest
            best = np.argmax([np.ravel(score) for score in scores.values()], axis=0)
            return np.array([int(label) for label in scores])[best]
        return np.where(np.ravel(scores) >= 0, 1, -1)

    def extras(self, model: Any) -> dict[str, Any]:
        solution = model.solution
        ways = solution.values() if isinstance(solution, dict) else [solution]
        return {"weights": np.mean([way.weights.numpy() for way in ways], axis=0).tolist()}


def contender(name: str, problem: str) -> Any:
    """EasyMKL with a learner for the combined kernel, or an estimator of ours with p."""
    family, _, variant = name.partition("-")
    if family == "easymkl":
        return EasyMKL(variant)
    if family == "oureasymkl":
        # On the kernels as they are, as MKLpy.
        module = "manykernels.baselines"
        return Ours("EasyMKL", module=module, lam=LAM, C=SVM_C, normalize=None)
    if family == "mkfda":
        return Ours("MKFDA", p=float(variant))
    if family == "mksvc":
        shared = {"multi_class": "shared"} if problem == "ten" else {}
        return Ours("MKSVC", p=float(variant), C=SVM_C, **shared)
    raise SystemExit(f"No such contender: {name}")


# -- problems ------------------------------------------------------------------------------


def load(problem: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits: even or odd as −1 and 1, which EasyMKL is sure to understand, or all ten."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:n_rows] / 16, y[:n_rows].astype(np.int64)
    return X, {"binary": 2 * (y % 2) - 1, "ten": y}[problem]


def kernel_matrices(X: np.ndarray) -> np.ndarray:
    """Ten Gaussian kernels, made in place so that nothing is left beside them."""
    squares = euclidean_distances(X, squared=True)
    matrices = np.empty((len(GAMMAS), len(X), len(X)))
    for gamma, matrix in zip(GAMMAS, matrices, strict=True):
        np.exp(np.multiply(squares, -gamma, out=matrix), out=matrix)
    return matrices


# -- measurements --------------------------------------------------------------------------


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float, float]:
    """Result, seconds of the processor and seconds on the clock."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return result, time.process_time() - cpu, time.perf_counter() - wall


def forget_peak() -> None:
    """Start the peak of memory anew, where the system can (Linux)."""
    gc.collect()
    # What C's allocator keeps of freed arrays would serve the fit and not be counted.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    # Where it cannot, the peak of what came before hides growth up to it.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Most memory this process held since `forget_peak`."""
    # Not ru_maxrss where it can be helped: it never falls, and starts at that of the parent.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(name: str, problem: str, n_rows: int) -> dict[str, Any]:
    """Fits on all rows for time and memory, a fit on two thirds of them for accuracy."""
    method = contender(name, problem)
    X, y = load(problem, n_rows)

    few = method.prepare(kernel_matrices(X[:WARM_UP_ROWS]))
    first, again = (timed(method.fit, few, y[:WARM_UP_ROWS])[1] for _ in range(2))

    forget_peak()
    before = peak_bytes()
    matrices = kernel_matrices(X)
    forget_peak()
    with_kernels = peak_bytes()
    kernels, prepared, _ = timed(method.prepare, matrices)
    forget_peak()
    ready = peak_bytes()
    model, *seconds = timed(method.fit, kernels, y)
    peak = peak_bytes()
    extras = method.extras(model)
    times = [tuple(seconds)]
    while len(times) < _MOST_FITS and sum(wall for _, wall in times) < _ENOUGH_SECONDS:
        del model  # or two of them would be held at once
        model, *seconds = timed(method.fit, kernels, y)
        times.append(tuple(seconds))
    del model, kernels

    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SIZE, stratify=y, random_state=0
    )
    model = method.fit(method.prepare(matrices[:, train][:, :, train]), y[train])
    labels = method.predict(model, matrices[:, test][:, :, train])
    cpu, wall = min(times)
    return {
        "contender": name,
        "problem": problem,
        "n_rows": len(y),
        "n_kernels": len(GAMMAS),
        "seconds": cpu,
        "median_seconds": float(np.median([cpu for cpu, _ in times])),
        "wall_seconds": wall,
        "n_fits": len(times),
        "prepare_seconds": prepared,
        "first_seconds": first - again,
        "kernel_bytes": with_kernels - before,
        "fit_bytes": peak - ready,
        "accuracy": float(np.mean(labels == y[test])),
        "n_test": len(test),
        "versions": _versions(),
        **extras,
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
    name, problem, *rows = sys.argv[1:]
    print(json.dumps(measure(name, problem, int(rows[0]) if rows else 10**9)))
