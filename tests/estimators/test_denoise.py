"""MKFDA on denoised kernels and spectral bands: the same as doing it by hand, and less work."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from manykernels import MKFDA, Bands, Denoise, KernelStack, KernelUnion
from manykernels.kernels import RBF, Linear
from manykernels.kernels.adapters import CallableKernel
from manykernels.kernels.transforms import Center, Multiplicative, Spherical, UnitTrace
from tests.estimators.registry import BLOCK_ENTRIES
from tests.problems import SQUARE_SOLVERS, slow, some_slow

N_TRAIN, N_TEST = 48, 17
rng = np.random.default_rng(0)
LABELS = np.arange(N_TRAIN + N_TEST) % 3
TABLE = rng.normal(size=(len(LABELS), 8))
TABLE[:, :3] += 1.2 * np.eye(3)[LABELS]
X, y, X_TEST = TABLE[:N_TRAIN], LABELS[:N_TRAIN], TABLE[N_TRAIN:]
PAIRS = [("shape", RBF(0.3).on(slice(0, 3))), ("flat", Linear()), ("noise", RBF(1.0).on([3, 4]))]
UNION = KernelUnion(PAIRS).fit(X)
STACK, TEST_STACK = UNION(X), UNION(X_TEST, X)
WAYS = {
    "denoise": Denoise(0.7),
    "each": Denoise([0.5, 0.9, 1.0]),
    "cv": Denoise("cv"),
    "bands": Bands(3),
    "edges": Bands(edges=[0.5, 0.9]),
}
SCALINGS = {
    None: ([Center()], []),
    "spherical": ([Spherical(), Center()], []),
    "multiplicative": ([Center()], [Multiplicative()]),
    "trace": ([Center()], [UnitTrace()]),
}


@pytest.fixture(params=some_slow(WAYS, "each", "edges"))
def denoise(request):
    return clone(WAYS[request.param])


def close(actual, expected, tolerance=1e-6):
    scale = np.abs(expected).max()
    assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


# -- the same as by hand ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("normalize", SCALINGS)
def test_kernels_are_centred_then_cut_then_scaled(denoise, normalize):
    before, after = SCALINGS[normalize]
    cut = clone(denoise)
    if normalize == "multiplicative" and isinstance(cut, Denoise):
        cut.reg = 0.5
    train, test = STACK, TEST_STACK
    for step in [*before, cut, *after]:
        step = clone(step).fit(train, y)
        train, test = step.transform(train), step.transform(test)
    by_hand = MKFDA("precomputed", normalize=None, reg=0.5).fit(train, y)
    on_stack = MKFDA("precomputed", normalize=normalize, reg=0.5, denoise=denoise).fit(STACK, y)
    on_table = MKFDA(PAIRS, normalize=normalize, reg=0.5, denoise=denoise).fit(X, y)
    assert on_stack.kernel_names_ == on_table.kernel_names_ == train.names
    for model, new in ((on_stack, TEST_STACK), (on_table, X_TEST)):
        assert len(model.weights_) == len(train.names)
        close(model.weights_, by_hand.weights_, 1e-4)
        close(model.decision_function(new), by_hand.decision_function(test), 1e-4)
        close(model.transform(new), by_hand.transform(test), 1e-4)


@pytest.mark.parametrize("denoise", [Denoise(1.0), *slow(Bands(1))], ids=repr)
def test_nothing_cut_changes_nothing(denoise):
    cut, plain = (MKFDA(PAIRS, denoise=d).fit(X, y) for d in (denoise, None))
    close(cut.weights_, plain.weights_)
    close(cut.decision_function(X_TEST), plain.decision_function(X_TEST))


def test_all_bands_with_the_same_weight_are_the_plain_sum():
    model = MKFDA(PAIRS, p=np.inf, normalize=None, denoise=Bands(4)).fit(X, y)
    plain = MKFDA(PAIRS, p=np.inf, normalize=None).fit(X, y)
    close(model.decision_function(X_TEST), plain.decision_function(X_TEST))


@pytest.mark.parametrize("reg", [0.01, *slow(3.0)])
def test_the_variance_is_chosen_at_the_same_regularisation(reg):
    model = MKFDA(PAIRS, reg=reg, denoise=Denoise("cv")).fit(X, y)
    expected = Denoise("cv", reg=reg).fit(STACK, y)
    assert_allclose(model.denoise_.cv_errors_, expected.cv_errors_, rtol=1e-8)
    assert_array_equal(model.denoise_.variance_, expected.variance_)
    own = MKFDA(PAIRS, reg=reg, denoise=Denoise("cv", reg=0.7)).fit(X, y)
    assert own.denoise_.reg == 0.7
    joint = MKFDA(PAIRS, reg="joint", denoise=Denoise("cv")).fit(X, y)
    assert joint.denoise_.reg is None


def test_weights_are_repetitions(denoise):
    counts = np.arange(N_TRAIN) % 4
    weighted = MKFDA(PAIRS, denoise=denoise, tol=1e-9).fit(X, y, sample_weight=counts)
    # A kernel that looks at the data for its scale would see the repetitions too.
    repeated = MKFDA(PAIRS, denoise=denoise, tol=1e-9)
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    close(weighted.weights_, repeated.weights_, 1e-4)
    close(weighted.decision_function(X_TEST), repeated.decision_function(X_TEST), 1e-4)
    on_stack = MKFDA("precomputed", denoise=denoise, tol=1e-9)
    on_stack.fit(STACK, y, sample_weight=counts)
    close(on_stack.decision_function(TEST_STACK), weighted.decision_function(X_TEST), 1e-4)


def test_weights_of_classes(denoise):
    model = MKFDA(PAIRS, denoise=denoise, class_weight={0: 3, 1: 1, 2: 0.5}).fit(X, y)
    assert np.isfinite(model.decision_function(X_TEST)).all()


# -- less work in prediction -----------------------------------------------------------------

CALLS = []


def of_noise(X, Y):
    CALLS.append((len(X), len(Y)))
    return np.exp(-50.0 * (X[:, :1] - Y[:, :1].T) ** 2)


@pytest.mark.parametrize("useless_first", [True, *slow(False)])
@pytest.mark.parametrize("denoise", [Denoise(0.8), Bands(3)], ids=repr)
def test_only_kernels_with_a_weight_are_evaluated(denoise, useless_first):
    kernels = [("useful", RBF(0.3).on([0, 1, 2])), ("useless", CallableKernel(of_noise).on([3]))]
    easy = X + 5.0 * np.eye(3, 8)[y]
    order = kernels[::-1] if useless_first else kernels
    model = MKFDA(order, p=1, reg=10.0, denoise=denoise).fit(easy, y)
    useless = [name.startswith("useless") for name in model.kernel_names_]
    assert not model.weights_[useless].any()
    assert CALLS
    CALLS.clear()
    decision = model.decision_function(X_TEST)
    assert CALLS == []
    assert len(model._predictor.weights) == np.count_nonzero(model.weights_)
    # All of it gives the same.
    union = KernelUnion(order).fit(easy)
    train, test = union(easy), union(X_TEST, easy)
    for step in (Center(), clone(denoise), Multiplicative()):
        step.fit(train, y)
        train, test = step.transform(train), step.transform(test)
    by_hand = test.apply_combined(model.weights_, model.dual_coef_) + model.intercept_
    close(decision, by_hand)


def test_blocks_of_rows_give_the_same(monkeypatch, denoise):
    on_table = MKFDA(PAIRS, denoise=denoise).fit(X, y)
    on_stack = MKFDA("precomputed", denoise=denoise).fit(STACK, y)
    expected = on_table.decision_function(X_TEST)
    for entries in (1, 4 * N_TRAIN, 20 * N_TRAIN):
        monkeypatch.setattr(BLOCK_ENTRIES, entries)
        close(on_table.decision_function(X_TEST), expected)
        close(on_stack.decision_function(TEST_STACK), expected)


# -- as a parameter --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("denoise", "grid"),
    [
        (Denoise(), {"denoise__variance": [0.3, "cv", 1.0]}),
        (Bands(), {"denoise__n_bands": [1, 3], "p": [1, 2]}),
        (None, {"denoise": [None, Denoise(0.3), Bands(2)]}),
    ],
)
def test_searches_reach_into_it(denoise, grid):
    search = GridSearchCV(MKFDA(PAIRS, denoise=denoise), grid, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    stack = GridSearchCV(MKFDA("precomputed", denoise=denoise), grid, cv=3).fit(STACK, y)
    assert_array_equal(stack.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


def test_what_is_given_is_not_touched(denoise):
    before = repr(denoise)
    model = MKFDA(PAIRS, denoise=denoise).fit(X, y)
    assert model.denoise is denoise
    assert model.denoise_ is not denoise
    assert repr(denoise) == before
    with pytest.raises(NotFittedError):
        denoise.transform(STACK)
    model.set_params(denoise=None).fit(X, y)
    assert model.denoise_ is None
    assert model.kernel_names_ == ["shape", "flat", "noise"]


def test_copies_predict_the_same(denoise):
    model = MKFDA(PAIRS, denoise=denoise).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.decision_function(X_TEST), model.decision_function(X_TEST))


def test_test_blocks_have_the_kernels_of_training():
    model = MKFDA("precomputed", denoise=Bands(2)).fit(STACK, y)
    with pytest.raises(ValueError, match="X has 2 kernels, but MKFDA was fitted on 3: shape"):
        model.predict(TEST_STACK.select([0, 1]))
    renamed = KernelStack(TEST_STACK.data, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"\(a, b, c\) are not those of training \(shape, flat"):
        model.predict(renamed)


# -- kernels without variance ----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
def test_a_constant_kernel_changes_nothing(denoise):
    denoise = Denoise(0.7) if isinstance(denoise.get_params().get("variance"), list) else denoise
    with_constant = [PAIRS[0], ("one", CallableKernel(lambda A, B: np.ones((len(A), len(B)))))]
    model = MKFDA(with_constant, denoise=denoise).fit(X, y)
    alone = MKFDA(PAIRS[:1], denoise=denoise).fit(X, y)
    close(model.decision_function(X_TEST), alone.decision_function(X_TEST), 1e-4)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
def test_nothing_but_constants(denoise):
    denoise = Denoise(0.7) if isinstance(denoise.get_params().get("variance"), list) else denoise
    ones = KernelStack.from_arrays(np.ones((2, N_TRAIN, N_TRAIN)))
    model = MKFDA("precomputed", denoise=denoise).fit(ones, np.r_[y[:-2], 0, 0])
    assert (model.predict(np.ones((4, N_TRAIN, 2))) == 0).all()


# -- solvers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", sorted(set(SQUARE_SOLVERS) - {"coordinate", "sdp-approx"}))
def test_solvers_find_the_same_weights_of_bands(solver):
    p = 2 if solver in ("dual", "analytic") else 1
    expected = MKFDA(PAIRS, p=p, denoise=Bands(2)).fit(X, y)
    model = MKFDA(PAIRS, p=p, denoise=Bands(2), solver=solver, tol=1e-5).fit(X, y)
    assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=1e-4)


def test_kernels_by_columns_are_refused():
    with pytest.raises(ValueError, match=r"Bands needs whole kernel matrices.*another solver"):
        MKFDA(PAIRS, solver="coordinate", denoise=Bands(2)).fit(X, y)
