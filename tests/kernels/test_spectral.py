"""Denoised kernels and spectral bands: projections in feature space, whatever the block."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from manykernels import MKFDA, Bands, Denoise, KernelStack, rbf_grid
from manykernels.kernels.on_demand import StreamedKernels
from manykernels.kernels.transforms import Center, Chain, Multiplicative, Spherical
from manykernels.utils import numerics
from tests.kernels.linear_stacks import assert_close, stack_of, values
from tests.problems import slow

N_TRAIN, N_TEST, N_KERNELS, N_DIMS = 14, 5, 3, 6
LABELS = np.arange(N_TRAIN) % 3
TRANSFORMS = {
    "denoise": Denoise(0.8),
    "denoise-each": Denoise([0.5, 0.9, 1.0]),
    "denoise-cv": Denoise("cv"),
    "denoise-folds": Denoise("cv", folds=3),
    "bands": Bands(),
    "edges": Bands(edges=[0.4, 0.7, 0.9]),
}
seeds = st.integers(0, 10_000)
shares = st.floats(0.01, 1.0)
edge_lists = st.lists(st.floats(0.05, 0.95), max_size=4, unique=True).map(
    lambda edges: [*sorted(edges), 1.0]
)
# Two samples of each class at least, where all others have weight zero.
counts = st.lists(st.integers(0, 3), min_size=N_TRAIN, max_size=N_TRAIN).map(
    lambda values: np.maximum(values, np.arange(N_TRAIN) < 6)
)
few = settings(deadline=None, max_examples=25)


def features(seed=0, n_rows=N_TRAIN + N_TEST, n_kernels=N_KERNELS):
    """Feature vectors of each kernel, not centred, with variances that differ."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.integers(-1, 2, size=(n_kernels, 1, 1)) * 0.6 ** np.arange(N_DIMS)
    return sizes * (rng.normal(size=(n_kernels, n_rows, N_DIMS)) + rng.normal(size=N_DIMS))


def parts(seed=0):
    F = features(seed)
    return F[:, :N_TRAIN], F[:, N_TRAIN:]


@pytest.fixture(params=TRANSFORMS)
def transform(request):
    return clone(TRANSFORMS[request.param])


@pytest.fixture
def train():
    return stack_of(parts()[0])


@pytest.fixture
def block():
    F, G = parts()
    return stack_of(G, F)


def centred(train, block=None):
    center = Center().fit(train)
    return values(center.transform(train if block is None else block))


# -- what the kernels are --------------------------------------------------------------------


@pytest.mark.slow
@few
@given(seeds, st.integers(1, N_DIMS - 1))
def test_a_denoised_linear_kernel_is_that_of_principal_components(seed, n_components):
    F, G = parts(seed)
    share = PCA().fit(F[0]).explained_variance_ratio_[:n_components].sum() - 1e-9
    pca = PCA(n_components).fit(F[0])
    denoise = Denoise(share).fit(stack_of(F[:1]))
    gram, test = denoise.transform(stack_of(F[:1])), denoise.transform(stack_of(G[:1], F[:1]))
    Z, Z_test = pca.transform(F[0]), pca.transform(G[0])
    assert denoise.n_components_ == n_components
    assert_close(gram.kernel(0), Z @ Z.T)
    assert_close(test.kernel(0), Z_test @ Z.T)
    for stack, rows in ((gram, Z), (test, Z_test)):
        assert_allclose(stack.row_diag[0], (rows**2).sum(axis=1), rtol=1e-6)
        assert_allclose(stack.col_diag[0], (Z**2).sum(axis=1), rtol=1e-6)
    squares = denoise.eigenvalues_[0, :n_components]
    assert_allclose(squares, pca.explained_variance_ * (N_TRAIN - 1), rtol=1e-9)


def test_denoising_with_weights_is_weighted_pca():
    F, G = (part[0] for part in parts())
    weights = np.linspace(0.2, 3.0, N_TRAIN)
    mean = np.average(F, axis=0, weights=weights)
    scatter = (F - mean).T @ (weights[:, None] * (F - mean))
    spectrum, axes = np.linalg.eigh(scatter)
    share = spectrum[-2:].sum() / spectrum.sum() - 1e-9
    denoise = Denoise(share).fit(stack_of(F[None]), sample_weight=weights)
    onto = axes[:, -2:] @ axes[:, -2:].T
    assert_close(denoise.transform(stack_of(F[None])).kernel(0), (F - mean) @ onto @ (F - mean).T)
    test = denoise.transform(stack_of(G[None], F[None]))
    assert_close(test.kernel(0), (G - mean) @ onto @ (F - mean).T)
    assert_allclose(test.row_diag[0], (((G - mean) @ onto) ** 2).sum(axis=1))
    assert_allclose(denoise.eigenvalues_[0, :6], spectrum[::-1], rtol=1e-9)


