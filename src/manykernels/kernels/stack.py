"""KernelStack: several kernel matrices of the same samples as one array-like object.

A stack holds its matrices once, read-only, as ``data[j, r, c]``. Transforms are vectors beside
them (:mod:`manykernels.kernels.operators`), so that centring and scaling copy no data.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..utils.files import npy_header, read_npy_header, replacing
from ..utils.numerics import allocate, require_memory
from ..utils.storable import storable
from ..utils.versions import Html, html, shortened
from .checks import SAME_ENTRY, IndefiniteKernelError, check_stack
from .matching import check_samples, column_names, first_difference, row_names, same_samples
from .operators import Guarantees, Samples, StoredArray, StoredKernels, take
from .tables import is_frame, naming, real_array

if TYPE_CHECKING:
    from .views import Views

# -- Validation of matrices, names and indices ----------------------------------------------------


def check_names(names: Sequence[str], n_kernels: int) -> list[str]:
    """Validate that there is one unique name per kernel, and return them as a list."""
    names = list(names)
    if n_kernels == 0:
        raise ValueError("A kernel stack needs at least one kernel.")
    if len(names) != n_kernels:
        raise ValueError(f"names has {len(names)} entries, but there are {n_kernels} kernels.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Kernel names must be strings, got {name!r}.")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"Kernel names must differ; repeated: {', '.join(repeated)}.")
    return names


def check_diagonal(
    diagonal: ArrayLike | None, shape: tuple[int, ...], name: str
) -> np.ndarray | None:
    """Return `diagonal` as an array of this shape; `name` is used in the error message."""
    if diagonal is None:
        return None
    diagonal = np.asarray(diagonal, dtype=np.float64)
    if diagonal.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {diagonal.shape}.")
    return diagonal


def check_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the type of stored values, which must be float64 or float32."""
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved not in (np.float64, np.float32):
        raise ValueError(f"Kernels are stored as float64 or float32, not as dtype={dtype!r}.")
    return resolved


def refuse_transposed(arrays: object) -> None:
    """Raise an error for an array whose shape suggests kernels along the last axis."""
    shape = np.shape(arrays) if isinstance(arrays, np.ndarray) else ()
    if len(shape) == 3 and 1 < shape[0] == shape[1] != shape[2]:
        raise ValueError(
            f"An array of shape {shape} looks like (rows, cols, n_kernels), but from_arrays takes "
            "(n_kernels, rows, cols): pass np.moveaxis(array, -1, 0). If it is a block of "
            f"{shape[0]} kernels between {shape[1]} and {shape[2]} samples, pass gram=False."
        )


# Array types that are used without conversion; other subclasses may be masked arrays.
_PLAIN = (np.ndarray, np.memmap)


class Matrices(NamedTuple):
    """Kernel matrices as one array, with the names of kernels and samples."""

    data: np.ndarray
    names: list[str]
    row_samples: np.ndarray | None
    col_samples: np.ndarray | None


