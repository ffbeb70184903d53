"""Reading and checking of X: tables, views and kernel matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from operator import add
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import validate_data

from ..kernels import KernelStack, KernelUnion, Views
from ..kernels.auto import kernels_for, transforms
from ..kernels.checks import check_finite
from ..kernels.columns import compared_columns, like_training, trained_columns
from ..kernels.completion import (
    explaining_lacking_rows,
    refuse_rows_without_kernels,
    refuse_samples_without_kernels,
    views_of_kernels,
)
from ..kernels.composition import names_its_columns
from ..kernels.matching import (
    TrainingSamples,
    column_names,
    matched_targets,
    row_labels,
    row_names,
)
from ..kernels.on_demand import OnDemandKernels, StreamedKernels
from ..kernels.stack import check_stack, read_matrices
from ..kernels.tables import (
    SharedTable,
    Table,
    check_numbers,
    column_of_strings,
    copied,
    is_frame,
    naming,
    native_frame,
    refuse_infinite,
    refuse_repeated_columns,
)
from ..kernels.views import are_views, as_views, columns_like, matched_views, row_keys
from ..scale.blocks import comes_in_blocks, map_blocks, refuse_unread, row_blocks
from ..scale.rows import is_dask
from ..utils.folds import equal_kernel_rows, groups_to_keep, numbered
from ..utils.sklearn import in_output_container, num_samples, safe_indexing
from ..utils.storable import storable


def may_lack_views(estimator: BaseEstimator) -> bool:
    """Return True if samples may lack views, by the parameter ``missing`` of an estimator."""
    return getattr(estimator, "missing", "error") != "error"


def may_have_gaps(estimator: BaseEstimator) -> bool:
    """Return True if numbers may be missing: samples may lack views, or kernels impute."""
    return may_lack_views(estimator) or (
        not estimator._is_precomputed and transforms(estimator.kernels)
    )


def read_views(estimator: BaseEstimator, X: Table, training: Views | None = None) -> Views:
    """Return several tables, checked; new samples get the views in the order of `training`."""
    may_lack = may_lack_views(estimator)
    views = as_views(X, join="outer" if may_lack else "exact")
    if training is not None:
        views = views.like(training, may_lack=may_lack)
    if not may_lack:
        views.refuse_lacking()
    refuse_samples_without_kernels(views.present.T, views.names, views.labels, "views")
    return views


def read_table(estimator: BaseEstimator, X: Table, *, reset: bool) -> Any:
    """Return a table for kernels, checked: numbers, a sparse matrix, a data frame or strings.

    With `reset` its features are recorded on the estimator, else compared with the recorded ones.
    """
    if isinstance(X, KernelStack):
        raise ValueError('A KernelStack is passed with kernels="precomputed".')
    refuse_unread(X)
    X = native_frame(X)
    if is_frame(X):
        with naming("X"):
            refuse_repeated_columns(X)
        # Kernels select columns by name and check them, so the data frame is not converted.
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        if num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s): the table has no rows.")
        if X.shape[1] == 0:
            raise ValueError("Found array with 0 feature(s): the table has no columns.")
        return copied(X) if reset else X
    if (strings := column_of_strings(X)) is not None:
        validate_data(estimator, strings, skip_check_array=True, reset=reset)
        return strings
    check_numbers(X, "X", "Tables with text are passed as data frames.")
    table = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite=False,
        reset=reset,
        copy=reset,
    )
    # Kernels say which value is missing, or fill it in by a transformer of theirs.
    refuse_infinite(table, "X")
    return table


def in_container(estimator: BaseEstimator, values: np.ndarray, X: Table) -> Any:
    """Return the transformed rows of X as ``set_output`` asks; rows of views have their labels."""

    def labels() -> np.ndarray | None:
        if not are_views(X) or comes_in_blocks(X):
            return None
        return as_views(X, join="outer" if may_lack_views(estimator) else "exact").labels

    return in_output_container(estimator, values, X, labels)


def is_list_of_tables(X: Table) -> bool:
    """Return True if X is a list of two-dimensional arrays or frames, not a table itself."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(len(getattr(table, "shape", ())) == 2 for table in X)


