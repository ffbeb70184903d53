"""Estimators as they are asked here: on precomputed kernels, with or without a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from .. import estimators
from ..estimators._base import KernelEstimator
from ..estimators._gated import GateParameters
from ..estimators._outputs import Probabilities, chosen_classes
from ..solvers import as_solver
from ..solvers.base import DEFAULT_SOLVER
from .scoring import Scoring

# How the parameters of regularisation change where all kernels are multiplied by n^(−1/p): the
# same machines come from the kernels as they are with reg · n^(1/p), or with C · n^(−1/p).
_SCALED = {"reg": 1.0, "C": -1.0}
# What a search has chosen, where the list to choose from has the name of the parameter itself.
_CHOSEN = {"regions": "n_regions_"}


def checked_learner(estimator: Any) -> Any:
    """A copy of the estimator for precomputed kernels, if it learns a weight per kernel."""
    able = (
        isinstance(estimator, KernelEstimator)
        # A gate weights kernels differently at every sample.
        and not isinstance(estimator, GateParameters)
        and (is_classifier(estimator) or is_regressor(estimator))
        and {"p", "ps"} & estimator.get_params(deep=False).keys()
    )
    if not able:
        got = f"the class {estimator.__name__}" if isinstance(estimator, type) else estimator
        raise ValueError(
            "view_importance takes classifiers and regressors of this package that learn one "
            f"weight per kernel at a norm p, such as MKFDA() or MKSVR(); got {got}."
        )
    return clone(estimator).set_params(kernels="precomputed", verbose=False)


def searches(learner: Any) -> bool:
    """Whether the estimator chooses its parameters by cross-validation."""
    return "ps" in learner.get_params(deep=False)


def at_chosen_norm(learner: Any, fitted: Any) -> Any:
    """The estimator with p as it was chosen by a fit; a search still chooses the rest."""
    return clone(learner).set_params(ps=[fitted.p_]) if searches(learner) else learner


def _kind_without_search(learner: Any) -> type:
    """The class of the estimator, or that of the same name without CV."""
    if not searches(learner):
        return type(learner)
    kind: type = getattr(estimators, type(learner).__name__.removesuffix("CV"))
    return kind


def without_search(learner: Any, fitted: Any) -> Any:
    """The estimator, or that of the same name without CV at what the search has chosen."""
    if not searches(learner):
        return learner
    plain = _kind_without_search(learner)()
    given, own = learner.get_params(deep=False), plain.get_params(deep=False)
    chosen = {
        name: getattr(fitted, f"{name}_")
        for name in own
        if name not in given and hasattr(fitted, f"{name}_")
    }
    given = {name: value for name, value in given.items() if name not in _CHOSEN}
    chosen |= {name: getattr(fitted, _CHOSEN[name]) for name in own.keys() & _CHOSEN.keys()}
    if any(np.ndim(value) for value in chosen.values()):
        raise ValueError(
            f"{type(learner).__name__} chose parameters for each of several targets: ask for the "
            "importance of one target at a time, or let the targets share their weights."
        )
    return plain.set_params(**{name: given[name] for name in own if name in given}, **chosen)


def refuse_without_probabilities(learner: Any, scoring: Scoring) -> None:
    """Raise if the score needs probabilities that the estimator does not have."""
    kind = _kind_without_search(learner)
    if scoring.needs_probabilities and not issubclass(kind, Probabilities):
        raise ValueError(
            f"scoring={scoring.name!r} needs probabilities, which {kind.__name__} does not have: "
            'use scoring="accuracy", or MKFDA.'
        )


def of_plain_sum(learner: Any, n_kernels: int) -> Any:
    """The estimator at p = ∞, whose kernels all have the weight 1; None if it is that already.

    A search chooses its regularisation again. Elsewhere the sum is given the same budget as the
    weights: ``n^(−1/p)`` for each of n kernels, by way of the regularisation.
    """
    if searches(learner):
        return clone(learner).set_params(ps=[np.inf])
    params = learner.get_params(deep=False)
    if np.isinf(params["p"]):
        return None
    scaled = {
        name: params[name] * n_kernels ** (power / params["p"])
        for name, power in _SCALED.items()
        if not isinstance(params.get(name, ""), str)
    }
    if "solver" in params:
        scaled["solver"] = DEFAULT_SOLVER
    return clone(learner).set_params(p=np.inf, **scaled)


def leaves_out_honestly(fitted: Any) -> bool:
    """Whether a fit tells what it would have answered about each sample without it.

    A search does by its folds. In closed form it does not if it has seen the sample in another
    way: when axes for denoising were found, λ was learnt with the weights, or weights are held.
    """
    if hasattr(fitted, "test_fold_") and fitted.n_splits_ > 1:
        return True
    left_out = hasattr(fitted, "left_out_log_proba_") or hasattr(fitted, "left_out_predictions_")
    return (
        left_out
        and getattr(fitted, "denoise", None) is None
        and getattr(fitted, "reg", None) != "joint"
        and not as_solver(getattr(fitted, "solver", DEFAULT_SOLVER)).by_columns
    )


@dataclass(frozen=True)
class LeftOutAnswers:
    """What a fit says of its training rows by models that have not seen them.

    Attributes
    ----------
    predictions : ndarray of shape (n_rows,) or (n_rows, n_targets)
    log_proba : ndarray of shape (n_rows, n_classes) or None
    known : ndarray of bool, (n_rows,)
        Rows that were left out; the predictions of others mean nothing.
    rows : ndarray of int or None
        Their numbers among the training rows; None for all of them.
    """

    predictions: np.ndarray
    log_proba: np.ndarray | None
    known: np.ndarray
    rows: np.ndarray | None


def left_out_answers(fitted: Any) -> LeftOutAnswers | None:
    """Honest answers of a fit about its training rows; None if it has none."""
    if not leaves_out_honestly(fitted):
        return None
    rows = getattr(fitted, "left_out_rows_", None)
    if hasattr(fitted, "left_out_predictions_"):
        values = fitted.left_out_predictions_
        return LeftOutAnswers(values, None, _finite_rows(values), rows)
    if hasattr(fitted, "left_out_decisions_"):
        decisions = fitted.left_out_decisions_
        known, logs = _finite_rows(decisions), fitted.calibration_.log_probabilities(decisions)
        chosen = chosen_classes(np.nan_to_num(decisions))
    else:
        logs = fitted.left_out_log_proba_
        known = _finite_rows(logs)
        chosen = np.where(np.isnan(logs), -np.inf, logs).argmax(axis=1)
    return LeftOutAnswers(fitted.classes_[chosen], logs, known, rows)


def _finite_rows(values: np.ndarray) -> np.ndarray:
    finite: np.ndarray = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return finite
