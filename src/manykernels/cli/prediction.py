"""The command ``predict``: new samples read as the model was fitted, tables of predictions."""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator
from ..estimators.inputs import MatrixSource, TableSource
from ..kernels import KernelStack, Views
from ..persistence import load
from ..persistence.models import header_of
from .cells import check_cells, refuse_texts
from .console import (
    DataError,
    UsageError,
    listed,
    note,
    say,
)
from .files import Contents
from .outputs import TABLES, Outputs, class_table, named, save_table, without_formulas
from .reading import Reading, check_labels
from .request import Request, ViewRequest, parsed_column
from .samples import (
    all_matrices,
    column_of,
    labelled,
    refuse_different_lengths,
    refuse_empty_cells,
    refuse_missing_views,
    values_of,
)


def predict(
    model_file: Path,
    request: Request,
    *,
    at: str | None,
    coverage: float | None,
    output: Path | None,
    escape_formulas: bool,
    force: bool,
) -> None:
    """Predict for the samples in files; print or write the table."""
    times = None if at is None else times_of(at)
    outputs = Outputs([model_file, *request.files], force=force)
    outputs.claim(output, "--output", TABLES)
    model, known = opened(model_file), noted(model_file)
    if times is not None:
        refuse_times(model, times, request)
    if coverage is not None and not hasattr(model, "predict_interval"):
        raise UsageError(
            "--coverage is for predictions of numbers by --machine fisher or svm, and "
            f"{type(model).__name__} has no prediction intervals."
        )
    if request.index is None and known.get("index") is not None:
        request = replace(request, index=str(known["index"]))
    X, labels, strata = new_samples(model, request)
    try:
        names = [parsed_column(str(text), "target").name for text in known.get("target", [])]
        table = prediction_table(model, X, labels, names, times, strata, coverage)
    except ValueError:
        if isinstance(X, Views):
            refuse_empty_cells(X, "fit the model with --impute")
        raise
    if output is None:
        _show(without_formulas(table) if escape_formulas else table)
    outputs.add("predictions", output, lambda path: save_table(table, path, escape_formulas))
    outputs.write()
    outputs.report()


def times_of(text: str) -> list[float]:
    """Parse the times of ``--at``."""
    try:
        times = [float(part) for part in text.split(",")]
        if not all(0.0 <= time < np.inf for time in times):
            raise ValueError
    except ValueError as error:
        raise UsageError(f"--at must be times, such as 12 or 12,24,60; got {text!r}.") from error
    return times


def noted(path: Path) -> dict[str, Any]:
    """Return the specification of the samples that a model was fitted to, if its file has one."""
    notes = header_of(path).get("notes")
    known = notes.get("samples") if isinstance(notes, dict) else None
    return known if isinstance(known, dict) else {}


def samples_of_model(path: Path, given: dict[str, Any]) -> tuple[dict[str, Any], Path]:
    """Return the specification of the samples of a model, and the path of the model.

    `given` are the options of the command, which must not change the model.
    """
    for name in ("machine", "task", "sets", "missing", "impute", "p", "reg", "C", "spec"):
        if given.get(name) is not None:
            raise UsageError(f"--{name} is part of the model {str(path)!r}: remove the option.")
    if not path.is_file():
        raise DataError(f"There is no model file {str(path)!r}.")
    known = noted(path)
    if not known and not given.get("view"):
        raise DataError(
            f"{str(path)!r} does not tell which files it was fitted to: pass --view, --index and "
            "--target as for fit."
        )
    return known, path


def refuse_times(model: KernelEstimator, times: list[float], request: Request) -> None:
    """Raise if a model does not predict the probability of survival at some times."""
    if not isinstance(model, SurvivalEstimator):
        raise UsageError(
            f"--at is for survival times, and {type(model).__name__} does not predict them."
        )
    hazards = model.baseline_hazard_
    if isinstance(hazards, dict) and request.column("strata") is None:
        raise UsageError(
            "--at needs the strata of the new samples, since the model was fitted with strata: "
            "pass --strata with the name of their column, or file.csv:column."
        )
    if not isinstance(hazards, dict):
        hazards = {None: hazards}
    end = min(hazard.end for hazard in hazards.values())
    if max(times) > end:
        raise DataError(
            f"--at {max(times):g} is too late: no training sample was observed beyond {end:g}."
        )


