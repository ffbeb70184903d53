"""Reading X, training or new: tables, several of them, and kernel matrices, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._sklearn import num_samples
from ..kernels import KernelStack, Views
from ..kernels.checks import check_finite
from ..kernels.completion import refuse_samples_without_kernels
from ..kernels.given import transforms
from ..kernels.matrices import read_matrices
from ..kernels.samples import column_names, row_names
from ..kernels.tables import (
    check_numbers,
    copied,
    is_frame,
    naming,
    refuse_infinite,
    refuse_repeated_columns,
)
from ..kernels.view_tables import column_of_strings
from ..kernels.views import as_views
from ..scale.blocks import refuse_unread


def may_lack_views(estimator: Any) -> bool:
    """Whether samples may lack views, by the parameter ``missing`` of an estimator."""
    return getattr(estimator, "missing", "error") != "error"


def may_have_gaps(estimator: Any) -> bool:
    """Whether numbers may be missing: because samples may lack views, or kernels fill them in."""
    return may_lack_views(estimator) or (
        not estimator._is_precomputed and transforms(estimator.kernels)
    )


def read_views(estimator: Any, X: Any, training: Views | None = None) -> Views:
    """Several tables, checked; those of new samples are brought into the order of `training`."""
    may_lack = may_lack_views(estimator)
    views = as_views(X, join="outer" if may_lack else "exact")
    if training is not None:
        views = views.like(training, may_lack=may_lack)
    if not may_lack:
        views.refuse_lacking()
    refuse_samples_without_kernels(views.present.T, views.names, views.labels, "views")
    return views


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """A table for kernels: numbers, a sparse matrix, a data frame or strings, checked.

    With `reset` its features are recorded on the estimator, else compared with those recorded.
    """
    if isinstance(X, KernelStack):
        raise ValueError('A KernelStack is passed with kernels="precomputed".')
    refuse_unread(X)
    if is_frame(X):
        with naming("X"):
            refuse_repeated_columns(X)
        # Kernels select columns by name and check them, so the data frame is not converted.
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        if num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s): the table has no rows.")
        if X.shape[1] == 0:
            raise ValueError("Found array with 0 feature(s): the table has no columns.")
        return copied(X) if reset else X
    if (strings := column_of_strings(X)) is not None:
        validate_data(estimator, strings, skip_check_array=True, reset=reset)
        return strings
    check_numbers(X, "X", "Tables with text are passed as data frames.")
    table = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite=False,
        reset=reset,
        copy=reset,
    )
    # Kernels say which value is missing, or fill it in by a transformer of theirs.
    refuse_infinite(table, "X")
    return table


def is_list_of_tables(X: Any) -> bool:
    """Whether X is a list of arrays or frames of two dimensions, not a table itself."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(len(getattr(one, "shape", ())) == 2 for one in X)


def unchecked_stack(matrices: Any, *, gram: bool) -> KernelStack:
    """A dict or list of kernel matrices as a stack, which :func:`check_stack` has not seen."""
    data, names, rows, cols = read_matrices(matrices)
    if gram and data.shape[1] != data.shape[2]:
        _refuse_not_square(data)
    return KernelStack(data, names, gram=gram).with_samples(rows, cols)


def _refuse_not_square(matrices: np.ndarray) -> None:
    raise ValueError(
        "X should be a square kernel matrix of the training samples (or an array "
        f"(rows, rows, n_kernels)); got {matrices.shape[1]} x {matrices.shape[2]}."
    )


def read_stack(estimator: BaseEstimator, X: Any, *, training: bool) -> tuple[KernelStack, float]:
    """Kernel matrices as a stack, not yet checked, and the rounding error of their entries.

    A 3-D array is (rows, cols, n_kernels), a dict or list has a matrix for each kernel. Integers
    may have been rounded from other numbers: their rounding error is 1. Rows and columns of a data
    frame name the samples.
    """
    if isinstance(X, KernelStack):
        return X, 0.0
    if isinstance(X, Mapping) or is_list_of_tables(X):
        given = X.values() if isinstance(X, Mapping) else X
        integers = [np.asarray(one).dtype.kind in "biu" for one in given]
        return unchecked_stack(X, gram=training), float(any(integers))
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim == 3:
        if training and array.shape[1] == array.shape[2] != array.shape[0]:
            raise ValueError(
                f"An array of shape {array.shape} looks like (n_kernels, rows, cols); a "
                "3-D X is (rows, cols, n_kernels): pass np.moveaxis(X, 0, -1), or "
                "KernelStack.from_arrays(X)."
            )
        matrices = read_matrices(list(np.moveaxis(array, -1, 0))).data
    else:
        if is_frame(X):
            with naming("X"):
                refuse_repeated_columns(X)
        check_numbers(X, "X")
        if array.ndim == 2 and array.dtype.kind == "f":
            # scikit-learn checks it, too, but does not say where the entry is.
            check_finite(array, "kernel0")
        matrices = validate_data(estimator, X, dtype=[np.float64, np.float32], reset=training)
        matrices = matrices[None]
    if training and matrices.shape[1] != matrices.shape[2]:
        _refuse_not_square(matrices)
    names = [f"kernel{j}" for j in range(len(matrices))]
    rounding = float(np.issubdtype(array.dtype, np.integer))
    stack = KernelStack(np.ascontiguousarray(matrices), names, gram=training)
    return stack.with_samples(row_names(X), column_names(X)), rounding
