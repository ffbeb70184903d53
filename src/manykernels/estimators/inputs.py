"""Reading and checking of X, y and sample weights: tables, views and kernel matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from operator import add
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, validate_data

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
    check_numbers,
    column_of_strings,
    copied,
    is_frame,
    is_missing,
    naming,
    refuse_infinite,
    refuse_kinds,
    refuse_masked,
    refuse_repeated_columns,
)
from ..kernels.views import are_views, as_views, columns_like, matched_views, row_keys
from ..scale.blocks import comes_in_blocks, map_blocks, refuse_unread, row_blocks
from ..scale.rows import is_dask
from ..utils.folds import about_groups, equal_kernel_rows, group_numbers, groups_to_keep, numbered
from ..utils.numerics import EPS
from ..utils.sklearn import (
    check_sample_weight,
    check_y,
    num_samples,
    safe_indexing,
    warn_caller,
)
from ..utils.storable import storable


def may_lack_views(estimator: Any) -> bool:
    """Whether samples may lack views, by the parameter ``missing`` of an estimator."""
    return getattr(estimator, "missing", "error") != "error"


def may_have_gaps(estimator: Any) -> bool:
    """Whether numbers may be missing: because samples may lack views, or kernels fill them in."""
    return may_lack_views(estimator) or (
        not estimator._is_precomputed and transforms(estimator.kernels)
    )


def read_views(estimator: Any, X: Any, training: Views | None = None) -> Views:
    """Several tables, checked; those of new samples are brought into the order of `training`."""
    may_lack = may_lack_views(estimator)
    views = as_views(X, join="outer" if may_lack else "exact")
    if training is not None:
        views = views.like(training, may_lack=may_lack)
    if not may_lack:
        views.refuse_lacking()
    refuse_samples_without_kernels(views.present.T, views.names, views.labels, "views")
    return views


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """A table for kernels: numbers, a sparse matrix, a data frame or strings, checked.

    With `reset` its features are recorded on the estimator, else compared with those recorded.
    """
    if isinstance(X, KernelStack):
        raise ValueError('A KernelStack is passed with kernels="precomputed".')
    refuse_unread(X)
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


def is_list_of_tables(X: Any) -> bool:
    """Whether X is a list of arrays or frames of two dimensions, not a table itself."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(len(getattr(one, "shape", ())) == 2 for one in X)


def unchecked_stack(matrices: Any, *, gram: bool) -> KernelStack:
    """A dict or list of kernel matrices as a stack, which :func:`check_stack` has not seen."""
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
    """Kernel matrices as a stack, not yet checked, and the rounding error of their entries.

    A 3-D array is (rows, cols, n_kernels), a dict or list has a matrix for each kernel. Integers
    may have been rounded from other numbers: their rounding error is 1. Rows and columns of a data
    frame name the samples.
    """
    if isinstance(X, KernelStack):
        return X, 0.0
    if isinstance(X, Mapping) or is_list_of_tables(X):
        given = X.values() if isinstance(X, Mapping) else X
        integers = [np.asarray(one).dtype.kind in "biu" for one in given]
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


# -- What a user may pass as X: a table of rows, several tables, or ready-made kernel matrices ----
#
# Training X is read once (:func:`read_training`) and gives the training kernels. What remains of
# it after the fit is a *source*: it reads new X, and gives blocks of kernels between new samples
# and the training samples.


Method = TypeVar("Method", bound=Callable[..., Any])

# The attributes in which scikit-learn records the features of X.
FEATURES = ("n_features_in_", "feature_names_in_")


def matched_by_label(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **more: Any
) -> tuple[Any, ...]:
    """X, several tables of it as :class:`Views`, and what belongs to its rows in their order."""
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
    """Labels of the rows of a table, or of kernel matrices; None if there are none."""
    if isinstance(X, KernelStack):
        return X.row_samples
    if isinstance(X, Mapping) or is_list_of_tables(X):
        matrices = X.values() if isinstance(X, Mapping) else X
        return next((labels for labels in map(row_labels, matrices) if labels is not None), None)
    return row_labels(X)


