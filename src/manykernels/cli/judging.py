"""importance and compare: which views matter, and what combining them gains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..comparison import compare as compared
from ..inspection import view_importance
from ..kernels import kernels_for
from .errors import UsageError
from .fitting import say_samples
from .methods import estimator_for
from .outputs import TABLES, Outputs, save_table
from .request import Request
from .samples import Samples, training_samples
from .talking import note, say

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
