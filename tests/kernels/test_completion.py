"""Samples that lack kernels: the formulas against explicit features, and their laws."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.kernels import RBF, KernelStack, rbf_grid
from manykernels.kernels.completion import (
    COMPLETIONS,
    REGS,
    ConditionalCompletion,
    MeanCompletion,
    Reconstruction,
)
from manykernels.kernels.on_demand import StreamedKernels
from manykernels.kernels.transforms import Center, Chain, Spherical, preparation
from tests.kernels.linear_stacks import assert_close, values

N_TRAIN, N_TEST, N_VIEWS = 14, 6, 3
both = pytest.mark.parametrize("completion", COMPLETIONS.values())


def views_of_one_source(seed=0, n_views=N_VIEWS, n_rows=N_TRAIN + N_TEST):
    """Features (n_views, rows, 3) that are linear functions of a common source, and noise."""
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(n_rows, 2))
    maps = rng.normal(size=(n_views, 2, 3))
    noise = 0.3 * rng.normal(size=(n_views, n_rows, 3))
    return source @ maps + noise + rng.normal(size=(n_views, 1, 3))


def patterns(seed=0, n_views=N_VIEWS, n_rows=N_TRAIN + N_TEST, share=0.35):
    """Which samples have which views, at least one each; (n_views, rows)."""
    rng = np.random.default_rng(1000 + seed)
    present = rng.random((n_views, n_rows)) > share
    present[rng.integers(n_views, size=n_rows), np.arange(n_rows)] = True
    return present


def with_gaps(F, has, G=None, given=None):
    """Linear kernels between features, NaN where either sample lacks the view."""
    if G is None:
        K = F @ F.mT
        K[~(has[:, :, None] & has[:, None])] = np.nan
        return KernelStack.from_arrays(K, missing=True)
    K = F @ G.mT
    K[~(has[:, :, None] & given[:, None])] = np.nan
    diagonals = {"row_diag": (F**2).sum(axis=2), "col_diag": (G**2).sum(axis=2)}
    return KernelStack.from_arrays(K, gram=False, missing=True, **diagonals)


@pytest.fixture(name="F")
def features():
    return views_of_one_source()


@pytest.fixture(name="has")
def presence():
    return patterns()


def split(F, has):
    """Training stack and test block."""
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    stack = with_gaps(F[:, train], has[:, train])
    return stack, with_gaps(F[:, test], has[:, test], F[:, train], has[:, train])


# -- explicit features ---------------------------------------------------------------------


def completed_features(F, has, reconstructed, errors=(1.0,) * N_VIEWS):
    """ψ of all samples, from what is filled in relative to the mean; all in feature space."""
    psi, lengths = np.empty_like(F), np.empty(has.shape)
    for v in range(len(F)):
        own = has[v, :N_TRAIN]
        mean = F[v, :N_TRAIN][own].mean(axis=0)
        spread = np.mean(np.sum((F[v, :N_TRAIN][own] - mean) ** 2, axis=1))
        psi[v] = np.where(has[v][:, None], F[v] - mean, reconstructed[v])
        known = np.sum(reconstructed[v] ** 2, axis=1) / spread
        lengths[v] = np.where(has[v], 1.0, known / (known + errors[v]))
    stretch = np.sqrt(len(F) / lengths.sum(axis=0))
    for v in range(len(F)):
        mean = F[v, :N_TRAIN][has[v, :N_TRAIN]].mean(axis=0)
        psi[v] = mean + stretch[:, None] * psi[v]
    return psi


def test_the_mean_is_filled_in_and_the_length_kept(F, has):
    stack, block = split(F, has)
    psi = completed_features(F, has, np.zeros_like(F))
    train, test = psi[:, :N_TRAIN], psi[:, N_TRAIN:]
    completion = MeanCompletion()
    assert_close(values(completion.fit_transform(stack)), train @ train.mT)
    completed = completion.transform(block)
    assert_close(values(completed), test @ train.mT)
    assert_allclose(completed.row_diag, (test**2).sum(axis=2), rtol=1e-9)
    assert_allclose(completed.col_diag, (train**2).sum(axis=2), rtol=1e-9)


def ridge_reconstruction(F, has, v, reg):
    """Images of view v by ridge regression with a mean on the features of the other views."""
    others = []
    for u in range(len(F)):
        if u != v:
            own = has[u, :N_TRAIN]
            mean = F[u, :N_TRAIN][own].mean(axis=0)
            spread = np.mean(np.sum((F[u, :N_TRAIN][own] - mean) ** 2, axis=1))
            others.append(np.where(has[u][:, None], F[u] - mean, 0.0) / np.sqrt(spread))
    counts = np.delete(has, v, axis=0).sum(axis=0)
    stretch = np.sqrt((len(F) - 1) / np.maximum(counts, 1))
    Z = stretch[:, None] * np.hstack(others)
    own = np.flatnonzero(has[v, :N_TRAIN])
    Z = Z - Z[own].mean(axis=0)
    Z /= np.sqrt(np.mean(np.sum(Z[own] ** 2, axis=1)))
    target = F[v, own] - F[v, own].mean(axis=0)
    slopes = np.linalg.solve(Z[own].T @ Z[own] + reg * np.eye(Z.shape[1]), Z[own].T @ target)
    return Z @ slopes


def reconstructed_features(completion, F, has):
    """ψ of all samples, with the λ and the errors that were found."""
    found = [completion._reconstructions[completion._key(v)] for v in range(N_VIEWS)]
    filled = [ridge_reconstruction(F, has, v, one.reg) for v, one in enumerate(found)]
    return completed_features(F, has, np.array(filled), [one.error for one in found])


def test_the_conditional_mean_is_a_ridge_regression_on_the_other_views(F, has):
    stack, block = split(F, has)
    completion = ConditionalCompletion()
    train = completion.fit_transform(stack)
    psi = reconstructed_features(completion, F, has)
    assert_close(values(train), psi[:, :N_TRAIN] @ psi[:, :N_TRAIN].mT, atol=1e-10)
    completed = completion.transform(block)
    assert_close(values(completed), psi[:, N_TRAIN:] @ psi[:, :N_TRAIN].mT, atol=1e-10)
    assert_allclose(completed.row_diag, (psi[:, N_TRAIN:] ** 2).sum(axis=2), rtol=1e-8)
    assert_allclose(completed.col_diag, (psi[:, :N_TRAIN] ** 2).sum(axis=2), rtol=1e-8)


def test_views_without_noise_are_reconstructed():
    rng = np.random.default_rng(3)
    source = rng.normal(size=(60, 2))
    F = np.array([source, source @ rng.normal(size=(2, 2)), source])
    has = np.ones((3, 60), dtype=bool)
    has[1, 40:] = False
    stack = KernelStack.from_arrays(
        np.where(has[:, :, None] & has[:, None], F @ F.mT, np.nan), missing=True
    )
    completed = ConditionalCompletion().fit_transform(stack)
    stretch = np.sqrt(np.diag(completed.kernel(0))[40:] / np.diag(stack.kernel(0))[40:])
    truth = F[1] @ F[1].T
    assert np.abs(completed.kernel(1) - truth).max() < 0.1 * np.abs(truth).max()
    assert stretch.max() < 1.1


@pytest.mark.parametrize("weights", [np.ones(9), np.array([1, 2, 1, 3, 1, 1, 2, 1, 1.0])])
def test_errors_are_those_of_samples_that_are_left_out(weights):
    """One of the samples that a row stands for is left out, and everything else refitted."""
    F = views_of_one_source(5, 2, 9)
    shares = weights / weights.sum()
    Z, target = (one - shares @ one for one in F)
    Z = Z / np.sqrt(shares @ np.sum(Z**2, axis=1))
    found = Reconstruction.learn(Z @ Z.T, target @ target.T, weights)
    assert found.reg == REGS[int(np.argmin(found.errors))]
    for reg, error in zip(REGS, found.errors, strict=True):
        expected = 0.0
        for i in range(9):
            w = weights.copy()
            w[i] -= 1.0
            inner, outer = (w @ one / w.sum() for one in (Z, target))
            A, b = Z - inner, target - outer
            slopes = np.linalg.solve(
                A.T @ (w[:, None] * A) + reg * np.eye(3), A.T @ (w[:, None] * b)
            )
            expected += weights[i] * np.sum((target[i] - outer - (Z[i] - inner) @ slopes) ** 2)
        assert error == pytest.approx(expected / (weights @ np.sum(target**2, axis=1)), rel=1e-8)


# -- laws ----------------------------------------------------------------------------------


@both
def test_nothing_changes_if_nothing_is_missing(completion, F):
    everything = np.ones((N_VIEWS, N_TRAIN + N_TEST), dtype=bool)
    stack, block = split(F, everything)
    completion = completion()
    assert_array_equal(values(completion.fit_transform(stack)), values(stack))
    assert_array_equal(values(completion.transform(block)), values(block))


@both
def test_training_rows_as_new_ones_are_what_they_were_in_training(completion, F, has):
    train = slice(N_TRAIN)
    stack = with_gaps(F[:, train], has[:, train])
    completion = completion()
    completed = completion.fit_transform(stack)
    block = with_gaps(F[:, train], has[:, train], F[:, train], has[:, train])
    again = completion.transform(block)
    assert_close(values(again), values(completed))
    assert_allclose(again.row_diag, completed.row_diag, rtol=1e-9)
    assert_allclose(again.col_diag, completed.row_diag, rtol=1e-9)


@both
def test_rows_are_completed_one_by_one(completion, F, has):
    stack, block = split(F, has)
    completion = completion().fit(stack)
    whole = values(completion.transform(block))
    for row in range(N_TEST):
        assert_close(values(completion.transform(block[[row]])), whole[:, [row]])


@both
def test_the_order_of_kernels_does_not_matter(completion, F, has):
    stack, block = split(F, has)
    order = [2, 0, 1]
    left, right = completion(), completion()
    assert_close(
        values(left.fit_transform(stack.select(order))), values(right.fit_transform(stack))[order]
    )
    assert_close(
        values(left.transform(block.select(order))), values(right.transform(block))[order]
    )


@both
def test_a_sample_of_weight_two_counts_as_two(completion, F, has):
    weights = np.array([1.0, 2.0] * (N_TRAIN // 2))
    rows = np.repeat(np.arange(N_TRAIN), weights.astype(int))
    stack, block = split(F, has)
    weighted, repeated = completion(), completion()
    K = values(weighted.fit_transform(stack, sample_weight=weights))
    assert_close(values(repeated.fit_transform(stack[np.ix_(rows, rows)])), K[:, rows][:, :, rows])
    assert_close(
        values(repeated.transform(block[:, rows])),
        values(weighted.transform(block))[:, :, rows],
    )


@pytest.mark.slow
@both
@settings(deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 0.7))
def test_completed_kernels_are_positive_semi_definite(completion, seed, share):
    """Those of training and new samples together."""
    F, has = views_of_one_source(seed), patterns(seed, share=share)
    stack, block = split(F, has)
    completion = completion()
    train = values(completion.fit_transform(stack))
    new = completion.transform(block)
    for K, B, diagonal in zip(train, values(new), new.row_diag, strict=True):
        for b, d in zip(B, diagonal, strict=True):
            whole = np.block([[K, b[:, None]], [b[None], np.array([[d]])]])
            assert np.linalg.eigvalsh(whole)[0] > -1e-9 * np.abs(whole).max()


@both
def test_centring_makes_kernels_definite_that_are_so_only_after_it(completion, F, has):
    """Negative squared distances have no images, but differences of images do."""
    squares = (F[:, :N_TRAIN] ** 2).sum(axis=2)
    K = F[:, :N_TRAIN] @ F[:, :N_TRAIN].mT
    D = 2 * K - squares[:, :, None] - squares[:, None]
    own = has[:, :N_TRAIN]
    gaps = ~(own[:, :, None] & own[:, None])
    left, right = (np.where(gaps, np.nan, one) for one in (D, 2 * K))
    chains = [Chain([completion(), Center()]) for _ in range(2)]
    negative = KernelStack(left, ["a", "b", "c"], gram=True)
    assert_close(
        values(chains[0].fit_transform(negative)),
        values(chains[1].fit_transform(KernelStack(right, ["a", "b", "c"], gram=True))),
    )


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", "trace", None])
@both
def test_a_preparation_begins_with_it(completion, normalize, F, has):
    """Selected kernels, and selected columns, are parts of the whole."""
    stack, block = split(F, has)
    chain = preparation(normalize, center=False, completion=completion())
    train = chain.fit_transform(stack)
    whole = values(chain.transform(block))
    kept, columns = np.array([2, 0]), np.array([3, 1, 7])
    part = chain.select(kept)
    assert_array_equal(chain.sources(kept), np.arange(N_VIEWS))
    assert_close(values(part.transform(block)), whole[kept])
    narrow = part.for_columns(columns)
    assert narrow.needs_all_columns
    assert_close(values(narrow.transform(block)), whole[kept][:, :, columns])
    assert train.row_diag.shape == (N_VIEWS, N_TRAIN)
    assert len(chain.erased()) == 0


@both
def test_lengths_of_new_samples_are_those_of_completed_ones(completion, F, has):
    """As spherical normalisation needs them."""
    stack, block = split(F, has)
    chain = Chain([completion(), Spherical()])
    chain.fit_transform(stack)
    assert_allclose(chain.transform(block).row_diag, 1.0, rtol=1e-9)
    assert_allclose(chain.transform(block).col_diag, 1.0, rtol=1e-9)


# -- views of several kernels --------------------------------------------------------------


def several_per_view(has):
    """Two Gaussians of each view."""
    F = views_of_one_source()
    gram = [k for f in F for k in values(rbf_grid([0.5, 2]).fit(f)(f))]
    own = np.repeat(has, 2, axis=0)
    return np.where(own[:, :, None] & own[:, None], gram, np.nan)


def test_kernels_that_the_same_samples_lack_are_of_one_view(has):
    stack = KernelStack.from_arrays(several_per_view(has), missing=True)
    assert_array_equal(ConditionalCompletion().fit(stack).views_, [0, 0, 1, 1, 2, 2])


@both
def test_views_may_be_named(completion, has):
    stack = KernelStack.from_arrays(several_per_view(has), missing=True)
    named = stack.with_views(["a", "a", "b", "b", "c", "c"])
    assert_close(
        values(completion().fit_transform(named)), values(completion().fit_transform(stack))
    )


def test_a_view_counts_once_however_many_kernels_it_has():
    has = np.ones((3, N_TRAIN), dtype=bool)
    has[0, 0] = False
    F = views_of_one_source(n_rows=N_TRAIN)
    stack = with_gaps(F, has)
    more = np.repeat(stack.data, [1, 1, 2], axis=0)
    one = MeanCompletion().fit(stack.with_views(list("abc")))
    two = MeanCompletion().fit(KernelStack(more, list("abcd"), gram=True).with_views(list("abcc")))
    assert one.training_.stretch[0] == pytest.approx(np.sqrt(3 / 2))
    assert_array_equal(one.training_.stretch, two.training_.stretch)


def test_a_view_that_no_training_sample_lacks_may_be_lacking_later(F, has):
    everything = has.copy()
    everything[:, :N_TRAIN] = True
    stack, block = split(F, everything)
    completion = ConditionalCompletion()
    assert completion.fit_transform(stack) is not None
    assert completion._reconstructions == {}
    completed = completion.transform(block)
    assert np.isfinite(completed.data).all()
    psi = reconstructed_features(completion, F, everything)
    assert_close(values(completed), psi[:, N_TRAIN:] @ psi[:, :N_TRAIN].mT, atol=1e-10)


@both
def test_a_kernel_that_no_training_sample_has_becomes_zero(completion, F, has):
    own = has.copy()
    own[1, :N_TRAIN] = False
    own[0] = True
    stack, block = split(F, own)
    chain = preparation("multiplicative", completion=completion())
    assert not chain.fit_transform(stack).kernel(1).any()
    assert_array_equal(chain.erased(), [1])
    assert not chain.transform(block).kernel(1).any()


# -- bad input -----------------------------------------------------------------------------


@both
def test_a_sample_without_any_kernel_is_refused_by_its_name(completion, F, has):
    own = has[:, :N_TRAIN].copy()
    own[:, 5] = False
    stack = with_gaps(F[:, :N_TRAIN], own)
    with pytest.raises(ValueError, match=r"1 of 14 samples have none of the kernels .*: rows 5."):
        completion().fit(stack)
    named = stack.with_samples([f"s{i}" for i in range(N_TRAIN)])
    with pytest.raises(ValueError, match="rows 's5'"):
        completion().fit(named)


def test_blocks_must_fit_the_training_samples(F, has):
    stack, block = split(F, np.where(np.arange(N_TRAIN + N_TEST) < 3, has, True))
    completion = MeanCompletion().fit(stack)
    with pytest.raises(ValueError, match="2 kernels, but MeanCompletion was fitted on 3"):
        completion.transform(block.select([0, 1]))
    with pytest.raises(ValueError, match="13 columns, but MeanCompletion was fitted on 14"):
        completion.transform(block[:, 1:])
    order = np.arange(N_TRAIN)[::-1]
    with pytest.raises(ValueError, match=r"training sample of this column (has|lacks) it"):
        completion.transform(block[:, order])


def test_streamed_kernels_are_refused():
    X = np.arange(6.0)[:, None]
    streamed = StreamedKernels(rbf_grid([1]).fit(X), X)
    with pytest.raises(ValueError, match="computed by columns: use another solver"):
        MeanCompletion().fit(streamed)


@pytest.mark.parametrize("transform", [Center, Spherical, partial(preparation, None)])
def test_other_transforms_refuse_samples_that_lack_kernels(transform, F, has):
    stack, _ = split(F, has)
    with pytest.raises(ValueError, match="which some samples lack: complete it first"):
        transform().fit_transform(stack)


def test_kernels_may_be_computed_in_single_precision():
    X = np.random.default_rng(0).normal(size=(10, 2))
    K = np.array([RBF(0.5).fit(X)(X), RBF(2.0).fit(X)(X)], dtype=np.float32)
    K[1, 3] = K[1, :, 3] = np.nan
    completed = MeanCompletion().fit_transform(KernelStack.from_arrays(K, missing=True))
    assert completed.dtype == np.float64
    assert np.isfinite(completed.data).all()


def test_a_mean_of_zero_up_to_rounding_errors_is_zero():
    # A sample there has no direction, whatever the signs of rounding errors are.
    for seed in range(10):
        F, has = views_of_one_source(seed), patterns(seed)
        train, lacking = has[0, :N_TRAIN], ~has[0]
        F[0] -= F[0, :N_TRAIN][train].mean(axis=0)
        completion, sphere = MeanCompletion(), Spherical()
        stack = with_gaps(F[:, :N_TRAIN], has[:, :N_TRAIN])
        training = sphere.fit_transform(completion.fit_transform(stack))
        assert_array_equal(training.kernel(0).diagonal()[lacking[:N_TRAIN]], 0.0)
        assert_allclose(training.kernel(0)[lacking[:N_TRAIN]], 0.0, atol=1e-12)
        new = with_gaps(F[:, N_TRAIN:], has[:, N_TRAIN:], F[:, :N_TRAIN], has[:, :N_TRAIN])
        block = sphere.transform(completion.transform(new))
        assert_allclose(block.kernel(0)[lacking[N_TRAIN:]], 0.0, atol=1e-12)