# -- training ------------------------------------------------------------------------------


def read_training(estimator: Any, X: Any) -> Table | Matrices:
    """Training X of an estimator with a parameter ``kernels``, checked.

    scikit-learn records the features of X on the estimator that it validates X for. It is given a
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
        if are_views(X):
            views = read_views(estimator, X).copy()
            names = np.array(views.names, dtype=object)
            features = {"n_features_in_": len(names), "feature_names_in_": names}
            return Table(views, features, estimator.kernels, estimator.missing)
        table = read_table(recorder, X, reset=True)
        return Table(table, _recorded(recorder), estimator.kernels, estimator.missing)
    stack, rounding = read_stack(recorder, X, training=True)
    if not stack.gram:
        raise ValueError(
            "Training needs square kernel matrices of the training samples; got a "
            f"{stack.shape[0]} x {stack.shape[1]} block between different samples."
        )
    features = {**_recorded(recorder), "n_features_in_": stack.shape[1]}
    samples = TrainingSamples.of(stack)
    return Matrices(stack, features, samples, rounding, missing=estimator.missing)


def copy_with_features(estimator: Any, features: dict[str, Any]) -> Any:
    """A copy of an estimator on which these features of X are recorded, and no others."""
    recorder = copy(estimator)
    for name in FEATURES:
        vars(recorder).pop(name, None)
    vars(recorder).update(features)
    return recorder


def _recorded(recorder: BaseEstimator) -> dict[str, Any]:
    return {name: value for name, value in vars(recorder).items() if name in FEATURES}


def groups_of(X: Any) -> np.ndarray:
    """Numbers of the groups of rows that are left out together, (n_rows,).

    X is a table, :class:`Views` or a :class:`KernelStack`. Rows that are equal are one group if
    there are few of each (:func:`~manykernels.utils.folds.groups_to_keep`).
    """
    if isinstance(X, KernelStack):
        return groups_to_keep(equal_kernel_rows(X)) if X.groups is None else X.groups
    return groups_to_keep(numbered(row_keys(X)))


@dataclass(frozen=True)
class Table:
    """Rows that kernels are computed from."""

    X: Any
    features: dict[str, Any]
    kernels: Any
    missing: str = "error"

    #: As in :class:`Matrices`: None, because new rows are compared with all rows of this table.
    columns = None

    @cached_property
    def union(self) -> KernelUnion:
        """Kernels of this table, fitted by :meth:`compute`."""
        return kernels_for(self.X, self.kernels, missing=self.missing)

    @property
    def n_kernels(self) -> int:
        """Number of kernels, before any is computed."""
        return len(self.union.kernels)

    @property
    def groups(self) -> np.ndarray:
        """Groups of rows that are left out together, see :func:`groups_of`."""
        return groups_of(self.X)

    def keep(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        return replace(self, X=safe_indexing(self.X, rows))

    def compute(
        self,
        sample_weight: np.ndarray | None,
        centered: bool,
        solver: Any,
        on_demand: bool = False,
    ) -> tuple[Any, Source]:
        """Return the kernels of the training rows, and the source for new rows.

        Whatever a kernel takes from data, such as its width, it takes from these rows. If the
        solver works by columns, kernels are computed column by column when it needs them; if they
        are on demand, a few at a time.
        """
        union = self.union
        with explaining_lacking_rows(union, self.X):
            # What was made of the table to fit the kernels serves to evaluate them.
            shared = SharedTable(self.X)
            union.fit(shared, sample_weight=sample_weight)
        source = TableSource(union, self.X, trained_columns(union, self.X))
        if solver is not None and solver.by_columns:
            return StreamedKernels(union, self.X, cache_bytes=solver.cache_bytes), source
        if on_demand:
            return OnDemandKernels(union, shared), source
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

    @property
    def groups(self) -> np.ndarray:
        """Groups of samples that are left out together, see :func:`groups_of`."""
        return groups_of(self.X)

    def keep(self, rows: np.ndarray) -> Matrices:
        """Some of the samples; test blocks still have columns for all."""
        return replace(self, X=self.X[np.ix_(rows, rows)], columns=rows)

    def compute(
        self,
        sample_weight: np.ndarray | None,
        centered: bool,
        solver: Any,
        on_demand: bool = False,
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
    #: What the columns that kernels compare held in training, see :mod:`..kernels.kinds`.
    trained: Any = None

    @cached_property
    def _shared(self) -> SharedTable:
        """The table, with what blocks of new rows need of it: columns as numbers, transformed."""
        return SharedTable(self.table)

    def __getstate__(self) -> dict[str, Any]:
        return {"union": self.union, "table": self.table, "trained": self.trained}

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
            views = as_views(X, join="outer" if may_lack_views(estimator) else "exact")
            for view in [view for view in self.table if view in views]:
                self._refuse_lost(views.column_names(view), self.table.column_names(view), view)
            return self._like_training(read_views(estimator, views, self.table))
        if are_views(X):
            raise ValueError(
                f"{name} was fitted on one table; X holds several ({type(X).__name__})."
            )
        table = read_table(estimator, self._in_order(X), reset=False)
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
        """New rows with what columns held in training; those of older files are not known."""
        if self.trained is None:
            return data
        return like_training(
            data, self.table, self.trained, lambda: compared_columns(self.union, self.table)
        )

    def block(self, data: Any, rows: Any, kernels: Any, columns: Any = None) -> KernelStack:
        """Some kernels between some rows of what `read` gave and (some) training samples."""
        samples = self._shared if columns is None else safe_indexing(self.table, columns)
        union = self.union.subset(kernels)
        with explaining_lacking_rows(union, data):
            return union(safe_indexing(data, rows), samples)

    def keep(self, rows: np.ndarray) -> TableSource:
        """The same source with some of the training samples only."""
        return replace(self, table=safe_indexing(self.table, rows))


@storable
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
        may_lack = may_lack_views(estimator)
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
    new = source.read(copy_with_features(estimator, data.features), X)
    return source.block(new, slice(0, int(num_samples(new))), np.arange(len(source.names)))


# -- rows that are not in memory -----------------------------------------------------------


def by_blocks(method: Method) -> Method:
    """Decorator of predictions: those of collections of dask are made block by block.

    They are arrays of dask, which are computed when they are needed.
    """

    @wraps(method)
    def answer(estimator: Any, X: Any) -> Any:
        refuse_unread(X, matrices=estimator._is_precomputed)
        if comes_in_blocks(X):
            gaps, lack = may_have_gaps(estimator), may_lack_views(estimator)

            def each(block: Any) -> Any:
                return answer(estimator, _as_passed(estimator, block))

            return map_blocks(X, each, allow_nan=gaps, may_lack=lack)
        return method(estimator, X)

    return answer  # type: ignore[return-value]


def _as_passed(estimator: Any, X: Any) -> Any:
    """X of a block as users pass it: kernel matrices by name are no views."""
    matrices = estimator._is_precomputed and isinstance(X, Views)
    return dict(X.items()) if matrices else X


def parts_of(estimator: Any, X: Any) -> Iterator[Any]:
    """New X, by blocks if it is a collection of dask."""
    refuse_unread(X, matrices=estimator._is_precomputed)
    if not comes_in_blocks(X):
        yield X
        return
    gaps, lack = may_have_gaps(estimator), may_lack_views(estimator)
    for block in row_blocks(X, allow_nan=gaps, may_lack=lack):
        yield _as_passed(estimator, block.X)


def scored(score: Callable[..., float], estimator: Any, X: Any, y: Any, weight: Any) -> float:
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


# -- Which training rows count, how much, and what is to be predicted for them --------------------


# Bounds of the median weight, which is multiplied with C and with kernels and compared with reg:
# far outside, these products overflow or are lost. Weights that count samples are near 1.
_LEAST_MEDIAN, _LARGEST_MEDIAN = 1e-12, 1e12
# Largest weight in units of the median. Beyond it the other weights are lost beside this one in
# rounding errors (1 / ACCUMULATED); below it the certificate tells whether they are too large.
_HEAVIEST = 1e12
# The same with weighted centring, which subtracts nearly equal numbers at a heavy sample: the
# rounding error grows as the square of its weight, hence the square root of the bound above.
_HEAVIEST_IF_CENTRED = 1e6


@dataclass(frozen=True)
class TrainingRows:
    """Rows of X that count in a fit.

    Attributes
    ----------
    data : Table or Matrices
        What was passed as X, of these rows.
    numbers : ndarray of int
        Their row numbers in X. Rows of weight zero are left out, and so are rows whose weight is
        a rounding error beside the median weight.
    counts : ndarray or None
        How often each occurs: `sample_weight`.
    weights : ndarray or None
        How much each matters: `counts` times the weight of its class; of several labels a column
        for each, if classes have weights.
    targets : ndarray or None
        y of these rows, as it was passed.
    labels, classes : ndarray or None
        For classification, ``targets = classes[labels]``. Several labels of each row are
        (n_rows, n_labels), and the classes 0 and 1.
    on_demand : bool
        Whether kernels are computed when they are needed, see
        :meth:`.kernel_data.WeightLearning.place_kernels`.
    given_groups : ndarray or None
        Labels of the groups of all rows of X, as they were passed; None if equal rows are the
        groups.
    """

    data: Table | Matrices
    numbers: np.ndarray
    counts: np.ndarray | None
    weights: np.ndarray | None = None
    targets: Any = None
    labels: Any = None
    classes: Any = None
    on_demand: bool = False
    given_groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def groups(self) -> np.ndarray:
        """Numbers of the groups of rows that are left out together, (n_rows,).

        Given groups come first: equal rows of different groups are not kept together.
        """
        if self.given_groups is None:
            return self.data.groups
        return group_numbers(self.given_groups[self.numbers])

    def in_groups(self, groups: Any, n_rows: int, estimator: Any = None) -> TrainingRows:
        """Return the rows with the groups of all `n_rows` rows of X, if some were passed.

        If the estimator is `verbose`, what is kept together is printed.
        """
        if groups is None:
            return self
        labels = checked_groups(groups, n_rows)
        rows = replace(self, given_groups=labels)
        if self.n_labels is None:
            refuse_useless_groups(labels[self.numbers], self.labels, self.classes)
        else:
            for k, column in enumerate(self.labels.T):
                with about_label(k):
                    refuse_useless_groups(labels[self.numbers], column, self.classes)
        message = about_groups(rows.groups, given=True)
        if message and estimator is not None and estimator.verbose:
            print(f"[{type(estimator).__name__}] {message}")
        return rows

    @property
    def n_labels(self) -> int | None:
        """Number of labels of each row; None if it has a class or a value instead."""
        return self.labels.shape[1] if np.ndim(self.labels) == 2 else None

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        classes = {} if self.classes is None else {"classes_": self.classes}
        if self.n_labels is not None:
            classes = {"classes_": np.arange(self.n_labels), "n_labels_": self.n_labels}
        groups = {} if self.given_groups is None else {"groups_": self.groups}
        return {**self.data.features, **classes, **groups}

    @property
    def factors(self) -> np.ndarray:
        """`weights`, or ones where none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights


