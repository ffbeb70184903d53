"""Stacks saved as .npz archives of arrays, as ``numpy.savez`` writes them.

A file may be damaged or forged. So the sizes in its headers are compared with the sizes of its
members before memory is allocated, its claims about the kernels are checked, and nothing is
unpickled.
"""

from __future__ import annotations

import zipfile
import zlib
from contextlib import suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import npy_header, read_npy_header, replacing
from .._memory import require_memory
from .checks import SAME_ENTRY, IndefiniteKernelError, check_stack
from .tables import naming

if TYPE_CHECKING:
    from .stack import KernelStack

# Order of the booleans in the array "flags". Only "gram" and "centered" are read again.
_FLAGS = ("gram", "checked", "centered", "psd", "psd_if_centered")
_REQUIRED = ("data", "names", "flags")
_OPTIONAL = ("row_diag", "col_diag", "features", "row_samples", "col_samples", "views")
# Upper bound of the bytes of an archive besides its arrays: at most nine members, each with two
# directory entries of some hundred bytes.
_DIRECTORY_BYTES = 2**14
# What NumPy and zipfile raise when an archive or an array in it is damaged, besides BadZipFile.
_DAMAGED = (ValueError, TypeError, ArithmeticError, EOFError, RuntimeError, zlib.error)


def write_stack(stack: KernelStack, path: str | Path) -> None:
    """Write a stack to `path`; an older file is replaced once the new one is complete."""
    arrays: dict[str, Any] = {
        "names": np.array(stack.names),
        "flags": np.array([getattr(stack.guarantees, flag) for flag in _FLAGS]),
    }
    arrays |= {name: getattr(stack, name) for name in _OPTIONAL}
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}
    members = {name: npy_header(array.shape, array.dtype) for name, array in arrays.items()}
    members["data"] = npy_header(stack.data.shape, stack._plain_dtype)
    n_bytes = stack._plain_dtype.itemsize * stack.data.size + _DIRECTORY_BYTES
    n_bytes += sum(array.nbytes for array in arrays.values()) + sum(map(len, members.values()))
    with replacing(path, n_bytes) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, header in members.items():
                kernels = (block for _, _, block in stack._blocks())
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    member.write(header)
                    for block in kernels if name == "data" else [arrays[name]]:
                        member.write(block.reshape(-1).view(np.uint8).data)
        # Release space that was reserved and not needed.
        file.truncate(file.tell())


def read_stack(kind: type[KernelStack], path: str | Path, psd: str | None) -> Any:
    """The stack of class `kind` in a file, checked; see :meth:`KernelStack.load`."""
    arrays = _read_arrays(path)
    claimed = dict(zip(_FLAGS, arrays["flags"].tolist(), strict=True))
    row_diag, col_diag, features, row_samples, col_samples, views = map(arrays.get, _OPTIONAL)
    with naming(str(path)):
        stack: Any = kind(
            np.ascontiguousarray(arrays["data"]),
            [str(name) for name in arrays["names"]],
            row_diag=row_diag,
            col_diag=col_diag,
            gram=claimed["gram"],
        )
        stack = stack.with_samples(row_samples, col_samples).with_views(views)
        if features is not None:
            stack = stack.with_features(features)
        if stack.gram:
            _check_own_diagonals(stack)
        stack = _checked(stack) if psd is None else check_stack(stack, psd, missing=True)
    # Sample weights are not saved, so kernels centred by a weighted mean do not count as centred;
    # they can be centred once more without harm.
    centered = claimed["centered"] and stack.gram and _means_vanish(stack)
    return stack._changed(guarantees=replace(stack.guarantees, centered=centered))


def _checked(stack: Any) -> Any:
    """The stack with the strongest guarantee that holds; refused if not finite and symmetric."""
    for centered in (False, True):
        with suppress(IndefiniteKernelError):
            return check_stack(stack, "raise", centered=centered, missing=True)
    stack = check_stack(stack, "ignore", missing=True)
    return stack._changed(guarantees=replace(stack.guarantees, checked=False))


def _check_own_diagonals(stack: Any) -> None:
    """Refuse saved diagonals that are not those of the saved Gram matrices."""
    for j, name in enumerate(stack.names):
        diagonal = stack.data[j].diagonal()
        for what in ("row_diag", "col_diag"):
            given = getattr(stack, what)[j]
            # Samples that lack the kernel have no self-similarity.
            far = np.abs(np.where(np.isnan(given) & np.isnan(diagonal), 0.0, given - diagonal))
            if not far.max(initial=0.0) <= SAME_ENTRY * _largest(stack.data[j]):
                raise ValueError(
                    f"{what} of kernel {name!r} is not its diagonal: {far.max():.3g} apart at "
                    f"sample {far.argmax()}."
                )


def _means_vanish(stack: Any) -> bool:
    means = np.abs(stack.data.mean(axis=1, dtype=np.float64)).max(axis=1, initial=0.0)
    return bool(np.all(means <= SAME_ENTRY * np.array([_largest(one) for one in stack.data])))


def _largest(matrix: np.ndarray) -> float:
    """The largest absolute value that is not NaN, without a copy."""
    highest = np.fmax.reduce(matrix, axis=None, initial=0.0)
    return float(max(highest, -np.fmin.reduce(matrix, axis=None, initial=0.0)))


def _read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a saved stack by name; optional ones may be missing."""
    try:
        with zipfile.ZipFile(path) as archive:
            present = {name.removesuffix(".npy") for name in archive.namelist()}
            missing = sorted(set(_REQUIRED) - present)
            if missing:
                raise ValueError(f"it has no {', '.join(missing)}")
            wanted = [name for name in (*_REQUIRED, *_OPTIONAL) if name in present]
            arrays = {name: _array(archive, name) for name in wanted}
        flags = arrays["flags"]
        if flags.dtype != bool or flags.shape != (len(_FLAGS),):
            raise ValueError(f"its flags are {flags!r}")
        return arrays
    except zipfile.BadZipFile as error:
        if Path(path).stat().st_size == 0:
            raise ValueError(f"{path} is not a saved KernelStack: it is empty.") from error
        raise ValueError(
            f"{path} is not a saved KernelStack, or only the beginning of one: {error}."
        ) from error
    except _DAMAGED as error:
        raise ValueError(f"{path} is not a saved KernelStack: {error}.") from error


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One array of the archive, read only if its size is the one its header gives."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as member:
        shape, dtype = read_npy_header(member)
        n_bytes, present = dtype.itemsize * prod(shape), info.file_size - member.tell()
    if n_bytes != present and not dtype.hasobject:
        raise ValueError(
            f"{name} should have {n_bytes} bytes for its shape {shape}, and has {present}"
        )
    require_memory(shape, f"{name} of {archive.filename}", dtype)
    with archive.open(info) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        # zipfile compares the checksum only when the end of a member is reached.
        member.read(1)
    return array
