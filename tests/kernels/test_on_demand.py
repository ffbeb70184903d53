"""Kernels on demand: the same numbers as a stack, a block of matrices in memory at a time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from manykernels import Denoise, KernelUnion, rbf_grid
from manykernels.kernels import RBF, Laplacian, Linear, Polynomial, RBFSubsets, on_demand
from manykernels.kernels.adapters import CallableKernel
from manykernels.kernels.on_demand import OnDemandKernels
from manykernels.kernels.transforms import NORMALIZATIONS, Center, Chain, preparation
from manykernels.utils import numerics
from tests.problems import slow

M = 25


@pytest.fixture(name="X")
def rows():
    return np.random.default_rng(0).standard_normal((M, 6))


@pytest.fixture(params=["union", "subsets"])
def union(request, X):
    if request.param == "subsets":
        return RBFSubsets(11, [0.5, 1, 3], sizes=(1, 4)).fit(X)
    kernels = [*rbf_grid([0.5, 1, 2]).kernels, ("laplace", Laplacian()), ("poly", Polynomial(2))]
    some = [(f"x{j}", RBF().on([j])) for j in range(6)]
    return KernelUnion([*kernels, ("line", Linear()), *some]).fit(X)


@pytest.fixture(params=[2**19, 3 * M**2, *slow(1)], ids=["one block", "threes", "singles"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(on_demand, "_BLOCK_ENTRIES", request.param)


@pytest.fixture(params=[1, *slow(3)], ids=["alone", "threads"])
def threads(request, monkeypatch):
    monkeypatch.setattr(numerics, "openmp_n_threads", lambda only_physical_cores: request.param)


def assert_same(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("blocks", "threads")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize", [*NORMALIZATIONS, None])
def test_all_is_as_of_a_prepared_stack(X, union, normalize, weighted):
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, M) if weighted else None
    chains = preparation(normalize), preparation(normalize)
    stack = chains[0].fit_transform(union(X), sample_weight=weight)
    lazy = chains[1].fit_transform(OnDemandKernels(union, X), sample_weight=weight)
    n = stack.n_kernels
    assert (lazy.shape, len(lazy), lazy.n_kernels) == (stack.shape, M, n)
    assert lazy.names == stack.names
    columns = rng.standard_normal((M, 2))
    assert_same(lazy.apply(columns), stack.apply(columns))
    assert_same(lazy.row_diag, stack.row_diag)
    assert_same(lazy.kernel(4), stack.kernel(4))
    weights = np.where(np.arange(n) % 3 == 1, rng.random(n), 0.0)
    assert_same(lazy.combine(weights), stack.combine(weights))
    assert lazy.contributing(weights).tolist() == stack.contributing(weights).tolist()
    # The transform of the kernels in use, for blocks of new rows.
    some = np.array([1, 4, 7])
    block = union.subset(some)(rng.standard_normal((5, 6)), X)
    expected, found = (chain.select(some).transform(block) for chain in chains)
    for j in range(3):
        assert_same(found.kernel(j), expected.kernel(j))


@pytest.mark.usefixtures("blocks")
def test_every_kernel_is_visited_once_and_few_are_in_memory(union, X, monkeypatch):
    """By construction: a thread writes all its blocks into the same memory."""
    shapes, visited = [], []
    allocate = on_demand.allocate
    monkeypatch.setattr(on_demand, "allocate", lambda s: shapes.append(s) or allocate(s))
    monkeypatch.setattr(numerics, "openmp_n_threads", lambda only_physical_cores: 2)
    lazy = Center().fit_transform(OnDemandKernels(union, X))
    lazy.visit(lambda stack, positions: visited.extend(positions.tolist()))
    assert sorted(visited) == list(range(lazy.n_kernels))
    size = max(1, on_demand._BLOCK_ENTRIES // M**2)
    assert 1 <= len(shapes) <= 2
    assert set(shapes) == {(size, M, M)}


def test_values_do_not_depend_on_threads(X, monkeypatch):
    monkeypatch.setattr(on_demand, "_BLOCK_ENTRIES", 3 * M**2)
    union, columns, found = RBFSubsets(20, [0.5, 2]).fit(X), np.ones((M, 2)), []
    for threads in (lambda only_physical_cores: 1, lambda only_physical_cores: 3):
        monkeypatch.setattr(numerics, "openmp_n_threads", threads)
        lazy = preparation("multiplicative").fit_transform(OnDemandKernels(union, X))
        found += [lazy.apply(columns), lazy.apply(columns)]
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_constant_kernels_are_found_on_the_way(X):
    X = np.column_stack([X, np.ones(M)])
    pairs = [(f"x{j}", RBF().on([j])) for j in range(7)]
    lazy = OnDemandKernels(KernelUnion(pairs).fit(X), X)
    chain, told, n_visits = preparation("multiplicative"), [], []
    prepared = chain.fit_transform(lazy)
    lazy.on_first_pass(lambda: told.append((lazy.without_variance(), chain.erased())))
    assert told == []
    prepared.visit(lambda stack, positions: n_visits.append(len(positions)))
    prepared.visit(lambda stack, positions: None)
    ((constant, erased),) = told
    assert constant.tolist() == erased.tolist() == [6]
    assert sum(n_visits) == 7
    # The same for whoever asks first.
    alone = OnDemandKernels(KernelUnion(pairs).fit(X), X)
    assert alone.without_variance().tolist() == [6]
    assert alone.erased().tolist() == []


def test_a_kernel_that_is_not_finite_is_named(X):
    def broken(x, y):
        return np.inf

    pairs = [("good", RBF()), ("bad one", CallableKernel(broken)), ("other", Linear())]
    lazy = OnDemandKernels(KernelUnion(pairs).fit(X), X)
    with pytest.raises(ValueError, match="'bad one'"):
        lazy.visit(lambda stack, positions: None)


def test_a_kernel_that_is_not_positive_semi_definite_is_named(X):
    pairs = [("good", RBF()), ("bent", Polynomial(3, coef0=-2.0))]
    lazy = OnDemandKernels(KernelUnion(pairs).fit(X), X)
    with pytest.raises(ValueError, match="'bent'"):
        lazy.visit(lambda stack, positions: None)


def test_transforms_that_need_more_than_one_kernel_are_refused(union, X):
    with pytest.raises(ValueError, match=r"Denoise cannot be learnt.*Newton\(on_demand=False\)"):
        Chain([Center(), Denoise(2)]).fit_transform(OnDemandKernels(union, X))


def test_samples_keep_their_names(X):
    frame = pd.DataFrame(X, index=[f"row{i}" for i in range(M)]).add_prefix("x")
    union = RBFSubsets(3, [1.0]).fit(frame)
    stack = OnDemandKernels(union, frame).select([0, 2])
    assert stack.row_samples[:2].tolist() == ["row0", "row1"]
    assert_same(stack.kernel(1), RBFSubsets(3, [1.0]).fit(X).subset([2])(X).kernel(0))
