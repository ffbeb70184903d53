"""Record what every estimator answers on small data, and compare two records.

    python -m benchmarks.behaviour before.npz
    ... change the code ...
    python -m benchmarks.behaviour after.npz --compare before.npz

For refactoring: predictions and weights of two records must agree to 1e-8, and no count of
inner solves may grow. Exits with 1 if they do not.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier

import manykernels
from manykernels import KernelStack, Nystrom, RandomFeatures, baselines
from manykernels.kernels import RBF, Linear
from manykernels.survival import survival_array

# Largest relative difference of two records of the same behaviour.
TOLERANCE = 1e-8
N_TRAIN, N_TEST = 60, 15
METHODS = ("predict", "decision_function", "predict_proba", "gate", "memberships")
ATTRIBUTES = (
    *("weights_", "intercept_", "reg_", "C_", "p_", "best_score_", "left_out_score_"),
    *("left_out_log_proba_", "left_out_predictions_", "left_out_decisions_", "objective_"),
)
COUNTS = ("n_inner_solves_", "n_iter_")
# Parameters that keep the searches small, and those whose defaults may change.
GRIDS: dict[str, dict[str, Any]] = {
    "MKFDACV": {"ps": [1, 2], "regs": [0.1, 1.0]},
    "MKRidgeCV": {"ps": [1, 2], "regs": [0.1, 1.0]},
    "MKSVCCV": {"ps": [1, 2], "Cs": [0.3, 3.0]},
    "MKSVRCV": {"ps": [2], "Cs": [0.3, 3.0]},
    "MKLogisticCV": {"ps": [1, 2], "regs": [0.1, 1.0]},
    "MKGLMCV": {"ps": [1, 2], "regs": [0.1, 1.0]},
    "MKCoxCV": {"ps": [1, 2], "regs": [1.0, 10.0]},
    "LocalizedSVCCV": {"Cs": [0.3, 3.0]},
    "LocalizedSVRCV": {"Cs": [0.3, 3.0]},
    "ConvexLocalizedSVCCV": {"Cs": [0.3, 3.0]},
    "ConvexLocalizedSVRCV": {"Cs": [0.3, 3.0]},
}


def tables(n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of six columns, their classes as strings, and numbers that depend on them."""
    rng = np.random.default_rng(n_classes)
    labels = rng.permutation(np.arange(N_TRAIN + N_TEST) % n_classes)
    X = rng.standard_normal((len(labels), 6)) + 1.2 * np.eye(6)[labels]
    values = X[:, 0] - X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(labels))
    return X, np.array(["a", "b", "c"])[labels], values


def target_of(name: str, y: np.ndarray) -> np.ndarray:
    """What an estimator learns: classes or numbers, counts, or events and times."""
    if "GLM" in name:
        return np.floor(np.exp(np.clip(y, -3.0, 3.0)))
    if "Cox" in name:
        return survival_array((np.arange(len(y)) % 3 > 0, np.exp(-y)))
    return y


def stacks(X: np.ndarray) -> tuple[KernelStack, KernelStack]:
    """Kernel matrices of training rows, and of test rows against them."""
    train, test = X[:N_TRAIN], X[N_TRAIN:]
    kernels = [Linear(), RBF(gamma=0.1), RBF(gamma=1.0).on([0, 1, 2])]
    made = manykernels.KernelUnion([(str(i), k) for i, k in enumerate(kernels)]).fit(train)
    return made(train), made(test, train)


def inputs(X: np.ndarray) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Kinds of training and test data of the same rows, with parameters they need."""
    train, test = X[:N_TRAIN], X[N_TRAIN:]
    yield "table", train, test, {}
    yield "stack", *stacks(X), {"kernels": "precomputed"}
    views = {"u": X[:, :3], "v": X[:, 3:]}
    parts = [
        {name: view[rows] for name, view in views.items()}
        for rows in (slice(N_TRAIN), slice(N_TRAIN, None))
    ]
    yield "views", *parts, {}
    gaps = [{name: view.copy() for name, view in part.items()} for part in parts]
    gaps[0]["u"][::7] = np.nan
    gaps[1]["v"][::5] = np.nan
    yield "missing", *gaps, {"missing": "mean"}
    yield "missing-conditional", *gaps, {"missing": "conditional"}
    yield "nystrom", train, test, {"kernels": RBF(gamma=0.1), "approximation": Nystrom(20)}
    features = {"kernels": RBF(gamma=0.1), "approximation": RandomFeatures(50)}
    yield "random-features", train, test, features


def estimators() -> Iterator[tuple[str, type]]:
    for module in (manykernels, baselines):
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if isinstance(value, type) and hasattr(value, "fit") and hasattr(value, "predict"):
                yield name, value


def variants(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Parameters to be tried on every kind of data."""
    yield "default", GRIDS.get(name, {})
    if name in ("MKFDA", "MKRidge"):
        yield "joint", {"reg": "joint", "p": 1}
        yield "p1", {"p": 1}
    if name == "MKSVC":
        yield "squared", {"loss": "squared_hinge"}
        yield "sip", {"p": 1, "solver": "sip"}
    if name in ("MKFDACV", "MKRidgeCV"):
        yield "closed-form", {**GRIDS[name], "cv": "closed-form"}
    if name in ("LocalizedSVC", "LocalizedSVR"):
        yield "sigmoid", {"gating": "sigmoid"}


