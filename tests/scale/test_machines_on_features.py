"""MKSVC on explicit features: the same as on kernel matrices, from any container, in passes."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKSVC, Nystrom
from manykernels.domains import lp_domain
from manykernels.kernels import RBF, Linear
from manykernels.kernels.composition import Constant
from manykernels.scale import hinge
from manykernels.scale.hinge import STEPS, HingeSums, Machines
from manykernels.solvers.newton import MANY_KERNELS
from tests.estimators.registry import Recorder
from tests.problems import scikit_learn_checks, slow

M = 90
KERNELS = [
    ("wide", RBF(0.1)),
    ("flat", Linear()),
    ("noise", RBF(1.0).on([4, 5])),
    ("narrow", RBF(2.0).on([0, 1])),
]
# No more rows than the default number of landmarks: all of them.
EVERY_ROW = Nystrom()


def samples(n_classes=2, m=M, seed=0):
    return make_classification(
        m,
        6,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.7,
        random_state=seed,
    )


X2, Y2 = samples()
X3, Y3 = samples(3)
WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, M)


def machine(approximation=EVERY_ROW, kernels=KERNELS, **params):
    params = {"tol": 1e-9, **params}
    return MKSVC(kernels, loss="squared_hinge", approximation=approximation, **params)


def assert_same(model, other, X, *, weights=1e-5, decisions=1e-5):
    assert_allclose(model.weights_, other.weights_, atol=weights)
    assert_allclose(model.decision_function(X), other.decision_function(X), atol=decisions)


def counted(X):
    """An array of dask, and a list that grows whenever its first chunk is read."""
    calls = []

    def noted(block, block_info):
        if block_info[0]["chunk-location"][0] == 0:
            calls.append(None)
        return block

    rows = da.from_array(X, chunks=(40, -1))
    return rows.map_blocks(noted, dtype=float, meta=np.empty((0, 0))), calls


# -- the same as on kernel matrices ----------------------------------------------------------


@pytest.mark.parametrize("p", [1, *slow(1.5, 2, np.inf)])
@pytest.mark.parametrize("C", [0.1, *slow(10.0)])
def test_with_all_rows_as_landmarks_it_is_the_exact_machine(p, C):
    model = machine(p=p, C=C, tol=1e-11).fit(X2, Y2)
    exact = machine(None, p=p, C=C, tol=1e-11).fit(X2, Y2)
    assert_same(model, exact, X2)
    assert_allclose(model.certificate_.primal, exact.certificate_.primal, rtol=2e-11)
    assert model.certificate_.converged
    assert model.C_ == C


@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical", "trace", None)])
def test_normalisations_are_those_of_kernel_matrices(normalize):
    C = M if normalize == "trace" else 1.0
    model, exact = (
        machine(approximation, normalize=normalize, C=C, tol=1e-11).fit(X2, Y2, WEIGHT)
        for approximation in (EVERY_ROW, None)
    )
    assert_same(model, exact, X2)


@pytest.mark.parametrize("multi_class", ["shared", *slow("separate")])
@pytest.mark.parametrize("p", [1.5, *slow(1, np.inf)])
def test_several_classes(multi_class, p):
    # On kernel matrices the last digits are not reached at p = 1.
    tol = 1e-9 if p == 1 else 1e-11
    options = {"multi_class": multi_class, "p": p, "class_weight": {0: 1, 1: 3, 2: 0.5}}
    model, exact = (
        machine(approximation, tol=tol, **options).fit(X3, Y3, WEIGHT)
        for approximation in (EVERY_ROW, None)
    )
    assert model.weights_.shape == exact.weights_.shape
    assert_same(model, exact, X3)
    assert_allclose(model.certificate_.primal, exact.certificate_.primal, rtol=2 * tol)
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.coef_.shape[1] == len(model.intercept_) == 3


def test_a_weight_of_two_is_two_rows_and_a_weight_of_zero_is_none():
    weight = np.where(np.arange(M) % 3 == 0, 2.0, 1.0)
    weight[::7] = 0.0
    rows = np.repeat(np.arange(M), weight.astype(int))
    weighted, repeated = machine().fit(X2, Y2, weight), machine().fit(X2[rows], Y2[rows])
    assert_same(weighted, repeated, X2)


def test_balanced_classes_are_factors_of_the_penalty():
    masses = np.bincount(Y3, WEIGHT)
    factors = dict(enumerate(masses.sum() / (3 * masses)))
    balanced = machine(class_weight="balanced").fit(X3, Y3, WEIGHT)
    given = machine(class_weight=factors).fit(X3, Y3, WEIGHT)
    assert_same(balanced, given, X3, weights=1e-9, decisions=1e-9)


def test_a_constant_kernel_is_named_and_has_nothing_to_say():
    kernels = [*KERNELS[:2], ("same", Constant())]
    with pytest.warns(UserWarning, match="constant on training samples: 'same'"):
        model = machine(kernels=kernels, p=1).fit(X2, Y2)
    without = machine(kernels=kernels[:2], p=1).fit(X2, Y2)
    assert_allclose(model.weights_, [*without.weights_, 0.0], atol=1e-6)
    assert_allclose(model.decision_function(X2), without.decision_function(X2), atol=1e-6)


# -- against the formulas --------------------------------------------------------------------


def features_of(model, X):
    """Features of the kernels, centred and normalised, and the kernel of each."""
    predictor = model._predictor
    return predictor.scaling(predictor.features(X)), predictor.features.kernel_of


def test_one_kernel_is_a_linear_machine_on_the_features():
    model = machine(Nystrom(n_landmarks=15), RBF(0.3), C=3.0, tol=1e-11).fit(X2, Y2, WEIGHT)
    Z, _ = features_of(model, X2)
    columns, y = np.column_stack([Z, np.ones(M)]), 2.0 * Y2 - 1.0

    def objective(v):
        slacks = np.maximum(0.0, 1.0 - y * (columns @ v))
        value = 0.5 * v[:-1] @ v[:-1] + 1.5 * WEIGHT @ slacks**2
        return value, np.append(v[:-1], 0.0) - 3.0 * columns.T @ (WEIGHT * y * slacks)

    start = np.zeros(columns.shape[1])
    found = minimize(objective, start, jac=True, options={"gtol": 1e-9, "maxiter": 5000})
    assert_allclose(model.certificate_.primal, found.fun, rtol=1e-10)
    assert_allclose(model.decision_function(X2), columns @ found.x, atol=1e-6)
    assert_allclose(model.decision_function(X2), Z @ model.coef_[:, 0] + model.intercept_)


@pytest.mark.parametrize("tol", [0.2, *slow(1e-3, 1e-9)])
@pytest.mark.parametrize("p", [1, *slow(2)])
def test_the_certificate_can_be_computed_again_from_the_features(tol, p):
    """Before the last step, too, where totals of dual variables differ between the sides."""
    class_weight = np.array([0.5, 2.0, 1.0])
    model = machine(
        Nystrom(n_landmarks=20), p=p, tol=tol, C=2.0, class_weight=dict(enumerate(class_weight))
    ).fit(X3, Y3, WEIGHT)
    Z, kernel_of = features_of(model, X3)
    C = 2.0 * (WEIGHT * class_weight[Y3])[:, None]
    signs = np.where(Y3[:, None] == np.arange(3), 1.0, -1.0)

    def errors(w, b):
        return np.maximum(0.0, 1.0 - signs * (Z @ w + b))

    def by_kernel(squares):
        return np.bincount(kernel_of, squares.sum(axis=1))

    primal = 0.5 * np.sum(C * errors(model.coef_, model.intercept_) ** 2)
    norms, positive = by_kernel(model.coef_**2), model.weights_ > 0
    assert np.all(norms[~positive] == 0)
    primal += 0.5 * np.sum(norms[positive] / model.weights_[positive])
    assert_allclose(model.certificate_.primal, primal, rtol=1e-12)

    dual_point = model.certificate_.dual_point
    alpha = C * errors(dual_point[:-1], dual_point[-1])
    above, below = ((alpha * (signs == side)).sum(axis=0) for side in (1, -1))
    alpha *= np.where(signs > 0, np.sqrt(below / above), np.sqrt(above / below))
    assert_allclose((signs * alpha).sum(axis=0), 0.0, atol=1e-9 * alpha.sum())
    gains = 0.5 * by_kernel((Z.T @ (signs * alpha)) ** 2)
    quadratic = 0.5 * np.sum(alpha**2 / C) + lp_domain(p).support(gains)
    assert_allclose(model.certificate_.dual, alpha.sum() ** 2 / (4 * quadratic), rtol=1e-12)
    assert model.certificate_.rel_gap <= tol


def test_the_bound_holds_however_early_the_machine_is():
    exact = machine(None, C=5.0).fit(X3, Y3)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 was reached"):
        model = machine(C=5.0, max_iter=1).fit(X3, Y3)
    assert model.certificate_.dual <= exact.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.primal >= exact.certificate_.dual * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_so_many_kernels_that_they_are_solved_on_active_sets(n_classes):
    X, y = samples(n_classes)
    many = [(f"kernel{k}", RBF(0.05 * (k + 1)).on([k % 6])) for k in range(MANY_KERNELS)]
    model = machine(Nystrom(n_landmarks=3), many, p=1, tol=1e-7).fit(X, y)
    assert model.certificate_.converged
    chosen = [many[k] for k in np.flatnonzero(model.weights_)]
    assert len(chosen) < 20
    few = machine(Nystrom(n_landmarks=3), chosen, p=1, tol=1e-7).fit(X, y)
    assert_allclose(model.certificate_.primal, few.certificate_.primal, rtol=2e-7)


# -- passes ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_how_rows_are_cut_changes_nothing(multi_class):
    few = {"n_landmarks": 20}
    whole = machine(Nystrom(**few), multi_class=multi_class).fit(X3, Y3)
    cut = machine(Nystrom(**few, block_size=7), multi_class=multi_class).fit(X3, Y3)
    chunks = da.from_array(X3, chunks=(17, 6)), da.from_array(Y3, chunks=17)
    chunked = machine(Nystrom(**few), multi_class=multi_class).fit(*chunks)
    for model in (cut, chunked):
        assert_same(model, whole, X3, weights=1e-9, decisions=1e-9)
        assert_allclose(model.history_["objective"], whole.history_["objective"], rtol=1e-9)
    decisions = chunked.decision_function(chunks[0]).compute()
    assert_allclose(decisions, whole.decision_function(X3), atol=1e-9)


def test_the_order_of_rows_changes_nothing():
    order = np.random.default_rng(0).permutation(M)
    model, turned = (
        machine().fit(X3, Y3, WEIGHT),
        machine().fit(X3[order], Y3[order], WEIGHT[order]),
    )
    assert_same(turned, model, X3)


@pytest.mark.parametrize("multi_class", ["shared", *slow("separate")])
@pytest.mark.parametrize("C", [0.5, *slow(1e5)])
def test_passes_are_counted_and_the_objective_never_rises(C, multi_class):
    rows, calls = counted(X3)
    model = machine(Nystrom(n_landmarks=20), C=C, multi_class=multi_class, tol=1e-6).fit(rows, Y3)
    history = model.history_
    assert len(calls) == max(history["n_passes"])
    assert model.certificate_.converged
    assert model.n_iter_ == len(history["objective"]) == len(history["n_passes"])
    for k in range(3 if multi_class == "separate" else 1):
        own = np.array(history.get("machine", [0] * model.n_iter_)) == k
        assert np.all(np.diff(np.array(history["objective"])[own]) <= 0)
        assert np.all(np.diff(np.array(history["n_passes"])[own]) > 0)
    assert model.n_inner_solves_ == history["n_inner_solves"][-1]


def test_a_step_too_long_is_shortened(monkeypatch):
    """At a large C, without the smaller ones before it, Newton's steps overshoot."""
    monkeypatch.setattr(hinge, "_EASY", np.inf)
    steps, best_step = [], hinge.Descent._best_step

    def noted(*points):
        steps.append(best_step(*points))
        return steps[-1]

    monkeypatch.setattr(hinge.Descent, "_best_step", noted)
    model = machine(C=1e3, tol=1e-6, max_iter=200).fit(X2, Y2)
    assert any(0 < step < 1 for step in steps)
    assert np.all(np.diff(model.history_["objective"]) < 0)
    assert model.certificate_.converged


