"""Kernel matrices from .npz files and those of MATLAB.

Arrays of two dimensions are kernels, by their names; those of one dimension are columns about the
samples, such as their labels and the target.
"""

from __future__ import annotations

import io
import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..persistence.archive import check_array

# Bytes of a number in memory.
_NUMBER = 8
# The beginning of a file of MATLAB 7.3, which is in the format HDF5.
_HDF5 = b"MATLAB 7.3"


def size_of_npz(path: Path) -> int:
    """Bytes that the members of an archive unpack to, as its directory says."""
    with zipfile.ZipFile(path) as archive:
        return sum(info.file_size for info in archive.infolist())


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Arrays by name; nothing is unpickled."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            content = archive.read(info)
            check_array(content, name)
            arrays[name] = np.load(io.BytesIO(content), allow_pickle=False)
    return arrays


def size_of_mat(path: Path) -> int:
    """Bytes that the variables of a file take, as their headers say."""
    from scipy.io import whosmat

    with path.open("rb") as file:
        if file.read(len(_HDF5)) == _HDF5:
            raise ValueError(
                "it is a file of MATLAB 7.3, which is not read: save it with -v7, as in "
                "save('kernels.mat', '-v7', …)"
            )
    return sum(prod(map(int, shape)) * _NUMBER for _, shape, _ in whosmat(path))


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """Variables by name."""
    from scipy.io import loadmat

    found = loadmat(path, chars_as_strings=True)
    arrays = {name: value for name, value in found.items() if not name.startswith("__")}
    return {name: _unwrapped(value, name) for name, value in arrays.items()}


def _unwrapped(value: Any, name: str) -> np.ndarray:
    """A vector, which MATLAB has as a matrix, in one dimension; a cell of texts as texts."""
    if not isinstance(value, np.ndarray):
        value = value.toarray()  # a sparse matrix
    if value.dtype == object:
        cells = [np.ravel(cell) for cell in value.ravel()]
        if not all(len(cell) == 1 and isinstance(cell[0], str) for cell in cells):
            raise ValueError(f"its variable {name!r} is neither numbers nor texts")
        return np.array([str(cell[0]) for cell in cells])
    return value.ravel() if 1 in value.shape or value.ndim == 1 else value


def sorted_arrays(
    arrays: dict[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Kernels, all of one shape, and columns of as many rows."""
    kernels = {name: array for name, array in arrays.items() if array.ndim == 2}
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    if not kernels:
        raise ValueError("it has no array of two dimensions, which would be a kernel")
    for name, array in arrays.items():
        if array.ndim not in (1, 2):
            raise ValueError(f"its array {name!r} has {array.ndim} dimensions, not one or two")
    first, *others = kernels.items()
    for name, kernel in kernels.items():
        if kernel.dtype.kind not in "biuf":
            raise ValueError(f"its array {name!r} holds no numbers")
    for name, kernel in others:
        if kernel.shape != first[1].shape:
            raise ValueError(
                f"its kernels differ in size: {first[0]!r} is {first[1].shape}, {name!r} is "
                f"{kernel.shape}"
            )
    for name, column in columns.items():
        if len(column) != len(first[1]):
            raise ValueError(
                f"its array {name!r} has {len(column)} entries, its kernels {len(first[1])} rows"
            )
    kinds = {
        name: column.astype(str) if column.dtype.kind in "SU" else column
        for name, column in columns.items()
    }
    return kernels, kinds
