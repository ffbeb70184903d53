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
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from ..estimators.base import KernelEstimator
from ..estimators.inputs import groups_of
from ..inspection import ViewImportance, view_importance
from ..inspection.study import checked_learner, searches
from ..kernels import KernelStack, Views
from ..kernels.tables import is_frame
from ..utils.folds import about_repeats
from ..utils.sklearn import num_samples
from ..utils.versions import versions
from .findings import (
    Samples,
    choice_of,
    counted,
    gate_of,
    judgement,
    kernel_views,
    listed,
    plain,
    proof_of,
    row_keys,
    training_source,
    weights_of,
)

# -------------------------------------------------------------------------------------------------
# What the samples of a report are like: sizes, gaps, classes, and how alike their kernels are.


# Rows whose kernels are compared: a thousand tell cosines to two digits, in a second.
_MOST_ROWS = 1000
# Kernels whose cosines are shown as a table; more cannot be read.
_MOST_KERNELS = 40
# A class with fewer samples than folds by default cannot be in all of them.
_FEW_OF_CLASS = 5
# From this cosine on two kernels say nearly the same.
_ALIKE = 0.99
# Columns that are named where something is wrong with them.
_NAMED_CLASSES = 5


def data_checks(estimator: Any, samples: Samples | None) -> dict[str, Any]:
    """Sizes, and what was looked for with what was found; without samples what the model knows."""
    if samples is None:
        return _known_by_model(estimator)
    data = samples.data
    found: dict[str, Any] = {"n_rows": len(samples)}
    checks: list[dict[str, Any]] = []
    if isinstance(data, KernelStack):
        found["tables"] = [
            {"name": "kernel matrices", "columns": data.shape[1], "lacking": 0, "kind": "stack"}
        ]
    else:
        tables = dict(data.items()) if isinstance(data, Views) else {"X": data}
        has = {name: data.has(name) for name in tables} if isinstance(data, Views) else {}
        found["tables"] = [
            {
                "name": name,
                "columns": 1 if len(table.shape) == 1 else table.shape[1],
                "lacking": int(np.count_nonzero(~has[name])) if name in has else 0,
                "kind": _kind_of_table(table),
            }
            for name, table in tables.items()
        ]
        for name, table in tables.items():
            checks += _of_table(name, table)
        keys = row_keys(data)
        meaning = "one sample" if about_repeats(groups_of(data)) else "different samples"
        checks.append(
            _checked(
                "Equal rows",
                len(keys) - len(set(keys)),
                lambda n: (
                    f"{counted(n, 'row')} with the same entries as another; equal rows "
                    f"count as {meaning}"
                ),
                "no two rows are equal",
            )
        )
    if samples.new is not None and samples.new.any() and not samples.new.all():
        seen = int(np.count_nonzero(~samples.new))
        checks.append(
            {
                "name": "Training samples",
                "good": False,
                "found": f"{counted(seen, 'row')} of X equal to training samples",
            }
        )
    if samples.y is not None and is_classifier(estimator) and samples.y.ndim == 1:
        labels, sizes = np.unique(samples.y, return_counts=True)
        found["classes"] = [
            {"name": str(one), "n": int(n)} for one, n in zip(labels, sizes, strict=True)
        ]
        few = labels[sizes < _FEW_OF_CLASS]
        checks.append(
            _checked(
                "Small classes",
                len(few),
                lambda n: (
                    f"fewer than {_FEW_OF_CLASS} samples of {listed(few[:_NAMED])}"
                    + (" and others" if n > _NAMED_CLASSES else "")
                ),
                f"every class has {_FEW_OF_CLASS} samples or more",
            )
        )
    elif samples.y is not None and samples.y.dtype.kind in "iuf" and samples.y.ndim == 1:
        found["y"] = np.quantile(samples.y, [0.0, 0.25, 0.5, 0.75, 1.0])
    return {**found, "checks": checks}


def _known_by_model(estimator: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"checks": []}
    if hasattr(estimator, "feature_names_in_"):
        found["names"] = [str(name) for name in estimator.feature_names_in_]
    if hasattr(estimator, "n_features_in_"):
        found["n_features"] = int(estimator.n_features_in_)
    if hasattr(estimator, "classes_") and not hasattr(estimator, "estimators_"):
        found["class_names"] = [str(name) for name in estimator.classes_]
    return found


