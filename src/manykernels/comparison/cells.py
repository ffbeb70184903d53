"""One method on one split: fitted, judged, and what is to be known of the fitted model."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from .._scoring import lacking_class, with_classes
from .._sklearn import MultimetricScorer, safe_split
from ..metrics.comparison import Split
from ..metrics.weights import in_use

# What cross_validate calls a score without a name.
_UNNAMED = "score"


@dataclass(frozen=True)
class Cell:
    """What one method did on one split.

    Attributes
    ----------
    scores : dict of str to float
        By the name of the scoring; empty if the method failed.
    unscored : dict of str to str
        Scores that could not be computed, and why.
    fit_time, predict_time : float
        Seconds; that of predictions includes their scoring.
    n_kernels, n_used : int or None
        Kernels, and those that any vector of weights uses.
    n_support : int or None
        Support vectors.
    rel_gap : float or None
        Relative duality gap, where there is a certificate.
    converged : bool or None
        Whether the certificate says so.
    failure : str or None
        What was raised.
    """

    scores: dict[str, float] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)
    fit_time: float = np.nan
    predict_time: float = np.nan
    n_kernels: int | None = None
    n_used: int | None = None
    n_support: int | None = None
    rel_gap: float | None = None
    converged: bool | None = None
    failure: str | None = None

    @classmethod
    def failed(cls, error: Exception) -> Cell:
        """Of a method that has raised `error`."""
        return cls(failure=f"{type(error).__name__}: {error}")

    @property
    def trouble(self) -> str | None:
        """What failed, or None."""
        return _listed(self.unscored) or None if self.failure is None else self.failure


def measured(estimator: Any, X: Any, y: Any, split: Split, scoring: Any, *, strict: bool) -> Cell:
    """Fit a copy of the estimator to the training rows, and judge it by the test rows.

    What the fit raises is passed on, and what all scores raise; if `strict`, what any raises. A
    fit that was interrupted, and has kept its best model so far, counts as interrupted.
    """
    train, test = split
    model = clone(estimator)
    X_train, y_train = safe_split(model, X, y, train)
    X_test, y_test = safe_split(model, X, y, test, train)
    begun = perf_counter()
    model.fit(X_train, y_train)
    fitted = perf_counter()
    learnt = _learnt_part(model)
    if getattr(learnt, "finished_", True) is False:
        raise KeyboardInterrupt
    scores, unscored = _judged(model, X_test, y_test, scoring, strict=strict)
    return Cell(
        scores,
        unscored,
        fit_time=fitted - begun,
        predict_time=perf_counter() - fitted,
        **_weights(learnt),
        **_support(learnt),
        **_certificate(learnt),
    )


def _judged(
    model: Any, X: Any, y: Any, scoring: Any, *, strict: bool
) -> tuple[dict[str, float], dict[str, str]]:
    """Scores by name, and what is wrong with those that are not there."""
    unscored: dict[str, str] = {}
    classes, lacking = getattr(model, "classes_", None), ""
    if isinstance(classes, np.ndarray) and np.ndim(y) == 1:
        lacking = lacking_class(classes, np.asarray(y))
        scoring = _knowing(scoring, classes)
    if callable(scoring):
        found = scoring(model, X, y)
        found = found if isinstance(found, dict) else {name_of(scoring): found}
    else:
        try:
            # Predictions are computed once for all scorers.
            found = MultimetricScorer(scorers=scoring)(model, X, y)
        except Exception:
            if strict or len(scoring) == 1:
                raise
            found = _each(model, X, y, scoring, unscored)
    scores = {}
    for name, score in found.items():
        if not isinstance(score, Real):
            raise TypeError(f"The scoring {name!r} must return a number, got {score!r}.")
        if np.isfinite(float(score)):
            scores[name] = float(score)
        else:
            unscored[name] = f"it is {float(score)}"
            if lacking:
                unscored[name] += f", perhaps since the test part {lacking}"
    if not scores:
        raise ValueError(_listed(unscored))
    return scores, unscored


def _knowing(scoring: Any, classes: np.ndarray) -> Any:
    """The same scorers, which know all classes of the model."""
    if not isinstance(scoring, dict):
        return with_classes(scoring, classes)
    return {name: with_classes(scorer, classes) for name, scorer in scoring.items()}


def _each(
    model: Any, X: Any, y: Any, scorers: dict[str, Any], unscored: dict[str, str]
) -> dict[str, Any]:
    """What the scorers return that do not raise; the others are entered in `unscored`."""
    found = {}
    for name, scorer in scorers.items():
        try:
            found[name] = scorer(model, X, y)
        except Exception as error:
            unscored[name] = f"{type(error).__name__}: {error}"
    return found


def _listed(unscored: dict[str, str]) -> str:
    return "; ".join(f"no {name}: {message}" for name, message in unscored.items())


def name_of(scoring: Any) -> str:
    """What a function that scores is called: by its own name, or as in scikit-learn."""
    return str(getattr(scoring, "__name__", _UNNAMED))


def _learnt_part(model: Any) -> Any:
    """The model behind pipelines and searches."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model


def _weights(learnt: Any) -> dict[str, Any]:
    names, weights = (getattr(learnt, name, None) for name in ("kernel_names_", "weights_"))
    if names is None or weights is None or np.shape(weights)[-1] != len(names):
        return {}
    used = in_use(np.asarray(weights, dtype=np.float64)).reshape(-1, len(names)).any(axis=0)
    return {"n_kernels": len(names), "n_used": int(np.count_nonzero(used))}


def _support(learnt: Any) -> dict[str, Any]:
    support = getattr(learnt, "support_", None)
    # Feature selectors of scikit-learn have a mask of this name.
    if not hasattr(learnt, "dual_coef_") or not isinstance(support, np.ndarray):
        return {}
    return {"n_support": len(support)}


def _certificate(learnt: Any) -> dict[str, Any]:
    certificate = getattr(learnt, "certificate_", None)
    if certificate is None or not hasattr(certificate, "rel_gap"):
        return {}
    return {"rel_gap": float(certificate.rel_gap), "converged": bool(certificate.converged)}
