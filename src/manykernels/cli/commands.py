"""Files that a command writes: all that is wrong with them is told before any work is done, and
they are written once everything is known, each of them whole or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..comparison import compare as compared
from ..datasets import load_digit_views
from ..estimators.inputs import MatrixSource, TableSource
from ..inspection import view_importance
from ..inspection.study import left_out_answers
from ..kernels import KernelStack, Views, kernels_for
from ..persistence import load, save
from ..persistence.models import header_of
from ..report.findings import Samples as ReportSamples
from ..report.findings import judgement
from ..utils.files import replacing
from .console import (
    DataError,
    UsageError,
    listed,
    note,
    printable,
    say,
    say_bars,
    say_table,
    with_progress,
)
from .files import Contents
from .request import Request, ViewRequest, view_of
from .samples import (
    Reading,
    Samples,
    all_matrices,
    estimator_for,
    labelled,
    refuse_different_lengths,
    training_samples,
)


class Outputs:
    """Files to be written.

    Parameters
    ----------
    inputs : files that are read, and must not be written
    force : whether files that are there may be replaced
    """

    def __init__(self, inputs: Iterable[Path], *, force: bool) -> None:
        self._taken = {os.path.realpath(path): "is read by the same command" for path in inputs}
        self._force = force
        self._contents: list[tuple[str, Path, bytes]] = []

    def claim(self, path: Path | None, option: str, suffixes: tuple[str, ...]) -> None:
        """Refuse a path that could not be written later; None is no path."""
        if path is None:
            return
        name = str(path)
        if path.suffix.lower() not in suffixes:
            raise UsageError(f"{option} {name!r} has to end with {' or '.join(suffixes)}.")
        real = os.path.realpath(path)
        if real in self._taken:
            raise UsageError(f"{option} {name!r} {self._taken[real]}.")
        if os.path.islink(real):
            raise DataError(f"{option} {name!r} is a symbolic link that leads to itself.")
        if not path.parent.is_dir():
            raise DataError(f"There is no folder {str(path.parent)!r} for {option} {name!r}.")
        if path.exists() and not path.is_file():
            raise DataError(f"{option} {name!r} is there and is no file.")
        if path.exists() and not self._force:
            raise DataError(f"{name!r} is there already: --force replaces it.")
        self._taken[real] = "is written twice"

    def add(self, what: str, path: Path | None, save: Callable[[Path], Any]) -> None:
        """Let `save` write a file of the same name elsewhere, and keep its contents."""
        if path is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder) / path.name
            save(draft)
            self._contents.append((what, path, draft.read_bytes()))

    def write(self) -> None:
        """Write all of them."""
        for _, path, content in self._contents:
            with replacing(path, len(content)) as file:
                file.write(content)

    def tell(self) -> None:
        """Say what was written where."""
        for what, path, _ in self._contents:
            say(f"{what} written to {path}")


#: Formats of tables that are written.
TABLES = (".csv", ".tsv", ".parquet")


#: Texts that begin so are formulas to spreadsheet programs, unless they are numbers.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def save_table(frame: pd.DataFrame, path: Path, escape_formulas: bool = False) -> None:
    """Write a table with its index, in the format that the name of the file asks for."""
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(path)
        return
    if escape_formulas:
        frame = without_formulas(frame)
    frame.to_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before texts that a spreadsheet program would compute."""
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    escaped = frame.assign(**{name: frame[name].map(_escaped) for name in texts})
    escaped.index = escaped.index.map(_escaped).rename(_escaped(frame.index.name))
    return escaped.rename(columns=_escaped)


