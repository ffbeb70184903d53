"""Rows of several files matched, and the target found and kept out of the features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer

from ..estimators import MKFDACV, MKSVCCV, MKSVRCV, MKRidgeCV
from ..kernels import Kernel, KernelStack, KernelUnion, Views, auto_kernels
from ..kernels.auto import as_union
from ..scale import Nystrom, RandomFeatures
from ..scale.features import Approximation
from .console import DataError, UsageError, listed, note
from .files import WITH_PARTS, Contents, read
from .request import Request, ViewRequest

# -- Targets: classes or numbers, and features that are the target under another name -------------


# Numbers with more different values than this are those of a regression; fewer whole ones are
# classes.
_MOST_CLASSES = 20


def task_of(y: pd.Series) -> str:
    """Whether a target is of classes: texts, truth values, or few different whole numbers."""
    if not _are_numbers(y):
        return "classification"
    values = y.unique()
    few = len(values) <= _MOST_CLASSES and _are_whole(y)
    return "classification" if few else "regression"


def as_targets(y: pd.Series, task: str) -> pd.Series:
    """The target as estimators take it, or a word about why they cannot."""
    if task == "regression":
        if not _are_numbers(y):
            raise DataError(f"The target of a regression is numbers; here is {y.iloc[0]!r}.")
        infinite = y.index[~np.isfinite(y)]
        if len(infinite):
            raise DataError(f"The target of {str(infinite[0])!r} is infinite.")
        return y.astype(float)
    if y.nunique() < 2:
        raise DataError(f"All samples have the same target, {y.iloc[0]!r}: nothing to learn.")
    if _are_numbers(y):
        # Empty cells, whose samples have been left out, have made floats of whole numbers.
        return y.astype(int) if _are_whole(y) else y
    return y.astype(str).astype(object)


def _are_numbers(y: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)


def _are_whole(y: pd.Series) -> bool:
    return bool(np.isfinite(y).all() and (y == np.floor(y)).all())


def tell_leaks(views: Views, y: pd.Series, task: str) -> None:
    """A word about columns that tell the target exactly."""
    for name, table in views.items():
        if not isinstance(table, pd.DataFrame):
            continue
        own = y.iloc[np.flatnonzero(views.has(name))]
        for column in table.columns:
            if _tells(table[column], own, task):
                note(
                    f"column {column!r} of view {name!r} tells the target exactly: is it the "
                    "answer under another name? Then leave it out, by naming the other columns."
                )


def _tells(column: pd.Series, y: pd.Series, task: str) -> bool:
    """Whether there is one value for every class, or the number itself."""
    if task == "regression":
        return pd.api.types.is_numeric_dtype(column) and np.array_equal(column, y)
    values, classes = pd.factorize(column)[0], pd.factorize(y)[0]
    return bool(classes.any()) and np.array_equal(values, classes)


@dataclass(frozen=True)
class Samples:
    """What a model learns from, or predicts for.

    `X` are views or, ready-made, kernels. `labels` are names of samples, or None if they have
    none. `y` is the target, None for new samples.
    """

    X: Any
    labels: pd.Index
    y: pd.Series | None = None
    task: str = ""

    @property
    def precomputed(self) -> bool:
        return isinstance(self.X, KernelStack)


class Reading:
    """Files of views, each read once; labels and columns of `texts` are read as text."""

    def __init__(self, index: str | None, texts: Iterable[str] = ()) -> None:
        self.index = index
        self._texts = frozenset(texts) | ({index} if index is not None else set())
        self._known: dict[tuple[Path, str | None], Contents] = {}

    def contents(self, path: Path, part: str | None = None) -> Contents:
        """What a file has, with labels if there are any."""
        if (path, part) not in self._known:
            found = read(path, part, self._texts)
            self._known[path, part] = replace(found, labels=self._labels(found))
        return self._known[path, part]

    def of(self, view: ViewRequest) -> Contents:
        """What the file of a view has."""
        with_parts = view.file.suffix.lower() in WITH_PARTS and view.columns
        return self.contents(view.file, view.columns[0] if with_parts and view.columns else None)

    def _labels(self, found: Contents) -> pd.Index | None:
        name = str(found.path)
        if self.index is None or (
            self.index not in found.columns.columns and found.labels is not None
        ):
            return found.labels
        if self.index not in found.columns.columns:
            raise DataError(
                f"{name!r} has no column {self.index!r} to match samples by; it has "
                f"{listed(found.columns.columns)}."
            )
        column = found.columns[self.index]
        empty = np.flatnonzero(column.isna())
        if len(empty):
            raise DataError(f"{name!r} has no {self.index} in row {empty[0] + 1}.")
        labels = pd.Index([str(label).strip() for label in column], name=self.index)
        if labels.has_duplicates:
            twice = labels[labels.duplicated()][0]
            raise DataError(f"{name!r} has several rows whose {self.index} is {twice!r}.")
        return labels


# -- to learn from ---------------------------------------------------------------------------


def training_samples(request: Request) -> Samples:
    """All views and the target, matched; samples without a target are left out."""
    reading = Reading(request.index)
    contents = {view.name: reading.of(view) for view in request.with_target().views}
    own = None if request.target_file is None else reading.contents(request.target_file)
    sources = list(contents.values()) if own is None else [own]
    refuse_different_lengths([*contents.values(), *([own] if own else [])], request.index)
    y = _target(sources, str(request.target))
    X: Any
    if all_matrices(contents):
        X, labels = _stack(request.views, contents, lacking=request.missing != "error")
        _check_square(X)
    else:
        tables = {
            view.name: _table(view, contents[view.name], request.index, request.target)
            for view in request.views
        }
        X = Views(tables, join="outer")
        labels = pd.Index(X.index, name=request.index)
    X, labels, y = _with_target(X, labels, y, request)
    _refuse_gaps(X, request.missing)
    task = task_of(y) if request.task == "auto" else request.task
    y = as_targets(y, task)
    if not isinstance(X, KernelStack):
        tell_leaks(X, y, task)
    return Samples(X, labels, y, task)


def refuse_different_lengths(contents: list[Contents], index: str | None) -> None:
    """Without labels rows are matched by their order."""
    sizes = {one.path: _length(one) for one in contents}
    without = [one for one in contents if one.labels is None]
    if without and (len(set(sizes.values())) > 1 or len(without) < len(contents)):
        (first, size), *others = sizes.items()
        other = next((path for path, own in others if own != size), None)
        said = (
            f"{str(first)!r} has {size} rows and {str(other)!r} {sizes[other]}"
            if other is not None
            else f"the rows of {str(without[0].path)!r} have no names, those of others have"
        )
        raise DataError(f"{said}: name the column to match samples by, with --index.")


def _length(contents: Contents) -> int:
    if contents.matrices is not None:
        return len(next(iter(contents.matrices.values())))
    return len(contents.columns)


def _target(sources: list[Contents], column: str) -> pd.Series:
    """The target by the labels of samples, from all files that have it; they have to agree."""
    found: pd.Series | None = None
    for one in sources:
        if column not in one.columns.columns:
            continue
        own = one.columns[column]
        own = own.set_axis(range(len(own)) if one.labels is None else one.labels).dropna()
        if found is not None:
            both = found.index.intersection(own.index)
            differing = both[(found[both] != own[both]).to_numpy()]
            if len(differing):
                raise DataError(
                    f"The files disagree about {column!r} of {str(differing[0])!r}: "
                    f"{found[differing[0]]!r} and {own[differing[0]]!r}."
                )
            own = own[own.index.difference(both, sort=False)]
        found = own if found is None else pd.concat([found, own])
    if found is None:
        known = dict.fromkeys(name for one in sources for name in one.columns.columns)
        raise DataError(
            f"No file has a column {column!r} to predict; columns are {listed(known)}. "
            "If it is in a file of its own: --target file.csv:column."
        )
    return found


def _with_target(
    X: Any, labels: pd.Index, y: pd.Series, request: Request
) -> tuple[Any, pd.Index, pd.Series]:
    """The samples that have a target, and a word about the others."""
    known = labels.isin(y.index)
    if not known.any():
        raise DataError(
            f"No sample has a value of {request.target!r} (empty, NA and None count as none); "
            f"samples are {listed(labels[:3])}, those with a target {listed(y.index[:3])}."
        )
    surplus = len(y.index.difference(labels))
    if surplus:
        note(f"{surplus} samples with a target are in no view, and have no part.")
    if not known.all():
        without = labels[~known]
        note(f"{len(without)} samples without {request.target!r} are left out: {listed(without)}.")
        rows = np.flatnonzero(known)
        X, labels = (
            (X[np.ix_(rows, rows)] if isinstance(X, KernelStack) else X.take(rows)),
            labels[rows],
        )
    return X, labels, y.loc[labels]


# -- views -----------------------------------------------------------------------------------


def _table(view: ViewRequest, found: Contents, index: str | None, target: str | None) -> Any:
    """The features of a view, with labels; never the target."""
    labels = found.labels
    if found.matrices is not None:
        raise DataError(
            f"{str(found.path)!r} holds kernels, other views are tables: fit one kind."
        )
    if found.table is not None:
        if view.columns is not None and found.path.suffix.lower() not in WITH_PARTS:
            raise UsageError(f"View {view.name!r} is of sequences and has no columns to name.")
        return labelled(found.table, labels)
    frame = found.columns
    if view.columns is None:
        frame = frame.drop(columns=[name for name in (index, target) if name in frame.columns])
    else:
        absent = [name for name in view.columns if name not in frame.columns]
        if absent:
            raise DataError(
                f"{str(found.path)!r} has no column {absent[0]!r}; it has {listed(frame.columns)}."
            )
        if target in view.columns:
            raise UsageError(f"View {view.name!r} has the target {target!r} among its columns.")
        frame = frame[list(view.columns)]
    if not len(frame.columns):
        raise DataError(f"{str(found.path)!r} has no column that view {view.name!r} could be of.")
    empty = [name for name in frame.columns if frame[name].isna().all()]
    if len(empty) == len(frame.columns):
        raise DataError(f"{str(found.path)!r} has no values for view {view.name!r}.")
    if empty:
        note(f"columns of view {view.name!r} that are empty have no part: {listed(empty)}.")
        frame = frame.drop(columns=empty)
    if labels is None:
        _tell_names(frame, view.name)
    return frame if labels is None else frame.set_axis(labels)


def _tell_names(frame: pd.DataFrame, view: str) -> None:
    """A word about a first column that looks like names of samples, but is a feature."""
    first = frame.iloc[:, 0]
    if not pd.api.types.is_numeric_dtype(first) and first.is_unique and len(frame) > 1:
        note(
            f"column {first.name!r} of view {view!r} has another text in every row: if it names "
            f"the samples, pass --index {first.name}."
        )


def labelled(table: Any, labels: pd.Index | None) -> Any:
    """Sequences, or a table of single cells, with the labels of their rows."""
    if labels is None or hasattr(table, "iloc"):
        return table if labels is None else table.set_axis(labels, axis=0)
    return pd.DataFrame.sparse.from_spmatrix(table).sparse.to_dense().set_axis(labels)


def _refuse_gaps(X: Any, missing: str) -> None:
    if isinstance(X, KernelStack) or missing != "error":
        return
    for name in X.names:
        rows = np.flatnonzero(~X.has(name))
        if len(rows):
            raise DataError(
                f"View {name!r} lacks {len(rows)} of {len(X)} samples: "
                f"{listed(X.index[rows])}. Say what becomes of them: --missing mean takes the "
                "mean in their place, --missing conditional reconstructs them from other views."
            )


# -- ready-made kernels ----------------------------------------------------------------------


def all_matrices(contents: dict[str, Contents]) -> bool:
    return all(one.matrices is not None for one in contents.values())


def _stack(
    views: tuple[ViewRequest, ...], contents: dict[str, Contents], *, lacking: bool
) -> tuple[KernelStack, pd.Index]:
    """Kernels of all files, which have the same samples in the same order."""
    first = next(iter(contents.values()))
    kernels, owners = {}, []
    for view in views:
        own = contents[view.name]
        if view.kernels:
            raise UsageError(f"View {view.name!r} is made of kernels, and takes no others.")
        if (own.labels is None) != (first.labels is None) or (
            own.labels is not None and list(own.labels) != list(first.labels)
        ):
            raise DataError(
                f"{str(own.path)!r} and {str(first.path)!r} have other samples or another order."
            )
        matrices = own.matrices or {}
        chosen = list(matrices) if view.columns is None else list(view.columns)
        for name in chosen:
            if name not in matrices:
                raise DataError(
                    f"{str(own.path)!r} has no kernel {name!r}, only {listed(matrices)}."
                )
            kernels[name if len(views) == 1 else f"{view.name}:{name}"] = matrices[name]
            owners.append(view.name if len(views) > 1 else name)
    labels = pd.RangeIndex(_length(first)) if first.labels is None else first.labels
    names = None if first.labels is None else list(first.labels)
    square = len({*next(iter(kernels.values())).shape}) == 1
    stack = KernelStack.from_arrays(
        kernels,
        row_samples=names,
        col_samples=names if square else None,
        missing=lacking,
    )
    return stack.with_views(owners), labels


def _check_square(stack: KernelStack) -> None:
    rows, cols, _ = stack.shape
    if rows != cols:
        raise DataError(
            f"Training needs kernels of all samples with each other, as many rows as columns; "
            f"these have {rows} rows and {cols} columns."
        )


# -- The estimator that was asked for, and the kernels of its views -------------------------------


_ESTIMATORS = {
    ("classification", "fisher"): MKFDACV,
    ("classification", "svm"): MKSVCCV,
    ("regression", "fisher"): MKRidgeCV,
    ("regression", "svm"): MKSVRCV,
}
# Their number of landmarks or features comes first; by default it is theirs.
_APPROXIMATIONS = {"nystrom": Nystrom, "random": RandomFeatures}


def estimator_for(request: Request, samples: Samples) -> Any:
    """Not fitted, with the kernels of the request or, where it names none, default ones."""
    options: dict[str, Any] = {"ps": request.p, "regs": request.reg, "Cs": request.C}
    options = {name: list(values) for name, values in options.items() if values is not None}
    if request.approximation != "exact":
        options["approximation"] = approximation_of(request)
    kernels = "precomputed" if samples.precomputed else kernels_of(request, samples.X)
    method = _ESTIMATORS[samples.task, request.machine]
    return method(kernels, missing=request.missing, **options)


def approximation_of(request: Request) -> Approximation | str:
    """From a text such as ``nystrom:200``."""
    name, colon, size = request.approximation.partition(":")
    if request.machine != "fisher":
        raise UsageError("--approximation goes with --machine fisher only.")
    if name == "auto" and not colon:
        return name
    if name not in _APPROXIMATIONS or (colon and not (size.isascii() and size.isdecimal())):
        raise UsageError(
            f"approximation is exact, auto, nystrom, nystrom:200, random or random:400, not "
            f"{request.approximation!r}."
        )
    return _APPROXIMATIONS[name](int(size) if colon else None)


def kernels_of(request: Request, views: Views) -> Any:
    """Kernels of every view; None if all have their default ones and nothing is filled in."""
    if not request.impute:
        _refuse_empty_cells(views)
    if not request.impute and not any(view.kernels for view in request.views):
        return None
    found: dict[str, Any] = {}
    for view in request.views:
        kernels: Any = list(view.kernels) if len(view.kernels) != 1 else view.kernels[0]
        table = views[view.name]
        if request.impute and isinstance(table, pd.DataFrame):
            found[view.name] = _imputed(kernels, table)
        else:
            found[view.name] = kernels or None
    return found


def _imputed(kernels: Any, table: pd.DataFrame) -> KernelUnion:
    """Kernels of what a table is after its empty cells have been filled in."""
    union = as_union(kernels if kernels else auto_kernels(_imputer(table).fit_transform(table)))
    return KernelUnion(
        [
            (name, kernel.after(_imputer(_seen(kernel, table))))
            for name, kernel in dict(union.kernels).items()
        ]
    )


def _seen(kernel: Kernel, table: pd.DataFrame) -> pd.DataFrame:
    """The columns that a kernel compares: what comes before it is given no others."""
    names = [kernel.columns] if isinstance(kernel.columns, str) else kernel.columns
    return table if names is None else table[list(names)]


def _imputer(table: pd.DataFrame) -> ColumnTransformer | SimpleImputer:
    """The median of numbers, the most frequent one of other values."""
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    others = table.columns.difference(numbers, sort=False).tolist()
    parts = [
        ("numbers", SimpleImputer(strategy="median"), numbers),
        ("others", SimpleImputer(strategy="most_frequent"), others),
    ]
    used = [part for part in parts if part[2]]
    # A transformer of chosen columns looks for each of them among all, which takes long for many.
    _, filled, _ = used[0]
    if len(used) > 1:
        filled = ColumnTransformer(used, verbose_feature_names_out=False)
    return filled.set_output(transform="pandas")


def _refuse_empty_cells(views: Views) -> None:
    for name, table in views.items():
        if not isinstance(table, pd.DataFrame):
            continue
        empty = table.isna().to_numpy()
        if empty.any():
            row, column = np.argwhere(empty)[0]
            raise DataError(
                f"View {name!r} has empty cells ({int(empty.sum())}), the first in column "
                f"{table.columns[column]!r} of {str(table.index[row])!r}: fill them in, or pass "
                "--impute, which takes the median of a column, of texts the most frequent one."
            )