@few
@given(seeds, shares)
def test_a_denoised_kernel_is_psd_and_holds_the_variance_with_the_fewest_axes(seed, share):
    train = stack_of(parts(seed)[0])
    denoise = Denoise(share).fit(train)
    denoised = denoise.transform(train)
    for j, K in enumerate(centred(train)):
        spectrum = np.linalg.eigvalsh(denoised.kernel(j))
        assert spectrum[0] >= -1e-12 * spectrum[-1]
        assert np.trace(denoised.kernel(j)) >= (share - 1e-9) * np.trace(K)
        one_less = (
            spectrum[-(denoise.n_components_[j] - 1) :] if denoise.n_components_[j] > 1 else 0
        )
        assert np.sum(one_less) < share * np.trace(K)


@pytest.mark.parametrize("weights", [None, np.linspace(0, 2, N_TRAIN)])
def test_all_variance_changes_nothing(train, block, weights):
    center = Center().fit(train, sample_weight=weights)
    denoise = Denoise(1).fit(train, sample_weight=weights)
    for stack in (train, block):
        assert_array_equal(values(denoise.transform(stack)), values(center.transform(stack)))
    assert_array_equal(denoise.n_components_, N_DIMS)
    assert_array_equal(denoise.variance_, 1.0)


@few
@given(seeds, edge_lists, counts)
def test_bands_add_up_to_the_kernel(seed, edges, weights):
    F, G = parts(seed)
    center = Center().fit(stack_of(F), sample_weight=weights)
    bands = Bands(edges=edges).fit(stack_of(F), sample_weight=weights)
    for stack in (stack_of(F), stack_of(G, F)):
        pieces, wholes = bands.transform(stack), center.transform(stack)
        for j in range(N_KERNELS):
            mine = bands.sources_ == j
            assert_close(values(pieces)[mine].sum(axis=0), wholes.kernel(j))
            assert_close(pieces.row_diag[mine].sum(axis=0), wholes.row_diag[j], 1e-7)


@few
@given(seeds, edge_lists)
def test_bands_are_orthogonal_and_psd(seed, edges):
    train = stack_of(parts(seed)[0])
    bands = Bands(edges=edges).fit(train)
    pieces = values(bands.transform(train))
    for i in range(len(pieces)):
        size = np.linalg.norm(values(Center().fit_transform(train))[bands.sources_[i]], 2)
        assert np.linalg.eigvalsh(pieces[i])[0] >= -1e-12 * size
        for k in range(i):
            if bands.sources_[i] == bands.sources_[k]:
                assert_allclose(pieces[i] @ pieces[k] / size**2, 0.0, atol=1e-12)


def test_bands_have_equal_shares_where_eigenvalues_are_small():
    X = np.random.default_rng(0).normal(size=(60, 200))
    stack = stack_of(X[None])
    traces = np.trace(values(Bands(4).fit_transform(stack)), axis1=1, axis2=2)
    assert_allclose(traces / traces.sum(), 0.25, atol=0.04)


# -- laws of transforms ----------------------------------------------------------------------


def test_training_rows_are_a_block_too(transform, train):
    F = parts()[0]
    gram = transform.fit_transform(train, LABELS)
    assert gram.gram
    assert gram.centered
    again = transform.transform(stack_of(F, F))
    assert_close(values(again), values(gram))
    assert_allclose(again.col_diag, gram.col_diag, atol=1e-9)
    assert_allclose(again.row_diag, gram.row_diag, atol=1e-9)


@pytest.mark.slow
@few
@given(weights=counts, seed=st.integers(0, 20))
@pytest.mark.parametrize("name", sorted(TRANSFORMS.keys() - {"denoise-folds"}))
def test_weights_are_repetitions(name, weights, seed):
    F, G = parts(seed)
    repeated = np.repeat(F, weights, axis=1)
    make, there = clone(TRANSFORMS[name]), clone(TRANSFORMS[name])
    make.fit(stack_of(F), LABELS, sample_weight=weights)
    there.fit(stack_of(repeated), np.repeat(LABELS, weights))
    expected = values(there.transform(stack_of(G, repeated)))
    actual = np.repeat(values(make.transform(stack_of(G, F))), weights, axis=2)
    assert_array_equal(make.n_components_, there.n_components_)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, 1e-9)
    if name == "denoise-cv":
        assert_allclose(make.cv_errors_, there.cv_errors_, rtol=1e-7)


def test_centring_first_or_not_is_the_same(transform, train, block):
    center = Center()
    chain = Chain([center, clone(transform)])
    gram = chain.fit_transform(train, LABELS)
    assert_close(values(transform.fit_transform(train, LABELS)), values(gram))
    assert_close(values(transform.transform(block)), values(chain.transform(block)))
    assert chain.steps[1].center_ is None
    with pytest.raises(ValueError, match="was fitted on centred kernels, and this stack is not"):
        chain.steps[1].transform(block)


