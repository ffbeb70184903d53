"""The data sets of ``benchmarks.defaults``: named tables and what is to be predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from benchmarks import _data

Loaded = tuple[dict[str, Any], np.ndarray]


@dataclass(frozen=True)
class DataSet:
    """A data set; its loader gives tables by name, one or several, and targets."""

    title: str
    loader: Callable[[], Loaded]
    regression: bool = False
    #: Least number of rows, so that every class has five to learn from.
    least: int = 0
    #: Number of divisions into halves.
    n_divisions: int = 3

    def splits(self, y: np.ndarray, n_rows: int, n_splits: int) -> list[tuple[Any, Any]]:
        """Training and test halves of at most `n_rows` random rows, classes in equal parts."""
        half = min(len(y), max(n_rows, self.least)) // 2
        kind = ShuffleSplit if self.regression else StratifiedShuffleSplit
        splitter = kind(n_splits, train_size=half, test_size=half, random_state=0)
        return list(splitter.split(np.zeros(len(y)), y))


def _one(loader: Callable[[], tuple[Any, Any]]) -> Callable[[], Loaded]:
    def load() -> Loaded:
        X, y = loader()
        return {"X": X.reshape(len(X), -1)}, y

    return load


def _of_scikit_learn(loader: Callable[..., Any]) -> Callable[[], Loaded]:
    return _one(lambda: loader(return_X_y=True))


def _simulated(which: int, *, noise: float = 1.0, **options: Any) -> Callable[[], Loaded]:
    """One of Friedman's three functions, which scikit-learn simulates."""
    make = getattr(datasets, f"make_friedman{which}")
    return _one(lambda: make(1200, noise=noise, random_state=0, **options))


def _satimage() -> tuple[np.ndarray, np.ndarray]:
    """The training part: the providers ask that the parts be kept apart."""
    X, y = _data.satimage()
    return X[:4435], y[:4435]


def _faces() -> tuple[np.ndarray, np.ndarray]:
    """Every other pixel in every other line."""
    X, y = _data.olivetti()
    return X[:, ::2, ::2], y


SETS = {
    "mfeat": DataSet("Multiple Features, 6 views", _data.mfeat),
    "pendigits": DataSet("Pen digits, 4 views", _data.pendigits),
    "bbc": DataSet("BBC news, 4 views, sparse", _data.bbc),
    "leaves": DataSet("Leaves, 3 views", _data.leaves, least=1000),
    "scene15": DataSet("Scene15, 3 views", _data.scene15),
    "breast_tcga": DataSet("Breast TCGA, 3 views", _data.breast_tcga, n_divisions=10),
    "sonar": DataSet("Sonar", _one(_data.sonar)),
    "ionosphere": DataSet("Ionosphere", _one(_data.ionosphere)),
    "satimage": DataSet("Satimage", _one(_satimage)),
    "olivetti": DataSet("Olivetti faces", _one(_faces)),
    "wine": DataSet("Wine", _of_scikit_learn(datasets.load_wine), n_divisions=10),
    "cancer": DataSet(
        "Breast cancer", _of_scikit_learn(datasets.load_breast_cancer), n_divisions=10
    ),
    "digits": DataSet("Digits", _of_scikit_learn(datasets.load_digits)),
    "heart": DataSet("Heart", _one(_data.heart)),
    "tumours": DataSet("Breast cancer (original)", _one(_data.cancer)),
    "segment": DataSet("Segment", _one(_data.segment), n_divisions=10),
    "usps": DataSet("USPS", _one(_data.usps)),
    "concrete": DataSet("Concrete", _one(_data.concrete), regression=True),
    "diabetes": DataSet("Diabetes", _of_scikit_learn(datasets.load_diabetes), regression=True),
    "white_wine": DataSet("White wine", _one(_data.white_wine), regression=True, n_divisions=10),
    "mcycle": DataSet("Motorcycle", _one(_data.mcycle), regression=True, n_divisions=10),
    "friedman1": DataSet("Friedman 1, 30 columns", _simulated(1, n_features=30), regression=True),
    "friedman2": DataSet("Friedman 2", _simulated(2, noise=125.0), regression=True),
    "friedman3": DataSet("Friedman 3", _simulated(3, noise=0.1), regression=True),
}