def checked_groups(groups: Any, n_rows: int) -> np.ndarray:
    """Return the label of the group of each row, (n_rows,); missing ones are refused."""
    if groups is None or isinstance(groups, str | bytes | Mapping):
        raise ValueError(
            f"groups must have the label of a group for every row of X, got {groups!r}: pass the "
            'column itself, such as table["patient"].'
        )
    refuse_masked(groups, "groups")
    labels = np.asarray(groups)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"groups must have one label for every row, got an array of shape {labels.shape}. "
            "Join the columns to one label, such as site + patient."
        )
    if len(labels) != n_rows:
        raise ValueError(
            f"groups has {len(labels)} labels, but X has {n_rows} rows: pass one for every row."
        )
    if labels.dtype == object:
        missing = np.array([is_missing(label) for label in labels], dtype=bool)
    else:  # NaN and NaT differ from themselves
        missing = labels != labels
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"groups is {labels[row]} at row {row}: give the row a group. A row that belongs with "
            "no other has a label of its own."
        )
    return labels


def refuse_useless_groups(groups: np.ndarray, labels: Any = None, classes: Any = None) -> None:
    """Raise if no group can be left out; warn of classes that are in a single group.

    `groups` and `labels` are those of the same rows, ``classes[labels]`` their classes.
    """
    numbers = group_numbers(groups)
    if len(groups) > 1 and len(np.unique(numbers)) == 1:
        raise ValueError(
            f"All rows are of one group, {groups.tolist()[0]!r}: without it there is nothing to "
            "learn from. Pass groups=None if rows may be left out one by one."
        )
    if classes is None:
        return
    n_groups = int(numbers.max()) + 1
    of_class = np.unique(labels * n_groups + numbers) // n_groups
    alone = np.flatnonzero(np.bincount(of_class, minlength=len(classes)) == 1)
    if not len(alone):
        return
    name, group = classes.tolist()[alone[0]], groups.tolist()[int(np.argmax(labels == alone[0]))]
    found = f"Class {name!r} has rows of one group only, {group!r}"
    if len(classes) - len(alone) < 2:
        raise ValueError(
            f"{found}: models without this group do not know the class, and nothing can be said "
            "about new samples. At least two classes need rows of two groups or more; leave the "
            "class out, or pass groups=None if rows may be left out one by one."
        )
    warn_caller(
        f"{found}: models without this group do not know the class, and no fold tests it.",
        UserWarning,
    )


