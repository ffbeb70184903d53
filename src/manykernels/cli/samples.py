"""Samples from several files, their target, and the estimator for them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer

from ..estimators import MKFDACV, MKGLMCV, MKSVCCV, MKSVRCV, MKCoxCV, MKLogisticCV, MKRidgeCV
from ..kernels import (
    RBF,
    ChiSquare,
    Intersection,
    Kernel,
    KernelStack,
    KernelUnion,
    Laplacian,
    Linear,
    Polynomial,
    Views,
    auto_kernels,
    kernels_of_sets,
)
from ..kernels.auto import as_union
from ..kernels.checks import IndefiniteKernelError, NoKernelError
from ..kernels.columns import disguise
from ..kernels.tables import naming, select_columns
from ..metrics.classwise import CLASS_SCORERS
from ..metrics.survival import SURVIVAL_SCORERS
from ..scale import Nystrom, RandomFeatures
from ..scale.features import Approximation
from ..survival import survival_target
from ..survival.targets import SurvivalTargetError, check_informative
from ..utils.sklearn import scored_targets
from .cells import check_cells, is_other_text, note_similar, refuse_texts
from .console import DataError, UsageError, listed, note
from .files import WITH_PARTS, Contents
from .reading import Reading, check_labels, names_row
from .request import Column, Request, ViewRequest, similar_kernel

# -- Targets --------------------------------------------------------------------------------------


# Largest number of distinct integers that count as classes.
_MOST_CLASSES = 20


def task_of(y: pd.Series | pd.DataFrame) -> str:
    """Return "classification" for texts, booleans and few distinct integers, else "regression"."""
    if isinstance(y, pd.DataFrame):
        tasks = {name: task_of(y[name]) for name in y}
        if len(set(tasks.values())) > 1:
            first, second = (
                next(name for name in tasks if tasks[name] == task)
                for task in ("classification", "regression")
            )
            raise DataError(
                f"The target {first!r} has classes and {second!r} has numbers: pass "
                "--task regression if both are numbers, or fit a model for each."
            )
        return next(iter(tasks.values()))
    if not _are_numbers(y):
        _refuse_numbers_as_text(y)
        return "classification"
    return "classification" if _are_few_integers(y) else "regression"


def _are_few_integers(y: pd.Series) -> bool:
    return y.nunique() <= _MOST_CLASSES and _are_whole(y)


def as_targets(y: Any, task: str) -> Any:
    """Convert the target, or the columns of several, to the type that the estimators need."""
    if task == "survival":  # converted when it was read
        return y
    if isinstance(y, pd.DataFrame):
        return pd.DataFrame(
            {
                name: as_targets(y[name], task) if task != "classification" else _as_label(y[name])
                for name in y
            }
        )
    if task in ("regression", "counts"):
        if not _are_numbers(y):
            texts = (pair for pair in y.items() if is_other_text(pair[1]))
            label, value = next(texts, (y.index[0], y.iloc[0]))
            raise DataError(
                f"The target of a regression must be numbers, but that of {str(label)!r} is "
                f"{value!r}: write a number in the file, or leave the cell empty to leave the "
                "sample out."
            )
        infinite = y.index[~np.isfinite(y)]
        if len(infinite):
            raise DataError(f"The target of {str(infinite[0])!r} is infinite.")
        wrong = y.index[(y < 0) | (y != np.floor(y))]
        if task == "counts" and len(wrong):
            raise DataError(
                f"The target of {str(wrong[0])!r} is {y[wrong[0]]:g}: --machine poisson predicts "
                "counts, which are 0, 1, 2 and so on."
            )
        return y.astype(float)
    if y.nunique() < 2:
        raise DataError(
            f"All samples have the same target, {y.iloc[0]!r}: there must be at least two classes."
        )
    if _are_numbers(y):
        # A column of integers with empty cells is read as floats.
        return y.astype(int) if _are_whole(y) else y
    note_similar(y, f"classes of the target {str(y.name)!r}")
    return y.astype(str).astype(object)


def _as_label(y: pd.Series) -> pd.Series:
    """Convert one of several labels of each sample to 0 and 1."""
    values = list(y.unique())
    if not set(values) <= {0, 1}:
        raise DataError(
            f"Several targets are labels, which are 0 and 1, or numbers; {y.name!r} has "
            f"{listed(values)}. Write 0 and 1 into the file, pass --task regression if the "
            "targets are numbers, or fit a model for each."
        )
    if len(values) < 2:
        raise DataError(
            f"All samples have the same value of {y.name!r}, {values[0]}: leave this target out."
        )
    return y.astype(int)


def _refuse_numbers_as_text(y: pd.Series) -> None:
    """Raise if many distinct texts, which would be classes, are mostly numbers."""
    texts = y.astype(str)
    if texts.nunique() <= _MOST_CLASSES:
        return
    others = [pair for pair in texts.items() if is_other_text(pair[1])]
    numbers = disguise([text.strip() for text in texts.unique()])
    if others and (2 * len(others) <= len(texts) or numbers is not None):
        label, value = others[0]
        content = "a text among numbers" if numbers is None else f"one of {numbers[1]}"
        raise DataError(
            f"The target of {str(label)!r} is {value!r}, {content}: there would be "
            f"{texts.nunique()} classes. Write numbers in the file, or leave the cell empty to "
            "leave the sample out; if these are classes, pass --task classification."
        )


def _are_numbers(y: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)


def _are_whole(y: pd.Series) -> bool:
    return bool(np.isfinite(y).all() and (y == np.floor(y)).all())


def note_leaks(views: Views, y: Any, task: str) -> None:
    """Print a note about columns that determine the target."""
    for name, table in views.items():
        if not isinstance(table, pd.DataFrame):
            continue
        rows = np.flatnonzero(views.has(name))
        if task == "survival":
            pairs = [(y["time"].iloc[rows], "regression"), (y["event"].iloc[rows], "classes")]
        elif isinstance(y, pd.DataFrame):
            pairs = [(y[name].iloc[rows], task) for name in y]
        else:
            pairs = [(y.iloc[rows], task)]
        for column in table.columns:
            if any(_determines(table[column], *pair) for pair in pairs):
                note(
                    f"column {column!r} of view {name!r} determines the target exactly. If it is "
                    "the target under another name, leave it out by selecting the other columns."
                )


def _determines(column: pd.Series, y: pd.Series, task: str) -> bool:
    """Return whether each class has a single value of its own, or the numbers are equal."""
    if task in ("regression", "counts"):
        return pd.api.types.is_numeric_dtype(column) and np.array_equal(column, y)
    values, classes = pd.factorize(column)[0], pd.factorize(y)[0]
    return bool(classes.any()) and np.array_equal(values, classes)


@dataclass(frozen=True)
class Samples:
    """Training samples.

    `X` are views or precomputed kernels, `labels` the names of the samples, `y` the target: a
    Series, a data frame of several, or for survival times one with the columns event and time.
    `about` has other arguments of ``fit``, a Series each: the groups of the samples, and for
    survival times their strata and entries. `columns` are the targets and these, by name.
    """

    X: Any
    labels: pd.Index
    y: Any
    task: str
    about: dict[str, pd.Series]
    columns: tuple[Column, ...]

    @property
    def precomputed(self) -> bool:
        return isinstance(self.X, KernelStack)

    @property
    def names(self) -> list[str]:
        """Names of several targets; empty for one."""
        several = isinstance(self.y, pd.DataFrame) and self.task != "survival"
        return [str(name) for name in self.y] if several else []


# -- training samples ------------------------------------------------------------------------


def training_samples(request: Request) -> Samples:
    """Read views and target and match their rows; leave out samples without a target."""
    # Labels of groups are text, as names of samples are: 007 is not 7.
    texts = [column.name for column in request.columns if column.role in ("groups", "strata")]
    reading = Reading(request, request.index, texts)
    contents = {view.name: reading.of(view) for view in request.with_target().views}
    request = replace(request, columns=tuple(dict.fromkeys(named_columns(request, reading))))
    files = {
        column: list(contents.values()) if column.file is None else [reading.contents(column.file)]
        for column in request.columns
    }
    all_files = [*contents.values(), *(file for some in files.values() for file in some)]
    refuse_different_lengths(all_files)
    check_labels(all_files, request, lacking=request.missing != "error")
    columns = {column: column_of(files[column], column) for column in request.columns}
    targets = [columns[column] for column in request.targets]
    y: Any = _survival(columns, files, request) if not targets else targets[0]
    if len(targets) > 1:
        y = pd.concat(targets, axis=1, join="inner")
    X: Any
    if all_matrices(contents):
        X, labels = _stack(request, contents)
        rows, cols, _ = X.shape
        if rows != cols:
            raise DataError(
                f"Training needs square kernel matrices, of all samples with each other; these "
                f"have {rows} rows and {cols} columns."
            )
    else:
        tables = {view.name: _table(view, contents[view.name], request) for view in request.views}
        X = Views(tables, join="outer")
        labels = pd.Index(X.index, name=request.index)
    X, labels, y = _with_target(X, labels, y, request)
    if isinstance(X, Views) and request.missing == "error":
        refuse_missing_views(
            X,
            "Say what becomes of them: --missing mean takes the mean in their place, "
            "--missing conditional reconstructs them from other views.",
        )
    if not targets:
        task = "survival"
    elif request.machine == "poisson":
        task = "counts"
    else:
        task = task_of(y) if request.task == "auto" else request.task
    refuse_scores(request.scoring, task)
    y = as_targets(y, task)
    if not isinstance(X, KernelStack):
        note_leaks(X, y, task)
    about = {
        column.role: values_of(columns[column], column, labels)
        for column in request.columns
        if column.role in _ABOUT
    }
    return Samples(X, labels, y, task, about, request.columns)


def refuse_scores(names: tuple[str, ...], task: str) -> None:
    """Raise if a score is for other targets than those of the task."""
    of_task = "classes" if task == "classification" else "numbers"
    for name in names:
        wanted = scored_targets(name) or ("survival times" if name in SURVIVAL_SCORERS else "")
        if name in CLASS_SCORERS:
            wanted = "classes"
        found = "survival times" if task == "survival" else of_task
        if wanted and wanted != found:
            examples = {
                "classes": "accuracy, balanced_accuracy, roc_auc or neg_log_loss",
                "numbers": "r2 or neg_mean_absolute_error",
                "survival times": "concordance_index",
            }
            raise UsageError(
                f"--scoring {name!r} is a score of {wanted}, and the target has {found}: choose "
                f"another, such as {examples[found]}."
            )


# Columns that every sample has a value of, by their role: what the value is, and a way out.
_ABOUT = {
    "groups": ("group", "Give each a group; one that belongs with no other has its own."),
    "strata": ("stratum", "Give each a stratum, or leave the sample out of the files."),
    "entry": ("entry", "Write 0 for samples that were observed from the beginning."),
}


def values_of(values: pd.Series, column: Column, labels: pd.Index) -> pd.Series:
    """Return the value of each sample; raise if a sample has none."""
    what, way_out = _ABOUT[column.role]
    absent = labels[~labels.isin(values.index)]
    if len(absent):
        raise DataError(
            f"{len(absent)} of {len(labels)} samples have no value of {column.name!r}, their "
            f"{what}: {listed(absent)}. {way_out}"
        )
    values = values.loc[labels]
    if column.role != "entry":
        return values.astype(str)
    numbers = pd.to_numeric(values, errors="coerce")
    wrong = values.index[numbers.isna()]
    if len(wrong):
        raise DataError(
            f"The entry {column.name!r} of {str(wrong[0])!r} is {values[wrong[0]]!r}: entries "
            "must be numbers, in the unit of the times."
        )
    return numbers


def named_columns(request: Request, reading: Reading) -> Iterator[Column]:
    """Yield the columns of a request; a target such as ``voxels.csv:v*`` stands for several."""
    others = {request.index, *(column.name for column in request.columns)}
    for column in request.columns:
        names: list[str] = []
        if column.role == "target" and column.file is not None and "*" in column.name:
            names = [str(name) for name in reading.contents(column.file).columns]
        if not names or column.name in names:
            yield column
            continue
        matching = [name for name in names if fnmatchcase(name, column.name)]
        matching = [name for name in matching if name not in others]
        if not matching:
            raise DataError(
                f"{str(column.file)!r} has no columns {column.name!r} to predict; it has "
                f"{listed(names)}."
            )
        yield from (replace(column, name=name) for name in matching)


def refuse_different_lengths(contents: list[Contents]) -> None:
    """Raise if rows without labels, which are matched by their order, differ in number."""
    sizes = {file.path: _length(file) for file in contents}
    unlabelled = [file for file in contents if file.labels is None]
    if unlabelled and (len(set(sizes.values())) > 1 or len(unlabelled) < len(contents)):
        (first, size), *others = sizes.items()
        other = next((path for path, n_rows in others if n_rows != size), None)
        problem = (
            f"{str(first)!r} has {size} rows and {str(other)!r} {sizes[other]}"
            if other is not None
            else f"the rows of {str(unlabelled[0].path)!r} have no names, those of others have"
        )
        raise DataError(f"{problem}: pass the column to match samples by as --index.")


def _length(contents: Contents) -> int:
    if contents.matrices is not None:
        return len(next(iter(contents.matrices.values())))
    return len(contents.columns)


def column_of(sources: list[Contents], wanted: Column) -> pd.Series:
    """Return a column by sample label, from all files that have it, which must agree."""
    column, option = wanted.name, wanted.role
    targets: pd.Series | None = None
    for file in sources:
        if column not in file.columns.columns:
            continue
        values = file.columns[column]
        labels = range(len(values)) if file.labels is None else file.labels
        values = values.set_axis(labels).dropna()
        if targets is not None:
            both = targets.index.intersection(values.index)
            differing = both[(targets[both] != values[both]).to_numpy()]
            if len(differing):
                raise DataError(
                    f"The files disagree about {column!r} of {str(differing[0])!r}: "
                    f"{targets[differing[0]]!r} and {values[differing[0]]!r}."
                )
            values = values[values.index.difference(both, sort=False)]
        targets = values if targets is None else pd.concat([targets, values])
    if targets is None:
        known = dict.fromkeys(name for file in sources for name in file.columns.columns)
        purpose = {"target": "to predict"}.get(option, f"of {_PLURALS[option]}")
        turned = [file for file in sources if names_row(file, column)]
        advice = (
            f"{str(turned[0].path)!r} has a row of this name: if it has a column per sample, pass "
            "--transpose with the name of its view, or --transpose all."
            if turned
            else f"If it is in another file, pass --{option} file.csv:column."
        )
        raise DataError(
            f"No file has a column {column!r} {purpose}; columns are {listed(known)}. {advice}"
        )
    return targets


# Plurals of the roles of columns.
_PLURALS = {
    **{"target": "targets", "time": "times", "event": "events"},
    **{"entry": "entries", "strata": "strata", "groups": "groups"},
}


# -- survival times --------------------------------------------------------------------------


def _survival(
    columns: dict[Column, pd.Series], files: dict[Column, list[Contents]], request: Request
) -> pd.DataFrame:
    """Return events and times by sample label; raise with the file and row of a wrong value."""
    by_role = {column.role: column for column in columns}
    of_event, of_time = by_role["event"], by_role["time"]
    event, time = columns[of_event], columns[of_time]
    names = {"event": of_event.name, "time": of_time.name}
    values = sorted(event.unique(), key=lambda value: (str(type(value)), value))
    if of_event.value is not None:
        event = _is_value(event, of_event.value)
        if not event.any():
            raise DataError(
                f"column {of_event.name!r} of {_path(files[of_event], of_event)!r} has no value "
                f"{of_event.value!r}; its values are {listed(values)}."
            )
        names["event"] = "event"  # its own name may stand for the opposite, such as "alive"
    texts = time.index[pd.to_numeric(time, errors="coerce").isna()]
    if len(texts):
        raise DataError(
            f"column {of_time.name!r} of {_path(files[of_time], of_time)!r} is "
            f"{str(time[texts[0]])!r} in row {_row(texts[0], files[of_time])}: times must be "
            "numbers. Convert it in the file."
        )
    labels = time.index[time.index.isin(event.index)]
    frame = pd.DataFrame({names["event"]: event[labels], names["time"]: time[labels]}, labels)
    if frame.empty:
        raise DataError(f"No sample has values of both {request.predicted}.")
    try:
        target = survival_target(frame)
        if not np.array_equal(target.event, frame.iloc[:, 0].to_numpy() != 0):
            raise UsageError(
                f"--time and --event seem to be exchanged: the values of {of_time.name!r} are 0 "
                f"and 1, those of {of_event.name!r} are not."
            )
        check_informative(target.event, target.time)
    except ValueError as error:
        raise DataError(_in_files(error, frame, names, by_role, files, values)) from error
    return pd.DataFrame({"event": target.event, "time": target.time}, labels)


def _is_value(column: pd.Series, value: str) -> pd.Series:
    """Return where a column has a value that is given as text."""
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    return column.map(lambda entry: str(entry).strip() == value or entry == number).astype(bool)


def _path(files: list[Contents], column: Column) -> str:
    """Return the first of some files that has a column."""
    having = [file for file in files if column.name in file.columns.columns]
    return str((having or files)[0].path)


def _in_files(
    error: ValueError,
    frame: pd.DataFrame,
    names: dict[str, str],
    by_role: dict[str, Column],
    files: dict[Column, list[Contents]],
    values: list[Any],
) -> str:
    """Return the message of an error about y with files and rows, and a way out."""
    message, role = str(error), "event"
    for which, name in names.items():
        column = by_role[which]
        own, path = column.name, _path(files[column], column)
        if f"column {name!r} of y" in message:
            role = which
        message = message.replace(f"column {name!r} of y", f"column {own!r} of {path!r}")
        if which == "event":
            message = message.replace("y has no", f"column {own!r} of {path!r} has no")
    if (row := re.search(r"in row (\d+)(?: \(.*?\))?:", message)) is not None:
        message = message.replace(
            row[0], f"in row {_row(frame.index[int(row[1])], files[by_role[role]])}:"
        )
    if not isinstance(error, SurvivalTargetError):
        return message
    if role == "time":
        return message.replace(error.way_out, "Convert it in the file.")
    # Of words and numbers, the last stands more often for an event: no, yes; alive, dead; 1, 2.
    value = values[-1] if "True or 1" not in message and len(values) > 1 else values[0]
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    option = replace(by_role["event"], value=shown)
    return message.replace(
        error.way_out, f"Pass the value of an observed event, such as --event {option}."
    )


def _row(label: Any, files: list[Contents]) -> str:
    """Return the row of a sample in the first of some files that has it, counted from 1."""
    for file in files:
        if file.labels is None:
            return str(int(label) + 1)
        if label in file.labels:
            return f"{file.labels.get_loc(label) + 1} ({str(label)!r})"
    return repr(label)


def _with_target(X: Any, labels: pd.Index, y: Any, request: Request) -> tuple[Any, pd.Index, Any]:
    """Select the samples that have a target, and print a note about the others."""
    known = labels.isin(y.index)
    if not known.any():
        raise DataError(
            f"No sample has a value of {request.predicted} (empty, NA and None are missing); "
            f"samples are {listed(labels[:3])}, those with a target {listed(y.index[:3])}."
        )
    n_unused = len(y.index.difference(labels))
    if n_unused:
        note(f"{n_unused} samples with a target are in no view and are ignored.")
    if not known.all():
        unknown = labels[~known]
        note(
            f"{len(unknown)} samples without {request.predicted} are left out: {listed(unknown)}."
        )
        rows = np.flatnonzero(known)
        X, labels = (
            (X[np.ix_(rows, rows)] if isinstance(X, KernelStack) else X.take(rows)),
            labels[rows],
        )
    return X, labels, y.loc[labels]


# Kernels that take columns of numbers only.
_OF_NUMBERS = (RBF, ChiSquare, Intersection, Laplacian, Linear, Polynomial)

# -- views -----------------------------------------------------------------------------------


def _table(view: ViewRequest, contents: Contents, request: Request) -> Any:
    """Return the features of a view, with labels and without the target and the groups."""
    taken = {column.name: column.role for column in request.columns}
    labels, path = contents.labels, str(contents.path)
    if contents.matrices is not None:
        raise DataError(
            f"{path!r} contains kernels, but other views are tables. Use either kernels or tables."
        )
    if contents.table is not None:
        if view.columns is not None and contents.path.suffix.lower() not in WITH_PARTS:
            raise UsageError(
                f"View {view.name!r} consists of sequences, which have no columns to select."
            )
        return labelled(contents.table, labels)
    frame = contents.columns
    if view.columns is None:
        others = [request.index, *taken]
        frame = frame.drop(columns=[name for name in others if name in frame.columns])
    else:
        absent = [name for name in view.columns if name not in frame.columns]
        if absent:
            raise DataError(
                f"{path!r} has no column {absent[0]!r}; it has {listed(frame.columns)}."
                f"{similar_kernel(absent[0])}"
            )
        for name, role in taken.items():
            if name in view.columns:
                raise UsageError(
                    f"View {view.name!r} has the {role} {name!r} among its columns: remove it."
                )
        frame = frame[list(view.columns)]
    if not len(frame.columns):
        raise DataError(f"{path!r} has no feature columns for view {view.name!r}.")
    empty = [name for name in frame.columns if frame[name].isna().all()]
    if len(empty) == len(frame.columns):
        raise DataError(f"{path!r} has no values for view {view.name!r}.")
    if empty:
        note(f"empty columns of view {view.name!r} are ignored: {listed(empty)}.")
        frame = frame.drop(columns=empty)
    if labels is None:
        _note_names(frame, view.name)
    default = not view.kernels and view.name != request.sets
    for kernel in view.kernels:
        if isinstance(kernel, _OF_NUMBERS):
            reason = f"the kernel {type(kernel).__name__.lower()} needs numbers"
            refuse_texts(frame, contents, view.name, frame.columns, reason)
    check_cells(frame, contents, view.name, categories=default)
    values = frame.to_numpy()
    if len(frame) > 2 and len(frame) == values.shape[1] and np.array_equal(values, values.T):
        note(
            f"{path!r} is a symmetric matrix, of which view {view.name!r} compares the columns as "
            "those of other tables. If it is a kernel, write it into a file .npy, .npz or .mat."
        )
    return frame if labels is None else frame.set_axis(labels)


def _note_names(frame: pd.DataFrame, view: str) -> None:
    """Print a note about a first column that looks like names of samples."""
    first = frame.iloc[:, 0]
    if not pd.api.types.is_numeric_dtype(first) and first.is_unique and len(frame) > 1:
        note(
            f"column {first.name!r} of view {view!r} has a different text in every row: if it "
            f"names the samples, pass --index {shlex.quote(str(first.name))}."
        )


def labelled(table: Any, labels: pd.Index | None) -> Any:
    """Return sequences, or a table of single cells, with labels of their rows."""
    if labels is None or hasattr(table, "iloc"):
        return table if labels is None else table.set_axis(labels, axis=0)
    return pd.DataFrame.sparse.from_spmatrix(table).sparse.to_dense().set_axis(labels)


def refuse_missing_views(X: Views, advice: str) -> None:
    """Raise if a sample lacks a view."""
    for name in X.names:
        rows = np.flatnonzero(~X.has(name))
        if len(rows):
            raise DataError(
                f"View {name!r} lacks {len(rows)} of {len(X)} samples: "
                f"{listed(X.index[rows])}. {advice}"
            )


# -- precomputed kernels ---------------------------------------------------------------------


def all_matrices(contents: dict[str, Contents]) -> bool:
    """Return whether all files contain kernel matrices."""
    return all(file.matrices is not None for file in contents.values())


def _stack(request: Request, contents: dict[str, Contents]) -> tuple[KernelStack, pd.Index]:
    """Return the kernels of all files, which must have the same samples in the same order."""
    views = request.views
    first = next(iter(contents.values()))
    names = None if first.labels is None else list(first.labels)
    kernels, owners = {}, []
    for view in views:
        file = contents[view.name]
        if view.kernels:
            raise UsageError(
                f"View {view.name!r} consists of precomputed kernels: remove the kernel from "
                "--view."
            )
        if (None if file.labels is None else list(file.labels)) != names:
            raise DataError(
                f"{str(file.path)!r} and {str(first.path)!r} must have the same samples in the "
                "same order."
            )
        matrices = file.matrices or {}
        chosen = list(matrices) if view.columns is None else list(view.columns)
        for name in chosen:
            if name not in matrices:
                raise DataError(
                    f"{str(file.path)!r} has no kernel {name!r}, only {listed(matrices)}."
                )
            kernels[name if len(views) == 1 else f"{view.name}:{name}"] = matrices[name]
            owners.append(view.name if len(views) > 1 else name)
    labels = pd.RangeIndex(_length(first)) if first.labels is None else first.labels
    square = len({*next(iter(kernels.values())).shape}) == 1
    try:
        stack = KernelStack.from_arrays(
            kernels,
            row_samples=names,
            col_samples=names if square else None,
            psd="clip" if request.indefinite == "clip" else "raise",
            missing=request.missing != "error",
        )
    except IndefiniteKernelError as error:
        advice = (
            "If it consists of distances, write similarities into the file, such as "
            "exp(-distance**2); if it is a similarity, pass --indefinite clip to remove its "
            "negative part."
        )
        raise DataError(str(error).replace(error.advice, advice)) from error
    except NoKernelError as error:
        advice = (
            "If it consists of similarities that depend on the order of two samples, write their "
            "mean in both orders into the file, (K + K') / 2."
        )
        raise DataError(str(error).replace(error.advice, advice)) from error
    return stack.with_views(owners), labels


# -- Estimators and kernels -----------------------------------------------------------------------


_ESTIMATORS: dict[tuple[str, str], type] = {
    ("classification", "fisher"): MKFDACV,
    ("classification", "svm"): MKSVCCV,
    ("classification", "logistic"): MKLogisticCV,
    ("regression", "fisher"): MKRidgeCV,
    ("regression", "svm"): MKSVRCV,
    ("counts", "poisson"): MKGLMCV,
    ("survival", "cox"): MKCoxCV,
}
# Tasks and machines that take no several targets.
_OF_ONE_TARGET = (("regression", "svm"), ("counts", "poisson"))
_PREDICTED = {
    "classification": "classes",
    "regression": "numbers",
    "counts": "counts",
    "survival": "survival times",
}
# The first parameter of each is the number of landmarks or features.
_APPROXIMATIONS = {"nystrom": Nystrom, "random": RandomFeatures}


def estimator_for(request: Request, samples: Samples, scoring: str | None = None) -> Any:
    """Return the unfitted estimator of a request, with its kernels or default kernels.

    Parameters are chosen by the `scoring`, by default that of the estimator.
    """
    options: dict[str, Any] = {"ps": request.p, "regs": request.reg, "Cs": request.C}
    options = {name: list(values) for name, values in options.items() if values is not None}
    machine = machine_for(request, samples.task)
    if samples.names and (samples.task, machine) in _OF_ONE_TARGET:
        raise UsageError(
            f"--machine {machine} learns one target, and there are {len(samples.names)}: use "
            "--machine fisher, or fit a model for each."
        )
    if request.approximation != "exact":
        options["approximation"] = approximation_of(request, machine)
    if scoring is not None:
        options["scoring"] = scoring
    if samples.precomputed and request.sets_file is not None:
        raise UsageError("--sets needs tables of columns, but the files contain kernels.")
    estimator = _ESTIMATORS[samples.task, machine](missing=request.missing, **options)
    if samples.precomputed:
        return estimator.set_params(kernels="precomputed")
    relevance = estimator._learns_relevance and "approximation" not in options
    return estimator.set_params(kernels=kernels_of(request, samples.X, relevance=relevance))


def machine_for(request: Request, task: str) -> str:
    """Return the machine of a request, by default the first for the task."""
    machines = [machine for kind, machine in _ESTIMATORS if kind == task]
    machine = request.machine or machines[0]
    if machine not in machines:
        kind = _PREDICTED[task]
        way = " Pass --task classification if they are classes." if task == "regression" else ""
        raise UsageError(
            f"{machine} does not predict {kind}, which the target has: choose "
            f"{' or '.join(machines)}.{way}"
        )
    return machine


def approximation_of(request: Request, machine: str) -> Approximation | str:
    """Parse an approximation such as ``nystrom:200``."""
    name, colon, size = request.approximation.partition(":")
    if machine != "fisher":
        raise UsageError(
            f"--approximation is for --machine fisher, and --machine {machine} has none: remove "
            "one of the options."
        )
    if name == "auto" and not colon:
        return name
    if name not in _APPROXIMATIONS or (colon and not (size.isascii() and size.isdecimal())):
        raise UsageError(
            f"approximation must be exact, auto, nystrom, nystrom:200, random or random:400, not "
            f"{request.approximation!r}."
        )
    return _APPROXIMATIONS[name](int(size) if colon else None)


def kernels_of(request: Request, views: Views, *, relevance: bool) -> dict[str, Any] | None:
    """Return the kernels of each view; None for default kernels without imputation.

    With `relevance`, default kernels after an imputation include RelevanceRBF.
    """
    if not request.impute:
        refuse_empty_cells(views)
    given = any(view.kernels for view in request.views) or request.sets_file is not None
    if not request.impute and not given:
        return None
    by_view: dict[str, Any] = {}
    for view in request.views:
        kernels: Any = list(view.kernels) if len(view.kernels) != 1 else view.kernels[0]
        table = views[view.name]
        if view.name == request.sets and request.sets_file is not None:
            with naming(f"view {view.name!r}"):
                kernels = kernels_of_sets(table, request.sets_file, kernels or None)
        if request.impute and isinstance(table, pd.DataFrame):
            if not kernels:
                imputed = _imputer(table).fit_transform(table)
                kernels = auto_kernels(imputed, relevance=relevance)
            by_view[view.name] = _imputed(kernels, table)
        else:
            by_view[view.name] = kernels or None
    return by_view


def _imputed(kernels: Any, table: pd.DataFrame) -> KernelUnion:
    """Return kernels that impute the empty cells of a table first."""
    union = as_union(kernels)
    return KernelUnion(
        [
            (name, kernel.after(_imputer(_input_columns(kernel, table))))
            for name, kernel in dict(union.kernels).items()
        ]
    )


def _input_columns(kernel: Kernel, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that a kernel, and so the imputer before it, receives."""
    return table if kernel.columns is None else select_columns(table, kernel.columns)


