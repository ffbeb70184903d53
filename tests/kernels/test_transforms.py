"""Centring and normalisations: formulas, training constants only, weights as repetitions."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from manykernels.kernels import KernelStack
from manykernels.kernels.transforms import (
    NORMALIZATIONS,
    Center,
    Chain,
    Multiplicative,
    Spherical,
    UnitTrace,
    preparation,
)
from tests.kernels.linear_stacks import stack_of, values
from tests.problems import slow

N_TRAIN, N_TEST = 8, 5
TRANSFORMS = {
    "center": Center,
    "spherical": Spherical,
    "unit-trace": UnitTrace,
    "multiplicative": Multiplicative,
    "prepare-none": lambda: preparation(None),
    **{f"prepare-{name}": partial(preparation, name) for name in NORMALIZATIONS},
    "all": lambda: Chain([Spherical(), Center(), UnitTrace()]),
    "spherical-last": lambda: Chain([Center(), Spherical()]),
}


def features(n_kernels=3, n_rows=N_TRAIN + N_TEST, seed=0):
    """Feature vectors of each kernel, not centred and of different sizes."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.integers(-2, 3, size=(n_kernels, 1, 1))
    return sizes * (rng.normal(size=(n_kernels, n_rows, 3)) + rng.normal(size=(n_kernels, 1, 3)))


def assert_close(left, right):
    scale = np.abs(right).max(axis=(1, 2), keepdims=True) + np.finfo(float).tiny
    assert_allclose(left / scale, right / scale, rtol=0, atol=1e-12)


@pytest.fixture(params=TRANSFORMS)
def transform(request):
    return TRANSFORMS[request.param]()


@pytest.fixture(name="F")
def training_features():
    return features()[:, :N_TRAIN]


@pytest.fixture(name="G")
def other_features():
    return features()[:, N_TRAIN:]


@pytest.fixture
def train(F):
    return stack_of(F)


@pytest.fixture
def block(F, G):
    return stack_of(G, F)


# -- formulas --------------------------------------------------------------------------------


def test_center_is_the_projection(train):
    P = np.eye(N_TRAIN) - 1 / N_TRAIN
    assert_close(values(Center().fit_transform(train)), P @ train.data @ P)


def test_center_subtracts_the_training_mean_in_feature_space(F, G, train, block):
    mean = F.mean(axis=1, keepdims=True)
    centred = Center().fit(train).transform(block)
    assert_close(values(centred), (G - mean) @ (F - mean).mT)
    assert_allclose(centred.row_diag, ((G - mean) ** 2).sum(axis=2), rtol=1e-10)
    assert_allclose(centred.col_diag, ((F - mean) ** 2).sum(axis=2), rtol=1e-10)


def test_center_of_a_block_by_the_formula(train, block):
    # (K_t − 1 k̄ᵀ) P
    P = np.eye(N_TRAIN) - 1 / N_TRAIN
    expected = (block.data - train.data.mean(axis=1, keepdims=True)) @ P
    assert_close(values(Center().fit(train).transform(block)), expected)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(0, 99))
def test_centring_twice_is_centring_once(n_kernels, n_rows, seed):
    F = features(n_kernels, n_rows, seed)
    once = Center().fit_transform(stack_of(F))
    twice = Center().fit_transform(once)
    size = (F**2).sum(axis=2).max(axis=1)[:, None, None]
    assert_allclose(values(twice) / size, values(once) / size, atol=1e-12)
    assert_allclose(values(once).sum(axis=1, keepdims=True) / size, 0, atol=1e-12)


def test_spherical_projects_on_the_unit_sphere(F, G, train, block):
    def unit(vectors):
        return vectors / np.linalg.norm(vectors, axis=2, keepdims=True)

    spherical = Spherical()
    gram = spherical.fit_transform(train)
    assert_close(values(gram), unit(F) @ unit(F).mT)
    assert_allclose(gram.row_diag, 1.0)
    projected = spherical.transform(block)
    assert_close(values(projected), unit(G) @ unit(F).mT)
    assert_allclose(projected.row_diag, 1.0)


def test_spherical_leaves_a_sample_of_zero_norm_zero(F):
    F = F.copy()
    F[1, 4] = 0.0
    K = values(Spherical().fit_transform(stack_of(F)))
    assert_array_equal(K[1, 4], 0.0)
    assert_array_equal(K[1, :, 4], 0.0)
    assert_allclose(np.diagonal(K[0]), 1.0)


