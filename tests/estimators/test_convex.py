"""Estimators with kernel weights for every region: laws, outputs by hand, ways to give regions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder

from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVR,
    KernelStack,
    Views,
)
from manykernels.gating import GivenRegions, KernelRegions
from manykernels.kernels import RBF, Linear, Polynomial
from tests.estimators import registry
from tests.estimators.registry import COMPARED, PAIRS, STACK, TEST_STACK, X_TEST, Noted, X, Y, made
from tests.problems import slow

VALUES = registry.SHARED_TARGETS["values"]
# Every estimator with what it is without regions, and its targets.
PAIRED = {
    "two classes": (ConvexLocalizedSVC, MKSVC, Y == 0),
    "three classes": (ConvexLocalizedSVC, MKSVC, Y),
    "regression": (ConvexLocalizedSVR, MKSVR, VALUES),
    "discriminant": (ConvexLocalizedFDA, MKFDA, Y),
}
every_pair = pytest.mark.parametrize("pair", PAIRED)
every_norm = pytest.mark.parametrize("p", [1.0, *slow(2.0, np.inf)], ids=lambda p: f"p={p:g}")
NORMALIZATIONS = ["multiplicative", "spherical", "trace", None]


def scores(model, data=X_TEST):
    return getattr(model, "decision_function", model.predict)(data)


def sided(n, seed=0):
    """Labels that follow one column on the left, another one on the right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    X[:, 0] += np.where(rng.uniform(size=n) < 0.5, -2.0, 2.0)
    return X, np.where(X[:, 0] < 0, X[:, 1], X[:, 2]) > 0


# -- laws ------------------------------------------------------------------------------------


@every_pair
@pytest.mark.parametrize(
    ("p", "normalize"),
    [(1.0, "multiplicative"), (2.0, "spherical"), (np.inf, "trace"), (1.5, None)],
)
def test_one_region_is_plain_weights(pair, p, normalize):
    kind, plain, y = PAIRED[pair]
    options = {"p": p, "normalize": normalize, "tol": 1e-8}
    expected = made(plain, PAIRS, **options).fit(X, y)
    model = made(kind, PAIRS, regions=1, **options).fit(X, y)
    assert model.weights_.shape == (1, 3)
    assert_allclose(model.weights_[0], expected.weights_, rtol=1e-6, atol=1e-8)
    assert_allclose(scores(model), scores(expected), rtol=1e-6, atol=1e-8)
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-9)
    assert model.n_inner_solves_ == expected.n_inner_solves_
    assert_array_equal(model.memberships(X_TEST), 1.0)


@every_pair
@every_norm
def test_no_sharpness_is_plain_weights_too(pair, p):
    kind, plain, y = PAIRED[pair]
    expected = plain(PAIRS, p=p, tol=1e-10).fit(X, y)
    model = made(kind, PAIRS, sharpness=0.0, p=p, tol=1e-10).fit(X, y)
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-8)
    assert_allclose(scores(model), scores(expected), rtol=1e-4, atol=1e-4)


