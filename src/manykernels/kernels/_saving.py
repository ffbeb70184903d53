"""Stacks in files: mapped from a .npy file, or saved with all that belongs to them as .npz.

A saved stack is an archive of arrays, as ``numpy.savez`` writes it. Reading one, nothing is
believed that can be checked: sizes are compared with what is there before memory is taken, what
the kernels are said to be is found out again, and no object is ever unpickled.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from .._files import npy_header, replacing
from .._memory import require_memory, storage
from ._arithmetic import KernelArithmetic
from ._naming import naming
from .checks import IndefiniteKernelError, check_stack

# The vectors of (*) other than the scale; a stack with all of it in its data has none.
VECTORS = ("_row_factor", "_col_factor", "_row_offset", "_col_offset")
_FLAGS = ("gram", "checked", "centered", "_bounded", "_bounded_if_centered")
_REQUIRED = ("data", "names", "flags")
_OPTIONAL = ("row_diag", "col_diag", "features", "row_samples", "col_samples")
# Most bytes of an archive beside its arrays: names of members and where they are.
_DIRECTORY_BYTES = 2**14
_READ_BYTES = 2**24
# Rounding of means of centred kernels, and of diagonals kept beside them.
_ROUNDING = 1e-8


class SavedStack(KernelArithmetic):
    """How a stack gets into a file and out of it; base of ``KernelStack``."""

    _like: Callable[..., Self]

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def _is_plain(self) -> bool:
        """Whether the data are the kernels, with no transform left outside of them."""
        return all(getattr(self, name) is None for name in VECTORS) and bool(
            np.all(self._scale == 1.0)
        )

    @property
    def _plain_dtype(self) -> np.dtype:
        """What the values are written in: as they are, or as precisely as transforms are."""
        return self.dtype if self._is_plain else np.dtype(np.float64)

    def materialized(self, memmap: str | Path | None = None) -> Self:
        """Copy with all transforms written into the data, in memory or in the file `memmap`.

        The file appears, or takes the place of an older one, when all of it is written. A stack
        that is mapped from the older one keeps its values.
        """
        with storage(self.data.shape, memmap, self._plain_dtype) as space:
            for j in range(self.n_kernels):
                for rows in self._row_blocks():
                    space.data[j, rows] = self._values(j, rows)
        plain = dict.fromkeys(VECTORS)
        return self._like(space.data, _scale=np.ones(self.n_kernels), **plain)

    # -- files -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write names, values and diagonals to a .npz file, transforms applied.

        The file appears, or takes the place of an older one, when all of it is written. Values
        are written block by block: a stack on disk is not copied into memory.
        """
        _write(self, path)

    @classmethod
    def load(cls, path: str | Path, *, psd: str | None = None) -> Self:
        """Read a stack written by :meth:`save`.

        What the file says of its kernels is not taken on trust: they are checked as by
        :meth:`from_arrays`.

        Parameters
        ----------
        path : path
        psd : {"raise", "exact", "clip", "ignore"}, optional
            What to do with significant negative eigenvalues, see :func:`check_stack`. By default
            they are no error yet: the stack is returned unchecked, and a method that cannot take
            them refuses it.

        Raises
        ------
        ValueError
            With the path, if the file is empty, damaged or not a saved stack, or a kernel is not
            finite or not symmetric.
        MemoryError
            If the values do not fit into memory, before they are read.
        """
        contents = _read(path)
        with naming(str(path)):
            return contents.stack(cls, psd)


# -- writing -------------------------------------------------------------------------------


