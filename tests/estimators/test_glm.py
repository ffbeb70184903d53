"""MKGLM and MKGLMCV: scikit-learn's Poisson regression, losses of the user, bad input, choice."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import xlogy
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score

from manykernels import MKGLM, MKGLMCV, KernelStack, KernelUnion, MKRidge, load, save
from manykernels.kernels import RBF, Linear
from manykernels.losses.smooth import Poisson, SmoothFunction
from manykernels.persistence import ModelFileError
from tests.estimators.registry import refused
from tests.problems import slow

N = 60
_rng = np.random.default_rng(0)
X, NEW = _rng.normal(size=(N, 4)), _rng.normal(size=(20, 4))
COUNTS = _rng.poisson(np.exp(1.0 + 0.7 * X[:, 0] - 0.3 * X[:, 1]))
NEW_COUNTS = _rng.poisson(np.exp(1.0 + 0.7 * NEW[:, 0]))
VALUES = X[:, 0] + 0.1 * _rng.normal(size=N) + 10.0 * (np.arange(N) % 10 == 0)
WEIGHTS = _rng.choice([0.0, 0.5, 1.0, 5.0], N)
KERNELS = [("wide", RBF(0.1)), ("narrow", RBF(1.0).on([0, 1])), ("line", Linear())]
STACK = KernelUnion(KERNELS).fit(X)(X)
LINEAR = {"kernels": Linear(), "normalize": None, "tol": 1e-10}


class Huber(SmoothFunction):
    """The example of SmoothFunction, with sample weights."""

    def __init__(self, y, sample_weight=None):
        self.y = np.reshape(y, (-1, 1))
        self.weight = np.ones_like(self.y)
        if sample_weight is not None:
            self.weight = np.reshape(sample_weight, (-1, 1))

    def value(self, outputs):
        size = np.abs(outputs - self.y)
        return float(np.sum(self.weight * np.where(size < 1, 0.5 * size**2, size - 0.5)))

    def gradient(self, outputs):
        return self.weight * np.clip(outputs - self.y, -1.0, 1.0)

    def hessian(self, outputs):
        return self.weight * (np.abs(outputs - self.y) < 1)


# -- one kernel ------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [1.0, *slow(0.01, 100.0)])
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_one_kernel_is_the_regression_of_scikit_learn(reg, weight):
    model = MKGLM(reg=reg, **LINEAR).fit(X, COUNTS, weight)
    total = N if weight is None else weight.sum()
    plain = PoissonRegressor(alpha=reg / total, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    plain.fit(X, COUNTS, weight)
    assert_allclose(model.predict(NEW), plain.predict(NEW), rtol=1e-6)
    assert model.link_ == "log"
    for judged in (None, np.linspace(0.1, 2.0, 20)):
        score = model.score(NEW, NEW_COUNTS, judged)
        assert score == pytest.approx(plain.score(NEW, NEW_COUNTS, judged), rel=1e-6)
        expected = d2_tweedie_score(NEW_COUNTS, model.predict(NEW), sample_weight=judged, power=1)
        assert score == pytest.approx(expected, rel=1e-12)


def test_rates_have_a_loss_without_a_name():
    """Rates of exposures as weights are the counts."""
    exposure = np.arange(1.0, N + 1) / 10.0
    model = MKGLM(loss=Poisson, **LINEAR).fit(X, COUNTS / exposure, exposure)
    plain = PoissonRegressor(alpha=1.0 / exposure.sum(), solver="newton-cholesky", tol=1e-12)
    plain.fit(X, COUNTS / exposure, exposure)
    assert_allclose(model.predict(NEW), plain.predict(NEW), rtol=1e-6)


def test_anyone_can_recompute_the_certificate():
    reg, p = 0.5, 4 / 3
    model = MKGLM("precomputed", p=p, reg=reg).fit(STACK, COUNTS)
    centring = np.eye(N) - 1 / N
    kernels = [centring @ STACK.kernel(j) @ centring for j in range(3)]
    kernels = np.array([kernel * N / np.trace(kernel) for kernel in kernels])
    coefficients, outputs = model.dual_coef_[:, 0], np.log(model.predict(STACK))
    combined = np.tensordot(model.weights_, kernels, 1)
    assert_allclose(outputs, combined @ coefficients + model.intercept_, rtol=1e-8)
    primal = 0.5 * N * mean_poisson_deviance(COUNTS, np.exp(outputs))
    primal += 0.5 * reg * coefficients @ combined @ coefficients
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    # φ* of −α is that of the means y − α, which are positive.
    dual = model.certificate_.dual_point[:, 0]
    means = COUNTS - dual
    assert abs(dual.sum()) < 1e-9
    assert means.min() > 0
    conjugate = np.sum(xlogy(means, means) - means - xlogy(COUNTS, COUNTS) + COUNTS)
    gains = np.einsum("i,jik,k->j", dual, kernels, dual) / (2 * reg)
    bound = -conjugate - np.linalg.norm(gains, p / (p - 1))
    assert bound == pytest.approx(model.certificate_.dual, rel=1e-9)


@pytest.mark.parametrize("p", [1.0, *slow(2.0)])
def test_solvers_agree_within_their_gaps(p):
    best = MKGLM(KERNELS, p=p, tol=1e-11).fit(X, COUNTS).certificate_
    for solver in ("newton", "analytic", "sip"):
        certificate = MKGLM(KERNELS, p=p, solver=solver, tol=1e-5).fit(X, COUNTS).certificate_
        assert certificate.converged
        assert certificate.dual <= best.primal * (1 + 1e-10)
        assert best.dual <= certificate.primal * (1 + 1e-10)


# -- losses of the user ----------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_a_loss_of_the_user_is_minimised(weight):
    reg = 2.0
    model = MKGLM(loss=Huber, reg=reg, **LINEAR).fit(X, VALUES, weight)
    loss = Huber(VALUES, weight)

    def objective(b):
        outputs = (X @ b[1:] + b[0])[:, None]
        slope = loss.gradient(outputs)[:, 0]
        value = loss.value(outputs) + 0.5 * reg * b[1:] @ b[1:]
        return value, np.append(slope.sum(), X.T @ slope + reg * b[1:])

    best = minimize(objective, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-10})
    assert_allclose(model.predict(NEW), NEW @ best.x[1:] + best.x[0], atol=1e-6)
    assert model.certificate_.primal == pytest.approx(best.fun, rel=1e-9)
    assert model.link_ == "identity"
    # Outliers matter less than to a square loss.
    square = MKRidge(Linear(), normalize=None, reg=reg).fit(X, VALUES)
    truth = NEW[:, 0]
    if weight is None:
        errors = [np.abs(each.predict(NEW) - truth).mean() for each in (model, square)]
        assert errors[0] < 0.5 * errors[1]


def test_the_score_of_a_loss_of_the_user():
    model = MKGLM(KERNELS, loss=Huber).fit(X, VALUES)
    target = NEW[:, 0]
    loss = Huber(target)
    constant = minimize(lambda b: loss.value(np.full((20, 1), b[0])), [0.0], tol=1e-12).fun
    expected = 1.0 - loss.value(model.predict(NEW)[:, None]) / constant
    assert model.score(NEW, target) == pytest.approx(expected, rel=1e-6)


def made(y, sample_weight=None):
    return Huber(y, sample_weight)


def test_a_function_may_make_the_loss():
    by_function = MKGLM(KERNELS, loss=made).fit(X, VALUES)
    assert_array_equal(
        by_function.predict(NEW), MKGLM(KERNELS, loss=Huber).fit(X, VALUES).predict(NEW)
    )


class LargeHessian(Huber):
    def hessian(self, outputs):
        return 7.0 + super().hessian(outputs)


class SmallHessian(Huber):
    def hessian(self, outputs):
        return 0.05 * super().hessian(outputs)


@pytest.mark.parametrize("loss", [LargeHessian, SmallHessian])
def test_a_wrong_hessian_proves_nothing_wrong(loss):
    """Value and gradient make the certificate: what it says holds for the right loss."""
    best = MKGLM(KERNELS, loss=Huber, tol=1e-9).fit(X, VALUES).certificate_
    certificate = MKGLM(KERNELS, loss=loss).fit(X, VALUES).certificate_
    assert certificate.converged
    assert certificate.dual <= best.primal * (1 + 1e-9)
    assert best.dual * (1 - 1e-9) <= certificate.primal <= best.primal * (1 + 1e-4)


class WrongScale(Huber):
    def gradient(self, outputs):
        return 1.5 * super().gradient(outputs)


class WrongFarOut(Huber):
    def gradient(self, outputs):
        return self.weight * np.clip(outputs - self.y, -1.0, 2.0)


class WrongShape(Huber):
    def gradient(self, outputs):
        return super().gradient(outputs)[:, 0]


@pytest.mark.parametrize("kind", [MKGLM, MKGLMCV])
@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (WrongScale, "WrongScale: gradient is not the derivative of value"),
        (WrongFarOut, "WrongFarOut: gradient is not the derivative of value"),
        (WrongShape, r"WrongShape: gradient returns an array of shape \(60,\) for outputs"),
    ],
)
def test_a_wrong_gradient_is_refused(kind, loss, message):
    with refused(message):
        kind(KERNELS, loss=loss).fit(X, VALUES - 5.0 * (loss is WrongFarOut))


def test_what_is_no_loss():
    with refused("must return a SmoothFunction with one output per sample, got None", TypeError):
        MKGLM(KERNELS, loss=lambda y, sample_weight=None: None).fit(X, VALUES)


# -- bad input -------------------------------------------------------------------------------

LIGHT = np.where(np.arange(N) < 3, 0.0, 1.0)


@pytest.mark.parametrize("kind", [MKGLM, MKGLMCV])
@pytest.mark.parametrize(
    ("loss", "y", "weight", "message"),
    [
        ("poisson", np.where(np.arange(N) == 7, -2, COUNTS), None, "got -2 in row 7"),
        ("poisson", np.where(np.arange(N) == 7, -2, COUNTS), LIGHT, "got -2 in row 7"),
        (Poisson, np.where(np.arange(N) == 7, -2.5, COUNTS), LIGHT, "got -2.5 in row 7"),
        ("poisson", np.where(np.arange(N) == 7, 1.5, COUNTS), LIGHT, "y is 1.5 at row 7. Rates"),
        ("poisson", np.zeros(N), None, "the targets are all zero"),
        ("poisson", (np.arange(N) == 0).astype(int), LIGHT, "the targets are all zero"),
        ("poisson", np.where(np.arange(N) == 7, np.nan, COUNTS), None, "Input y contains NaN"),
        ("poisson", np.where(np.arange(N) == 7, np.inf, COUNTS), None, "y contains infinity"),
        ("poisson", np.column_stack([COUNTS, COUNTS]), None, "y has 2 columns, .* one target"),
        ("gamma", COUNTS, None, "The 'loss' parameter of MKGLM"),
    ],
)
def test_bad_targets(kind, loss, y, weight, message):
    with refused(message):
        kind(KERNELS, loss=loss).fit(X, y, weight)


def test_bad_targets_of_scores():
    model = MKGLM(KERNELS).fit(X, COUNTS)
    with refused("got -1 in row 0"):
        model.score(NEW, np.full(20, -1))
    with refused(r"y is 0.5 at row 0"):
        model.score(NEW, np.full(20, 0.5))
    # As R², where a constant is the best prediction there can be.
    assert model.score(NEW, np.zeros(20)) == 0.0
    exact = MKGLM(KERNELS, loss=Huber).fit(X, np.full(N, 3.0))
    assert_allclose(exact.predict(NEW), 3.0)
    assert exact.score(NEW, np.full(20, 7.0)) == 0.0


# -- the choice ------------------------------------------------------------------------------

FOLDS = list(KFold(3, shuffle=True, random_state=0).split(X))
GRID = {"ps": [1.0, 2.0], "regs": [0.1, 10.0]}


@pytest.mark.parametrize("scoring", [None, *slow("neg_mean_poisson_deviance")])
@pytest.mark.parametrize("weight", [None, *slow(WEIGHTS + 0.5)], ids=["plain", "weighted"])
def test_scores_are_those_of_fits_fold_by_fold(scoring, weight):
    search = MKGLMCV("precomputed", cv=FOLDS, scoring=scoring, tol=1e-8, **GRID)
    model = search.fit(STACK, COUNTS, weight)
    results = model.cv_results_
    means = np.full((4, N), np.nan)
    for k, (train, test) in enumerate(FOLDS):
        of_train, of_test = (None, None) if weight is None else (weight[train], weight[test])
        for at, params in enumerate(results["params"]):
            fold = MKGLM("precomputed", tol=1e-8, **params)
            fold.fit(STACK[np.ix_(train, train)], COUNTS[train], of_train)
            block = STACK[np.ix_(test, train)]
            means[at, test] = fold.predict(block)
            expected = fold.score(block, COUNTS[test], of_test)
            if scoring is not None:
                expected = -mean_poisson_deviance(
                    COUNTS[test], fold.predict(block), sample_weight=of_test
                )
            assert results[f"split{k}_test_score"][at] == pytest.approx(expected, abs=1e-5)
    scores = np.array([results[f"split{k}_test_score"] for k in range(3)])
    for k, (_, test) in enumerate(FOLDS):
        at = np.delete(scores, k, axis=0).mean(axis=0).argmax()
        assert_allclose(model.left_out_predictions_[test], means[at, test], rtol=1e-4)
    if scoring is None:
        expected = d2_tweedie_score(
            COUNTS, model.left_out_predictions_, sample_weight=weight, power=1
        )
        assert model.left_out_score_ == pytest.approx(expected)


@pytest.mark.slow
def test_searches_of_scikit_learn_make_the_same_choice():
    grid = {"p": GRID["ps"], "reg": GRID["regs"]}
    search = GridSearchCV(MKGLM("precomputed"), grid, cv=FOLDS).fit(STACK, COUNTS)
    model = MKGLMCV("precomputed", cv=FOLDS, **GRID).fit(STACK, COUNTS)
    assert search.best_params_ == {"p": model.p_, "reg": model.reg_}
    assert search.best_score_ == pytest.approx(model.best_score_, abs=1e-4)
    scores = cross_val_score(MKGLM(KERNELS), X, COUNTS, scoring="neg_mean_poisson_deviance")
    assert np.isfinite(scores).all()


def test_a_validation_set_and_groups():
    model = MKGLMCV(KERNELS, cv=(NEW, NEW_COUNTS), tol=1e-8, **GRID).fit(X, COUNTS)
    at = model.cv_results_["params"].index({"p": 2.0, "reg": 10.0})
    expected = MKGLM(KERNELS, reg=10.0, tol=1e-8).fit(X, COUNTS).score(NEW, NEW_COUNTS)
    assert model.cv_results_["mean_test_score"][at] == pytest.approx(expected, abs=1e-6)
    groups = np.arange(N) // 3
    for cv in (3, GroupKFold(3)):
        grouped = MKGLMCV(Linear(), cv=cv, ps=[2], regs=[1.0]).fit(X, COUNTS, groups=groups)
        folds = grouped.test_fold_.reshape(-1, 3)
        assert (folds == folds[:, :1]).all()


def test_a_fold_of_zeros():
    """Nothing can be explained there, so that all points have the score zero."""
    y = np.where(np.arange(N) < 20, 0, COUNTS)
    rows = np.arange(N)
    folds = [(rows[20:], rows[:20]), (rows[:40], rows[40:])]
    model = MKGLMCV(KERNELS, cv=folds, **GRID).fit(X, y)
    assert_array_equal(model.cv_results_["split0_test_score"], np.zeros(4))
    assert np.isfinite(model.best_score_)
    deviance = MKGLMCV(KERNELS, cv=folds, scoring="neg_mean_poisson_deviance", **GRID).fit(X, y)
    assert np.ptp(deviance.cv_results_["split0_test_score"]) > 0
    single = (rows == 5).astype(int)
    with refused("training part of a split: Poisson: the best bias is infinite, .*all zero"):
        MKGLMCV(KERNELS, cv=3, **GRID).fit(X, single)


@pytest.mark.slow
def test_jobs_change_nothing():
    models = [MKGLMCV(KERNELS, n_jobs=n_jobs, **GRID).fit(X, COUNTS) for n_jobs in (None, 2)]
    assert_array_equal(models[1].left_out_predictions_, models[0].left_out_predictions_)


# -- files -----------------------------------------------------------------------------------


def test_model_files(tmp_path):
    path = tmp_path / "model.skops"
    for loss, y in (("poisson", COUNTS), (Poisson, COUNTS / 2)):
        model = MKGLM(KERNELS, loss=loss).fit(X, y)
        save(model, path)
        twin = load(path)
        assert_array_equal(twin.predict(NEW), model.predict(NEW))
        assert twin.score(X, y) == model.score(X, y)
        assert twin.loss == loss


def test_model_files_with_a_loss_of_the_user(tmp_path):
    path = tmp_path / "model.skops"
    model = MKGLM(KERNELS, loss=Huber).fit(X, VALUES)
    save(model, path)
    name = f"{Huber.__module__}.Huber"
    with refused(rf"types or functions that are not trusted: {name}.*trusted=", ModelFileError):
        load(path)
    with refused("MKGLM.loss has the function .*cannot be stored safely", ModelFileError):
        save(MKGLM(KERNELS, loss=made).fit(X, VALUES), path)


# -- edges -----------------------------------------------------------------------------------


def test_large_counts_and_small_ones():
    y = np.where(np.arange(N) % 2, 10**6, 0)
    model = MKGLM(KERNELS, reg=10.0).fit(X, y)
    assert model.certificate_.converged
    assert model.predict(X).sum() == pytest.approx(y.sum(), rel=1e-6)


def test_kernels_that_are_constant_leave_the_mean():
    constant = KernelStack.from_arrays([np.ones((N, N)), 2 * np.ones((N, N))])
    with pytest.warns(UserWarning, match="Nothing can be learnt from kernels"):
        model = MKGLM("precomputed").fit(constant, COUNTS)
    assert_allclose(model.predict(constant), COUNTS.mean(), rtol=1e-9)
    assert model.score(constant, COUNTS) == pytest.approx(0.0, abs=1e-12)