def unchecked_stack(matrices: Any, *, gram: bool) -> KernelStack:
    """Return a dict or list of kernel matrices as a stack, before :func:`check_stack`."""
    data, names, rows, cols = read_matrices(matrices)
    if gram and data.shape[1] != data.shape[2]:
        _refuse_not_square(data)
    return KernelStack(data, names, gram=gram).with_samples(rows, cols)


def _refuse_not_square(matrices: np.ndarray) -> None:
    raise ValueError(
        "X should be a square kernel matrix of the training samples (or an array "
        f"(rows, rows, n_kernels)); got {matrices.shape[1]} x {matrices.shape[2]}."
    )


def read_stack(estimator: BaseEstimator, X: Any, *, training: bool) -> tuple[KernelStack, float]:
    """Return kernel matrices as a stack, unchecked, and the rounding error of their entries.

    A 3-D array is (rows, cols, n_kernels), a dict or list has a matrix for each kernel. Integers
    may have been rounded from other numbers: their rounding error is 1. Rows and columns of a data
    frame name the samples.
    """
    if isinstance(X, KernelStack):
        return X, 0.0
    if isinstance(X, Mapping) or is_list_of_tables(X):
        given = X.values() if isinstance(X, Mapping) else X
        integers = [np.asarray(matrix).dtype.kind in "biu" for matrix in given]
        return unchecked_stack(X, gram=training), float(any(integers))
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
        if is_frame(X):
            with naming("X"):
                refuse_repeated_columns(X)
        check_numbers(X, "X")
        if array.ndim == 2 and array.dtype.kind == "f":
            # scikit-learn checks it, too, but does not say where the entry is.
            check_finite(array, "kernel0")
        matrices = validate_data(estimator, X, dtype=[np.float64, np.float32], reset=training)
        matrices = matrices[None]
    if training and matrices.shape[1] != matrices.shape[2]:
        _refuse_not_square(matrices)
    names = [f"kernel{j}" for j in range(len(matrices))]
    rounding = float(np.issubdtype(array.dtype, np.integer))
    stack = KernelStack(np.ascontiguousarray(matrices), names, gram=training)
    return stack.with_samples(row_names(X), column_names(X)), rounding


# -- X of users: a table of rows, several tables, or precomputed kernel matrices ------------------
#
# Training X is read once (:func:`read_training`) and gives the training kernels. After the fit a
# *source* remains: it reads new X, and gives blocks of kernels between new samples and the
# training samples.


Method = TypeVar("Method", bound=Callable[..., Any])

# The attributes in which scikit-learn records the features of X.
FEATURES = ("n_features_in_", "feature_names_in_")


def matched_by_label(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **more: Any,
) -> tuple[Any, ...]:
    """Return X (several tables as :class:`Views`), and y, weights and groups in its order."""
    refuse_unread(X, matrices=estimator._is_precomputed)
    targets = {"y": y, "sample_weight": sample_weight, "groups": groups, **more}
    if comes_in_blocks(X):
        return X, *targets.values()
    # Beside rows in memory there is no need for more than one chunk.
    targets = {
        name: given.compute() if is_dask(given) else given for name, given in targets.items()
    }
    if not estimator._is_precomputed and are_views(X):
        return matched_views(X, **targets, may_lack=may_lack_views(estimator))
    return X, *matched_targets(labels_of_rows(X), **targets)


def labels_of_rows(X: Any) -> Any:
    """Return the labels of the rows of a table or of kernel matrices; None without labels."""
    if isinstance(X, KernelStack):
        return X.row_samples
    if isinstance(X, Mapping) or is_list_of_tables(X):
        matrices = X.values() if isinstance(X, Mapping) else X
        return next((labels for labels in map(row_labels, matrices) if labels is not None), None)
    return row_labels(X)


