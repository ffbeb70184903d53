"""Counts of what fits do, which must not grow: factorisations, passes over kernels, memory.

    python -m benchmarks.guard [--write] [--fits mkfda,mkridge]

Times depend on the machine and on what else runs there; counts do not. Twenty small fits are made,
with every LAPACK routine and every pass over a stack of kernels counted where it is called,
whatever the estimators themselves report. Exits with 1 if a count is above the bound in
``benchmarks/guard.json``; `--write` stores the counts of now as bounds. Only matrices of at least
a third of the training rows count.

- factorisations: Cholesky, LU and QR;
- inverses: from a factor or directly;
- decompositions: eigenvalues or singular values, Lanczos runs included;
- solves: with a factor, whatever the number of right-hand sides;
- passes: over all matrices of a stack, such as a weighted sum or products with all kernels;
- inner: ``n_inner_solves_``, as reported by the estimator;
- peak: most memory allocated at the same time, MiB; 10 % above its bound are allowed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from threadpoolctl import threadpool_limits

import manykernels as mk
from benchmarks._tables import markdown
from manykernels.kernels import RBF, KernelStack, Linear
from manykernels.survival import survival_array

BOUNDS = Path(__file__).with_name("guard.json")
COUNTS = ("factorisations", "inverses", "decompositions", "solves", "passes", "inner", "peak")
N_ROWS = 120
#: Least rows of a matrix that counts.
LEAST = N_ROWS // 3
#: Relative growth of the peak that is no regression: it depends a little on versions.
SLACK = 0.1

_LAPACK = {
    "dpotrf": "factorisations",
    "dgetrf": "factorisations",
    "dpotri": "inverses",
    "dtrtri": "inverses",
    "dpotrs": "solves",
    "dtrtrs": "solves",
}
_SCIPY = {
    **dict.fromkeys(("cholesky", "cho_factor", "lu_factor", "qr", "ldl"), "factorisations"),
    **dict.fromkeys(("inv", "pinv"), "inverses"),
    **dict.fromkeys(("eigh", "eigvalsh", "svd", "svdvals"), "decompositions"),
    **dict.fromkeys(("cho_solve", "solve_triangular", "lu_solve"), "solves"),
    "solve": "factorisations",
}
_NUMPY = {
    **dict.fromkeys(("cholesky", "qr", "solve", "slogdet", "lstsq"), "factorisations"),
    **dict.fromkeys(("inv", "pinv"), "inverses"),
    **dict.fromkeys(("eigh", "eigvalsh", "svd", "eigvals"), "decompositions"),
}
_STACK = (
    *("combine", "combine_all", "apply", "apply_combined", "apply_each", "inner_products"),
    *("inner_products_with", "alignment", "form_errors"),
)


# -- counting ------------------------------------------------------------------------------


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count calls of LAPACK, NumPy's and SciPy's linear algebra and passes over stacks."""
    counts: Counter[str] = Counter()
    outermost = [True]

    def counted(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            first = args[0] if kind != "passes" else args[0].data[0]
            shape = getattr(first[0] if isinstance(first, tuple) else first, "shape", ())
            large = len(shape) >= 2 and min(shape[-2:]) >= LEAST
            if not (large and outermost[0]):
                return function(*args, **kwargs)
            counts[kind] += int(np.prod(shape[:-2]))
            outermost[0] = False  # what a counted function calls is a part of it
            try:
                return function(*args, **kwargs)
            finally:
                outermost[0] = True

        return call

    with ExitStack() as stack:
        places: list[tuple[Any, dict[str, str]]] = [
            (scipy.linalg.lapack, _LAPACK),
            (scipy.linalg, _SCIPY),
            (np.linalg, _NUMPY),
            (scipy.sparse.linalg, {"eigsh": "decompositions"}),
        ]
        modules = [
            module for name, module in sys.modules.items() if name.startswith("manykernels")
        ]
        for place, kinds in places:
            for name, kind in kinds.items():
                original = getattr(place, name)
                replacement = counted(original, kind)
                stack.enter_context(mock.patch.object(place, name, replacement))
                for module in modules:
                    if vars(module).get(name) is original:
                        stack.enter_context(mock.patch.object(module, name, replacement))
        for name in _STACK:
            replacement = counted(getattr(KernelStack, name), "passes")
            stack.enter_context(mock.patch.object(KernelStack, name, replacement))
        yield counts


def measured(fit: Callable[[], Any]) -> dict[str, float]:
    """Return the counts of a fit; it is made once before, so that caches are filled."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()
        with counting() as counts:
            model = fit()
        tracemalloc.start()
        try:
            fit()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    inner = int(getattr(model, "n_inner_solves_", 0))
    return {
        **{kind: counts[kind] for kind in COUNTS if kind not in ("inner", "peak")},
        "inner": inner,
        "peak": round(peak / 2**20, 1),
    }


# -- the fits ------------------------------------------------------------------------------


def problem() -> dict[str, Any]:
    """Return a table, kernels, a stack, and targets of all kinds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6))
    value = np.sin(X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=N_ROWS)
    kernels = [("linear", Linear())]
    kernels += [(f"{j}", RBF(0.5).on([j])) for j in range(6)]
    kernels += [(f"all {gamma}", RBF(gamma)) for gamma in (0.01, 0.1, 1.0)]
    stack = mk.KernelUnion(kernels).fit(X)(X)
    classes = np.digitize(value, np.quantile(value, [1 / 3, 2 / 3]))
    several = value[:, None] + rng.normal(size=(N_ROWS, 30)) + X @ rng.normal(size=(6, 30))
    times = survival_array((rng.random(N_ROWS) < 0.7, np.exp(-value)))
    return {
        **{"X": X, "kernels": kernels, "stack": stack, "value": value, "classes": classes},
        **{"binary": value > 0, "several": several, "times": times},
        "arrays": [stack.kernel(j) for j in range(stack.n_kernels)],
    }


