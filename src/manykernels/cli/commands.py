"""The work of each command but ``predict``."""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import d2_tweedie_score, make_scorer

from ..comparison import compare as compared
from ..comparison.baselines import BASELINES, baselines_for
from ..datasets import load_digit_views
from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator
from ..inspection import column_importance, view_importance
from ..inspection.study import left_out_answers
from ..kernels import Views, kernels_for
from ..persistence import save
from ..persistence.models import header_of
from ..reporting.findings import Samples as ReportSamples
from ..reporting.findings import counted
from ..reporting.judgement import judgement
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
from .outputs import TABLES, Outputs, class_table, named, save_table
from .prediction import index_name, opened, training_views
from .request import Request
from .samples import (
    Samples,
    estimator_for,
    machine_for,
    training_samples,
)

# -- fit ------------------------------------------------------------------------------------------


# Largest number of classes whose counts are printed.
_MOST_COUNTED = 6
# Largest number of targets that are described.
_MOST_TARGETS = 10
# Largest number of sets or kernels whose weights are printed.
_MOST_BARS = 20


def fit(
    request: Request,
    *,
    output: Path,
    report: Path | None,
    predictions: Path | None,
    escape_formulas: bool,
    force: bool,
) -> None:
    """Fit a model; print its score; write the model, a report and held-out predictions."""
    outputs = Outputs(request.files, force=force)
    outputs.claim(output, "--output", (".skops",))
    outputs.claim(report, "--report", (".html",))
    outputs.claim(predictions, "--predictions", TABLES)
    if len(request.scoring) > 1:
        raise UsageError(f"--scoring {','.join(request.scoring)}: fit chooses by one score.")
    samples = training_samples(request)
    say_samples(request, samples)
    scoring = next(iter(request.scoring), None)
    model = with_progress(estimator_for(request, samples, scoring))
    model.fit(samples.X, samples.y, **samples.about)
    notes = {"samples": replace(request, columns=samples.columns).notes(output.parent)}
    outputs.add("model", output, lambda path: save(model, path, notes=notes))
    outputs.add("report", report, lambda path: write_report(model, samples, path))
    outputs.add(
        "predictions",
        predictions,
        lambda path: save_table(left_out(model, samples), path, escape_formulas),
    )
    outputs.write()
    say_fit(model, samples, request.sets, scoring)
    outputs.report()


def write_report(model: KernelEstimator, samples: Samples, path: Path) -> None:
    """Write the report of a fitted model."""
    from ..reporting import report

    report(model, samples.X, samples.y, **samples.about).save(path)


def left_out(model: KernelEstimator, samples: Samples) -> pd.DataFrame:
    """Return held-out predictions of the training samples."""
    answers = left_out_answers(model)
    assert answers is not None
    rows = np.arange(len(samples.labels)) if answers.rows is None else answers.rows
    labels = named(samples.labels)[rows]
    if samples.names:
        predictions = pd.DataFrame(answers.predictions, labels, columns=samples.names)
        targets = samples.y.iloc[rows].set_axis(labels)
        return pd.concat(
            [targets.add_prefix("target_"), predictions.add_prefix("prediction_")], axis=1
        )
    if answers.log_proba is not None:
        probabilities = np.exp(answers.log_proba)
        table = class_table(model.classes_, probabilities, labels, answers.predictions)
    else:
        name = "risk" if isinstance(model, SurvivalEstimator) else "prediction"
        table = pd.DataFrame({name: np.ravel(answers.predictions)}, index=labels)
    if isinstance(model, SurvivalEstimator):
        return pd.concat([samples.y.iloc[rows].set_axis(labels), table], axis=1)
    table.insert(0, "target", np.asarray(samples.y)[rows])
    return table


# -- printed summaries -----------------------------------------------------------------------