# -- training ------------------------------------------------------------------------------


def read_training(estimator: BaseEstimator, X: Table) -> TrainingTable | TrainingMatrices:
    """Return the training X of an estimator with a parameter ``kernels``, checked.

    scikit-learn records the features of X on the estimator for which it validates X. This is a
    copy, because estimators change only when a fit has succeeded.
    """
    if comes_in_blocks(X):
        name, kind = type(estimator).__name__, type(X).__name__
        if estimator._is_precomputed:
            raise TypeError(
                f"X ({kind}) is not in memory, where {name} needs the kernel matrices of the "
                "training samples: pass them computed, as by X.compute()."
            )
        able = hasattr(estimator, "approximation")
        way = "approximation=Nystrom()" if able else "X.compute(), if it fits into memory"
        raise TypeError(
            f"X ({kind}) is not in memory, where {name} computes its kernel matrices: try "
            f"{way}. MKFDA, MKRidge, their CV twins and MKSVC take such X with an approximation."
        )
    recorder = copy_with_features(estimator, {})
    if not estimator._is_precomputed:
        of_kernels = estimator.kernels, estimator.missing, estimator._learns_relevance
        if are_views(X):
            views = read_views(estimator, X).copy()
            names = np.array(views.names, dtype=object)
            features = {"n_features_in_": len(names), "feature_names_in_": names}
            return TrainingTable(views, features, *of_kernels)
        table = read_table(recorder, X, reset=True)
        return TrainingTable(table, _recorded(recorder), *of_kernels)
    stack, rounding = read_stack(recorder, X, training=True)
    if not stack.gram:
        raise ValueError(
            "Training needs square kernel matrices of the training samples; got a "
            f"{stack.shape[0]} x {stack.shape[1]} block between different samples."
        )
    features = {**_recorded(recorder), "n_features_in_": stack.shape[1]}
    samples = TrainingSamples.of(stack)
    return TrainingMatrices(stack, features, samples, rounding, missing=estimator.missing)


def copy_with_features(estimator: BaseEstimator, features: dict[str, Any]) -> Any:
    """Return a copy of an estimator on which only these features of X are recorded."""
    recorder = copy(estimator)
    for name in FEATURES:
        vars(recorder).pop(name, None)
    vars(recorder).update(features)
    return recorder


def _recorded(recorder: BaseEstimator) -> dict[str, Any]:
    return {name: value for name, value in vars(recorder).items() if name in FEATURES}


def groups_of(X: Table) -> np.ndarray:
    """Return the group number of each row; groups are left out together, (n_rows,).

    X is a table, :class:`Views` or a :class:`KernelStack`. Equal rows are one group if there are
    few of each (:func:`~manykernels.utils.folds.groups_to_keep`).
    """
    if isinstance(X, KernelStack):
        return groups_to_keep(equal_kernel_rows(X)) if X.groups is None else X.groups
    return groups_to_keep(numbered(row_keys(X)))