@pytest.mark.parametrize("chosen", [[2, 0], *slow([1], [4, 3, 5], "mask", "all")])
@pytest.mark.parametrize("inside", [False, *slow(True)], ids=["alone", "in a chain"])
def test_select_and_sources(transform, train, block, chosen, inside):
    if inside:
        transform = Chain([Spherical(), Center(), transform, Multiplicative()])
    whole = values(transform.fit_transform(train, LABELS))
    n_outputs = len(whole)
    if chosen == "mask":
        chosen = np.arange(n_outputs) % 2 == 0
    elif chosen == "all":
        chosen = np.arange(n_outputs)
    else:
        chosen = np.array(chosen) % n_outputs
    part, sources = transform.select(chosen), transform.sources(chosen)
    assert len(set(sources.tolist())) == len(sources)
    for stack in (train, block):
        expected = transform.transform(stack)
        actual = part.transform(stack.select(sources))
        assert_close(values(actual), values(expected)[chosen])
        assert actual.names == [expected.names[i] for i in np.arange(n_outputs)[chosen]]
        assert_allclose(actual.row_diag, expected.row_diag[chosen], rtol=1e-6, atol=1e-9)
    assert_close(values(transform.transform(train)), whole)


def test_select_keeps_only_the_axes_it_needs(train):
    bands = Bands(edges=[0.5, 0.8, 1]).fit(train)
    middle = int(np.flatnonzero(bands.sources_ == 1)[1])
    part = bands.select(np.array([middle]))
    assert_array_equal(bands.sources(np.array([middle])), [1])
    assert part.n_components_ == part._axes[0].left.shape[1] == bands.n_components_[middle]
    assert part.eigenvalues_.shape == (1, N_TRAIN)


def test_selected_twice(train, block):
    bands = Bands().fit(train)
    once = bands.select(np.array([4, 5, 1]))
    twice = once.select(np.array([2, 1]))
    expected = values(bands.transform(block))[[1, 5]]
    needed = bands.sources(np.array([4, 5, 1]))[once.sources(np.array([2, 1]))]
    assert_close(values(twice.transform(block.select(needed))), expected)


def test_nothing_given_is_changed(transform, train):
    before, given = values(train).copy(), clone(transform)
    transform.fit_transform(train, LABELS)
    assert_array_equal(values(train), before)
    assert not train.centered
    assert repr(clone(transform)) == repr(given)


# -- names and kernels that have little to cut -----------------------------------------------


def test_names(train):
    assert Denoise().fit_transform(train).names == train.names
    named = KernelStack.from_arrays(train.data[:1], names=["a"])
    assert Bands(edges=[0.5, 0.9, 1.0]).fit_transform(named).names == [
        "a[0-0.5]",
        "a[0.5-0.9]",
        "a[0.9-1]",
    ]
    flat = stack_of(np.random.default_rng(0).normal(size=(1, 60, 200)))
    assert Bands(3).fit(flat).kernel_names_[1] == "kernel0[0.333-0.667]"
    near = Bands(edges=[0.5, 0.50001, 1]).fit(flat).kernel_names_
    assert near == ["kernel0[0-0.5]", "kernel0[0.50001-1]"]


def test_one_band_is_the_kernel(train, block):
    bands = Bands(1).fit(train)
    assert bands.kernel_names_ == [f"kernel{j}[0-1]" for j in range(N_KERNELS)]
    assert_array_equal(values(bands.transform(block)), centred(train, block))


def test_empty_bands_are_left_out():
    x = np.arange(5.0)
    line = KernelStack.from_arrays(np.outer(x, x), names=["line"])
    bands = Bands(edges=[0.3, 0.6, 1.0]).fit(line)
    assert bands.kernel_names_ == ["line[0-0.3]"]
    assert_close(values(bands.transform(line)), centred(line))
    X = np.column_stack([10 * np.array([1, -1, 0, 0]), [0, 0, 1, -1]])
    two = KernelStack.from_arrays(X @ X.T, names=["two"])
    assert Bands(edges=[0.5, 0.9, 1.0]).fit(two).kernel_names_ == ["two[0-0.5]", "two[0.9-1]"]


def test_a_band_of_rounding_is_left_out():
    """Centring takes away almost all of these kernels, and leaves two axes and rounding."""
    X = 1e4 + np.random.default_rng(0).normal(size=(100, 2))
    bands = Bands(edges=[0.3, 0.999, 1]).fit(stack_of(X[None]))
    assert_array_equal(bands.n_components_, [1, 1])
    assert Denoise(0.9999).fit(stack_of(X[None])).n_components_ == 2


