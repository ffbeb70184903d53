"""From whatever a user passes as X to kernel stacks: training once, test rows in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from .._sklearn import num_samples, safe_indexing
from .._warnings import warn_caller
from ..kernels import KernelStack, KernelUnion, Linear, as_kernel, check_stack, rbf_grid
from ..kernels.checks import check_finite
from ..kernels.matrices import read_matrices
from ..kernels.samples import TrainingSamples, column_names, row_names
from ..kernels.streamed import StreamedKernels
from ..kernels.tables import check_numbers, is_frame
from ..kernels.transforms import Chain

# Entries of a test block held at once, over all kernels: 64 MiB.
_TEST_BLOCK_ENTRIES = 2**23


def default_kernels() -> KernelUnion:
    """Kernels for any table: linear, and Gaussians from local to nearly linear."""
    widths = rbf_grid([0.25, 0.5, 1, 2, 4], gamma="scale").kernels
    return KernelUnion([("linear", Linear()), *widths])


def as_union(kernels: Any) -> KernelUnion:
    """A new union of whatever is accepted as ``kernels``."""
    if kernels is None:
        return default_kernels()
    if isinstance(kernels, KernelUnion):
        return clone(kernels)
    if isinstance(kernels, Mapping):
        return KernelUnion([(name, clone(kernel, safe=False)) for name, kernel in kernels.items()])
    if isinstance(kernels, list | tuple):
        if _are_pairs(kernels):
            return KernelUnion(list(clone(kernels, safe=False)))
        return KernelUnion(_named([as_kernel(kernel) for kernel in kernels]))
    return KernelUnion(_named([as_kernel(kernels)]))


def _are_pairs(kernels: Any) -> bool:
    return any(isinstance(item, tuple) for item in kernels)


def _have_names(kernels: Any) -> bool:
    """Whether kernels that are in no union have names of their own."""
    return isinstance(kernels, Mapping) or (
        isinstance(kernels, list | tuple) and _are_pairs(kernels)
    )


def _with_parameters(kernels: Any, params: dict[str, Any]) -> Any:
    """New kernels like these with parameters set, by ``<name>__<parameter>``."""
    union = as_union(kernels).set_params(**params)
    return dict(union.kernels) if isinstance(kernels, Mapping) else union.kernels


def _named(kernels: list[Any]) -> list[tuple[str, Any]]:
    """Kernels under the names of their classes, numbered where a class comes twice."""
    classes = [type(kernel).__name__.lower() for kernel in kernels]
    names = [
        name if classes.count(name) == 1 else f"{name}{1 + classes[:position].count(name)}"
        for position, name in enumerate(classes)
    ]
    return list(zip(names, kernels, strict=True))


def _warn_of_constants(
    stack: KernelStack | StreamedKernels, transform: Chain, shift_invariant: bool
) -> None:
    """Name the kernels that nothing can be learnt from, `transform` being fitted to them.

    Called where a fit prepares its kernels, not where stacks are made or cut: refits and folds
    inside an estimator do not repeat it, and the text is the same in every fold of a search, so
    that Python's filter shows it once.
    """
    if len(stack) < 2:
        return
    useless = stack.without_variance()
    if not shift_invariant:
        diagonal = stack.row_diag
        assert diagonal is not None
        useless = useless[~diagonal[useless].any(axis=1)]
    # Whatever the machine makes of a constant, a normalisation by variance leaves none.
    erased = transform.erased()
    useless = np.union1d(useless, erased)
    if not len(useless):
        return
    names = ", ".join(repr(stack.names[j]) for j in useless)
    kind, way_out = "zero", ""
    if shift_invariant or len(erased):
        kind = "constant (or zero)"
        way_out = " If the data behind them do vary, rounding hides it: centre them."
    warn_caller(
        f"Nothing can be learnt from kernels that are {kind} on training samples: {names}."
        + way_out,
        UserWarning,
    )


class KernelInput:
    """Mixin: how an estimator with a ``kernels`` parameter reads its X."""

    kernels: Any
    #: Whether adding a constant to a kernel changes nothing.
    _shift_invariant = True
    # Columns of test blocks that belong to training samples; None if all do.
    _train_columns: np.ndarray | None
    _train_samples = TrainingSamples(None, None, None)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed
        return tags

    # Pairs and dicts of named kernels offer the same nested parameters as a KernelUnion.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; those of a kernel are ``kernels__<name>__<parameter>``."""
        params: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep and _have_names(self.kernels):
            nested = as_union(self.kernels).get_params()
            del nested["kernels"]
            params.update({f"kernels__{name}": value for name, value in nested.items()})
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of a kernel are ``kernels__<name>__<parameter>``."""
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        prefix = "kernels__"
        nested = {name: params.pop(name) for name in list(params) if name.startswith(prefix)}
        if nested and (self.kernels is None or isinstance(self.kernels, str)):
            raise ValueError(
                f"{next(iter(nested))} cannot be set while kernels={self.kernels!r}, which has no "
                "parameters: pass kernels that have, such as "
                f'{type(self).__name__}([("rbf", RBF()), ("linear", Linear())]), whose parameters '
                "are kernels__rbf__gamma and so on."
            )
        if nested and isinstance(self.kernels, list | tuple | Mapping):
            inner = {name.removeprefix(prefix): value for name, value in nested.items()}
            self.kernels, nested = _with_parameters(self.kernels, inner), {}
        return super().set_params(**params, **nested)  # type: ignore[misc]

    # -- training --------------------------------------------------------------------------

    def _read_training(self, X: Any) -> Any:
        """Validate training X: a table for the kernels, or a Gram stack if precomputed."""
        if not self._is_precomputed:
            return self._table(X, reset=True)
        stack = self._as_stack(X, reset=True, gram=True)
        self._train_columns = None
        if not stack.gram:
            raise ValueError(
                "Training needs square kernel matrices of the training samples; got a "
                f"{stack.shape[0]} x {stack.shape[1]} block between different samples."
            )
        return stack

    def _without(self, data: Any, kept: np.ndarray) -> Any:
        """Training data of the rows `kept`; test blocks go on having columns for all."""
        if not isinstance(data, KernelStack):
            return safe_indexing(data, kept)
        self._train_columns = kept
        return data[np.ix_(kept, kept)]

    def _count_kernels(self, data: Any) -> int:
        """How many kernels there will be, before any is computed."""
        if isinstance(data, KernelStack):
            return data.n_kernels
        return len(as_union(self.kernels).kernels)

    def _prepared_stack(
        self,
        data: Any,
        transform: Chain,
        weights: np.ndarray | None,
        labels: np.ndarray | None = None,
        solver: Any = None,
    ) -> Any:
        """What `transform`, fitted here, makes of the kernels of the training rows."""
        stack = self._training_stack(data, weights, solver)
        prepared = transform.fit_transform(stack, labels, weights)
        _warn_of_constants(stack, transform, self._shift_invariant)
        return prepared

    def _training_stack(
        self, data: Any, sample_weight: np.ndarray | None, solver: Any = None
    ) -> Any:
        """Stack of the training rows, or its like by columns; scales are frozen here."""
        if isinstance(data, KernelStack):
            self._input_names = data.names
            return check_stack(data, centered=self._shift_invariant, rounding=self._rounding)
        self.union_ = as_union(self.kernels).fit(data, sample_weight=sample_weight)
        self._input_names = self.union_.names_
        self.X_fit_ = data
        if getattr(solver, "by_columns", False):
            return StreamedKernels(self.union_, data, cache_bytes=solver.cache_bytes)
        return self.union_(data)

    def _table(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, KernelStack):
            raise ValueError('A KernelStack is passed with kernels="precomputed".')
        if is_frame(X):
            # Kernels pick columns by name and check their own, so the dataframe stays one.
            validate_data(self, X, skip_check_array=True, reset=reset)
            if num_samples(X) == 0:
                raise ValueError("Found array with 0 sample(s): the table has no rows.")
            if X.shape[1] == 0:
                raise ValueError("Found array with 0 feature(s): the table has no columns.")
            return X.copy() if hasattr(X, "copy") else X.clone()
        check_numbers(X, "X")
        return validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=reset, copy=reset
        )

    def _as_stack(self, X: Any, *, reset: bool, gram: bool) -> KernelStack:
        rounding = 0.0
        if not isinstance(X, KernelStack):
            X, rounding = self._stack_of_array(X, reset=reset, gram=gram)
        if reset:
            self.n_features_in_ = X.shape[1]
            self._rounding = rounding
            self._train_samples = TrainingSamples.of(X)
        return X

    def _stack_of_array(self, X: Any, *, reset: bool, gram: bool) -> tuple[KernelStack, float]:
        """Kernel matrices as an unchecked stack, and the size of the rounding of their entries.

        A 3-D array is (rows, cols, n_kernels). Integers are rounded to 1. Rows and columns of a
        data frame name the samples.
        """
        array = X if isinstance(X, np.ndarray) else np.asarray(X)
        if array.ndim == 3:
            if gram and array.shape[1] == array.shape[2] != array.shape[0]:
                raise ValueError(
                    f"An array of shape {array.shape} looks like (n_kernels, rows, cols); a "
                    "3-D X is (rows, cols, n_kernels): pass np.moveaxis(X, 0, -1), or "
                    "KernelStack.from_arrays(X)."
                )
            matrices = read_matrices(list(np.moveaxis(array, -1, 0))).data
        else:
            check_numbers(X, "X")
            if array.ndim == 2 and array.dtype.kind == "f":
                # Before scikit-learn does, which would not say where.
                check_finite(array, "kernel0")
            matrices = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)[None]
        if gram and matrices.shape[1] != matrices.shape[2]:
            raise ValueError(
                "X should be a square kernel matrix of the training samples (or an array "
                f"(rows, rows, n_kernels)); got {matrices.shape[1]} x {matrices.shape[2]}."
            )
        names = [f"kernel{j}" for j in range(len(matrices))]
        rounding = float(np.issubdtype(array.dtype, np.integer))
        stack = KernelStack(np.ascontiguousarray(matrices), names, gram=gram)
        return stack.with_samples(row_names(X), column_names(X)), rounding

    # -- prediction ------------------------------------------------------------------------

    def _remember_kernels(
        self,
        stack: KernelStack | StreamedKernels,
        weights: np.ndarray,
        transform: Chain,
        rows: np.ndarray | None = None,
    ) -> None:
        """Keep what prediction needs: the kernels whose part in the sum is not rounding.

        `stack` is what `transform` made of the kernels of X, perhaps several of one. `rows` are
        the training samples with coefficients, where some have none.
        """
        active = stack.contributing(weights)
        # Kernels without any variance give no scores, but they do predict the largest prior.
        self._active = active if len(active) else np.array([0])
        self._transform = transform.select(self._active)
        self._sources = transform.sources(self._active)
        self._n_train = len(stack)
        self.kernel_names_ = stack.names
        if rows is not None:
            self._keep_columns(rows)
        if not self._is_precomputed:
            self._active_union = self.union_.subset(self._sources)

    def _keep_columns(self, rows: np.ndarray) -> None:
        """Compare new samples with these training samples only."""
        self._transform = self._transform.for_columns(rows)
        self._n_train = len(rows)
        if self._is_precomputed:
            known = self._train_columns
            self._train_columns = rows if known is None else known[rows]
        else:
            self.X_fit_ = safe_indexing(self.X_fit_, rows)

    def _project(self, X: Any, coefficients: np.ndarray) -> np.ndarray:
        """``Σ_j weights_j K_j(X, training rows) @ coefficients``, in blocks of rows."""
        weights = self.weights_[self._active]  # type: ignore[attr-defined]
        n_rows, blocks = self._test_blocks(X)
        projected = np.empty((n_rows, coefficients.shape[1]))
        for rows, stack in blocks:
            stack = self._transform.transform(stack)
            projected[rows] = stack.apply_combined(weights, coefficients)
        return projected

    def _test_blocks(self, X: Any) -> tuple[int, Iterator[tuple[slice, KernelStack]]]:
        """Number of rows of X, and the kernels needed against the training rows, in blocks."""
        height = max(1, _TEST_BLOCK_ENTRIES // (len(self._active) * self._n_train))
        if self._is_precomputed:
            stack = self._checked_test_stack(X)
            starts = range(0, len(stack), height)
            slices = [slice(start, min(start + height, len(stack))) for start in starts]
            blocks = (stack.rows(rows, self._sources) for rows in slices)
            if self._train_columns is not None:
                blocks = (block[:, self._train_columns] for block in blocks)
            return len(stack), zip(slices, blocks, strict=True)
        table = self._table(X, reset=False)
        n_rows = num_samples(table)
        slices = [slice(s, min(s + height, n_rows)) for s in range(0, n_rows, height)]
        return n_rows, (
            (rows, self._active_union(safe_indexing(table, rows), self.X_fit_)) for rows in slices
        )

    def _checked_test_stack(self, X: Any) -> KernelStack:
        stack = self._as_stack(X, reset=False, gram=False)
        if stack.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {stack.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: a test block has one column per "
                "training sample."
            )
        if stack.n_kernels != len(self._input_names):
            raise ValueError(
                f"X has {stack.n_kernels} kernels, but {type(self).__name__} was fitted on "
                f"{len(self._input_names)}: {', '.join(self._input_names)}."
            )
        if isinstance(X, KernelStack) and stack.names != self._input_names:
            raise ValueError(
                f"The kernels of X ({', '.join(stack.names)}) are not those of training "
                f"({', '.join(self._input_names)}), in this order."
            )
        self._train_samples.check_columns(stack)
        return check_stack(stack)