@dataclass(frozen=True)
class TrainingTable:
    """Rows that kernels are computed from."""

    X: Any
    features: dict[str, Any]
    kernels: Any
    missing: str = "error"
    #: Whether default kernels include one that learns from targets.
    relevance: bool = False

    #: As in :class:`TrainingMatrices`; None, because new rows are compared with all rows.
    columns = None

    @cached_property
    def union(self) -> KernelUnion:
        """Kernels of this table, fitted by :meth:`compute`."""
        return kernels_for(self.X, self.kernels, missing=self.missing, relevance=self.relevance)

    @property
    def n_kernels(self) -> int:
        """Number of kernels, before any is computed."""
        return len(self.union.kernels)

    @property
    def groups(self) -> np.ndarray:
        """Groups of rows that are left out together, see :func:`groups_of`."""
        return groups_of(self.X)

    def keep(self, rows: np.ndarray) -> TrainingTable:
        """Return some of the rows."""
        return replace(self, X=safe_indexing(self.X, rows))

    def compute(
        self,
        sample_weight: np.ndarray | None,
        centered: bool,
        solver: Any,
        on_demand: bool = False,
        targets: np.ndarray | None = None,
    ) -> tuple[Any, Source]:
        """Return the kernels of the training rows, and the source for new rows.

        Whatever a kernel takes from data, such as its width, it takes from these rows, and from
        their `targets` if it learns from targets (:class:`~.kernels.RelevanceRBF`). If the
        solver works by columns, kernels are computed column by column when it needs them; if they
        are on demand, a few at a time.
        """
        union = self.union
        with explaining_lacking_rows(union, self.X):
            # Columns that were converted to fit the kernels are used again to evaluate them.
            shared = SharedTable(self.X)
            union.fit(shared, targets, sample_weight)
        source = TableSource(union, self.X, trained_columns(union, self.X))
        if solver is not None and solver.by_columns:
            return StreamedKernels(union, self.X, cache_bytes=solver.cache_bytes), source
        if on_demand:
            return OnDemandKernels(union, shared), source
        return union(shared).with_views(views_of_kernels(union.kernels_, self.X)), source


