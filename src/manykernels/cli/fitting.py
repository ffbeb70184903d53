"""fit: learn from files, and write the model, a report, left-out predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..inspection.learners import left_out_answers
from ..persistence import save
from ..report.judged import judgement
from ..report.samples import Samples as ReportSamples
from .errors import printable
from .methods import estimator_for
from .outputs import TABLES, Outputs, save_table
from .request import Request
from .samples import Samples, training_samples
from .talking import say, say_bars, with_progress

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