def read_matrices(
    arrays: Any, names: Sequence[str] | None = None, dtype: DTypeLike | None = None
) -> Matrices:
    """Read matrices from a list, a dict or an array of arrays or data frames.

    A C-ordered array of float64 or float32 is not copied, unless another `dtype` is requested. By
    default the result is float32 if all matrices are, else float64.
    """
    kinds: tuple[Any, ...] = (np.float32, np.float64) if dtype is None else (check_dtype(dtype),)
    if isinstance(arrays, Mapping):
        if names is not None:
            raise ValueError(
                "The keys of a dict are the names of the kernels: omit the parameter names."
            )
        names, arrays = list(arrays), list(arrays.values())
    elif is_frame(arrays) or getattr(arrays, "ndim", None) == 2:
        arrays = arrays[None] if type(arrays) in _PLAIN else [arrays]
    elif not hasattr(arrays, "__iter__") or isinstance(arrays, str | bytes):
        raise TypeError(
            "Kernel matrices must be a list, a dict or an array (n_kernels, rows, cols), got "
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
    for j, source in enumerate(matrices):
        label = labels[j] if j < len(labels) else f"kernel{j}"
        matrix = real_array(source, f"Kernel {label!r}")
        if matrix.ndim != 2:
            raise ValueError(f"Kernel {label!r} must be a matrix, got shape {matrix.shape}.")
        if j == 0:
            shape = (len(matrices), *matrix.shape)
            data = allocate(shape, kinds[0])
        if matrix.shape != data.shape[1:]:
            raise ValueError(
                f"All kernels must have the same shape: kernel {label!r} has shape "
                f"{matrix.shape}, the first kernel {data.shape[1:]}."
            )
        for side, names_of in (("rows", row_names), ("columns", column_names)):
            new, known = names_of(source), samples[side]
            if not same_samples(new, known):
                raise ValueError(
                    f"The {side} of kernel {label!r} have other names than those of the kernels "
                    f"before it: {first_difference(new, known)}."
                )
            samples[side] = known if new is None else new
        # Values too large for single precision become infinite, which is an error later.
        with np.errstate(over="ignore"):
            data[j] = matrix
    return Matrices(data, labels, samples["rows"], samples["columns"])


def positions(key: object, size: int) -> np.ndarray:
    """Return the positions among `size` samples selected by a slice, a mask or integers."""
    if key is Ellipsis:
        return np.arange(size)
    if isinstance(key, int | np.integer):
        raise TypeError(
            "A KernelStack is indexed by samples: use a slice or an array, not an integer."
        )
    if not isinstance(key, slice):
        key = np.asarray(key).ravel()
        if key.size == 0:
            key = key.astype(np.intp)
    return np.arange(size)[key]


def chosen_kernels(key: Any, names: list[str]) -> np.ndarray:
    """Return the positions of kernels selected by names, positions, a slice or a mask."""
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
            f"{key!r} selects none of the {len(names)} kernels ({error}): use names, positions, "
            "a slice or a mask."
        ) from error
    if chosen.ndim != 1 or not len(chosen):
        raise ValueError(f"{key!r} selects no kernel of {', '.join(names)}.")
    return chosen


# -- Stacks saved as .npz archives, as written by ``numpy.savez`` ---------------------------------
#
# A file may be damaged or forged. So the sizes in its headers are compared with the sizes of its
# members before memory is allocated, its flags are verified, and nothing is unpickled.


# Order of the booleans in the array "flags". Only "gram" and "centered" are read back.
_FLAGS = ("gram", "checked", "centered", "psd", "psd_if_centered")
_REQUIRED = ("data", "names", "flags")
_OPTIONAL = ("row_diag", "col_diag", "features", "row_samples", "col_samples", "views")
# Upper bound of the bytes of an archive besides its arrays: at most nine members, each with two
# directory entries of some hundred bytes.
_DIRECTORY_BYTES = 2**14
# Exceptions of NumPy and zipfile for damaged archives and arrays, besides BadZipFile.
_DAMAGED = (ValueError, TypeError, ArithmeticError, EOFError, RuntimeError, zlib.error)


def write_stack(stack: KernelStack, path: str | Path) -> None:
    """Write a stack to `path`; an existing file is replaced once the new one is complete."""
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
        # Release reserved space that was not needed.
        file.truncate(file.tell())


def read_stack(kind: type[KernelStack], path: str | Path, psd: str | None) -> Any:
    """Read and check a stack of class `kind`; see :meth:`KernelStack.load`."""
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
            _check_diagonals(stack)
        stack = _checked(stack) if psd is None else check_stack(stack, psd, missing=True)
    # Sample weights are not saved, so kernels centred by a weighted mean are not marked as
    # centred; centring them once more does no harm.
    centered = claimed["centered"] and stack.gram and _means_vanish(stack)
    return stack._changed(guarantees=replace(stack.guarantees, centered=centered))


def _checked(stack: KernelStack) -> KernelStack:
    """Return the stack with the strongest valid guarantee; raise if not finite and symmetric."""
    for centered in (False, True):
        with suppress(IndefiniteKernelError):
            return check_stack(stack, "raise", centered=centered, missing=True)
    stack = check_stack(stack, "ignore", missing=True)
    return stack._changed(guarantees=replace(stack.guarantees, checked=False))


