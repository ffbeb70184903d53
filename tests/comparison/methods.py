"""Methods for the tests of comparisons: constant ones, perfect ones, and ones that fail."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels


class ByColumn(ClassifierMixin, BaseEstimator):
    """Predicts the number of the class that stands in one column of X; -1: always the first."""

    def __init__(self, column=0, note=None):
        self.column = column
        self.note = note

    def fit(self, X, y):
        self.classes_ = unique_labels(y)
        return self

    def predict(self, X):
        places = np.zeros(len(X), int) if self.column < 0 else X[:, self.column].astype(int)
        return self.classes_[np.minimum(places, len(self.classes_) - 1)]


class Failing(ByColumn):
    """Raises `error` where the training rows lack the row with this number in the last column."""

    def __init__(self, column=0, note=None, without=0, error=ValueError):
        super().__init__(column, note)
        self.without = without
        self.error = error

    def fit(self, X, y):
        if self.without not in X[:, -1]:
            raise self.error(f"row {self.without} is needed")
        return super().fit(X, y)


class Interrupted(ByColumn):
    """Keeps a model although it was interrupted, as localized estimators do."""

    def fit(self, X, y):
        self.finished_ = False
        return super().fit(X, y)


def labelled_table(n=60, n_classes=3, names=None):
    """Column 0 tells the class, column 1 that of another row, the last numbers the rows."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % n_classes
    wrong = rng.permutation(labels)
    X = np.column_stack([labels, wrong, rng.standard_normal(n), np.arange(n)]).astype(float)
    return X, labels if names is None else np.array(names)[labels]