def unlabelled_rows(estimator: Any, X: Any, sample_weight: Any) -> TrainingRows:
    """Rows of an estimator without y."""
    every = read_training(estimator, X)
    data, numbers, counts = _weighted(estimator, every, sample_weight, _HEAVIEST)
    return TrainingRows(data, numbers, counts, counts)


def targeted_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    groups: Any = None,
    several: bool = False,
    heaviest: float = _HEAVIEST,
) -> TrainingRows:
    """Rows with numbers to be predicted, one for each or, if allowed, `several`."""
    data = _read_with_targets(estimator, X, y)
    check_numbers(np.asarray(y), "y")
    targets = check_y(y, multi_output=several, y_numeric=True).astype(np.float64)
    check_consistent_length(data.X, targets)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    rows = TrainingRows(data, numbers, counts, counts, targets[numbers])
    return rows.in_groups(groups, len(targets), estimator)


def spread_of_targets(rows: TrainingRows) -> float:
    """Standard deviation of the targets; one if they are all equal."""
    targets = rows.targets
    mean = np.average(targets, weights=rows.counts)
    deviation = float(np.sqrt(np.average((targets - mean) ** 2, weights=rows.counts)))
    return deviation if deviation > 0.0 else 1.0


def rows_of_any_targets(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, centred: bool = False
) -> TrainingRows:
    """Rows whose targets are read elsewhere; `centred` says whether kernels are centred."""
    data = _read_with_targets(estimator, X, y)
    check_consistent_length(data.X, y)
    heaviest = _HEAVIEST_IF_CENTRED if centred else _HEAVIEST
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    return TrainingRows(data, numbers, counts, counts)


