"""Components of the mean kernel: those of kernel PCA, weights, landmarks, new samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA

from manykernels import KernelUnion, LocalizedSVC
from manykernels.gating import KernelComponents, Sigmoid
from manykernels.kernels import RBF, Linear

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
X[:, 0] = X[:, 0] ** 2 + X[:, 0]
UNION = KernelUnion([("wide", RBF(0.1)), ("line", Linear()), ("narrow", RBF(1.0))]).fit(X)
STACK, BLOCK = UNION(X), UNION(NEW, X)


def mean_of(stack):
    return np.mean([stack.kernel(p) for p in range(stack.n_kernels)], axis=0)


def components_of(found, block):
    return mean_of(block)[:, found.rows] @ found.axes - found.offsets


def same_up_to_sign(found, expected, **tolerance):
    signs = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * signs, expected, **tolerance)


def test_components_equal_kernel_pca():
    found = KernelComponents(4).learn(STACK, None)
    theirs = KernelPCA(4, kernel="precomputed").fit(mean_of(STACK))
    for block in (STACK, BLOCK):
        ours, expected = components_of(found, block), theirs.transform(mean_of(block))
        scale = components_of(found, STACK).std() / theirs.transform(mean_of(STACK)).std()
        same_up_to_sign(ours, scale * expected, atol=1e-9 * np.abs(ours).max())
    assert_allclose(components_of(found, STACK).mean(axis=0), 0.0, atol=1e-10)


def test_a_weight_of_two_is_a_repeated_row():
    counts = np.random.default_rng(3).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    weighted = KernelComponents(3).learn(STACK, counts.astype(float))
    repeated = KernelComponents(3).learn(STACK[np.ix_(rows, rows)], None)
    assert_allclose(
        components_of(weighted, BLOCK), components_of(repeated, BLOCK[:, rows]), atol=1e-8
    )


def test_many_rows_are_compared_with_some_of_them():
    table = np.random.default_rng(1).normal(size=(800, 3)) * [3.0, 2.0, 1.0]
    union = KernelUnion([("line", Linear()), ("wide", RBF(0.01))]).fit(table)
    stack = union(table)
    found = KernelComponents(2).learn(stack, None)
    assert len(found.rows) == 500
    assert np.all(np.diff(found.rows) > 0)
    theirs = KernelPCA(2, kernel="precomputed").fit_transform(mean_of(stack))
    for ours, expected in zip(components_of(found, stack).T, theirs.T, strict=True):
        assert abs(np.corrcoef(ours, expected)[0, 1]) > 0.99


def test_fewer_components_where_there_are_fewer():
    rank_two = KernelUnion([("line", Linear())]).fit(X[:, :2])(X[:, :2])
    assert KernelComponents(5).learn(rank_two, None).axes.shape == (60, 2)
    assert KernelComponents(5).learn(STACK[:3, :3], None).axes.shape == (3, 2)


def test_kernels_that_cannot_tell_samples_apart():
    same = KernelUnion([("one", lambda A, B: np.ones((len(A), len(B))))]).fit(X)(X)
    found = KernelComponents().learn(same, None)
    assert_allclose(components_of(found, same), 0.0)


def test_new_samples_one_by_one_and_together():
    how = {"gating": Sigmoid(early_stopping=0)}
    model = LocalizedSVC(UNION, **how).fit(X, X[:, 0] > 0)
    together = model.gate(NEW)
    for row in range(3):
        assert_allclose(model.gate(NEW[[row]])[0], together[row], rtol=1e-9)
    of_stack = LocalizedSVC("precomputed", **how).fit(STACK, X[:, 0] > 0)
    assert_allclose(of_stack.gate(BLOCK), together, atol=1e-6)
    assert np.ptp(together, axis=0).max() > 0.1


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "three"])
def test_numbers_that_cannot_be(number):
    with pytest.raises(ValueError, match="n_components must be an integer of at least 1"):
        KernelComponents(number)
