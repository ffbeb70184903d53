"""Every private name of scikit-learn that the package relies on, imported in one place.

scikit-learn may move these between releases; then this file changes and no other.
"""

from sklearn.metrics._scorer import _MultimetricScorer as MultimetricScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._indexing import _get_column_indices as get_column_indices
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads as openmp_n_threads
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_y
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BaseComposition",
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