def say_samples(request: Request, samples: Samples) -> None:
    """Print the number of samples, the target and the views."""
    X, y = samples.X, samples.y
    names = {column.role: column.name for column in request.columns}
    if samples.task == "survival":
        ends = f"from {y['time'].min():.4g} to {y['time'].max():.4g}"
        say(
            f"{len(y)} samples, {y['event'].sum()} with the event {names['event']!r}, times "
            f"{names['time']!r} {ends}"
        )
    elif samples.names:
        say(f"{len(y)} samples, {len(samples.names)} targets")
        for name in samples.names[:_MOST_TARGETS]:
            if samples.task == "classification":
                say(f"target {name!r}: a label, that {y[name].sum()} samples have")
            else:
                say(f"target {name!r}: {_target(y[name], request, samples.task)}")
        if len(samples.names) > _MOST_TARGETS:
            say(f"and {len(samples.names) - _MOST_TARGETS} more")
    else:
        say(f"{len(y)} samples, target {str(y.name)!r}: {_target(y, request, samples.task)}")
    for role in ("groups", "strata"):
        if role in samples.about:
            say(f"{samples.about[role].nunique()} {role} by {names[role]!r}")
    if samples.precomputed:
        say(f"{counted(X.n_kernels, 'kernel')}: {', '.join(map(printable, X.names))}")
        return
    for name, table in X.items():
        size = counted(table.shape[1], "column") if len(table.shape) > 1 else "sequences"
        lacking = int(np.count_nonzero(~X.has(name)))
        say(f"view {name}: {size}" + (f", {lacking} samples lack it" if lacking else ""))


def _target(y: pd.Series, request: Request, task: str) -> str:
    """Describe a target, and how to change what it is taken for if that was guessed."""
    guessed = request.task == "auto" and pd.api.types.is_numeric_dtype(y)
    if task == "regression":
        whole = bool((y == np.floor(y)).all())
        advice = " (pass --task classification if they are classes)" if guessed and whole else ""
        return f"numbers from {y.min():.4g} to {y.max():.4g}{advice}"
    if task == "counts":
        return f"counts from {y.min():g} to {y.max():g}"
    counts = y.value_counts().sort_index()
    advice = "; pass --task regression to learn numbers" if guessed and len(counts) > 2 else ""
    if len(counts) > _MOST_COUNTED:
        return f"{len(counts)} classes{advice}"
    shown = (f"{n} {printable(str(name))}" for name, n in counts.items())
    return f"{len(counts)} classes ({', '.join(shown)}){advice}"


def say_fit(
    model: KernelEstimator,
    samples: Samples,
    sets: str | None = None,
    scoring: str | None = None,
) -> None:
    """Print the score, the chosen parameters, the weights and the certificate.

    `sets` is the view with a kernel for each of several sets of columns, and `scoring` the score
    that was asked for.
    """
    known = ReportSamples.read(model, samples.X, samples.y, **samples.about, new=False)
    judged = judgement(model, known)
    assert isinstance(judged, dict)
    score = judged["scores"][0]
    interval = f" [{score['low']:.3f}, {score['high']:.3f}]" if "low" in score else ""
    say(f"{type(model).__name__}: {score['name']} {score['value']:.3f}{interval}, {judged['how']}")
    by = ""
    if scoring is not None:
        by = f", by {scoring}, which is {np.mean(model.left_out_score_):.3f} for held-out samples"
    say(f"chosen: {chosen(model)}{by}")
    say_bars("weights of views:", view_shares(model))
    if sets is not None:
        of_sets = [pair for pair in kernel_shares(model) if pair[0].startswith(f"{sets}:")]
        say_bars("weights of sets:", largest(of_sets))
    if np.isinf(getattr(model, "p_", 0.0)).all() and len(model.kernel_names_) > 1:
        say("p = inf: all kernels have the same weight, and none is learnt.")
    say(str(model.certificate_))


