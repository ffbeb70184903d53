"""Kernels that learn from targets, in estimators: learnt anew in every split, or refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris, make_friedman1
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold

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
    column_importance,
    kernels_for,
    load,
    report,
    save,
    view_importance,
)
from manykernels.kernels import RBF, RelevanceRBF
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


# -- default kernels of MKRidgeCV -------------------------------------------------------------


def mixed(n_rows=120, seed=0):
    """A frame of numbers and categories, and values that depend on three of its columns."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((n_rows, 6)), columns=list("abcdef"))
    table["kind"] = rng.choice(["low", "middle", "high"], n_rows)
    table["other"] = rng.choice(["x", "y"], n_rows)
    y = np.sin(2.0 * table["a"]) * (1.0 + (table["kind"] == "high")) + table["b"] ** 2 / 2.0
    return table, (y + 0.2 * rng.standard_normal(n_rows)).to_numpy()


def has_relevance(model):
    return [name for name in model.kernel_names_ if name.split(":")[-1] == "relevance"]


def test_default_kernels_have_it_where_folds_learn_it():
    X, y = regression(100)
    model = MKRidgeCV().fit(X, y)
    assert model.kernel_names_ == [*dict(kernels_for(X).kernels), "relevance"]
    assert model.kernel_names_ == list(dict(kernels_for(X, relevance=True).kernels))
    explicit = MKRidgeCV(kernels_for(X, relevance=True)).fit(X, y)
    assert_array_equal(model.predict(X), explicit.predict(X))
    assert model.left_out_score_ == explicit.left_out_score_
    assert has_relevance(MKRidgeCV(cv=(X[80:], y[80:])).fit(X[:80], y[:80]))
    for other in (MKRidgeCV(cv="closed-form"), MKRidge(), MKRidgeCV(approximation=Nystrom(20))):
        assert not has_relevance(other.fit(X, y))


def test_default_kernels_predict_where_few_columns_matter():
    X, y = regression(600, 30)
    model = MKRidgeCV().fit(X[:150], y[:150])
    plain = MKRidgeCV(kernels_for(X[:150])).fit(X[:150], y[:150])
    score = model.score(X[150:], y[150:])
    assert score > plain.score(X[150:], y[150:]) + 0.08
    assert abs(model.left_out_score_ - score) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_default_kernels_do_not_predict_noise(seed):
    X, y = noise(seed)
    model = MKRidgeCV().fit(X, y)
    assert model.left_out_score_ < 0.1
    new, truth = noise(seed + 10)
    assert abs(model.score(new, truth)) < 0.4


def test_default_kernels_of_numbers_and_categories(tmp_path):
    X, y = mixed(300)
    model = MKRidgeCV().fit(X[:120], y[:120])
    assert has_relevance(model)
    encoded = model.union_.kernels_[-1][1]
    n_scales = len(encoded.kernel_.scales_)
    assert n_scales == 6 + 3 + 2
    plain = MKRidgeCV(kernels_for(X[:120])).fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > plain.score(X[120:], y[120:]) + 0.05
    # Columns in another order, and a category that is new.
    assert_array_equal(model.predict(X[X.columns[::-1]]), model.predict(X))
    new = X.assign(kind="new")
    with pytest.warns(UserWarning, match="kind"):
        assert np.isfinite(model.predict(new)).all()
    save(model, tmp_path / "model.mkl")
    assert_array_equal(load(tmp_path / "model.mkl").predict(X), model.predict(X))


def test_default_kernels_of_other_tables_do_not_have_it():
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((30, 40))
    bits = rng.integers(0, 2, (30, 20))
    counts = sparse.csr_array(rng.poisson(0.2, (30, 10)) * 1.0)
    names = pd.DataFrame({"name": [f"n{i % 15}" for i in range(30)], "x": range(30)})
    for table in (numbers, bits, counts, numbers[:30, :31]):
        assert "relevance" not in dict(kernels_for(table, relevance=True).kernels)
    for table in (numbers[:, :30], numbers[:, :1], names, names[["name"]]):
        assert "relevance" in dict(kernels_for(table, relevance=True).kernels)
    many = names.assign(name=pd.Categorical([f"n{i % 29}" for i in range(30)]))
    assert "relevance" in dict(kernels_for(many, relevance=True).kernels)
    many["y"] = many["x"]
    assert "relevance" not in dict(kernels_for(many, relevance=True).kernels)
    sequences = pd.DataFrame({"chain": ["".join(rng.choice(list("ACGT"), 30)) for _ in range(30)]})
    assert "relevance" not in dict(kernels_for(sequences, relevance=True).kernels)
    kernel = dict(kernels_for(sequences.assign(x=range(30)), relevance=True).kernels)["relevance"]
    assert kernel.columns == ["x"]
    union = kernels_for({"a": numbers[:, :3], "b": counts}, {"a": None, "b": None}, relevance=True)
    assert [name for name, _ in union.kernels if name.endswith("relevance")] == ["a:relevance"]


