"""KernelStack: several kernel matrices of the same samples, as one array-like object.

A stack holds its matrices once, read-only, as ``data[j, r, c]``. Transforms are vectors beside
them (:mod:`manykernels.kernels.operators`), so that centring and scaling copy no data.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from ..utils.files import npy_header, read_npy_header, replacing
from ..utils.numerics import allocate, require_memory
from ..utils.storable import storable
from ..utils.versions import Html, html, shortened
from .checks import SAME_ENTRY, IndefiniteKernelError, check_stack
from .matching import check_samples, column_names, first_difference, row_names, same_samples
from .operators import Guarantees, Samples, StoredArray, StoredKernels, take
from .tables import is_frame, naming, real_array

# -- Matrices, names and indices of a kernel stack in all forms that users may give, checked ------


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


# -- Stacks saved as .npz archives of arrays, as ``numpy.savez`` writes them ----------------------
#
# A file may be damaged or forged. So the sizes in its headers are compared with the sizes of its
# members before memory is allocated, its claims about the kernels are checked, and nothing is
# unpickled.


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


# -- Stacks and views as notebooks show them: small tables of HTML --------------------------------


# Kernels and views that are listed; the others are counted.
_LISTED = 30
# Rows and columns whose values are looked at, so that a stack on disk is not read as a whole.
_SIDE = 200
# Most rows, columns and kernels of which there are pictures: a page of them stays small.
_TINY_SIDE, _TINY_KERNELS = 64, 12
# Pixels of the longer side of a picture: a little more than two lines of text.
_PIXELS = 48
# Colour of the largest values; smaller ones let the ground through, be it light or dark.
_COLOR = 43, 131, 186


def stack_html(stack: Any) -> str:
    """A row for every kernel: its view, values and, of a small stack, a picture."""
    n_rows, n_cols, n_kernels = stack.shape
    rows, cols = (
        np.linspace(0, size - 1, min(size, _SIDE)).round().astype(int) for size in (n_rows, n_cols)
    )
    part = stack.select(np.arange(min(n_kernels, _LISTED)))[np.ix_(rows, cols)]
    tiny = 0 < max(n_rows, n_cols) <= _TINY_SIDE and n_kernels <= _TINY_KERNELS
    header = ["kernel", "mean", "least", "most", "mean k(x, x)"]
    if stack.views is not None:
        header.insert(1, "view")
    table = []
    for j, name in enumerate(part.names):
        matrix = part.kernel(j)
        diagonal = None if stack.row_diag is None else stack.row_diag[j]
        cells = [shortened(name), *map(_number, _described(matrix)), _number(_mean(diagonal))]
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


def views_html(views: Any) -> str:
    """A row for every view: what it holds, and how many rows have it."""
    table = [
        [
            shortened(name),
            type(one).__name__,
            "1" if len(one.shape) == 1 else str(one.shape[1]),
            str(int(np.count_nonzero(views.has(name)))),
            str(int(np.count_nonzero(~views.has(name)))),
        ]
        for name, one in list(views.items())[:_LISTED]
    ]
    more = len(views.names) - len(table)
    title = f"<p>Views: {len(views)} rows, {len(views.names)} views</p>"
    header = ["view", "holds", "columns", "rows", "rows that lack it"]
    return title + html(header, table, [f"{more} more views."] if more else [])


def _described(matrix: np.ndarray) -> tuple[float, float, float]:
    """Mean, least and largest value of those that are there."""
    known = matrix[np.isfinite(matrix)]
    if not known.size:
        return np.nan, np.nan, np.nan
    return float(known.mean()), float(known.min()), float(known.max())


def _mean(values: np.ndarray | None) -> float:
    known = np.zeros(0) if values is None else values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3g}"


def _picture(matrix: np.ndarray) -> Html:
    """Values from the least, transparent, to the largest, as an image in the page itself."""
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
    """An image with red, green, blue and opacity, (height, width, 4), as a file."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        ending = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + ending

    # Eight bits each, and no filter in front of every line.
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


__all__ = ["KernelStack", "check_stack"]


