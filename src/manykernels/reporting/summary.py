"""The contents of a report, as a dict of plain values.

==============  ============================================================================
`answers`       three questions and answers: what matters, how good, how sure
`learnt`        kernel weights and their shares
`importance`    importance of the views, alone and left out, with intervals
`columns`       importance of the columns of the views, with intervals
`judged`        scores of predictions of samples that are not training samples
`gate`          summary of gate values
`proof`         certificate and convergence
`choice`        results of cross-validation
`alignment`     cosines between kernels
`data`          sizes and checks of the samples
`reproduce`     parameters, kernels and versions
`not_computed`  parts that are not computed, with reasons
==============  ============================================================================

Parts that do not apply are absent.
"""

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator
from ..estimators.inputs import matched_by_label
from ..inspection import ColumnImportance, ViewImportance, column_importance, view_importance
from ..inspection.scoring import survival_field
from ..inspection.study import checked_learner, searches
from ..kernels import KernelStack, Views
from ..kernels.tables import Table, is_frame
from ..kernels.views import row_keys
from ..utils.folds import about_groups
from ..utils.sklearn import num_samples
from ..utils.versions import versions
from . import findings
from .judgement import judgement

# -- Checks of the samples, and the alignment of their kernels ------------------------------------


# Rows that estimate the alignment: a thousand determine cosines to two digits, in a second.
_MOST_ROWS = 1000
# Largest number of kernels in the table of cosines, for legibility.
_MOST_KERNELS = 40
# A class with fewer samples than the default number of folds cannot be in all folds.
_FEW_OF_CLASS = 5
# With fewer events hardly anything can be learnt: a rule of thumb says ten for every parameter.
_FEW_EVENTS = 10
# Cosine from which a kernel counts as redundant.
_ALIKE = 0.99
# Largest number of classes or columns that a check lists.
_NAMED_CLASSES = 5


