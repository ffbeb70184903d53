"""KernelStack: several kernel matrices of the same samples, as one array-like object.

A stack holds its matrices once, read-only, as ``data[j, r, c]`` and remembers what has been
done to them since as vectors, so that no transform copies the data:

    K_j(r, c) = scale_j · f_j(r) · f_j(c) · data[j, r, c] − o_j(r) − o_j(c)              (*)

``f`` are sample factors (spherical normalisation), ``o`` offsets (centring), ``scale`` one
number per kernel (trace and multiplicative normalisation). Sums over kernels and products
with a few columns cost one pass over ``data`` whatever the transform.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._memory import allocate
from ._arithmetic import KernelArithmetic
from ._storage import (
    check_diagonal,
    check_names,
    positions,
    refuse_transposed,
    storage_array,
    take,
)
from .checks import check_stack

__all__ = ["KernelStack", "allocate", "check_stack"]

_FLAGS = ("gram", "checked", "centered", "_bounded", "_bounded_if_centered")


class KernelStack(KernelArithmetic):
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
    features : ndarray of shape (rows, n_features) or None
        A table that goes with the rows, see :meth:`with_features`.

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
        self.names = check_names(names, len(data))
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
        self.row_diag = check_diagonal(row_diag, data.shape[:2], "row_diag")
        if gram and col_diag is None:
            col_diag = self.row_diag
        self.col_diag = check_diagonal(col_diag, data.shape[::2], "col_diag")
        self.features: np.ndarray | None = None
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
            refuse_transposed(arrays)
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
        if self.features is not None:
            self.features.flags.writeable = False

    # -- what scikit-learn asks of an array ------------------------------------------------

    ndim = 3

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

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
        rows = positions(row_key, self.data.shape[1])
        cols = positions(col_key, self.data.shape[2])
        data = allocate((self.n_kernels, len(rows), len(cols)))
        flat = (rows[:, None] * self.data.shape[2] + cols).ravel()
        for source, target in zip(self.data, data, strict=True):
            # mode="clip" skips a bounds check that positions has made already.
            np.take(source.reshape(-1), flat, out=target.reshape(-1), mode="clip")
        return self._like(
            data,
            gram=self.gram and np.array_equal(rows, cols),
            row_diag=take(self.row_diag, rows),
            col_diag=take(self.col_diag, cols),
            _row_factor=take(self._row_factor, rows),
            _col_factor=take(self._col_factor, cols),
            _row_offset=take(self._row_offset, rows),
            _col_offset=take(self._col_offset, cols),
            features=None if self.features is None else self.features[rows],
            # A sub-sample of centred rows is not centred any more.
            centered=False,
        )

    def with_features(self, features: Any) -> KernelStack:
        """The same stack with a table of features of its rows, cut along with them.

        Localized machines let their gate look at it.

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
        picked = {name: take(getattr(self, name), chosen, axis=0) for name in vectors}
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
            features=None if self.features is None else self.features[rows],
        )
        return part.select(kernels)

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

    def _changed(self, **changes: Any) -> KernelStack:
        return self._like(self.data, **changes)

    def _without_offsets(self) -> KernelStack:
        return self.materialized()

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
            "features": self.features,
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
            if "features" in file.files:
                stack = stack.with_features(file["features"])
        stack.__dict__.update(flags)
        return stack
