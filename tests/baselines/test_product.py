"""Product: known answers, and kernels whose product has no root or is no kernel."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from manykernels import MKFDA, MKFDACV, MKSVC, KernelStack, MKRidge
from manykernels.baselines import Product
from manykernels.baselines.simple import GeometricMean
from manykernels.kernels import RBF, Jaccard, Linear
from manykernels.kernels.checks import IndefiniteKernelError
from tests.baselines.rule_problems import (
    GAUSSIAN_STACK,
    GAUSSIAN_TEST,
    GAUSSIANS,
    N_TRAIN,
    X_TEST,
    T,
    X,
    Y,
)

CHOICES = ["multiplicative", "spherical", "trace", None]


def mean_of(stack):
    numbers = np.arange(len(stack)), np.arange(stack.shape[1])
    return GeometricMean.of(stack.n_kernels).matrix(stack, numbers)


# -- the geometric mean ----------------------------------------------------------------------


def test_the_geometric_mean_by_hand():
    found, kernels = mean_of(GAUSSIAN_STACK), np.array(GAUSSIAN_STACK)
    assert_allclose(found, np.prod(kernels, axis=-1) ** (1 / 3), rtol=1e-14)
    assert_array_equal(found, found.T)


def test_powers_that_would_underflow_do_not():
    tiny = KernelStack.from_arrays([np.array([[1.0, 1e-200], [1e-200, 1.0]])] * 4)
    assert_allclose(mean_of(tiny)[0, 1], 1e-200, rtol=1e-12)


def test_zeros_stay_zeros_and_rounding_is_zero():
    block = np.eye(3)
    nearly = block + np.where(block == 0, -1e-17, 0.0)
    assert_array_equal(mean_of(KernelStack.from_arrays([block, nearly])), block)


def test_blocks_of_rows_are_those_of_the_whole(monkeypatch):
    expected = mean_of(GAUSSIAN_STACK)
    monkeypatch.setattr("manykernels.baselines.simple.TILE_ROWS", 7)
    assert_array_equal(mean_of(GAUSSIAN_STACK), expected)


def test_gaussians_multiply_to_a_gaussian():
    """Of all columns with the mean of their rates."""
    kernels = [("a", RBF(0.3)), ("b", RBF(0.1)), ("c", RBF(0.2))]
    model = Product(kernels, estimator=MKFDA()).fit(X, Y)
    alone = MKFDA([("all", RBF(0.2))]).fit(X, Y)
    assert_allclose(model.decision_function(X_TEST), alone.decision_function(X_TEST), rtol=1e-6)


@pytest.mark.parametrize("normalize", CHOICES)
@pytest.mark.parametrize("estimator", [MKSVC(C=50.0, tol=1e-8), MKRidge(reg=0.1)], ids=str)
def test_as_the_machine_on_the_product_by_hand(normalize, estimator):
    y = T if isinstance(estimator, MKRidge) else Y
    scale = np.arange(1.0, 4.0)
    given = KernelStack.from_arrays(scale[:, None, None] * GAUSSIAN_STACK.data)
    train, test = (np.array(s) * scale for s in (GAUSSIAN_STACK, GAUSSIAN_TEST))
    product, block = (np.prod(part, axis=-1) ** (1 / 3) for part in (train, test))
    diagonal = np.full(len(block), np.prod(scale) ** (1 / 3))[None]
    single = KernelStack.from_arrays(block[None], gram=False, row_diag=diagonal)
    new = KernelStack.from_arrays(
        np.moveaxis(test, -1, 0), gram=False, row_diag=np.tile(scale[:, None], (1, len(block)))
    )
    model = Product("precomputed", estimator=estimator, normalize=normalize).fit(given, y)
    alone = clone(estimator).set_params(kernels="precomputed", normalize=normalize)
    alone.fit(product, y)
    method = "predict" if y is T else "decision_function"
    found, expected = getattr(model, method)(new), getattr(alone, method)(single)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_normalising_the_factors_first_is_the_same():
    """Up to a constant, which the normalisation of the product takes away."""
    scaled = KernelStack.from_arrays(
        np.array([1e-3, 1.0, 50.0])[:, None, None] * GAUSSIAN_STACK.data
    )
    model, expected = (Product("precomputed").fit(s, Y) for s in (scaled, GAUSSIAN_STACK))
    assert_allclose(model.estimator_.dual_coef_, expected.estimator_.dual_coef_, atol=1e-9)


# -- kernels by default ----------------------------------------------------------------------


def test_default_kernels_have_no_negative_values():
    model = Product(estimator=MKFDACV(regs=[1.0])).fit(X, Y)
    assert model.kernel_names_ == ["rbf(0.5)", "rbf(1)", "rbf(5)", "laplacian", "scores-laplacian"]
    views = Product().fit({"linear": X[:, :2], "other": X[:, 2:]}, Y)
    assert "linear:rbf(1)" in views.kernel_names_
    assert "linear:linear" not in views.kernel_names_
    frame = pd.DataFrame({"a": X[:, 0], "word": np.array(["u", "v", "w"])[Y]})
    assert Product().fit(frame, Y).score(frame, Y) > 0.9


# -- refusals --------------------------------------------------------------------------------


def test_negative_values_are_refused_by_kernel_and_rows():
    kernels = [("far", RBF(0.1)), ("flat", Linear())]
    gram = X @ X.T
    row, column = np.unravel_index(gram.argmin(), gram.shape)
    message = (
        f"Kernel 'flat' is negative, {gram.min():.3g}, at row ({row} and training sample {column}"
        f"|{column} and training sample {row}).*RBF or Laplacian.*Average"
    )
    with pytest.raises(ValueError, match=message):
        Product(kernels).fit(X, Y)


def test_negative_values_of_new_samples_are_refused(monkeypatch):
    positive = np.abs(X)
    kernels = [("a", Linear().on([0])), ("b", Linear().on([0]))]
    model = Product(kernels).fit(positive, Y)
    new = np.abs(X_TEST)
    new[7, 0] = -1.0
    monkeypatch.setattr("manykernels.estimators.kernel_data.BLOCK_ENTRIES", 3 * 2 * N_TRAIN)
    used = model._predictor.columns
    worst = used[positive[used, 0].argmax()]
    with pytest.raises(ValueError, match=f"Kernel 'a' .*at row 7 and training sample {worst},"):
        model.predict(new)


def test_a_root_that_is_no_kernel_is_refused():
    """K is one, its square root is not: eigenvalues of [[1, a, 0], [a, 1, a], [0, a, 1]]."""
    a = 0.7
    K = np.array([[1.0, a, 0.0], [a, 1.0, a], [0.0, a, 1.0]])
    assert np.linalg.eigvalsh(K).min() > 0
    assert np.linalg.eigvalsh(np.sqrt(K)).min() < -0.1
    many = np.kron(np.eye(4), K)
    stack = KernelStack.from_arrays([many, np.kron(np.eye(4), np.ones((3, 3)))])
    with pytest.raises(IndefiniteKernelError, match=r"geometric mean.*exp.*Average.*-0.1"):
        Product("precomputed").fit(stack, np.arange(12) % 2)


def test_samples_that_lack_a_kernel_are_refused():
    with pytest.raises(ValueError, match="'missing' parameter of Product"):
        Product(GAUSSIANS, missing="mean").fit(X, Y)


# -- as other estimators ---------------------------------------------------------------------


def test_every_form_of_x_predicts_alike():
    labels = np.array(["cat", "dog", "eel"])[Y]
    expected = Product(GAUSSIANS).fit(X, labels)
    scores = expected.decision_function(X_TEST)
    assert set(expected.predict(X_TEST)) <= set(labels)
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = [("near", RBF(0.3).on(["a", "b"])), *GAUSSIANS[1:]]
    cases = [
        (dict(GAUSSIANS), X, X_TEST),
        (named, frame, pd.DataFrame(X_TEST, columns=list("abcde"))),
        ("precomputed", GAUSSIAN_STACK, GAUSSIAN_TEST),
        ("precomputed", np.array(GAUSSIAN_STACK), np.array(GAUSSIAN_TEST)),
    ]
    for kernels, data, new in cases:
        model = Product(kernels).fit(data, labels)
        for twin in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert_allclose(twin.decision_function(new), scores, rtol=1e-7, atol=1e-9)
        broken = np.array(new, dtype=float)
        broken[1, 2] = np.nan
        if isinstance(new, pd.DataFrame):
            broken = pd.DataFrame(broken, columns=new.columns)
        with pytest.raises(ValueError, match=r"not finite|contains NaN|missing value"):
            model.predict(broken)


def test_weights_of_samples_are_counts():
    counts = np.random.default_rng(1).integers(0, 3, size=N_TRAIN)
    rows = np.repeat(np.arange(N_TRAIN), counts)
    for estimator in (MKSVC(tol=1e-9), MKFDA(tol=1e-9)):
        weighted = Product(GAUSSIANS, estimator=estimator).fit(X, Y, counts)
        repeated = Product(GAUSSIANS, estimator=estimator).fit(X[rows], Y[rows])
        found, expected = (m.decision_function(X_TEST) for m in (weighted, repeated))
        assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_stacks_are_cut_in_searches():
    search = {"estimator__reg": [1e-3, 1.0]}
    scores = [
        GridSearchCV(Product(kernels, estimator=MKFDA()), search, cv=3)
        .fit(data, Y)
        .cv_results_["mean_test_score"]
        for kernels, data in ((GAUSSIANS, X), ("precomputed", GAUSSIAN_STACK))
    ]
    assert_allclose(*scores)
    assert np.ptp(scores[0]) > 0, "a grid of equal scores tests nothing"


def test_a_product_with_another_kernel_than_gaussians():
    bits = (np.random.default_rng(0).random((40, 20)) < 0.4).astype(float)
    y = (bits[:, 0] > 0).astype(int)
    model = Product([("jaccard", Jaccard()), ("rbf", RBF())]).fit(bits, y)
    assert model.score(bits, y) > 0.8
