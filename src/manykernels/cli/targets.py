"""Targets: classes or numbers, and features that are the target under another name."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..kernels import Views
from .errors import DataError
from .talking import note

# Numbers with more different values than this are those of a regression; fewer whole ones are
# classes.
_MOST_CLASSES = 20


def task_of(y: pd.Series) -> str:
    """Whether a target is of classes: texts, truth values, or few different whole numbers."""
    if not _are_numbers(y):
        return "classification"
    values = y.unique()
    few = len(values) <= _MOST_CLASSES and _are_whole(y)
    return "classification" if few else "regression"


def as_targets(y: pd.Series, task: str) -> pd.Series:
    """The target as estimators take it, or a word about why they cannot."""
    if task == "regression":
        if not _are_numbers(y):
            raise DataError(f"The target of a regression is numbers; here is {y.iloc[0]!r}.")
        infinite = y.index[~np.isfinite(y)]
        if len(infinite):
            raise DataError(f"The target of {str(infinite[0])!r} is infinite.")
        return y.astype(float)
    if y.nunique() < 2:
        raise DataError(f"All samples have the same target, {y.iloc[0]!r}: nothing to learn.")
    if _are_numbers(y):
        # Empty cells, whose samples have been left out, have made floats of whole numbers.
        return y.astype(int) if _are_whole(y) else y
    return y.astype(str).astype(object)


def _are_numbers(y: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)


def _are_whole(y: pd.Series) -> bool:
    return bool(np.isfinite(y).all() and (y == np.floor(y)).all())


def tell_leaks(views: Views, y: pd.Series, task: str) -> None:
    """A word about columns that tell the target exactly."""
    for name, table in views.items():
        if not isinstance(table, pd.DataFrame):
            continue
        own = y.iloc[np.flatnonzero(views.has(name))]
        for column in table.columns:
            if _tells(table[column], own, task):
                note(
                    f"column {column!r} of view {name!r} tells the target exactly: is it the "
                    "answer under another name? Then leave it out, by naming the other columns."
                )


def _tells(column: pd.Series, y: pd.Series, task: str) -> bool:
    """Whether there is one value for every class, or the number itself."""
    if task == "regression":
        return pd.api.types.is_numeric_dtype(column) and np.array_equal(column, y)
    values, classes = pd.factorize(column)[0], pd.factorize(y)[0]
    return bool(classes.any()) and np.array_equal(values, classes)