def _escaped(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(_FORMULAS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


# -- fit: learn from files, and write the model, a report, left-out predictions -------------------


# Most classes that a line counts one by one.
_MOST_COUNTED = 6


def fit(
    request: Request,
    *,
    output: Path,
    report: Path | None,
    predictions: Path | None,
    escape_formulas: bool,
    force: bool,
) -> None:
    """Learn, tell, write."""
    outputs = Outputs(request.files, force=force)
    outputs.claim(output, "--output", (".skops",))
    outputs.claim(report, "--report", (".html",))
    outputs.claim(predictions, "--predictions", TABLES)
    samples = training_samples(request)
    say_samples(request, samples)
    model = with_progress(estimator_for(request, samples)).fit(samples.X, samples.y)
    outputs.add("model", output, lambda path: save(model, path))
    outputs.add("report", report, lambda path: write_report(model, samples, path))
    outputs.add(
        "predictions",
        predictions,
        lambda path: save_table(left_out(model, samples), path, escape_formulas),
    )
    outputs.write()
    say_fit(model, samples)
    outputs.tell()


def write_report(model: Any, samples: Samples, path: Path) -> None:
    """The report of a fitted model."""
    from ..report import report  # type: ignore[attr-defined]

    report(model, samples.X, samples.y).save(path)


def left_out(model: Any, samples: Samples) -> pd.DataFrame:
    """For every training sample, what a model says that has not seen it."""
    answers = left_out_answers(model)
    assert answers is not None
    rows = np.arange(len(samples.labels)) if answers.rows is None else answers.rows
    labels = named(samples.labels)[rows]
    if answers.log_proba is not None:
        chances = np.exp(answers.log_proba)
        table = class_table(model.classes_, chances, labels, answers.predictions)
    else:
        table = pd.DataFrame({"prediction": np.ravel(answers.predictions)}, index=labels)
    table.insert(0, "target", np.asarray(samples.y)[rows])
    return table


def named(labels: pd.Index) -> pd.Index:
    """Labels of rows, under a name."""
    return labels if labels.name is not None else labels.rename("row")


def class_table(
    classes: Any, probabilities: np.ndarray, labels: pd.Index, predictions: Any = None
) -> pd.DataFrame:
    """The predicted class, by default the most probable one, and all probabilities."""
    best = np.asarray(classes)[probabilities.argmax(axis=1)]
    columns = {"prediction": best if predictions is None else predictions}
    columns |= {f"probability_{name}": probabilities[:, k] for k, name in enumerate(classes)}
    return pd.DataFrame(columns, index=labels)


# -- what is told ----------------------------------------------------------------------------


def say_samples(request: Request, samples: Samples) -> None:
    """How many samples of what."""
    X, y = samples.X, samples.y
    assert y is not None
    say(f"{len(y)} samples, target {request.target!r}: {_target(y, samples.task)}")
    if samples.precomputed:
        say(f"{X.n_kernels} kernels: {', '.join(map(printable, X.names))}")
        return
    for name, table in X.items():
        size = f"{table.shape[1]} columns" if len(table.shape) > 1 else "sequences"
        lacking = int(np.count_nonzero(~X.has(name)))
        say(f"view {name}: {size}" + (f", {lacking} samples lack it" if lacking else ""))


def _target(y: pd.Series, task: str) -> str:
    if task == "regression":
        return f"numbers from {y.min():.4g} to {y.max():.4g} (--task classification: classes)"
    counts = y.value_counts().sort_index()
    if len(counts) > _MOST_COUNTED:
        return f"{len(counts)} classes"
    shown = (f"{n} {printable(str(name))}" for name, n in counts.items())
    return f"{len(counts)} classes ({', '.join(shown)})"


def say_fit(model: Any, samples: Samples) -> None:
    """Score, what was chosen, weights and certificate."""
    judged = judgement(model, ReportSamples.of(model, samples.X, samples.y, False))
    assert isinstance(judged, dict)
    score = judged["scores"][0]
    interval = f"[{score['low']:.3f}, {score['high']:.3f}]"
    say(
        f"{type(model).__name__}: {score['name']} {score['value']:.3f} {interval}, {judged['how']}"
    )
    say(f"chosen: {chosen(model)}")
    say_bars("weights of views:", view_shares(model))
    say(str(model.certificate_))


def chosen(model: Any) -> str:
    """The parameters that a search has chosen."""
    names = {"p_": "p", "reg_": "λ", "C_": "C", "epsilon_": "ε"}
    found = {shown: getattr(model, name) for name, shown in names.items() if hasattr(model, name)}
    return ", ".join(f"{name} = {value:.4g}" for name, value in found.items())


def kernel_shares(model: Any) -> list[tuple[str, float]]:
    """Share of every kernel in the sum of the weights, in the mean of several weight vectors."""
    weights = np.atleast_2d(model.weights_).mean(axis=0)
    return list(zip(model.kernel_names_, (weights / (weights.sum() or 1.0)).tolist(), strict=True))


def view_shares(model: Any) -> list[tuple[str, float]]:
    """The same for views."""
    shares: dict[str, float] = {}
    for (name, share), view in zip(kernel_shares(model), views_of_kernels(model), strict=True):
        shares[view or name] = shares.get(view or name, 0.0) + share
    return list(shares.items())


def views_of_kernels(model: Any) -> Sequence[str | None]:
    """The view of each kernel; None if it is of no single one."""
    union = getattr(model, "union_", None)
    if union is None:
        return [None] * len(model.kernel_names_)
    return [getattr(kernel, "view", None) for _, kernel in union.kernels_]


# -- predict and inspect: what a model that was saved says, and what it is ------------------------


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
    source = getattr(getattr(model, "_predictor", None), "source", None)
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


# -- importance and compare: which views matter, and what combining them gains --------------------


#: What `compare` can compare: learnt weights, by either machine; the plain sum; single views.
METHODS = ("fisher", "svm", "sum", "single")


def importance(request: Request, *, resamples: int, output: Path | None, force: bool) -> None:
    """Tell what each view is worth."""
    outputs = Outputs(request.files, force=force)
    outputs.claim(output, "--output", TABLES)
    samples = training_samples(request)
    say_samples(request, samples)
    found = view_importance(
        estimator_for(request, samples), samples.X, samples.y, n_resamples=resamples
    )
    outputs.add("table", output, lambda path: save_table(found.to_frame(), path))
    outputs.write()
    say(f"\n{found}")
    outputs.tell()


def compare(
    request: Request,
    *,
    methods: str,
    folds: int,
    folder: Path | None,
    output: Path | None,
    force: bool,
) -> None:
    """Tell how good methods are on the same splits."""
    outputs = Outputs(request.files, force=force)
    outputs.claim(output, "--output", TABLES)
    names = [name.strip() for name in methods.split(",")]
    for name in names:
        if name not in METHODS:
            raise UsageError(f"There is no method {name!r}; there are {', '.join(METHODS)}.")
    samples = training_samples(request)
    say_samples(request, samples)
    found = compared(
        estimators(request, samples, names), samples.X, samples.y, cv=folds, path=folder
    )
    outputs.add("table", output, lambda path: save_table(found.to_frame(), path))
    outputs.write()
    say(f"\n{found}")
    outputs.tell()


def estimators(request: Request, samples: Samples, names: list[str]) -> dict[str, Any]:
    """Estimators by the names of methods."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(names):
        if name == "single":
            found |= _single(request, samples)
        elif name == "sum":
            found[name] = estimator_for(replace(request, p=(np.inf,)), samples)
        else:
            found[name] = estimator_for(request.by(name), samples)
    return found


def _single(request: Request, samples: Samples) -> dict[str, Any]:
    """Each view for itself, if all samples have it."""
    if samples.precomputed:
        note("kernels are not compared one by one: single views need tables.")
        return {}
    model = estimator_for(request, samples)
    pairs = kernels_for(samples.X, model.kernels).kernels
    found = {}
    for view in samples.X.names:
        if not samples.X.has(view).all():
            note(f"view {view!r} is not compared alone, since some samples lack it.")
            continue
        own = [pair for pair in pairs if getattr(pair[1], "view", None) == view]
        found[f"only {view}"] = estimator_for(request, samples).set_params(kernels=own)
    return found


# -- demo: handwritten digits in views, as files, with a model, its report and what to try next ---


# Images to learn from and to predict, and views of them: enough to see which view matters, and
# little enough for some seconds.
_TRAINING, _NEW = 120, 30
_VIEWS = ("rows", "columns", "noise1")
# Images that lack the second view, so that there are gaps to fill.
_GAPS = 15


def demo(folder: Path, *, force: bool) -> None:
    """Write files, fit a model on them, and say by which command."""
    if folder.exists() and not force:
        raise DataError(
            f"{str(folder)!r} is there already: --force replaces what demo wrote there."
        )
    if folder.exists() and not (folder / "labels.csv").is_file():
        raise DataError(f"{str(folder)!r} was not written by demo, and is left as it is.")
    parent = Path(os.path.realpath(folder)).parent
    if not parent.is_dir():
        raise DataError(f"There is no folder {str(parent)!r} for {str(folder)!r}.")
    draft = Path(tempfile.mkdtemp(prefix=".manykernels-", dir=parent))
    try:
        _write_tables(draft)
        _fit(draft, folder)
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    say(f"\nAll of it is in {folder}: tables, model.skops, report.html. The same by hand:\n")
    say(f"  cd {folder}")
    for line in COMMANDS:
        say(f"  {line}")


#: What does the same by hand, in the folder.
COMMANDS = (
    "manykernels fit --spec digits.toml --output again.skops",
    "manykernels predict again.skops --view rows=new_rows.csv --view columns=new_columns.csv "
    "--output predictions.csv",
)


def _write_tables(folder: Path) -> None:
    """Views of digits as CSV, the digits beside them, and a specification."""
    views, digits = load_digit_views(noise=1)
    few = np.flatnonzero(digits < 4)[: _TRAINING + _NEW]
    labels = pd.Index([f"image{number:03d}" for number in range(len(few))], name="id")
    known, new = slice(0, _TRAINING), slice(_TRAINING, None)
    names = np.array(["zero", "one", "two", "three"])
    for name in _VIEWS:
        table = pd.DataFrame(np.round(views[name][few], 3), index=labels).add_prefix(f"{name}_")
        without = table.index[:_GAPS] if name == "columns" else []
        table[known].drop(index=without).to_csv(folder / f"{name}.csv")
        table[new].to_csv(folder / f"new_{name}.csv")
    targets = pd.Series(names[digits[few]], index=labels, name="digit")
    targets[known].to_csv(folder / "labels.csv")
    views_of_spec = "".join(f'{name} = "{name}.csv"\n' for name in _VIEWS)
    (folder / "digits.toml").write_text(
        f'index = "id"\ntarget = "labels.csv:digit"\nmissing = "mean"\n\n[views]\n{views_of_spec}',
        encoding="utf-8",
    )


def _fit(draft: Path, folder: Path) -> None:
    request = Request.of([], draft / "digits.toml")
    samples = training_samples(request)
    say_samples(request, samples)
    model = with_progress(estimator_for(request, samples)).fit(samples.X, samples.y)
    say_fit(model, samples)
    save(model, draft / "model.skops")
    write_report(model, samples, draft / "report.html")
