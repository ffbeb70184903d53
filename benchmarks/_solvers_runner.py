"""Methods of :mod:`benchmarks.solvers` that run in a process of their own.

    python benchmarks/_solvers_runner.py METHOD TOLERANCES LIMIT SMALL.npz PROBLEM.npz ...

Solves a small problem first, so that imports are not timed. Prints a line of JSON for each of the
others: a list with an answer for each tolerance, or why the problem is refused. It needs NumPy and
scikit-learn, and the library of the method. Threads are limited by whoever starts it, through the
environment.

A method is a function of kernels (n, m, m), targets (m, c), the loss ("hinge" or "square"), p, C
or λ, a tolerance and a limit in seconds. It returns weights, and dual variables or None.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

# -- SimpleMKL ------------------------------------------------------------------------------------


class Machines:
    """Value and gradient of the hinge loss as a function of the kernel weights, by LIBSVM."""

    def __init__(self, kernels: Any, signs: Any, C: float) -> None:
        self.kernels, self.signs, self.C = kernels, signs, C

    def __call__(self, weights: Any) -> tuple[float, Any, Any]:
        from sklearn.svm import SVC

        K = np.tensordot(weights, self.kernels, 1)
        dual = np.zeros(self.signs.shape)
        for column, y in zip(dual.T, self.signs.T, strict=True):
            model = SVC(kernel="precomputed", C=self.C, tol=1e-8).fit(K, y)
            column[model.support_] = model.dual_coef_[0]
        forms = np.einsum("ik,jil,lk->j", dual, self.kernels, dual, optimize=True)
        value = float(np.vdot(self.signs, dual) - 0.5 * weights @ forms)
        return value, -0.5 * forms, dual


def simplemkl(
    kernels: Any, targets: Any, loss: str, p: float, strength: float, tol: float, limit: float
) -> tuple[Any, Any]:
    """Reduced gradients on the simplex, with backtracking steps."""
    if loss != "hinge" or p != 1.0:
        raise NotImplementedError("hinge loss and p = 1 only")
    begin = time.process_time()
    function = Machines(kernels, targets, strength)
    weights = np.full(len(kernels), 1.0 / len(kernels))
    value, gradient, dual = function(weights)
    while time.process_time() - begin < limit:
        # The duality gap: the weight on one kernel alone against the mixture.
        if weights @ gradient - gradient.min() <= 0.5 * tol * abs(value):
            break
        largest = int(np.argmax(weights))
        direction = gradient[largest] - gradient
        direction[(weights <= 0.0) & (direction < 0.0)] = 0.0
        direction[largest] = 0.0
        direction[largest] = -direction.sum()
        falling = direction < 0.0
        longest = np.min(-weights[falling] / direction[falling], initial=np.inf)
        if not np.isfinite(longest) or longest == 0.0:
            break
        slope = float(gradient @ direction)
        step, best = longest, None
        while time.process_time() - begin < limit and step > 1e-12 * longest:
            trial = np.maximum(weights + step * direction, 0.0)
            trial /= trial.sum()
            found = function(trial)
            if found[0] <= value + 1e-4 * step * slope:
                best = trial, found
                break
            step *= 0.4
        if best is None:
            break
        weights, (value, gradient, dual) = best
    return weights, dual


# -- conic programs -------------------------------------------------------------------------------


def conic(
    kernels: Any, targets: Any, loss: str, p: float, strength: float, tol: float, limit: float
) -> tuple[Any, Any]:
    """The dual without weights: a bound for the form of every kernel, and their norm."""
    import cvxpy as cp

    n = len(kernels)
    dual = cp.Variable(targets.shape)
    bounds = cp.Variable(n)
    constraints = []
    for K, bound in zip(kernels, bounds, strict=True):
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-12 * values[-1]
        root = (vectors[:, kept] * np.sqrt(values[kept])).T
        constraints.append(cp.sum_squares(root @ dual) <= bound)
    total = cp.max(bounds) if p == 1.0 else cp.norm(bounds, p / (p - 1.0))
    linear = cp.sum(cp.multiply(targets, dual))
    if loss == "hinge":
        objective = linear - 0.5 * total
        box = cp.multiply(targets, dual)
        others = [box >= 0.0, box <= strength, cp.sum(dual, axis=0) == 0.0]
    else:
        objective = linear - 0.25 * cp.sum_squares(dual) - total / (4.0 * strength)
        others = []
    program = cp.Problem(cp.Maximize(objective), constraints + others)
    program.solve(
        solver=cp.CLARABEL,
        time_limit=10.0 * limit,  # on the clock
        **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 0.1 * tol),
    )
    if dual.value is None:
        return np.full(n, 1.0 / n), None
    weights = np.maximum([float(np.sum(one.dual_value)) for one in constraints], 0.0)
    return weights / np.linalg.norm(weights, p), dual.value


def sequential(
    kernels: Any, targets: Any, loss: str, p: float, strength: float, tol: float, limit: float
) -> tuple[Any, Any]:
    """SLSQP of SciPy on the function of the weights."""
    from scipy.optimize import minimize

    n = len(kernels)
    begin = time.process_time()
    machines = Machines(kernels, targets, strength)
    last = np.full(n, n ** (-1.0 / p))

    def function(weights: Any) -> tuple[float, Any]:
        nonlocal last
        if time.process_time() - begin > limit:
            raise TimeoutError
        last = weights = np.maximum(weights, 0.0)
        if loss == "hinge":
            return machines(weights)[:2]
        A = np.eye(kernels.shape[1]) + np.tensordot(weights, kernels, 1) / strength
        U = np.linalg.solve(A, targets)
        forms = np.einsum("ik,jil,lk->j", U, kernels, U, optimize=True)
        return float(np.vdot(targets, U)), -forms / strength

    ball = {"type": "ineq", "fun": lambda b: 1.0 - np.sum(np.maximum(b, 0.0) ** p)}
    ball["jac"] = lambda b: -p * np.maximum(b, 0.0) ** (p - 1.0)
    options = {"ftol": 0.01 * tol, "maxiter": 1000}
    bounds = [(0.0, 1.0)] * n
    with suppress(TimeoutError):
        last = minimize(
            function,
            last,
            jac=True,
            method="SLSQP",
            bounds=bounds,
            constraints=[ball],
            options=options,
        ).x
    weights = np.maximum(last, 0.0)
    return weights / max(np.linalg.norm(weights, p), 1.0), None


# -- libraries with other objectives --------------------------------------------------------------


def himalaya(
    kernels: Any, targets: Any, loss: str, p: float, strength: float, tol: float, limit: float
) -> tuple[Any, Any]:
    """Kernel weights by the gradient of the error in five folds."""
    if loss != "square" or targets.shape[1] > 1:
        raise NotImplementedError("square loss with one weight vector for one target only")
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    model = MultipleKernelRidgeCV(
        kernels="precomputed",
        solver="hyper_gradient",
        solver_params={"max_iter": 100, "progress_bar": False},
        random_state=0,
    ).fit(kernels, targets)
    weights = np.exp(np.asarray(model.deltas_, dtype=float)).reshape(len(kernels), -1).mean(axis=1)
    return weights / np.linalg.norm(weights, p), None


def easymkl(
    kernels: Any, targets: Any, loss: str, p: float, strength: float, tol: float, limit: float
) -> tuple[Any, Any]:
    """EasyMKL of MKLpy."""
    if loss != "hinge" or targets.shape[1] > 1:
        raise NotImplementedError("two classes only")
    import torch
    from MKLpy.algorithms import EasyMKL
    from sklearn.svm import SVC

    torch.set_num_threads(1)
    matrices = [torch.from_numpy(K.copy()) for K in kernels]
    labels = torch.from_numpy(targets[:, 0].astype(np.int64))
    model = EasyMKL(lam=0.1, learner=SVC(C=strength)).fit(matrices, labels)
    weights = np.asarray(model.solution.weights.numpy(), dtype=float)
    return weights / np.linalg.norm(weights, p), None


METHODS = {
    "SimpleMKL": simplemkl,
    "cvxpy": conic,
    "SLSQP": sequential,
    "himalaya": himalaya,
    "EasyMKL": easymkl,
}


def limited(function: Callable[[], Any], limit: float) -> dict[str, Any]:
    """Result and processor seconds of a function in a process of its own, which is ended in time.

    A function that takes much more than the limit, or fails, has no result.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        most = int(1.2 * limit) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        try:
            begin = time.process_time()
            result = function()
            found = {"result": result, "seconds": time.process_time() - begin}
            with os.fdopen(writer, "wb") as file:
                pickle.dump(found, file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else {"result": None, "seconds": limit}


def solve(name: str, path: str, tol: float, limit: float) -> dict[str, Any]:
    """Weights and dual variables of one problem, as lists, or why it is refused."""
    with np.load(path) as file:
        arrays = file["kernels"], file["targets"]
        loss, p, strength = str(file["loss"]), float(file["p"]), float(file["strength"])
    try:
        weights, dual = METHODS[name](*arrays, loss, p, strength, tol, limit)
    except NotImplementedError as refusal:
        return {"refused": str(refusal)}
    return {
        "weights": np.asarray(weights).tolist(),
        "dual": None if dual is None else np.asarray(dual).tolist(),
    }


def answers(name: str, path: str, tolerances: list[float], limit: float) -> list[dict[str, Any]]:
    """Answers of a method to one problem, until one has taken too long."""
    found: list[dict[str, Any]] = []
    for tol in tolerances:
        run = limited(lambda tol=tol: solve(name, path, tol, limit), limit)  # type: ignore[misc]
        answer = run["result"] or {"weights": None, "dual": None}
        if "refused" in answer:
            return [answer]
        found.append({"tol": tol, "seconds": run["seconds"], **answer})
        if run["seconds"] >= limit:
            break
    return found


if __name__ == "__main__":
    name, tolerances, limit, small, *paths = sys.argv[1:]
    listed = [float(tol) for tol in tolerances.split(",")]
    solve(name, small, listed[0], float(limit))  # imports, in this process
    for path in paths:
        print(json.dumps(answers(name, path, listed, float(limit))), flush=True)