@every_pair
def test_other_orders_of_kernels_are_other_orders_of_columns(pair):
    kind, _, y = PAIRED[pair]
    options = {"p": 1.5, "sharpness": 4.0, "tol": 1e-8}
    model = made(kind, PAIRS, **options).fit(X, y)
    turned = made(kind, PAIRS[::-1], **options).fit(X, y)
    assert turned.kernel_names_ == model.kernel_names_[::-1]
    assert_allclose(turned.weights_[:, ::-1], model.weights_, rtol=1e-3, atol=1e-4)
    assert_allclose(scores(turned), scores(model), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("normalize", [NORMALIZATIONS[0], *slow(*NORMALIZATIONS[1:])])
@pytest.mark.parametrize(
    ("regions", "multi_class"),
    [
        (KernelRegions(3, sharpness=3.0), "separate"),
        (GivenRegions(GaussianMixture(2, random_state=0)), "shared"),
    ],
)
def test_outputs_by_hand(normalize, regions, multi_class):
    """The sum over regions, kernels and support vectors, with shares as they are reported."""
    options = {"normalize": normalize, "regions": regions, "multi_class": multi_class}
    model = ConvexLocalizedSVC(PAIRS, **options).fit(X, Y)
    fitted = model.union_
    kernels, block = fitted(X), fitted(X_TEST, X)
    scales = np.ones(3)
    if normalize == "spherical":
        factors = [1 / np.sqrt(one.row_diag) for one in (block, kernels)]
        matrices = [block.kernel(j) * np.outer(factors[0][j], factors[1][j]) for j in range(3)]
    else:
        matrices = [block.kernel(j) for j in range(3)]
    if normalize in ("multiplicative", "trace"):
        centred = np.eye(len(X)) - 1 / len(X)
        scales = np.array([1 / np.trace(centred @ kernels.kernel(j)) for j in range(3)])
        scales *= len(X) if normalize == "multiplicative" else 1
    roots, training_roots = (np.sqrt(model.memberships(data)) for data in (X_TEST, X))
    weights = model.weights_ if multi_class == "separate" else [model.weights_] * 3
    expected = np.tile(model.intercept_, (len(X_TEST), 1))
    for k, table in enumerate(weights):
        for region, own in enumerate(table):
            for j in range(3):
                K = np.outer(roots[:, region], training_roots[:, region]) * matrices[j]
                K = K[:, model.support_] * scales[j]
                expected[:, k] += own[j] * K @ model.dual_coef_[k]
    assert_allclose(scores(model), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", [ConvexLocalizedSVC, *slow(ConvexLocalizedFDA)])
def test_regions_help_where_kernels_matter_in_different_places(kind):
    train, test = sided(300), sided(1000, seed=1)
    kernels = [("a", RBF(1.0).on([1])), ("b", RBF(1.0).on([2])), ("place", RBF(0.3).on([0]))]
    local = made(kind, kernels, regions=2, sharpness=8.0, p=1).fit(*train)
    plain = {ConvexLocalizedSVC: MKSVC, ConvexLocalizedFDA: MKFDA}[kind](kernels, p=1).fit(*train)
    assert local.score(*test) > 0.95
    assert local.score(*test) > plain.score(*test) + 0.05
    left = int(local.memberships([[-2.0, 0.0, 0.0]]).argmax())
    assert local.weights_[left, 0] > 0.9
    assert local.weights_[1 - left, 1] > 0.9


def with_solver(kind, name):
    """The same estimator, whose weights another solver learns."""
    return type(kind.__name__, (kind,), {"solver": name})


@pytest.mark.parametrize(
    ("kind", "y", "solvers"),
    [
        (ConvexLocalizedSVC, Y, ["analytic", "sip", "interleaved"]),
        pytest.param(
            ConvexLocalizedSVR, VALUES, ["analytic", "sip", "interleaved"], marks=pytest.mark.slow
        ),
        pytest.param(
            ConvexLocalizedFDA, Y, ["analytic", "sip", "coordinate"], marks=pytest.mark.slow
        ),
    ],
)
def test_every_solver_that_can_be_used_finds_the_same(kind, y, solvers):
    options = {"p": 1.5, "sharpness": 2.0}
    best = made(kind, PAIRS, **options).fit(X, y)
    for name in solvers:
        model = made(with_solver(kind, name), PAIRS, tol=1e-3, **options).fit(X, y)
        assert model.solver_ == name
        found, reference = model.certificate_, best.certificate_
        assert abs(found.primal - reference.primal) <= found.gap + reference.gap + 1e-9


@pytest.mark.parametrize("kind", [ConvexLocalizedSVC, ConvexLocalizedSVR, ConvexLocalizedFDA])
def test_a_solver_with_one_norm_is_refused_before_kernels_are_computed(kind):
    COMPARED.clear()
    with pytest.raises(ValueError, match=r"one norm of all weights.*solver='newton'"):
        with_solver(kind, "reduced-gradient")(Noted(1.0), p=1).fit(X, np.arange(len(X)) % 2)
    assert COMPARED == []


def test_squared_hinge_and_class_weights():
    model = ConvexLocalizedSVC(PAIRS, loss="squared_hinge", class_weight="balanced").fit(X, Y)
    plain = MKSVC(PAIRS, loss="squared_hinge", class_weight="balanced").fit(X, Y)
    one = ConvexLocalizedSVC(PAIRS, loss="squared_hinge", class_weight="balanced", regions=1).fit(
        X, Y
    )
    assert one.certificate_.primal == pytest.approx(plain.certificate_.primal)
    assert model.certificate_.converged


# -- what is kept ----------------------------------------------------------------------------


def test_the_table_of_weights():
    model = made(ConvexLocalizedSVC, PAIRS, sharpness=2.0).fit(X, Y)
    table = model.region_weights()
    assert [row["kernel"] for row in table[:3]] == model.kernel_names_
    assert_array_equal([row["weight"] for row in table], model.weights_.ravel())
    assert_array_equal([row["region"] for row in table], np.repeat([0, 1, 2], 3))
    assert_allclose(model.region_sizes_, model.memberships(X).mean(axis=0))
    assert isinstance(model.regions_, KernelRegions)
    assert (np.linalg.norm(model.weights_, axis=1) <= 1 + 1e-9).all()
    separate = made(ConvexLocalizedSVC, PAIRS, sharpness=2.0, multi_class="separate").fit(X, Y)
    assert separate.weights_.shape == (3, 3, 3)
    assert [row["class"] for row in separate.region_weights()] == np.repeat([0, 1, 2], 9).tolist()


@pytest.mark.parametrize("kind", [ConvexLocalizedSVC, *slow(ConvexLocalizedFDA)])
def test_new_samples_are_compared_with_all_training_samples_once(kind):
    """Distances from regions are those of all kernels, even of such without weight."""
    kernels = [("useful", Noted(0.3).on([0, 1, 2])), ("other", Noted(2.0).on([3]))]
    model = kind(kernels, p=1).fit(X, Y == 0)
    COMPARED.clear()
    model.predict(X_TEST)
    assert sorted(COMPARED) == [(0.3, 17, 48), (2.0, 17, 48)]


def test_samples_of_weight_zero_are_in_no_region():
    weights = np.ones(len(X))
    weights[::3] = 0.0
    kept = np.flatnonzero(weights)
    model = made(ConvexLocalizedSVC, PAIRS, sharpness=4.0).fit(X, Y, weights)
    other = made(ConvexLocalizedSVC, PAIRS, sharpness=4.0).fit(X[kept], Y[kept])
    assert_allclose(model.memberships(X_TEST), other.memberships(X_TEST), rtol=1e-9)
    assert_allclose(scores(model), scores(other), rtol=1e-6, atol=1e-8)


def test_fewer_different_samples_than_regions():
    data = np.repeat(np.array([[0.0], [1.0]]), 10, axis=0)
    with pytest.warns(UserWarning, match="There are 2 regions, not 5"):
        model = made(ConvexLocalizedSVC, Linear(), regions=5, sharpness=1.0).fit(
            data, data[:, 0] > 0
        )
    assert model.weights_.shape == (2, 1)


def test_sharpness_can_be_chosen_by_a_search():
    search = GridSearchCV(
        made(ConvexLocalizedSVC, PAIRS), {"regions__sharpness": [0.0, 4.0], "regions": [2, 3]}
    )
    assert search.fit(X, Y == 0).best_score_ > 0.5


# -- ways to give regions --------------------------------------------------------------------


def halves(X):
    """Shares by the sign of the first column."""
    left = np.asarray(X)[:, :1] < 0
    return np.hstack([left, ~left])


def test_shares_in_columns_in_a_view_in_features_and_by_a_function_are_the_same():
    kernels = [("a", RBF(0.3).on([0, 1])), ("b", Linear().on([2, 3, 4]))]
    by_function = ConvexLocalizedSVC(kernels, regions=GivenRegions(halves), normalize=None).fit(
        X, Y
    )
    expected = scores(by_function)
    assert isinstance(by_function.regions_, GivenRegions)
    assert_array_equal(by_function.memberships(X_TEST), halves(X_TEST))
    wide, wide_test = np.hstack([X, halves(X)]), np.hstack([X_TEST, halves(X_TEST)])
    by_columns = ConvexLocalizedSVC(
        kernels, regions=GivenRegions(columns=[5, 6]), normalize=None
    ).fit(wide, Y)
    assert_allclose(scores(by_columns, wide_test), expected, rtol=1e-9)
    views, test_views = (
        Views({"first": data[:, :2], "rest": data[:, 2:], "side": halves(data).astype(float)})
        for data in (X, X_TEST)
    )
    of_views = [("a", RBF(0.3).of("first")), ("b", Linear().of("rest"))]
    by_view = ConvexLocalizedSVC(
        of_views, regions=GivenRegions(columns="side"), normalize=None
    ).fit(views, Y)
    assert_allclose(scores(by_view, test_views), expected, rtol=1e-9)
    matrices, blocks = (by_function.union_(data, X) for data in (X, X_TEST))
    stack = KernelStack.from_arrays([matrices.kernel(j) for j in range(2)], gram=True)
    stack = stack.with_features(halves(X))
    block = KernelStack.from_arrays([blocks.kernel(j) for j in range(2)], gram=False)
    block = block.with_features(halves(X_TEST))
    for given in (
        {"columns": [0, 1]},
        {"columns": slice(None)},
        {},
        {"model": lambda table: table},
    ):
        regions = GivenRegions(**given)
        by_stack = ConvexLocalizedSVC("precomputed", regions=regions, normalize=None)
        assert_allclose(scores(by_stack.fit(stack, Y), block), expected, rtol=1e-7)


def test_categories_of_a_frame():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(site=np.where(X[:, 0] < 0, "x", "y"))
    kernels = [("a", RBF(0.3).on(["a", "b"])), ("b", Linear().on(["c", "d", "e"]))]
    model = ConvexLocalizedSVC(
        kernels, regions=GivenRegions(OneHotEncoder(), columns=["site"])
    ).fit(frame, Y)
    assert_array_equal(model.memberships(frame), halves(X))


def test_options_of_kernel_regions():
    found = KernelRegions(2, sharpness=1.0, n_init=3)
    model = ConvexLocalizedSVC(PAIRS, regions=found).fit(X, Y)
    assert model.regions_ is not found
    assert model.regions_.sharpness == 1.0
    assert not hasattr(found, "n_regions_")
    same = ConvexLocalizedSVC(PAIRS, regions=GivenRegions(halves)).fit(X, Y)
    assert_array_equal(same.memberships(X_TEST), halves(X_TEST))


@pytest.mark.parametrize("kind", [ConvexLocalizedSVC, ConvexLocalizedFDA])
def test_a_clustering_of_scikit_learn_with_sparse_weights(kind):
    model = made(kind, PAIRS, regions=GivenRegions(KMeans(2, random_state=0)), p=1).fit(X, Y)
    assert set(model.memberships(X_TEST).ravel()) == {0.0, 1.0}
    assert model.weights_.shape == (2, 3)


@pytest.mark.parametrize("regions", [0, -1, 2.5, None, True, np.nan])
def test_no_regions(regions):
    with pytest.raises(ValueError, match=r"regions.* must be"):
        ConvexLocalizedSVC(PAIRS, regions=regions).fit(X, Y)


@pytest.mark.parametrize("regions", [KMeans(2), halves, GaussianMixture])
def test_models_of_regions_that_are_not_wrapped(regions):
    with pytest.raises(ValueError, match=r"Wrap it: regions=GivenRegions\(\.\.\.\)"):
        ConvexLocalizedSVC(PAIRS, regions=regions).fit(X, Y)


@pytest.mark.parametrize("regions", [slice(None), "side", ["a", "b"], (["site"], KMeans(2))])
def test_columns_of_regions_that_are_not_wrapped(regions):
    with pytest.raises(ValueError, match=r"are GivenRegions\(columns=\.\.\.\)"):
        ConvexLocalizedSVC(PAIRS, regions=regions).fit(X, Y)


def test_bad_shares_name_the_row():
    wide = np.hstack([X, halves(X)])
    wide[7, 5] = 0.3
    model = ConvexLocalizedSVC(PAIRS, regions=GivenRegions(columns=[5, 6]))
    with pytest.raises(ValueError, match=r"regions: the shares of row 7 sum to"):
        model.fit(wide, Y)
    model.fit(np.hstack([X, halves(X)]), Y)
    with pytest.raises(ValueError, match=r"regions: the shares of row 7 sum to"):
        model.predict(wide)


def test_ready_made_kernels_need_a_table_for_regions_that_are_given():
    bare = STACK._changed(features=None)
    with pytest.raises(ValueError, match="regions need a table of features"):
        ConvexLocalizedSVC("precomputed", regions=GivenRegions(halves)).fit(bare, Y)
    model = ConvexLocalizedSVC("precomputed", regions=GivenRegions(halves)).fit(STACK, Y)
    with pytest.raises(ValueError, match="regions need a table of features"):
        model.predict(TEST_STACK._changed(features=None))
    assert ConvexLocalizedSVC("precomputed").fit(bare, Y).certificate_.converged


def test_regions_of_a_view_that_samples_lack():
    labels = [str(i) for i in range(len(X))]
    frames = {
        "first": pd.DataFrame(X[:, :2], index=labels),
        "rest": pd.DataFrame(X[:, 2:], index=labels).drop("3"),
    }
    views = Views(frames, join="outer")
    model = made(
        ConvexLocalizedSVC, RBF(), regions=GivenRegions(KMeans(2, random_state=0)), missing="mean"
    )
    with pytest.raises(ValueError, match="view 'rest', which some samples lack"):
        model.fit(views, Y)
    for missing in ("mean", "conditional"):
        found = made(ConvexLocalizedSVC, RBF(), regions=2, sharpness=2.0, missing=missing).fit(
            views, Y
        )
        assert_allclose(found.memberships(views).sum(axis=1), 1.0)


def test_polynomials_in_regions_approach_the_best_boundary():
    """Four Gaussians of Gönen and Alpaydın (2013), figure 1."""
    means = np.array([[-3.0, 1.0], [1.0, 1.0], [-1.0, -2.2], [3.0, -2.2]])
    deviations = np.sqrt([[0.8, 2.0], [0.8, 2.0], [0.8, 4.0], [0.8, 4.0]])
    rng = np.random.default_rng(0)
    part = rng.integers(4, size=2400)
    data = means[part] + deviations[part] * rng.standard_normal((2400, 2))
    train, test = (data[:400], part[:400] < 2), (data[400:], part[400:] < 2)
    kernels = [("line", Polynomial(1, gamma=1.0)), ("curve", Polynomial(2, gamma=1.0))]
    plain = MKSVC(kernels).fit(*train).score(*test)
    local = made(ConvexLocalizedSVC, kernels, sharpness=4.0).fit(*train).score(*test)
    assert local > plain + 0.015
