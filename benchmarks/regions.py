"""Kernel weights for every region beside one weight per kernel.

    python -m benchmarks.regions [--quick] [--sets gauss4,sonar] [--write]

- *Scores*: ConvexLocalizedSVC, or ConvexLocalizedSVR, with three regions and several values of
  ``sharpness``, beside MKSVC, or MKSVR. All else is at its defaults; kernels are computed once per
  split. Training and test halves of at most 400 rows. What is shown is the difference of accuracy
  (R² of regressions) on the same splits, and its standard error.
- *Solves*: machines, or factorisations, until the relative gap is 1e-6: four regions of up to
  fifteen kernels. These are Gaussian kernels of fifteen widths, or default kernels of views.

"gauss4" are the four Gaussians of Gönen and Alpaydın (2013), with a linear and a quadratic kernel.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks._command import Results, command_line, load, report
from benchmarks._default_sets import SETS
from benchmarks._tables import environments, markdown
from manykernels import (
    MKSVC,
    MKSVR,
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVR,
    Views,
    kernels_for,
    rbf_grid,
)
from manykernels.datasets import make_gauss4
from manykernels.gating import KernelRegions
from manykernels.kernels import Polynomial

GAUSS4 = "gauss4"
# Faces and leaves have a few samples of each of many classes: a region has none of most classes.
NAMES = [GAUSS4, *(name for name in SETS if name not in ("olivetti", "leaves"))]
SHARPNESSES = (0.0, 0.5, 1.0, 2.0, 4.0, np.inf)
NORMS = (1.0, 1.1, 4 / 3, 2.0, 4.0, np.inf)
ROWS = 400


class Split(NamedTuple):
    """Training and test samples, and the kernels to use (None: the default ones)."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    kernels: Any = None


def splits_of(name: str, n_splits: int) -> Iterator[Split]:
    if name == GAUSS4:
        lines = [("linear", Polynomial(1, gamma=1.0)), ("quadratic", Polynomial(2, gamma=1.0))]
        for seed in range(n_splits):
            X, y = make_gauss4(3 * ROWS, random_state=seed)
            yield Split(X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:], lines)
        return
    tables, y = SETS[name].loader()
    X: Any = Views(tables) if len(tables) > 1 else next(iter(tables.values()))
    for train, test in SETS[name].splits(y, ROWS, n_splits):
        yield Split(X[train], y[train], X[test], y[test])


def is_regression(name: str) -> bool:
    return name != GAUSS4 and SETS[name].regression


def scores(name: str, n_splits: int) -> np.ndarray:
    """Scores without regions and at every sharpness, (n_splits, 1 + n_sharpnesses)."""
    plain, local = (
        (MKSVR, ConvexLocalizedSVR) if is_regression(name) else (MKSVC, ConvexLocalizedSVC)
    )
    values = []
    for split in splits_of(name, n_splits):
        union = kernels_for(split.X, split.kernels).fit(split.X)
        K, K_test = union(split.X), union(split.X_test, split.X)
        models = [plain("precomputed")]
        models += [
            local("precomputed", regions=KernelRegions(3, sharpness=sharpness))
            for sharpness in SHARPNESSES
        ]
        values.append([model.fit(K, split.y).score(K_test, split.y_test) for model in models])
    return np.array(values)


def summary(values: np.ndarray) -> dict[str, Any]:
    """Means over splits: the score without regions, differences from it, and their errors."""
    differences = values[:, 1:] - values[:, :1]
    return {
        "n_splits": len(values),
        "score": values[:, 0].mean(),
        "differences": differences.mean(axis=0),
        "errors": differences.std(axis=0, ddof=1) / np.sqrt(len(values)),
    }


def solves(name: str) -> list[dict[str, Any]]:
    """Inner solves at every norm, for each estimator and its regularisation."""
    split = next(splits_of(name, 1))
    if isinstance(split.X, Views):
        K = kernels_for(split.X).fit(split.X)(split.X)
        K = K.select(np.unique(np.linspace(0, K.n_kernels - 1, 15).round().astype(int)))
    else:
        K = rbf_grid(2.0 ** np.linspace(-4, 4, 15)).fit(split.X)(split.X)
    if is_regression(name):
        models = [ConvexLocalizedSVR("precomputed", C=C) for C in (1.0, 100.0)]
    else:
        models = [ConvexLocalizedSVC("precomputed", C=C) for C in (1.0, 100.0)]
        models += [ConvexLocalizedFDA("precomputed", reg=reg) for reg in (1e-3, 0.1)]
    rows = []
    for model in models:
        setting = f"C={model.C:g}" if hasattr(model, "C") else f"reg={model.reg:g}"
        fitted = [
            clone(model).set_params(p=p, regions=KernelRegions(4, sharpness=4.0), tol=1e-6)
            for p in NORMS
        ]
        certificates = [one.fit(K, split.y).certificate_ for one in fitted]
        rows.append(
            {
                "estimator": type(model).__name__,
                "setting": setting,
                "n_inner_solves": [one.n_inner_solves_ for one in fitted],
                "converged": [certificate.converged for certificate in certificates],
            }
        )
    return rows


def page(results: Results) -> str:
    """The page of the documentation."""
    score_rows, solve_rows = [], []
    for name, part in results.items():
        cells = [
            f"{mean:+.4f} ± {error:.4f}"
            for mean, error in zip(part["differences"], part["errors"], strict=True)
        ]
        score_rows.append([name, str(part["n_splits"]), f"{part['score']:.3f}", *cells])
        for row in part["solves"]:
            counts = [
                f"{count}{'' if converged else ' (not reached)'}"
                for count, converged in zip(row["n_inner_solves"], row["converged"], strict=True)
            ]
            solve_rows.append([name, row["estimator"], row["setting"], *counts])
    header = ["data", "splits", "no regions", *(f"sharpness {one:g}" for one in SHARPNESSES)]
    solve_header = ["data", "estimator", "", *(f"p={p:.3g}" for p in NORMS)]
    parts = [
        "# Kernel weights for every region",
        "Written by `python -m benchmarks.regions --write`.",
        (__doc__ or "").replace("``", "`").split("\n\n", 2)[2].strip(),
        environments(results),
        "## Scores",
        markdown(header, score_rows),
        "## Inner solves",
        markdown(solve_header, solve_rows, n_left=3),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("regions", "Kernel weights for every region.", NAMES)
    options = parser.parse_args(arguments)
    n_splits = 2 if options.quick else 10

    def parts() -> Iterator[tuple[str, dict[str, Any]]]:
        for name in options.sets:
            values = load(name, partial(scores, name, n_splits))
            if values is not None:
                yield name, {**summary(values), "solves": solves(name)}

    with warnings.catch_warnings():
        # Constant columns of digits; the table says where a gap is not reached.
        warnings.simplefilter("ignore")
        return int(not report("regions", parts(), page, options.write, NAMES))


if __name__ == "__main__":
    sys.exit(main())
