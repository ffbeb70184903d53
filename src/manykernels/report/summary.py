"""Everything that a report says, as a dict of plain values, before anything is drawn.

==============  ============================================================================
`answers`       the three questions that come first: what matters, how good, how sure
`learnt`        kernel weights and their shares
`importance`    what each view is worth, alone and left out, with intervals
`judged`        predictions about samples that the model has not learnt from
`gate`          what a gate makes of each kernel
`proof`         certificates, and how the gap closed
`choice`        what was chosen by cross-validation
`alignment`     how alike kernels are
`data`          what the samples are like
`reproduce`     parameters, kernels and versions
`not_computed`  what is not here, and how to get it
==============  ============================================================================

Parts that do not apply are absent.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from .._sklearn import num_samples
from .._versions import versions
from ..estimators._base import KernelEstimator
from ..inspection import ViewImportance, view_importance
from ..inspection.learners import checked_learner, searches
from .data import alignment_of, data_checks
from .judged import judgement
from .learnt import choice_of, gate_of, kernel_views, proof_of, weights_of
from .plain import counted, listed, plain
from .samples import Samples, training_source

# Without being asked, importance is measured of at most so many rows and views, which takes a few
# seconds; half-samples then are fewer than the default of view_importance.
_SMALL_ROWS, _SMALL_VIEWS, _FEW_RESAMPLES = 300, 12, 20
# Views that are named first: those with the largest shares that together have this part.
_MOST_OF_WEIGHT = 0.8
# What the outcome of a descent means.
_OUTCOMES = {
    "stationary": "Yes: at a stationary point",
    "held out": "Yes: held-out samples ended it",
    "stopped": "No: it was stopped before",
    "interrupted": "No: it was interrupted",
    "limited by rounding": "Cannot be told: rounding errors",
}
# Shares of weight that differ by no more than this are equal: fits determine no more of them.
_EQUAL = 1e-4
# Names that fit into an answer.
_NAMED = 4


def summarize(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    importance: Any = "auto",
    new: bool | None = None,
) -> dict[str, Any]:
    """The contents of a report; parameters as for :func:`~manykernels.report.report`."""
    _check(estimator, X, y, importance)
    samples = None if X is None else Samples.of(estimator, X, y, new)
    remarks: list[str] = []
    parts = {
        "learnt": weights_of(estimator),
        "importance": _importance(estimator, X, y, samples, importance, remarks),
        "judged": None if samples is None else judgement(estimator, samples),
        "gate": gate_of(estimator),
        "proof": proof_of(estimator),
        "choice": choice_of(estimator),
        "alignment": None if samples is None else alignment_of(estimator, samples),
        "data": data_checks(estimator, samples),
        "reproduce": _reproduce(estimator),
    }
    if samples is None:
        remarks.append(
            "Only what the model knows is here. With samples there is more: "
            "report(model, X, y), X and y being those of training or new ones."
        )
    remarks += [part for part in parts.values() if isinstance(part, str)]
    found = {
        name: part
        for name, part in parts.items()
        if part is not None and not isinstance(part, str)
    }
    heading = {"estimator": type(estimator).__name__, "kind": _kind(estimator)}
    answers = [_what_matters(found), _how_good(estimator, found), _how_sure(found)]
    contents: dict[str, Any] = plain(
        {
            **heading,
            "answers": [answer for answer in answers if answer is not None],
            **found,
            "not_computed": remarks,
        }
    )
    return contents


def _check(estimator: Any, X: Any, y: Any, importance: Any) -> None:
    if not isinstance(estimator, KernelEstimator):
        got = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise ValueError(f"report takes a fitted estimator of this package; got {got}.")
    check_is_fitted(estimator)
    if X is None and y is not None:
        raise ValueError("report was given y without X: pass both, or neither.")
    if not isinstance(importance, bool | ViewImportance) and importance != "auto":
        raise ValueError(
            'importance must be True, False, "auto" or the result of view_importance; got '
            f"{importance!r}."
        )
    if importance is True and y is None:
        raise ValueError("importance=True needs the training samples: report(model, X, y).")


def _kind(estimator: Any) -> str:
    if is_outlier_detector(estimator):
        return "novelty detection"
    return "classification" if is_classifier(estimator) else "regression"


# -- importance ------------------------------------------------------------------------------


def _importance(
    estimator: Any, X: Any, y: Any, samples: Samples | None, asked: Any, remarks: list[str]
) -> dict[str, Any] | None:
    """What each view is worth: as given, or computed if it is asked for or takes little time."""
    if isinstance(asked, ViewImportance):
        return _of_importance(asked)
    if asked is False or samples is None or samples.y is None:
        return None
    if asked is True:
        return _of_importance(view_importance(estimator, X, y))
    reason = _too_much(estimator, samples)
    if reason is None:
        try:
            result = view_importance(estimator, X, y, n_resamples=_FEW_RESAMPLES)
            return _of_importance(result)
        except ValueError as error:
            reason = str(error)
    remarks.append(f"The importance of views was not measured. {reason}")
    return None


def _too_much(estimator: Any, samples: Samples) -> str | None:
    """Why importance is not measured without being asked for; None if it is."""
    way = "report(model, X, y, importance=True) measures it."
    try:
        checked_learner(estimator)
    except ValueError:
        return f"{type(estimator).__name__} does not learn one weight per kernel at a norm p."
    if samples.new is None or samples.new.any():
        kind = "may be new" if samples.new is None else "are new"
        return f"It learns again from training samples, and these {kind}. {way}"
    n_views = len(set(kernel_views(estimator)))
    if searches(estimator):
        return f"{type(estimator).__name__} would search again for every set of views. {way}"
    if int(num_samples(samples.data)) > _SMALL_ROWS or n_views > _SMALL_VIEWS:
        return (
            f"Without being asked that is done up to {_SMALL_ROWS} rows and {_SMALL_VIEWS} views. "
            f"{way}"
        )
    return None


def _of_importance(result: ViewImportance) -> dict[str, Any]:
    rows = sorted(result.rows(), key=lambda row: -np.nan_to_num(row["fall"], nan=-np.inf))
    for row in rows:
        row["needed"] = bool(row["fall_low"] > 0.0)
    return {
        "rows": rows,
        "scoring": result.scoring,
        "method": result.method,
        "confidence": result.confidence,
        "score": result.score,
        "score_interval": result.score_interval,
        "plain_sum": result.plain_sum,
        "plain_sum_interval": result.plain_sum_interval,
        "gain": result.gain,
        "gain_interval": result.gain_interval,
        "n_resamples": len(result.resampled_weights),
    }


# -- the three answers -----------------------------------------------------------------------


def _what_matters(found: dict[str, Any]) -> dict[str, Any]:
    question = "What matters?"
    importance, learnt = found.get("importance"), found["learnt"]
    if importance is not None:
        return {"question": question, **_needed_views(importance), "good": None}
    if np.ptp(learnt["mean_shares"]) <= _EQUAL:
        return {
            "question": question,
            "answer": "All kernels alike" if learnt["n_kernels"] > 1 else learnt["kernels"][0],
            "detail": f"{counted(learnt['n_kernels'], 'kernel')} with equal weights.",
            "good": None,
        }
    shares = sorted(learnt["view_shares"], key=lambda one: -one["share"])
    total = np.cumsum([one["share"] for one in shares])
    number = int(np.searchsorted(total, _MOST_OF_WEIGHT)) + 1
    part = float(total[min(number, len(total)) - 1])
    return {
        "question": question,
        "answer": _named([one["name"] for one in shares[:number]]),
        "detail": f"{part:.0%} of the weight, and {learnt['effective']:.1f} effective of "
        f"{counted(learnt['n_kernels'], 'kernel')}. A weight is no measure of importance.",
        "good": None,
    }


def _needed_views(importance: dict[str, Any]) -> dict[str, str]:
    """The views without which the score falls, and the best one alone if it is none of them."""
    rows = importance["rows"]
    needed = [row for row in rows if row["needed"]]
    if needed:
        first = needed[0]
        answer = _named([row["view"] for row in needed])
        detail = (
            f"Without {listed([first['view']])}, {importance['scoring']} falls by "
            f"{first['fall']:.3f}{_between(first['fall_low'], first['fall_high'])}."
        )
    else:
        answer = "No view by itself"
        detail = (
            "No fall can be told from chance: the other views make up for each, or there are too "
            "few samples to tell."
        )
    known = [row for row in rows if not np.isnan(row["alone"])]
    best = max(known, key=lambda row: row["alone"], default=None)
    if best is not None and not best["needed"]:
        detail += f" Best alone is {listed([best['view']])}, with {best['alone']:.3f}."
    return {"answer": answer, "detail": detail}


def _named(names: list[str]) -> str:
    if len(names) <= _NAMED:
        return listed(names)
    return listed([*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"])


def _how_good(estimator: Any, found: dict[str, Any]) -> dict[str, Any]:
    question = "How good is it?"
    judged, importance = found.get("judged"), found.get("importance")
    if judged is not None and judged["scores"]:
        score = judged["scores"][0]
        interval = _between(score["low"], score["high"]) if "low" in score else ""
        beside = ""
        if "baseline" in judged:
            name, value = judged["baseline"]["name"], judged["baseline"]["value"]
            beside = f" {_capital(name)}: {value:.3f}."
        return {
            "question": question,
            "answer": _capital(f"{score['name']} {score['value']:.3f}{interval}"),
            "detail": f"On {judged['how']}.{beside}",
            "good": None,
        }
    if importance is not None:
        interval = _between(*importance["score_interval"])
        return {
            "question": question,
            "answer": _capital(f"{importance['scoring']} {importance['score']:.3f}{interval}"),
            "detail": f"Of the same model learnt again: {importance['method']}.",
            "good": None,
        }
    choice = found.get("choice")
    if choice is not None:
        scores = [one["score"] for one in choice["chosen"]]
        return {
            "question": question,
            "answer": f"Mean held-out score {np.mean(scores):.3f}",
            "detail": f"By {choice['judged_by']}. {choice['caveat']}",
            "good": None,
        }
    return {
        "question": question,
        "answer": "Not judged",
        "detail": f"{type(estimator).__name__} was given no samples to be judged by.",
        "good": None,
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _between(low: float, high: float) -> str:
    """An interval that is not broken into two lines."""
    return f" [{low:.3f},\N{NO-BREAK SPACE}{high:.3f}]".replace("-", "−")


def _how_sure(found: dict[str, Any]) -> dict[str, Any] | None:
    proof = found.get("proof")
    if proof is None:
        return None
    worst = max(proof["certificates"], key=lambda one: one["rel_gap"])
    answer = _OUTCOMES.get(worst["status"], worst["status"].capitalize())
    if proof["convex"] and proof["converged"]:
        # A minus sign, at which no line is broken.
        answer = f"Yes: certified to\N{NO-BREAK SPACE}{worst['bound']:.0e}".replace("-", "−")
    approximate = " Of the problem on approximate kernels." if "approximate" in proof else ""
    return {
        "question": proof["question"],
        "answer": answer,
        "detail": worst["message"] + approximate,
        "good": proof["converged"],
    }


# -- to do it again --------------------------------------------------------------------------


def _reproduce(estimator: Any) -> dict[str, Any]:
    defaults = {
        name: repr(value) for name, value in type(estimator)().get_params(deep=False).items()
    }
    params = {name: repr(value) for name, value in estimator.get_params(deep=False).items()}
    source = training_source(estimator)
    kernels = getattr(getattr(source, "union", None), "kernels_", [])
    return {
        "parameters": [
            {"name": name, "value": value, "default": value == defaults.get(name)}
            for name, value in params.items()
        ],
        "kernels": [{"name": name, "kernel": repr(kernel)} for name, kernel in kernels],
        "versions": {"python": platform.python_version(), **versions()},
    }