def test_sums_of_a_pass_are_those_of_the_formulas():
    rng = np.random.default_rng(0)
    D, K, n = 4, 3, 25
    Z, labels, weights = rng.normal(size=(n, D)), rng.integers(0, 3, n), rng.uniform(size=n)
    weights[3] = 0.0
    signs = np.where(np.eye(3) > 0, 1.0, -1.0)
    proof, *ends = rng.normal(size=(3, D + 1, K))
    machines = Machines(signs, ends[1], proof, ends[0])
    columns = np.vstack([Z.T, np.ones(n), np.zeros(n)])
    whole, parts = HingeSums.none(machines), [HingeSums.none(machines) for _ in range(2)]
    whole.add(machines, columns.copy(), labels, weights)
    for part, rows in zip(parts, (slice(0, 11), slice(11, n)), strict=True):
        part.add(machines, columns[:, rows].copy(), labels[rows], weights[rows])
    added = parts[0] + parts[1]

    def slacks(coefficients):
        outputs = Z @ coefficients[:-1] + coefficients[-1]
        return np.maximum(0.0, 1.0 - signs[labels] * outputs)

    for sums in (whole, added):
        for step, loss in zip(STEPS, sums.losses, strict=True):
            between = slacks(ends[0] + step * (ends[1] - ends[0]))
            assert_allclose(loss, np.sum(weights[:, None] * between**2))
        s = slacks(proof)
        for side, sign in enumerate((-1, 1)):
            own = np.where(signs[labels] == sign, s, 0.0) * weights[:, None]
            assert_allclose(sums.totals[side], own.sum(axis=0))
            assert_allclose(sums.squares[side], (own * s).sum(axis=0))
            assert_allclose(sums.images[side], sign * Z.T @ own, atol=1e-12)
        s = slacks(ends[1])
        for k, moments in enumerate(sums.moments):
            a = np.column_stack([Z, np.ones(n), signs[labels, k]])[s[:, k] > 0]
            w = weights[s[:, k] > 0]
            assert_allclose(np.triu(moments.matrix), np.triu((a.T * w) @ a), atol=1e-12)
            assert moments.n_rows == np.count_nonzero(w)


