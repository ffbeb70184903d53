"""Private names of scikit-learn that this package uses, imported in one place.

scikit-learn may move these between releases; then only this file changes.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.metrics._scorer import _MultimetricScorer as MultimetricScorer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._indexing import _get_column_indices as get_column_indices
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads as openmp_n_threads
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
from sklearn.utils._set_output import _get_output_config, _wrap_data_with_container
from sklearn.utils._set_output import _SetOutputMixin as SetOutputMixin
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_y
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BaseComposition",
    "HasMethods",
    "Interval",
    "MultimetricScorer",
    "Options",
    "SetOutputMixin",
    "StrOptions",
    "VisualBlock",
    "check_classes",
    "check_sample_weight",
    "check_y",
    "get_column_indices",
    "groups_for",
    "in_output_container",
    "num_samples",
    "openmp_n_threads",
    "safe_indexing",
    "safe_split",
]


def sample_weights(sample_weight: ArrayLike | None, X: object) -> np.ndarray:
    """Return sample weights of the rows of `X` as float64, by default ones; none is negative."""
    if (
        isinstance(sample_weight, np.ndarray)
        and (sample_weight.dtype, sample_weight.shape) == (np.float64, (num_samples(X),))
        and sample_weight.any()
        and np.all((sample_weight >= 0.0) & (sample_weight < np.inf))
    ):
        return sample_weight  # as most are that kernels are given; the checks take much longer
    return check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def check_classes(y: ArrayLike) -> None:
    """Raise a ValueError unless `y` holds classes: strings only, or no strings."""
    values = y.ravel().tolist() if isinstance(y, np.ndarray) and y.dtype == object else []
    strings = [isinstance(value, str) for value in values]
    if any(strings) and not all(strings):
        string, other = strings.index(True), strings.index(False)
        raise ValueError(
            f"y holds strings and others, such as {values[string]!r} at row {string} and "
            f"{values[other]!r} at row {other}: make them all strings, y.astype(str)."
        )
    check_classification_targets(y)


# -- Groups of samples as an argument of ``fit`` --------------------------------------------------


def groups_for(estimator: Any, groups: np.ndarray | None) -> dict[str, Any]:
    """Return the arguments by which ``estimator.fit`` takes groups; none if it takes no groups."""
    if groups is None:
        return {}
    if "groups" in inspect.signature(estimator.fit).parameters:
        return {"groups": groups}
    if get_config()["enable_metadata_routing"]:
        asks = get_routing_for_object(estimator).consumes("fit", ["groups"])
        return {"groups": groups} if asks else {}
    if isinstance(estimator, BaseSearchCV):
        # Other splitters say that they ignore groups.
        return {"groups": groups} if isinstance(estimator.cv, GroupsConsumerMixin) else {}
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        step = groups_for(last, groups) if hasattr(last, "fit") else {}
        return {f"{name}__{argument}": value for argument, value in step.items()}
    return {}


# -- Results of ``transform`` ---------------------------------------------------------------------


def in_output_container(
    estimator: Any, values: np.ndarray, X: object, labels: Callable[[], Any]
) -> Any:
    """Return the transformed rows of X in the container that ``set_output`` asks for.

    `labels` returns the index of a data frame of pandas; None if that of X is to be used.
    """
    if _get_output_config("transform", estimator)["dense"] == "pandas":
        index = labels()
        if index is not None:
            import pandas as pd

            X = pd.DataFrame(index=index)
    return _wrap_data_with_container("transform", values, X, estimator)


# -- Scores ---------------------------------------------------------------------------------------


def scored_targets(name: str) -> str:
    """Return the targets that a score of scikit-learn is for: "numbers", "classes" or neither."""
    if name not in get_scorer_names():
        return ""
    module = get_scorer(name)._score_func.__module__
    kinds = {"_regression": "numbers", "_classification": "classes", "_ranking": "classes"}
    return kinds.get(module.rpartition(".")[2], "")


# -- Warnings at the line of the user's code ------------------------------------------------------


# Packages whose frames may lie between the user's call and the warning.
_BETWEEN = {"manykernels", "sklearn", "joblib"}


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line of user code that called this package.

    Python 3.12 has ``warnings.warn(..., skip_file_prefixes=...)`` for this, Python 3.11 has not.
    """
    # Level 1 is this function, level 2 its caller.
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _package(frame.f_globals) in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
