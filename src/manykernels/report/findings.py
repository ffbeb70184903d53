"""Plain values: what JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector

from ..display import ValidationDisplay
from ..estimators.inputs import MatrixSource, groups_of, matched_by_label
from ..estimators.regional import SourceWithShares
from ..inspection.intervals import Intervals, Mean
from ..inspection.study import LeftOutAnswers, left_out_answers
from ..kernels import KernelStack
from ..kernels.completion import views_of_kernels
from ..kernels.views import row_keys
from ..metrics.classwise import effective_number, in_use
from ..scale.blocks import comes_in_blocks
from ..utils.folds import about_repeats
from ..utils.sklearn import num_samples, safe_indexing
from ..utils.versions import shortened


def plain(value: Any) -> Any:
    """Dicts, lists, strings, numbers, booleans and None; numbers that are not finite are None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    return str(value)


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number and what it counts, such as "1 row" or "12 rows"."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def listed(names: Iterable[Any]) -> str:
    """Names as in a sentence, long ones shortened: "a", "a and b", "a, b and c"."""
    *first, last = (shortened(str(name)) for name in names)
    return f"{', '.join(first)} and {last}" if first else last


# -- The samples of a report as the model reads them, and whether it has learnt from them ---------
#
# A score on training samples says little about new ones. So rows of X are compared with those that
# the model keeps: all training rows, support vectors or landmarks.


@dataclass(frozen=True)
class Samples:
    """What a report was given.

    Attributes
    ----------
    data : table, Views or KernelStack
        X, checked, its columns and views in the order of training.
    y : ndarray or None
    new : ndarray of bool, (n_rows,), or None
        Rows that the model has not learnt from; None where nothing tells.
    complete : bool
        Whether the rows are those of training, all of them and in this order, so that what the
        model says of left-out rows is about them.
    """

    data: Any
    y: np.ndarray | None
    new: np.ndarray | None
    complete: bool

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, new: bool | None) -> Samples:
        """X and y for a fitted estimator; `new` is None if it is to be found out."""
        if comes_in_blocks(X):
            raise ValueError(
                "report needs X in memory: pass a sample of the rows, or report(estimator) alone."
            )
        raw = X
        X, y, _ = matched_by_label(estimator, X, y)
        source = training_source(estimator)
        data = source.read(estimator, X)
        n_rows = int(num_samples(data))
        targets = None if y is None else _dense(y)
        if targets is not None and len(targets) != n_rows:
            raise ValueError(
                f"X has {n_rows} rows, but y has {len(targets)}: pass a target for every row."
            )
        if new is not None:
            return cls(data, targets, np.full(n_rows, bool(new)), not new)
        if isinstance(data, KernelStack):
            seen = _is_gram(source, raw, data)
            return cls(data, targets, np.full(n_rows, not seen), seen)
        kept = _kept_rows(estimator)
        if kept is None:
            return cls(data, targets, None, False)
        keys, known = row_keys(data), row_keys(kept)
        every = set(known)
        fresh = np.array([key not in every for key in keys])
        if _keeps_all(estimator):
            return cls(data, targets, fresh, keys == known)
        # Of support vectors, or landmarks, other training rows cannot be told: if all of them are
        # among the rows these are the training samples, and if some are nothing is known.
        if every <= set(keys):
            return cls(data, targets, np.zeros(n_rows, bool), True)
        return cls(data, targets, fresh if fresh.all() else None, False)

    def __len__(self) -> int:
        return int(num_samples(self.data))

    def rows(self, rows: np.ndarray) -> Any:
        """Some of the rows, as the methods of the estimator take them."""
        if isinstance(self.data, KernelStack):
            return self.data[rows]
        return safe_indexing(self.data, rows)


def training_source(estimator: Any) -> Any:
    """What a fitted estimator keeps of the training samples, without shares in given regions."""
    source = estimator._predictor.source
    return source.source if isinstance(source, SourceWithShares) else source


def _dense(y: Any) -> np.ndarray:
    return np.asarray(y.todense()) if sparse.issparse(y) else np.asarray(y)


