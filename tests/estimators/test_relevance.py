"""Kernels that learn from targets, in estimators: learnt anew in every split, or refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_friedman1
from sklearn.metrics import check_scoring

from manykernels import (
    MKFDA,
    MKFDACV,
    MKGLM,
    MKGLMCV,
    MKSVC,
    MKSVCCV,
    KernelUnion,
    MKCox,
    MKLogistic,
    MKLogisticCV,
    MKRidge,
    MKRidgeCV,
    kernels_for,
    load,
    save,
)
from manykernels.kernels import RBF, RelevanceRBF
from manykernels.report import report
from manykernels.scale import Nystrom
from manykernels.survival import survival_array

KERNELS = {"wide": RBF(0.1), "relevance": RelevanceRBF()}


def regression(n_rows=80, n_columns=10, seed=0):
    return make_friedman1(n_rows, n_columns, noise=1.0, random_state=seed)


def noise(seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((100, 50)), rng.standard_normal(100)


# -- no leak ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", [None, 0.01])
def test_noise_is_not_predicted(seed, penalty):
    X, y = noise(seed)
    model = MKRidgeCV(RelevanceRBF(penalty)).fit(X, y)
    assert model.left_out_score_ < 0.1
    assert model.best_score_ < 0.1


def test_noise_would_be_predicted_by_scales_of_all_rows():
    X, y = noise(0)
    K = RelevanceRBF(0.01).fit(X, y)(X)
    assert MKRidgeCV("precomputed").fit(K, y).left_out_score_ > 0.3


ESTIMATORS = {
    "ridge": (MKRidgeCV(KERNELS, ps=[2.0], regs=[0.1]), MKRidge(KERNELS, reg=0.1)),
    "glm": (
        MKGLMCV(KERNELS, loss="poisson", ps=[2.0], regs=[0.1]),
        MKGLM(KERNELS, loss="poisson", reg=0.1),
    ),
    "fda": (MKFDACV(KERNELS, ps=[2.0], regs=[0.1]), MKFDA(KERNELS, reg=0.1)),
    "logistic": (MKLogisticCV(KERNELS, ps=[2.0], regs=[0.1]), MKLogistic(KERNELS, reg=0.1)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_split_learns_from_its_training_rows(name, weighted):
    search, single = ESTIMATORS[name]
    X, y = regression()
    if name == "glm":
        y = np.round(np.maximum(y, 0.0))
    if name in ("fda", "logistic"):
        y = np.digitize(y, np.quantile(y, [0.5]))
        search.set_params(scoring="roc_auc")
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    train, test = np.arange(50), np.arange(50, 80)
    model = search.set_params(cv=[(train, test)], tol=1e-8).fit(X, y, weights)
    single = single.set_params(tol=1e-8)
    single.fit(X[train], y[train], None if weights is None else weights[train])
    # Calibrations of classifiers differ, the order of the samples does not.
    scorer = check_scoring(single, "roc_auc" if name in ("fda", "logistic") else None)
    test_weights = None if weights is None else weights[test]
    expected = scorer(single, X[test], y[test], sample_weight=test_weights)
    assert_allclose(model.best_score_, expected, rtol=1e-4)
    # The model of all rows has scales of all rows.
    whole = model.union_.kernels_[1][1]
    assert not np.allclose(whole.scales_, single.union_.kernels_[1][1].scales_, rtol=1e-3)


def test_score_is_that_of_new_rows():
    X, y = regression(1200, 30)
    model = MKRidgeCV(KERNELS).fit(X[:200], y[:200])
    score = model.score(X[200:], y[200:])
    assert score > 0.9
    assert abs(model.left_out_score_ - score) < 0.03
    plain = MKRidgeCV(KERNELS["wide"]).fit(X[:200], y[:200])
    assert score > plain.score(X[200:], y[200:]) + 0.05


def test_several_classes_and_several_labels():
    X, y = load_iris(return_X_y=True)
    X = np.hstack([X, np.random.default_rng(0).standard_normal((150, 10))])
    model = MKFDACV(KERNELS).fit(X, y)
    scales = model.union_.kernels_[1][1].scales_
    assert scales[[2, 3]].min() > 10.0 * np.median(scales[4:])
    assert model.left_out_score_ > 0.9
    labels = np.column_stack([y == 0, y == 2]).astype(int)
    model = MKFDACV(KERNELS).fit(X, labels)
    assert model.predict(X).shape == labels.shape


def test_validation_set():
    X, y = regression()
    model = MKRidgeCV(KERNELS, ps=[2.0], regs=[0.1], cv=(X[50:], y[50:])).fit(X[:50], y[:50])
    single = MKRidge(KERNELS, reg=0.1).fit(X[:50], y[:50])
    assert_allclose(model.best_score_, single.score(X[50:], y[50:]), rtol=1e-4)


def test_default_kernels_and_one_more():
    X, y = regression()
    union = KernelUnion([*kernels_for(X).kernels, ("relevance", RelevanceRBF())])
    model = MKRidgeCV(union).fit(X, y)
    assert model.kernel_names_[-1] == "relevance"
    assert_array_equal(model.X_fit_, X)


# -- views, files -----------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["mean", "conditional"])
def test_views_that_some_samples_lack(missing):
    X, y = regression(100)
    first = X[:, :5].copy()
    first[::7] = np.nan
    views = {"first": first, "second": X[:, 5:]}
    model = MKRidgeCV(RelevanceRBF(), missing=missing).fit(views, y)
    assert model.kernel_names_ == ["first", "second"]
    assert model.left_out_score_ > 0.3
    train, test = np.arange(60), np.arange(60, 100)
    parts = [{name: table[rows] for name, table in views.items()} for rows in (train, test)]
    options = {"kernels": RelevanceRBF(), "missing": missing}
    search = MKRidgeCV(**options, ps=[2.0], regs=[0.1], cv=[(train, test)], tol=1e-8)
    single = MKRidge(**options, reg=0.1, tol=1e-8).fit(parts[0], y[train])
    assert_allclose(search.fit(views, y).best_score_, single.score(parts[1], y[test]), rtol=1e-4)


def test_file(tmp_path):
    X, y = regression()
    model = MKRidgeCV(KERNELS).fit(X, y)
    save(model, tmp_path / "model.mkl")
    assert_array_equal(load(tmp_path / "model.mkl").predict(X), model.predict(X))


def test_reports_do_not_score_closed_forms():
    X, y = regression()
    page = report(MKRidge(KERNELS).fit(X, y), X, y)
    assert "judged" not in page.data
    remarks = " ".join(page.data["not_computed"])
    assert "kernels that learn from targets have seen them" in remarks
    page = report(MKRidgeCV(KERNELS).fit(X, y), X, y)
    assert "held out in 5 folds" in page.data["judged"]["how"]


# -- what is refused --------------------------------------------------------------------------


def test_refusals():
    X, y = regression()
    for model in (MKSVC(RelevanceRBF()), MKSVCCV(RelevanceRBF())):
        with pytest.raises(ValueError, match=r"got none.*MKRidge, MKFDA, MKLogistic, MKGLM"):
            model.fit(X, y > y.mean())
    with pytest.raises(ValueError, match="without an approximation"):
        MKRidge(RelevanceRBF(), approximation=Nystrom(20)).fit(X, y)
    with pytest.raises(ValueError, match="got none"):
        MKCox(RelevanceRBF()).fit(X, survival_array((y > 10, y - y.min() + 1.0)))
    with pytest.raises(ValueError, match=r"closed-form.*'relevance'.*cv=5"):
        MKRidgeCV(KERNELS, cv="closed-form").fit(X, y)