def chosen(model: KernelEstimator) -> str:
    """Return the parameters chosen by a search, as text."""
    symbols = {"p_": "p", "reg_": "λ", "C_": "C", "epsilon_": "ε"}
    values = {
        symbol: " and ".join(
            "by evidence" if np.isnan(value) else f"{value:.4g}"
            for value in np.atleast_1d(getattr(model, name))
        )
        for name, symbol in symbols.items()
        if hasattr(model, name)
    }
    if hasattr(model, "kernel_set_"):
        values = {"kernel set": printable(model.kernel_set_), **values}
    return ", ".join(f"{symbol} = {value}" for symbol, value in values.items())


def kernel_shares(model: KernelEstimator) -> list[tuple[str, float]]:
    """Return the share of each kernel in the weights, averaged over several weight vectors."""
    weights = np.atleast_2d(model.weights_).mean(axis=0)
    return list(zip(model.kernel_names_, (weights / (weights.sum() or 1.0)).tolist(), strict=True))


def largest(shares: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return shares, the largest first if there are many, and then the sum of the others."""
    if len(shares) <= _MOST_BARS:
        return shares
    ordered = sorted(shares, key=lambda pair: -pair[1])
    others = ordered[_MOST_BARS:]
    total = sum(share for _, share in others)
    return [*ordered[:_MOST_BARS], (f"{len(others)} others, their sum", total)]


def view_shares(model: KernelEstimator) -> list[tuple[str, float]]:
    """Return the share of each view in the weights."""
    shares: dict[str, float] = {}
    for (name, share), view in zip(kernel_shares(model), views_of_kernels(model), strict=True):
        shares[view or name] = shares.get(view or name, 0.0) + share
    return list(shares.items())


def views_of_kernels(model: KernelEstimator) -> Sequence[str | None]:
    """Return the view of each kernel; None for a kernel of several views."""
    union = getattr(model, "union_", None)
    if union is None:
        return [None] * len(model.kernel_names_)
    return [getattr(kernel, "view", None) for _, kernel in union.kernels_]


# -- inspect ---------------------------------------------------------------------------------


def inspect(model_file: Path, *, as_json: bool) -> None:
    """Print the description of a model."""
    model = opened(model_file)
    described = description(model, header_of(model_file))
    if as_json:
        # ASCII: `say` would escape other characters in a way that JSON does not know.
        say(json.dumps(described, indent=2, allow_nan=False, default=str))
        return
    say_table([(name, _shown(value)) for name, value in described.items() if name != "weights"])
    if hasattr(model, "weights_"):
        say_bars("weights of views:", view_shares(model))
        say_bars("weights of kernels:", largest(kernel_shares(model)))


def description(model: KernelEstimator, header: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a model as a dict that JSON can represent."""
    training = training_views(model)
    certificate = getattr(model, "certificate_", None)
    score = getattr(model, "left_out_score_", np.nan)
    entries = {
        "estimator": type(model).__name__,
        "parameters": {
            name: " ".join(repr(value).split())
            for name, value in model.get_params(deep=False).items()
            if value is not None
        },
        "views": None if training is None else _described(training),
        "index": index_name(training),
        "classes": [str(name) for name in getattr(model, "classes_", [])] or None,
        "chosen": chosen(model),
        "times": None if not isinstance(model, SurvivalEstimator) else _ends(model.unique_times_),
        "score": float(score) if np.isfinite(score) else None,
        "scoring": score_name(model) if np.isfinite(score) else None,
        "certificate": None if certificate is None else str(certificate),
        "weights": dict(kernel_shares(model)) if hasattr(model, "weights_") else None,
        "samples": (header.get("notes") or {}).get("samples"),
        "versions": {
            name: value for name, value in header.items() if name not in ("model", "notes")
        },
    }
    return {name: value for name, value in entries.items() if value not in (None, "")}


def score_name(model: KernelEstimator) -> str | None:
    """Return the name of the score of a search; None if it has no name."""
    scoring = getattr(model, "scoring", None)
    return scoring if isinstance(scoring, str) else None


def _ends(times: np.ndarray) -> str:
    return f"{times.min():.4g} to {times.max():.4g}"


def _described(views: Views) -> dict[str, Any]:
    return {
        name: [str(column) for column in table.columns]
        if isinstance(table, pd.DataFrame)
        else "sequences, or other data without columns"
        for name, table in views.items()
    }


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return f"[{listed(value)}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# -- importance and compare -----------------------------------------------------------------------


#: Methods of `compare`: learnt weights with some machine, equal weights, single views, and
#: methods of scikit-learn.
METHODS = ("fisher", "svm", "logistic", "poisson", "cox", "sum", "single", *BASELINES)


def importance(
    request: Request,
    model_file: Path | None,
    *,
    columns: bool,
    resamples: int,
    output: Path | None,
    force: bool,
) -> None:
    """Print the importance of each view, or of each column, for a model or for a request."""
    inputs = request.files if model_file is None else [model_file, *request.files]
    outputs = Outputs(inputs, force=force)
    outputs.claim(output, "--output", TABLES)
    if len(request.scoring) > 1:
        raise UsageError(
            f"--scoring {','.join(request.scoring)}: importance is measured by one score."
        )
    model = None if model_file is None else opened(model_file)
    samples = training_samples(request)
    say_samples(request, samples)
    options: dict[str, Any] = {**samples.about, "n_resamples": resamples}
    options["scoring"] = next(iter(request.scoring), None)
    estimator = estimator_for(request, samples) if model is None else model
    if request.sets_file is not None and not columns:
        union = kernels_for(samples.X, estimator.kernels, relevance=estimator._learns_relevance)
        options["views"] = {name: [name] for name in dict(union.kernels)}
    if columns and (more := sorted({"entry", "strata"} & options.keys())):
        raise UsageError(f"--columns does not go with --{more[0]}: leave one of them out.")
    measure = column_importance if columns else view_importance
    result = measure(estimator, samples.X, samples.y, **options)
    outputs.add("table", output, lambda path: save_table(result.to_frame(), path))
    outputs.write()
    say(f"\n{result}")
    outputs.report()


def compare(
    request: Request,
    *,
    methods: str | None,
    folds: int,
    folder: Path | None,
    output: Path | None,
    force: bool,
) -> None:
    """Print the scores of methods on the same splits."""
    outputs = Outputs(request.files, force=force)
    outputs.claim(output, "--output", TABLES)
    names = [] if methods is None else [name.strip() for name in methods.split(",")]
    for name in names:
        if name not in METHODS:
            raise UsageError(f"There is no method {name!r}; there are {', '.join(METHODS)}.")
    # Equal weights and single views are those of the first machine.
    machines = [name for name in names if name not in ("sum", "single", *BASELINES)]
    base = request.by(machines[0]) if machines else request
    samples = training_samples(base)
    say_samples(base, samples)
    # Of survival times, scikit-learn has no models.
    baselines = BASELINES if samples.task != "survival" else ()
    names = names or [machine_for(base, samples.task), "sum", "single", *baselines]
    if more := sorted({"entry", "strata"} & samples.about.keys()):
        raise UsageError(f"compare does not know --{more[0]}: leave it out.")
    options: dict[str, Any] = {**samples.about, "cv": folds, "path": folder}
    if request.scoring:
        options["scoring"] = list(request.scoring)
    elif samples.task == "counts":
        options["scoring"] = {"D²": make_scorer(d2_tweedie_score, power=1)}
    methods_by_name = estimators(request, base, samples, names)
    result = compared(methods_by_name, samples.X, samples.y, **options)
    outputs.add("table", output, lambda path: save_table(result.to_frame(), path))
    outputs.write()
    say(f"\n{result}")
    outputs.report()


def estimators(
    request: Request, base: Request, samples: Samples, names: list[str]
) -> dict[str, Any]:
    """Return the estimators of the methods; `base` is for equal weights and single views."""
    methods: dict[str, Any] = {}
    others = _baselines(samples) if set(names) & set(BASELINES) else {}
    for name in dict.fromkeys(names):
        if name == "single":
            methods |= _single(base, samples)
        elif name in BASELINES:
            methods |= {name: others[name]} if name in others else {}
        elif name == "sum":
            methods[name] = estimator_for(replace(base, p=(np.inf,)), samples)
        else:
            methods[name] = estimator_for(request.by(name), samples)
    return methods


def _baselines(samples: Samples) -> dict[str, Any]:
    """Return methods of scikit-learn that can learn from the samples."""
    if samples.task == "survival":
        raise UsageError(f"There is no {', '.join(BASELINES)} for survival times.")
    classes, counts = samples.task == "classification", samples.task == "counts"
    y = np.asarray(samples.y)
    methods = baselines_for(samples.X, y, classes=classes, counts=counts)
    if absent := [name for name in BASELINES if name not in methods]:
        note(f"{' and '.join(absent)} need tables of columns and are not compared.")
    return methods


def _single(request: Request, samples: Samples) -> dict[str, Any]:
    """Return an estimator for each view that all samples have."""
    if samples.precomputed:
        note("precomputed kernels are not compared one by one: single views need tables.")
        return {}
    model = estimator_for(request, samples)
    pairs = kernels_for(samples.X, model.kernels, relevance=model._learns_relevance).kernels
    methods = {}
    for view in samples.X.names:
        if not samples.X.has(view).all():
            note(f"view {view!r} is not compared alone, since some samples lack it.")
            continue
        kernels = [pair for pair in pairs if getattr(pair[1], "view", None) == view]
        methods[f"only {view}"] = estimator_for(request, samples).set_params(kernels=kernels)
    return methods


# -- demo -----------------------------------------------------------------------------------------


# Numbers of training and new images, and their views: enough to see which view matters, and few
# enough to take some seconds.
_TRAINING, _NEW = 120, 30
_VIEWS = ("rows", "columns", "noise1")
# Number of images that lack the second view.
_GAPS = 15


def demo(folder: Path, *, force: bool) -> None:
    """Write files, fit a model to them, and print the commands that do the same."""
    if folder.exists() and not force:
        raise DataError(
            f"{str(folder)!r} exists already. Pass --force to replace the files that demo wrote."
        )
    if folder.exists() and not (folder / "labels.csv").is_file():
        raise DataError(
            f"{str(folder)!r} was not written by demo and is not replaced. Pass another --output."
        )
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
    say(f"\n{folder} has the tables, model.skops and report.html. These commands do the same:\n")
    say(f"  cd {folder}")
    for line in COMMANDS:
        say(f"  {line}")


#: Commands that do the same, in the folder.
COMMANDS = (
    "manykernels fit --spec digits.toml --output again.skops",
    "manykernels predict again.skops --view rows=new_rows.csv --view columns=new_columns.csv "
    "--output predictions.csv",
)


def _write_tables(folder: Path) -> None:
    """Write views of digits and their labels as CSV, and a specification."""
    views, digits = load_digit_views(noise=1)
    few = np.flatnonzero(digits < 4)[: _TRAINING + _NEW]
    labels = pd.Index([f"image{number:03d}" for number in range(len(few))], name="id")
    known, new = slice(0, _TRAINING), slice(_TRAINING, None)
    names = np.array(["zero", "one", "two", "three"])
    for name in _VIEWS:
        table = pd.DataFrame(np.round(views[name][few], 3), index=labels).add_prefix(f"{name}_")
        gaps = table.index[:_GAPS] if name == "columns" else []
        table[known].drop(index=gaps).to_csv(folder / f"{name}.csv")
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
    model = with_progress(estimator_for(request, samples))
    model.fit(samples.X, samples.y, **samples.about)
    say_fit(model, samples)
    save(model, draft / "model.skops", notes={"samples": request.notes(draft)})
    write_report(model, samples, draft / "report.html")