def answers(model: Any, test: Any) -> dict[str, np.ndarray]:
    record = {}
    for method in METHODS:
        if hasattr(model, method):
            record[method] = np.asarray(getattr(model, method)(test))
    for attribute in (*ATTRIBUTES, *COUNTS):
        value = getattr(model, attribute, None)
        if value is not None:
            record[attribute] = np.asarray(value)
    certificate = getattr(model, "certificate_", None)
    for field in ("primal", "dual", "converged"):
        if hasattr(certificate, field):
            record[f"certificate.{field}"] = np.asarray(getattr(certificate, field))
    return record


def fits() -> Iterator[tuple[str, Any]]:
    """Name of every fit, and a function that makes it and returns its answers."""
    for n_classes in (2, 3):
        X, labels, values = tables(n_classes)
        rng = np.random.default_rng(0)
        weights = rng.integers(1, 4, N_TRAIN) / 2
        for name, kind in estimators():
            target = None
            if hasattr(kind, "predict") and "OneClass" not in name:
                target = target_of(name, labels if is_classifier(kind()) else values)[:N_TRAIN]
            if n_classes == 3 and not (target is not None and target.dtype.kind == "U"):
                continue
            for form, train, test, needed in inputs(X):
                for variant, params in variants(name):
                    for weight in (None, weights):
                        weighted = "weights" if weight is not None else ""
                        label = f"{name}/{variant}/{n_classes}/{form}/{weighted}"
                        yield label, (kind, {**params, **needed}, train, target, weight, test)


def fit_one(
    kind: type, params: dict[str, Any], train: Any, target: Any, weight: Any, test: Any
) -> dict[str, np.ndarray]:
    """Answers of one fit, or the kind of error that it ends with."""
    if "random_state" in kind().get_params():
        params = {"random_state": 0, **params}
    extra = {} if weight is None else {"sample_weight": weight}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return answers(kind(**params).fit(train, target, **extra), test)
    except (ValueError, TypeError) as error:
        return {"error": np.asarray(type(error).__name__)}


def record() -> dict[str, np.ndarray]:
    """Answers of all fits, by the name of the fit and of the answer."""
    chosen = {label: case for label, case in fits() if set(case[1]) <= set(case[0]().get_params())}
    results = Parallel(n_jobs=-1)(delayed(fit_one)(*case) for case in chosen.values())
    return {
        f"{label}:{key}": value
        for label, result in zip(chosen, results, strict=True)
        for key, value in result.items()
    }


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of two answers, relative to their size."""
    if one.shape != other.shape:
        return np.inf
    if one.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(one, other) else np.inf
    one, other = one.astype(float), other.astype(float)
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf
    finite = np.isfinite(one)
    if not finite.any():
        return 0.0
    scale = max(np.abs(other[finite]).max(), 1.0)
    return float(np.abs(one[finite] - other[finite]).max() / scale)


def compare(after: dict[str, np.ndarray], before: dict[str, np.ndarray]) -> int:
    """Print every difference; return how many there are."""
    wrong = [f"{key}: only before" for key in sorted(set(before) - set(after))]
    wrong += [f"{key}: only after" for key in sorted(set(after) - set(before))]
    for key in sorted(set(after) & set(before)):
        if key.rpartition(":")[2] in COUNTS:
            if np.sum(after[key]) > np.sum(before[key]):
                wrong.append(f"{key}: {before[key]} -> {after[key]}")
        elif (change := difference(after[key], before[key])) > TOLERANCE:
            wrong.append(f"{key}: differs by {change:.1e}")
    print("\n".join(wrong))
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", help="where the record is written")
    parser.add_argument("--compare", metavar="FILE", help="an earlier record")
    arguments = parser.parse_args()
    start = time.perf_counter()
    made = record()
    np.savez_compressed(
        arguments.file, **{key.replace("/", "|"): value for key, value in made.items()}
    )
    n_fits = len({key.partition(":")[0] for key in made})
    errors = sorted(key for key in made if key.endswith(":error"))
    print(f"{n_fits} fits, {len(errors)} refused, {time.perf_counter() - start:.0f} s")
    if arguments.compare is None:
        return 0
    with np.load(arguments.compare) as stored:
        before = {key.replace("|", "/"): stored[key] for key in stored.files}
    wrong = compare(made, before)
    print(f"{wrong} differences of {len(before)} answers")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
