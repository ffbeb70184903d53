"""KernelStack: several kernel matrices of the same samples, as one array-like object.

A stack holds its matrices once, read-only, as ``data[j, r, c]`` and remembers what has been
done to them since as vectors, so that no transform copies the data:

    K_j(r, c) = scale_j · f_j(r) · f_j(c) · data[j, r, c] − o_j(r) − o_j(c)              (*)

``f`` are sample factors (spherical normalisation), ``o`` offsets (centring), ``scale`` one
number per kernel (trace and multiplicative normalisation). Sums over kernels and products
with a few columns cost one pass over ``data`` whatever the transform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._blas import add_scaled, matmul
from ._memory import allocate
from .checks import check_stack

__all__ = ["KernelStack", "allocate", "check_stack"]

# Entries handled at once: 2 MiB, about a second-level cache.
_BLOCK_ENTRIES = 2**18

_FLAGS = ("gram", "checked", "centered", "_bounded", "_bounded_if_centered")


class KernelStack:
    """Named kernel matrices of the same rows and columns.

    Most users call :meth:`from_arrays` or get a stack from a
    :class:`~manykernels.KernelUnion`; this constructor checks shapes only and copies nothing.

    Parameters
    ----------
    data : ndarray of shape (n_kernels, rows, cols), float64
        Kernel values, in storage order.
    names : sequence of str
        One name per kernel, all different.
    row_diag, col_diag : ndarray of shape (n_kernels, rows) or (n_kernels, cols), optional
        Self-similarities ``k(x, x)`` of the row and column samples; spherical normalisation
        of a test block needs them. Taken from the matrices themselves when ``gram``.
    gram : bool, default=False
        Rows and columns are the same samples in the same order.
    checked : bool, default=False
        The entries are known to be finite, symmetric and positive semi-definite.

    Attributes
    ----------
    shape : tuple
        ``(rows, cols, n_kernels)``, the order in which scikit-learn slices samples.

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
        if data.ndim != 3 or data.dtype != np.float64:
            raise ValueError(
                "KernelStack data must be a float64 array (n_kernels, rows, cols); got "
                f"{data.dtype} of shape {data.shape}. KernelStack.from_arrays converts."
            )
        self.names = _check_names(names, len(data))
        if gram and data.shape[1] != data.shape[2]:
            raise ValueError(
                f"A Gram stack has as many rows as columns, got {data.shape[1]} x {data.shape[2]}."
            )
        view = data.view()
        view.flags.writeable = False
        self.data = view
        self.gram = bool(gram)
        self.checked = bool(checked)
        self.centered = False
        # Diagonals bound the entries of PSD matrices; of some others once they are centred.
        self._bounded = self._bounded_if_centered = self.gram and self.checked
        if gram and row_diag is None:
            row_diag = np.einsum("jii->ji", data).copy()
        self.row_diag = _check_diagonal(row_diag, data.shape[:2], "row_diag")
        if gram and col_diag is None:
            col_diag = self.row_diag
        self.col_diag = _check_diagonal(col_diag, data.shape[::2], "col_diag")
        self._scale = np.ones(len(data))
        self._row_factor: np.ndarray | None = None
        self._col_factor: np.ndarray | None = None
        self._row_offset: np.ndarray | None = None
        self._col_offset: np.ndarray | None = None

    # -- making one ------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        arrays: Any,
        names: Sequence[str] | None = None,
        *,
        row_diag: np.ndarray | None = None,
        col_diag: np.ndarray | None = None,
        gram: bool | None = None,
        psd: str = "raise",
    ) -> KernelStack:
        """Build a checked stack from ready-made matrices.

        Parameters
        ----------
        arrays : list of (rows, cols) matrices, or array (n_kernels, rows, cols)
            Kernel values in storage order; a float64 array is not copied.
        names : sequence of str, optional
            Defaults to "kernel0", "kernel1", …
        row_diag, col_diag : array-like, optional
            Self-similarities of row and column samples, for blocks that are not Gram matrices.
        gram : bool, optional
            Whether rows and columns are the same samples; by default, whether the matrices
            are square. Pass ``gram=False`` for a test block that happens to be square.
        psd : {"raise", "clip", "ignore"}, default="raise"
            What to do with a Gram matrix that has significant negative eigenvalues.
        """
        if gram is not False:
            _refuse_transposed(arrays)
        data = storage_array(arrays, names)
        if names is None:
            names = [f"kernel{j}" for j in range(len(data))]
        if gram is None:
            gram = data.shape[1] == data.shape[2]
        stack = cls(data, names, gram=gram, row_diag=row_diag, col_diag=col_diag)
        return check_stack(stack, psd=psd)

    def _like(self, data: np.ndarray, **changes: Any) -> KernelStack:
        """Copy of this stack around `data`, attributes replaced as told; nothing is checked."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        view = data.view()
        view.flags.writeable = False
        new.__dict__.update(data=view, **changes)
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickling does not keep arrays read-only.
        self.__dict__.update(state)
        self.data.flags.writeable = False

    # -- what scikit-learn asks of an array ------------------------------------------------

    @property
    def shape(self) -> tuple[int, int, int]:
        n_kernels, rows, cols = self.data.shape
        return rows, cols, n_kernels

    ndim = 3

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def n_kernels(self) -> int:
        return len(self.data)

    def __len__(self) -> int:
        return self.data.shape[1]

    def __repr__(self) -> str:
        names = ", ".join(repr(name) for name in self.names[:6])
        more = ", …" if self.n_kernels > 6 else ""
        rows, cols, n_kernels = self.shape
        return f"KernelStack({n_kernels} kernels, {rows} x {cols}: {names}{more})"

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
        rows = _positions(row_key, self.data.shape[1])
        cols = _positions(col_key, self.data.shape[2])
        data = allocate((self.n_kernels, len(rows), len(cols)))
        flat = (rows[:, None] * self.data.shape[2] + cols).ravel()
        for source, target in zip(self.data, data, strict=True):
            # mode="clip" skips a bounds check that _positions has made already.
            np.take(source.reshape(-1), flat, out=target.reshape(-1), mode="clip")
        return self._like(
            data,
            gram=self.gram and np.array_equal(rows, cols),
            row_diag=_take(self.row_diag, rows),
            col_diag=_take(self.col_diag, cols),
            _row_factor=_take(self._row_factor, rows),
            _col_factor=_take(self._col_factor, cols),
            _row_offset=_take(self._row_offset, rows),
            _col_offset=_take(self._col_offset, cols),
            # A sub-sample of centred rows is not centred any more.
            centered=False,
        )

    # -- kernels and their sums ------------------------------------------------------------

    def kernel(self, which: int | str) -> np.ndarray:
        """One kernel matrix (rows, cols), by name or position, with all transforms applied."""
        if isinstance(which, str) and which not in self.names:
            raise ValueError(f"There is no kernel {which!r}, only {', '.join(self.names)}.")
        j = self.names.index(which) if isinstance(which, str) else which
        return self._values(j, slice(None))

    def select(self, kernels: Any) -> KernelStack:
        """Stack of some of the kernels, given by positions, a slice or a mask."""
        chosen = np.atleast_1d(np.arange(self.n_kernels)[kernels])
        if np.array_equal(chosen, np.arange(self.n_kernels)):
            return self
        vectors = ["row_diag", "col_diag", "_row_factor", "_col_factor"]
        vectors += ["_row_offset", "_col_offset", "_scale"]
        picked = {name: _take(getattr(self, name), chosen, axis=0) for name in vectors}
        return self._like(self.data[chosen], names=[self.names[j] for j in chosen], **picked)

    def rows(self, rows: slice, kernels: np.ndarray) -> KernelStack:
        """A block of rows of some of the kernels, copied only where kernels are left out."""
        part = self._like(
            self.data[:, rows],
            gram=False,
            centered=False,
            row_diag=None if self.row_diag is None else self.row_diag[:, rows],
            _row_factor=None if self._row_factor is None else self._row_factor[:, rows],
            _row_offset=None if self._row_offset is None else self._row_offset[:, rows],
        )
        return part.select(kernels)

    def _row_blocks(self) -> Iterator[slice]:
        n_rows, n_cols, _ = self.shape
        height = max(1, _BLOCK_ENTRIES // max(1, n_cols))
        return (slice(r, min(r + height, n_rows)) for r in range(0, n_rows, height))

    def _factored(self, j: int, rows: slice) -> np.ndarray:
        """Rows of data times sample factors: (*) without scale and offsets."""
        block = self.data[j, rows]
        if self._row_factor is None or self._col_factor is None:
            return block
        return block * self._row_factor[j, rows, None] * self._col_factor[j]

    def _values(self, j: int, rows: slice) -> np.ndarray:
        """Rows of the transformed kernel j, all of (*)."""
        block = self._factored(j, rows) * self._scale[j]
        if self._row_offset is not None and self._col_offset is not None:
            block -= self._row_offset[j, rows, None]
            block -= self._col_offset[j]
        return block

    def combine(self, weights: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Weighted sum of the kernels, ``Σ_j weights[j] K_j``; zero weights cost nothing.

        Parameters
        ----------
        weights : array-like of shape (n_kernels,)
        out : C-contiguous ndarray of shape (rows, cols), optional
            Where to write the sum.
        """
        weights = self._check_weights(weights)
        if out is None:
            out = np.empty(self.data.shape[1:])
        elif not _holds_floats(out, self.data.shape[1:]):
            raise ValueError(
                f"out must be a C-contiguous float64 array of shape {self.data.shape[1:]}."
            )
        offsets = None
        if self._row_offset is not None and self._col_offset is not None:
            row_offset = matmul(self._row_offset.T, weights)
            offsets = -row_offset[:, None], -matmul(self._col_offset.T, weights)
        scaled = weights * self._scale
        active = self.contributing(weights).tolist()
        for rows in self._row_blocks():
            # The block of the sum stays in the cache while the kernels stream past it.
            block = out[rows]
            if offsets is None:
                block.fill(0.0)
            else:
                np.add(offsets[0][rows], offsets[1], out=block)
            for j in active:
                add_scaled(block, self._factored(j, rows), scaled[j])
        return out

    def contributing(self, weights: np.ndarray) -> np.ndarray:
        """Positions of the kernels whose part in the weighted sum is more than rounding.

        No entry of a positive semi-definite matrix is larger than its largest diagonal entry.
        """
        if not (self.gram and self._bounded) or self.row_diag is None:
            return np.flatnonzero(weights * self._scale)
        part = np.abs(weights) * np.abs(self.row_diag).max(axis=1, initial=0.0)
        return np.flatnonzero(part > 1e-3 * np.finfo(float).eps * part.sum())

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Products ``K_j @ columns`` of every kernel, shape (n_kernels, rows, n_columns).

        `out` may be an array that an earlier call with as many columns returned.
        """
        n_kernels, n_rows, n_columns = self.n_kernels, len(self), columns.shape[1]
        if n_columns == 1 and self._col_factor is None:
            # One column against all kernels at once: a single pass over contiguous memory.
            flat = matmul(self.data.reshape(-1, self.shape[1]), columns[:, 0])
            products = flat.reshape(n_kernels, 1, n_rows)
        else:
            # Stored column by column, as LAPACK wants them next.
            products = np.empty((n_kernels, n_columns, n_rows)) if out is None else out.mT
            for j in range(n_kernels):
                products[j] = self._factored_product(j, columns).T
        if np.any(self._scale != 1.0):
            products *= self._scale[:, None, None]
        if self._row_offset is not None and self._col_offset is not None:
            products -= self._row_offset[:, None] * columns.sum(axis=0)[:, None]
            products -= matmul(self._col_offset, columns)[:, :, None]
        return products.transpose(0, 2, 1)

    def apply_combined(self, weights: Any, columns: np.ndarray) -> np.ndarray:
        """``Σ_j weights[j] K_j @ columns`` without forming the sum of the kernels."""
        weights = self._check_weights(weights)
        total = np.zeros((len(self), columns.shape[1]))
        for j in np.flatnonzero(weights).tolist():
            total += weights[j] * self._scale[j] * self._factored_product(j, columns)
        if self._row_offset is not None and self._col_offset is not None:
            total -= np.outer(weights @ self._row_offset, columns.sum(axis=0))
            total -= (weights @ self._col_offset) @ columns
        return total

    def _factored_product(self, j: int, columns: np.ndarray) -> np.ndarray:
        """``(*) @ columns`` without scale and offsets, Fortran-ordered."""
        if self._row_factor is None or self._col_factor is None:
            return matmul(self.data[j], columns)
        product = matmul(self.data[j], columns * self._col_factor[j, :, None])
        product *= self._row_factor[j, :, None]
        return product

    def _check_weights(self, weights: Any) -> np.ndarray:
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (self.n_kernels,):
            raise ValueError(
                f"One weight per kernel is needed: {self.n_kernels} kernels, "
                f"weights of shape {weights.shape}."
            )
        return weights

    def alignment(self, *, centered: bool = False) -> np.ndarray:
        """Cosines ``⟨K_i, K_j⟩ / (‖K_i‖ ‖K_j‖)`` of every pair, (n_kernels, n_kernels).

        With ``centered=True`` the kernels are centred in feature space first, which is what
        a discriminant sees (Yan 2012, Fig. 5). A zero kernel is aligned with nothing.
        """
        if centered:
            from .transforms import preparation

            # Cosines do not see the scale; a unit trace makes a constant kernel exactly zero.
            return preparation("trace").fit_transform(self).alignment()
        inner = np.zeros((self.n_kernels, self.n_kernels))
        for rows in self._row_blocks():
            flat = np.stack([self._values(j, rows).ravel() for j in range(self.n_kernels)])
            inner += flat @ flat.T
        norms = np.sqrt(np.diag(inner))
        norms[norms == 0] = 1.0
        return inner / np.outer(norms, norms)

    # -- transforms, without copying -------------------------------------------------------

    def scaled(self, scale: np.ndarray) -> KernelStack:
        """Stack of ``scale[j] K_j``."""
        column = scale[:, None]
        return self._like(
            self.data,
            _scale=self._scale * scale,
            row_diag=_times(self.row_diag, column),
            col_diag=_times(self.col_diag, column),
            _row_offset=_times(self._row_offset, column),
            _col_offset=_times(self._col_offset, column),
        )

    def rescaled_samples(self, row_factor: np.ndarray, col_factor: np.ndarray) -> KernelStack:
        """Stack of ``f_j(r) f_j(c) K_j(r, c)`` for factors (n_kernels, rows) and (…, cols)."""
        base = self if self._row_offset is None else self.materialized()
        if base._row_factor is not None:
            row_factor_total = base._row_factor * row_factor
            col_factor_total = base._col_factor * col_factor
        else:
            row_factor_total, col_factor_total = row_factor, col_factor
        return base._like(
            base.data,
            _row_factor=row_factor_total,
            _col_factor=col_factor_total,
            row_diag=_times(base.row_diag, row_factor**2),
            col_diag=_times(base.col_diag, col_factor**2),
            centered=False,
        )

    def shifted(self, row_offset: np.ndarray, col_offset: np.ndarray) -> KernelStack:
        """Stack of ``K_j(r, c) − o_j(r) − o_j(c)``, the form of a centred kernel."""
        return self._like(
            self.data,
            _row_offset=_plus(self._row_offset, row_offset),
            _col_offset=_plus(self._col_offset, col_offset),
            row_diag=None if self.row_diag is None else self.row_diag - 2 * row_offset,
            col_diag=None if self.col_diag is None else self.col_diag - 2 * col_offset,
            centered=True,
            _bounded=self._bounded_if_centered,
        )

    def materialized(self, memmap: str | Path | None = None) -> KernelStack:
        """Copy with all transforms written into the data, in memory or in the file `memmap`."""
        data = allocate(self.data.shape, memmap)
        for j in range(self.n_kernels):
            for rows in self._row_blocks():
                data[j, rows] = self._values(j, rows)
        plain = dict.fromkeys(("_row_factor", "_col_factor", "_row_offset", "_col_offset"))
        return self._like(data, _scale=np.ones(self.n_kernels), **plain)

    # -- files -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write names, values and diagonals to a .npz file, transforms applied."""
        plain = self.materialized()
        arrays: dict[str, Any] = {
            "data": plain.data,
            "names": np.array(self.names),
            "flags": np.array([getattr(self, flag) for flag in _FLAGS]),
            "row_diag": self.row_diag,
            "col_diag": self.col_diag,
        }
        # An open file: given a path, NumPy would add a suffix that `load` does not know of.
        with open(path, "wb") as file:
            np.savez(file, **{name: value for name, value in arrays.items() if value is not None})

    @classmethod
    def load(cls, path: str | Path) -> KernelStack:
        """Read a stack written by :meth:`save`."""
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise ValueError(f"{path} is not a saved KernelStack: it is a single array.")
        with loaded as file:
            missing = {"data", "names", "flags"} - set(file.files)
            if missing:
                raise ValueError(
                    f"{path} is not a saved KernelStack: it has no {', '.join(sorted(missing))}."
                )
            flags = dict(zip(_FLAGS, file["flags"].tolist(), strict=True))
            diagonals = {k: file[k] for k in ("row_diag", "col_diag") if k in file.files}
            names = [str(name) for name in file["names"]]
            stack = cls(file["data"], names, gram=flags["gram"], **diagonals)
        stack.__dict__.update(flags)
        return stack