def test_bands_below_one_leave_axes_out(train):
    bands = Bands(edges=[0.5, 0.8]).fit_transform(train)
    joined = [name for name in bands.names if name.startswith("kernel1")]
    total = sum(bands.kernel(name) for name in joined)
    assert_close(total, Denoise(0.8).fit_transform(train).kernel(1))


@pytest.mark.parametrize("constant", [0.0, *slow(0.1, 1 / 3, 1e8)])
@pytest.mark.parametrize("centre_first", [True, False])
def test_a_constant_kernel_becomes_zero(transform, train, block, constant, centre_first):
    gram, test = (
        KernelStack.from_arrays(
            [stack.data[0], np.full_like(stack.data[1], constant), stack.data[2]],
            gram=stack.gram,
        )
        for stack in (train, block)
    )
    chain = Chain([Center(), transform] if centre_first else [transform])
    chain.fit_transform(gram, LABELS)
    mine = transform.sources_ == 1
    assert mine.sum() == 1
    assert_array_equal(transform.n_components_[mine], 0)
    for stack in (gram, test):
        K = values(chain.transform(stack))
        assert np.isfinite(K).all()
        assert_array_equal(K[mine], 0.0)
    if transform.get_params().get("variance") == "cv":
        assert np.isnan(transform.cv_errors_[1]).all()


# -- inside scikit-learn ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["denoise-cv", *slow("bands")])
def test_in_a_pipeline(name):
    F = features(n_rows=60)
    y = np.arange(60) % 3
    F[:, :, 0] += y
    stack = stack_of(F)
    model = Pipeline([("cut", clone(TRANSFORMS[name])), ("fda", MKFDA("precomputed"))])
    key, grid = ("variance", [0.5, "cv"]) if name == "denoise-cv" else ("n_bands", [1, 2])
    search = GridSearchCV(model, {f"cut__{key}": grid}, cv=3).fit(stack, y)
    assert search.best_score_ >= 0.5
    within = MKFDA("precomputed", denoise=clone(search.best_estimator_[0])).fit(stack, y)
    assert_close(search.decision_function(stack), within.decision_function(stack), 1e-6)


# -- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variance", [0, 0.0, -0.5, 1.001, 90, np.nan, np.inf, "all", None, [0.5, 0.5, 2], [0.5, "a"]]
)
def test_variances_that_are_refused(train, variance):
    with pytest.raises(ValueError, match=r"variance must be a number in \(0, 1\], \"cv\", or a"):
        Denoise(variance).fit(train)


@pytest.mark.parametrize("variance", [[0.5], [0.5] * 4, [], np.array([0.3, 0.4])])
def test_a_sequence_of_the_wrong_length(train, variance):
    with pytest.raises(ValueError, match=f"variance has {len(variance)} numbers.* 3 kernels"):
        Denoise(variance).fit(train)


@pytest.mark.parametrize("n_bands", [0, -1, 2.5, "3", None])
def test_numbers_of_bands_that_are_refused(train, n_bands):
    with pytest.raises(ValueError, match="n_bands must be an integer of at least 1, got"):
        Bands(n_bands).fit(train)


@pytest.mark.parametrize(
    "edges", [[], [0.5, 0.5], [0.9, 0.5], [0, 1], [0.5, 1.5], [np.nan], ["a"], 0.5, "cv"]
)
def test_edges_that_are_refused(train, edges):
    with pytest.raises(ValueError, match=r"edges must be increasing numbers in \(0, 1\]"):
        Bands(edges=edges).fit(train)


def test_blocks_that_are_refused(transform, train, block):
    with pytest.raises(NotFittedError):
        transform.transform(train)
    with pytest.raises(ValueError, match=r"learns from a Gram stack.*5 x 14 block"):
        transform.fit(block, LABELS)
    transform.fit(train, LABELS)
    with pytest.raises(ValueError, match=r"block has 13 columns, but .* fitted on 14 training"):
        transform.transform(block[:, :13])
    with pytest.raises(ValueError, match=r"stack has 2 kernels, but .* was fitted on 3"):
        transform.transform(block.select([0, 1]))


def test_too_many_bands_for_the_memory(train, monkeypatch):
    monkeypatch.setattr(numerics, "available_memory", lambda: 8 * 4 * N_TRAIN**2)
    Denoise().fit_transform(train)
    with pytest.raises(MemoryError, match=r"output of Bands of shape \(6, 14, 14\)"):
        Bands(2).fit(train)


def test_kernels_by_columns_are_refused():
    X = parts()[0][0]
    streamed = StreamedKernels(rbf_grid([1, 2]).fit(X), X)
    with pytest.raises(ValueError, match="Denoise needs whole kernel matrices"):
        Denoise().fit(streamed)
