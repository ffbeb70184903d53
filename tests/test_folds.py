"""Which rows belong together, and folds that keep them together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manykernels import KernelStack, rbf_grid
from manykernels.utils.folds import (
    about_groups,
    effective_size,
    equal_kernel_rows,
    group_numbers,
    groups_to_keep,
    numbered,
    standard_error,
    stratified_folds,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_groups_are_numbered_in_the_order_of_their_first_rows():
    assert_array_equal(numbered(["b", "a", "b", "c"]), [0, 1, 0, 2])


@pytest.mark.parametrize(
    "labels", [["b", "a", "b"], [2.5, -1.0, 2.5], [7, "a", 7], [("b", 1), "a", ("b", 1)]]
)
def test_given_groups_are_numbered_in_the_order_of_their_labels(labels):
    array = np.empty(3, object)
    array[:] = labels
    first = group_numbers(array)
    assert first[0] == first[2] != first[1]
    assert_array_equal(group_numbers(array[[1, 0, 2]]), first[[1, 0, 2]])
    assert_array_equal(group_numbers(np.array(["c", "a", "b"])), [0, 1, 2])  # each row its own


def test_what_is_kept_together_is_told():
    assert about_groups(np.arange(4), given=True) == about_groups(np.arange(4)) == ""
    assert about_groups(np.array([0, 0, 1])) == "1 of 3 rows repeats others and was kept together"
    told = about_groups(np.array([0, 0, 1]), given=True)
    assert told == "3 rows of 2 groups were kept together"


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([5, 1, 1], True),  # five equal rows of seven are repeats
        ([6, 1, 1], False),  # six of eight are a category
        ([8] * 50, True),  # a fiftieth of all rows
        ([9] + [8] * 50, False),
        ([4], False),  # all rows are equal
        ([1, 1], True),
    ],
)
def test_equal_rows_are_kept_together_if_they_are_few(sizes, kept):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    expected = groups if kept else np.arange(len(groups))
    assert_array_equal(groups_to_keep(groups), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_rows_of_kernels_are_equal_rows_of_the_table(rng, dtype):
    X = rng.standard_normal((30, 3)) + 100.0
    X[[4, 17]], X[20] = X[2], X[9]
    stack = rbf_grid([0.5, 2.0]).fit(X)(X)
    matrices = [stack.kernel(j).astype(dtype) for j in range(2)]
    groups = equal_kernel_rows(KernelStack.from_arrays(matrices))
    assert groups[2] == groups[4] == groups[17]
    assert groups[9] == groups[20]
    assert len(np.unique(groups)) == 27


def test_samples_that_one_kernel_tells_apart_are_not_equal(rng):
    first = np.repeat(rng.standard_normal((5, 2)), 2, axis=0)
    second = rng.standard_normal((10, 2))
    assert len(np.unique(equal_kernel_rows(KernelStack.from_arrays([first @ first.T])))) == 5
    both = KernelStack.from_arrays([first @ first.T, second @ second.T])
    assert len(np.unique(equal_kernel_rows(both))) == 10


def test_samples_that_lack_a_kernel_differ_from_those_that_have_it():
    gap = np.ones((3, 3))
    gap[2], gap[:, 2] = np.nan, np.nan
    stack = KernelStack.from_arrays([np.ones((3, 3)), gap], missing=True)
    assert_array_equal(equal_kernel_rows(stack), [0, 0, 1])


@st.composite
def problems(draw):
    n_rows = draw(st.integers(4, 60))
    groups = draw(st.lists(st.integers(0, 25), min_size=n_rows, max_size=n_rows))
    labels = draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    return np.array(labels), np.array(groups), draw(st.integers(2, 6))


@given(problem=problems())
def test_folds_hold_whole_groups_and_leave_every_class_in_training(problem):
    labels, groups, n_folds = problem
    folds = stratified_folds(labels, groups, n_folds)
    tested = np.concatenate([np.empty(0, int), *folds])
    assert len(np.unique(tested)) == len(tested)
    for fold in folds:
        assert not np.isin(np.delete(groups, fold), groups[fold]).any()
        assert set(np.delete(labels, fold)) == set(labels)


@given(problem=problems())
def test_folds_are_as_even_as_whole_groups_allow(problem):
    _, groups, n_folds = problem
    labels = np.zeros(len(groups), int)
    folds = stratified_folds(labels, groups, n_folds)
    sizes = np.zeros(n_folds, int)
    sizes[: len(folds)] = list(map(len, folds))
    if len(np.unique(groups)) > 1:
        assert np.ptp(sizes) <= np.bincount(groups).max()


@pytest.mark.parametrize("n_rows", [23, 200])
def test_folds_of_single_rows_are_even_in_size_and_classes(rng, n_rows):
    labels = rng.integers(0, 3, n_rows)
    folds = stratified_folds(labels, np.arange(n_rows), 5)
    assert sum(map(len, folds)) == n_rows
    assert np.ptp(list(map(len, folds))) <= 1
    counts = np.array([np.bincount(labels[fold], minlength=3) for fold in folds])
    assert np.ptp(counts, axis=0).max() <= 1


@pytest.mark.parametrize("seed", range(20))
def test_rare_rows_of_mixed_groups_are_divided_too(seed):
    """Two groups have the rows of the second class; most rows of every group are of the first."""
    groups = np.repeat(np.arange(4), 12)
    labels = np.where((groups < 2) & (np.arange(48) % 12 < 2), 1, 0)
    folds = stratified_folds(labels, groups, 2, seed=seed)
    assert [np.bincount(labels[fold]).tolist() for fold in folds] == [[22, 2], [22, 2]]


def test_folds_are_shuffled_and_the_same_every_time():
    labels, groups = np.zeros(50, int), np.arange(50)
    first, second = (stratified_folds(labels, groups, 5) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert_array_equal(one, other)
    assert len(np.unique(np.diff(first[0]))) > 1


def test_a_row_of_weight_three_is_dealt_like_three_equal_rows(rng):
    labels, weights = rng.integers(0, 3, 80), rng.integers(1, 5, 80)
    rows = np.repeat(np.arange(80), weights)
    weighted = stratified_folds(labels, np.arange(80), 10, weights.astype(float))
    repeated = stratified_folds(labels[rows], rows, 10)
    for one, other in zip(weighted, repeated, strict=True):
        assert_array_equal(one, np.unique(rows[other]))


@pytest.mark.parametrize("scale", [0.1, 3.0, 1e5])
def test_folds_do_not_depend_on_the_unit_of_weights(rng, scale):
    labels, weights = rng.integers(0, 2, 60), rng.integers(1, 4, 60) / 3
    folds = stratified_folds(labels, np.arange(60), 7, weights)
    for one, other in zip(
        folds, stratified_folds(labels, np.arange(60), 7, weights * scale), strict=True
    ):
        assert_array_equal(one, other)


@given(problem=problems(), seed=st.integers(0, 10**6))
def test_folds_of_several_labels(problem, seed):
    """Whole groups, and samples with and without every label in training."""
    _, groups, n_folds = problem
    labels = (np.random.default_rng(seed).random((len(groups), 4)) < 0.3).astype(int)
    folds = stratified_folds(labels, groups, n_folds)
    tested = np.concatenate([np.empty(0, int), *folds])
    assert len(np.unique(tested)) == len(tested)
    for fold in folds:
        assert not np.isin(np.delete(groups, fold), groups[fold]).any()
        left = np.delete(labels, fold, axis=0)
        for column, of_all in zip(left.T, labels.T, strict=True):
            assert set(column) == set(of_all)


def test_folds_are_even_in_several_labels(rng):
    """Rare and frequent labels; folds of classes alone would leave some without a rare one."""
    labels = (rng.random((300, 6)) < [0.02, 0.03, 0.1, 0.3, 0.5, 0.9]).astype(int)
    folds = stratified_folds(labels, np.arange(300), 5)
    assert sum(map(len, folds)) == 300
    counts = np.array([[len(fold), *labels[fold].sum(axis=0)] for fold in folds])
    assert np.ptp(counts[:, :4], axis=0).max() <= 2
    assert np.ptp(counts, axis=0).max() <= 6
    assert counts[:, 1].min() >= 1


def test_effective_size():
    assert effective_size(7, None, None) == 7.0
    assert effective_size(4, np.array([0, 0, 1, 2]), None) == 16 / 6
    assert_allclose(effective_size(3, None, np.array([2.0, 2.0, 2.0])), 3.0)
    assert_allclose(
        effective_size(3, np.array([0, 1, 1]), np.array([2.0, 1.0, 1.0])),
        effective_size(2, None, np.array([5.0, 5.0])),
    )


def test_the_standard_error_of_repeated_values_is_that_of_single_ones(rng):
    values = rng.standard_normal(40)
    single = standard_error(values, None, None)
    assert_allclose(single, values.std() / np.sqrt(40))
    twice, groups = np.tile(values, 2), np.tile(np.arange(40), 2)
    assert_allclose(standard_error(twice, None, groups), single)
    assert standard_error(twice, None, None) < 0.8 * single