def data_checks(estimator: KernelEstimator, samples: findings.Samples | None) -> dict[str, Any]:
    """Return sizes and checks of the samples; without samples, names known to the model."""
    if samples is None:
        return _known_by_model(estimator)
    data = samples.data
    contents: dict[str, Any] = {"n_rows": len(samples)}
    checks: list[dict[str, Any]] = []
    if isinstance(data, KernelStack):
        contents["tables"] = [
            {"name": "kernel matrices", "columns": data.shape[1], "lacking": 0, "kind": "stack"}
        ]
    else:
        tables = dict(data.items()) if isinstance(data, Views) else {"X": data}
        has = {name: data.has(name) for name in tables} if isinstance(data, Views) else {}
        contents["tables"] = [
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
        if samples.labels is not None:
            meaning = "one sample within a group only"
        else:
            meaning = "one sample" if about_groups(samples.groups) else "different samples"
        checks.append(
            _checked(
                "Equal rows",
                len(keys) - len(set(keys)),
                lambda n: (
                    f"{findings.counted(n, 'row')} with the same entries as another; equal rows "
                    f"count as {meaning}"
                ),
                "no two rows are equal",
            )
        )
    counting = samples.weights > 0.0
    if samples.new is not None and samples.new.any() and not samples.new[counting].all():
        seen = int(np.count_nonzero(~samples.new & counting))
        checks.append(
            {
                "name": "Training samples",
                "good": False,
                "found": f"{findings.counted(seen, 'row')} of X equal to training samples",
            }
        )
    if samples.y is not None and is_classifier(estimator) and samples.y.ndim == 1:
        labels, sizes = np.unique(samples.y, return_counts=True)
        contents["classes"] = [
            {"name": str(label), "n": int(n)} for label, n in zip(labels, sizes, strict=True)
        ]
        few = labels[sizes < _FEW_OF_CLASS]
        checks.append(
            _checked(
                "Small classes",
                len(few),
                lambda n: (
                    f"fewer than {_FEW_OF_CLASS} samples of "
                    + findings.listed(few[:_NAMED_CLASSES])
                    + (" and others" if n > _NAMED_CLASSES else "")
                ),
                f"every class has {_FEW_OF_CLASS} samples or more",
            )
        )
    elif samples.y is not None and samples.y.dtype.kind in "iuf" and samples.y.ndim == 1:
        contents["y"] = np.quantile(samples.y, [0.0, 0.25, 0.5, 0.75, 1.0])
    elif samples.y is not None and samples.y.dtype.names:
        contents["y"] = np.quantile(samples.y["time"], [0.0, 0.25, 0.5, 0.75, 1.0])
        contents["n_events"] = n_events = int(samples.y["event"].sum())
        checks.append(
            {
                "name": "Events",
                "good": n_events >= _FEW_EVENTS,
                "found": f"{n_events} of {findings.counted(len(samples), 'sample')} have an "
                "event, the others are censored",
            }
        )
    return {**contents, "checks": checks}


def _known_by_model(estimator: KernelEstimator) -> dict[str, Any]:
    contents: dict[str, Any] = {"checks": []}
    if hasattr(estimator, "feature_names_in_"):
        contents["names"] = [str(name) for name in estimator.feature_names_in_]
    if hasattr(estimator, "n_features_in_"):
        contents["n_features"] = int(estimator.n_features_in_)
    if hasattr(estimator, "classes_") and not hasattr(estimator, "n_labels_"):
        contents["class_names"] = [str(name) for name in estimator.classes_]
    return contents


def _checked(
    name: str, number: int, problem: Callable[[int], str], good: str
) -> dict[str, str | bool]:
    """Return a check that is good if `number` is zero, and else described by `problem`."""
    return {"name": name, "good": number == 0, "found": problem(number) if number else good}


def _kind_of_table(table: Table) -> str:
    if sparse.issparse(table):
        return "sparse numbers"
    if is_frame(table):
        return "data frame"
    return "numbers" if np.asarray(table).dtype.kind in "biuf" else "text or objects"


def _of_table(name: str, table: Any) -> list[dict[str, Any]]:
    """Check a table for missing values and constant columns."""
    if len(table.shape) == 1:
        return []
    of = "" if name == "X" else f", {findings.listed([name])}"
    if is_frame(table):
        columns = [np.asarray(table[name]) for name in table.columns]
        names = [str(name) for name in table.columns]
    elif sparse.issparse(table):
        stored = sparse.csc_array(table)
        lows, highs = (np.asarray(m.todense()).ravel() for m in (stored.min(0), stored.max(0)))
        return [_constants(of, [f"{j}" for j in np.flatnonzero(lows == highs)])]
    else:
        array = np.asarray(table)
        columns, names = list(array.T), [f"{j}" for j in range(array.shape[1])]
    gaps = sum(int(np.count_nonzero(_missing(column))) for column in columns)
    constant = [name for name, column in zip(names, columns, strict=True) if _is_constant(column)]
    missing = _checked(
        f"Missing values{of}", gaps, lambda n: findings.counted(n, "missing value"), "none"
    )
    return [missing, _constants(of, constant)]


def _constants(of: str, names: list[str]) -> dict[str, Any]:
    return _checked(
        f"Constant columns{of}",
        len(names),
        lambda n: (
            f"{findings.counted(n, 'column')}: {findings.listed(names[:_NAMED_CLASSES])}"
            + (" and others" if n > _NAMED_CLASSES else "")
        ),
        "none",
    )


def _missing(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        # NaN, NaT and the like are not equal to themselves.
        return np.array([value is None or bool(value != value) is True for value in column])
    return np.zeros(len(column), bool)


def _is_constant(column: np.ndarray) -> bool:
    known = column[~_missing(column)]
    return len(column) > 1 and all(value == known[0] for value in known[1:])


# -- alignment -------------------------------------------------------------------------------


def alignment_of(
    estimator: KernelEstimator, samples: findings.Samples
) -> dict[str, Any] | str | None:
    """Return the cosines between centred kernels, None if there are fewer than two.

    If there are too many, a sentence is returned instead. Only rows that have all kernels are
    used, and a subset if there are many.
    """
    n_rows = len(samples)
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).round().astype(int))
    if len(estimator.kernel_names_) > _MOST_KERNELS:
        return (
            f"The alignment of the kernels is not shown: {len(estimator.kernel_names_)} kernels "
            f"are more than {_MOST_KERNELS}. Compute it with KernelStack.alignment."
        )
    if isinstance(samples.data, KernelStack):
        if not samples.complete:
            return None
        stack = samples.data[np.ix_(rows, rows)]
    else:
        stack = findings.training_source(estimator).union(samples.rows(rows))
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
    """Return the Gram matrices of the samples that have all kernels."""
    diagonals = np.array([np.diag(stack.kernel(j)) for j in range(stack.n_kernels)])
    known = np.flatnonzero(np.isfinite(diagonals).all(axis=0))
    if len(known) == len(stack) and stack.gram:
        return stack
    complete = stack[np.ix_(known, known)]
    matrices = [complete.kernel(j) for j in range(complete.n_kernels)]
    return KernelStack.from_arrays(matrices, complete.names, psd="ignore")


