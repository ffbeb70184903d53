"""RelevanceRBF: the likelihood itself, its derivatives, known columns, laws and errors."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler

from manykernels import Views
from manykernels.kernels import RBF, KernelUnion, Linear, RelevanceRBF
from manykernels.kernels.completion import WhereKnown
from manykernels.kernels.relevance import _Evidence
from tests.differences import assert_derivatives


def data(n_rows=60, n_columns=5, seed=0):
    """Rows of which columns 1 and 3 matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    return X, np.sin(2 * X[:, 1]) + X[:, 3] + rng.normal(scale=0.2, size=n_rows)


@pytest.fixture(name="problem")
def small_problem():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    weights = rng.uniform(0.5, 2.0, 12)
    return X, Y, weights, _Evidence(X, Y, weights)


def covariance(X, weights, log):
    scaled = X * np.exp(0.5 * log[:-1])
    K = np.exp(-0.5 * np.sum((scaled[:, None] - scaled) ** 2, axis=2))
    return K, K + np.diag(np.exp(log[-1]) / weights)


def deviance(X, Y, weights, log):
    """−2 log likelihood of contrasts of the targets, at the best variance."""
    _, A = covariance(X, weights, log)
    contrasts = np.linalg.svd(np.ones((1, len(X))))[2][1:]
    A, Y = contrasts @ A @ contrasts.T, contrasts @ Y
    A *= np.sum(Y * np.linalg.solve(A, Y)) / Y.size
    return -2 * stats.multivariate_normal(cov=A).logpdf(Y.T).sum()


def test_evidence_is_the_likelihood_of_contrasts(problem):
    X, Y, weights, evidence = problem
    points = np.random.default_rng(1).normal(size=(4, 4))
    values = [evidence(log)[0] for log in points]
    expected = [deviance(X, Y, weights, log) for log in points]
    assert_allclose(np.diff(values), np.diff(expected), rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_gradient(problem, seed):
    evidence = problem[-1]
    log = np.random.default_rng(seed).normal(size=4)
    assert_derivatives(evidence(log)[1], lambda x: evidence(x)[0], log)
    assert_derivatives(
        evidence.penalized(log, 0.7)[1], lambda x: evidence.penalized(x, 0.7)[0], log
    )
    assert_derivatives(
        evidence.of_equal_scales(log[:2])[1], lambda x: evidence.of_equal_scales(x)[0], log[:2]
    )


@pytest.mark.parametrize("n_columns", [3, 30])
def test_price_is_that_of_the_average_information(n_columns):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, n_columns)), rng.standard_normal((12, 2))
    weights = rng.uniform(0.5, 2.0, 12)
    log = rng.normal(scale=0.3, size=n_columns + 1)
    log[:-1] -= np.log(n_columns)
    K, A = covariance(X, weights, log)
    inverse = np.linalg.inv(A)
    u = inverse.sum(axis=1)
    P = inverse - np.outer(u, u) / u.sum()
    a = P @ Y
    slopes = [
        -0.5 * np.exp(scale) * (column[:, None] - column) ** 2 * K
        for scale, column in zip(log, X.T, strict=False)
    ]
    unit = 0.5 * Y.shape[1] * 11 / np.sum(a * Y)
    information = unit * np.array([[np.sum(a * (S @ P @ T @ a)) for S in slopes] for T in slopes])
    centring = np.eye(n_columns) - 1.0 / n_columns
    matrix = np.eye(n_columns) + centring @ information @ centring / 0.3
    expected = np.linalg.slogdet(matrix)[1]
    assert_allclose(_Evidence(X, Y, weights).price(log, 0.3), expected, rtol=1e-8)


# -- which columns matter ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_matter_are_found(seed):
    X, y = make_friedman1(200, 30, noise=1.0, random_state=seed)
    scales = RelevanceRBF().fit(X, y).scales_
    assert set(np.argsort(-scales)[:5]) == set(range(5))


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_equal_scales(seed):
    rng = np.random.default_rng(seed)
    kernel = RelevanceRBF().fit(rng.standard_normal((100, 50)), rng.standard_normal(100))
    assert kernel.penalty_ == np.inf
    assert np.ptp(kernel.scales_) == 0.0


def test_columns_that_all_matter_have_equal_scales():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 50))
    y = X @ rng.standard_normal(50) + rng.normal(scale=3.0, size=150)
    assert RelevanceRBF().fit(X, y).penalty_ == np.inf


def test_a_larger_penalty_makes_scales_more_alike():
    X, y = data()
    spreads = [np.log(RelevanceRBF(t).fit(X, y).scales_).std() for t in (0.01, 1.0, 100.0, np.inf)]
    assert spreads[0] > 2.0 * spreads[1] > 4.0 * spreads[2] > spreads[3] == 0.0


def test_several_targets_share_scales():
    X, y = data(n_rows=150)
    both = np.column_stack([y, np.cos(2 * X[:, 4])])
    assert set(np.argsort(-RelevanceRBF().fit(X, both).scales_)[:3]) == {1, 3, 4}


# -- laws -------------------------------------------------------------------------------------


def same(kernel, other, rtol=1e-8):
    assert kernel.penalty_ == other.penalty_
    assert_allclose(kernel.scales_, other.scales_, rtol=rtol)


def test_weights_are_repeated_rows():
    X, y = data()
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    repeated = RelevanceRBF().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = RelevanceRBF().fit(X, y, counts)
    same(repeated, weighted)
    assert_allclose(repeated(X), weighted(X), rtol=1e-8)
    same(RelevanceRBF().fit(X, y, 3.0 * counts), weighted)


