"""Regions by kernel k-means: known answers, laws, few and equal samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from manykernels import KernelStack, KernelUnion, rbf_grid
from manykernels.gating import KernelRegions
from manykernels.gating.regions import ByRegion
from manykernels.kernels import Linear
from manykernels.kernels.transforms import Spherical

few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 10**6)


def blobs(seed=0, n=20, places=((0.0, 0.0), (4.0, 0.0), (0.0, 7.0)), sizes=(1.0, 1.5, 0.5)):
    """Groups of different size, the second one the largest."""
    rng = np.random.default_rng(seed)
    parts = [
        place + 0.5 * rng.standard_normal((int(n * size), 2))
        for place, size in zip(places, sizes, strict=True)
    ]
    labels = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return np.concatenate(parts), labels


def linear_stack(X, Y=None):
    return KernelStack.from_arrays([X @ (X if Y is None else Y).T], gram=Y is None)


def distances(X, centers):
    return np.sum((X[:, None] - centers) ** 2, axis=2)


# -- known answers ---------------------------------------------------------------------------


def test_with_a_linear_kernel_it_is_k_means():
    X, truth = blobs()
    regions = KernelRegions(3, sharpness=0.5).fit(linear_stack(X))
    # The largest group comes first.
    assert_array_equal(regions.labels_, np.array([1, 0, 2])[truth])
    other = KMeans(3, n_init=10, random_state=0).fit(X)
    assert regions.inertia_ == pytest.approx(other.inertia_, rel=1e-9)


@pytest.mark.parametrize("sharpness", [0.0, 0.5, 3.0, 1e4])
def test_shares_are_the_softmax_of_distances_of_new_samples_too(sharpness):
    X, truth = blobs()
    regions = KernelRegions(3, sharpness=sharpness).fit(linear_stack(X))
    centers = np.array([X[truth == group].mean(axis=0) for group in (1, 0, 2)])
    nearest = np.sort(distances(X, centers), axis=1)
    assert regions.scale_ == pytest.approx(np.mean(nearest[:, 1] - nearest[:, 0]))
    new = np.random.default_rng(1).uniform(-2, 8, (30, 2))
    squares = distances(new, centers) / regions.scale_
    expected = np.exp(-sharpness * (squares - squares.min(axis=1, keepdims=True)))
    expected /= expected.sum(axis=1, keepdims=True)
    found = regions.shares(linear_stack(new, X))
    assert_allclose(found, expected, atol=1e-10)
    assert_allclose(found.sum(axis=1), 1.0)


def test_an_infinite_sharpness_gives_every_sample_to_the_nearest():
    X, _ = blobs()
    stack = linear_stack(X)
    hard = KernelRegions(3, sharpness=np.inf).fit(stack).shares(stack)
    soft = KernelRegions(3, sharpness=0.5).fit(stack).shares(stack)
    assert set(hard.ravel()) == {0.0, 1.0}
    assert_array_equal(hard.argmax(axis=1), soft.argmax(axis=1))


def test_no_sharpness_and_one_region_tell_nothing_apart():
    stack = linear_stack(blobs()[0])
    assert_array_equal(KernelRegions(4, sharpness=0.0).fit(stack).shares(stack), 0.25)
    assert_array_equal(KernelRegions(1, sharpness=0.5).fit(stack).shares(stack), 1.0)


def test_samples_far_from_all_others_have_the_largest_share_in_the_widest_region():
    rng = np.random.default_rng(0)
    X = np.concatenate([0.1 * rng.standard_normal((30, 2)), 5 + rng.standard_normal((20, 2))])
    union = rbf_grid([0.5, 1.0]).fit(X)
    regions = KernelRegions(2, sharpness=0.5).fit(union(X))
    wide = int(regions.labels_[-1])
    far = regions.shares(union(np.array([[1e6, 0.0], [0.0, -1e9]]), X))
    assert np.isfinite(far).all()
    assert_allclose(far.sum(axis=1), 1.0)
    assert (far.argmax(axis=1) == wide).all()
    # With a linear kernel distances grow, and so do their differences.
    linear = KernelRegions(2, sharpness=0.5).fit(linear_stack(X))
    far = linear.shares(linear_stack(np.array([[1e150, 0.0]]), X))
    assert_allclose(np.sort(far[0]), [0.0, 1.0], atol=0.0)


# -- laws ------------------------------------------------------------------------------------


def union_of(X):
    return KernelUnion([*rbf_grid([0.5, 1, 2]).kernels, ("linear", Linear())]).fit(X)


@few
@given(seed=seeds)
def test_the_order_of_samples_and_of_kernels_does_not_matter(seed):
    X, _ = blobs(seed)
    rng = np.random.default_rng(seed)
    stack = union_of(X)(X)
    shares = KernelRegions(3, sharpness=0.5).fit(stack).shares(stack)
    order, kernels = rng.permutation(len(X)), rng.permutation(4)
    shuffled = stack[np.ix_(order, order)].select(kernels)
    found = KernelRegions(3, sharpness=0.5).fit(shuffled).shares(shuffled)
    assert_allclose(found, shares[order], atol=1e-8)


@few
@given(seed=seeds)
def test_weights_are_repeated_samples(seed):
    X, _ = blobs(seed)
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, len(X))
    stack = union_of(X)(X)
    weighted = KernelRegions(3, sharpness=0.5).fit(stack, counts.astype(float))
    rows = np.repeat(np.arange(len(X)), counts)
    repeated = KernelRegions(3, sharpness=0.5).fit(stack[np.ix_(rows, rows)])
    assert repeated.inertia_ == pytest.approx(weighted.inertia_, rel=1e-8)
    assert repeated.scale_ == pytest.approx(weighted.scale_, rel=1e-8)
    assert_allclose(
        repeated.shares(stack[np.ix_(np.arange(len(X)), rows)]), weighted.shares(stack), atol=1e-8
    )


def test_a_seed_gives_the_same_regions_each_time():
    stack = union_of(blobs()[0])(blobs()[0])
    first, second = (KernelRegions(3, sharpness=0.5, random_state=7).fit(stack) for _ in range(2))
    assert_array_equal(first.shares(stack), second.shares(stack))


def test_more_starts_never_raise_the_distances():
    X = np.random.default_rng(3).standard_normal((60, 2))
    stack = linear_stack(X)
    found = [KernelRegions(6, n_init=n, random_state=1).fit(stack).inertia_ for n in (1, 3, 10)]
    assert found == sorted(found, reverse=True)


# -- few and equal samples -------------------------------------------------------------------


@pytest.mark.parametrize("n_places", [1, 2])
def test_equal_samples_make_fewer_regions_with_a_warning(n_places):
    X = np.repeat(np.array([[1.0, 0.0], [0.0, 2.0]])[:n_places], 5, axis=0)
    stack = linear_stack(X)
    with pytest.warns(UserWarning, match=f"There are {n_places} regions, not 4"):
        regions = KernelRegions(4, sharpness=0.5).fit(stack)
    assert regions.n_regions_ == n_places
    shares = regions.shares(stack)
    assert shares.shape == (len(X), n_places)
    assert (shares.sum(axis=0) > 0.5).all()


def test_no_region_is_empty_with_as_many_regions_as_samples():
    X = np.random.default_rng(0).standard_normal((7, 2))
    regions = KernelRegions(7, sharpness=0.5).fit(linear_stack(X))
    assert_array_equal(np.sort(regions.labels_), np.arange(7))


def test_a_kernel_of_zeros_has_one_region():
    stack = KernelStack.from_arrays([np.zeros((5, 5))])
    with pytest.warns(UserWarning, match="There are 1 regions, not 3"):
        assert_array_equal(KernelRegions(3, sharpness=0.5).fit(stack).shares(stack), 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_regions", 0),
        ("n_regions", 2.5),
        ("n_init", 0),
        ("sharpness", -1.0),
        ("sharpness", np.nan),
    ],
)
def test_parameters_outside_their_range(name, value):
    message = f"The '{name}' parameter of KernelRegions must be .* Got {value}"
    with pytest.raises(ValueError, match=message):
        KernelRegions(**{name: value}).fit(linear_stack(blobs()[0]))


def test_shares_need_a_sharpness():
    stack = linear_stack(blobs()[0])
    for sharpness in ("auto", [1.0, 2.0]):
        regions = KernelRegions(3).fit(stack).with_sharpness(sharpness)
        with pytest.raises(ValueError, match=r"is chosen by estimators .*Pass a number"):
            regions.shares(stack)


# -- as a step of the preparation ------------------------------------------------------------


def steps():
    X, _ = blobs()
    shares = np.random.default_rng(0).dirichlet(np.ones(3), len(X))
    new = np.random.default_rng(1).dirichlet(np.ones(3), 9)
    return {
        "found": (ByRegion(KernelRegions(3, sharpness=0.5)), None),
        "given": (ByRegion(None, shares), new),
    }


@pytest.mark.parametrize("kind", ["found", "given"])
def test_some_kernels_and_columns_of_a_block_are_those_of_the_whole(kind):
    step, new_shares = steps()[kind]
    X, _ = blobs()
    new = np.random.default_rng(2).uniform(-2, 8, (9, 2))
    union = union_of(X)
    training = step.fit_transform(Spherical().fit_transform(union(X)))
    assert training.names[4] == f"{union.names_[0]} [1]"
    assert training.n_regions == 3
    block = Spherical().fit(union(X)).transform(union(new, X))
    if kind == "given":
        block = block.with_features(new_shares)
    whole = step.transform(block)
    kernels, columns = np.array([7, 1, 9]), np.array([4, 0, 33])
    part = step.select(kernels).for_columns(columns)
    inputs = step.sources(kernels)
    assert_array_equal(inputs, np.arange(4) if kind == "found" else [1, 3])
    assert part.needs_all_columns == (kind == "found")
    chosen = block.select(inputs)
    chosen = chosen if part.needs_all_columns else chosen[:, columns]
    found = part.transform(chosen)
    for i, j in enumerate(kernels):
        assert_allclose(found.kernel(i), whole.kernel(int(j))[:, columns], rtol=1e-12)
    assert_array_equal(step.origins(kernels), [3, 1, 1])


@pytest.mark.parametrize("sharpness", [0.5, 8.0])
def test_a_large_constant_in_a_kernel(sharpness):
    """Shares of training samples differed between fit and predict, in rounding errors of it."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    gram = X @ X.T
    plain, shifted = (KernelStack.from_arrays([gram + c]) for c in (0.0, 2.0**36))
    regions = KernelRegions(3, sharpness=sharpness).fit(plain)
    moved = KernelRegions(3, sharpness=sharpness).fit(shifted)
    for chosen, stack in ((regions, plain), (moved, shifted)):
        singly = np.vstack([chosen.shares(stack[[i], :]) for i in range(30)])
        assert_allclose(singly, chosen.shares(stack), atol=1e-12)
    # Entries that are computed again differ by rounding errors of the constant.
    assert moved.share_errors(shifted).max() > 1e-6 > 1e-12 > regions.share_errors(plain).max()