# Limits of rows and views for importance="auto", which then takes a few seconds; its half-samples
# are fewer than the default of view_importance.
_SMALL_ROWS, _SMALL_VIEWS, _FEW_RESAMPLES = 300, 12, 20
# The first answer names the views with the largest shares, up to this sum.
_MOST_OF_WEIGHT = 0.8
# Answers by the status of a certificate.
_OUTCOMES = {
    "stationary": "Yes: at a stationary point",
    "held out": "Yes: stopped early by held-out samples",
    "stopped": "No: stopped before convergence",
    "interrupted": "No: interrupted",
    "limited by rounding": "Unknown: limited by rounding errors",
}
# Shares of weight that differ by no more than this count as equal: fits are not more accurate.
_EQUAL = 1e-4
# Number of columns that are listed.
_LISTED_COLUMNS = 25
# Largest number of names in an answer.
_NAMED = 4


def summarize(
    estimator: KernelEstimator,
    X: Table = None,
    y: ArrayLike | None = None,
    *,
    importance: bool | str | ViewImportance = "auto",
    columns: bool | ColumnImportance = False,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    new: bool | None = None,
) -> dict[str, Any]:
    """Return the contents of a report; parameters as for :func:`~manykernels.report`."""
    of_rows = {"sample_weight": sample_weight, "groups": groups, "entry": entry, "strata": strata}
    _check(estimator, X, y, of_rows, importance, columns)
    samples = None if X is None else findings.Samples.read(estimator, X, y, **of_rows, new=new)
    remarks: list[str] = []
    sections = {
        "learnt": findings.weights_of(estimator),
        "importance": _importance(estimator, X, y, sample_weight, samples, importance, remarks),
        "columns": _columns(estimator, X, y, sample_weight, samples, columns),
        "judged": None if samples is None else judgement(estimator, samples),
        "gate": findings.gate_of(estimator),
        "proof": findings.proof_of(estimator),
        "choice": findings.choice_of(estimator),
        "alignment": None if samples is None else alignment_of(estimator, samples),
        "data": data_checks(estimator, samples),
        "reproduce": _reproduce(estimator),
    }
    if samples is None:
        remarks.append(
            "No samples were passed. report(model, X, y), with the training samples or new ones, "
            "contains more."
        )
    remarks += [section for section in sections.values() if isinstance(section, str)]
    sections = {
        name: section
        for name, section in sections.items()
        if section is not None and not isinstance(section, str)
    }
    heading = {"estimator": type(estimator).__name__, "kind": _kind(estimator)}
    answers = [_what_matters(sections), _how_good(estimator, sections), _how_sure(sections)]
    contents: dict[str, Any] = findings.plain(
        {
            **heading,
            "answers": [answer for answer in answers if answer is not None],
            **sections,
            "not_computed": remarks,
        }
    )
    return contents


def _check(
    estimator: KernelEstimator,
    X: Table,
    y: ArrayLike | None,
    of_rows: dict[str, ArrayLike | None],
    importance: bool | str | ViewImportance,
    columns: bool | ColumnImportance,
) -> None:
    if not isinstance(estimator, KernelEstimator):
        got = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise ValueError(f"report takes a fitted estimator of this package; got {got}.")
    check_is_fitted(estimator)
    if X is None and y is not None:
        raise ValueError("report got y without X: pass both, or neither.")
    for name, given in of_rows.items():
        if X is None and given is not None:
            raise ValueError(f"report got {name} without X: pass both, or neither.")
        if (
            name in ("entry", "strata")
            and given is not None
            and not isinstance(estimator, SurvivalEstimator)
        ):
            raise TypeError(f"{name} is for survival models, not {type(estimator).__name__}.")
    if not isinstance(importance, bool | ViewImportance) and importance != "auto":
        raise ValueError(
            'importance must be True, False, "auto" or the result of view_importance; got '
            f"{importance!r}."
        )
    if not isinstance(columns, bool | ColumnImportance):
        raise ValueError(
            f"columns must be True, False or the result of column_importance; got {columns!r}."
        )
    for name, asked in (("importance", importance), ("columns", columns)):
        if asked is True and y is None:
            raise ValueError(f"{name}=True needs the training samples: pass X and y.")


def _kind(estimator: KernelEstimator) -> str:
    if is_outlier_detector(estimator):
        return "novelty detection"
    if isinstance(estimator, SurvivalEstimator):
        return "survival analysis"
    return "classification" if is_classifier(estimator) else "regression"