def test_default_kernels_of_constant_columns_and_of_one_column():
    X, y = regression(60, 5)
    X[:, 3] = 7.0
    model = MKRidgeCV().fit(X, y)
    assert model.union_.kernels_[-1][1].scales_[3] == 0.0
    x = np.linspace(0, 1, 60)[:, None]
    model = MKRidgeCV().fit(x, np.sin(8 * x[:, 0]))
    assert has_relevance(model)
    assert model.left_out_score_ > 0.99
    with pytest.warns(UserWarning, match="constant"):
        assert_allclose(
            MKRidgeCV().fit(np.ones((20, 2)), y[:20]).predict(X[:2, :2]), y[:20].mean()
        )


def test_default_kernels_with_weights_groups_and_several_targets():
    X, y = regression(90)
    counts = np.arange(90) % 3
    rows = np.repeat(np.arange(90), counts)
    folds = KFold(3)
    splits = list(folds.split(X[counts > 0]))
    options = {"ps": [2.0, "evidence"], "regs": [0.01, 1.0], "tol": 1e-6}
    kept = np.flatnonzero(counts)
    weighted = MKRidgeCV(cv=[(kept[a], kept[b]) for a, b in splits], **options)
    weighted.fit(X, y, counts)
    of_row = np.repeat(np.arange(len(kept)), counts[kept])
    repeats = [
        (np.flatnonzero(np.isin(of_row, a)), np.flatnonzero(np.isin(of_row, b))) for a, b in splits
    ]
    repeated = MKRidgeCV(cv=repeats, **options).fit(X[rows], y[rows])
    assert_allclose(weighted.best_score_, repeated.best_score_, rtol=1e-4)
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-3, atol=1e-3)
    groups = np.arange(90) // 3
    model = MKRidgeCV(**options).fit(X, y, groups=groups)
    assert all(len(np.unique(model.test_fold_[groups == g])) == 1 for g in range(30))
    both = MKRidgeCV(multi_target="separate", **options).fit(X, np.column_stack([y, X[:, 7]]))
    assert both.predict(X).shape == (90, 2)
    assert not has_relevance(both)
    both = MKRidgeCV(**options).fit(X, np.column_stack([y, X[:, 7]]))
    assert has_relevance(both)


def test_views_that_some_samples_lack_and_default_kernels():
    X, y = regression(100)
    first = X[:, :5].copy()
    first[::7] = np.nan
    views = {"first": first, "second": X[:, 5:]}
    model = MKRidgeCV(missing="mean").fit(views, y)
    assert has_relevance(model) == ["first:relevance", "second:relevance"]
    assert model.left_out_score_ > 0.3


# -- importance -------------------------------------------------------------------------------


def test_importance_learns_kernels_anew_in_every_model():
    X, y = noise(0)
    views = {"first": X[:, :25], "second": X[:, 25:]}
    result = view_importance(MKRidgeCV(RelevanceRBF(0.01)), views, y, n_resamples=2)
    assert result.score < 0.1
    assert (result.alone < 0.1).all()
    single = view_importance(MKRidge(RelevanceRBF(0.01)), views, y, n_resamples=0)
    assert single.score < 0.1
    assert single.method.startswith("5 folds")


def test_importance_of_views_with_default_kernels():
    X, y = regression(80, 9)
    views = {"first": X[:, :3], "second": X[:, 3:6], "noise": X[:, 6:]}
    folds = list(KFold(4).split(X))
    model = MKRidgeCV(cv=folds).fit(views, y)
    result = view_importance(MKRidgeCV(cv=folds), views, y, n_resamples=2)
    assert_allclose(result.score, 1.0 - model_loss(model, y), rtol=1e-6)
    assert result.fall[:2].min() > 0.2
    assert abs(result.fall[2]) < 0.1
    assert result.weight[2] < 0.1
    groups = np.repeat(np.arange(20), 4)
    assert view_importance(MKRidgeCV(), views, y, groups=groups, n_resamples=0).score > 0.5


def model_loss(model, y):
    return np.mean((y - model.left_out_predictions_) ** 2) / np.var(y)


def test_importance_of_columns_with_default_kernels():
    X, y = regression(80, 5)
    X[:, 4] = np.random.default_rng(0).standard_normal(80)
    result = column_importance(MKRidgeCV(ps=[2.0]), X, y, n_resamples=2, n_repeats=2)
    assert result.method == "permutation"
    assert result.names[0] == 3
    assert not result.selected[result.names.index(4)]
    with pytest.raises(ValueError, match=r"permutation"):
        column_importance(MKRidge(RelevanceRBF()), X, y, method="derivative")


def test_importance_of_views_that_some_samples_lack():
    X, y = regression(80)
    first = X[:, :5].copy()
    first[::7] = np.nan
    views = {"first": first, "second": X[:, 5:]}
    estimator = MKRidgeCV(RelevanceRBF(), missing="mean", ps=[2.0], regs=[0.1, 1.0])
    result = view_importance(estimator, views, y, n_resamples=2)
    assert result.fall[0] > 0.1


def test_left_out_predictions_are_not_known_in_closed_form():
    X, y = regression()
    model = MKRidge(RelevanceRBF()).fit(X, y)
    assert np.isnan(model.left_out_predictions_).all()
    with pytest.raises(ValueError, match="no left-out predictions"):
        model.predict_interval(X)
    model = MKRidgeCV(cv=(X[60:], y[60:])).fit(X[:60], y[:60])
    assert np.isnan(model.left_out_predictions_).all()
    assert model.left_out_score_ == model.best_score_


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
