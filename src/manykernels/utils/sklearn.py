"""Private names of scikit-learn that this package uses, imported in one place.

scikit-learn may move these between releases; then only this file changes.
"""

import sys
import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics._scorer import _MultimetricScorer as MultimetricScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._indexing import _get_column_indices as get_column_indices
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads as openmp_n_threads
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_y
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BaseComposition",
    "HasMethods",
    "Interval",
    "MultimetricScorer",
    "Options",
    "StrOptions",
    "VisualBlock",
    "check_sample_weight",
    "check_y",
    "get_column_indices",
    "num_samples",
    "openmp_n_threads",
    "safe_indexing",
    "safe_split",
]


def sample_weights(sample_weight: ArrayLike | None, X: object) -> np.ndarray:
    """Return sample weights of the rows of `X` as float64, by default ones; none is negative."""
    return check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


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
