"""Kernel weights for every region beside one weight per kernel.

    python -m benchmarks.regions [--quick] [--sets gauss4,sonar] [--write]

- *Scores*: ConvexLocalizedSVC, or ConvexLocalizedSVR, with three regions and several values of
  ``sharpness``, beside MKSVC, or MKSVR. All else is at its defaults; kernels are computed once per
  split. Training and test halves of at most 400 rows. What is told is the difference of accuracy
  (R² of regressions) on the same splits, and its standard error.
- *Solves*: machines, or factorisations, until the relative gap is 1e-6: four regions of up to
  fifteen kernels. These are Gaussian kernels of fifteen widths, or default kernels of views.

"gauss4" are the four Gaussians of Gönen and Alpaydın (2013), with a linear and a quadratic kernel.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks._command import command_line, load, write_page
from benchmarks._default_sets import SETS
from benchmarks._tables import environment, markdown
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
    found = []
    for split in splits_of(name, n_splits):
        union = kernels_for(split.X, split.kernels).fit(split.X)
        K, K_test = union(split.X), union(split.X_test, split.X)
        models = [plain("precomputed")]
        models += [
            local("precomputed", regions=KernelRegions(3, sharpness=sharpness))
            for sharpness in SHARPNESSES
        ]
        found.append([model.fit(K, split.y).score(K_test, split.y_test) for model in models])
    return np.array(found)


def solves(name: str) -> list[list[str]]:
    """Rows of the table of inner solves, one for each estimator and its regularisation."""
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
        cells = [name, type(model).__name__, setting]
        for p in NORMS:
            regions = KernelRegions(4, sharpness=4.0)
            model.set_params(p=p, regions=regions, tol=1e-6).fit(K, split.y)
            mark = "" if model.certificate_.converged else " (not reached)"
            cells.append(f"{model.n_inner_solves_}{mark}")
        rows.append(cells)
    return rows


def report(measured: dict[str, np.ndarray], counted: list[list[str]]) -> str:
    rows = []
    for name, values in measured.items():
        differences = values[:, 1:] - values[:, :1]
        errors = differences.std(axis=0, ddof=1) / np.sqrt(len(values))
        cells = [
            f"{mean:+.4f} ± {error:.4f}"
            for mean, error in zip(differences.mean(axis=0), errors, strict=True)
        ]
        rows.append([name, f"{values[:, 0].mean():.3f}", *cells])
    header = ["data", "no regions", *(f"sharpness {one:g}" for one in SHARPNESSES)]
    solve_header = ["data", "estimator", "", *(f"p={p:.3g}" for p in NORMS)]
    n_splits = len(next(iter(measured.values())))
    return "\n\n".join(
        [
            "# Kernel weights for every region",
            (__doc__ or "").split("\n\n", 2)[2].strip(),
            f"Measured with `python -m benchmarks.regions`, {n_splits} splits. {environment()}",
            "## Scores",
            markdown(header, rows),
            "## Inner solves",
            markdown(solve_header, counted, n_left=3),
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("regions", "Kernel weights for every region.", NAMES)
    options = parser.parse_args(arguments)
    n_splits = 2 if options.quick else 10
    measured, counted = {}, []
    with warnings.catch_warnings():
        # Constant columns of digits; the table says where a gap is not reached.
        warnings.simplefilter("ignore")
        for name in options.sets:
            values = load(name, lambda name=name: scores(name, n_splits))  # type: ignore[misc]
            if values is None:
                continue
            measured[name] = values
            counted += solves(name)
            print(f"{name}: {values.mean(axis=0).round(4)}", flush=True)
    if not measured:
        return 1
    page = report(measured, counted)
    print(page)
    if options.write:
        write_page("regions", page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