def _check_diagonals(stack: KernelStack) -> None:
    """Raise an error if saved diagonals differ from those of the saved Gram matrices."""
    for j, name in enumerate(stack.names):
        diagonal = stack.data[j].diagonal()
        for attribute in ("row_diag", "col_diag"):
            saved = getattr(stack, attribute)[j]
            # Samples that lack the kernel have no self-similarity.
            gap = np.abs(np.where(np.isnan(saved) & np.isnan(diagonal), 0.0, saved - diagonal))
            if not gap.max(initial=0.0) <= SAME_ENTRY * _largest(stack.data[j]):
                raise ValueError(
                    f"{attribute} of kernel {name!r} is not its diagonal: {gap.max():.3g} apart "
                    f"at sample {gap.argmax()}."
                )


def _means_vanish(stack: KernelStack) -> bool:
    means = np.abs(stack.data.mean(axis=1, dtype=np.float64)).max(axis=1, initial=0.0)
    sizes = np.array([_largest(matrix) for matrix in stack.data])
    return bool(np.all(means <= SAME_ENTRY * sizes))


def _largest(matrix: np.ndarray) -> float:
    """Return the largest absolute value, ignoring NaN, without a copy."""
    highest = np.fmax.reduce(matrix, axis=None, initial=0.0)
    return float(max(highest, -np.fmin.reduce(matrix, axis=None, initial=0.0)))


def _read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Read the arrays of a saved stack by name; optional ones may be missing."""
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
            f"{path} is not a saved KernelStack, or it is truncated: {error}."
        ) from error
    except _DAMAGED as error:
        raise ValueError(f"{path} is not a saved KernelStack: {error}.") from error


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Read one array of the archive if its size agrees with its header."""
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


# -- HTML representations of stacks and views for notebooks ---------------------------------------


# Number of kernels or views listed; the others are counted.
_LISTED = 30
# Rows and columns that are summarised, so that a stack on disk is not read as a whole.
_SIDE = 200
# Largest numbers of rows or columns, and of kernels, with pictures, to keep the page small.
_TINY_SIDE, _TINY_KERNELS = 64, 12
# Pixels of the longer side of a picture: a little more than two lines of text.
_PIXELS = 48
# Colour of the largest values; smaller ones are more transparent, for light and dark pages.
_COLOR = 43, 131, 186


def stack_html(stack: KernelStack) -> str:
    """Return a table with one row per kernel: view, values and, for small stacks, a picture."""
    n_rows, n_cols, n_kernels = stack.shape
    rows, cols = (
        np.linspace(0, size - 1, min(size, _SIDE)).round().astype(int) for size in (n_rows, n_cols)
    )
    sample = stack.select(np.arange(min(n_kernels, _LISTED)))[np.ix_(rows, cols)]
    tiny = 0 < max(n_rows, n_cols) <= _TINY_SIDE and n_kernels <= _TINY_KERNELS
    header = ["kernel", "mean", "least", "most", "mean k(x, x)"]
    if stack.views is not None:
        header.insert(1, "view")
    table = []
    for j, name in enumerate(sample.names):
        matrix = sample.kernel(j)
        diagonal = np.zeros(0) if stack.row_diag is None else stack.row_diag[j]
        cells = [
            shortened(name),
            *map(_number, _described(matrix)),
            _number(_described(diagonal)[0]),
        ]
        if stack.views is not None:
            cells.insert(1, shortened(str(stack.views[j])))
        table.append([*cells, _picture(matrix)] if tiny else cells)
    notes = []
    if len(rows) < n_rows or len(cols) < n_cols:
        notes.append(f"Values of {len(rows)} × {len(cols)} entries.")
    if n_kernels > _LISTED:
        notes.append(f"{n_kernels - _LISTED} more kernels.")
    title = f"<p>KernelStack: {n_kernels} kernels, {n_rows} × {n_cols}</p>"
    return title + html([*header, ""] if tiny else header, table, notes)


def views_html(views: Views) -> str:
    """Return a table with one row per view: its type, columns and numbers of rows."""
    table = [
        [
            shortened(name),
            type(view).__name__,
            "1" if len(view.shape) == 1 else str(view.shape[1]),
            str(int(np.count_nonzero(views.has(name)))),
            str(int(np.count_nonzero(~views.has(name)))),
        ]
        for name, view in list(views.items())[:_LISTED]
    ]
    more = len(views.names) - len(table)
    title = f"<p>Views: {len(views)} rows, {len(views.names)} views</p>"
    header = ["view", "holds", "columns", "rows", "rows that lack it"]
    return title + html(header, table, [f"{more} more views."] if more else [])