def _is_gram(source: MatrixSource, raw: Any, stack: KernelStack) -> bool:
    """Whether kernel matrices are those between the training samples themselves."""
    if stack.shape[0] != source.width:
        return False
    if isinstance(raw, KernelStack):
        return bool(raw.gram)
    matrix = stack.kernel(0)
    return bool(np.allclose(matrix, matrix.T, equal_nan=True))


def _keeps_all(estimator: Any) -> bool:
    return hasattr(estimator, "X_fit_") and not hasattr(estimator, "support_")


def _kept_rows(estimator: Any) -> Any:
    """Training rows that the estimator keeps; None if there are none."""
    if hasattr(estimator, "approximation_errors_"):
        return getattr(estimator, "landmarks_", None)
    return training_source(estimator).table


# -- What a model has learnt: kernel weights, gates, regions, and the proof that goes with them ---


# What else an estimator may know of every kernel: the attribute, and the title of a column.
_OF_KERNELS = {
    "approximation_errors_": "error of its approximation",
    "scores_": "held-out score alone",
    "alignments_": "alignment with y",
}
# Parameters of regularisation, whose grids could always be wider, and their letters.
_OPEN_ENDED = ("reg", "C")
_LETTERS = {"reg": "λ"}
# Numbers of certificates, and what they are called; each kind has some of them.
_NUMBERS = {
    "primal": "objective",
    "dual": "lower bound on the optimum",
    "objective": "objective",
    "rel_gap": "relative duality gap",
    "rel_rounding": "its rounding error",
    "gradient_norm": "relative norm of the gradient",
    "change": "last relative decrease",
    "tol": "tolerance asked for",
}


def kernel_views(estimator: Any) -> list[str]:
    """The view that each kernel is of; without views, its own name."""
    names = list(estimator.kernel_names_)
    source = training_source(estimator)
    if not hasattr(source, "union"):
        return names
    return list(views_of_kernels(source.union.kernels_, source.table))


def weights_of(estimator: Any) -> dict[str, Any]:
    """Kernel weights, of everything that has weights of its own, and their shares."""
    names, views = list(estimator.kernel_names_), kernel_views(estimator)
    gated = not hasattr(estimator, "weights_")
    weights = np.asarray(estimator.plain_weights_ if gated else estimator.weights_, dtype=float)
    # Transforms such as bands make several kernels of one, and only they have names then.
    views = views if len(views) == len(names) == weights.shape[-1] else names
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
    found: dict[str, Any] = {
        "kernels": names,
        "views": views,
        "groups": groups,
        "mean_shares": mean,
        "view_shares": [
            {"name": view, "share": float(mean[[own == view for own in views]].sum())}
            for view in dict.fromkeys(views)
        ],
        "n_kernels": len(names),
        "effective": float(effective_number(mean)) if mean.max() > 0.0 else 0.0,
        "in_use": int(np.count_nonzero(in_use(mean))) if mean.max() > 0.0 else 0,
        "columns": [
            {"title": title, "values": getattr(estimator, attribute)}
            for attribute, title in _OF_KERNELS.items()
            if np.shape(getattr(estimator, attribute, ())) == (len(names),)
        ],
        "of_gate": gated,
    }
    p = getattr(estimator, "p_", getattr(estimator, "p", None))
    if p is not None and np.ndim(p) == 0:
        found["p"] = "∞" if np.isinf(p) else f"{p:g}"
    return found


def _titles(estimator: Any, weights: np.ndarray) -> list[str]:
    """What each vector of weights is for; an empty name if there is one."""
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
        return [f"class {one}, {region}" for one in classes for region in regions]
    if regions:
        return regions if len(regions) > 1 else [""]
    if hasattr(estimator, "estimators_"):
        return [f"label {k}" for k in range(len(weights))]
    if classes is not None and len(classes) == len(weights):
        return [f"class {one}" for one in classes]
    return [f"target {k}" for k in range(len(weights))]


def gate_of(estimator: Any) -> dict[str, Any] | None:
    """What the gate makes of each kernel on the training samples."""
    if not hasattr(estimator, "region_summary"):
        return None
    rows = estimator.region_summary()
    n_kernels = len(estimator.kernel_names_)
    return {
        "rows": rows,
        "several": len(rows) > n_kernels,
        "plain": bool(np.isinf(getattr(estimator, "penalty_", 0.0))),
    }