def _check_names(names: Sequence[str], n_kernels: int) -> list[str]:
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


def _check_diagonal(diagonal: Any, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    if diagonal is None:
        return None
    diagonal = np.asarray(diagonal, dtype=np.float64)
    if diagonal.shape != shape:
        raise ValueError(f"{what} must have shape {shape}, got {diagonal.shape}.")
    return diagonal


def _refuse_transposed(arrays: Any) -> None:
    shape = np.shape(arrays) if isinstance(arrays, np.ndarray) else ()
    if len(shape) == 3 and 1 < shape[0] == shape[1] != shape[2]:
        raise ValueError(
            f"An array of shape {shape} looks like (rows, cols, n_kernels), but from_arrays takes "
            "(n_kernels, rows, cols): pass np.moveaxis(array, -1, 0). If it is a block of "
            f"{shape[0]} kernels between {shape[1]} and {shape[2]} samples, pass gram=False."
        )


def _holds_floats(array: Any, shape: tuple[int, ...] | None = None) -> bool:
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
    if _holds_floats(arrays) and arrays.ndim == 3 and len(arrays):
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


def _positions(key: Any, size: int) -> np.ndarray:
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


def _take(array: np.ndarray | None, positions: np.ndarray, axis: int = 1) -> np.ndarray | None:
    return None if array is None else np.take(array, positions, axis=axis)


def _times(array: np.ndarray | None, factor: np.ndarray) -> np.ndarray | None:
    return None if array is None else array * factor


def _plus(array: np.ndarray | None, term: np.ndarray) -> np.ndarray:
    return term if array is None else array + term
