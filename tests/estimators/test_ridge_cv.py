"""MKRidgeCV: p and λ of a ridge regression, shared by several targets or chosen for each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import KFold, LeaveOneOut

from manykernels import MKRidge, MKRidgeCV
from manykernels.estimators.kernel_data import KernelPart
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import refused
from tests.problems import slow

N = 60
rng = np.random.default_rng(0)
X, NEW = rng.uniform(-2, 2, (N, 3)), rng.uniform(-2, 2, (20, 3))
KERNELS = [("one", RBF(1.0).on([0])), ("two", RBF(1.0).on([1])), ("all", Linear())]
GRID = {"ps": [1, 1.5, np.inf], "regs": [0.01, 0.1, 1.0, 10.0]}
POINTS = [(p, reg) for p in GRID["ps"] for reg in GRID["regs"]]


def targets_of(table):
    noise = np.random.default_rng(1).normal(size=(len(table), 2))
    return np.column_stack([np.sin(2 * table[:, 0]), 100 * table.sum(axis=1)]) + noise * [0.3, 30]


Y, TRUTH = targets_of(X), targets_of(NEW)
either = pytest.mark.parametrize("multi_target", ["shared", *slow("separate")])
FOLDS = list(KFold(3).split(X))

# -- the whole grid, fold by fold ------------------------------------------------------------


def scores_by_hand(y, p, reg, weight=None, score=r2_score):
    """Fits of MKRidge to every training part, on kernels fitted to all rows."""
    kernels = [(name, kernel.fit(X)) for name, kernel in KERNELS]
    found = []
    for train, test in FOLDS:
        of = {} if weight is None else {"sample_weight": weight[train]}
        model = MKRidge(kernels, p=p, reg=reg, tol=1e-8).fit(X[train], y[train], **of)
        judged = {} if weight is None else {"sample_weight": weight[test]}
        found.append(score(y[test], model.predict(X[test]), **judged))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("y", [Y[:, 0], Y], ids=["one", "two"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_fits_fold_by_fold(y, weighted):
    weight = np.linspace(0.5, 2.0, N) if weighted else None
    # Kernels of fixed width: what they take from data is that of all rows here, of the part there.
    model = MKRidgeCV(KERNELS, cv=FOLDS, tol=1e-8, **GRID).fit(X, y, weight)
    expected = np.array([scores_by_hand(y, p, reg, weight) for p, reg in POINTS])
    results = model.cv_results_
    for k in range(3):
        assert_allclose(results[f"split{k}_test_score"], expected[:, k], rtol=1e-4, atol=1e-5)
    best = expected.mean(axis=1).argmax()
    assert (model.p_, model.reg_) == POINTS[best]
    assert_allclose(model.best_score_, expected[best].mean(), rtol=1e-4)
    errors = expected.std(axis=1, ddof=1) / np.sqrt(3)
    assert_allclose(results["se_test_score"], errors, rtol=1e-3, atol=1e-5)
    final = MKRidge(KERNELS, p=model.p_, reg=model.reg_, tol=1e-8).fit(X, y, weight)
    assert_allclose(model.predict(NEW), final.predict(NEW), rtol=1e-6, atol=1e-8)
    others = [np.delete(expected, k, axis=1).mean(axis=1).argmax() for k in range(3)]
    for (train, test), best in zip(FOLDS, others, strict=True):
        p, reg = POINTS[best]
        weights = None if weight is None else weight[train]
        fold = MKRidge(KERNELS, p=p, reg=reg, tol=1e-8).fit(X[train], y[train], weights)
        assert_allclose(
            model.left_out_predictions_[test], fold.predict(X[test]), rtol=1e-4, atol=1e-5
        )


def test_each_target_may_have_its_own():
    params = {"cv": FOLDS, "tol": 1e-8, **GRID}
    model = MKRidgeCV(KERNELS, multi_target="separate", **params).fit(X, Y)
    assert model.weights_.shape == (2, 3)
    assert model.validation_curve().shape == (2, 3, 4)
    for k, y in enumerate(Y.T):
        alone = MKRidgeCV(KERNELS, **params).fit(X, y)
        assert (model.p_[k], model.reg_[k]) == (alone.p_, alone.reg_)
        assert_allclose(model.best_score_[k], alone.best_score_)
        assert_allclose(model.validation_curve()[k], alone.validation_curve())
        assert_array_equal(model.cv_results_[k]["param_reg"], alone.cv_results_["param_reg"])
        assert_allclose(model.weights_[k], alone.weights_, rtol=1e-6, atol=1e-9)
        assert_allclose(model.predict(NEW)[:, k], alone.predict(NEW), rtol=1e-6, atol=1e-8)
    assert model.n_splits_ == 3
    assert model.certificate_.converged


@either
def test_the_unit_of_a_target_changes_no_choice(multi_target):
    params = {"multi_target": multi_target, "cv": 3, **GRID}
    model = MKRidgeCV(KERNELS, **params).fit(X, Y)
    moved = MKRidgeCV(KERNELS, **params).fit(X, Y * [1e-9, 1e9] + [0.0, 1e9])
    assert_array_equal(moved.p_, model.p_)
    assert_array_equal(moved.reg_, model.reg_)
    expected = model.predict(NEW) * [1e-9, 1e9] + [0.0, 1e9]
    assert_allclose(moved.predict(NEW), expected, rtol=1e-5)


# -- ways to hold out ------------------------------------------------------------------------


def of_one(cv, y, p, reg, **params):
    model = MKRidgeCV(KERNELS, ps=[p], regs=[reg], cv=cv, tol=1e-9, **params).fit(X, y)
    return np.ravel(model.best_score_)


@pytest.mark.slow
@either
@pytest.mark.parametrize("p", [1.2, np.inf])
def test_folds_in_closed_form_are_close_to_refits(multi_target, p, monkeypatch):
    """Equal where there are no weights to learn."""
    folds, original = [], KernelPart.of

    def noted(data, test):
        folds.extend(test)
        return original(data, test)

    monkeypatch.setattr(KernelPart, "of", noted)
    params = {"normalize": None, "multi_target": multi_target, "tol": 1e-9}
    model = MKRidgeCV(KERNELS, ps=[p], regs=[0.5], cv="closed-form", **params).fit(X, Y)
    assert {len(fold) for fold in folds} == {1, 2}
    outputs = np.empty_like(Y)
    for fold in folds:
        data, targets = np.delete(X, fold, axis=0), np.delete(Y, fold, axis=0)
        refitted = MKRidge(KERNELS, p=p, reg=0.5, **params).fit(data, targets)
        outputs[fold] = refitted.predict(X[fold])
    expected = r2_score(Y, outputs, multioutput="raw_values")
    expected = expected if multi_target == "separate" else expected.mean()
    assert_allclose(model.best_score_, expected, rtol=0, atol=1e-8 if p == np.inf else 5e-3)


def test_a_validation_set():
    model = MKRidgeCV(KERNELS, cv=(NEW, TRUTH), **GRID).fit(X, Y)
    expected = [MKRidge(KERNELS, p=p, reg=reg).fit(X, Y).score(NEW, TRUTH) for p, reg in POINTS]
    assert_allclose(model.cv_results_["mean_test_score"], expected, rtol=1e-3, atol=1e-4)
    assert model.n_splits_ == 1


@pytest.mark.parametrize("cv", [*slow(None), "closed-form"])
def test_a_sample_of_weight_two_is_two(cv):
    counts = 1 + np.arange(N) % 2
    rows = np.repeat(np.arange(N), counts)
    params = {"cv": cv, "tol": 1e-9, **GRID}
    weighted = MKRidgeCV(KERNELS, **params).fit(X, Y, counts)
    repeated = MKRidgeCV(KERNELS, **params).fit(X[rows], Y[rows])
    assert_allclose(weighted.validation_curve(), repeated.validation_curve(), atol=1e-5)
    assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-5, atol=1e-6)


def test_any_scorer():
    error = make_scorer(mean_absolute_error, greater_is_better=False)
    model = MKRidgeCV(KERNELS, cv=FOLDS, scoring=error, tol=1e-8, **GRID).fit(X, Y)
    expected = [np.mean(scores_by_hand(Y, p, reg, score=mean_absolute_error)) for p, reg in POINTS]
    assert_allclose(model.cv_results_["mean_test_score"], -np.array(expected), rtol=1e-4)
    named = MKRidgeCV(KERNELS, cv=FOLDS, scoring="neg_mean_absolute_error", tol=1e-8, **GRID)
    assert_allclose(named.fit(X, Y).best_score_, model.best_score_)


def test_one_standard_error_takes_the_simplest():
    best = MKRidgeCV(KERNELS, cv=FOLDS, **GRID).fit(X, Y[:, 0])
    simple = MKRidgeCV(KERNELS, cv=FOLDS, one_standard_error=True, **GRID).fit(X, Y[:, 0])
    results = best.cv_results_
    at = results["mean_test_score"].argmax()
    least = results["mean_test_score"][at] - results["se_test_score"][at]
    within = [
        (p, score, reg)
        for (p, reg), score in zip(POINTS, results["mean_test_score"], strict=True)
        if score >= least
    ]
    assert (simple.p_, simple.best_score_, simple.reg_) == max(within)


@pytest.mark.slow
def test_parallel_splits_give_the_same():
    params = {"cv": 3, "multi_target": "separate", "ps": [1, 2], "regs": [0.1, 1.0]}
    model, parallel = (MKRidgeCV(KERNELS, n_jobs=n, **params).fit(X, Y) for n in (None, 2))
    assert_array_equal(parallel.validation_curve(), model.validation_curve())


def test_progress_names_the_target(capsys):
    MKRidgeCV(KERNELS, ps=[2], regs=[1.0], cv=2, multi_target="separate", verbose=True).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert any("split 1/2  target 0  p 2  reg 1  inner solves" in line for line in lines)
    assert any("split 2/2  target 1  p 2  reg 1  inner solves" in line for line in lines)


# -- honesty ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [None, *slow("closed-form")])
def test_noise_has_no_score(cv):
    """Thirty kernels, of which p = 1 chooses those that fit noise: the score must not show it."""
    scores = []
    for seed in range(4):
        generator = np.random.default_rng(seed)
        data, noise = generator.normal(size=(60, 30)), generator.normal(size=60)
        kernels = [(f"k{j}", Linear().on([j])) for j in range(30)]
        model = MKRidgeCV(kernels, ps=[1], regs=[30.0], cv=cv).fit(data, noise)
        scores.append(model.best_score_)
    assert np.mean(scores) < 0.05


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ps": [0.5]}, "ps must be .* at least 1"),
        ({"regs": [0.0]}, "regs must be .* positive"),
        ({"regs": []}, "regs must be a non-empty list"),
        ({"cv": (NEW, TRUTH[:, 0])}, r"shape \(20,\), those of training \(60, 2\)"),
        ({"cv": (NEW, TRUTH[:5])}, "20 rows and 5 values"),
        ({"cv": "closed-form", "one_standard_error": True}, "needs the scores of several splits"),
    ],
)
def test_what_cannot_be_chosen_by(params, message):
    with refused(message):
        MKRidgeCV(KERNELS, **{**GRID, **params}).fit(X, Y)


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_a_score_that_single_samples_do_not_have():
    with refused("gave nan at every point"):
        MKRidgeCV(KERNELS, cv=LeaveOneOut(), ps=[2], regs=[1.0]).fit(X[:6], Y[:6])


def test_one_sample():
    with refused("cannot be judged by folds: there are no two samples .* .n_samples = 1"):
        MKRidgeCV().fit([[1.0]], [1.0])