# -- proof -----------------------------------------------------------------------------------


def proof_of(estimator: Any) -> dict[str, Any] | None:
    """Certificates and the way to them."""
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        return None
    several = certificate if isinstance(certificate, list) else [certificate]
    labelled = isinstance(certificate, list)
    found: dict[str, Any] = {
        "certificates": [
            {
                "name": f"label {k}" if labelled else "",
                "status": one.status,
                "converged": bool(one.converged),
                "message": one.message,
                "claim": one.claim.replace("`", ""),
                "rel_gap": float(one.rel_gap),
                # A gap is known up to its rounding error, and may even be negative by it.
                "bound": max(float(one.rel_gap), float(getattr(one, "rel_rounding", 0.0))),
                "tol": float(one.tol),
                "numbers": [
                    {"name": title, "value": float(getattr(one, name))}
                    for name, title in _NUMBERS.items()
                    if hasattr(one, name)
                ],
            }
            for k, one in enumerate(several)
        ],
        "converged": all(bool(one.converged) for one in several),
        "convex": hasattr(several[0], "dual"),
        "question": _question(estimator, hasattr(several[0], "dual")),
    }
    if hasattr(estimator, "approximation_errors_"):
        found["approximate"] = type(getattr(estimator, "approximation", None)).__name__
    for attribute in ("solver_", "n_iter_", "n_inner_solves_"):
        if hasattr(estimator, attribute):
            found[attribute.strip("_")] = getattr(estimator, attribute)
    history = getattr(estimator, "history_", {})
    measure = next((name for name in ("rel_gap", "gradient_norm") if name in history), None)
    if measure is not None and len(history[measure]) > 1:
        found["history"] = {
            "attribute": measure,
            "measure": _NUMBERS[measure],
            "n_inner_solves": history["n_inner_solves"],
            "values": history[measure],
            "machines": history.get("machine", [0] * len(history[measure])),
        }
    return found


def _question(estimator: Any, convex: bool) -> str:
    """What a certificate answers. Where a rule has set the weights it is about the machine."""
    if not convex:
        return "Did the descent end?"
    if hasattr(estimator, "estimator_"):
        return "Is the machine at its optimum?"
    return "Are these the best weights?"


# -- choice ----------------------------------------------------------------------------------


def choice_of(estimator: Any) -> dict[str, Any] | None:
    """What was chosen by cross-validation, and the scores of the other candidates."""
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return None
    models = getattr(estimator, "estimators_", None)
    n_splits = models[0].n_splits_ if models else estimator.n_splits_
    one = results if isinstance(results, dict) else results[0]
    n_points = len(one["params"])
    found: dict[str, Any] = {
        "n_points": n_points,
        "n_splits": n_splits,
        "judged_by": counted(n_splits, "fold")
        if n_splits > 1
        else "samples that were left or held out",
        "parameters": list(one["params"][0]),
        "caveat": (
            f"The score of the chosen point is the best of {n_points} and so a little too high. "
            "What to expect of new samples is told by the predictions of held-out rows."
            if n_points > 1
            else "There was one candidate."
        ),
    }
    if isinstance(results, dict):
        found["chosen"] = [_chosen(estimator, found["parameters"], None)]
        found["edges"] = [
            _LETTERS.get(name, name)
            for name in _OPEN_ENDED
            if f"param_{name}" in results and _is_at_edge(estimator, name, results)
        ]
        found["curve"] = ValidationDisplay.of_estimator(estimator).data()
        return found
    kind = "label" if models else "target"
    found["chosen"] = [
        {"name": f"{kind} {k}", **_chosen(estimator, found["parameters"], k)}
        for k in range(len(results))
    ]
    return found


def _is_at_edge(estimator: Any, name: str, results: dict[str, Any]) -> bool:
    values = np.unique(results[f"param_{name}"])
    return len(values) > 1 and getattr(estimator, f"{name}_") in values[[0, -1]]


def _chosen(estimator: Any, parameters: list[str], which: int | None) -> dict[str, Any]:
    """Chosen values, as text, and their score."""

    def value(name: str) -> float:
        found = getattr(estimator, name)
        return float(found if which is None else found[which])

    return {
        "values": ["∞" if np.isinf(v := value(f"{name}_")) else f"{v:.4g}" for name in parameters],
        "score": value("best_score_"),
    }