def _checked(name: str, number: int, found: Any, good: str) -> dict[str, Any]:
    return {"name": name, "good": number == 0, "found": found(number) if number else good}


def _kind_of_table(table: Any) -> str:
    if sparse.issparse(table):
        return "sparse numbers"
    if is_frame(table):
        return "data frame"
    return "numbers" if np.asarray(table).dtype.kind in "biuf" else "text or objects"


def _of_table(name: str, table: Any) -> list[dict[str, Any]]:
    """Missing values, and columns that are the same everywhere."""
    if len(table.shape) == 1:
        return []
    of = "" if name == "X" else f", {listed([name])}"
    if is_frame(table):
        columns = [np.asarray(table[one]) for one in table.columns]
        names = [str(one) for one in table.columns]
    elif sparse.issparse(table):
        stored = sparse.csc_array(table)
        lows, highs = (np.asarray(m.todense()).ravel() for m in (stored.min(0), stored.max(0)))
        return [_constants(of, [f"{j}" for j in np.flatnonzero(lows == highs)])]
    else:
        array = np.asarray(table)
        columns, names = list(array.T), [f"{j}" for j in range(array.shape[1])]
    gaps = sum(int(np.count_nonzero(_missing(column))) for column in columns)
    equal = [one for one, column in zip(names, columns, strict=True) if _is_constant(column)]
    missing = _checked(f"Missing values{of}", gaps, lambda n: counted(n, "missing value"), "none")
    return [missing, _constants(of, equal)]


def _constants(of: str, names: list[str]) -> dict[str, Any]:
    return _checked(
        f"Constant columns{of}",
        len(names),
        lambda n: (
            f"{counted(n, 'column')}: {listed(names[:_NAMED])}"
            + (" and others" if n > _NAMED_CLASSES else "")
        ),
        "none",
    )


def _missing(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        # What is not equal to itself is NaN, or a kind of it.
        return np.array([one is None or bool(one != one) is True for one in column])
    return np.zeros(len(column), bool)


def _is_constant(column: np.ndarray) -> bool:
    known = column[~_missing(column)]
    return len(column) > 1 and all(one == known[0] for one in known[1:])


# -- alignment -------------------------------------------------------------------------------


def alignment_of(estimator: Any, samples: Samples) -> dict[str, Any] | str | None:
    """Cosines between the centred kernels; a sentence if there are too many, None if there is one.

    They are computed on some of the rows if there are many, and on rows that lack no kernel.
    """
    n_rows = len(samples)
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).round().astype(int))
    if len(estimator.kernel_names_) > _MOST_KERNELS:
        return (
            f"How alike kernels are is not shown: {len(estimator.kernel_names_)} are more than "
            f"{_MOST_KERNELS}. KernelStack.alignment computes it."
        )
    if isinstance(samples.data, KernelStack):
        if not samples.complete:
            return None
        stack = samples.data[np.ix_(rows, rows)]
    else:
        stack = training_source(estimator).union(samples.rows(rows))
    stack = _without_gaps(stack)
    if stack.n_kernels < 2 or len(stack) < 2:
        return None
    matrix = stack.alignment(centered=True)
    first, second = np.triu_indices(stack.n_kernels, k=1)
    values = matrix[first, second]
    most = int(values.argmax())
    return {
        "names": list(stack.names),
        "matrix": matrix,
        "n_rows": len(stack),
        "most": {
            "first": stack.names[first[most]],
            "second": stack.names[second[most]],
            "value": float(values[most]),
            "alike": bool(values[most] >= _ALIKE),
        },
        "mean": float(values.mean()),
    }


def _without_gaps(stack: KernelStack) -> KernelStack:
    """The Gram matrices of the samples that lack no kernel."""
    diagonals = np.array([np.diag(stack.kernel(j)) for j in range(stack.n_kernels)])
    known = np.flatnonzero(np.isfinite(diagonals).all(axis=0))
    if len(known) == len(stack) and stack.gram:
        return stack
    part = stack[np.ix_(known, known)]
    matrices = [part.kernel(j) for j in range(part.n_kernels)]
    return KernelStack.from_arrays(matrices, part.names, psd="ignore")


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