def test_without_active_rows_the_next_machine_is_zero():
    machines = Machines(np.array([[-1.0], [1.0]]), np.array([[9.0], [0.0]]))
    sums = HingeSums.none(machines)
    columns = np.array([[-1.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    sums.add(machines, columns, np.array([0, 1]), np.ones(2))
    problem = hinge.HingeProblem(1.0, machines.signs, np.array([0]), np.ones(1), np.ones(1))
    w = machines.coefficients
    point = hinge.HingePoint(problem, np.ones(1), w, w, sums)
    assert point.value == 0.5 * 81 == point.slack
    assert point.dual_point.lower_bound(lp_domain(1).support) == 0.0
    loss, means, targets = problem.square_loss(sums.moments)
    assert loss.evaluate(np.ones(1)).value == 0.0 == means == targets


def test_a_callback_may_stop_it():
    recorder = Recorder(stop_after=2)
    model = machine(Nystrom(n_landmarks=20), C=10.0).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match="A callback asked for it"):
        model.fit(X2, Y2)
    assert model.n_iter_ == len(recorder.parts_of(recorder.begun[0])) == 2
    assert model.certificate_.rel_gap > 1e-9


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hinge"}, r"loss='hinge' does not go .* Pass loss='squared_hinge', or approx"),
        ({"C": "joint"}, r'C="joint" does not go with approximation=Nystrom.*Pass a number'),
        ({"solver": "sip"}, r"solver='sip' does not go .* Pass solver='newton'"),
        ({"missing": "mean"}, r"missing='mean' does not go .*lack a view have no features"),
        ({"kernels": "precomputed"}, r'kernels="precomputed" has none'),
        ({"class_weight": {0: 1.0, 1: 0.0}}, "class_weight must be positive"),
    ],
)
def test_what_features_do_not_allow_is_refused(params, message):
    model = machine(Nystrom()).set_params(**params)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X2, Y2)
    assert vars(model) == before