def centred_values(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    groups: Any = None,
    several: bool = False,
) -> TrainingRows:
    """Rows with one or, if allowed, `several` numbers to be predicted, on centred kernels."""
    options: dict[str, Any] = {"several": several, "heaviest": _HEAVIEST_IF_CENTRED}
    return targeted_rows(estimator, X, y, sample_weight, groups=groups, **options)


def labelled_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    *,
    groups: Any = None,
    heaviest: float = _HEAVIEST,
) -> TrainingRows:
    """Rows with class labels, or with several labels each if the estimator takes them."""
    if hasattr(estimator, "multi_label") and is_multilabel(y):
        return _rows_of_labels(estimator, X, y, sample_weight, class_weight, groups, heaviest)
    data = _read_with_targets(estimator, X, y)
    y = check_y(y, multi_output=False)
    check_classification_targets(y)
    check_consistent_length(data.X, y)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    n_rows, y = len(y), y[numbers]
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, got "
            f"{len(classes)} class: {classes.tolist()}."
        )
    weights = class_weighted(class_weight, labels, classes, counts)
    rows = TrainingRows(data, numbers, counts, weights, y, labels, classes)
    return rows.in_groups(groups, n_rows, estimator)


def is_multilabel(y: Any) -> bool:
    """Whether `y` is an indicator matrix, one column of 0 and 1 per label."""
    values = _dense(y)
    if values.ndim != 2 or values.shape[1] < 2:
        return False
    if values.dtype.kind == "f" and np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0].tolist()
        raise ValueError(
            f"Input y contains NaN: it is nan at row {row}, column {column}. Leave this sample "
            "out, or give it a value."
        )
    return bool(type_of_target(values) == "multilabel-indicator")