# -- importance ------------------------------------------------------------------------------


def _importance(
    estimator: KernelEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    samples: findings.Samples | None,
    importance: bool | str | ViewImportance,
    remarks: list[str],
) -> dict[str, Any] | None:
    """Return the importance of the views; compute it if requested, or if it takes little time."""
    if isinstance(importance, ViewImportance):
        return _of_importance(importance)
    if importance is False or samples is None or y is None:
        return None
    if importance is True:
        result = _computed(view_importance, estimator, X, y, sample_weight, samples)
        return _of_importance(result)
    reason = _reason_to_skip(estimator, samples)
    if reason is None:
        try:
            options = {"n_resamples": _FEW_RESAMPLES}
            result = _computed(view_importance, estimator, X, y, sample_weight, samples, **options)
            return _of_importance(result)
        except ValueError as error:
            reason = str(error)
    remarks.append(f"The importance of the views was not computed. {reason}")
    return None


def _computed(
    function: Callable[..., Any],
    estimator: KernelEstimator,
    X: Table,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    samples: findings.Samples,
    **options: Any,
) -> Any:
    """Compute the importance of views or columns, with the groups of the samples."""
    # The groups are in the order of the rows that were matched.
    y = estimator._as_targets(y)
    X, y, sample_weight, _ = matched_by_label(estimator, X, y, sample_weight)
    options |= {"sample_weight": sample_weight, "groups": samples.labels}
    if samples.y is not None:
        fields = {"entry": "entry", "strata": "stratum"}
        given = {name: survival_field(samples.y, field) for name, field in fields.items()}
        given = {name: values for name, values in given.items() if values is not None}
        if given and function is column_importance:
            raise ValueError(
                f"columns=True does not go with {' and '.join(given)}: the importance of columns "
                "is measured without them. Pass columns=False."
            )
        options |= given
    return function(estimator, X, y, **options)