@dataclass(frozen=True)
class TrainingMatrices:
    """Precomputed Gram matrices of the training samples.

    `samples` checks the columns of test blocks. `rounding` is the rounding error of the entries, 1
    for integers. `columns` are the columns of test blocks that belong to training samples in use;
    None if all do.
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

    @property
    def groups(self) -> np.ndarray:
        """Groups of samples that are left out together, see :func:`groups_of`."""
        return groups_of(self.X)

    def keep(self, rows: np.ndarray) -> TrainingMatrices:
        """Return some of the samples; test blocks still have columns for all."""
        return replace(self, X=self.X[np.ix_(rows, rows)], columns=rows)

    def compute(
        self,
        sample_weight: np.ndarray | None,
        centered: bool,
        solver: Any,
        on_demand: bool = False,
        targets: np.ndarray | None = None,
    ) -> tuple[Any, Source]:
        """Return the matrices, checked, and the source for new samples."""
        names, width = self.X.names, self.features["n_features_in_"]
        source = MatrixSource(names, width, len(self.X), self.columns, self.samples)
        may_lack = self.missing != "error"
        stack = check_stack(self.X, centered=centered, rounding=self.rounding, missing=may_lack)
        return stack, source


# -- prediction ----------------------------------------------------------------------------


@storable
@dataclass(frozen=True)
class TableSource:
    """Training rows, and the fitted kernels that compare new rows with them."""

    union: KernelUnion
    table: Any
    #: Types and categories of the compared columns in training, see :mod:`..kernels.columns`.
    trained: Any = None

    @cached_property
    def _shared(self) -> SharedTable:
        """The table, with its converted and transformed columns, which all blocks of rows use."""
        return SharedTable(self.table)

    def __getstate__(self) -> dict[str, Any]:
        return {"union": self.union, "table": self.table, "trained": self.trained}

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        return self.union.names_

    @property
    def n_samples(self) -> int:
        """Number of training samples that new samples are compared with."""
        return int(num_samples(self.table))

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        return {"X_fit_": self.table, "union_": self.union}

    def read(self, estimator: BaseEstimator, X: Table) -> Any:
        """Return new samples, checked."""
        name = type(estimator).__name__
        if isinstance(self.table, Views):
            if not are_views(X):
                raise ValueError(
                    f"{name} was fitted on the views {', '.join(self.table)}: pass a dict with a "
                    f"table for each of them, not {type(X).__name__}."
                )
            views = as_views(X, join="outer" if may_lack_views(estimator) else "exact")
            for view in [view for view in self.table if view in views]:
                self._refuse_lost(views.column_names(view), self.table.column_names(view), view)
            return self._like_training(read_views(estimator, views, self.table))
        if are_views(X):
            raise ValueError(
                f"{name} was fitted on one table; X holds several ({type(X).__name__})."
            )
        table = read_table(estimator, self._in_order(native_frame(X)), reset=False)
        table = self._like_training(table)
        if may_lack_views(estimator):
            refuse_rows_without_kernels(self.union.kernels_, table)
        return table

    def _in_order(self, X: Any) -> Any:
        """The columns of a data frame in the order of training, if kernels choose them by name.

        Other frames with columns in another order are refused, as by scikit-learn.
        """
        if not (is_frame(X) and is_frame(self.table)):
            return X
        names, expected = list(X.columns), list(self.table.columns)
        kernels = self.union.kernels_
        if names == expected or not isinstance(kernels, list):
            return X
        if not any(names_its_columns(kernel) for _, kernel in kernels):
            return X
        self._refuse_lost(names, expected)
        same = len(names) == len(expected) and set(names) == set(expected)
        return columns_like(X, self.table) if same else X

    def _refuse_lost(self, names: Any, expected: Any, view: str = "") -> None:
        """Raise an error for a missing column that kernels compare; it names one of these."""
        if names is None or expected is None:
            return
        known = set(names)
        lost = {place: name for place, name in enumerate(expected) if name not in known}
        kernels = self.union.kernels_ if lost else ()
        users: dict[int, list[str]] = {}
        for title, kernel in kernels if isinstance(kernels, list) else ():
            for of, places, _ in kernel.compared_columns(self._shared):
                for place in lost.keys() & set(places) if of == view else ():
                    users.setdefault(place, []).append(title)
        if users:
            place = min(users)
            first, *others = users[place]
            more = f" (and {len(others)} more)" if others else ""
            where = f"view {view!r} of X" if view else "X"
            raise ValueError(
                f"{where} has no column {lost[place]!r}, which kernel {first!r}{more} compared in "
                f"training; {len(lost)} of {len(expected)} columns are missing."
            )

    def _like_training(self, data: Any) -> Any:
        """Return new rows, converted like the training columns; unknown in older model files."""
        if self.trained is None:
            return data
        return like_training(
            data, self.table, self.trained, lambda: compared_columns(self.union, self.table)
        )

    def block(self, data: Any, rows: Any, kernels: Any, columns: Any = None) -> KernelStack:
        """Return some kernels between some rows of the result of `read` and training samples."""
        samples = self._shared if columns is None else safe_indexing(self.table, columns)
        union = self.union.subset(kernels)
        with explaining_lacking_rows(union, data):
            return union(safe_indexing(data, rows), samples)

    def keep(self, rows: np.ndarray) -> TableSource:
        """Return the source with some of the training samples only."""
        return replace(self, table=safe_indexing(self.table, rows))

    def select(self, kernels: np.ndarray) -> TableSource:
        """Return the source with some of the kernels only."""
        return replace(self, union=self.union.subset(kernels))


@storable
@dataclass(frozen=True)
class MatrixSource:
    """Required shape of test blocks of precomputed kernels; methods as :class:`TableSource`.

    `width` is the number of their columns: one for every training sample that was passed.
    `columns` are the columns of the `n_samples` samples in use; None if all are. Test blocks have
    all kernels of `names`; `kernels` are the positions of those in use, None if all are.
    """

    names: list[str]
    width: int
    n_samples: int
    columns: np.ndarray | None
    samples: TrainingSamples
    kernels: np.ndarray | None = None

    attributes: ClassVar[dict[str, Any]] = {}

    def read(self, estimator: BaseEstimator, X: Table) -> KernelStack:
        stack, _ = read_stack(estimator, X, training=False)
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
        if self.kernels is not None:
            stack = stack.select(self.kernels)
        may_lack = may_lack_views(estimator)
        stack = check_stack(stack, missing=may_lack)
        if may_lack:
            present = np.array([~np.isnan(block).all(axis=1) for block in stack.data])
            refuse_samples_without_kernels(present, stack.names, stack.row_samples)
        return stack

    def block(self, data: Any, rows: Any, kernels: Any, columns: Any = None) -> KernelStack:
        used = self.columns
        if columns is not None:
            used = columns if used is None else used[columns]
        if isinstance(rows, slice):
            block = data.rows(rows, kernels)
            return block if used is None else block[:, used]
        stack = data.select(kernels)
        return stack[rows] if used is None else stack[np.ix_(rows, used)]

    def keep(self, rows: np.ndarray) -> MatrixSource:
        columns = rows if self.columns is None else self.columns[rows]
        return replace(self, n_samples=len(rows), columns=columns)

    def select(self, kernels: np.ndarray) -> MatrixSource:
        return replace(self, kernels=kernels)


Source = TableSource | MatrixSource


def block_while_fitting(
    source: Source, estimator: BaseEstimator, data: TrainingTable | TrainingMatrices, X: Table
) -> Any:
    """Return all kernels between new X, checked, and training samples read as `data`.

    The estimator need not be fitted: the features of X are compared with those of `data`.
    """
    new = source.read(copy_with_features(estimator, data.features), X)
    return source.block(new, slice(0, int(num_samples(new))), np.arange(len(source.names)))


# -- rows that are not in memory -----------------------------------------------------------


def by_blocks(method: Method) -> Method:
    """Decorator of methods that predict: Dask collections are predicted block by block.

    The predictions are Dask arrays, computed when they are needed.
    """

    @wraps(method)
    def answer(estimator: BaseEstimator, X: Table) -> Any:
        refuse_unread(X, matrices=estimator._is_precomputed)
        if comes_in_blocks(X):
            gaps, lack = may_have_gaps(estimator), may_lack_views(estimator)

            def each(block: Any) -> Any:
                return answer(estimator, _as_passed(estimator, block))

            return map_blocks(X, each, allow_nan=gaps, may_lack=lack)
        return method(estimator, X)

    return answer  # type: ignore[return-value]


def _as_passed(estimator: BaseEstimator, X: Any) -> Any:
    """Return X of a block as users pass it: named kernel matrices are a dict, not Views."""
    matrices = estimator._is_precomputed and isinstance(X, Views)
    return dict(X.items()) if matrices else X


def parts_of(estimator: BaseEstimator, X: Table) -> Iterator[Any]:
    """Yield new X, in blocks if it is a Dask collection."""
    refuse_unread(X, matrices=estimator._is_precomputed)
    if not comes_in_blocks(X):
        yield X
        return
    gaps, lack = may_have_gaps(estimator), may_lack_views(estimator)
    for block in row_blocks(X, allow_nan=gaps, may_lack=lack):
        yield _as_passed(estimator, block.X)


def scored(
    score: Callable[..., float],
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike,
    weight: ArrayLike | None,
) -> float:
    """Accuracy or R² of predictions; y and weights are matched with the rows of X, as in ``fit``.

    `score` is that of scikit-learn, for rows in memory. Others are predicted where they are.
    """
    refuse_unread(X, matrices=estimator._is_precomputed)
    if not comes_in_blocks(X):
        return float(score(*matched_by_label(estimator, X, y, weight)[:3]))

    def judged(parts: list[Any] | None, block: Any) -> list[Any]:
        predicted = estimator.predict(_as_passed(estimator, block.X))
        return [*(parts or []), (block.y, predicted, block.weight)]

    gaps, lack = may_have_gaps(estimator), may_lack_views(estimator)
    blocks = row_blocks(X, y, weight, needs_y=True, allow_nan=gaps, may_lack=lack)
    truth, predicted, weights = (
        None if parts[0] is None else np.concatenate(parts)
        for parts in zip(*blocks.reduce(judged, add), strict=True)
    )
    metric = accuracy_score if is_classifier(estimator) else r2_score
    return float(metric(truth, predicted, sample_weight=weights))