def _described(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean, minimum and maximum of the finite values."""
    known = values[np.isfinite(values)]
    if not known.size:
        return np.nan, np.nan, np.nan
    return float(known.mean()), float(known.min()), float(known.max())


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3g}"


def _picture(matrix: np.ndarray) -> Html:
    """Return an embedded image; the smallest value is transparent."""
    _, low, high = _described(matrix)
    scale = (high - low) or 1.0
    strength = np.nan_to_num((matrix - low) / scale, nan=0.0, posinf=1.0, neginf=0.0)
    pixels = np.empty((*matrix.shape, 4), dtype=np.uint8)
    pixels[..., :3] = _COLOR
    pixels[..., 3] = (255.0 * np.clip(strength, 0.0, 1.0)).round()
    height, width = matrix.shape
    zoom = _PIXELS / max(height, width)
    return Html(
        f'<img src="data:image/png;base64,{b64encode(_png(pixels)).decode()}" '
        f'alt="values from {_number(low)} to {_number(high)}" width="{zoom * width:.0f}" '
        f'height="{zoom * height:.0f}" style="image-rendering: pixelated">'
    )


def _png(pixels: np.ndarray) -> bytes:
    """Encode an RGBA image (height, width, 4) as PNG."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        ending = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + ending

    # Eight bits per channel; each line begins with a zero byte, no filter.
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*parts) for parts in chunks)


__all__ = ["KernelStack", "check_stack"]


