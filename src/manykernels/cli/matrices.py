"""Kernel matrices from .npz files and those of MATLAB.

Arrays of two dimensions are kernels, by their names; those of one dimension are columns about the
samples, such as their labels and the target.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from ..persistence.archive import check_array
from .mat5 import read_mat5


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


def read_mat(path: Path, most: int) -> dict[str, np.ndarray]:
    """Variables by name; a vector, which MATLAB has as a matrix, in one dimension."""
    found = {name: np.asarray(value) for name, value in read_mat5(path, most).items()}
    return {
        name: array.ravel() if array.ndim == 1 or 1 in array.shape else array
        for name, array in found.items()
    }


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
