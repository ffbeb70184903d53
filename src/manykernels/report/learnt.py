"""What a model has learnt: kernel weights, gates, regions, and the proof that goes with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..display import ValidationDisplay
from ..kernels.presence import views_of_kernels
from ..metrics.weights import effective_number, in_use
from .plain import counted
from .samples import training_source

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