def fits() -> dict[str, Callable[[], Any]]:
    """Return twenty fits by name."""
    data = problem()
    stack, X, kernels = data["stack"], data["X"], data["kernels"]
    value, classes, binary = data["value"], data["classes"], data["binary"]
    several, given = data["several"], "precomputed"
    few = {"ps": [1, 2], "regs": [0.1, 1.0, 10.0], "cv": 3}
    machines = {"ps": [1, 2], "Cs": [0.1, 1.0], "cv": 3}
    return {
        "mkfda p=1": lambda: mk.MKFDA(given, p=1).fit(stack, classes),
        "mkfda p=2": lambda: mk.MKFDA(given).fit(stack, classes),
        "mkfda binary": lambda: mk.MKFDA(given).fit(stack, binary),
        "mkfda plain sum": lambda: mk.MKFDA(given, p=np.inf).fit(stack, classes),
        "mkfda joint": lambda: mk.MKFDA(given, reg="joint").fit(stack, classes),
        "mkfda cutting planes": lambda: mk.MKFDA(given, p=1, solver="sip").fit(stack, classes),
        "mkfdacv": lambda: mk.MKFDACV(given, **few).fit(stack, classes),
        "mkfdacv plain sum": lambda: mk.MKFDACV(given, **{**few, "ps": [np.inf]}).fit(
            stack, classes
        ),
        "mkridge": lambda: mk.MKRidge(given, p=1).fit(stack, value),
        "mkridge evidence": lambda: mk.MKRidge(given, p="evidence").fit(stack, value),
        "mkridgecv": lambda: mk.MKRidgeCV(given, **few).fit(stack, value),
        "mkridgecv closed form": lambda: mk.MKRidgeCV(given, **{**few, "cv": "closed-form"}).fit(
            stack, value
        ),
        "mkridgecv 30 targets": lambda: mk.MKRidgeCV(given, multi_target="separate").fit(
            stack, several
        ),
        "mksvc from arrays": lambda: mk.MKSVC(given).fit(
            KernelStack.from_arrays(data["arrays"]), binary
        ),
        "mksvc": lambda: mk.MKSVC(kernels, p=1).fit(X, binary),
        "mksvccv": lambda: mk.MKSVCCV(given, **machines).fit(stack, binary),
        "mklogistic": lambda: mk.MKLogistic(given).fit(stack, binary),
        "mkcox": lambda: mk.MKCox(given).fit(stack, data["times"]),
        "localizedsvc": lambda: mk.LocalizedSVC(kernels).fit(X, binary),
        "mkfda features": lambda: mk.MKFDA(
            kernels, approximation=mk.Nystrom(60, random_state=0)
        ).fit(X, classes),
    }


# -- command line --------------------------------------------------------------------------


def above(name: str, counts: dict[str, float], bounds: dict[str, float]) -> list[str]:
    """Return a sentence for every count of a fit that is above its bound."""
    found = []
    for kind, value in counts.items():
        bound = bounds.get(kind, 0.0)
        if value > bound * (1.0 + SLACK * (kind == "peak")):
            found.append(f"{name}: {kind} {value:g}, at most {bound:g}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Count, and compare with the bounds; 1 if a count is above its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description="Counts.")
    parser.add_argument("--write", action="store_true", help="store the counts as bounds")
    parser.add_argument("--fits", help="names, or their beginnings, separated by commas")
    options = parser.parse_args(arguments)
    chosen = {
        name: fit
        for name, fit in fits().items()
        if options.fits is None or name.startswith(tuple(options.fits.split(",")))
    }
    if not chosen:
        parser.error(f"no fit begins with {options.fits}")
    bounds = json.loads(BOUNDS.read_text()) if BOUNDS.exists() else {}
    counts = {name: measured(fit) for name, fit in chosen.items()}
    rows = [[name, *(f"{one[kind]:g}" for kind in COUNTS)] for name, one in counts.items()]
    print(markdown(["", *COUNTS], rows))
    if options.write:
        text = json.dumps({**bounds, **counts}, indent=1)
        BOUNDS.write_text(text + "\n", encoding="utf-8")
        print(f"Written: {BOUNDS}")
        return 0
    failures = [
        sentence
        for name, one in counts.items()
        for sentence in above(name, one, bounds.get(name, {}))
    ]
    for sentence in failures:
        print(sentence, file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