def test_unit_trace_after_centring(F, G, train, block):
    trace = ((F - F.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
    unit = UnitTrace().fit(train)
    assert_allclose(unit.scale_, 1 / trace, rtol=1e-10)
    assert_close(values(unit.transform(train)), train.data / trace[:, None, None])
    assert_close(values(unit.transform(block)), block.data / trace[:, None, None])


def test_multiplicative_is_unit_variance(F, train, block):
    variance = train.row_diag.mean(axis=1) - train.data.mean(axis=(1, 2))
    scaled = Multiplicative().fit(train)
    assert_allclose(scaled.scale_, 1 / variance, rtol=1e-9)
    assert_close(values(scaled.transform(block)), block.data / variance[:, None, None])
    centred = F - F.mean(axis=1, keepdims=True)
    assert_allclose(variance, (centred**2).sum(axis=2).mean(axis=1), rtol=1e-9)


@pytest.mark.parametrize("scaling", [UnitTrace, Multiplicative])
def test_scales_do_not_depend_on_centring_before(train, scaling):
    before = scaling().fit(Center().fit_transform(train)).scale_
    assert_allclose(before, scaling().fit(train).scale_, rtol=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(1e-20, 1e20), min_size=3, max_size=3), st.integers(0, 9))
@pytest.mark.parametrize("name", ["spherical", *slow("trace", "multiplicative")])
def test_scaling_a_kernel_changes_nothing(name, scales, seed):
    F = features(seed=seed)[:, :N_TRAIN]
    expected = values(preparation(name).fit_transform(stack_of(F)))
    scaled = F * np.sqrt(np.array(scales))[:, None, None]
    assert_close(values(preparation(name).fit_transform(stack_of(scaled))), expected)


def test_the_size_before_a_spherical_step_does_not_matter(F):
    chain = [Spherical(), Center(), UnitTrace()]
    expected = values(Chain(chain).fit_transform(stack_of(F)))
    assert_close(values(Chain(chain).fit_transform(stack_of(1e10 * F))), expected)
    assert_allclose(np.einsum("jii->j", expected), 1.0)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        (None, [Center]),
        ("spherical", [Spherical, Center]),
        ("multiplicative", [Center, Multiplicative]),
        ("trace", [Center, UnitTrace]),
    ],
)
def test_preparations(train, name, steps):
    expected = train
    for step in steps:
        expected = step().fit_transform(expected)
    prepared = preparation(name).fit_transform(train)
    assert_array_equal(values(prepared), values(expected))
    assert prepared.centered


# -- constants come from the training rows only ----------------------------------------------


def test_training_rows_are_a_block_too(transform, F, train):
    gram = transform.fit_transform(train)
    assert_close(values(transform.transform(stack_of(F, F))), values(gram))
    assert_close(values(transform.transform(train)), values(gram))


def test_test_rows_do_not_see_each_other(transform, F, G, train, block):
    together = values(transform.fit(train).transform(block))
    for row in range(N_TEST):
        alone = values(transform.transform(stack_of(G[:, [row]], F)))
        assert_allclose(alone[:, 0], together[:, row], rtol=1e-9, atol=1e-12)


def test_a_block_is_transformed_as_cut_from_the_whole(transform, F, G):
    """Fit on a principal part, transform the other rows of the same stack."""
    whole = stack_of(np.concatenate([F, G], axis=1))
    inside, outside = np.arange(N_TRAIN), np.arange(N_TRAIN, N_TRAIN + N_TEST)
    transform.fit(whole[np.ix_(inside, inside)])
    expected = values(transform.transform(stack_of(G, F)))
    assert_close(values(transform.transform(whole[np.ix_(outside, inside)])), expected)


# One sample alone has no spread to divide by.
COUNTS = st.lists(st.integers(0, 3), min_size=N_TRAIN, max_size=N_TRAIN).filter(
    lambda counts: np.count_nonzero(counts) > 1
)


@settings(deadline=None, max_examples=20)
@given(COUNTS)
@pytest.mark.parametrize("make", TRANSFORMS.values(), ids=TRANSFORMS)
def test_weights_are_repetitions(make, counts):
    F, G = features()[:, :N_TRAIN], features()[:, N_TRAIN:]
    repeated = np.repeat(F, counts, axis=1)
    weighted = make().fit(stack_of(F), sample_weight=counts)
    expected = values(make().fit(stack_of(repeated)).transform(stack_of(G, repeated)))
    actual = np.repeat(values(weighted.transform(stack_of(G, F))), counts, axis=2)
    scale = np.abs(expected).max()
    assert_allclose(actual / scale, expected / scale, atol=1e-9)


def test_weights_of_fit_transform(transform, train):
    weights = np.arange(1.0, N_TRAIN + 1)
    at_once = values(transform.fit_transform(train, sample_weight=weights))
    assert_close(values(transform.fit(train, sample_weight=weights).transform(train)), at_once)


