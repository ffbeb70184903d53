"""MKRidge: what is particular to ridge regression, of one target and of several."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score

from manykernels import KernelStack, MKRidge, MKRidgeCV
from manykernels.domains import lp_domain
from manykernels.kernels import RBF, Linear
from manykernels.kernels.transforms import Center
from manykernels.losses.square import SquareLoss
from manykernels.solvers import Newton
from tests.estimators.registry import refused
from tests.problems import slow

N, N_NEW = 40, 11
rng = np.random.default_rng(0)
X, NEW = rng.uniform(-2, 2, (N, 3)), rng.uniform(-2, 2, (N_NEW, 3))
KERNELS = [("one", RBF(1.0).on([0])), ("two", RBF(1.0).on([1])), ("all", Linear())]


def targets_of(table):
    smooth = np.column_stack([np.sin(2 * table[:, 0]), np.cos(table[:, 1]), table.sum(axis=1)])
    return smooth + 0.1 * np.random.default_rng(1).normal(size=smooth.shape)


Y = targets_of(X)
either = pytest.mark.parametrize("multi_target", ["shared", *slow("separate")])

# -- against others --------------------------------------------------------------------------


def centred(weight):
    """The kernel of scikit-learn, centred by hand: training matrix and test block."""
    gram, block = rbf_kernel(X, gamma=0.3), rbf_kernel(NEW, X, gamma=0.3)
    w = np.ones(N) / N if weight is None else weight / weight.sum()
    means = gram @ w
    block = block - (block @ w)[:, None] - means + w @ means
    return gram - means - means[:, None] + w @ means, block


@pytest.mark.parametrize("y", [Y[:, 0], Y[:, :1], Y, 1e6 * Y - 3e6], ids=["1", "1x1", "3", "far"])
@pytest.mark.parametrize(("p", "reg"), [(1, 1e-3), (2, 0.5), (np.inf, 20.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_kernel_is_the_ridge_regression_of_scikit_learn(y, p, reg, weighted):
    weight = np.linspace(0.5, 2.0, N) if weighted else None
    model = MKRidge(RBF(0.3), reg=reg, p=p, normalize=None).fit(X, y, weight)
    gram, block = centred(weight)
    mean = np.average(y, axis=0, weights=weight)
    theirs = KernelRidge(alpha=reg, kernel="precomputed").fit(gram, y - mean, weight)
    expected = theirs.predict(block) + mean
    scale = np.abs(expected).max()
    assert model.predict(NEW).shape == expected.shape
    assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-8 * scale)
    assert_allclose(model.dual_coef_, theirs.dual_coef_, rtol=0, atol=1e-8 * scale / reg)
    assert_array_equal(model.intercept_, np.atleast_1d(model.intercept_))


@either
@pytest.mark.parametrize("p", [1, 1.5])
def test_the_weights_are_the_best_of_many(multi_target, p):
    """The objective, written down naively, is nowhere smaller than at the weights found."""
    model = MKRidge(KERNELS, p=p, multi_target=multi_target).fit(X, Y)
    kernels = [kernel.fit(X)(X) for _, kernel in KERNELS]
    center = np.eye(N) - 1 / N
    kernels = [center @ kernel @ center for kernel in kernels]
    kernels = [kernel * N / np.trace(kernel) for kernel in kernels]
    scaled = (Y - Y.mean(axis=0)) / Y.std(axis=0)

    def objective(weights, columns):
        inverse = np.linalg.inv(np.eye(N) + np.tensordot(weights, kernels, 1))
        return np.trace(columns.T @ inverse @ columns)

    groups = [scaled] if multi_target == "shared" else [scaled[:, [k]] for k in range(3)]
    found = np.atleast_2d(model.weights_)
    at_best = [objective(*pair) for pair in zip(found, groups, strict=True)]
    assert_allclose(model.certificate_.primal, sum(at_best), rtol=1e-9)
    trials = np.random.default_rng(2).exponential(size=(200, 3))
    trials /= np.linalg.norm(trials, p, axis=1)[:, None]
    for columns, best in zip(groups, at_best, strict=True):
        others = [objective(weights, columns) for weights in trials]
        assert best <= min(others) * (1 + 1e-6)


def test_separate_targets_are_those_of_separate_fits():
    model = MKRidge(KERNELS, p=1.2, multi_target="separate").fit(X, Y)
    for k, y in enumerate(Y.T):
        alone = MKRidge(KERNELS, p=1.2).fit(X, y)
        assert_allclose(model.weights_[k], alone.weights_, rtol=1e-8)
        assert_allclose(model.predict(NEW)[:, k], alone.predict(NEW), rtol=1e-8)
        assert_allclose(model.left_out_predictions_[:, k], alone.left_out_predictions_, rtol=1e-8)


@pytest.mark.parametrize("p", [1, *slow(2)])
def test_solvers_agree(p):
    expected = MKRidge(KERNELS, p=p, tol=1e-9).fit(X, Y)
    for solver in ("sip", "analytic", "coordinate"):
        model = MKRidge(KERNELS, p=p, tol=1e-6, solver=solver, max_iter=5000).fit(X, Y)
        assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=2e-6)
        assert_allclose(model.predict(NEW), expected.predict(NEW), rtol=0, atol=1e-2)


# -- units -----------------------------------------------------------------------------------


@either
@pytest.mark.parametrize("factor", [1e-150, *slow(-4.0, 1e6, 1e150)])
def test_the_unit_of_a_target_changes_no_other(multi_target, factor):
    params = {"p": 1.5, "multi_target": multi_target}
    model = MKRidge(KERNELS, **params).fit(X, Y)
    moved = MKRidge(KERNELS, **params).fit(X, Y * [1.0, factor, 1.0] + [0.0, 7 * factor, 0.0])
    assert_allclose(moved.weights_, model.weights_, rtol=1e-6)
    expected = model.predict(NEW) * [1.0, factor, 1.0] + [0.0, 7 * factor, 0.0]
    assert_allclose(moved.predict(NEW), expected, rtol=1e-6)
    assert_allclose(moved.certificate_.primal, model.certificate_.primal, rtol=1e-9)


def test_targets_count_alike_where_they_share_weights():
    """A large target alone would decide the weights by itself."""
    both = MKRidge(KERNELS[:2], p=1).fit(X, Y[:, :2] * [1.0, 1e4])
    assert 0.2 < both.weights_[0] < 0.8
    assert MKRidge(KERNELS[:2], p=1).fit(X, Y[:, 1]).weights_[1] > 0.9


@either
@pytest.mark.parametrize("p", [1, *slow(1.5, np.inf)])
@pytest.mark.parametrize("value", [0.0, *slow(0.1, -1e200)])
def test_constant_targets_are_predicted(multi_target, p, value):
    params = {"p": p, "multi_target": multi_target}
    alone = MKRidge(KERNELS, **params).fit(X, np.full(N, value))
    assert_allclose(alone.predict(NEW), value, rtol=1e-14)
    assert_allclose(alone.left_out_predictions_, value, rtol=1e-14)
    assert alone.certificate_.converged
    beside = MKRidge(KERNELS, **params).fit(X, np.column_stack([Y[:, 0], np.full(N, value)]))
    assert_allclose(beside.predict(NEW)[:, 1], value, rtol=1e-14)
    expected = MKRidge(KERNELS, p=p).fit(X, Y[:, 0])
    assert_allclose(beside.predict(NEW)[:, 0], expected.predict(NEW), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
def test_constant_data_predict_the_mean():
    model = MKRidge().fit(np.ones((4, 2)), [1.0, 2.0, 2.0, 9.0])
    assert_allclose(model.predict(np.ones((2, 2))), 3.5)
    assert_allclose(model.left_out_predictions_, [13 / 3, 4.0, 4.0, 5 / 3])


def test_one_sample_is_its_own_mean():
    model = MKRidge().fit([[1.0]], [5.0])
    assert_allclose(model.predict([[2.0]]), 5.0)
    assert_array_equal(model.left_out_predictions_, np.nan)
    # A row is left out whole, whatever its weight.
    twice = MKRidge().fit([[1.0]], [5.0], sample_weight=[2.0])
    assert_array_equal(twice.left_out_predictions_, np.nan)


# -- left out --------------------------------------------------------------------------------


def prepared():
    """Kernels in the scales of all rows, (N, N, n_kernels)."""
    matrices = [kernel.fit(X)(X) for _, kernel in KERNELS]
    center = np.eye(N) - 1 / N
    return np.stack([N * K / np.trace(center @ K @ center) for K in matrices], axis=-1)


def refitted(y, stack, **params):
    """Predictions of each row by a fit to the others, kernels in the scales of all rows."""
    answers = []
    for i in range(N):
        kept = np.delete(np.arange(N), i)
        model = MKRidge("precomputed", normalize=None, **params)
        model.fit(stack[np.ix_(kept, kept)], y[kept])
        answers.append(model.predict(stack[np.ix_([i], kept)])[0])
    return np.array(answers)


@pytest.mark.parametrize("y", [Y[:, 0], *slow(Y)], ids=["one", "three"])
def test_left_out_predictions_are_those_of_refits_with_given_weights(y):
    model = MKRidge(KERNELS, p=np.inf).fit(X, y)
    expected = refitted(y, prepared(), p=np.inf)
    assert_allclose(model.left_out_predictions_, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("p", [1, *slow(1.3, 2)])
def test_left_out_predictions_follow_the_change_of_the_weights(p):
    y = Y[:, 0] + Y[:, 1]
    model = MKRidge(KERNELS, p=p).fit(X, y)
    expected = refitted(y, prepared(), p=p)
    held = refitted(y, (prepared() @ model.weights_)[:, :, None], p=np.inf)
    error = np.linalg.norm(model.left_out_predictions_ - expected)
    assert error < 0.01 * np.linalg.norm(expected - y.mean())
    assert error < 0.5 * np.linalg.norm(held - expected)


def without_each(units, p):
    """As `refitted`, with shared weights and the standard deviations of targets given."""
    stack, answers = KernelStack.from_arrays(np.moveaxis(prepared(), -1, 0)), []
    for i in range(N):
        kept, center = np.delete(np.arange(N), i), Center()
        inside = center.fit_transform(stack[np.ix_(kept, kept)])
        mean = Y[kept].mean(axis=0)
        loss = SquareLoss(inside, (Y[kept] - mean) / units, 1.0)
        point = Newton().solve(loss, lp_domain(p)).evaluation
        block = center.transform(stack[np.ix_([i], kept)])
        answers.append(block.apply_combined(point.weights, point.coefficients)[0] * units + mean)
    return np.array(answers)


@pytest.mark.parametrize("p", [1, *slow(1.3)])
def test_left_out_predictions_of_targets_that_share_weights(p):
    """Standard deviations of the targets are held; learning them again matters little."""
    model = MKRidge(KERNELS, p=p).fit(X, Y)
    expected = without_each(Y.std(axis=0), p)
    held = refitted(Y, (prepared() @ model.weights_)[:, :, None], p=np.inf)
    error = np.linalg.norm(model.left_out_predictions_ - expected)
    assert error < 0.5 * np.linalg.norm(held - expected)
    spread = np.linalg.norm(expected - Y.mean(axis=0))
    assert np.linalg.norm(refitted(Y, prepared(), p=p) - expected) < 0.01 * spread


@pytest.mark.parametrize("p", [1.2, np.inf])
def test_one_of_two_equal_samples_is_left_out(p):
    counts = 1.0 + np.arange(N) % 3
    rows = np.repeat(np.arange(N), counts.astype(int))
    weighted = MKRidge(KERNELS, p=p, tol=1e-10).fit(X, Y, counts)
    repeated = MKRidge(KERNELS, p=p, tol=1e-10).fit(X[rows], Y[rows])
    expected = repeated.left_out_predictions_
    assert_allclose(weighted.left_out_predictions_[rows], expected, rtol=1e-5, atol=1e-6)


def test_noise_is_not_predicted_by_kernels_chosen_for_it():
    """Weights that have seen the sample would fit its noise: R² must not be above zero."""
    generator = np.random.default_rng(3)
    data, noise = generator.normal(size=(60, 30)), generator.normal(size=60)
    kernels = [(f"k{j}", Linear().on([j])) for j in range(30)]
    model = MKRidge(kernels, p=1, reg=30.0).fit(data, noise)
    errors = ((noise - model.left_out_predictions_) ** 2).mean()
    assert errors > 0.95 * noise.var()


# -- containers, bad input -------------------------------------------------------------------


def test_frames_of_targets():
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    expected = MKRidge(KERNELS).fit(X, Y).predict(NEW)
    assert_array_equal(MKRidge(KERNELS).fit(X, frame).predict(NEW), expected)
    series = MKRidge(KERNELS).fit(X, frame["a"]).predict(NEW)
    assert_array_equal(series, MKRidge(KERNELS).fit(X, Y[:, 0]).predict(NEW))
    assert_array_equal(MKRidge(KERNELS).fit(X, Y.tolist()).predict(NEW), expected)


def test_rows_of_views_and_targets_are_matched_by_label():
    labels = [f"s{k}" for k in range(N)]
    views = {name: pd.DataFrame(X[:, [j]], index=labels) for j, name in enumerate("ab")}
    targets = pd.DataFrame(Y, index=labels, columns=["u", "v", "w"])
    model = MKRidge(RBF(1.0)).fit(views, targets)
    with pytest.warns(UserWarning, match="rows of y have the labels of X in another order"):
        shuffled = MKRidge(RBF(1.0)).fit(views, targets.sample(frac=1.0, random_state=0))
    assert_array_equal(shuffled.predict(views), model.predict(views))
    with pytest.warns(UserWarning, match="rows of y have the labels of X in another order"):
        score = model.score(views, targets[::-1])
    assert score == model.score(views, targets)


@either
@pytest.mark.parametrize("missing", ["mean", "conditional"])
def test_samples_that_lack_a_view(multi_target, missing):
    table = X.copy()
    table[::5, 0] = np.nan
    kernels = [(name, RBF(1.0).on([j])) for j, name in enumerate("abc")]
    model = MKRidge(kernels, missing=missing, multi_target=multi_target).fit(table, Y)
    assert model.score(table, Y) > 0.5
    assert np.isfinite(model.left_out_predictions_).all()
    grid = {"ps": [1, 2], "regs": [0.1, 1.0], "cv": 3}
    chosen = MKRidgeCV(kernels, missing=missing, multi_target=multi_target, **grid)
    assert np.isfinite(chosen.fit(table, Y).predict(table[:7])).all()


def test_scores_of_scikit_learn():
    scores = cross_val_score(MKRidge(KERNELS, reg=0.1), X, Y, cv=4)
    assert scores.min() > 0.5


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.empty((N, 0)), r"0 feature\(s\)"),
        (Y[:, :, None], "dim 3"),
        (Y[:-1], r"inconsistent numbers of samples: \[40, 39\]"),
        (np.where(np.arange(3 * N).reshape(N, 3) == 7, np.nan, Y), "Input y contains NaN"),
        (np.where(np.arange(3 * N).reshape(N, 3) == 7, np.inf, Y), "Input y contains infinity"),
        (Y + 1j, "y holds complex numbers"),
        (Y.astype(str).astype(object) + "x", "y does not hold numbers only"),
        (np.ma.masked_array(Y, Y > 1.2), "y has a masked entry"),
        (sparse.csr_array(Y), "y is a sparse matrix"),
    ],
    ids=["none", "cube", "short", "nan", "inf", "complex", "words", "masked", "sparse"],
)
def test_invalid_targets(y, message):
    with refused(message):
        MKRidge(KERNELS).fit(X, y)
