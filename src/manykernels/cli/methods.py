"""The estimator that was asked for, and the kernels of its views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer

from ..estimators import MKFDACV, MKSVCCV, MKSVRCV, MKRidgeCV
from ..kernels import Kernel, KernelUnion, Views, auto_kernels
from ..kernels.given import as_union
from ..scale import Approximation, Nystrom, RandomFeatures
from .errors import DataError, UsageError
from .request import Request
from .samples import Samples

_ESTIMATORS = {
    ("classification", "fisher"): MKFDACV,
    ("classification", "svm"): MKSVCCV,
    ("regression", "fisher"): MKRidgeCV,
    ("regression", "svm"): MKSVRCV,
}
# Their number of landmarks or features comes first; by default it is theirs.
_APPROXIMATIONS = {"nystrom": Nystrom, "random": RandomFeatures}


def estimator_for(request: Request, samples: Samples) -> Any:
    """Not fitted, with the kernels of the request or, where it names none, default ones."""
    options: dict[str, Any] = {"ps": request.p, "regs": request.reg, "Cs": request.C}
    options = {name: list(values) for name, values in options.items() if values is not None}
    if request.approximation != "exact":
        options["approximation"] = approximation_of(request)
    kernels = "precomputed" if samples.precomputed else kernels_of(request, samples.X)
    method = _ESTIMATORS[samples.task, request.machine]
    return method(kernels, missing=request.missing, **options)


def approximation_of(request: Request) -> Approximation | str:
    """From a text such as ``nystrom:200``."""
    name, colon, size = request.approximation.partition(":")
    if request.machine != "fisher":
        raise UsageError("--approximation goes with --machine fisher only.")
    if name == "auto" and not colon:
        return name
    if name not in _APPROXIMATIONS or (colon and not (size.isascii() and size.isdecimal())):
        raise UsageError(
            f"approximation is exact, auto, nystrom, nystrom:200, random or random:400, not "
            f"{request.approximation!r}."
        )
    return _APPROXIMATIONS[name](int(size) if colon else None)


def kernels_of(request: Request, views: Views) -> Any:
    """Kernels of every view; None if all have their default ones and nothing is filled in."""
    if not request.impute:
        _refuse_empty_cells(views)
    if not request.impute and not any(view.kernels for view in request.views):
        return None
    found: dict[str, Any] = {}
    for view in request.views:
        kernels: Any = list(view.kernels) if len(view.kernels) != 1 else view.kernels[0]
        table = views[view.name]
        if request.impute and isinstance(table, pd.DataFrame):
            found[view.name] = _imputed(kernels, table)
        else:
            found[view.name] = kernels or None
    return found


def _imputed(kernels: Any, table: pd.DataFrame) -> KernelUnion:
    """Kernels of what a table is after its empty cells have been filled in."""
    union = as_union(kernels if kernels else auto_kernels(_imputer(table).fit_transform(table)))
    return KernelUnion(
        [
            (name, kernel.after(_imputer(_seen(kernel, table))))
            for name, kernel in dict(union.kernels).items()
        ]
    )


def _seen(kernel: Kernel, table: pd.DataFrame) -> pd.DataFrame:
    """The columns that a kernel compares: what comes before it is given no others."""
    names = [kernel.columns] if isinstance(kernel.columns, str) else kernel.columns
    return table if names is None else table[list(names)]


def _imputer(table: pd.DataFrame) -> ColumnTransformer | SimpleImputer:
    """The median of numbers, the most frequent one of other values."""
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    others = table.columns.difference(numbers, sort=False).tolist()
    parts = [
        ("numbers", SimpleImputer(strategy="median"), numbers),
        ("others", SimpleImputer(strategy="most_frequent"), others),
    ]
    used = [part for part in parts if part[2]]
    # A transformer of chosen columns looks for each of them among all, which takes long for many.
    _, filled, _ = used[0]
    if len(used) > 1:
        filled = ColumnTransformer(used, verbose_feature_names_out=False)
    return filled.set_output(transform="pandas")


def _refuse_empty_cells(views: Views) -> None:
    for name, table in views.items():
        if not isinstance(table, pd.DataFrame):
            continue
        empty = table.isna().to_numpy()
        if empty.any():
            row, column = np.argwhere(empty)[0]
            raise DataError(
                f"View {name!r} has empty cells ({int(empty.sum())}), the first in column "
                f"{table.columns[column]!r} of {str(table.index[row])!r}: fill them in, or pass "
                "--impute, which takes the median of a column, of texts the most frequent one."
            )
