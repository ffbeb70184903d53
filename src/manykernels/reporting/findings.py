"""Parts of a report about samples, weights, certificates and model selection."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..display import ValidationDisplay
from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator, survival_records
from ..estimators.feature_data import BY_NAME
from ..estimators.inputs import MatrixSource, groups_of, matched_by_label
from ..estimators.regional import SourceWithShares
from ..estimators.training_rows import checked_groups, rows_that_count
from ..estimators.weights import as_norm
from ..inspection.study import left_out_answers
from ..kernels import KernelStack, Views
from ..kernels.completion import views_of_kernels
from ..kernels.tables import SharedTable, Table
from ..kernels.views import row_keys
from ..metrics.classwise import effective_number, in_use
from ..scale.blocks import comes_in_blocks
from ..utils.folds import about_groups, group_numbers
from ..utils.sklearn import check_sample_weight, num_samples, safe_indexing
from ..utils.versions import shortened


def plain(value: Any) -> Any:
    """Convert to types that JSON can represent; numbers that are not finite become None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Iterable):
        return [plain(entry) for entry in value]
    return str(value)


def counted(number: int, noun: str) -> str:
    """Return a number and a noun, such as "1 row" or "12 rows"."""
    return f"{number} {noun if number == 1 else f'{noun}s'}"


def listed(names: Iterable[object]) -> str:
    """Join names as in a sentence, long ones shortened: "a", "a and b", "a, b and c"."""
    *first, last = (shortened(str(name)) for name in names)
    return f"{', '.join(first)} and {last}" if first else last


# -- The samples of a report, and which of them are training samples ------------------------------
#
# Scores on training samples are too optimistic. Therefore rows of X are compared with those that
# the model keeps: all training rows, support vectors or landmarks.