def _imputer(table: pd.DataFrame) -> ColumnTransformer | SimpleImputer:
    """Return an imputer: the median of numbers, the most frequent of other values."""
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    others = table.columns.difference(numbers, sort=False).tolist()
    columns = [
        ("numbers", SimpleImputer(strategy="median"), numbers),
        ("others", SimpleImputer(strategy="most_frequent"), others),
    ]
    used = [entry for entry in columns if entry[2]]
    # ColumnTransformer searches each column among all, which is slow for many columns.
    _, imputer, _ = used[0]
    if len(used) > 1:
        imputer = ColumnTransformer(used, verbose_feature_names_out=False)
    return imputer.set_output(transform="pandas")


def refuse_empty_cells(
    views: Views,
    way_out: str = "pass --impute to use the median of a column, or its most frequent text",
) -> None:
    """Raise if a cell of a sample that has the view is empty."""
    for name, table in views.items():
        if not isinstance(table, pd.DataFrame):
            continue
        empty = table.isna().to_numpy()
        if empty.any():
            row, column = np.argwhere(empty)[0]
            raise DataError(
                f"View {name!r} has empty cells ({int(empty.sum())}), the first in column "
                f"{table.columns[column]!r} of {str(table.index[row])!r}: fill them in, or "
                f"{way_out}."
            )