# -- How good predictions are, on samples that the model has not learnt from and on no others -----
#
# Left-out results of training samples are used where the model has honest ones. Otherwise it is
# judged by rows of X that are new to it. A score on training samples is never given.


#: Confidence of all intervals of a report.
CONFIDENCE = 0.95
# Most classes whose confusion is shown as a table, and else how many of the largest confusions.
_MOST_CLASSES, _CONFUSIONS = 20, 10
# Samples for each point of a calibration curve: fewer tell hardly anything of a share. With fewer
# than three points there is no curve.
_PER_BIN, _FEWEST_BINS, _MOST_BINS = 10, 3, 10
# Points of a picture of predictions: more cover each other and make a large file.
_MOST_POINTS = 400
# Least probability whose logarithm is taken: that of a certain error would be infinite.
_LEAST_PROBABILITY = 1e-15


@dataclass(frozen=True)
class Answers:
    """Answers about samples that a model has not learnt from, and what is true of them.

    Attributes
    ----------
    y, predictions : ndarray of shape (n_rows,), or (n_rows, n_targets)
    probabilities : ndarray of shape (n_rows, n_classes) or None
    how : str
        Where they are from.
    groups : ndarray of int, (n_rows,)
        Rows of one group were left out together, and are not independent.
    n_folds : int or None
        Number of models that were each learnt without a part of the samples; None if samples are
        judged by one model that has seen none of them.
    """

    y: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray | None
    how: str
    groups: np.ndarray
    n_folds: int | None = None

    def mean(self, losses: np.ndarray, hit_or_miss: bool = False) -> Mean:
        """Mean of the losses of single samples, with its interval."""
        # What a model of all other samples has seen of all; nothing is shared by new ones.
        share = np.inf if self.n_folds is None else 1.0 - 1.0 / self.n_folds
        ones = np.ones(len(losses))
        return Intervals(ones, CONFIDENCE, share, hit_or_miss, groups=self.groups).of(losses)


# -- answers ---------------------------------------------------------------------------------


def answers_about(estimator: Any, samples: Samples) -> Answers | str:
    """Honest answers, or a sentence that says why there are none."""
    name = type(estimator).__name__
    if samples.y is None:
        return "Predictions are not judged without y."
    if samples.new is None:
        return (
            f"Predictions are not judged: {name} does not keep all training rows, so that these "
            "may be new or not. Pass new=True or new=False."
        )
    if samples.new.any():
        return _about_new(estimator, samples)
    left_out = _left_out(estimator)
    if left_out is None:
        return (
            f"Predictions are not judged: the model has learnt from these samples, and {name} has "
            "no honest answers about samples that were left out. Pass samples that it has not "
            "seen."
        )
    rows = np.arange(len(samples)) if left_out.rows is None else left_out.rows
    rows = rows[rows < len(samples)]
    y = samples.y[rows]
    if not samples.complete or len(y) != len(left_out.predictions):
        return (
            "Predictions are not judged: the model has learnt from these samples, and its answers "
            "about left-out ones are those of all training samples in their order, without rows "
            "of weight zero. Pass X and y as they were then, or samples that it has not seen."
        )
    known, groups = left_out.known, groups_of(samples.data)[rows]
    n_splits = getattr(estimator, "n_splits_", 1)
    if hasattr(estimator, "estimators_"):
        n_splits = estimator.estimators_[0].n_splits_
    n_folds = n_splits if n_splits > 1 else len(np.unique(groups))
    how = counted(int(known.sum()), "training sample")
    if n_splits > 1:
        how += f", held out in {n_splits} folds, the parameters of each chosen by the others"
    else:
        how += ", each left out in closed form"
        if hasattr(estimator, "cv_results_"):
            how += ", the parameters chosen with all of them"
    if told := about_repeats(groups):
        how += f"; {told}"
    probabilities = None if left_out.log_proba is None else np.exp(left_out.log_proba)[known]
    predictions = left_out.predictions[known]
    return Answers(y[known], predictions, probabilities, how, groups[known], n_folds)