@dataclass(frozen=True)
class Samples:
    """Samples passed to a report.

    Attributes
    ----------
    data : table, Views or KernelStack
        X, validated, with columns and views in the order of training.
    y : ndarray or None
        Survival times have entries and strata, if there are some, as fields.
    weights : ndarray of shape (n_rows,)
        Sample weights; zero for rows that do not count.
    weighted : bool
        Whether sample weights were passed; else all are one.
    new : ndarray of bool, (n_rows,), or None
        Rows that count and are not training samples; None if unknown.
    complete : bool
        Whether the rows that count are all training rows in their order, so that the held-out
        predictions of the model refer to them.
    labels : ndarray of shape (n_rows,) or None
        Labels of the groups of rows: those that were passed, or those of the fit if the rows are
        its training rows. None if equal rows are the groups.
    """

    data: Any
    y: np.ndarray | None
    weights: np.ndarray
    weighted: bool
    new: np.ndarray | None
    complete: bool
    labels: np.ndarray | None = None

    @classmethod
    def read(
        cls,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        new: bool | None = None,
        entry: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Samples:
        """Validate X, y and the values of rows; detect new rows if `new` is None."""
        if comes_in_blocks(X):
            raise ValueError(
                "report needs X in memory: pass a sample of the rows, or call report(estimator)."
            )
        original = X
        y = None if y is None else estimator._as_targets(y)
        X, y, sample_weight, groups, entry, strata = matched_by_label(
            estimator, X, y, sample_weight, groups, entry=entry, strata=strata
        )
        data = training_source(estimator).read(estimator, X)
        n_rows = int(num_samples(data))
        targets = None if y is None else _dense(y)
        if isinstance(estimator, SurvivalEstimator) and y is not None:
            targets = survival_records(y, entry, strata)
        if targets is not None and len(targets) != n_rows:
            raise ValueError(
                f"X has {n_rows} rows, but y has {len(targets)}: pass a target for every row."
            )
        weights = np.ones(n_rows)
        if sample_weight is not None:
            given = check_sample_weight(
                sample_weight, data, dtype=np.float64, ensure_non_negative=True
            )
            counting = rows_that_count(type(estimator).__name__, given)
            weights = np.zeros(n_rows)
            weights[counting] = given[counting]
        unseen: np.ndarray | None = np.full(n_rows, bool(new))
        complete = not new
        if new is None:
            unseen, complete = _unseen_rows(estimator, original, data, weights > 0.0)
        if unseen is not None:
            unseen &= weights > 0.0
        labels = None if groups is None else checked_groups(groups, n_rows)
        samples = cls(data, targets, weights, sample_weight is not None, unseen, complete, labels)
        return samples if new or not complete else samples._in_groups_of_fit(estimator)

    def _in_groups_of_fit(self, estimator: KernelEstimator) -> Samples:
        """Return training samples with the groups of the fit; raise if others were passed."""
        fitted = getattr(estimator, "groups_", None)
        rows = getattr(estimator, "left_out_rows_", np.flatnonzero(self.weights))
        name = type(estimator).__name__
        if self.labels is None:
            if fitted is None or len(fitted) != len(rows):
                return self
            if len(rows) < np.count_nonzero(self.weights):
                raise ValueError(
                    f"{name} was fitted with groups and keeps those of a sample of the rows: pass "
                    "the groups of all rows, report(model, X, y, groups=groups)."
                )
            # Rows that do not count are groups of their own.
            labels = len(rows) + np.arange(len(self))
            labels[rows] = fitted
            return replace(self, labels=labels)
        passed, left_out = self.labels[rows[rows < len(self)]], left_out_answers(estimator)
        if left_out is None or len(left_out.predictions) != len(passed):
            return self  # no held-out predictions of these samples
        if _same_groups(fitted, passed):
            return self
        was = "without groups" if fitted is None else "with other groups"
        raise ValueError(
            f"{name} was fitted {was}, and its held-out predictions may divide these: fit it with "
            "the same ones, fit(X, y, groups=groups)."
        )

    @cached_property
    def groups(self) -> np.ndarray:
        """Numbers of the groups of rows that are not independent, (n_rows,)."""
        return groups_of(self.data) if self.labels is None else group_numbers(self.labels)

    def about_groups(self, rows: np.ndarray) -> str:
        """Describe which of some rows are kept together; empty if all are independent."""
        return about_groups(self.groups[rows], given=self.labels is not None)

    def __len__(self) -> int:
        return int(num_samples(self.data))

    def rows(self, rows: np.ndarray) -> Any:
        """Select rows, in the form that the methods of the estimator need."""
        if isinstance(self.data, KernelStack):
            return self.data[rows]
        return safe_indexing(self.data, rows)


def _same_groups(first: np.ndarray | None, second: np.ndarray) -> bool:
    """Return whether two labellings of rows have the same groups."""
    if first is None or len(first) != len(second):
        return False
    one, other = group_numbers(first), group_numbers(second)
    n_pairs = len(np.unique(np.column_stack([one, other]), axis=0))
    return len(np.unique(one)) == len(np.unique(other)) == n_pairs


def training_source(estimator: KernelEstimator) -> Any:
    """Return the training data that a fitted estimator keeps, without shares of regions."""
    source = estimator._predictor.source
    return source.source if isinstance(source, SourceWithShares) else source


def _dense(y: Any) -> np.ndarray:
    return np.asarray(y.todense()) if sparse.issparse(y) else np.asarray(y)


def _unseen_rows(
    estimator: KernelEstimator, original: object, data: Table, counting: np.ndarray
) -> tuple[np.ndarray | None, bool]:
    """Return rows that are not training samples, None if unknown, and `Samples.complete`."""
    if isinstance(data, KernelStack):
        seen = _is_gram(training_source(estimator), original, data)
        return np.full(len(data), not seen), seen
    kept = _kept_rows(estimator)
    if kept is None:
        return None, False
    keys, kept_keys = row_keys(data), row_keys(kept)
    distinct = set(kept_keys)
    unseen = np.array([key not in distinct for key in keys])
    if hasattr(estimator, "X_fit_") and not hasattr(estimator, "support_"):  # all rows are kept
        return unseen, [keys[i] for i in np.flatnonzero(counting)] == kept_keys
    # Only support vectors or landmarks are known. If X has all of them, it is taken as the
    # training samples; if it has some, the other rows may be training samples or not.
    if distinct <= set(keys):
        return np.zeros(len(keys), bool), True
    return unseen if unseen.all() else None, False


def _is_gram(source: MatrixSource, original: object, stack: KernelStack) -> bool:
    """Return whether the matrices are the Gram matrices of the training samples."""
    if stack.shape[0] != source.width:
        return False
    if isinstance(original, KernelStack):
        return bool(original.gram)
    matrix = stack.kernel(0)
    return bool(np.allclose(matrix, matrix.T, equal_nan=True))


def _kept_rows(estimator: KernelEstimator) -> Any:
    """Return the training rows that the estimator keeps, or None."""
    if hasattr(estimator, "approximation_errors_"):
        return getattr(estimator, "landmarks_", None)
    return training_source(estimator).table


# -- Kernel weights, gates and certificates -------------------------------------------------------


# Other attributes with a value for every kernel, and their column titles.
_OF_KERNELS = {
    "approximation_errors_": "approximation error",
    "scores_": "held-out score alone",
    "alignments_": "alignment with y",
}
# Regularisation parameters, for which a note is shown at the end of the grid; their symbols.
_OPEN_ENDED = ("reg", "C")
_LETTERS = {"reg": "λ"}
# Attributes of certificates and their titles; each kind of certificate has some of them.
_NUMBERS = {
    "primal": "objective",
    "dual": "lower bound on the optimum",
    "objective": "objective",
    "rel_gap": "relative duality gap",
    "rel_rounding": "rounding error of the gap",
    "gradient_norm": "relative norm of the gradient",
    "change": "last relative decrease",
    "tol": "tolerance",
}
# Names of attributes in the claims of certificates, and what a page calls them.
_WORDS = {" `primal`": "", "`gap`": "the gap", "below `dual`": "below the lower bound"}


def kernel_views(estimator: KernelEstimator) -> list[str]:
    """Return the view of each kernel; without views, the names of the kernels."""
    names = list(estimator.kernel_names_)
    source = training_source(estimator)
    if not hasattr(source, "union"):
        return names
    return list(views_of_kernels(source.union.kernels_, source.table))


def weights_of(estimator: KernelEstimator) -> dict[str, Any]:
    """Return kernel weights and their shares, for each class, region or target."""
    names, views = list(estimator.kernel_names_), kernel_views(estimator)
    gated = not hasattr(estimator, "weights_")
    weights = np.asarray(estimator.plain_weights_ if gated else estimator.weights_, dtype=float)
    # Transforms such as bands split kernels, so that the weights do not match the views.
    views = views if len(views) == len(names) == weights.shape[-1] else names
    if len(set(views)) == 1:
        views = names  # the kernels are what differs
    titles = _titles(estimator, weights)
    groups: list[dict[str, Any]] = []
    for title, row in zip(titles, weights.reshape(-1, weights.shape[-1]), strict=True):
        total = float(row.sum())
        groups.append(
            {
                "name": title,
                "weights": row,
                "shares": row / total if total > 0.0 else row,
                "effective": float(effective_number(row)) if row.max() > 0.0 else 0.0,
                "in_use": int(np.count_nonzero(in_use(row))) if total > 0.0 else 0,
            }
        )
    mean = np.mean([group["shares"] for group in groups], axis=0)
    contents: dict[str, Any] = {
        "kernels": names,
        "views": views,
        "groups": groups,
        "mean_shares": mean,
        "view_shares": [
            {"name": view, "share": float(mean[[name == view for name in views]].sum())}
            for view in dict.fromkeys(views)
        ],
        "n_kernels": len(names),
        "effective": float(effective_number(mean)) if mean.max() > 0.0 else 0.0,
        "in_use": int(np.count_nonzero(in_use(mean))) if mean.max() > 0.0 else 0,
        "columns": _numbers_of_columns(estimator)
        + [
            {"title": title, "values": getattr(estimator, attribute)}
            for attribute, title in _OF_KERNELS.items()
            if np.shape(getattr(estimator, attribute, ())) == (len(names),)
        ],
        "of_gate": gated,
    }
    p = getattr(estimator, "p_", getattr(estimator, "p", None))
    if p is not None and np.ndim(p) == 0:
        contents["p"] = _text(as_norm(p))
    return contents


def _numbers_of_columns(estimator: KernelEstimator) -> list[dict[str, Any]]:
    """Return the number of columns that each kernel compares, if kernels choose columns."""
    source = training_source(estimator)
    kernels = getattr(getattr(source, "union", None), "kernels_", None)
    if not isinstance(kernels, list) or len(kernels) != len(estimator.kernel_names_):
        return []
    table = SharedTable(source.table)
    tables = dict(source.table.items()) if isinstance(source.table, Views) else {"": source.table}
    numbers, chosen = [], False
    for _, kernel in kernels:
        places: dict[str, set[int]] = {}
        for view, positions, _ in kernel.compared_columns(table):
            places.setdefault(view, set()).update(positions)
        numbers.append(sum(map(len, places.values())))
        chosen |= any(len(places[view]) < tables[view].shape[1] for view in places)
    return [{"title": "columns", "values": numbers}] if chosen else []


def _titles(estimator: KernelEstimator, weights: np.ndarray) -> list[str]:
    """Return the class, region or target of each weight vector; empty if there is one."""
    if weights.ndim == 1:
        return [""]
    classes = getattr(estimator, "classes_", None)
    regions = []
    if hasattr(estimator, "region_sizes_"):
        regions = [
            f"region {k} ({size:.0%} of the samples)"
            for k, size in enumerate(estimator.region_sizes_)
        ]
    if weights.ndim == 3:
        assert classes is not None
        return [f"class {name}, {region}" for name in classes for region in regions]
    if regions:
        return regions if len(regions) > 1 else [""]
    if hasattr(estimator, "n_labels_"):
        return [f"label {k}" for k in range(len(weights))]
    if classes is not None and len(classes) == len(weights):
        return [f"class {name}" for name in classes]
    return [f"target {k}" for k in range(len(weights))]


def gate_of(estimator: KernelEstimator) -> dict[str, Any] | None:
    """Return a summary of the gate values at the training samples."""
    if not hasattr(estimator, "region_summary"):
        return None
    rows = estimator.region_summary()
    n_kernels = len(estimator.kernel_names_)
    return {
        "rows": rows,
        "several": len(rows) > n_kernels,
        "plain": bool(np.isinf(getattr(estimator, "penalty_", 0.0))),
    }


# -- certificates ----------------------------------------------------------------------------


def weights_are_given(estimator: KernelEstimator) -> bool:
    """Return whether every p is infinite, so that all kernels have the same weight."""
    p = getattr(estimator, "p_", getattr(estimator, "p", None))
    if p is None or len(estimator.kernel_names_) == 1:
        return False
    return bool(np.isinf(as_norm(p) if np.ndim(p) == 0 else p).all())


def proof_of(estimator: KernelEstimator) -> dict[str, Any] | None:
    """Return the certificate and the convergence history."""
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        return None
    convex = hasattr(certificate, "dual")
    given_weights = convex and weights_are_given(estimator)
    claim = _in_words(certificate.claim)
    if given_weights:
        claim = "At p = ∞ the weights are given: the optimum is that of the model with equal ones."
    contents: dict[str, Any] = {
        "certificate": {
            "status": certificate.status,
            "converged": bool(certificate.converged),
            "message": certificate.message,
            "claim": claim,
            "rel_gap": float(certificate.rel_gap),
            # A gap is known up to its rounding error, and may even be negative by it.
            "bound": max(
                float(certificate.rel_gap), float(getattr(certificate, "rel_rounding", 0.0))
            ),
            "tol": float(certificate.tol),
            "numbers": [
                {"name": title, "value": float(getattr(certificate, name))}
                for name, title in _NUMBERS.items()
                if hasattr(certificate, name)
            ],
        },
        "converged": bool(certificate.converged),
        "convex": convex,
        "question": _question(estimator, convex),
        "given_weights": given_weights,
    }
    if hasattr(estimator, "approximation_errors_"):
        given = getattr(estimator, "approximation", None)
        if isinstance(given, str):
            given = BY_NAME.get(given, BY_NAME["nystrom"])()  # by "auto"
        contents["approximate"] = type(given).__name__
    for attribute in ("solver_", "n_iter_", "n_inner_solves_"):
        if hasattr(estimator, attribute):
            contents[attribute.strip("_")] = getattr(estimator, attribute)
    history = getattr(estimator, "history_", {})
    measure = next((name for name in ("rel_gap", "gradient_norm") if name in history), None)
    if measure is not None and len(history[measure]) > 1:
        contents["history"] = {
            "attribute": measure,
            "measure": _NUMBERS[measure],
            "n_inner_solves": history["n_inner_solves"],
            "values": history[measure],
            "machines": history.get("machine", [0] * len(history[measure])),
        }
    return contents


def _in_words(claim: str) -> str:
    """Replace names of attributes in the claim of a certificate."""
    for name, words in _WORDS.items():
        claim = claim.replace(name, words)
    return claim.replace("`", "")


def _question(estimator: KernelEstimator, convex: bool) -> str:
    """Return the question that the certificate answers.

    If a rule sets the weights, the certificate is about the machine.
    """
    if not convex:
        return "Did the descent converge?"
    if hasattr(estimator, "estimator_"):
        return "Is the machine at its optimum?"
    return "Are these the best weights?"


# -- model selection -------------------------------------------------------------------------


def choice_of(estimator: KernelEstimator) -> dict[str, Any] | None:
    """Return the parameters chosen by cross-validation and the scores of all candidates."""
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return None
    n_splits = estimator.n_splits_
    first = results if isinstance(results, dict) else results[0]
    n_points = len(first["params"])
    contents: dict[str, Any] = {
        "n_points": n_points,
        "n_splits": n_splits,
        "judged_by": counted(n_splits, "fold") if n_splits > 1 else "held-out samples",
        "parameters": [name.removeprefix("param_") for name in first if name.startswith("param_")],
        "caveat": (
            f"The score of the chosen candidate is the best of {n_points} and so slightly too "
            "high. Predictions of held-out samples estimate the score on new ones."
            if n_points > 1
            else "There was nothing to choose."
        ),
    }
    if isinstance(results, dict):
        contents["chosen"] = [_chosen(estimator, contents["parameters"], None)]
        contents["edges"] = [
            _LETTERS.get(name, name)
            for name in _OPEN_ENDED
            if f"param_{name}" in results and _is_at_edge(estimator, name, results)
        ]
        contents["curve"] = ValidationDisplay.of_estimator(estimator).data()
        return contents
    kind = "label" if hasattr(estimator, "n_labels_") else "target"
    contents["chosen"] = [
        {"name": f"{kind} {k}", **_chosen(estimator, contents["parameters"], k)}
        for k in range(len(results))
    ]
    return contents


def _is_at_edge(estimator: KernelEstimator, name: str, results: dict[str, Any]) -> bool:
    values = np.unique(results[f"param_{name}"])
    values = values[~np.isnan(values)]
    return len(values) > 1 and getattr(estimator, f"{name}_") in values[[0, -1]]


def _text(value: float | str) -> str:
    """Return a chosen value as text; the norm of weights of largest evidence is NaN."""
    if isinstance(value, str):
        return value
    if np.isnan(value):
        return "evidence"
    return "∞" if np.isinf(value) else f"{value:.4g}"


def _chosen(
    estimator: KernelEstimator, parameters: list[str], which: int | None
) -> dict[str, Any]:
    """Return the chosen values, as text, and their score."""

    def value(name: str) -> Any:
        values = getattr(estimator, name)
        return values if which is None else values[which]

    return {
        "values": [_text(value(f"{name}_")) for name in parameters],
        "score": float(value("best_score_")),
    }
