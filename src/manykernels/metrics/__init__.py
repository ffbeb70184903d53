"""Measures that the papers report, and tests of whether two methods differ.

The measures are means over classes, so that a rare class counts as much as a frequent one. Each
is a function of labels, or of labels and scores, and also a scorer for ``scoring=``:

>>> from sklearn.datasets import load_iris
>>> from sklearn.model_selection import cross_val_score
>>> from manykernels import MKFDA
>>> from manykernels.metrics import SCORERS
>>> X, y = load_iris(return_X_y=True)
>>> cross_val_score(MKFDA(), X, y, scoring=SCORERS["mean_class_mcc"], cv=3).round(1)
array([1. , 0.9, 0.9])
"""

from .classwise import SCORERS, mean_average_precision, mean_class_accuracy, mean_class_mcc
from .comparison import corrected_t_test, five_by_two_cv_f_test

__all__ = [
    "SCORERS",
    "corrected_t_test",
    "five_by_two_cv_f_test",
    "mean_average_precision",
    "mean_class_accuracy",
    "mean_class_mcc",
]
