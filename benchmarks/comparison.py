"""All methods on all data sets of several views: the same kernels, the same folds.

    python -m benchmarks.comparison [--quick] [--sets mfeat,bbc] [--write]

At most 300 rows of each data set, drawn at random with classes in equal parts, are divided into
five stratified folds. Kernels are computed once, those of `auto_kernels` for every view unless
they come ready-made; their widths are taken from all rows, labels are not looked at. Every method
is given these kernels as they are. Methods whose names end with CV choose their parameters by
themselves, within the training rows; the others have the parameters of the table of methods below
and are not tuned. Seconds are on the clock, with one thread, kernels given.

*accuracy* ± its standard deviation over folds; *p* against the best method, by the corrected
resampled t test (Nadeau and Bengio, 2003) after Holm's correction, with five folds: only large
differences are found. *kernels* in use; *support vectors* as a share of the training rows; *gap*,
the largest relative duality gap. Ranks over data sets follow Demšar (2006).

`Product` is not among the methods: it takes no negative similarities, as linear kernels have. It
is on the page of the photographs (`benchmarks.flower`).

Finished cells are kept in `out/comparison`, in a folder for the state of the sources, and are
found again by the same command after an interruption.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

import manykernels
from benchmarks import _data
from benchmarks._command import Results, chosen_sets, command_line, load, report
from benchmarks._tables import environments, markdown
from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVCCV,
    Comparison,
    ConvexLocalizedSVC,
    KernelStack,
    LocalizedSVC,
    Views,
    compare,
    kernels_for,
)
from manykernels.baselines import (
    LPB,
    OBSCURE,
    Alignment,
    Average,
    BestKernel,
    CGBoost,
    EasyMKL,
    KimFDA,
    LPBeta,
    PolynomialCombination,
)
from manykernels.comparison import rank_methods
from manykernels.comparison.result import Cell

ROWS, ROWS_QUICK = 300, 100
SETS_QUICK = ["jaffe", "ar10p"]
FOLDS, FOLDS_QUICK = 5, 2
FOLDER = Path("out", "comparison")
# Species of the leaves that are taken: with all hundred, there are three leaves of each.
SPECIES = 20

GIVEN = "precomputed"
# A method is one line here. Those that take two classes only are named below.
METHODS = {
    "MKFDA, p = 1": MKFDA(GIVEN, p=1),
    "MKFDA, p = 2": MKFDA(GIVEN, p=2),
    "MKFDACV": MKFDACV(GIVEN),
    "plain sum, FDA": MKFDA(GIVEN, p=np.inf),
    "plain sum, FDA CV": MKFDACV(GIVEN, ps=[np.inf]),
    "MKSVC, p = 1": MKSVC(GIVEN, p=1),
    "MKSVC, p = 2": MKSVC(GIVEN, p=2),
    "MKSVCCV": MKSVCCV(GIVEN),
    "plain sum, SVC": MKSVC(GIVEN, p=np.inf),
    # The gap at which the paper stops.
    "SimpleMKL": MKSVC(GIVEN, p=1, solver="reduced-gradient", tol=1e-2),
    "LocalizedSVC": LocalizedSVC(GIVEN),
    "ConvexLocalizedSVC": ConvexLocalizedSVC(GIVEN),
    "KimFDA": KimFDA(GIVEN),
    "Average, SVC CV": Average(GIVEN, estimator=MKSVCCV()),
    "BestKernel, FDA CV": BestKernel(GIVEN, estimator=MKFDACV()),
    "BestKernel, SVC CV": BestKernel(GIVEN, estimator=MKSVCCV()),
    "Alignment, SVC CV": Alignment(GIVEN, estimator=MKSVCCV()),
    "PolynomialCombination": PolynomialCombination(GIVEN, estimator=MKFDA()),
    "LP-β": LPBeta(GIVEN, Cs=[1.0]),
    "LP-B": LPB(GIVEN, Cs=[1.0]),
    "CG-Boost": CGBoost(GIVEN),
    "OBSCURE, p = 2": OBSCURE(GIVEN, random_state=0),
    "EasyMKL": EasyMKL(GIVEN),
}
TWO_CLASSES = {"KimFDA"}


@dataclass(frozen=True)
class DataSet:
    """A data set; its loader gives tables by name, or ready-made kernels, and classes."""

    title: str
    loader: Callable[[], tuple[Any, np.ndarray]]

    def sample(self, n_rows: int) -> tuple[KernelStack, np.ndarray]:
        """Kernels and classes of at most `n_rows` rows, the classes in equal parts."""
        X, y = self.loader()
        rows = np.arange(len(y))
        if n_rows < len(y):
            splitter = StratifiedShuffleSplit(1, train_size=n_rows, random_state=0)
            rows = np.sort(next(splitter.split(rows, y))[0])
        if isinstance(X, np.ndarray):
            matrices = np.moveaxis(X, -1, 0)[:, rows[:, None], rows]
            # Ready-made ones have been rounded: small negative eigenvalues are taken away.
            return KernelStack.from_arrays(matrices, psd="clip"), y[rows]
        views = Views(X)[rows]
        return kernels_for(views).fit(views)(views), y[rows]


def _small_digits() -> tuple[Any, np.ndarray]:
    views, digits = _data.mfeat()
    return views, np.where(digits < 5, "0 to 4", "5 to 9")


def _leaves() -> tuple[Any, np.ndarray]:
    views, species = _data.leaves()
    rows = species <= SPECIES
    return {name: table[rows] for name, table in views.items()}, species[rows]


def _faces() -> tuple[Any, np.ndarray]:
    """Every other pixel of the quarters of the first twenty faces; ten photographs of each."""
    X, persons = _data.olivetti()
    X, persons = X[persons < 20, ::2, ::2], persons[persons < 20]
    corners = {"upper left": X[:, :16, :16], "upper right": X[:, :16, 16:]}
    corners |= {"lower left": X[:, 16:, :16], "lower right": X[:, 16:, 16:]}
    return {name: part.reshape(len(X), -1) for name, part in corners.items()}, persons


SETS = {
    "mfeat": DataSet("Multiple Features, ten digits", _data.mfeat),
    "mfeat2": DataSet("Multiple Features, digits 0–4 against 5–9", _small_digits),
    "pendigits": DataSet("Pen digits", _data.pendigits),
    "bbc": DataSet("BBC news", _data.bbc),
    "leaves": DataSet(f"Leaves of {SPECIES} species", _leaves),
    "olivetti": DataSet("Olivetti, 20 faces in four quarters", _faces),
    "jaffe": DataSet("JAFFE faces, ready-made kernels", _data.jaffe),
    "ar10p": DataSet("AR10P faces, ready-made kernels", _data.ar10p),
}


# -- running -------------------------------------------------------------------------------


def cells_folder() -> Path:
    """Where finished cells are kept: a folder for each state of the sources of the package."""
    digest = hashlib.sha256()
    root = Path(manykernels.__file__).parent
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\n".encode())
        digest.update(file.read_bytes())
    return FOLDER / digest.hexdigest()[:16]


def measured(name: str, n_rows: int, n_folds: int) -> dict[str, Any] | None:
    """All methods on one data set; None if it is not there."""
    loaded = load(name, lambda: SETS[name].sample(n_rows))
    if loaded is None:
        return None
    stack, y = loaded
    n_classes = len(np.unique(y))
    methods = {
        method: estimator
        for method, estimator in METHODS.items()
        if n_classes == 2 or method not in TWO_CLASSES
    }
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    print(SETS[name].title, file=sys.stderr)
    with threadpool_limits(1):
        comparison = compare(methods, stack, y, cv=folds, path=cells_folder(), verbose=True)
    return {
        "n_rows": len(y),
        "n_kernels": stack.n_kernels,
        "n_classes": n_classes,
        "splits": [[len(train), len(test)] for train, test in comparison.splits],
        "cells": {
            method: [
                _known(vars(comparison.cells[method, split]))
                for split in range(len(comparison.splits))
            ]
            for method in comparison.names
        },
    }


def _known(cell: dict[str, Any]) -> dict[str, Any]:
    """What is known of a cell; the numbers that are not are left out."""
    return {
        key: value
        for key, value in cell.items()
        if value is not None and value != {} and value == value
    }


# -- the page ------------------------------------------------------------------------------


def comparison_of(part: dict[str, Any]) -> Comparison:
    """What `compare` returned; of earlier runs the mean scores alone are known."""
    cells = part.get("cells") or {
        method: [{"scores": {"score": mean}}] for method, mean in part["means"].items()
    }
    sizes = part.get("splits", [[part["n_rows"], 0]])
    return Comparison(
        names=list(cells),
        scorings=list(next(iter(cells.values()))[0]["scores"]),
        splits=[(np.arange(n_train), np.arange(n_test)) for n_train, n_test in sizes],
        design="resampled",
        cells={
            (method, split): Cell(**cell)
            for method, row in cells.items()
            for split, cell in enumerate(row)
        },
    )


def ranks(results: Results) -> str:
    """Ranks over data sets, or why there are none."""
    if len(results) < 2:
        return "Ranks need several data sets."
    return rank_methods(
        {name: comparison_of(part) for name, part in results.items()}
    ).to_markdown()


def table_of(part: dict[str, Any]) -> str:
    """Scores, p-values, kernels and times of all methods on one data set."""
    if "cells" in part:
        return comparison_of(part).to_markdown()
    return "\n\n".join([markdown(part["header"], part["rows"]), *part["notes"]])


def methods_table() -> str:
    """What every method is called with."""
    rows = [[name, f"`{' '.join(repr(method).split())}`"] for name, method in METHODS.items()]
    return markdown(["method", "estimator"], rows, n_left=2)


def page(results: Results) -> str:
    """The page of the documentation."""
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    text = "\n\n".join(part.replace("\n", " ") for part in paragraphs)
    parts = [
        "# All methods, the same kernels and folds",
        f"Written by `python -m benchmarks.comparison --write`. {text}",
        environments(results),
        "## Ranks",
        ranks(results),
    ]
    for name, part in results.items():
        sizes = f"{part['n_rows']} rows, {part['n_kernels']} kernels, {part['n_classes']} classes."
        parts += [f"## {SETS[name].title}", sizes, table_of(part)]
    return "\n\n".join([*parts, "## Methods", methods_table()]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("comparison", "All methods on all sets of several views.", list(SETS))
    options = parser.parse_args(arguments)
    n_rows, n_folds = (ROWS_QUICK, FOLDS_QUICK) if options.quick else (ROWS, FOLDS)
    sets = chosen_sets(parser, options, SETS_QUICK)
    parts = ((name, measured(name, n_rows, n_folds)) for name in sets)
    found = ((name, part) for name, part in parts if part is not None)
    return int(not report("comparison", found, page, options.write, SETS))


if __name__ == "__main__":
    sys.exit(main())
