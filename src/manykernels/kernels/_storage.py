"""What a kernel stack is made from: names, matrices, diagonals and positions, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._memory import allocate


def check_names(names: Sequence[str], n_kernels: int) -> list[str]:
    names = list(names)
    if n_kernels == 0:
        raise ValueError("A kernel stack needs at least one kernel.")
    if len(names) != n_kernels:
        raise ValueError(f"{n_kernels} kernels were given {len(names)} names.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Kernel names must be strings, got {name!r}.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"Kernel names must differ; repeated: {', '.join(repeated)}.")
    return names


def check_diagonal(diagonal: Any, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    if diagonal is None:
        return None
    diagonal = np.asarray(diagonal, dtype=np.float64)
    if diagonal.shape != shape:
        raise ValueError(f"{what} must have shape {shape}, got {diagonal.shape}.")
    return diagonal


def refuse_transposed(arrays: Any) -> None:
    shape = np.shape(arrays) if isinstance(arrays, np.ndarray) else ()
    if len(shape) == 3 and 1 < shape[0] == shape[1] != shape[2]:
        raise ValueError(
            f"An array of shape {shape} looks like (rows, cols, n_kernels), but from_arrays takes "
            "(n_kernels, rows, cols): pass np.moveaxis(array, -1, 0). If it is a block of "
            f"{shape[0]} kernels between {shape[1]} and {shape[2]} samples, pass gram=False."
        )


def holds_floats(array: Any, shape: tuple[int, ...] | None = None) -> bool:
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.flags.c_contiguous
        and shape in (None, array.shape)
    )


def storage_array(arrays: Any, names: Sequence[str] | None = None) -> np.ndarray:
    """Matrices in any accepted form as one float64 array (n_kernels, rows, cols)."""
    if isinstance(arrays, np.ndarray) and arrays.ndim == 2:
        arrays = arrays[None]
    if holds_floats(arrays) and arrays.ndim == 3 and len(arrays):
        return arrays
    matrices = list(arrays)
    if not matrices:
        raise ValueError("A kernel stack needs at least one kernel.")
    labels = list(names) if names is not None else [f"kernel{j}" for j in range(len(matrices))]
    data = None
    for j, matrix in enumerate(matrices):
        label = labels[j] if j < len(labels) else f"kernel{j}"
        try:
            matrix = np.asarray(matrix, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"Kernel {label!r} does not hold numbers only: {error}") from error
        if matrix.ndim != 2:
            raise ValueError(f"Kernel {label!r} must be a matrix, got shape {matrix.shape}.")
        if data is None:
            data = allocate((len(matrices), *matrix.shape))
        if matrix.shape != data.shape[1:]:
            raise ValueError(
                f"Kernel {label!r} has shape {matrix.shape}, the first kernel {data.shape[1:]}."
            )
        data[j] = matrix
    assert data is not None
    return data


def positions(key: Any, size: int) -> np.ndarray:
    """Positions chosen by a slice, mask or integer array along an axis of `size` samples."""
    if key is Ellipsis:
        return np.arange(size)
    if isinstance(key, int | np.integer):
        raise TypeError(
            "A KernelStack is indexed by samples: use a slice or an array, not an int."
        )
    if not isinstance(key, slice):
        key = np.asarray(key).ravel()
        if key.size == 0:
            key = key.astype(np.intp)
    return np.arange(size)[key]


def take(array: np.ndarray | None, positions: np.ndarray, axis: int = 1) -> np.ndarray | None:
    return None if array is None else np.take(array, positions, axis=axis)
