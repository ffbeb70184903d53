"""KernelStack: several kernel matrices of the same samples, as one array-like object.

A stack holds its matrices once, read-only, as ``data[j, r, c]``. Transforms are vectors beside
them (:mod:`manykernels.kernels._transformed`), so that centring and scaling copy no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from .._memory import allocate
from ._saving import read_stack, write_stack
from ._stored import StoredArray, StoredKernels
from ._transformed import Guarantees, Samples, take
from .checks import check_stack
from .matrices import (
    check_diagonal,
    check_names,
    chosen_kernels,
    positions,
    read_matrices,
    refuse_transposed,
)
from .notebook import stack_html
from .samples import check_samples, first_difference, same_samples

__all__ = ["KernelStack", "check_stack"]


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
