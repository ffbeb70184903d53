"""What a user may pass as X: a table of rows, several tables, or ready-made kernel matrices.

Training X is read once (:func:`read_training`) and gives the training kernels. What remains of it
after the fit is a *source*: it reads new X, and gives blocks of kernels between new samples and
the training samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._sklearn import num_samples, safe_indexing
from ..kernels import KernelStack, KernelUnion, Views, check_stack
from ..kernels.checks import check_finite
from ..kernels.completion import refuse_samples_without_kernels
from ..kernels.given import as_union, kernels_for
from ..kernels.matching import in_one_order, matched_targets, refuse_unlabelled
from ..kernels.matrices import read_matrices
from ..kernels.modalities import named_tables
from ..kernels.presence import (
    explaining_lacking_rows,
    refuse_rows_without_kernels,
    views_of_kernels,
)
from ..kernels.samples import TrainingSamples, column_names, row_names
from ..kernels.streamed import StreamedKernels
from ..kernels.tables import SharedTable, check_numbers, copied, is_frame
from ..kernels.views import are_views, as_views

# The attributes in which scikit-learn records the features of X.
_FEATURES = ("n_features_in_", "feature_names_in_")


def matched_by_label(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[Any, Any, Any]:
    """Several tables as :class:`Views`, and what belongs to their rows in the same order."""
    if estimator._is_precomputed or not are_views(X):
        return X, y, sample_weight
    views = as_views(X, join="outer" if _may_lack_views(estimator) else "exact")
    found = {"y": y, "sample_weight": sample_weight}
    if not isinstance(X, Views) and not in_one_order(named_tables(X)):
        refuse_unlabelled(found)
    y, sample_weight = (matched_targets(one, views.labels, name) for name, one in found.items())
    return views, y, sample_weight


def _may_lack_views(estimator: Any) -> bool:
    return getattr(estimator, "missing", "error") != "error"


# -- training ------------------------------------------------------------------------------


def read_training(estimator: Any, X: Any) -> Table | Matrices:
    """Training X of an estimator with a parameter ``kernels``, checked.

    scikit-learn records the features of X on the estimator that it validates X for. It is given a
    copy, because estimators change only when a fit has succeeded.
    """
    recorder = _copy_with_features(estimator, {})
    if not estimator._is_precomputed:
        if are_views(X):
            views = read_views(estimator, X).copy()
            names = np.array(views.names, dtype=object)
            features = {"n_features_in_": len(names), "feature_names_in_": names}
            return Table(views, features, estimator.kernels, estimator.missing)
        table = read_table(recorder, X, reset=True)
        return Table(table, _recorded(recorder), estimator.kernels, estimator.missing)
    stack, rounding = _as_stack(recorder, X, training=True)
    if not stack.gram:
        raise ValueError(
            "Training needs square kernel matrices of the training samples; got a "
            f"{stack.shape[0]} x {stack.shape[1]} block between different samples."
        )
    features = {**_recorded(recorder), "n_features_in_": stack.shape[1]}
    samples = TrainingSamples.of(stack)
    return Matrices(stack, features, samples, rounding, missing=estimator.missing)


def _copy_with_features(estimator: Any, features: dict[str, Any]) -> Any:
    """A copy of an estimator on which these features of X are recorded, and no others."""
    recorder = copy(estimator)
    for name in _FEATURES:
        vars(recorder).pop(name, None)
    vars(recorder).update(features)
    return recorder


def _recorded(recorder: BaseEstimator) -> dict[str, Any]:
    return {name: value for name, value in vars(recorder).items() if name in _FEATURES}


@dataclass(frozen=True)
class Table:
    """Rows that kernels are computed from."""

    X: Any
    features: dict[str, Any]
    kernels: Any
    missing: str = "error"

    #: As in :class:`Matrices`: None, because new rows are compared with all rows of this table.
    columns = None

    @property
    def n_kernels(self) -> int:
        """How many kernels there will be, before any is computed."""
        return len(kernels_for(self.X, self.kernels).kernels)

    def keep(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        return replace(self, X=safe_indexing(self.X, rows))

    def compute(
        self, sample_weight: np.ndarray | None, centered: bool, solver: Any
    ) -> tuple[Any, Source]:
        """Kernels of the training rows, and the source for new rows.

        Whatever a kernel takes from data, such as its width, it takes from these rows. If the
        solver works by columns, kernels are computed column by column when it needs them.
        """
        union = kernels_for(self.X, self.kernels, missing=self.missing)
        with explaining_lacking_rows(union, self.X):
            # What was made of the table to fit the kernels serves to evaluate them.
            shared = SharedTable(self.X)
            union.fit(shared, sample_weight=sample_weight)
        source = TableSource(union, self.X)
        if solver is not None and solver.by_columns:
            return StreamedKernels(union, self.X, cache_bytes=solver.cache_bytes), source
        return union(shared).with_views(views_of_kernels(union.kernels_, self.X)), source


@dataclass(frozen=True)
class Matrices:
    """Ready-made Gram matrices of the training samples.

    `samples` checks the columns of test blocks. `rounding` is the rounding error of the entries, 1
    for integers. `columns` are those columns of test blocks that belong to training samples in
    use; None if all do.
    """

    X: KernelStack
    features: dict[str, Any]
    samples: TrainingSamples
    rounding: float
    columns: np.ndarray | None = None
    missing: str = "error"

    @property
    def n_kernels(self) -> int:
        return self.X.n_kernels

    def keep(self, rows: np.ndarray) -> Matrices:
        """Some of the samples; test blocks still have columns for all."""
        return replace(self, X=self.X[np.ix_(rows, rows)], columns=rows)

    def compute(
        self, sample_weight: np.ndarray | None, centered: bool, solver: Any
    ) -> tuple[Any, Source]:
        """The matrices, checked, and the source for new samples."""
        names, width = self.X.names, self.features["n_features_in_"]
        source = MatrixSource(names, width, len(self.X), self.columns, self.samples)
        may_lack = self.missing != "error"
        stack = check_stack(self.X, centered=centered, rounding=self.rounding, missing=may_lack)
        return stack, source


# -- prediction ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TableSource:
    """Training rows, and the fitted kernels that compare new rows with them."""

    union: KernelUnion
    table: Any

    @cached_property
    def _shared(self) -> SharedTable:
        """The table, with what blocks of new rows need of it: columns as numbers, transformed."""
        return SharedTable(self.table)

    def __getstate__(self) -> dict[str, Any]:
        return {"union": self.union, "table": self.table}

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        return self.union.names_

    @property
    def n_samples(self) -> int:
        """How many training samples new ones are compared with."""
        return int(num_samples(self.table))

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        return {"X_fit_": self.table, "union_": self.union}

    def read(self, estimator: BaseEstimator, X: Any) -> Any:
        """New samples, checked."""
        name = type(estimator).__name__
        if isinstance(self.table, Views):
            if not are_views(X):
                raise ValueError(
                    f"{name} was fitted on the views {', '.join(self.table)}: pass a dict with a "
                    f"table for each of them, not {type(X).__name__}."
                )
            return read_views(estimator, X, self.table)
        if are_views(X):
            raise ValueError(
                f"{name} was fitted on one table; X holds several ({type(X).__name__})."
            )
        table = read_table(estimator, X, reset=False)
        if _may_lack_views(estimator):
            refuse_rows_without_kernels(self.union.kernels_, table)
        return table

    def block(self, data: Any, rows: Any, kernels: Any, columns: Any = None) -> KernelStack:
        """Some kernels between some rows of what `read` gave and (some) training samples."""
        samples = self._shared if columns is None else safe_indexing(self.table, columns)
        union = self.union.subset(kernels)
        with explaining_lacking_rows(union, data):
            return union(safe_indexing(data, rows), samples)

    def keep(self, rows: np.ndarray) -> TableSource:
        """The same source with some of the training samples only."""
        return replace(self, table=safe_indexing(self.table, rows))


@dataclass(frozen=True)
class MatrixSource:
    """What test blocks of ready-made kernels have to look like; methods as :class:`TableSource`.

    `width` is the number of their columns: one for every training sample that was passed.
    `columns` are those of the `n_samples` samples in use; None if all are.
    """

    names: list[str]
    width: int
    n_samples: int
    columns: np.ndarray | None
    samples: TrainingSamples

    attributes: ClassVar[dict[str, Any]] = {}

    def read(self, estimator: BaseEstimator, X: Any) -> KernelStack:
        stack, _ = _as_stack(estimator, X, training=False)
        name = type(estimator).__name__
        if stack.shape[1] != self.width:
            raise ValueError(
                f"X has {stack.shape[1]} features, but {name} is expecting {self.width} features "
                "as input: a test block has one column per training sample."
            )
        if stack.n_kernels != len(self.names):
            raise ValueError(
                f"X has {stack.n_kernels} kernels, but {name} was fitted on {len(self.names)}: "
                f"{', '.join(self.names)}."
            )
        if isinstance(X, KernelStack) and stack.names != self.names:
            raise ValueError(
                f"The kernels of X ({', '.join(stack.names)}) are not those of training "
                f"({', '.join(self.names)}), in this order."
            )
        self.samples.check_columns(stack)
        may_lack = _may_lack_views(estimator)
        stack = check_stack(stack, missing=may_lack)
        if may_lack:
            present = np.array([~np.isnan(block).all(axis=1) for block in stack.data])
            refuse_samples_without_kernels(present, self.names, stack.row_samples)
        return stack

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


Source = TableSource | MatrixSource


def block_while_fitting(source: Source, estimator: Any, data: Table | Matrices, X: Any) -> Any:
    """All kernels between new X, checked, and training samples that were read as `data`.

    The estimator need not be fitted: the features of X are compared with those of `data`.
    """
    new = source.read(_copy_with_features(estimator, data.features), X)
    return source.block(new, slice(0, int(num_samples(new))), np.arange(len(source.names)))


# -- reading -------------------------------------------------------------------------------


def read_views(estimator: Any, X: Any, training: Views | None = None) -> Views:
    """Several tables, checked; those of new samples are brought into the order of `training`."""
    may_lack = _may_lack_views(estimator)
    views = as_views(X, join="outer" if may_lack else "exact")
    if training is not None:
        views = views.like(training, may_lack=may_lack)
    if not may_lack:
        views.refuse_lacking()
    refuse_samples_without_kernels(views.present.T, views.names, views.labels, "views")
    return views


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """A table for kernels: numbers, a sparse matrix or a data frame, checked.

    With `reset` its features are recorded on the estimator, else compared with those recorded.
    """
    if isinstance(X, KernelStack):
        raise ValueError('A KernelStack is passed with kernels="precomputed".')
    _refuse_lists_of_tables(X)
    if is_frame(X):
        # Kernels select columns by name and check them, so the data frame is not converted.
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        if num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s): the table has no rows.")
        if X.shape[1] == 0:
            raise ValueError("Found array with 0 feature(s): the table has no columns.")
        return copied(X) if reset else X
    check_numbers(X, "X", "Tables with text are passed as data frames.")
    may_lack = _may_lack_views(estimator)
    # Default kernels have all columns; nothing more can be said of a row without any.
    known = None if may_lack or estimator.kernels is None else as_union(estimator.kernels)
    with explaining_lacking_rows(known, X):
        return validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan" if may_lack else True,
            reset=reset,
            copy=reset,
        )


def _refuse_lists_of_tables(X: Any) -> None:
    """Refuse a list of tables, which NumPy would try to make one array of."""
    if not isinstance(X, list | tuple) or not X:
        return
    if all(len(getattr(one, "shape", ())) == 2 for one in X):
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} tables: views of the same samples are passed "
            'as a dict with their names, such as {"audio": X1, "text": X2}.'
        )


def _as_stack(estimator: BaseEstimator, X: Any, *, training: bool) -> tuple[KernelStack, float]:
    """Kernel matrices as a stack, not yet checked, and the rounding error of their entries.

    A 3-D array is (rows, cols, n_kernels). Integers may have been rounded from other numbers:
    their rounding error is 1. Rows and columns of a data frame name the samples.
    """
    if isinstance(X, KernelStack):
        return X, 0.0
    if isinstance(X, Mapping):
        integers = [np.asarray(one).dtype.kind in "biu" for one in X.values()]
        missing = _may_lack_views(estimator)
        stack = KernelStack.from_arrays(X, gram=training, psd="ignore", missing=missing)
        return stack, float(any(integers))
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
            # scikit-learn checks it, too, but does not say where the entry is.
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
