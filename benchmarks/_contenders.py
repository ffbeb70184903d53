"""What the defaults are compared with, and the defaults: how each is fitted to named tables.

Methods that know no views are given all columns side by side. What they have to choose is chosen
by five folds of the training rows, as in our estimators.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gaussian
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVCCV,
    MKSVRCV,
    MKLogisticCV,
    MKRidge,
    MKRidgeCV,
    kernels_for,
)

Tables = Mapping[str, Any]

# Gamma is that over the mean square of rows: the number of standardised columns, 1 for words.
_GAMMAS = (1 / 16, 1 / 4, 1.0, 4.0)
_PENALTIES = (0.1, 1.0, 10.0, 100.0)
_EPSILONS = (0.03, 0.1, 0.3)
_FOLDS = 5
# In how many training rows a sparse column has entries if boosting is to look at it.
_LEAST_ROWS = 10


@dataclass(frozen=True)
class Contender:
    """A method: its name, and what makes its estimator for training tables."""

    name: str
    make: Callable[[Tables], Any]
    ours: bool = False
    #: Most columns times classes that it is given: more would take minutes for a fit.
    most: float = np.inf

    def takes(self, tables: Tables, n_classes: int) -> bool:
        return sum(table.shape[1] for table in tables.values()) * n_classes <= self.most


@dataclass(frozen=True)
class Score:
    """Accuracy or R², log loss of a classifier, and seconds of one fit."""

    score: float
    log_loss: float | None
    seconds: float


def measure(contender: Contender, tables: Tables, y: np.ndarray, train: Any, test: Any) -> Score:
    """Fit to training rows, with one thread, and score on test rows."""
    X, X_test = ({name: table[rows] for name, table in tables.items()} for rows in (train, test))
    model = contender.make(X)
    if not contender.ours:
        X, X_test = joined(X), joined(X_test)
    elif len(tables) == 1:
        ((_, X), (_, X_test)) = *X.items(), *X_test.items()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of logistic regressions
        start = time.process_time()
        model.fit(X, y[train])
        seconds = time.process_time() - start
        predicted = model.predict(X_test)
    if not hasattr(model, "predict_proba"):
        return Score(float(r2_score(y[test], predicted)), None, seconds)
    probabilities = model.predict_proba(X_test)
    loss = log_loss(y[test], probabilities, labels=model.classes_)
    return Score(float(accuracy_score(y[test], predicted)), float(loss), seconds)


def joined(tables: Tables) -> Any:
    """All columns side by side."""
    parts = list(tables.values())
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_matrix(sparse.hstack(parts))
    return np.hstack(parts)


# -- theirs --------------------------------------------------------------------------------


def _scaler(tables: Tables) -> Any:
    """Standardised columns; counts of words by their frequencies, rows of length one."""
    return TfidfTransformer() if sparse.issparse(joined(tables)) else StandardScaler()


def _gammas(tables: Tables) -> list[float]:
    X = joined(tables)
    n_columns = 1 if sparse.issparse(X) else X.shape[1]
    return [gamma / n_columns for gamma in _GAMMAS]


class TunedSVC(ClassifierMixin, BaseEstimator):
    """Gaussian SVC, C and gamma by five folds; probabilities by Platt's method for the chosen."""

    def __init__(self, gammas: list[float]) -> None:
        self.gammas = gammas

    def fit(self, X: Any, y: np.ndarray) -> Self:
        grid = {"C": _PENALTIES, "gamma": self.gammas}
        self.search_ = GridSearchCV(SVC(), grid, cv=_FOLDS).fit(X, y)
        chosen = SVC(**self.search_.best_params_)
        self.calibrated_ = CalibratedClassifierCV(chosen, cv=_FOLDS, ensemble=False).fit(X, y)
        self.classes_ = self.search_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.search_.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.calibrated_.predict_proba(X)


def tuned_svc(tables: Tables) -> Any:
    return make_pipeline(_scaler(tables), TunedSVC(_gammas(tables)))


def tuned_logistic(tables: Tables) -> Any:
    # As many steps as accuracy needs; more change nothing that is shown.
    model = LogisticRegression(max_iter=200, tol=1e-3)
    search = GridSearchCV(model, {"C": np.logspace(-4, 2, 7)}, scoring="neg_log_loss", cv=_FOLDS)
    return make_pipeline(_scaler(tables), search)