@storable
class KernelStack(StoredKernels):
    """Named kernel matrices of the same rows and columns.

    Most users call :meth:`from_arrays` or get a stack from a
    :class:`~manykernels.KernelUnion`; this constructor checks shapes only and copies nothing.

    Parameters
    ----------
    data : ndarray of shape (n_kernels, rows, cols), float64 or float32
        Kernel values; `shape` has another order. Sums and products are float64 either way.
    names : sequence of str
        One name per kernel, all different.
    row_diag, col_diag : ndarray of shape (n_kernels, rows) or (n_kernels, cols), optional
        Self-similarities ``k(x, x)`` of the row and column samples; spherical normalisation
        of a test block needs them. Taken from the matrices themselves when ``gram``.
    gram : bool, default=False
        Rows and columns are the same samples in the same order.
    checked : bool, default=False
        The matrices are known to be finite, symmetric and positive semi-definite.

    Attributes
    ----------
    shape : tuple
        ``(rows, cols, n_kernels)``, the order in which scikit-learn slices samples.
    features : ndarray of shape (rows, n_features) or None
        Features of the row samples, see :meth:`with_features`.
    row_samples, col_samples : ndarray of str or None
        Names of the samples, see :meth:`with_samples`.
    views : tuple of str or None
        The view that each kernel is of, see :meth:`with_views`.
    groups : ndarray of int or None
        Numbers of the groups of row samples that are left out together where models are judged;
        None if equal kernel rows are to be found.
    guarantees : Guarantees
        What is known about the matrices, such as `gram` and `checked`.

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
                f"{data.dtype} of shape {data.shape}. KernelStack.from_arrays converts."
            )
        self.names = check_names(names, len(data))
        if gram and data.shape[1] != data.shape[2]:
            raise ValueError(
                f"A Gram stack has as many rows as columns, got {data.shape[1]} x {data.shape[2]}."
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

    # -- making one ------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        arrays: Any,
        names: Sequence[str] | None = None,
        *,
        row_diag: np.ndarray | None = None,
        col_diag: np.ndarray | None = None,
        row_samples: Sequence[Any] | None = None,
        col_samples: Sequence[Any] | None = None,
        gram: bool | None = None,
        psd: str = "raise",
        missing: bool = False,
        dtype: Any = None,
    ) -> KernelStack:
        """Build a checked stack from ready-made matrices.

        Parameters
        ----------
        arrays : list or dict of (rows, cols) matrices, or array (n_kernels, rows, cols)
            A C-ordered array of float64 or float32 is not copied, and float32 stays float32. The
            keys of a dict, or of an opened .npz file, are the names. Data frames name the
            samples, unless rows and columns are only numbered.
        names : sequence of str, optional
            Defaults to "kernel0", "kernel1", …
        row_diag, col_diag : array-like, optional
            Self-similarities of row and column samples, for blocks that are not Gram matrices.
        row_samples, col_samples : sequence, optional
            Names of the samples, see :meth:`with_samples`.
        gram : bool, optional
            Whether rows and columns are the same samples. By default they are if the matrices
            are square and the names of samples do not differ. Pass ``gram=False`` for a test
            block that happens to be square.
        psd : {"raise", "exact", "clip", "ignore"}, default="raise"
            How to look for negative eigenvalues of Gram matrices, and what to do with them; see
            :func:`check_stack`.
        missing : bool, default=False
            Allow samples that lack a kernel: NaN in their whole row and column of it. Estimators
            take such stacks with ``missing="mean"`` or ``"conditional"``.
        dtype : {float64, float32}, optional
            How values are stored, which copies matrices of another type. Sums are those of double
            precision either way.

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
        """Whether :func:`check_stack` has nothing left to do."""
        return self.guarantees.checked

    @property
    def row_samples(self) -> np.ndarray | None:
        return self._rows.names

    @property
    def col_samples(self) -> np.ndarray | None:
        return self._cols.names

    # -- what scikit-learn asks of an array ------------------------------------------------

    ndim = 3

    def __repr__(self) -> str:
        names = ", ".join(repr(name) for name in self.names[:6])
        more = ", …" if self.n_kernels > 6 else ""
        rows, cols, n_kernels = self.shape
        return f"KernelStack({n_kernels} kernels, {rows} x {cols}: {names}{more})"

    def _repr_html_(self) -> str:
        return stack_html(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("A KernelStack cannot become an array without a copy.")
        whole = np.stack([self.kernel(j) for j in range(self.n_kernels)], axis=-1)
        return whole if dtype is None else whole.astype(dtype)

    def __getitem__(self, key: Any) -> KernelStack:
        """``stack[rows]``, ``stack[rows, cols]`` or ``stack[np.ix_(rows, cols)]``: a sub-stack."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > 2:
            raise TypeError(
                "A KernelStack is indexed by rows and columns; select(...) chooses kernels."
            )
        row_key, col_key = (*keys, slice(None))[:2]
        rows = positions(row_key, self.data.shape[1])
        cols = positions(col_key, self.data.shape[2])
        data = allocate((self.n_kernels, len(rows), len(cols)), self.dtype)
        flat = (rows[:, None] * self.data.shape[2] + cols).ravel()
        for source, target in zip(self.data, data, strict=True):
            # mode="clip" skips a bounds check that `positions` has made already.
            np.take(source.reshape(-1), flat, out=target.reshape(-1), mode="clip")
        return self._with_data(
            data,
            guarantees=self.guarantees.of_part(gram=self.gram and np.array_equal(rows, cols)),
            features=take(self.features, rows, 0),
            groups=take(self.groups, rows, 0),
            _rows=self._rows.take(rows),
            _cols=self._cols.take(cols),
        )

    def with_features(self, features: Any) -> KernelStack:
        """The same stack with features of its rows, for the gates of localized machines.

        A sub-stack has the features of its rows.

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
                f"Features are a table with one row per row of the stack, {len(self)}; got an "
                f"array of shape {table.shape}."
            )
        if not np.isfinite(table).all():
            row, column = np.argwhere(~np.isfinite(table))[0]
            raise ValueError(f"Features have a value that is not finite at {row}, {column}.")
        table.flags.writeable = False
        return self._changed(features=table)

    def with_samples(self, rows: Any, cols: Any = None) -> KernelStack:
        """The same stack with names of its samples, which sub-stacks keep.

        An estimator remembers the names of the training samples, and refuses a test block with
        names whose columns are not those samples in that order, such as a transposed one. Without
        names a square block can be told from its transpose only if the self-similarities of the
        samples (:attr:`row_diag`, :attr:`col_diag`) differ.

        Parameters
        ----------
        rows : sequence or None
            One name per row; numbers and dates are turned into strings.
        cols : sequence, optional
            One name per column; those of the rows if ``gram``.

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
                    f"but their names differ: {first_difference(row_samples, col_samples)}. A "
                    "block between different samples is given with gram=False."
                )
        return self._changed(
            _rows=replace(self._rows, names=row_samples),
            _cols=replace(self._cols, names=col_samples),
        )

    def with_views(self, views: Sequence[Any] | None) -> KernelStack:
        """The same stack with the name of the view that each kernel is of.

        Kernels of one view are lacking together, and a sample that lacks them is completed from
        the other views. Without names, kernels that the same training samples lack count as one
        view.

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
                    f"views has one name for each of the {self.n_kernels} kernels, got {views!r}."
                )
            views = tuple(str(view) for view in views)
        return self._changed(views=views)

    # -- kernels and their sums ------------------------------------------------------------

    def kernel(self, which: int | str) -> np.ndarray:
        """One kernel matrix (rows, cols), by name or position, with all transforms applied."""
        j = int(chosen_kernels(which, self.names)[0]) if isinstance(which, str) else which
        matrix = np.empty(self.data.shape[1:])
        for rows in self._row_blocks():
            matrix[rows] = self._values(j, rows)
        return matrix

    def select(self, kernels: Any) -> KernelStack:
        """Stack of some of the kernels, given by names, positions, a slice or a mask."""
        chosen = chosen_kernels(kernels, self.names)
        if np.array_equal(chosen, np.arange(self.n_kernels)):
            return self
        # Neighbours are not copied, so that parts of a stack on disk stay there.
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
        """A block of rows of some of the kernels, copied only if kernels are left out."""
        part = self._with_data(
            self.data[:, rows],
            guarantees=self.guarantees.of_part(gram=False),
            features=take(self.features, rows, 0),
            groups=take(self.groups, rows, 0),
            _rows=self._rows.take(rows),
        )
        return part.select(kernels)

    # -- files -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the stack to a .npz file, with all transforms applied to its values.

        An older file is replaced as by :meth:`materialized`. Values are written block by block,
        so that a stack on disk is not copied into memory.
        """
        write_stack(self, path)

    @classmethod
    def load(cls, path: str | Path, *, psd: str | None = None) -> Self:
        """Read a stack written by :meth:`save`.

        The kernels are checked as by :meth:`from_arrays`, whatever the file says of them.

        Parameters
        ----------
        path : path
        psd : {"raise", "exact", "clip", "ignore"}, optional
            What to do with significant negative eigenvalues, see :func:`check_stack`. By default
            a stack that has some even after centring is returned unchecked, and refused by
            methods that need it to be positive semi-definite.

        Raises
        ------
        ValueError
            With the path, if the file is empty, damaged or not a saved stack, or a kernel is not
            finite or not symmetric.
        MemoryError
            Before an array is read that does not fit into memory.
        """
        return read_stack(cls, path, psd)