def _reason_to_skip(estimator: KernelEstimator, samples: findings.Samples) -> str | None:
    """Return why importance="auto" does not compute the importance, or None if it does."""
    way = "report(model, X, y, importance=True) computes it."
    try:
        checked_learner(estimator)
    except ValueError:
        return f"{type(estimator).__name__} does not learn one weight per kernel at a norm p."
    if samples.new is None or samples.new.any():
        kind = "may be new" if samples.new is None else "are new"
        return f"It fits models to training samples, and these samples {kind}. {way}"
    n_views = len(set(findings.kernel_views(estimator)))
    if searches(estimator):
        return f"{type(estimator).__name__} would search again for every set of views. {way}"
    if int(num_samples(samples.data)) > _SMALL_ROWS or n_views > _SMALL_VIEWS:
        return (
            f'importance="auto" is limited to {_SMALL_ROWS} rows and {_SMALL_VIEWS} views. {way}'
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


def _columns(
    estimator: KernelEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    samples: findings.Samples | None,
    columns: bool | ColumnImportance,
) -> dict[str, Any] | None:
    """Return the importance of the columns; compute it if requested."""
    if columns is False:
        return None
    if columns is True:
        assert samples is not None
        assert y is not None
        columns = _computed(column_importance, estimator, X, y, sample_weight, samples)
    assert isinstance(columns, ColumnImportance)
    rows = columns.rows()[:_LISTED_COLUMNS]
    for row, label in zip(rows, columns.labels, strict=False):
        row["column"] = label
    return {
        "rows": rows,
        "n_columns": len(columns.names),
        "n_selected": int(columns.selected.sum()),
        "method": columns.method,
        "title": columns.title,
        "caption": columns.caption,
        "n_resamples": columns.n_resamples,
        "n_top": columns.n_top,
    }


# -- the three answers -----------------------------------------------------------------------


def _what_matters(sections: dict[str, Any]) -> dict[str, Any]:
    importance, learnt = sections.get("importance"), sections["learnt"]
    if importance is not None:
        return {"question": "What matters?", **_needed_views(importance), "good": None}
    question = "Where is the weight?"
    if np.ptp(learnt["mean_shares"]) <= _EQUAL:
        return {
            "question": question,
            "answer": "Equal for all kernels" if learnt["n_kernels"] > 1 else learnt["kernels"][0],
            "detail": f"{findings.counted(learnt['n_kernels'], 'kernel')} with equal weights.",
            "good": None,
        }
    views = sorted(learnt["view_shares"], key=lambda view: -view["share"])
    total = np.cumsum([view["share"] for view in views])
    number = int(np.searchsorted(total, _MOST_OF_WEIGHT)) + 1
    share = float(total[min(number, len(total)) - 1])
    return {
        "question": question,
        "answer": _named([view["name"] for view in views[:number]]),
        "detail": f"{share:.0%} of the weight; {learnt['effective']:.1f} effective of "
        f"{findings.counted(learnt['n_kernels'], 'kernel')}. Weights do not measure importance.",
        "good": None,
    }


def _needed_views(importance: dict[str, Any]) -> dict[str, str]:
    """Return the views without which the score falls, and the best single view."""
    rows = importance["rows"]
    needed = [row for row in rows if row["needed"]]
    if needed:
        first = needed[0]
        answer = _named([row["view"] for row in needed])
        detail = (
            f"Without {findings.listed([first['view']])}, {_spaced(importance)} falls by "
            f"{first['fall']:.3f}{_between(first['fall_low'], first['fall_high'])}."
        )
    else:
        answer = "No single view"
        detail = (
            "No fall is significant: the other views replace each view, or there are too few "
            "samples."
        )
    known = [row for row in rows if not np.isnan(row["alone"])]
    best = max(known, key=lambda row: row["alone"], default=None)
    if best is not None and not best["needed"]:
        name = findings.listed([best["view"]])
        detail += f" The best single view is {name}, with {best['alone']:.3f}."
    return {"answer": answer, "detail": detail}


def _spaced(importance: dict[str, Any]) -> str:
    """Return the name of the score as words."""
    return str(importance["scoring"]).replace("_", " ")


def _named(names: list[str]) -> str:
    if len(names) <= _NAMED:
        return findings.listed(names)
    return findings.listed([*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"])


def _how_good(estimator: KernelEstimator, sections: dict[str, Any]) -> dict[str, Any]:
    question = "How good is it?"
    judged, importance = sections.get("judged"), sections.get("importance")
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
            "answer": _capital(f"{_spaced(importance)} {importance['score']:.3f}{interval}"),
            "detail": f"Of refitted models: {importance['method']}.",
            "good": None,
        }
    choice = sections.get("choice")
    if choice is not None:
        scores = [chosen["score"] for chosen in choice["chosen"]]
        return {
            "question": question,
            "answer": f"Mean held-out score {np.mean(scores):.3f}",
            "detail": f"By {choice['judged_by']}. {choice['caveat']}",
            "good": None,
        }
    return {
        "question": question,
        "answer": "Not scored",
        "detail": f"{type(estimator).__name__} got no samples to be scored on.",
        "good": None,
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _between(low: float, high: float) -> str:
    """Return an interval without line breaks."""
    return f" [{low:.3f},\N{NO-BREAK SPACE}{high:.3f}]".replace("-", "−")


def _how_sure(sections: dict[str, Any]) -> dict[str, Any] | None:
    proof = sections.get("proof")
    if proof is None:
        return None
    certificate = proof["certificate"]
    if proof["given_weights"]:
        return {
            "question": "Are the weights learnt?",
            "answer": "No: they are equal",
            "detail": "At p = ∞ every kernel has the same weight, whatever the targets are.",
            "good": None if proof["converged"] else False,
        }
    answer = _OUTCOMES.get(certificate["status"], certificate["status"].capitalize())
    if proof["convex"] and proof["converged"]:
        # Browsers break lines at hyphens, not at minus signs.
        answer = f"Yes: certified to\N{NO-BREAK SPACE}{certificate['bound']:.0e}".replace("-", "−")
    approximate = " For the problem with approximate kernels." if "approximate" in proof else ""
    return {
        "question": proof["question"],
        "answer": answer,
        "detail": certificate["message"] + approximate,
        "good": proof["converged"],
    }


# -- parameters and versions -----------------------------------------------------------------


def _reproduce(estimator: KernelEstimator) -> dict[str, Any]:
    defaults = {
        name: repr(value) for name, value in type(estimator)().get_params(deep=False).items()
    }
    params = {name: repr(value) for name, value in estimator.get_params(deep=False).items()}
    source = findings.training_source(estimator)
    kernels = getattr(getattr(source, "union", None), "kernels_", [])
    return {
        "parameters": [
            {"name": name, "value": value, "default": value == defaults.get(name)}
            for name, value in params.items()
        ],
        "kernels": [{"name": name, "kernel": repr(kernel)} for name, kernel in kernels],
        "versions": {"python": platform.python_version(), **versions()},
    }