class OftenEnough(TransformerMixin, BaseEstimator):
    """Sparse columns with entries in ten training rows or more, stored densely, for boosting.

    It takes no sparse tables, and minutes for all words of short texts. Dense tables stay.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        self.columns_ = slice(None)
        if sparse.issparse(X):
            self.columns_ = np.flatnonzero((X != 0).sum(axis=0) >= _LEAST_ROWS)
        return self

    def transform(self, X: Any) -> np.ndarray:
        return X[:, self.columns_].toarray() if sparse.issparse(X) else X


def boosting(tables: Tables) -> Any:
    return make_pipeline(OftenEnough(), HistGradientBoostingClassifier(random_state=0))


def extra_trees(tables: Tables) -> Any:
    return make_pipeline(OftenEnough(), ExtraTreesClassifier(300, random_state=0))


def trees_regression(tables: Tables) -> Any:
    return make_pipeline(OftenEnough(), ExtraTreesRegressor(300, random_state=0))


def light_boosting(tables: Tables, kind: str = "LGBMClassifier") -> Any:
    import lightgbm

    model = getattr(lightgbm, kind)(n_jobs=1, random_state=0, verbose=-1)
    return make_pipeline(OftenEnough(), model)


def cat_boosting(tables: Tables, kind: str = "CatBoostClassifier") -> Any:
    import catboost

    options = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
    return make_pipeline(OftenEnough(), getattr(catboost, kind)(**options))


def gaussian_process(tables: Tables) -> Any:
    """One Gaussian kernel and noise, by the likelihood; started twice."""
    n_columns = joined(tables).shape[1]
    kernel = gaussian.ConstantKernel() * gaussian.RBF(np.sqrt(n_columns)) + gaussian.WhiteKernel()
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
    )
    return make_pipeline(StandardScaler(), model)


def _installed(*contenders: tuple[str, Contender]) -> list[Contender]:
    """The contenders whose package is installed."""
    return [contender for package, contender in contenders if find_spec(package)]


def tuned_svr(tables: Tables) -> Any:
    grid = {"C": _PENALTIES, "gamma": _gammas(tables), "epsilon": _EPSILONS}
    search = GridSearchCV(SVR(), grid, cv=_FOLDS)
    scaled = TransformedTargetRegressor(search, transformer=StandardScaler())
    return make_pipeline(_scaler(tables), scaled)


def tuned_ridge(tables: Tables) -> Any:
    return make_pipeline(_scaler(tables), RidgeCV(np.logspace(-3, 4, 15)))


def boosted_regression(tables: Tables) -> Any:
    return make_pipeline(OftenEnough(), HistGradientBoostingRegressor(random_state=0))


# -- ours ----------------------------------------------------------------------------------


def ours(name: str, estimator: Any, **options: Any) -> Contender:
    """One of ours: whatever is not an option is as it is by default, the kernels too."""
    return Contender(name, lambda tables: estimator(**options), ours=True)


def without_relevance(tables: Tables) -> Any:
    """Return MKRidgeCV without the kernel whose scales of columns are learnt from targets."""
    (table,) = tables.values()
    return MKRidgeCV(kernels_for(table))


CLASSIFIERS = [
    ours("MKFDACV", MKFDACV),
    ours("MKSVCCV", MKSVCCV),
    ours("MKLogisticCV", MKLogisticCV),
    ours("plain sum", MKFDACV, ps=[np.inf]),
    ours("evidence", MKFDA, p="evidence"),
    Contender("tuned SVC", tuned_svc),
    Contender("tuned logistic", tuned_logistic),
    Contender("boosting", boosting),
    Contender("extra trees", extra_trees),
    *_installed(
        ("lightgbm", Contender("LightGBM", light_boosting)),
        ("catboost", Contender("CatBoost", cat_boosting, most=700)),
    ),
]
REGRESSORS = [
    ours("MKRidgeCV", MKRidgeCV),
    ours("MKSVRCV", MKSVRCV),
    ours("plain sum", MKRidgeCV, ps=[np.inf]),
    ours("evidence", MKRidge, p="evidence"),
    Contender("without RelevanceRBF", without_relevance, ours=True),
    Contender("tuned SVR", tuned_svr),
    Contender("tuned ridge", tuned_ridge),
    Contender("boosting", boosted_regression),
    Contender("extra trees", trees_regression),
    Contender("Gaussian process", gaussian_process),
    *_installed(
        ("lightgbm", Contender("LightGBM", partial(light_boosting, kind="LGBMRegressor"))),
        ("catboost", Contender("CatBoost", partial(cat_boosting, kind="CatBoostRegressor"))),
    ),
]
