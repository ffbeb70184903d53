"""Moments of features: sums over rows in any order, and what a loss takes from them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels import ExactFeatures, KernelUnion
from manykernels.kernels import RBF, Linear
from manykernels.losses.features import FeatureLoss
from manykernels.scale import Nystrom
from manykernels.scale.blocks import row_blocks
from manykernels.scale.moments import Accumulator, ClassTargets, Moments, NumberTargets
from manykernels.scale.rows import Block
from manykernels.scale.sampling import Plan

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) + 50.0  # far from zero, so that centring matters
Y = RNG.integers(3, size=60)
WEIGHT = RNG.uniform(0.5, 2.0, 60)
UNION = KernelUnion([("flat", Linear().on([0, 1])), ("rest", Linear().on([2, 3]))]).fit(X)
MAP = ExactFeatures().features_of(UNION, X, len(X), spherical=False)


def accumulator(plan=None, factors=None):
    origin = MAP(X[:10]).mean(axis=0)
    return Accumulator(MAP, origin, ClassTargets(np.arange(3), factors), plan or Plan.whole())


def moments_of(add, blocks):
    state = None
    for block in blocks:
        state = add(state, block)
    return state


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_centred_moments_are_those_of_the_rows(weight):
    add = accumulator()
    found = moments_of(add, row_blocks(X, Y, weight, block_size=7)).total.centred()
    w = np.ones(60) if weight is None else weight
    Z = MAP(X) - add.origin
    T = np.eye(3)[Y]
    Zc, Tc = Z - np.average(Z, axis=0, weights=w), T - np.average(T, axis=0, weights=w)
    np.testing.assert_allclose(found.gram, (Zc.T * w) @ Zc, atol=1e-10)
    np.testing.assert_allclose(found.cross, (Zc.T * w) @ Tc, atol=1e-11)
    np.testing.assert_allclose(found.total, (Tc.T * w) @ Tc, atol=1e-11)
    np.testing.assert_allclose(found.mean, np.average(Z, axis=0, weights=w), atol=1e-12)
    assert (found.n_rows, found.weight) == (60, pytest.approx(w.sum()))


@given(cuts=st.lists(st.integers(1, 59), max_size=6, unique=True), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_no_partition_and_no_order_changes_them(cuts, seed):
    add = accumulator(Plan.folds(3, 0))
    ends = [0, *sorted(cuts), 60]
    blocks = [Block(X[a:b], Y[a:b], WEIGHT[a:b], a, k) for k, (a, b) in enumerate(pairwise(ends))]
    whole = moments_of(add, [Block(X, Y, WEIGHT, 0, 0)])
    order = np.random.default_rng(seed).permutation(len(blocks))
    parts = [add(None, blocks[k]) for k in order]
    merged = parts[0]
    for part in parts[1:]:
        merged = add.merge(merged, part)
    for one, other in zip(merged.parts, whole.parts, strict=True):
        np.testing.assert_allclose(one.matrix, other.matrix, rtol=1e-12, atol=1e-10)
        assert one.n_rows == other.n_rows


def test_origin_keeps_the_digits_of_features_far_from_zero():
    """Without it the squares of a common mean of 1e8 leave nothing of a spread of one."""
    far = X + 1e8
    union = KernelUnion([("flat", Linear())]).fit(far)
    features = ExactFeatures().features_of(union, far, 60, spherical=False)
    origin = features(far[:10]).mean(axis=0)
    add = Accumulator(features, origin, ClassTargets(np.arange(3)), Plan.whole())
    found = add(None, Block(far, Y, None, 0, 0)).total.centred()
    expected = 60 * np.cov((X + 1e8).T, bias=True)
    np.testing.assert_allclose(found.gram, expected, rtol=1e-6)


def test_parts_are_those_of_the_plan():
    plan = Plan.folds(4, seed=1)
    state = moments_of(accumulator(plan), row_blocks(X, Y, block_size=9))
    part_of = plan.parts(np.arange(60))
    assert [part.n_rows for part in state.parts] == np.bincount(part_of, minlength=4).tolist()
    left = state.of(plan.training[2])
    np.testing.assert_allclose(left.target_sums(), np.bincount(Y[part_of != 2], minlength=3))


def test_rows_of_weight_zero_do_not_count():
    weight = np.where(np.arange(60) < 20, 0.0, 2.0)
    some = moments_of(accumulator(), row_blocks(X, Y, weight, block_size=16)).total
    rest = moments_of(accumulator(), row_blocks(X[20:], Y[20:], weight[20:])).total
    assert (some.n_rows, some.count) == (40, 80.0)
    np.testing.assert_allclose(some.matrix, rest.matrix, rtol=1e-12)


def test_weights_of_classes_multiply_those_of_samples():
    factors = np.array([1.0, 2.0, 0.5])
    one = moments_of(accumulator(factors=factors), row_blocks(X, Y, WEIGHT)).total
    other = moments_of(accumulator(), row_blocks(X, Y, WEIGHT * factors[Y])).total
    np.testing.assert_allclose(one.matrix, other.matrix, rtol=1e-12)
    assert one.count == pytest.approx(WEIGHT.sum())


def test_new_classes_get_columns_of_zeros():
    two = Accumulator(MAP, np.zeros(4), ClassTargets(np.array([0, 2])), Plan.whole())
    rows = Y != 1
    before = two(None, Block(X[rows], Y[rows], None, 0, 0)).total
    wide = before.with_targets_at(np.array([0, 2]), 3)
    three = Accumulator(MAP, np.zeros(4), ClassTargets(np.arange(3)), Plan.whole())
    np.testing.assert_allclose(
        wide.matrix, three(None, Block(X[rows], Y[rows], None, 0, 0)).total.matrix
    )


def test_numbers_are_measured_from_an_origin():
    y = np.column_stack([X[:, 0] + 1e6, X[:, 1]])
    add = Accumulator(MAP, np.zeros(4), NumberTargets(y[:5].mean(axis=0)), Plan.whole())
    found = add(None, Block(X, y, None, 0, 0)).total.centred()
    np.testing.assert_allclose(found.total, 60 * np.cov(y.T, bias=True), rtol=1e-9)
    with pytest.raises(ValueError, match="Block 3, which begins at row 9: y has 1 columns"):
        add(None, Block(X, y[:, 0], None, 9, 3))


def test_an_unknown_class_is_named_with_its_block():
    with pytest.raises(ValueError, match=r"Block 2, which begins at row 30: y has the class .*7"):
        accumulator()(None, Block(X[:4], np.array([0, 1, 7, 2]), None, 30, 2))


@pytest.mark.parametrize("normalize", ["multiplicative", "trace", None])
def test_scales_are_those_of_kernel_matrices(normalize):
    from manykernels.kernels.transforms import preparation

    state = moments_of(accumulator(), row_blocks(X, Y))
    centred = state.total.centred()
    scales = centred.scales(MAP.kernel_of, 2, normalize)
    stack = preparation(normalize).fit_transform(UNION(X))
    turn = np.eye(3)
    sums = centred.sums(MAP.kernel_of, scales, turn)
    for j, block in enumerate(sums.blocks()):
        assert np.trace(sums.gram[block, block]) == pytest.approx(np.trace(stack.kernel(j)))
    assert FeatureLoss(sums, 1.0).evaluate(np.ones(2)).value > 0.0


def test_a_constant_kernel_has_no_scale():
    table = np.column_stack([X[:, :2], np.full(60, 3.0)])
    union = KernelUnion([("some", RBF(1e-2).on([0, 1])), ("none", Linear().on([2]))]).fit(table)
    features = Nystrom(10).features_of(union, table, 60, spherical=False)
    add = Accumulator(
        features, features(table).mean(axis=0), ClassTargets(np.arange(3)), Plan.whole()
    )
    centred = add(None, Block(table, Y, None, 0, 0)).total.centred()
    scales = centred.scales(features.kernel_of, 2, "multiplicative")
    assert scales[0] > 0.0
    assert scales[1] == 0.0


# -- plans ----------------------------------------------------------------------------------


def test_folds_are_dealt_by_class():
    labels = np.repeat([0, 1, 2], [40, 15, 5])
    plan = Plan.dealt(5, np.arange(60), labels, seed=0)
    for k in range(5):
        tested = plan.tested(np.arange(60), k)
        assert np.bincount(labels[tested], minlength=3).tolist() == [8, 3, 1]
        assert not plan.training[k][plan.parts(tested)].any()


def test_a_class_of_one_row_is_always_in_training():
    labels = np.array([0] * 10 + [1] * 10 + [2])
    plan = Plan.dealt(5, np.arange(21), labels, seed=0)
    assert all(plan.training[k][plan.parts(np.array([20]))][0] for k in range(5))


def test_given_splits_are_sums_of_parts():
    splits = [(np.arange(0, 30), np.arange(30, 60)), (np.arange(10, 60), np.arange(0, 5))]
    plan = Plan.given(splits, 60)
    rows = np.arange(60)
    for k, (train, test) in enumerate(splits):
        np.testing.assert_array_equal(np.flatnonzero(plan.training[k][plan.parts(rows)]), train)
        np.testing.assert_array_equal(plan.tested(rows, k), test)


def test_later_rows_are_in_random_folds_unless_splits_were_given():
    plan = Plan.dealt(3, np.arange(30), np.zeros(30, dtype=int), seed=0)
    assert set(plan.parts(np.arange(30, 300))) == {0, 1, 2}
    given_plan = Plan.given([(np.arange(10), np.arange(10, 20))], 20)
    with pytest.raises(ValueError, match="pass a number of folds as cv"):
        given_plan.parts(np.array([25]))


def test_moments_of_nothing():
    none = Moments.none(3, 2)
    assert (none.n_targets, none.n_rows) == (2, 0)
    assert not none.matrix.any()
