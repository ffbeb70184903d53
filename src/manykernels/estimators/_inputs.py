"""What a user may pass as X: a table of rows, or ready-made kernel matrices.

Either is read once for training (:func:`read_training`) and gives the training kernels. What is
left of it after the fit, a *source*, reads new X and gives blocks of kernels between new samples
and the training samples.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._sklearn import num_samples, safe_indexing
from ..kernels import KernelStack, KernelUnion, check_stack
from ..kernels.checks import check_finite
from ..kernels.matrices import read_matrices
from ..kernels.samples import TrainingSamples, column_names, row_names
from ..kernels.streamed import StreamedKernels
from ..kernels.tables import check_numbers, is_frame
from ._unions import as_union


class Source(Protocol):
    """Training samples, with which new ones are compared."""

    @property
    def names(self) -> list[str]:
        """Of the kernels."""
        ...

    @property
    def n_samples(self) -> int:
        """How many training samples new ones are compared with."""
        ...

    @property
    def attributes(self) -> dict[str, Any]:
        """What an estimator keeps for its users."""
        ...

    def read(self, estimator: BaseEstimator, X: Any) -> Any:
        """New samples, checked."""
        ...

    def block(self, data: Any, rows: Any, kernels: Any, columns: Any = None) -> KernelStack:
        """Some kernels between some rows of what `read` gave and (some) training samples."""
        ...

    def keep(self, rows: np.ndarray) -> Self:
        """The same source with some of the training samples only."""
        ...


# -- training ------------------------------------------------------------------------------


def read_training(estimator: Any, X: Any) -> Table | Matrices:
    """Training X of an estimator with a parameter ``kernels``, checked.

    scikit-learn notes the features of X on the estimator it checks for. It is shown a copy:
    estimators change only when a fit has succeeded.
    """
    noted = knowing(estimator, {})
    if estimator._is_precomputed:
        return Matrices.read(noted, X)
    table = read_table(noted, X, reset=True)
    return Table(estimator.kernels, table, _features(noted))


# What scikit-learn notes of X.
_FEATURES = ("n_features_in_", "feature_names_in_")


def knowing(estimator: Any, features: dict[str, Any]) -> Any:
    """A copy of an estimator that has noted these features of X, and no others."""
    noted = copy(estimator)
    for name in _FEATURES:
        vars(noted).pop(name, None)
    vars(noted).update(features)
    return noted


def _features(noted: BaseEstimator) -> dict[str, Any]:
    return {name: value for name, value in vars(noted).items() if name in _FEATURES}


@dataclass(frozen=True)
class Table:
    """Rows that kernels are computed from."""

    kernels: Any
    table: Any
    features: dict[str, Any]

    @property
    def rows(self) -> Any:
        """Something with one entry per row."""
        return self.table

    @property
    def n_rows(self) -> int:
        return int(num_samples(self.table))

    #: Test tables have no columns to choose from.
    columns = None

    @property
    def n_kernels(self) -> int:
        """How many kernels there will be, before any is computed."""
        return len(as_union(self.kernels).kernels)

    def keep(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        return replace(self, table=safe_indexing(self.table, rows))

    def compute(
        self, sample_weight: np.ndarray | None, centered: bool, solver: Any
    ) -> tuple[Any, Source]:
        """Kernels of the training rows, and the source for new ones; scales are frozen here.

        A solver that works by columns gets kernels that are computed column by column.
        """
        union = as_union(self.kernels).fit(self.table, sample_weight=sample_weight)
        source = TableSource(union, self.table)
        if solver is not None and solver.by_columns:
            return StreamedKernels(union, self.table, cache_bytes=solver.cache_bytes), source
        return union(self.table), source


@dataclass(frozen=True)
class Matrices:
    """Ready-made Gram matrices of the training samples.

    Attributes
    ----------
    stack : KernelStack
    columns : ndarray of int or None
        Columns of test blocks that belong to samples in use; None if all do.
    samples : TrainingSamples
        By which the columns of test blocks are recognised.
    rounding : float
        Rounding error of the entries: 1 for integers.
    """

    stack: KernelStack
    columns: np.ndarray | None
    samples: TrainingSamples
    rounding: float
    features: dict[str, Any]

    @classmethod
    def read(cls, noted: BaseEstimator, X: Any) -> Matrices:
        stack, rounding = _as_stack(noted, X, training=True)
        if not stack.gram:
            raise ValueError(
                "Training needs square kernel matrices of the training samples; got a "
                f"{stack.shape[0]} x {stack.shape[1]} block between different samples."
            )
        features = {**_features(noted), "n_features_in_": stack.shape[1]}
        return cls(stack, None, TrainingSamples.of(stack), rounding, features)

    @property
    def rows(self) -> KernelStack:
        return self.stack

    @property
    def n_rows(self) -> int:
        return len(self.stack)

    @property
    def n_kernels(self) -> int:
        return self.stack.n_kernels

    def keep(self, rows: np.ndarray) -> Matrices:
        """Some of the samples; test blocks go on having columns for all."""
        return replace(self, stack=self.stack[np.ix_(rows, rows)], columns=rows)

    def compute(
        self, sample_weight: np.ndarray | None, centered: bool, solver: Any
    ) -> tuple[Any, Source]:
        """The matrices, checked, and the source for new samples."""
        names, width = self.stack.names, self.features["n_features_in_"]
        source = MatrixSource(names, width, len(self.stack), self.columns, self.samples)
        return check_stack(self.stack, centered=centered, rounding=self.rounding), source


# -- prediction ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TableSource:
    """Training rows, and the fitted kernels that compare new rows with them."""

    union: KernelUnion
    table: Any

    @property
    def names(self) -> list[str]:
        return self.union.names_

    @property
    def n_samples(self) -> int:
        return int(num_samples(self.table))

    @property
    def attributes(self) -> dict[str, Any]:
        return {"X_fit_": self.table, "union_": self.union}

    def read(self, estimator: BaseEstimator, X: Any) -> Any:
        return read_table(estimator, X, reset=False)

    def block(self, data: Any, rows: Any, kernels: Any, columns: Any = None) -> KernelStack:
        samples = self.table if columns is None else safe_indexing(self.table, columns)
        return self.union.subset(kernels)(safe_indexing(data, rows), samples)

    def keep(self, rows: np.ndarray) -> TableSource:
        return replace(self, table=safe_indexing(self.table, rows))


@dataclass(frozen=True)
class MatrixSource:
    """What test blocks of ready-made kernels have to look like.

    Attributes
    ----------
    names : list of str
        Of the kernels.
    width : int
        Columns of a test block: all training samples that were passed.
    n_samples : int
    columns : ndarray of int or None
        Those of the samples in use; None if all are.
    samples : TrainingSamples
    """

    names: list[str]
    width: int
    n_samples: int
    columns: np.ndarray | None
    samples: TrainingSamples

    attributes = property(lambda self: {})

    def read(self, estimator: BaseEstimator, X: Any) -> KernelStack:
        stack, _ = _as_stack(estimator, X, training=False)
        name = type(estimator).__name__
        if stack.shape[1] != self.width:
            raise ValueError(
                f"X has {stack.shape[1]} features, but {name} is expecting "
                f"{self.width} features as input: a test block has one column per "
                "training sample."
            )
        if stack.n_kernels != len(self.names):
            raise ValueError(
                f"X has {stack.n_kernels} kernels, but {name} was fitted on "
                f"{len(self.names)}: {', '.join(self.names)}."
            )
        if isinstance(X, KernelStack) and stack.names != self.names:
            raise ValueError(
                f"The kernels of X ({', '.join(stack.names)}) are not those of training "
                f"({', '.join(self.names)}), in this order."
            )
        self.samples.check_columns(stack)
        return check_stack(stack)

    def block(self, data: Any, rows: Any, kernels: Any, columns: Any = None) -> KernelStack:
        used = self.columns
        if columns is not None:
            used = columns if used is None else used[columns]
        if isinstance(rows, slice):
            part = data.rows(rows, kernels)
            return part if used is None else part[:, used]
        part = data.select(kernels)
        return part[rows] if used is None else part[np.ix_(rows, used)]

    def keep(self, rows: np.ndarray) -> MatrixSource:
        columns = rows if self.columns is None else self.columns[rows]
        return replace(self, n_samples=len(rows), columns=columns)


def block_of(source: Source, estimator: BaseEstimator, X: Any) -> KernelStack:
    """All kernels between new X, checked, and the training samples."""
    data = source.read(estimator, X)
    return source.block(data, slice(0, int(num_samples(data))), np.arange(len(source.names)))


# -- reading -------------------------------------------------------------------------------


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """A table for kernels: numbers, a sparse matrix or a data frame, checked.

    With `reset` its features are noted on the estimator, else compared with those noted.
    """
    if isinstance(X, KernelStack):
        raise ValueError('A KernelStack is passed with kernels="precomputed".')
    if is_frame(X):
        # Kernels pick columns by name and check their own, so the dataframe stays one.
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        if num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s): the table has no rows.")
        if X.shape[1] == 0:
            raise ValueError("Found array with 0 feature(s): the table has no columns.")
        return X.copy() if hasattr(X, "copy") else X.clone()
    check_numbers(X, "X")
    return validate_data(
        estimator, X, accept_sparse="csr", dtype=np.float64, reset=reset, copy=reset
    )


def _as_stack(estimator: BaseEstimator, X: Any, *, training: bool) -> tuple[KernelStack, float]:
    """Kernel matrices as a stack, unchecked if new, and the rounding error of their entries.

    A 3-D array is (rows, cols, n_kernels). Integers are rounded to 1. Rows and columns of a
    data frame name the samples.
    """
    if isinstance(X, KernelStack):
        return X, 0.0
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim == 3:
        if training and array.shape[1] == array.shape[2] != array.shape[0]:
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
        matrices = validate_data(estimator, X, dtype=[np.float64, np.float32], reset=training)
        matrices = matrices[None]
    if training and matrices.shape[1] != matrices.shape[2]:
        raise ValueError(
            "X should be a square kernel matrix of the training samples (or an array "
            f"(rows, rows, n_kernels)); got {matrices.shape[1]} x {matrices.shape[2]}."
        )
    names = [f"kernel{j}" for j in range(len(matrices))]
    rounding = float(np.issubdtype(array.dtype, np.integer))
    stack = KernelStack(np.ascontiguousarray(matrices), names, gram=training)
    return stack.with_samples(row_names(X), column_names(X)), rounding
