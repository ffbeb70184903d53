"""predict and inspect: what a model that was saved says, and what it is."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..estimators._inputs import MatrixSource, TableSource
from ..kernels import KernelStack, Views
from ..persistence import load
from ..persistence.models import header_of
from .errors import DataError, UsageError, listed
from .files import Contents
from .fitting import chosen, class_table, kernel_shares, named, view_shares
from .grammar import ViewRequest, view_of
from .outputs import TABLES, Outputs, save_table, without_formulas
from .samples import Reading, all_matrices, labelled, refuse_different_lengths
from .talking import note, say, say_bars, say_table


def predict(
    model_file: Path,
    views: Sequence[str],
    *,
    index: str | None,
    output: Path | None,
    escape_formulas: bool,
    force: bool,
) -> None:
    """Predict for the samples of some files."""
    requests = [view_of(text) for text in views]
    outputs = Outputs([model_file, *(view.file for view in requests)], force=force)
    outputs.claim(output, "--output", TABLES)
    model = opened(model_file)
    X, labels = new_samples(model, requests, index)
    found = answers(model, X, labels)
    if output is None:
        _show(found.pipe(without_formulas) if escape_formulas else found)
    outputs.add("predictions", output, lambda path: save_table(found, path, escape_formulas))
    outputs.write()
    outputs.tell()


def _show(table: pd.DataFrame) -> None:
    """A table on standard output: for programs as it is, on a terminal without what it obeys."""
    if sys.stdout.isatty():
        say(table.to_csv(lineterminator="\n").removesuffix("\n"))
    else:
        table.to_csv(sys.stdout, lineterminator="\n")


def opened(path: Path) -> Any:
    """The model of a file."""
    if not path.is_file():
        raise DataError(f"There is no model {str(path)!r}.")
    return load(path)


def answers(model: Any, X: Any, labels: pd.Index) -> pd.DataFrame:
    """Predictions, and the probabilities of classes if the model has them."""
    predictions = model.predict(X)
    if hasattr(model, "predict_proba"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say of these rows has been said
            probabilities = model.predict_proba(X)
        return class_table(model.classes_, probabilities, named(labels), predictions)
    return pd.DataFrame({"prediction": np.ravel(predictions)}, index=named(labels))


# -- new samples -----------------------------------------------------------------------------


def new_samples(
    model: Any, requests: list[ViewRequest], index: str | None
) -> tuple[Any, pd.Index]:
    """New samples as the model takes them, and their labels."""
    if not requests:
        raise UsageError("There is no view: pass --view name=file, once for every view.")
    if any(view.kernels for view in requests):
        raise UsageError("Kernels are part of the model: leave them out of --view.")
    training = training_views(model)
    index = index if index is not None else _index_name(training)
    reading = Reading(index, _text_columns(training))
    contents = {view.name: reading.of(view) for view in requests}
    refuse_different_lengths(list(contents.values()), reading.index)
    if training is None:
        return _blocks(model, requests, contents)
    unknown = [name for name in contents if name not in training]
    lost = [name for name in training if name not in contents]
    if unknown:
        raise DataError(f"The model has no view {unknown[0]!r}; it has {listed(training)}.")
    if lost and model.missing == "error":
        raise DataError(
            f"View {lost[0]!r} is not there: pass --view {lost[0]}=file. (A model that was fitted "
            "with --missing mean or conditional predicts without it.)"
        )
    tables = {name: _like(one, training[name], name) for name, one in contents.items()}
    X = Views(tables, join="outer")
    if model.missing == "error":
        _refuse_new_gaps(X)
    return X, pd.Index(X.index, name=reading.index)


def training_views(model: Any) -> Views | None:
    """Rows that the model has kept, by view; None if it was fitted on kernels."""
    source = getattr(getattr(model, "_expansion", None), "source", None)
    if isinstance(source, MatrixSource):
        return None
    if isinstance(source, TableSource) and isinstance(source.table, Views):
        return source.table
    raise DataError(f"This {type(model).__name__} was not fitted on views: load it in Python.")


def _index_name(training: Views | None) -> str | None:
    """The column that training matched samples by."""
    names = (
        []
        if training is None
        else [
            getattr(getattr(table, "index", None), "name", None) for _, table in training.items()
        ]
    )
    return next((str(name) for name in names if name is not None), None)


def _text_columns(training: Views | None) -> set[str]:
    """Columns that were text in training: with fewer rows they might be read as numbers."""
    tables = [] if training is None else [table for _, table in training.items()]
    return {
        column
        for table in tables
        if isinstance(table, pd.DataFrame)
        for column, dtype in table.dtypes.items()
        if pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
    }


def _like(contents: Contents, trained: Any, name: str) -> Any:
    """The columns that training had; others, such as the target, are no part of it."""
    if contents.table is not None:
        return labelled(contents.table, contents.labels)
    if not isinstance(trained, pd.DataFrame):
        raise DataError(f"View {name!r} was no table in training; {str(contents.path)!r} is one.")
    frame, expected = contents.columns, list(trained.columns)
    absent = [column for column in expected if column not in frame.columns]
    if absent:
        raise DataError(
            f"{str(contents.path)!r} has no column {absent[0]!r}, which view {name!r} had in "
            "training."
        )
    if contents.labels is not None:
        frame = frame.set_axis(contents.labels)
    own = {*expected, contents.labels.name if contents.labels is not None else None}
    surplus = [column for column in frame.columns if column not in own]
    if surplus:
        note(f"columns of {str(contents.path)!r} that the model does not use: {listed(surplus)}.")
    return frame[expected]


def _refuse_new_gaps(X: Views) -> None:
    for name in X.names:
        rows = np.flatnonzero(~X.has(name))
        if len(rows):
            raise DataError(
                f"View {name!r} lacks {len(rows)} of {len(X)} samples: "
                f"{listed(X.index[rows])}. The model was fitted without --missing, and needs all "
                "views of every sample."
            )


def _blocks(
    model: Any, requests: list[ViewRequest], contents: dict[str, Contents]
) -> tuple[KernelStack, pd.Index]:
    """Kernels between new and training samples, in the order that the model has them in."""
    if not all_matrices(contents):
        raise DataError("The model was fitted on kernels: pass files of kernels, .npz or .mat.")
    first = next(iter(contents.values()))
    found: dict[str, Any] = {}
    for view in requests:
        for name, kernel in (contents[view.name].matrices or {}).items():
            found[name], found[f"{view.name}:{name}"] = kernel, kernel
    absent = [name for name in model.kernel_names_ if name not in found]
    if absent:
        raise DataError(f"No file has the kernel {absent[0]!r}; the model has it.")
    arrays = {name: found[name] for name in model.kernel_names_}
    labels = first.labels
    stack = KernelStack.from_arrays(
        arrays,
        row_samples=None if labels is None else list(labels),
        gram=False,
        missing=model.missing != "error",
    )
    return stack, pd.RangeIndex(len(stack)) if labels is None else labels


# -- inspect ---------------------------------------------------------------------------------


def inspect(model_file: Path, *, as_json: bool) -> None:
    """Tell what a model is."""
    model = opened(model_file)
    described = description(model, header_of(model_file))
    if as_json:
        # In ASCII: escapes of JSON are the only ones that programs which read it know.
        say(json.dumps(described, indent=2, allow_nan=False, default=str))
        return
    say_table([(name, _shown(value)) for name, value in described.items() if name != "weights"])
    if hasattr(model, "weights_"):
        say_bars("weights of views:", view_shares(model))
        say_bars("weights of kernels:", kernel_shares(model))


def description(model: Any, header: dict[str, Any]) -> dict[str, Any]:
    """What there is to know about a model, as JSON could have it."""
    training = training_views(model)
    certificate = getattr(model, "certificate_", None)
    found = {
        "estimator": type(model).__name__,
        "parameters": {
            name: " ".join(repr(value).split())
            for name, value in model.get_params(deep=False).items()
            if value is not None
        },
        "views": None if training is None else _described(training),
        "index": _index_name(training),
        "classes": [str(name) for name in getattr(model, "classes_", [])] or None,
        "chosen": chosen(model),
        "score": _finite(getattr(model, "left_out_score_", None)),
        "certificate": None if certificate is None else str(certificate),
        "weights": dict(kernel_shares(model)) if hasattr(model, "weights_") else None,
        "versions": {name: value for name, value in header.items() if name != "model"},
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def _described(views: Views) -> dict[str, Any]:
    return {
        name: [str(column) for column in table.columns]
        if isinstance(table, pd.DataFrame)
        else "sequences or others without columns"
        for name, table in views.items()
    }


def _finite(number: Any) -> float | None:
    return None if number is None or not np.isfinite(number) else float(number)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(one)}" for name, one in value.items())
    if isinstance(value, list):
        return f"[{listed(value)}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