def _write(stack: SavedStack, path: str | Path) -> None:
    arrays: dict[str, Any] = {
        "names": np.array(stack.names),
        "flags": np.array([getattr(stack, flag) for flag in _FLAGS]),
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
                blocks = _value_blocks(stack) if name == "data" else iter([arrays[name]])
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    member.write(header)
                    for block in blocks:
                        member.write(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)
        # What was reserved and not needed.
        file.truncate(file.tell())


def _value_blocks(stack: SavedStack) -> Iterator[np.ndarray]:
    for j in range(stack.n_kernels):
        for rows in stack._row_blocks():
            yield stack._values(j, rows).astype(stack._plain_dtype, copy=False)


# -- reading -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Contents:
    """The arrays of a saved stack, by name; those it does not have are None."""

    data: np.ndarray
    names: list[str]
    gram: bool
    centered: bool
    arrays: dict[str, np.ndarray | None]

    def stack(self, kind: Any, psd: str | None) -> Any:
        """A stack of class `kind`, after what the file says of it has been found true."""
        diagonals = {name: self.arrays[name] for name in ("row_diag", "col_diag")}
        stack = kind(self.data, self.names, gram=self.gram, **diagonals)
        stack = stack.with_samples(self.arrays["row_samples"], self.arrays["col_samples"])
        if self.arrays["features"] is not None:
            stack = stack.with_features(self.arrays["features"])
        if self.gram:
            _check_own_diagonals(stack)
        stack = _checked(stack) if psd is None else check_stack(stack, psd)
        # Weighted means cannot be found again; centring once more does no harm.
        centered = self.centered and self.gram and _means_vanish(stack)
        return stack._changed(centered=centered)


def _checked(stack: Any) -> Any:
    """The stack with the strongest mark that it deserves, finite and symmetric in any case."""
    for centered in (False, True):
        try:
            return check_stack(stack, "raise", centered=centered)
        except IndefiniteKernelError:
            continue
    return check_stack(stack, "ignore")._changed(checked=False)


def _check_own_diagonals(stack: Any) -> None:
    for j, name in enumerate(stack.names):
        diagonal = stack.data[j].diagonal()
        for what in ("row_diag", "col_diag"):
            far = np.abs(getattr(stack, what)[j] - diagonal)
            if far.max(initial=0.0) > _ROUNDING * np.abs(stack.data[j]).max(initial=0.0):
                raise ValueError(
                    f"{what} of kernel {name!r} is not its diagonal: {far.max():.3g} apart at "
                    f"sample {far.argmax()}."
                )


def _means_vanish(stack: Any) -> bool:
    means = np.abs(stack.data.mean(axis=1, dtype=np.float64)).max(axis=1, initial=0.0)
    return bool(np.all(means <= _ROUNDING * np.abs(stack.data).max(axis=(1, 2), initial=0.0)))


def _read(path: str | Path) -> _Contents:
    try:
        with zipfile.ZipFile(path) as archive:
            present = {name.removesuffix(".npy") for name in archive.namelist()}
            missing = sorted(set(_REQUIRED) - present)
            if missing:
                raise ValueError(f"it has no {', '.join(missing)}")
            wanted = [name for name in (*_REQUIRED, *_OPTIONAL) if name in present]
            arrays = {name: _array(archive, name) for name in wanted}
    except zipfile.BadZipFile as error:
        if Path(path).stat().st_size == 0:
            raise ValueError(f"{path} is not a saved KernelStack: it is empty.") from error
        raise ValueError(
            f"{path} is not a saved KernelStack, or only the beginning of one: {error}."
        ) from error
    except (
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        zlib.error,
    ) as error:
        raise ValueError(f"{path} is not a saved KernelStack: {error}.") from error
    flags = arrays["flags"]
    if flags.dtype != bool or flags.shape != (len(_FLAGS),):
        raise ValueError(f"{path} is not a saved KernelStack: its flags are {flags!r}.")
    told = dict(zip(_FLAGS, flags.tolist(), strict=True))
    return _Contents(
        data=np.ascontiguousarray(arrays["data"]),
        names=[str(name) for name in arrays["names"]],
        gram=told["gram"],
        centered=told["centered"],
        arrays={name: arrays.get(name) for name in _OPTIONAL},
    )


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One array of the archive; memory is taken only for as much as is there."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as member:
        shape, fortran, dtype = _header(member)
        if dtype.hasobject:
            raise ValueError(
                f"{name} holds Python objects, which are not read (allow_pickle=False)"
            )
        n_bytes = dtype.itemsize * prod(shape)
        if member.tell() + n_bytes != info.file_size:
            raise ValueError(
                f"{name} should have {n_bytes} bytes for its shape {shape}, and has "
                f"{info.file_size - member.tell()}"
            )
        require_memory(shape, f"{name} of {archive.filename}", dtype)
        array = np.empty(shape, dtype, order="F" if fortran else "C")
        flat = array.reshape(-1, order="A").view(np.uint8)
        start = 0
        while start < n_bytes:
            part = np.frombuffer(member.read(_READ_BYTES), np.uint8)
            if not len(part):
                raise ValueError(f"{name} ends after {start} of {n_bytes} bytes")
            flat[start : start + len(part)] = part
            start += len(part)
        # Reading on to the end has the checksum compared.
        member.read(1)
    return array


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(member)
    return np.lib.format.read_array_header_2_0(member)