def test_there_is_no_partial_fit():
    assert not hasattr(machine(Nystrom()), "partial_fit")


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least 2 classes"):
        machine(Nystrom()).fit(X2, np.zeros(M))


def test_a_penalty_beyond_all_digits_is_refused():
    with pytest.raises(ValueError, match=r"C=1e\+30 is so large .* lower C"):
        machine(kernels=[("one", Linear()), ("same", Linear())], C=1e30).fit(X2, Y2)


def test_moments_that_do_not_fit_into_memory_are_refused(monkeypatch):
    D = 4 * 20 + 4
    monkeypatch.setattr("manykernels.utils.numerics.available_memory", lambda: 6 * 8 * D**2)
    with pytest.raises(MemoryError, match=r"4 kernels have \d+ features\. Use fewer"):
        machine(Nystrom(n_landmarks=20)).fit(X3, Y3)


def test_auto_approximates_many_rows_only(monkeypatch):
    exact = machine("auto").fit(X2, Y2)
    assert hasattr(exact, "support_")
    monkeypatch.setattr("manykernels.estimators.feature_data.AUTO_ROWS", M - 1)
    with pytest.warns(UserWarning, match="approximates the kernels by Nystrom"):
        model = machine("auto").fit(X2, Y2)
    assert not hasattr(model, "support_")
    assert_same(model, exact, X2)


def test_what_is_kept_is_what_features_have():
    model = machine(Nystrom(n_landmarks=20)).fit(X2, Y2)
    D = sum(model._predictor.features.sizes)
    assert model.coef_.shape == (D, 1)
    assert model.certificate_.dual_point.shape == (D + 1, 1)
    assert model.approximation_errors_.shape == (4,)
    assert len(model.landmarks_) == 20
    assert model.kernel_names_ == [name for name, _ in KERNELS]
    assert model.solver_ == "newton"
    refitted = model.set_params(approximation=None).fit(X2, Y2)
    assert not hasattr(refitted, "coef_")


@pytest.mark.slow
def test_scikit_learn_has_nothing_to_say():
    broken, n_passed = scikit_learn_checks(machine(Nystrom(), None, tol=1e-4))
    assert broken == []
    assert n_passed > 50