def _about_new(estimator: Any, samples: Samples) -> Answers:
    assert samples.new is not None
    assert samples.y is not None
    rows = np.flatnonzero(samples.new)
    X = samples.rows(rows)
    probabilities = None
    if is_classifier(estimator) and hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X)
    seen = len(samples) - len(rows)
    how = counted(len(rows), "new sample") + (
        f"; {counted(seen, 'row')} of X equal to training samples left aside" if seen else ""
    )
    groups = groups_of(samples.data)[rows]
    return Answers(samples.y[rows], estimator.predict(X), probabilities, how, groups)


def _left_out(estimator: Any) -> LeftOutAnswers | None:
    """Honest answers about training rows; of several labels, the probabilities of each."""
    models = getattr(estimator, "estimators_", None)
    if models is None:
        return left_out_answers(estimator)
    answers = [left_out_answers(model) for model in models]
    if any(one is None or one.log_proba is None for one in answers):
        return None
    logs = np.column_stack([one.log_proba[:, 1] for one in answers])  # type: ignore[union-attr,index]
    known = np.all([one.known for one in answers], axis=0)  # type: ignore[union-attr]
    return LeftOutAnswers((logs > np.log(0.5)).astype(int), logs, known, None)


# -- scores ----------------------------------------------------------------------------------


def judgement(estimator: Any, samples: Samples) -> dict[str, Any] | str:
    """The part of a report about predictions, or a sentence that says why there is none."""
    if is_outlier_detector(estimator):
        return _of_novelties(estimator, samples)
    answers = answers_about(estimator, samples)
    if isinstance(answers, str):
        return answers
    if not len(answers.y):
        return "Predictions are not judged: no sample has a left-out answer."
    common = {"how": answers.how, "n_samples": len(answers.y), "confidence": CONFIDENCE}
    if hasattr(estimator, "estimators_"):
        return {**common, **_of_labels(answers)}
    if is_classifier(estimator):
        return {**common, **_of_classes(estimator.classes_, answers)}
    return {**common, **_of_numbers(answers)}


def _score(name: str, mean: Mean) -> dict[str, Any]:
    return {"name": name, "value": mean.value, "low": mean.low, "high": mean.high}


def _of_classes(classes: np.ndarray, answers: Answers) -> dict[str, Any]:
    y, predictions = answers.y, answers.predictions
    # Classes that the model does not know may be among new samples.
    labels = np.array([*classes, *np.setdiff1d(y, classes)])
    true = np.array([int(np.flatnonzero(labels == one)[0]) for one in y])
    said = np.array([int(np.flatnonzero(labels == one)[0]) for one in predictions])
    table = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(table, (true, said), 1)
    wrong = (true != said).astype(float)
    sizes, named = table.sum(axis=1), table.sum(axis=0)
    hits = np.diag(table)
    recalls = hits[sizes > 0] / sizes[sizes > 0]
    scores = [
        _score("accuracy", answers.mean(wrong, hit_or_miss=True).times(-1.0, 1.0)),
        {"name": "mean recall of the classes", "value": float(recalls.mean())},
    ]
    found: dict[str, Any] = {
        "scores": scores,
        "baseline": {
            "name": "always the most frequent class",
            "value": float(sizes.max() / sizes.sum()),
        },
        "classes": [
            {
                "name": str(label),
                "n": int(sizes[k]),
                "recall": hits[k] / sizes[k] if sizes[k] else None,
                "precision": hits[k] / named[k] if named[k] else None,
            }
            for k, label in enumerate(labels)
        ],
    }
    if len(labels) <= _MOST_CLASSES:
        found["confusion"] = table
    else:
        off = table - np.diag(hits)
        order = np.argsort(-off, axis=None, kind="stable")[:_CONFUSIONS]
        pairs = [np.unravel_index(k, off.shape) for k in order]
        found["confusions"] = [
            {"true": str(labels[i]), "predicted": str(labels[j]), "n": int(off[i, j])}
            for i, j in pairs
            if off[i, j]
        ]
    if answers.probabilities is not None and len(labels) == len(classes):
        chances = answers.probabilities
        losses = -np.log(np.clip(chances[np.arange(len(true)), true], _LEAST_PROBABILITY, None))
        scores.append(_score("log loss", answers.mean(losses)))
        if len(classes) == 2:
            curve = calibration(chances[:, 1], true == 1)
            about = f"probability of {classes[1]}"
        else:
            curve = calibration(chances.max(axis=1), true == said)
            about = "probability of the predicted class"
        if curve:
            found["calibration"] = {"of": about, "bins": curve}
    return found