def test_order_of_rows_and_columns():
    X, y = data()
    kernel = RelevanceRBF().fit(X, y)
    rows = np.random.default_rng(1).permutation(len(X))
    assert_array_equal(RelevanceRBF().fit(X[rows], y[rows]).scales_, kernel.scales_)
    columns = np.array([4, 2, 0, 1, 3])
    assert_allclose(
        RelevanceRBF().fit(X[:, columns], y).scales_, kernel.scales_[columns], rtol=1e-5
    )


def test_units_of_columns_and_targets():
    X, y = data()
    kernel = RelevanceRBF().fit(X, y)
    units = np.array([1e-200, 1e3, 1.0, 2.0, 1e150])
    other = RelevanceRBF().fit(X * units, 1e200 * y + 3e200)
    same(kernel, other, rtol=1e-5)
    assert_allclose(other(X * units), kernel(X), rtol=1e-5)


def test_constant_columns_do_not_matter():
    X, y = data()
    wide = np.column_stack([np.full(len(X), 1e9), X])
    kernel = RelevanceRBF().fit(wide, y)
    assert kernel.scales_[0] == 0.0
    same(RelevanceRBF().fit(X, y), clone(kernel).on(slice(1, None)).fit(wide, y))
    assert_allclose(kernel.scales_[1:], RelevanceRBF().fit(X, y).scales_, rtol=1e-8)
    moved = wide + np.eye(6)[0]
    assert_array_equal(kernel(moved, wide), kernel(wide, wide))
    assert_array_equal(
        RelevanceRBF().fit(np.ones((5, 2)), y[:5])(np.ones((2, 2))), np.ones((2, 2))
    )


@pytest.mark.parametrize("n_rows", [1, 2, 20])
def test_constant_targets_and_very_few_rows_leave_scales_equal(n_rows):
    X, y = data()
    kernel = RelevanceRBF().fit(X[:n_rows], np.zeros(n_rows) if n_rows > 2 else y[:n_rows])
    assert np.ptp(kernel.scales_) == 0.0


def test_kernel_is_that_of_scaled_columns():
    X, y = data()
    kernel = RelevanceRBF().fit(X, y)
    scaled = X / X.std(axis=0) * np.sqrt(kernel.scales_)
    expected = np.exp(-0.5 * np.sum((scaled[:, None] - scaled[:9]) ** 2, axis=2))
    assert_allclose(kernel(X, X[:9]), expected, rtol=1e-10)
    K = kernel(X)
    assert_array_equal(K, K.T)
    assert_array_equal(kernel.diag(X), np.diagonal(K))
    assert_array_equal(pickle.loads(pickle.dumps(kernel))(X), K)
    assert kernel.is_psd


def test_many_rows_are_sampled():
    X, y = data(n_rows=400)
    kernel = RelevanceRBF(max_rows=80).fit(X, y)
    assert set(np.argsort(-kernel.scales_)[:2]) == {1, 3}
    same(RelevanceRBF(max_rows=80).fit(X[::-1], y[::-1]), kernel)
    assert not np.allclose(RelevanceRBF().fit(X, y).scales_, kernel.scales_, rtol=1e-3)


# -- composition ------------------------------------------------------------------------------


def test_within_other_kernels():
    X, y = data()
    plain = RelevanceRBF().fit(X, y)
    for kernel in (RelevanceRBF() + Linear(), RBF() * RelevanceRBF()):
        assert kernel.learns_from_targets
        fitted = kernel.fit(X, y)
        terms = (fitted.left_, fitted.right_)
        same(next(term for term in terms if isinstance(term, RelevanceRBF)), plain)
    after = RelevanceRBF().after(StandardScaler())
    assert after.learns_from_targets
    weights = np.r_[np.zeros(10), np.ones(50)]
    same(after.fit(X, y, weights).kernel_, RelevanceRBF().fit(X[10:], y[10:]), rtol=1e-5)
    union = KernelUnion([("a", RBF()), ("b", RelevanceRBF())]).fit(X, y)
    assert_array_equal(union(X).kernel("b"), plain(X))
    assert not RBF().after(StandardScaler()).learns_from_targets


def test_rows_that_lack_a_view_or_all_columns():
    X, y = data()
    gaps = X.copy()
    gaps[:20] = np.nan
    expected = RelevanceRBF().fit(X[20:], y[20:])
    views = Views({"a": gaps, "b": X})
    same(RelevanceRBF().of("a").fit(views, y).kernel_, expected)
    same(WhereKnown(RelevanceRBF()).fit(gaps, y).kernel_, expected)
    assert RelevanceRBF().of("a").learns_from_targets


# -- errors -----------------------------------------------------------------------------------


def test_errors():
    X, y = data()
    with pytest.raises(ValueError, match=r"learns its scales from targets, and got none.*MKRidge"):
        RelevanceRBF().fit(X)
    with pytest.raises(ValueError, match=r"kernel 'k'.*got none"):
        KernelUnion([("k", RelevanceRBF())]).fit(X)
    with pytest.raises(ValueError, match="columns of indicators"):
        RelevanceRBF().fit(X, y.astype(str))
    with pytest.raises(ValueError, match="y has 59 rows, but X has 60"):
        RelevanceRBF().fit(X, y[1:])
    with pytest.raises(ValueError, match="y is not finite at row 2"):
        RelevanceRBF().fit(X, np.where(np.arange(60) == 2, np.nan, y))
    with pytest.raises(ValueError, match="'penalty' parameter"):
        RelevanceRBF(-1.0).fit(X, y)
    with pytest.raises(ValueError, match="not fitted"):
        RelevanceRBF()(X)
