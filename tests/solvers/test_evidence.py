"""Weights of largest evidence: the likelihood itself, other optimisers, laws, and estimators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.exceptions import ConvergenceWarning

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    ConvexLocalizedSVC,
    KernelStack,
    MKRidge,
    MKRidgeCV,
    kernels_for,
    load,
    report,
    save,
    view_importance,
)
from manykernels.display import ValidationDisplay
from manykernels.domains import TraceSimplex, lp_domain
from manykernels.kernels import RBF, Linear
from manykernels.losses.square import JointSquareLoss, SquareLoss
from manykernels.scale import ExactFeatures, RandomFeatures
from manykernels.solvers import Newton
from manykernels.solvers.evidence import Evidence, _Problem, _Run


def problem(n_rows=30, n_kernels=4, n_outputs=1, seed=0, sample_weight=None, noise=0.3, most=None):
    """A square loss on centred kernels of unit variance, with a signal in the first of them."""
    rng = np.random.default_rng(seed)
    weights = np.ones(n_rows) if sample_weight is None else sample_weight
    centring = np.eye(n_rows) - np.outer(np.ones(n_rows), weights / weights.sum())
    kernels = []
    for rank in rng.integers(1, most or n_rows, n_kernels):
        Z = centring @ rng.normal(size=(n_rows, rank))
        kernels.append(Z @ Z.T * weights.sum() / (weights @ np.sum(Z**2, axis=1)))
    roots = np.linalg.cholesky(kernels[0] + 1e-10 * np.eye(n_rows))
    targets = roots @ rng.normal(size=(n_rows, n_outputs))
    targets = centring @ (targets + noise * rng.normal(size=targets.shape))
    stack = KernelStack.from_arrays(kernels, psd="clip")
    return SquareLoss(stack, targets, 1.0, sample_weight), kernels, targets


def deviance(variances, kernels, targets, sample_weight=None):
    """−2 log likelihood of the contrasts of the targets, whose mean is unknown, and constants."""
    weights = np.ones(len(targets)) if sample_weight is None else sample_weight
    covariance = variances[0] * np.diag(1.0 / weights)
    covariance += sum(v * K for v, K in zip(variances[1:], kernels, strict=True))
    # Orthonormal contrasts of rows scaled by √w: all that the mean does not change.
    roots = np.sqrt(weights)
    contrasts = np.linalg.svd(roots[None])[2][1:] * roots
    normal = stats.multivariate_normal(cov=contrasts @ covariance @ contrasts.T)
    return -2.0 * sum(normal.logpdf(contrasts @ target) for target in targets.T)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_value_is_the_likelihood_of_contrasts(n_outputs, weighted):
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 3.0, 30) if weighted else None
    loss, kernels, targets = problem(n_outputs=n_outputs, sample_weight=weights)
    evidence = _Problem(loss)
    points = [evidence.evaluate(rng.exponential(size=5)) for _ in range(4)]
    expected = [
        deviance([point.noise, *point.excess[1:]], kernels, targets, weights) for point in points
    ]
    values = np.array([point.value for point in points])
    np.testing.assert_allclose(values - values[0], np.subtract(expected, expected[0]), atol=1e-6)


def test_derivatives_by_differences():
    loss, kernels, targets = problem(n_outputs=2)
    evidence = _Problem(loss)
    point = evidence.differentiate(evidence.evaluate(np.array([0.4, 0.1, 0.5, 0.2, 0.3])))
    for j, direction in enumerate(evidence._basis.T):
        variances, step = evidence._basis @ point.excess, 1e-5 * direction
        up, down = (deviance(variances + s * step, kernels, targets) for s in (1, -1))
        slope = (up - down) / 2e-5
        assert point.prices[j] - point.gains[j] == pytest.approx(slope, rel=1e-5, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n_outputs=st.sampled_from([1, 3]))
def test_no_other_optimiser_finds_a_better_point(seed, n_outputs):
    loss, kernels, targets = problem(20, 3, n_outputs, seed)
    solution = Evidence().solve(loss, lp_domain(1.0), tol=1e-7)

    def at(logs):
        return deviance(np.exp(logs), kernels, targets)

    # The variances are known up to a factor, which the likelihood determines.
    ours = np.concatenate([[loss.reg], solution.weights])
    scale = optimize.minimize_scalar(
        lambda log: deviance(np.exp(log) * ours + 1e-300, kernels, targets), (-5.0, 5.0)
    )
    starts = [np.log([1.0, s, s, s]) for s in (0.05, 0.5, 5.0)]
    bounds = [(-9, 9)] * 4
    others = [optimize.minimize(at, start, bounds=bounds, method="L-BFGS-B") for start in starts]
    # A ratio of signal to noise of more than 10⁴ is excluded by ours.
    best = [run.fun for run in others if np.exp(run.x[0]) > 1e-4 * np.exp(run.x[1:]).sum()]
    if best:
        assert scale.fun <= min(best) + 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_convex_steps_end_at_the_same_point(seed):
    """Joint learning of λ and weights by Newton, with traces that are computed anew."""
    loss, kernels, targets = problem(seed=seed, noise=1.0, most=6)
    ours = Evidence().solve(loss, lp_domain(1.0), tol=1e-8)
    variances = np.concatenate([[ours.evaluation.weights.sum() * loss.reg], ours.weights])
    joint = JointSquareLoss(loss.kernels, targets)
    for _ in range(400):
        evaluation = joint.evaluate(variances)
        scale = evaluation.value / (len(targets) - 1)
        variances = variances * scale
        inverse = np.linalg.inv(
            variances[0] * np.eye(30)
            + sum(v * K for v, K in zip(variances[1:], kernels, strict=True))
        )
        traces = np.array([np.trace(inverse) - 1 / variances[0]])
        traces = np.append(traces, [np.sum(inverse * K) for K in kernels])
        solution = Newton().solve(joint, TraceSimplex(traces), tol=1e-10)
        step = solution.weights * np.sqrt(solution.certificate.primal)
        if np.abs(step - variances).max() < 1e-9:
            break
        variances = step
    np.testing.assert_allclose(variances[1:] / variances[1:].sum(), ours.weights, atol=1e-4)
    assert variances[0] / variances[1:].sum() == pytest.approx(loss.reg, rel=1e-3)


def test_certificate_is_that_of_a_stationary_point():
    loss, _, _ = problem()
    solution = Evidence().solve(loss, lp_domain(1.0), tol=1e-8)
    assert solution.certificate.converged
    assert "stationary" in str(solution.certificate)
    assert solution.weights.sum() == pytest.approx(1.0)
    gaps = [step.certificate.rel_gap for step in solution.history]
    assert max(gaps) > 1e-3  # the start was not
    scale = 1.0 / loss.reg
    excess = np.concatenate([[1.0 - 1e-4 * scale], solution.weights * scale])
    evidence = _Problem(loss)
    point = evidence.differentiate(evidence.evaluate(excess))
    used = point.excess > 1e-6
    np.testing.assert_allclose(point.gains[used], point.prices[used], rtol=1e-4)
    assert (point.gains[~used] <= point.prices[~used] * (1 + 1e-4)).all()


def test_evidence_never_falls_along_a_search():
    loss, _, _ = problem(40, 8, seed=3)
    evidence = _Problem(loss)
    values = []
    descend = evidence.differentiate

    def differentiate(point):
        values.append(point.value)
        return descend(point)

    evidence.differentiate = differentiate
    evidence.descend(evidence.start(0.1), _Run(1e-6, 100, None))
    assert len(values) > 3
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all()


# -- estimators --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(120, 6, noise=0.5, random_state=0)


def test_a_repeated_row_is_a_row_of_weight_two(friedman):
    X, y = friedman
    twice = np.concatenate([np.arange(120), np.arange(40)])
    counts = np.bincount(twice).astype(float)
    kernels = {"linear": Linear(), "wide": RBF(0.1), "narrow": RBF(1.0)}
    repeated = MKRidge(kernels, p="evidence").fit(X[twice], y[twice])
    weighted = MKRidge(kernels, p="evidence").fit(X, y, sample_weight=counts)
    np.testing.assert_allclose(repeated.weights_, weighted.weights_, atol=1e-5)
    assert repeated.reg_ == pytest.approx(weighted.reg_, rel=1e-4)
    np.testing.assert_allclose(repeated.predict(X), weighted.predict(X), atol=1e-4)


def test_copies_of_all_rows_are_no_evidence_of_noiseless_targets(friedman):
    X, y = friedman
    y = y + np.random.default_rng(0).normal(scale=2.0, size=len(y))
    single, copies = MKRidge(p="evidence"), MKRidge(p="evidence")
    single.fit(X, y)
    assert single.reg_ > 0.01
    copies.fit(np.vstack([X, X]), np.concatenate([y, y]))
    # The noise of a mean of two rows is half of that of a row.
    assert copies.reg_ == pytest.approx(2.0 * single.reg_, rel=1e-3)
    np.testing.assert_allclose(copies.weights_, single.weights_, atol=1e-4)


def test_features_give_the_weights_of_kernels(friedman):
    X, y = friedman
    kernels = {"linear": Linear(), "first": Linear().on([0, 1]), "others": Linear().on([2, 3])}
    exact = MKRidge(kernels, p="evidence").fit(X, y)
    moments = MKRidge(kernels, p="evidence", approximation=ExactFeatures()).fit(X, y)
    np.testing.assert_allclose(moments.weights_, exact.weights_, atol=1e-5)
    assert moments.reg_ == pytest.approx(exact.reg_, rel=1e-4)
    np.testing.assert_allclose(moments.predict(X), exact.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("approximation", [ExactFeatures(), RandomFeatures(300)], ids=repr)
@pytest.mark.parametrize("search", [False, True])
def test_repeated_rows_of_features_count_once(friedman, approximation, search):
    X, y = friedman
    kernels = {"linear": Linear()} if isinstance(approximation, ExactFeatures) else {"wide": RBF()}
    kernels["first"] = (kernels.get("wide") or Linear()).on([0, 1])
    twice = np.repeat(np.arange(120), 1 + np.arange(120) % 3)
    folds = [
        (np.flatnonzero(np.arange(120) % 2 != k), np.flatnonzero(np.arange(120) % 2 == k))
        for k in (0, 1)
    ]
    again = [(np.flatnonzero(twice % 2 != k), np.flatnonzero(twice % 2 == k)) for k in (0, 1)]

    def model(cv):
        options = {"approximation": approximation, "tol": 1e-7}
        if search:
            return MKRidgeCV(kernels, ps=["evidence"], cv=cv, **options)
        return MKRidge(kernels, p="evidence", **options)

    weighted = model(folds).fit(X, y, 1.0 + np.arange(120) % 3)
    repeated = model(again).fit(X[twice], y[twice])
    assert repeated.certificate_.status == "certified"
    assert repeated.reg_ == pytest.approx(weighted.reg_, rel=1e-3)
    np.testing.assert_allclose(repeated.predict(X), weighted.predict(X), rtol=1e-3)
    if search:
        assert repeated.best_score_ == pytest.approx(weighted.best_score_, rel=1e-4)


def test_repeats_among_more_rows_than_the_sample_are_estimated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = X[:, 0] + rng.normal(size=3000)
    kernels = {"one": Linear().on([0]), "others": Linear().on([1, 2])}
    model = MKRidge(kernels, p="evidence", approximation=ExactFeatures())
    reg = clone(model).fit(X, y, np.full(3000, 2.0)).reg_
    copies = model.fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert copies.reg_ == pytest.approx(reg, rel=0.02)


@pytest.mark.filterwarnings("error")
def test_noise_gets_no_signal():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    model = MKRidge({"linear": Linear(), "rbf": RBF()}, p="evidence").fit(X, y)
    assert np.isfinite(model.weights_).all()
    assert np.std(model.predict(X)) < 0.5 * np.std(y)
    assert np.isfinite(MKRidge(p="evidence").fit(X, np.ones(200)).predict(X)).all()


def test_irrelevant_kernels_get_no_weight(friedman):
    X, y = friedman
    rng = np.random.default_rng(0)
    views = {"X": X, **{f"noise{k}": rng.normal(size=(120, 4)) for k in range(3)}}
    model = MKRidge(RBF(), p="evidence").fit(views, y)
    assert model.weights_[0] > 0.9


def test_units_of_targets_do_not_matter(friedman):
    X, y = friedman
    one = MKRidge(p="evidence").fit(X, y)
    other = MKRidge(p="evidence").fit(X, 1000.0 * y - 7.0)
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-6)
    np.testing.assert_allclose(1000.0 * one.predict(X) - 7.0, other.predict(X), rtol=1e-6)


def test_search_tries_it_beside_the_norms(friedman):
    X, y = friedman
    model = MKRidgeCV(ps=[1, "evidence"], regs=[0.1, 1, 10]).fit(X, y)
    assert len(model.cv_results_["params"]) == 4
    assert np.isnan(model.cv_results_["param_p"]).sum() == 1
    assert np.isnan(model.cv_results_["param_reg"]).sum() == 1
    curve = model.validation_curve()
    assert curve.shape == (2, 3)
    assert len(np.unique(curve[1])) == 1
    alone = MKRidgeCV(ps=["evidence"]).fit(X, y)
    assert np.isnan(alone.p_)
    assert alone.best_score_ == pytest.approx(curve[1, 0])
    plain = MKRidge(kernels_for(X, relevance=True), p="evidence", tol=1e-5).fit(X, y)
    np.testing.assert_allclose(alone.predict(X), plain.predict(X))
    assert alone.reg_ == plain.reg_
    np.testing.assert_allclose(alone.left_out_score_, alone.best_score_, atol=0.1)


def test_folds_learn_the_weights_without_their_test_rows(friedman):
    X, y = friedman
    K = np.array([np.exp(-((X[:, None] - X) ** 2).sum(-1) / w) for w in (1.0, 3.0)])
    search = MKRidgeCV("precomputed", ps=["evidence"]).fit(KernelStack.from_arrays(K), y)
    test = search.test_fold_ == 0
    part = KernelStack.from_arrays(K[:, ~test][:, :, ~test])
    alone = MKRidge("precomputed", p="evidence", tol=1e-5).fit(part, y[~test])
    block = KernelStack.from_arrays(K[:, test][:, :, ~test])
    np.testing.assert_allclose(search.left_out_predictions_[test], alone.predict(block), rtol=1e-5)


def test_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = MKFDA(p="evidence").fit(X, names)
    assert model.certificate_.converged
    assert model.score(X, names) > 0.95
    search = MKFDACV(ps=[1, 2, "evidence"]).fit(X, names)
    assert np.isnan(search.cv_results_["param_p"]).sum() == 1
    assert len(search.cv_results_["params"]) == 17
    only = MKFDACV(ps=["evidence"]).fit(X, names)
    assert only.best_score_ > 0.93
    np.testing.assert_allclose(only.predict_proba(X).sum(axis=1), 1.0)


def test_several_targets_and_labels(friedman):
    X, y = friedman
    Y = np.column_stack([y, X[:, 5] + 0.1 * y])
    shared = MKRidge(p="evidence").fit(X, Y)
    assert shared.weights_.ndim == 1
    separate = MKRidge(p="evidence", multi_target="separate").fit(X, Y)
    assert separate.reg_.shape == (2,)
    alone = MKRidge(p="evidence").fit(X, Y[:, 1])
    np.testing.assert_allclose(separate.weights_[1], alone.weights_, atol=1e-6)
    search = MKRidgeCV(ps=[2, "evidence"], regs=[0.1, 1], multi_target="separate").fit(X, Y)
    assert search.p_.shape == search.reg_.shape == (2,)
    labels = (np.median(Y, axis=0) < Y).astype(int)
    assert MKFDACV(ps=[2, "evidence"], regs=[0.1]).fit(X, labels).predict(X).shape == (120, 2)


def test_views_that_are_missing(friedman):
    X, y = friedman
    views = {"a": X[:, :3].copy(), "b": X[:, 3:].copy()}
    views["b"][:30] = np.nan
    model = MKRidge(p="evidence", missing="mean").fit(views, y)
    assert model.certificate_.converged
    assert model.score(views, y) > 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MKRidge(p="evidence", solver="sip"), 'does not go with p="evidence"'),
        (lambda: MKRidge(p="evidnce"), "'p' parameter of MKRidge must be"),
        (lambda: MKRidgeCV(ps=[1, "evidnce"]), 'and "evidence"; got'),
        (lambda: MKRidgeCV(ps=["evidence", "evidence"]), 'and "evidence"; got'),
        (lambda: MKRidgeCV(ps=["evidence"], cv="closed-form"), 'not go with cv="closed-form"'),
    ],
)
def test_errors(make, message, friedman):
    with pytest.raises(ValueError, match=message):
        make().fit(*friedman)


def test_machines_have_no_evidence():
    X, y = load_iris(return_X_y=True)
    for model in (MKSVC(p="evidence"), ConvexLocalizedSVC(p="evidence")):
        with pytest.raises(ValueError, match="'p' parameter"):
            model.fit(X, y)


def test_closed_form_leaves_it_out_by_default(friedman):
    model = MKRidgeCV(cv="closed-form").fit(*friedman)
    assert not np.isnan(model.cv_results_["param_p"]).any()


def test_too_few_steps_are_told(friedman):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        MKRidge(p="evidence", max_iter=2, tol=1e-9).fit(*friedman)


def test_files_display_importance_and_report(friedman, tmp_path):
    X, y = friedman
    views = {"a": X[:, :3], "b": X[:, 3:]}
    model = MKRidgeCV(ps=[2, "evidence"], regs=[0.1, 1.0]).fit(views, y)
    only = MKRidgeCV(ps=["evidence"]).fit(views, y)
    for fitted in (model, only):
        save(fitted, tmp_path / "model.skops")
        again = load(tmp_path / "model.skops")
        np.testing.assert_array_equal(again.predict(views), fitted.predict(views))
        display = ValidationDisplay.from_estimator(fitted)
        assert display.line_names[-1] == "evidence"
        report(fitted, views, y).save(tmp_path / "report.html")
    importance = view_importance(clone(only), views, y)
    assert set(importance.to_frame().index) == {"a", "b"}
    plain = view_importance(MKRidge(p="evidence"), views, y)
    assert len(plain.to_frame()) == 2


def test_diabetes_in_two_lines():
    X, y = load_diabetes(return_X_y=True)
    model = MKRidge(p="evidence").fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.45


@pytest.mark.parametrize("seed", [15, 16])
def test_kernels_that_are_the_identity_are_noise(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
    kernels = [RBF(gamma=gamma) for gamma in (1e-2, 0.05, 1e3, 1e4)]
    model = MKRidge(kernels, p="evidence").fit(X, y)
    assert model.certificate_.converged