@pytest.mark.parametrize("name", [name for name in TRANSFORMS if name != "spherical-last"])
def test_no_kernel_is_copied(name, train, block):
    transform = TRANSFORMS[name]()
    assert np.shares_memory(transform.fit_transform(train).data, train.data)
    assert np.shares_memory(transform.transform(block).data, block.data)


# -- kernels without information -------------------------------------------------------------


@pytest.mark.parametrize("scaling", [UnitTrace, Multiplicative])
@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e8])
@pytest.mark.parametrize("centre_first", [True, False])
def test_a_constant_kernel_becomes_zero(F, scaling, constant, centre_first):
    kernels = [np.full((N_TRAIN, N_TRAIN), constant), F[0] @ F[0].T]
    steps = [Center(), scaling()] if centre_first else [scaling()]
    K = values(Chain(steps).fit_transform(KernelStack.from_arrays(kernels)))
    assert_array_equal(K[0], 0.0)
    assert np.abs(K[1]).max() > 0


def test_a_small_variance_is_kept():
    """Wide Gaussians are nearly constant, which is not the same as constant."""
    x = np.linspace(0, 1, N_TRAIN)[:, None]
    wide = np.exp(-1e-6 * (x - x.T) ** 2)
    K = values(preparation("trace").fit_transform(KernelStack.from_arrays(wide)))[0]
    line = (x - x.mean()) @ (x - x.mean()).T
    assert_allclose(K, line / np.trace(line), atol=1e-6)


# -- errors ----------------------------------------------------------------------------------


def test_fit_needs_a_gram(transform, block):
    name = type(transform).__name__ if not isinstance(transform, Chain) else r"\w+"
    with pytest.raises(ValueError, match=f"{name} learns from a Gram stack.*5 x 8 block"):
        transform.fit(block)
    with pytest.raises(ValueError, match=f"{name} learns from a Gram stack.*5 x 8 block"):
        transform.fit_transform(block)


def test_columns_are_the_training_samples(transform, train, block):
    with pytest.raises(ValueError, match=r"block has 7 columns, but .* was fitted on 8 training"):
        transform.fit(train).transform(block[:, :7])


def test_transform_before_fit(transform, train):
    with pytest.raises(NotFittedError):
        transform.transform(train)


def test_spherical_needs_self_similarities(train, block):
    without = KernelStack.from_arrays(block.data)
    with pytest.raises(ValueError, match=r"self-similarities k\(x, x\).*row_diag="):
        Spherical().fit(train).transform(without)


def test_spherical_refuses_negative_self_similarities():
    negative = np.eye(3)
    negative[2, 2] = -0.5
    stack = KernelStack.from_arrays([np.eye(3), negative], names=["good", "bad"], psd="ignore")
    with pytest.raises(ValueError, match=r"'bad' has a negative self-similarity -0\.5 at row 2"):
        Spherical().fit(stack)


def test_a_test_row_of_negative_self_similarity(train, block):
    broken = KernelStack.from_arrays(block.data, row_diag=np.where(block.row_diag > 0, -1.0, 0.0))
    with pytest.raises(ValueError, match="'kernel0' has a negative self-similarity -1 at row 0"):
        Spherical().fit(train).transform(broken)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(N_TRAIN - 1), r"sample_weight.shape == \(7,\), expected \(8,\)"),
        (np.ones((N_TRAIN, 1)), "Sample weights must be 1D"),
        (np.zeros(N_TRAIN), "at least one non-zero"),
        (-np.ones(N_TRAIN), "Negative values .* `sample_weight`"),
        (np.full(N_TRAIN, np.nan), "sample_weight contains NaN"),
    ],
)
def test_weights_that_are_refused(transform, train, weights, message):
    with pytest.raises(ValueError, match=message):
        transform.fit(train, sample_weight=weights)


def test_unknown_preparation():
    with pytest.raises(ValueError, match='"multiplicative", "spherical", "trace" or None, got 7'):
        preparation(7)


# -- some of the kernels ---------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [[2, 0], [1], [True, False, True]])
def test_select_is_the_transform_of_these_kernels(transform, train, block, chosen):
    expected = values(transform.fit(train).transform(block))[chosen]
    part = transform.select(np.array(chosen))
    assert_array_equal(values(part.transform(block.select(np.array(chosen)))), expected)


def test_select_leaves_the_whole_alone(transform, train, block):
    before = values(transform.fit(train).transform(block))
    transform.select(np.array([1]))
    assert_array_equal(values(transform.transform(block)), before)
