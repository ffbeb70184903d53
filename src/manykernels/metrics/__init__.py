"""Measures that the papers report, scores of survival models, and tests of two methods.

The measures of classifiers are means over classes, so that a rare class counts as much as a
frequent one. Each is a function of labels, or of labels and scores. The scores of survival models
are functions of events, times and predicted risks or probabilities. All are also scorers for
``scoring=``:

>>> from sklearn.datasets import load_iris
>>> from sklearn.model_selection import cross_val_score
>>> from manykernels import MKFDA
>>> from manykernels.metrics import SCORERS
>>> X, y = load_iris(return_X_y=True)
>>> cross_val_score(MKFDA(), X, y, scoring=SCORERS["mean_class_mcc"], cv=3).round(1)
array([1. , 0.9, 0.9])
"""

from .classwise import CLASS_SCORERS, mean_average_precision, mean_class_accuracy, mean_class_mcc
from .comparison import corrected_t_test, five_by_two_cv_f_test
from .survival import (
    SURVIVAL_SCORERS,
    brier_score,
    concordance_index,
    concordance_index_ipcw,
    concordance_interval,
    integrated_brier_score,
)

#: Scorers by the names of the measures: ``GridSearchCV(model, grid, scoring=SCORERS[name])``. Of
#: classifiers: "mean_class_accuracy", "mean_class_mcc", "mean_average_precision". Of survival
#: models: "concordance_index", "concordance_index_ipcw", "neg_integrated_brier_score",
#: "partial_likelihood". Estimators with CV in their names take these names as `scoring`.
SCORERS = {**CLASS_SCORERS, **SURVIVAL_SCORERS}

__all__ = [
    "SCORERS",
    "brier_score",
    "concordance_index",
    "concordance_index_ipcw",
    "concordance_interval",
    "corrected_t_test",
    "five_by_two_cv_f_test",
    "integrated_brier_score",
    "mean_average_precision",
    "mean_class_accuracy",
    "mean_class_mcc",
]