def _show(table: pd.DataFrame) -> None:
    """Print a table as CSV; on a terminal, with control characters escaped."""
    if sys.stdout.isatty():
        say(table.to_csv(lineterminator="\n").removesuffix("\n"))
    else:
        table.to_csv(sys.stdout, lineterminator="\n")


def opened(path: Path) -> Any:
    """Load a model file."""
    if not path.is_file():
        raise DataError(f"There is no model file {str(path)!r}.")
    return load(path)


def prediction_table(
    model: KernelEstimator,
    X: Views | KernelStack,
    labels: pd.Index,
    names: list[str],
    times: list[float] | None,
    strata: pd.Series | None,
    coverage: float | None,
) -> pd.DataFrame:
    """Return predictions, with probabilities of classes, or of survival at some times.

    `names` are those of the targets, if they are known. With a `coverage`, numbers have intervals.
    """
    labels, predictions = named(labels), model.predict(X)
    if isinstance(model, SurvivalEstimator):
        columns = {"risk": predictions}
        if times is not None:
            curves = model.predict_survival_function(X, strata)
            columns |= {f"survival_{t:g}": [curve(t) for curve in curves] for t in times}
        return pd.DataFrame(columns, index=labels)
    if predictions.ndim == 2 and len(names) != predictions.shape[1]:
        names = list(map(str, range(predictions.shape[1])))
    if hasattr(model, "predict_proba"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `predict` has warned about these rows
            probabilities = model.predict_proba(X)
        if predictions.ndim == 1:
            return class_table(model.classes_, probabilities, labels, predictions)
        of_labels = pd.DataFrame(probabilities, labels, columns=names).add_prefix("probability_")
        table = pd.DataFrame(predictions, labels, columns=names).add_prefix("prediction_")
        return pd.concat([table, of_labels], axis=1)
    several = predictions.ndim == 2
    ends = [f"_{name}" for name in names] if several else [""]
    values = predictions.reshape(len(labels), -1)
    columns = {f"prediction{end}": values[:, k] for k, end in enumerate(ends)}
    if coverage is not None:
        intervals = model.predict_interval(X, coverage).reshape(len(labels), -1, 2)
        for k, end in enumerate(ends):
            columns |= {f"low{end}": intervals[:, k, 0], f"high{end}": intervals[:, k, 1]}
    return pd.DataFrame(columns, index=labels)


# -- new samples -----------------------------------------------------------------------------


def new_samples(
    model: KernelEstimator, request: Request
) -> tuple[Views | KernelStack, pd.Index, pd.Series | None]:
    """Return new samples in the form that the model needs, their labels and perhaps strata."""
    if any(view.kernels for view in request.views):
        raise UsageError("Kernels are part of the model: remove them from --view.")
    training = training_views(model)
    index = request.index if request.index is not None else index_name(training)
    n_columns = model._predictor.source.width if training is None else None
    texts = {column.name for column in request.columns} | _text_columns(training)
    reading = Reading(request, index, texts, n_columns)
    contents = {view.name: reading.of(view) for view in request.views}
    others = {
        column: list(contents.values()) if column.file is None else [reading.contents(column.file)]
        for column in request.columns
    }
    files = [*contents.values(), *(file for some in others.values() for file in some)]
    refuse_different_lengths(files)
    check_labels(files, request, lacking=model.missing != "error")
    X, labels = _new_rows(model, request, training, contents, reading.index)
    of_strata = request.column("strata")
    if of_strata is None:
        return X, labels, None
    strata = values_of(column_of(others[of_strata], of_strata), of_strata, labels)
    return X, labels, strata


def _new_rows(
    model: KernelEstimator,
    request: Request,
    training: Views | None,
    contents: dict[str, Contents],
    index: str | None,
) -> tuple[Views | KernelStack, pd.Index]:
    """Return new samples in the form that the model needs, and their labels."""
    if training is None:
        return _blocks(model, request.views, contents)
    unknown = [name for name in contents if name not in training]
    absent = [name for name in training if name not in contents]
    if unknown:
        raise DataError(f"The model has no view {unknown[0]!r}; it has {listed(training)}.")
    if absent and model.missing == "error":
        raise DataError(
            f"View {absent[0]!r} is missing: pass --view {absent[0]}=file. (Only a model that was "
            "fitted with --missing mean or conditional predicts without it.)"
        )
    tables = {
        name: _training_columns(file, training[name], name) for name, file in contents.items()
    }
    X = Views(tables, join="outer")
    if model.missing == "error":
        refuse_missing_views(
            X, "The model was fitted without --missing and needs all views of every sample."
        )
    return X, pd.Index(X.index, name=index)


def training_views(model: KernelEstimator) -> Views | None:
    """Return the training rows that the model keeps; None if it was fitted on kernels."""
    source = getattr(getattr(model, "_predictor", None), "source", None)
    if isinstance(source, MatrixSource):
        return None
    if isinstance(source, TableSource) and isinstance(source.table, Views):
        return source.table
    raise DataError(
        f"This {type(model).__name__} was not fitted on views. Use it in Python, with "
        "manykernels.load."
    )


def _training_tables(training: Views | None) -> list[Any]:
    return [] if training is None else [table for _, table in training.items()]


def index_name(training: Views | None) -> str | None:
    """Return the name of the column that matched the training samples."""
    names = (
        getattr(getattr(table, "index", None), "name", None)
        for table in _training_tables(training)
    )
    return next((str(name) for name in names if name is not None), None)


def _text_columns(training: Views | None) -> set[str]:
    """Return columns that were text in training; fewer rows could be read as numbers."""
    return {
        column
        for table in _training_tables(training)
        if isinstance(table, pd.DataFrame)
        for column, dtype in table.dtypes.items()
        if pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
    }


def _training_columns(contents: Contents, trained: Any, name: str) -> Any:
    """Return the new table of a view, with the columns of its training table."""
    if contents.table is not None:
        return labelled(contents.table, contents.labels)
    if not isinstance(trained, pd.DataFrame):
        raise DataError(
            f"View {name!r} was not a table in training, but {str(contents.path)!r} is one."
        )
    frame, expected = contents.columns, list(trained.columns)
    absent = [column for column in expected if column not in frame.columns]
    if absent:
        raise DataError(
            f"{str(contents.path)!r} has no column {absent[0]!r}, which view {name!r} had in "
            "training."
        )
    if contents.labels is not None:
        frame = frame.set_axis(contents.labels)
    used = {*expected, contents.labels.name if contents.labels is not None else None}
    unused = [column for column in frame.columns if column not in used]
    if unused:
        note(f"columns of {str(contents.path)!r} that the model does not use: {listed(unused)}.")
    frame = frame[expected]
    numbers = [column for column in expected if pd.api.types.is_numeric_dtype(trained[column])]
    refuse_texts(frame, contents, name, numbers, "the training data have numbers")
    check_cells(frame, contents, name)
    return frame


def _blocks(
    model: KernelEstimator, requests: Sequence[ViewRequest], contents: dict[str, Contents]
) -> tuple[KernelStack, pd.Index]:
    """Return kernels between new and training samples, in the order of the model."""
    if not all_matrices(contents):
        raise DataError(
            "The model was fitted on kernel matrices: pass files of kernels, .npy, .npz or .mat."
        )
    first = next(iter(contents.values()))
    kernels: dict[str, np.ndarray] = {}
    for view in requests:
        for name, kernel in (contents[view.name].matrices or {}).items():
            kernels[name], kernels[f"{view.name}:{name}"] = kernel, kernel
    absent = [name for name in model.kernel_names_ if name not in kernels]
    if absent:
        raise DataError(f"The model needs the kernel {absent[0]!r}, which no file has.")
    arrays = {name: kernels[name] for name in model.kernel_names_}
    for name, kernel in arrays.items():
        if kernel.shape[1] != model.n_features_in_:
            raise DataError(
                f"The kernel {name!r} has {kernel.shape[1]} columns, but the model was fitted to "
                f"{model.n_features_in_} samples: the kernel of new samples has a row for each of "
                "them, and a column for each sample of the fit, in the same order."
            )
    labels = first.labels
    stack = KernelStack.from_arrays(
        arrays,
        row_samples=None if labels is None else list(labels),
        gram=False,
        missing=model.missing != "error",
    )
    return stack, pd.RangeIndex(len(stack)) if labels is None else labels