@storable
class KernelStack(StoredKernels):
    """Named kernel matrices of the same rows and columns.

    Most users call :meth:`from_arrays` or obtain a stack from a
    :class:`~manykernels.KernelUnion`; the constructor checks shapes only and copies nothing.

    Parameters
    ----------
    data : ndarray of shape (n_kernels, rows, cols), float64 or float32
        Kernel values; `shape` has another order. Sums and products are float64 in both cases.
    names : sequence of str
        One unique name per kernel.
    row_diag, col_diag : ndarray of shape (n_kernels, rows) or (n_kernels, cols), optional
        Self-similarities ``k(x, x)`` of the row and column samples; spherical normalisation
        of a test block needs them. Taken from the matrices if ``gram=True``.
    gram : bool, default=False
        Whether rows and columns are the same samples in the same order.
    checked : bool, default=False
        Whether the matrices are known to be finite, symmetric and positive semi-definite.

    Attributes
    ----------
    shape : tuple
        ``(rows, cols, n_kernels)``, the order in which scikit-learn slices samples.
    features : ndarray of shape (rows, n_features) or None
        Features of the row samples, see :meth:`with_features`.
    row_samples, col_samples : ndarray of str or None
        Names of the samples, see :meth:`with_samples`.
    views : tuple of str or None
        The view of each kernel, see :meth:`with_views`.
    groups : ndarray of int or None
        Group numbers of the row samples; a group is left out as a whole in cross-validation.
        None if samples with equal kernel rows form a group.
    guarantees : Guarantees
        Known properties of the matrices, such as `gram` and `checked`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> stack = KernelStack.from_arrays([np.eye(3), np.ones((3, 3))], names=["id", "one"])
    >>> stack
    KernelStack(2 kernels, 3 x 3: 'id', 'one')
    >>> stack.combine([1.0, 2.0])[0]
    array([3., 2., 2.])
    >>> stack[np.ix_([0, 1], [2])].shape
    (2, 1, 2)
    """

    def __init__(
        self,
        data: np.ndarray,
        names: Sequence[str],
        *,
        row_diag: np.ndarray | None = None,
        col_diag: np.ndarray | None = None,
        gram: bool = False,
        checked: bool = False,
    ) -> None:
        data = np.asanyarray(data)
        if data.ndim != 3 or data.dtype not in (np.float64, np.float32):
            raise ValueError(
                "KernelStack data must be a float64 or float32 array (n_kernels, rows, cols); got "
                f"{data.dtype} of shape {data.shape}. Convert it with KernelStack.from_arrays."
            )
        self.names = check_names(names, len(data))
        if gram and data.shape[1] != data.shape[2]:
            raise ValueError(
                "gram=True needs as many rows as columns, got "
                f"{data.shape[1]} x {data.shape[2]}: pass gram=False."
            )
        if gram and row_diag is None:
            row_diag = np.einsum("jii->ji", data).copy()
        psd = bool(gram and checked)
        self.guarantees = Guarantees(bool(gram), bool(checked), psd=psd, psd_if_centered=psd)
        self.features: np.ndarray | None = None
        self.views: tuple[str, ...] | None = None
        self.groups: np.ndarray | None = None
        self._stored = StoredArray(data)
        self._scale = np.ones(len(data))
        self._rows = Samples(check_diagonal(row_diag, data.shape[:2], "row_diag"))
        if gram and col_diag is None:
            col_diag = self.row_diag
        self._cols = Samples(check_diagonal(col_diag, data.shape[::2], "col_diag"))

    # -- construction ----------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        arrays: object,
        names: Sequence[str] | None = None,
        *,
        row_diag: np.ndarray | None = None,
        col_diag: np.ndarray | None = None,
        row_samples: Sequence[Any] | None = None,
        col_samples: Sequence[Any] | None = None,
        gram: bool | None = None,
        psd: str = "raise",
        missing: bool = False,
        dtype: DTypeLike | None = None,
    ) -> KernelStack:
        """Build a checked stack from precomputed matrices.

        Parameters
        ----------
        arrays : list or dict of (rows, cols) matrices, or array (n_kernels, rows, cols)
            A C-ordered array of float64 or float32 is not copied, and float32 stays float32. The
            keys of a dict, or of an opened .npz file, are the kernel names. The index and columns
            of data frames are the names of the samples, unless they are just numbers.
        names : sequence of str, optional
            Defaults to "kernel0", "kernel1", …
        row_diag, col_diag : array-like, optional
            Self-similarities of row and column samples, for blocks that are not Gram matrices.
        row_samples, col_samples : sequence, optional
            Names of the samples, see :meth:`with_samples`.
        gram : bool, optional
            Whether rows and columns are the same samples. By default True if the matrices are
            square and the names of the samples do not differ. Pass ``gram=False`` for a test
            block that happens to be square.
        psd : {"raise", "exact", "clip", "ignore"}, default="raise"
            How to detect and treat negative eigenvalues of Gram matrices; see
            :func:`check_stack`.
        missing : bool, default=False
            Allow samples that lack a kernel: NaN in their whole row and column of it. Estimators
            accept such stacks with ``missing="mean"`` or ``"conditional"``.
        dtype : {float64, float32}, optional
            Type of the stored values; matrices of another type are copied. Sums are computed in
            double precision in both cases.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels import KernelStack
        >>> KernelStack.from_arrays({"words": np.eye(2), "length": np.ones((2, 2))})
        KernelStack(2 kernels, 2 x 2: 'words', 'length')
        """
        if gram is not False:
            refuse_transposed(arrays)
        data, names, rows, cols = read_matrices(arrays, names, dtype)
        rows = rows if row_samples is None else check_samples(row_samples, data.shape[1], "rows")
        cols = cols if col_samples is None else check_samples(col_samples, data.shape[2], "cols")
        if gram is None:
            gram = data.shape[1] == data.shape[2] and same_samples(rows, cols)
        stack = cls(data, names, gram=gram, row_diag=row_diag, col_diag=col_diag)
        return check_stack(stack.with_samples(rows, cols), psd=psd, missing=missing)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Pickling does not keep arrays read-only.
        for array in (self.features, self.row_samples, self.col_samples):
            if array is not None:
                array.flags.writeable = False

    @property
    def checked(self) -> bool:
        """Whether the stack has passed :func:`check_stack`."""
        return self.guarantees.checked

    @property
    def row_samples(self) -> np.ndarray | None:
        return self._rows.names

    @property
    def col_samples(self) -> np.ndarray | None:
        return self._cols.names

    # -- array interface -------------------------------------------------------------------

    ndim = 3

    def __repr__(self) -> str:
        names = ", ".join(repr(name) for name in self.names[:6])
        more = ", …" if self.n_kernels > 6 else ""
        rows, cols, n_kernels = self.shape
        return f"KernelStack({n_kernels} kernels, {rows} x {cols}: {names}{more})"

    def _repr_html_(self) -> str:
        return stack_html(self)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("A KernelStack cannot be converted to an array with copy=False.")
        whole = np.stack([self.kernel(j) for j in range(self.n_kernels)], axis=-1)
        return whole if dtype is None else whole.astype(dtype)

    def __getitem__(self, key: object) -> KernelStack:
        """Return a sub-stack: ``stack[rows]``, ``stack[rows, cols]`` or with ``np.ix_``."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > 2:
            raise TypeError(
                "A KernelStack is indexed by rows and columns; use select(...) for kernels."
            )
        row_key, col_key = (*keys, slice(None))[:2]
        rows = positions(row_key, self.data.shape[1])
        cols = positions(col_key, self.data.shape[2])
        data = allocate((self.n_kernels, len(rows), len(cols)), self.dtype)
        flat = (rows[:, None] * self.data.shape[2] + cols).ravel()
        for source, target in zip(self.data, data, strict=True):
            # mode="clip" skips the bounds check, which `positions` has already done.
            np.take(source.reshape(-1), flat, out=target.reshape(-1), mode="clip")
        return self._with_data(
            data,
            guarantees=self.guarantees.of_part(gram=self.gram and np.array_equal(rows, cols)),
            features=take(self.features, rows, 0),
            groups=take(self.groups, rows, 0),
            _rows=self._rows.take(rows),
            _cols=self._cols.take(cols),
        )

    def with_features(self, features: ArrayLike) -> KernelStack:
        """Return the stack with features of its rows, for the gates of localized machines.

        Sub-stacks keep the features of their rows.

        Parameters
        ----------
        features : array-like of shape (rows, n_features)

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels import KernelStack
        >>> stack = KernelStack.from_arrays([np.eye(3)]).with_features([[0.0], [1.0], [2.0]])
        >>> stack[[0, 2]].features
        array([[0.],
               [2.]])
        """
        table = np.array(features, dtype=np.float64)
        if table.ndim != 2 or len(table) != len(self):
            raise ValueError(
                f"features must be a table with one row per row of the stack, {len(self)}; got an "
                f"array of shape {table.shape}."
            )
        if not np.isfinite(table).all():
            row, column = np.argwhere(~np.isfinite(table))[0]
            raise ValueError(
                f"features has a value that is not finite at row {row}, column {column}."
            )
        table.flags.writeable = False
        return self._changed(features=table)

    def with_samples(
        self, rows: Iterable[object] | None, cols: Iterable[object] | None = None
    ) -> KernelStack:
        """Return the stack with names of its samples, which sub-stacks keep.

        An estimator stores the names of the training samples, and raises an error for a test block
        whose columns have other names or another order, such as a transposed block. Without names
        a square block can be distinguished from its transpose only if the self-similarities of
        the samples (:attr:`row_diag`, :attr:`col_diag`) differ.

        Parameters
        ----------
        rows : sequence or None
            One name per row; numbers and dates are converted to strings.
        cols : sequence, optional
            One name per column; by default the names of the rows if ``gram=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels import KernelStack
        >>> stack = KernelStack.from_arrays([np.eye(3)]).with_samples(["ann", "bob", "cid"])
        >>> stack[np.ix_([0, 2], [1])].col_samples
        array(['bob'], dtype='<U3')
        """
        row_samples = check_samples(rows, self.shape[0], "rows")
        col_samples = check_samples(cols, self.shape[1], "cols")
        if self.gram:
            row_samples = col_samples if row_samples is None else row_samples
            col_samples = row_samples if col_samples is None else col_samples
            if not same_samples(row_samples, col_samples):
                raise ValueError(
                    "Rows and columns of a Gram matrix are the same samples in the same order, "
                    f"but their names differ: {first_difference(row_samples, col_samples)}. Pass "
                    "gram=False for a block between different samples."
                )
        return self._changed(
            _rows=replace(self._rows, names=row_samples),
            _cols=replace(self._cols, names=col_samples),
        )

    def with_views(self, views: Sequence[Any] | None) -> KernelStack:
        """Return the stack with the name of the view of each kernel.

        Kernels of one view are missing together, and a sample that lacks them is completed from
        the other views. By default, kernels that are missing for the same training samples form
        one view.

        Parameters
        ----------
        views : sequence or None
            One name per kernel.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels import KernelStack
        >>> stack = KernelStack.from_arrays([np.eye(2), np.ones((2, 2)), np.eye(2)])
        >>> stack.with_views(["sound", "sound", "text"]).select([0, 2]).views
        ('sound', 'text')
        """
        if views is not None:
            if isinstance(views, str) or len(views) != self.n_kernels:
                raise ValueError(
                    f"views must have one name for each of the {self.n_kernels} kernels, got "
                    f"{views!r}."
                )
            views = tuple(str(view) for view in views)
        return self._changed(views=views)

    def _with_kernels(self, positions: np.ndarray, other: KernelStack) -> KernelStack:
        """Return the stack with the kernels of another one at these positions.

        Neither of the two may have been transformed.
        """
        data, rows, cols = self.data.copy(), self._rows, self._cols
        data[positions] = other.data
        sides = []
        for old, new in ((rows, other._rows), (cols, other._cols)):
            if old.diagonal is None or new.diagonal is None:
                sides.append(replace(old, diagonal=None))
                continue
            diagonal = old.diagonal.copy()
            diagonal[positions] = new.diagonal
            sides.append(replace(old, diagonal=diagonal))
        return self._with_data(data, _rows=sides[0], _cols=sides[1])

    # -- kernels and their sums ------------------------------------------------------------

    def kernel(self, which: int | str) -> np.ndarray:
        """Return a kernel matrix by name or position, with all transforms applied."""
        j = int(chosen_kernels(which, self.names)[0]) if isinstance(which, str) else which
        matrix = np.empty(self.data.shape[1:])
        for rows in self._row_blocks():
            matrix[rows] = self._values(j, rows)
        return matrix

    def select(self, kernels: object) -> KernelStack:
        """Return a stack of some kernels, selected by names, positions, a slice or a mask."""
        chosen = chosen_kernels(kernels, self.names)
        if np.array_equal(chosen, np.arange(self.n_kernels)):
            return self
        # Neighbours are not copied, so that a part of a stack on disk stays there.
        run = slice(chosen[0], chosen[-1] + 1)
        neighbours = np.array_equal(chosen, np.arange(run.start, run.stop))
        return self._with_data(
            self.data[run] if neighbours else self.data[chosen],
            names=[self.names[j] for j in chosen],
            views=None if self.views is None else tuple(self.views[j] for j in chosen),
            _scale=self._scale[chosen],
            _rows=self._rows.take(chosen, axis=0),
            _cols=self._cols.take(chosen, axis=0),
        )

    def rows(self, rows: slice, kernels: np.ndarray) -> KernelStack:
        """Return a block of rows of some kernels, copied only if kernels are left out."""
        block = self._with_data(
            self.data[:, rows],
            guarantees=self.guarantees.of_part(gram=False),
            features=take(self.features, rows, 0),
            groups=take(self.groups, rows, 0),
            _rows=self._rows.take(rows),
        )
        return block.select(kernels)

    # -- files -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the stack to a .npz file, with all transforms applied to its values.

        An existing file is replaced as in :meth:`materialized`. Values are written block by block,
        so that a stack on disk is not copied into memory.
        """
        write_stack(self, path)

    @classmethod
    def load(cls, path: str | Path, *, psd: str | None = None) -> Self:
        """Read a stack written by :meth:`save`.

        The kernels are checked as in :meth:`from_arrays`, regardless of the flags in the file.

        Parameters
        ----------
        path : str or Path
            The file.
        psd : {"raise", "exact", "clip", "ignore"}, optional
            How to treat significant negative eigenvalues, see :func:`check_stack`. By default
            a stack that has some even after centring is returned unchecked, and refused by
            methods that need positive semi-definite kernels.

        Raises
        ------
        ValueError
            If the file is empty, damaged or not a saved stack, or a kernel is not finite or not
            symmetric. The message contains the path.
        MemoryError
            If an array does not fit into memory; raised before it is read.
        """
        return read_stack(cls, path, psd)