def indicator_matrix(y: Any) -> np.ndarray:
    """Return several labels of each row as an array of 0 and 1, (n_rows, n_labels)."""
    refuse_masked(y, "y")
    values = _dense(y)
    others = np.setdiff1d(values, [0, 1])
    if len(others):
        raise ValueError(
            f"y has {values.shape[1]} columns of labels, which must be 0 or 1, but some are "
            f"{others[0].item()!r}: pass an array such as (y == {values.max().item()!r}).astype("
            "int)."
        )
    return values.astype(np.intp)


def _dense(y: Any) -> np.ndarray:
    """Return targets as an array; columns of numbers of several kinds are floats."""
    values = y.toarray() if sparse.issparse(y) else np.asarray(y)
    if values.dtype == object and values.ndim == 2:
        with suppress(TypeError, ValueError):
            return values.astype(np.float64)
    return values


@contextmanager
def about_label(k: int) -> Iterator[None]:
    """Name one of several labels, counted from 0, in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Label {k}: {error}") from error


def _rows_of_labels(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    groups: Any,
    heaviest: float,
) -> TrainingRows:
    """Rows with several labels each."""
    columns = [repr(name) for name in y.columns] if is_frame(y) else None
    y = indicator_matrix(y)
    data = _read_with_targets(estimator, X, y)
    check_consistent_length(data.X, y)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    labels, classes = y[numbers], np.array([0, 1])
    constant = np.flatnonzero(np.ptp(labels, axis=0) == 0)
    if len(constant):
        k = int(constant[0])
        name = f"Label {k}" if columns is None else f"Label {k} ({columns[k]})"
        raise ValueError(
            f"{name} is {labels[0, k]} in every training sample: {type(estimator).__name__} needs "
            "samples with it and without it. Leave its column out of y."
        )
    weights = class_weighted(class_weight, labels, classes, counts)
    rows = TrainingRows(data, numbers, counts, weights, labels, labels, classes)
    return rows.in_groups(groups, len(y), estimator)


def centred_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any = None,
    *,
    groups: Any = None,
) -> TrainingRows:
    """Rows with class labels, on kernels that are centred."""
    options: dict[str, Any] = {"groups": groups, "heaviest": _HEAVIEST_IF_CENTRED}
    return labelled_rows(estimator, X, y, sample_weight, class_weight, **options)


def class_weighted(
    class_weight: Any, labels: np.ndarray, classes: np.ndarray, counts: np.ndarray | None
) -> np.ndarray | None:
    """`counts` times the weights of the classes that ``classes[labels]`` are.

    Several labels have a column each, unless `class_weight` is None.
    """
    if class_weight is None:
        return counts
    if labels.ndim == 2:
        each = [class_weighted(class_weight, column, classes, counts) for column in labels.T]
        return np.column_stack(each)  # type: ignore[arg-type]
    factors = compute_class_weight(
        class_weight, classes=classes, y=classes[labels], sample_weight=counts
    )
    if not np.all((factors > 0) & (factors < np.inf)):
        raise ValueError(
            f"class_weight must be positive and finite for every class, got {class_weight}."
        )
    weights: np.ndarray = factors[labels] if counts is None else counts * factors[labels]
    return weights


def one_against_rest(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Targets ±1 of each machine: one column for two classes, else one column per class."""
    positive = [1] if n_classes == 2 else np.arange(n_classes)
    return np.where(labels[:, None] == positive, 1.0, -1.0)


