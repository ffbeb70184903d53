"""MKLogistic and MKLogisticCV: scikit-learn's regression, solvers, certificates, the choice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import xlogy
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from manykernels import KernelStack, KernelUnion, MKLogistic, MKLogisticCV, Views, load, save
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import refused
from tests.problems import slow

N = 60
_rng = np.random.default_rng(0)
X, NEW = _rng.normal(size=(N, 4)), _rng.normal(size=(20, 4))
# Classes that overlap.
SCORE = X[:, 0] + 0.5 * X[:, 1] + 0.7 * _rng.normal(size=N)
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.5, 0.5])
WEIGHTS = _rng.choice([0.0, 0.5, 1.0, 5.0], N)
KERNELS = [("wide", RBF(0.1)), ("narrow", RBF(1.0).on([0, 1])), ("line", Linear())]
STACK = KernelUnion(KERNELS).fit(X)(X)

# -- one kernel ------------------------------------------------------------------------------


CASES = {
    "two": (TWO, None, None),
    "three": (THREE, None, None),
    "two, weights of classes": (TWO, {0: 1.0, 1: 4.0}, None),
    "three, weights of classes": (THREE, {0: 0.5, 1: 1.0, 2: 4.0}, None),
    "two, balanced": (TWO, "balanced", None),
    "three, balanced, weights": (THREE, "balanced", WEIGHTS),
    "two, weights": (TWO, None, WEIGHTS),
    "three, both weights": (THREE, {2: 3.0}, WEIGHTS),
    "two words": (np.array(["no", "yes"])[TWO], {"no": 2.0, "yes": 1.0}, None),
    "three words": (np.array(["low", "mean", "high"])[THREE], None, WEIGHTS),
}


@pytest.mark.parametrize("reg", [0.3, *slow(1e-2, 10.0)])
@pytest.mark.parametrize("case", CASES)
def test_one_kernel_is_the_regression_of_scikit_learn(case, reg):
    y, class_weight, sample_weight = CASES[case]
    options = {"class_weight": class_weight}
    model = MKLogistic(Linear(), normalize=None, reg=reg, tol=1e-11, **options)
    model.fit(X, y, sample_weight)
    plain = LogisticRegression(C=1 / reg, tol=1e-12, max_iter=1000, solver="newton-cg", **options)
    plain.fit(X, y, sample_weight)
    assert_array_equal(model.classes_, plain.classes_)
    assert_allclose(model.predict_proba(NEW), plain.predict_proba(NEW), atol=1e-6)
    assert_array_equal(model.predict(NEW), plain.predict(NEW))
    assert model.score(X, y) == plain.score(X, y)
    if len(model.classes_) == 2:
        assert_allclose(model.decision_function(NEW), plain.decision_function(NEW), atol=1e-6)


def test_several_kernels_are_the_regression_on_their_weighted_features():
    """At the learnt weights, the machine is that of the features scaled by their roots."""
    model = MKLogistic({"a": Linear().on([0, 1]), "b": Linear().on([2, 3])}, tol=1e-11)
    model.fit(X, THREE)
    centred = X - X.mean(axis=0)
    variances = np.array([np.mean(np.sum(centred[:, at] ** 2, axis=1)) for at in ([0, 1], [2, 3])])
    scale = np.sqrt(model.weights_ / variances).repeat(2)
    plain = LogisticRegression(tol=1e-12, max_iter=1000, solver="newton-cg").fit(X * scale, THREE)
    assert_allclose(model.predict_proba(NEW), plain.predict_proba(NEW * scale), atol=1e-6)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_probabilities(y):
    model = MKLogistic(KERNELS).fit(X, y)
    probabilities = model.predict_proba(NEW)
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-14)
    assert_allclose(np.exp(model.predict_log_proba(NEW)), probabilities, rtol=1e-12)
    assert_array_equal(model.predict(NEW), probabilities.argmax(axis=1))
    # With free biases, mean probabilities in training are the frequencies of the classes.
    assert_allclose(model.predict_proba(X).mean(axis=0), np.bincount(y) / N, atol=1e-9)


# -- solvers and certificates ----------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, *slow(2.0)])
@pytest.mark.parametrize("y", [TWO, *slow(THREE)], ids=["two", *["three"]])
def test_solvers_agree_within_their_gaps(y, p):
    models = {
        solver: MKLogistic(KERNELS, p=p, solver=solver, tol=1e-5).fit(X, y)
        for solver in ("newton", "analytic", "sip")
    }
    best = MKLogistic(KERNELS, p=p, tol=1e-10).fit(X, y).certificate_
    for model in models.values():
        certificate = model.certificate_
        assert certificate.converged
        assert certificate.dual <= best.primal * (1 + 1e-10)
        assert best.dual <= certificate.primal * (1 + 1e-10)
    assert_allclose(
        models["analytic"].predict_proba(NEW), models["newton"].predict_proba(NEW), atol=1e-2
    )
    assert_allclose(
        models["sip"].predict_proba(NEW), models["newton"].predict_proba(NEW), atol=1e-2
    )


def entropies(shares):
    """Σ s log s + (1 − s) log(1 − s), which is φ* of the logistic loss."""
    return float(np.sum(xlogy(shares, shares) + xlogy(1 - shares, 1 - shares)))


@pytest.mark.parametrize("p", [1.0, 4 / 3, np.inf])
def test_anyone_can_recompute_the_certificate(p):
    """From the kernels, the weights and the dual point, without the solver or the loss."""
    reg = 0.5
    model = MKLogistic("precomputed", p=p, reg=reg).fit(STACK, TWO)
    centring = np.eye(N) - 1 / N
    kernels = [centring @ STACK.kernel(j) @ centring for j in range(3)]
    kernels = np.array([kernel * N / np.trace(kernel) for kernel in kernels])
    certificate, signs = model.certificate_, 2 * TWO - 1
    # Primal: the log losses of the model's own outputs, and its norm.
    outputs, coefficients = model.decision_function(STACK), model.dual_coef_[:, 0]
    combined = np.tensordot(model.weights_, kernels, 1)
    assert_allclose(outputs, combined @ coefficients + model.intercept_, rtol=1e-9, atol=1e-11)
    losses = np.logaddexp(0.0, -signs * outputs).sum()
    primal = losses + 0.5 * reg * coefficients @ combined @ coefficients
    assert primal == pytest.approx(certificate.primal, rel=1e-10)
    # Dual: α sums to zero, has the signs of the classes, and is at most one.
    dual = certificate.dual_point[:, 0]
    shares = signs * dual
    assert abs(dual.sum()) < 1e-10
    assert shares.min() >= 0
    assert shares.max() <= 1
    gains = np.einsum("i,jik,k->j", dual, kernels, dual) / (2 * reg)
    q = np.inf if p == 1 else 1.0 if p == np.inf else p / (p - 1)
    bound = -entropies(shares) - np.linalg.norm(gains, q)
    assert bound == pytest.approx(certificate.dual, rel=1e-10)
    assert 0 <= primal - bound <= certificate.tol * primal


# -- the choice ------------------------------------------------------------------------------

FOLDS = list(StratifiedKFold(3).split(X, THREE))
GRID = {"ps": [1.0, 2.0], "regs": [0.1, 1.0]}


def refit(train, params, y=THREE, weight=None, **options):
    model = MKLogistic("precomputed", tol=1e-8, **params, **options)
    weight = None if weight is None else weight[train]
    return model.fit(STACK[np.ix_(train, train)], y[train], weight)


@pytest.mark.parametrize("scoring", ["neg_log_loss", *slow("accuracy", None)])
@pytest.mark.parametrize("weight", [None, *slow(WEIGHTS + 0.5)], ids=["plain", *["weighted"]])
def test_scores_are_those_of_fits_fold_by_fold(scoring, weight):
    search = MKLogisticCV("precomputed", cv=FOLDS, scoring=scoring, tol=1e-8, **GRID)
    model = search.fit(STACK, THREE, weight)
    results = model.cv_results_
    logs = np.full((4, N, 3), np.nan)
    for k, (train, test) in enumerate(FOLDS):
        for at, params in enumerate(results["params"]):
            fold = refit(train, params, weight=weight)
            block = STACK[np.ix_(test, train)]
            logs[at, test] = fold.predict_log_proba(block)
            judged = None if weight is None else weight[test]
            if scoring == "neg_log_loss":
                expected = -log_loss(THREE[test], fold.predict_proba(block), sample_weight=judged)
            else:
                expected = fold.score(block, THREE[test], judged)
            assert results[f"split{k}_test_score"][at] == pytest.approx(expected, rel=1e-5)
    # Every row by the model without its fold, at the point that is best in the other folds.
    scores = np.array([results[f"split{k}_test_score"] for k in range(3)])
    if scoring == "neg_log_loss":
        for k, (_, test) in enumerate(FOLDS):
            at = np.delete(scores, k, axis=0).mean(axis=0).argmax()
            assert_allclose(model.left_out_log_proba_[test], logs[at, test], atol=1e-4)
        expected = -log_loss(THREE, np.exp(model.left_out_log_proba_), sample_weight=weight)
        assert model.left_out_score_ == pytest.approx(expected)
    at = results["params"].index({"p": model.p_, "reg": model.reg_})
    assert model.best_score_ == results["mean_test_score"][at] == scores.mean(axis=0).max()
    final = refit(np.arange(N), results["params"][at], weight=weight)
    assert_allclose(model.predict_proba(STACK), final.predict_proba(STACK), atol=1e-4)
    assert (results["rel_gap"] <= 1e-8).all()


def test_equal_scores_go_to_the_smallest_log_loss():
    """With accuracy as the score."""
    model = MKLogisticCV(KERNELS, ps=[2], regs=[0.5, 50.0, 5e3], scoring="accuracy", cv=FOLDS)
    model.fit(X, np.sign(X[:, 0]))
    results = model.cv_results_["mean_test_score"]
    assert results[0] == model.best_score_
    assert model.reg_ == 0.5


def test_a_validation_set():
    y_new = np.digitize(NEW[:, 0] + 0.5 * NEW[:, 1], [-0.5, 0.5])
    model = MKLogisticCV(KERNELS, cv=(NEW, y_new), tol=1e-8, **GRID).fit(X, THREE)
    for params, score in zip(
        model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True
    ):
        one = MKLogistic(KERNELS, tol=1e-8, **params).fit(X, THREE)
        expected = -log_loss(y_new, one.predict_proba(NEW), labels=[0, 1, 2])
        assert score == pytest.approx(expected, rel=1e-6)
    assert model.n_splits_ == 1
    assert not hasattr(model, "left_out_log_proba_")
    with refused("classes that training has not: \\[7\\]"):
        MKLogisticCV(KERNELS, cv=(NEW, np.full(20, 7)), **GRID).fit(X, THREE)


def test_groups_and_splitters():
    groups, grid = np.arange(N) // 3, {"ps": [2], "regs": [0.1, 1.0]}
    model = MKLogisticCV(KERNELS, cv=2, **grid).fit(X, THREE, groups=groups)
    folds = model.test_fold_.reshape(-1, 3)
    assert (folds == folds[:, :1]).all()
    by_splitter = MKLogisticCV(KERNELS, cv=GroupKFold(3), **grid).fit(X, THREE, groups=groups)
    splits = list(GroupKFold(3).split(X, THREE, groups))
    by_splits = MKLogisticCV(KERNELS, cv=splits, **grid).fit(X, THREE)
    assert_array_equal(by_splitter.left_out_log_proba_, by_splits.left_out_log_proba_)
    with refused("divides group"):
        MKLogisticCV(KERNELS, cv=KFold(7), **GRID).fit(X, THREE, groups=groups)


def test_a_fold_that_lacks_a_class_is_judged_by_log_loss():
    """Test parts of sorted labels have a class each, or two."""
    y = np.array(["a"] * 30 + ["b"] * 24 + ["c"] * 6)
    splits = [
        (np.delete(np.arange(N), test), test) for test in (np.arange(0, 40, 4), np.arange(54, 58))
    ]
    model = MKLogisticCV("precomputed", cv=splits, tol=1e-8, ps=[2], regs=[1.0]).fit(STACK, y)
    for k, (train, test) in enumerate(splits):
        fold = refit(train, {"p": 2, "reg": 1.0}, y)
        probabilities = fold.predict_proba(STACK[np.ix_(test, train)])
        expected = -log_loss(y[test], probabilities, labels=["a", "b", "c"])
        assert model.cv_results_[f"split{k}_test_score"][0] == pytest.approx(expected, rel=1e-6)
    with refused("leaves no training samples of \\['c'\\]"):
        MKLogisticCV(KERNELS, cv=[(np.arange(50), np.arange(50, 60))], **GRID).fit(X, y)


@pytest.mark.slow
def test_jobs_change_nothing():
    alone, together = (
        MKLogisticCV(KERNELS, n_jobs=n_jobs, **GRID).fit(X, THREE) for n_jobs in (None, 2)
    )
    assert_array_equal(together.left_out_log_proba_, alone.left_out_log_proba_)
    assert_array_equal(together.predict_proba(NEW), alone.predict_proba(NEW))


def test_one_standard_error_is_the_simplest_of_the_good_ones():
    grid = {"ps": [1.0, 2.0, np.inf], "regs": [0.1, 1.0, 10.0]}
    model = MKLogisticCV(KERNELS, cv=FOLDS, one_standard_error=True, **grid).fit(X, THREE)
    results = model.cv_results_
    best = results["mean_test_score"].argmax()
    good = results["mean_test_score"] >= (
        results["mean_test_score"][best] - results["se_test_score"][best]
    )
    pairs = zip(results["param_p"][good], results["mean_test_score"][good], strict=True)
    assert (model.p_, model.best_score_) == max(pairs)


# -- data of every kind ----------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["mean", *slow("conditional")])
def test_views_of_which_some_are_missing(missing):
    labels = [f"s{k}" for k in range(N)]
    frame = pd.DataFrame(X, index=labels)
    views = {"first": frame[[0, 1]], "second": frame[[2, 3]].iloc[5:]}
    y = pd.Series(THREE, index=labels)
    model = MKLogistic(RBF(), missing=missing).fit(views, y)
    assert model.kernel_names_ == ["first", "second"]
    new = {"first": NEW[:, :2], "second": np.full((20, 2), np.nan)}
    assert_allclose(model.predict_proba(Views(new)).sum(axis=1), 1.0)
    shuffled = {"first": views["first"].iloc[::-1], "second": views["second"]}
    again = MKLogistic(RBF(), missing=missing).fit(shuffled, y.sample(frac=1.0, random_state=0))
    assert_allclose(again.weights_, model.weights_, rtol=1e-6)
    with refused("lacks 5 of 60 samples"):
        MKLogistic(RBF()).fit(views, y)


@pytest.mark.parametrize("kind", [MKLogistic, *slow(MKLogisticCV)])
def test_model_files(kind, tmp_path):
    options = GRID if kind is MKLogisticCV else {}
    for kernels, data, new in (
        (KERNELS, X, NEW),
        ("precomputed", STACK, KernelUnion(KERNELS).fit(X)(NEW, X)),
    ):
        model = kind(kernels, **options).fit(data, np.array(["a", "b", "c"])[THREE])
        save(model, tmp_path / "model.skops")
        twin = load(tmp_path / "model.skops")
        assert_array_equal(twin.predict_proba(new), model.predict_proba(new))
        assert_array_equal(twin.certificate_.dual_point, model.certificate_.dual_point)


# -- edges -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [1e-8, 1e8])
def test_very_weak_and_very_strong_regularisation(reg):
    """Of separable classes outputs grow without bound as λ falls, and the certificate holds."""
    X, y = load_iris(return_X_y=True)
    model = MKLogistic(KERNELS[:1], reg=reg).fit(X[::2], y[::2])
    assert model.certificate_.converged
    probabilities = model.predict_proba(X[1::2])
    assert np.isfinite(probabilities).all()
    assert (model.score(X[1::2], y[1::2]) > 0.9) or reg > 1
    if reg > 1:
        assert_allclose(probabilities, 1 / 3, atol=1e-3)


def test_kernels_that_are_constant_leave_the_frequencies():
    constant = KernelStack.from_arrays([np.ones((N, N)), 2 * np.ones((N, N))])
    with pytest.warns(UserWarning, match="Nothing can be learnt from kernels"):
        model = MKLogistic("precomputed").fit(constant, THREE)
    expected = np.tile(np.bincount(THREE) / N, (N, 1))
    assert_allclose(model.predict_proba(constant), expected, rtol=1e-9)


def test_solvers_that_do_not_fit_are_refused():
    with refused("solver='qcqp'.*solver='newton'"):
        MKLogistic(KERNELS, p=1, solver="qcqp").fit(X, TWO)