def calibration(chances: np.ndarray, happened: np.ndarray) -> list[dict[str, Any]]:
    """What was said and what happened, in groups of samples with similar probabilities.

    Groups are equally large. An empty list if there are too few samples.
    """
    n_bins = min(_MOST_BINS, len(chances) // _PER_BIN)
    if n_bins < _FEWEST_BINS:
        return []
    order = np.argsort(chances, kind="stable")
    bins = []
    for rows in np.array_split(order, n_bins):
        share = Intervals(np.ones(len(rows)), CONFIDENCE, np.inf, True).of(
            happened[rows].astype(float)
        )
        bins.append(
            {
                "said": float(chances[rows].mean()),
                "happened": share.value,
                "low": share.low,
                "high": share.high,
                "n": len(rows),
            }
        )
    return bins


def _of_labels(answers: Answers) -> dict[str, Any]:
    rows = []
    for k, (y, said) in enumerate(zip(answers.y.T, answers.predictions.T, strict=True)):
        accuracy = answers.mean((y != said).astype(float), hit_or_miss=True).times(-1.0, 1.0)
        share = float(np.mean(y != 0))
        rows.append(
            {
                "name": str(k),
                "share": share,
                "baseline": max(share, 1.0 - share),
                **_score("accuracy", accuracy),
                "label": f"label {k}",
            }
        )
    mean = float(np.mean([row["value"] for row in rows]))
    return {"labels": rows, "scores": [{"name": "mean accuracy of the labels", "value": mean}]}


def _of_numbers(answers: Answers) -> dict[str, Any]:
    y = answers.y.reshape(len(answers.y), -1).astype(float)
    said = answers.predictions.reshape(y.shape)
    targets = []
    for k in range(y.shape[1]):
        errors = said[:, k] - y[:, k]
        variance = float(np.var(y[:, k]))
        scores = [
            {"name": "root mean square error", "value": float(np.sqrt(np.mean(errors**2)))},
            _score("mean absolute error", answers.mean(np.abs(errors))),
        ]
        if variance > 0.0:
            # As in view_importance, R² takes the variance of y as given.
            scores.insert(0, _score("R²", answers.mean(errors**2 / variance).times(-1.0, 1.0)))
        step = -(-len(y) // _MOST_POINTS)
        points = np.column_stack([y[::step, k], said[::step, k]])
        targets.append(
            {
                "name": f"target {k}" if y.shape[1] > 1 else "",
                "scores": scores,
                "deviation": float(np.sqrt(variance)),
                "points": points,
                "every": step,
                "errors": np.quantile(errors, [0.05, 0.25, 0.5, 0.75, 0.95]),
            }
        )
    return {
        "targets": targets,
        "scores": targets[0]["scores"] if len(targets) == 1 else _means_of(targets),
        "baseline": {"name": "always the mean", "value": 0.0},
    }


def _means_of(targets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = [score["value"] for one in targets for score in one["scores"] if score["name"] == "R²"]
    return [{"name": "mean R² of the targets", "value": float(np.mean(known))}] if known else []


def _of_novelties(estimator: Any, samples: Samples) -> dict[str, Any] | str:
    if samples.new is None or not samples.new.any():
        return (
            "Samples outside are not counted: the model has learnt from these, and ν says how "
            "many of them are left outside. Pass samples that it has not seen."
        )
    rows = np.flatnonzero(samples.new)
    values = estimator.decision_function(samples.rows(rows))
    answers = Answers(values, values, None, "", groups_of(samples.data)[rows])
    outside = answers.mean((values < 0).astype(float), hit_or_miss=True)
    return {
        "how": counted(len(rows), "new sample"),
        "n_samples": len(rows),
        "confidence": CONFIDENCE,
        "scores": [_score("share outside", outside)],
        "decision": np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]),
    }