def discriminant_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    *,
    groups: Any = None,
) -> TrainingRows:
    """Rows with class labels for Fisher's discriminant, which needs variance within classes."""
    rows = centred_rows(estimator, X, y, sample_weight, class_weight, groups=groups)
    n_classes = len(rows.classes)
    if len(rows) <= n_classes:
        raise ValueError(
            f"{type(estimator).__name__} needs more samples than classes: {len(rows)} samples of "
            f"{n_classes} classes leave no spread within classes."
        )
    return rows


def _read_with_targets(estimator: Any, X: Any, y: Any) -> Table | Matrices:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    data = read_training(estimator, X)
    check_targets(y)
    return data


def _weighted(
    estimator: Any, data: Any, sample_weight: Any, heaviest: float
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Data of the rows that count, their numbers and their weights."""
    n_rows = int(num_samples(data.X))
    if sample_weight is None:
        return data, np.arange(n_rows), None
    refuse_masked(sample_weight, "sample_weight")
    weights = check_sample_weight(
        sample_weight, data.X, dtype=np.float64, ensure_non_negative=True
    )
    kept = rows_that_count(type(estimator).__name__, weights, heaviest)
    return (data if len(kept) == n_rows else data.keep(kept)), kept, weights[kept]


def rows_that_count(name: str, weights: np.ndarray, heaviest: float = _HEAVIEST) -> np.ndarray:
    """Rows whose weights are neither zero nor negligible; weights that are too large raise."""
    positive = weights[weights > 0]
    median = float(np.quantile(positive, 0.5, method="lower"))
    if not _LEAST_MEDIAN <= median <= _LARGEST_MEDIAN:
        row = int(np.argmax(weights == median))
        raise ValueError(
            f"sample_weight is {median:g} at row {row}, the median of the weights above zero: it "
            f"has to be between {_LEAST_MEDIAN:g} and {_LARGEST_MEDIAN:g}, because weights say "
            "how often samples count. Divide them by their mean."
        )
    row = int(np.argmax(weights))
    if weights[row] > heaviest * median:
        raise ValueError(
            f"sample_weight is {weights[row]:g} at row {row}, more than {heaviest:g} times the "
            f"median of the weights above zero, {median:g}: beside it the others are lost in the "
            f"rounding errors of {name}. Lower it, or leave the others out by a weight of zero."
        )
    return np.flatnonzero(weights >= EPS * median)


def check_targets(y: Any) -> None:
    """Refuse missing targets, complex and sparse ones; dates are allowed, they can be classes."""
    refuse_masked(y, "y")
    if sparse.issparse(y):
        raise ValueError("y is a sparse matrix, and its zeros are numbers too: pass y.toarray().")
    targets = np.asarray(y)
    refuse_kinds(targets, "y", "c")
    if targets.dtype != object:
        return
    for row, target in enumerate(targets.ravel()):
        if is_missing(target):
            raise ValueError(
                f"Input y contains NaN or None: y is {target} at row {row}. Leave this sample "
                "out, or give it a target."
            )
