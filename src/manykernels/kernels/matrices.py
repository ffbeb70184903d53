"""Matrices, names and indices of a kernel stack in all forms that users may give, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._memory import allocate
from .samples import column_names, first_difference, row_names, same_samples
from .tables import is_frame, real_array


def check_names(names: Sequence[str], n_kernels: int) -> list[str]:
    """`names` as a list of one string per kernel, all different."""
    names = list(names)
    if n_kernels == 0:
        raise ValueError("A kernel stack needs at least one kernel.")
    if len(names) != n_kernels:
        raise ValueError(f"{n_kernels} kernels were given {len(names)} names.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Kernel names must be strings, got {name!r}.")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"Kernel names must differ; repeated: {', '.join(repeated)}.")
    return names


def check_diagonal(diagonal: Any, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    """`diagonal` as an array of this shape; `what` is its name in the error message."""
    if diagonal is None:
        return None
    diagonal = np.asarray(diagonal, dtype=np.float64)
    if diagonal.shape != shape:
        raise ValueError(f"{what} must have shape {shape}, got {diagonal.shape}.")
    return diagonal


def check_dtype(dtype: Any) -> np.dtype:
    """The type in which values of a stack are stored: float64 or float32."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float64, np.float32):
        raise ValueError(f"Kernels are stored as float64 or float32, not as dtype={dtype!r}.")
    return found


def refuse_transposed(arrays: Any) -> None:
    """Refuse an array that has the kernels along its last axis, to judge by its shape."""
    shape = np.shape(arrays) if isinstance(arrays, np.ndarray) else ()
    if len(shape) == 3 and 1 < shape[0] == shape[1] != shape[2]:
        raise ValueError(
            f"An array of shape {shape} looks like (rows, cols, n_kernels), but from_arrays takes "
            "(n_kernels, rows, cols): pass np.moveaxis(array, -1, 0). If it is a block of "
            f"{shape[0]} kernels between {shape[1]} and {shape[2]} samples, pass gram=False."
        )


# Types of arrays that are used without conversion; other subclasses may be masked arrays.
_PLAIN = (np.ndarray, np.memmap)


class Matrices(NamedTuple):
    """Kernel matrices as one array, and the names that came with them."""

    data: np.ndarray
    names: list[str]
    row_samples: np.ndarray | None
    col_samples: np.ndarray | None


def read_matrices(arrays: Any, names: Sequence[str] | None = None, dtype: Any = None) -> Matrices:
    """Read a list, a dict or an array of matrices, or of data frames.

    A C-ordered array of float64 or float32 is not copied, unless another `dtype` is asked for. By
    default matrices in single precision stay so if all of them are.
    """
    kinds: tuple[Any, ...] = (np.float32, np.float64) if dtype is None else (check_dtype(dtype),)
    if isinstance(arrays, Mapping):
        if names is not None:
            raise ValueError("The keys of a dict are the names of the kernels: leave names out.")
        names, arrays = list(arrays), list(arrays.values())
    elif is_frame(arrays) or getattr(arrays, "ndim", None) == 2:
        arrays = arrays[None] if type(arrays) in _PLAIN else [arrays]
    elif not hasattr(arrays, "__iter__") or isinstance(arrays, str | bytes):
        raise TypeError(
            "Kernel matrices come as a list, a dict or an array (n_kernels, rows, cols); got "
            f"{arrays!r}."
        )
    labels = [f"kernel{j}" for j in range(len(arrays))] if names is None else list(names)
    if (
        type(arrays) in _PLAIN
        and arrays.ndim == 3
        and arrays.dtype in kinds
        and arrays.flags.c_contiguous
    ):
        return Matrices(arrays, labels, None, None)
    matrices = list(arrays)
    if dtype is None:
        single = all(getattr(m, "dtype", None) == np.float32 for m in matrices)
        kinds = (np.float32,) if single else (np.float64,)
    data = np.empty((0, 0, 0))
    samples: dict[str, np.ndarray | None] = {"rows": None, "columns": None}
    for j, given in enumerate(matrices):
        label = labels[j] if j < len(labels) else f"kernel{j}"
        matrix = real_array(given, f"Kernel {label!r}")
        if matrix.ndim != 2:
            raise ValueError(f"Kernel {label!r} must be a matrix, got shape {matrix.shape}.")
        if j == 0:
            shape = (len(matrices), *matrix.shape)
            data = allocate(shape, kinds[0])
        if matrix.shape != data.shape[1:]:
            raise ValueError(
                f"Kernel {label!r} has shape {matrix.shape}, the first kernel {data.shape[1:]}."
            )
        for side, names_of in (("rows", row_names), ("columns", column_names)):
            found, known = names_of(given), samples[side]
            if not same_samples(found, known):
                raise ValueError(
                    f"The {side} of kernel {label!r} have other names than those of the kernels "
                    f"before it: {first_difference(found, known)}."
                )
            samples[side] = known if found is None else found
        # What is too large for single precision becomes infinite, and is refused with its place.
        with np.errstate(over="ignore"):
            data[j] = matrix
    return Matrices(data, labels, samples["rows"], samples["columns"])


def positions(key: Any, size: int) -> np.ndarray:
    """Positions, among `size` samples, that a slice, a mask or integers choose."""
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


def chosen_kernels(key: Any, names: list[str]) -> np.ndarray:
    """Positions of the kernels that a name, names, positions, a slice or a mask choose."""
    if isinstance(key, str):
        key = [key]
    if isinstance(key, list | tuple | np.ndarray) and any(isinstance(k, str) for k in key):
        unknown = [k for k in key if k not in names]
        if unknown:
            raise ValueError(f"There is no kernel {unknown[0]!r}, only {', '.join(names)}.")
        key = [names.index(k) for k in key]
    index = list(key) if isinstance(key, tuple) else key
    try:
        chosen = np.atleast_1d(np.arange(len(names))[index])
    except IndexError as error:
        raise IndexError(
            f"{key!r} chooses none of the {len(names)} kernels ({error}): give names, positions, "
            "a slice or a mask."
        ) from error
    if chosen.ndim != 1 or not len(chosen):
        raise ValueError(f"{key!r} chooses no kernel of {', '.join(names)}.")
    return chosen
