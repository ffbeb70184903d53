"""Kernels by columns: the same numbers as a stack, within the memory granted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.gaussian_process import kernels as gaussian_process

from manykernels import KernelUnion, rbf_grid
from manykernels.kernels import RBF, Laplacian, Polynomial, Precomputed, on_demand
from manykernels.kernels.on_demand import PanelCache, StreamedKernels
from manykernels.kernels.transforms import NORMALIZATIONS, Spherical, preparation
from manykernels.utils import numerics
from tests.problems import slow, some_slow


@pytest.fixture(name="X")
def rows():
    return np.random.default_rng(0).standard_normal((70, 4))


@pytest.fixture
def union(X):
    kernels = [*rbf_grid([0.5, 1, 2]).kernels, ("laplace", Laplacian()), ("poly", Polynomial(2))]
    return KernelUnion([*kernels, ("part", RBF().on([0, 1]))]).fit(X)


@pytest.fixture(params=[2**17, 300], ids=["one tile", "many tiles"])
def tiles(request, monkeypatch):
    monkeypatch.setattr(on_demand, "_TILE_ENTRIES", request.param)
    monkeypatch.setattr(on_demand, "_TILE_COLUMNS", 32)


def assert_same(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "normalize", some_slow([*NORMALIZATIONS, None], "spherical", "trace", None)
)
def test_all_is_as_of_a_prepared_stack(X, union, normalize, weighted):
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, 70) if weighted else None
    chains = preparation(normalize), preparation(normalize)
    stack = chains[0].fit_transform(union(X), sample_weight=weight)
    lazy = chains[1].fit_transform(StreamedKernels(union, X), sample_weight=weight)
    assert lazy.shape == stack.shape
    assert lazy.names == stack.names
    assert len(lazy) == 70
    assert lazy.centered
    assert_same(lazy.row_diag, stack.row_diag)
    indices = np.array([3, 0, 41, 17])
    columns, weights = rng.standard_normal((70, 3)), rng.uniform(0, 1, 6)
    weights[2] = 0.0
    assert_same(lazy.kernel(4)[:, indices], stack.kernel(4)[:, indices])
    assert_same(lazy.apply(columns), stack.apply(columns))
    assert_same(lazy.combine(weights), stack.combine(weights))
    assert_same(lazy.kernel(1), stack.kernel(1))
    for kernels in (lazy, stack):
        products = kernels.apply_columns(indices, columns[indices])
        expected = [stack.kernel(j)[:, indices] @ columns[indices] for j in range(6)]
        assert_same(products, expected)
        block = kernels.combine_block(weights, indices)
        assert_same(block, stack.combine(weights)[np.ix_(indices, indices)])
    for rows, cols in [(indices, indices), (indices, np.arange(5))]:
        assert_same(lazy[np.ix_(rows, cols)].kernel(3), stack[np.ix_(rows, cols)].kernel(3))
    np.testing.assert_array_equal(lazy.contributing(weights), stack.contributing(weights))
    fresh = np.random.default_rng(2).standard_normal((5, 4))
    assert_same(*(chain.transform(union(fresh, X)).combine(weights) for chain in chains))


def test_a_part_has_the_names_of_its_rows(X):
    table = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    part = StreamedKernels(rbf_grid([1]).fit(table), table)[np.ix_([2, 0], [1])]
    assert list(part.row_samples) == ["row 2", "row 0"]
    assert list(part.col_samples) == ["row 1"]


def test_products_go_where_they_are_told(X, union):
    lazy = StreamedKernels(union, X)
    columns = np.ones((70, 2))
    first = lazy.apply(columns)
    again = lazy.apply(2 * columns, out=first)
    assert again is first
    assert_same(again, 2 * union(X).apply(columns))
    out = np.empty((70, 70))
    assert lazy.combine(np.ones(6), out=out) is out
    with pytest.raises(ValueError, match="One weight per kernel"):
        lazy.combine(np.ones(5))


@pytest.mark.parametrize("n_panels", [0, *slow(1, 5), 100])
def test_the_cache_keeps_its_bound_and_the_numbers(X, union, n_panels):
    size = 8 * 70 * 10
    lazy = StreamedKernels(union, X, cache_bytes=n_panels * size + size // 2)
    stack = union(X)
    rng = np.random.default_rng(0)
    strips = np.array_split(rng.permutation(70), 7)
    for _ in range(3):
        for strip in strips:
            columns = rng.standard_normal((10, 2))
            assert_same(
                lazy.apply_columns(strip, columns),
                [stack.kernel(j)[:, strip] @ columns for j in range(6)],
            )
            assert lazy.cache.n_bytes <= lazy.cache.max_bytes
    assert lazy.cache.n_bytes == min(n_panels, 42) * size


def test_kept_panels_are_not_computed_again(X, union, monkeypatch):
    lazy = StreamedKernels(union, X)
    strip = np.arange(10)
    first = lazy.apply_columns(strip, np.ones((10, 1)))
    monkeypatch.setattr(on_demand, "SharedComparisons", None)
    assert_same(lazy.scaled(np.full(6, 2.0)).apply_columns(strip, np.ones((10, 1))), 2 * first)


def test_a_cache_counts_its_panels():
    cache = PanelCache(1000)
    assert len(cache.panels(np.arange(5), 4, 10)) == 2
    assert cache.n_bytes == 800
    assert len(cache.panels(np.arange(5), 4, 10)) == 2
    assert len(cache.panels(np.arange(6), 4, 10)) == 0


def test_the_number_of_threads_changes_nothing(X, union, monkeypatch):
    monkeypatch.setattr(on_demand, "_TILE_ENTRIES", 300)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(numerics, "openmp_n_threads", lambda n=n_threads, **_: n)
        results.append(StreamedKernels(union, X).apply(np.ones((70, 1))))
    np.testing.assert_array_equal(*results)


def test_noise_of_single_samples_stays_on_the_diagonal(X):
    union = KernelUnion(
        [("noisy", gaussian_process.RBF() + gaussian_process.WhiteKernel(0.5))]
    ).fit(X)
    assert_same(StreamedKernels(union, X).kernel(0), union(X).kernel(0))


def test_sparse_tables_and_looked_up_kernels(X):
    table = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    union = rbf_grid([1, 2]).fit(table)
    assert_same(StreamedKernels(union, table).kernel(1), union(table).kernel(1))
    numbers = np.arange(70)[:, None]
    union = KernelUnion([("known", Precomputed(X @ X.T))]).fit(numbers)
    assert_same(StreamedKernels(union, numbers).kernel(0), X @ X.T)


def test_rescaling_comes_before_centring(X, union):
    centered = preparation(None).fit_transform(StreamedKernels(union, X))
    with pytest.raises(ValueError, match="by sample before centring"):
        Spherical().fit_transform(centered)


def test_a_kernel_that_fails_is_named(X):
    union = KernelUnion([("wrong", lambda X, Y: np.zeros((2, 2)))]).fit(X)
    with pytest.raises(ValueError, match="kernel 'wrong'"):
        StreamedKernels(union, X).apply(np.ones((70, 1)))
