"""CGBoost: the program of all columns, its certificate, laws, what is told."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from manykernels import KernelStack
from manykernels.baselines import CGBoost
from manykernels.kernels import RBF, Linear
from manykernels.kernels.composition import Constant
from manykernels.solvers.programs import LinearProgram, LinearSolution
from tests.estimators.registry import Recorder
from tests.problems import slow

N = 30
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
NEW = rng.normal(size=(12, 3))
Y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=N), [-0.4, 0.4])
TWO = (X[:, 0] + 0.6 * rng.normal(size=N) > 0.2).astype(int)
KERNELS = [("narrow", RBF(4.0)), ("wide", RBF(0.2)), ("flat", Linear())]
PENALTIES = [0.02, 0.3, 10.0, 1e4]
every_penalty = pytest.mark.parametrize("C", PENALTIES)


def matrices(rows, cols=X):
    squares = np.sum((rows[:, None] - cols) ** 2, axis=2)
    return np.array([np.exp(-4.0 * squares), np.exp(-0.2 * squares), rows @ cols.T])


TRAIN, TEST = matrices(X), matrices(NEW)


def fit(y=TWO, C=1.0, train=TRAIN, sample_weight=None, **params):
    model = CGBoost("precomputed", **{"normalize": None, "tol": 1e-9, "C": C, **params})
    return model.fit(KernelStack.from_arrays(train), y, sample_weight=sample_weight)


def decide(model, test=TEST):
    return model.decision_function(np.moveaxis(test, 0, -1))


def all_columns(y, C, sample_weight):
    """Minimum over all columns of all kernels, as it is printed."""
    columns, signs = np.hstack(TRAIN), np.where(y, 1.0, -1.0)
    alpha, b = cp.Variable(columns.shape[1]), cp.Variable()
    losses = cp.pos(1 - cp.multiply(signs, columns @ alpha + b))
    problem = cp.Problem(cp.Minimize(cp.norm1(alpha) + C * sample_weight @ losses))
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    value = problem.solve(solver=cp.CLARABEL, **tight)
    return value, np.hstack(TEST) @ alpha.value + b.value


# -- known answers ---------------------------------------------------------------------------


@every_penalty
@pytest.mark.parametrize("weighted", [False, *slow(True)])
def test_it_is_the_best_machine_of_all_columns(C, weighted):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else np.ones(N)
    model = fit(C=C, sample_weight=weights)
    expected, decisions = all_columns(TWO, C, weights)
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-8)
    assert model.certificate_.converged
    assert_allclose(decide(model), decisions, atol=1e-5)


@every_penalty
def test_anyone_can_recompute_the_certificate(C):
    model = fit(C=C)
    v = model.certificate_.dual_point[:, 0]
    signs = np.where(TWO, 1.0, -1.0)
    assert (signs * v >= 0).all()
    assert np.abs(v).max() <= C
    assert v.sum() == pytest.approx(0.0, abs=1e-12 * C)
    assert np.abs(TRAIN @ v).max() <= 1 + 1e-12 * C
    assert model.certificate_.dual == pytest.approx(np.abs(v).sum())
    losses = np.maximum(0.0, 1.0 - signs * decide(model, TRAIN))
    objective = model.weights_.sum() + C * losses.sum()
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("C", [*slow(10.0), 1e3])
def test_columns_may_come_back_with_the_other_sign(C):
    """As they do if labels are random and many columns are needed."""
    labels = np.random.default_rng(0).permutation(np.arange(N) % 2)
    model = fit(labels, C=C)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(all_columns(labels, C, np.ones(N))[0])


@pytest.mark.parametrize("kernels", [KERNELS[1:], KERNELS[2:]], ids=["both", "flat"])
def test_large_penalties_are_hard_margins(kernels):
    """The classes can be told apart: what is left to be minimised are the coefficients."""
    y = X @ [1.0, 2.0, 3.0] > 0
    models = [CGBoost(kernels, C=C).fit(X, y) for C in (1e3, 1e5, 1e8)]
    for model in models:
        assert model.certificate_.converged
        assert (np.where(y, 1, -1) * model.decision_function(X)).min() >= 1 - 1e-6
        assert model.certificate_.primal == pytest.approx(models[0].weights_.sum(), rel=1e-6)


def test_what_rounding_hides_is_told():
    y = X @ [1.0, 2.0, 3.0] > 0
    with pytest.warns(ConvergenceWarning, match=r"CGBoost is limited by rounding.* centre"):
        model = CGBoost([KERNELS[2]], C=1e3).fit(X + 1e5, y)
    assert model.certificate_.rel_rounding > model.tol
    assert model.score(X + 1e5, y) > 0.9


def test_outputs_are_sums_over_columns():
    model = fit(Y)
    assert model.weights_.shape == (3, 3)
    assert model.dual_coef_.shape == (3, 3, len(model.support_))
    by_hand = model.intercept_ + np.einsum(
        "kj,jri,jki->rk", model.weights_, TEST[:, :, model.support_], model.dual_coef_
    )
    assert_allclose(decide(model), by_hand, atol=1e-12)
    sizes = np.abs(model.dual_coef_).sum(axis=2).T
    assert_allclose(sizes[model.weights_ > 0], 1.0)
    assert_array_equal(sizes[model.weights_ == 0], 0.0)


def test_classes_are_learnt_one_against_the_rest():
    model = fit(Y)
    for k in range(3):
        alone = fit((k == Y).astype(int))
        assert_allclose(decide(model)[:, k], decide(alone), atol=1e-9)
        assert_allclose(model.weights_[k], alone.weights_, atol=1e-9)
    assert_array_equal(np.unique(model.history_["machine"]), [0, 1, 2])


def test_it_looks_at_few_columns():
    model = fit(C=10.0)
    assert len(model.support_) < N / 2
    assert model.n_iter_ == model.n_inner_solves_ < N
    objective = np.array(model.history_["objective"])
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()
    assert model.history_["rel_gap"][-1] == model.certificate_.rel_gap


def test_a_small_penalty_leaves_the_middle_of_the_classes():
    balanced = np.arange(N) % 2
    model = fit(balanced, C=1e-4)
    assert not model.weights_.any()
    assert len(model.support_) == 0
    assert_array_equal(decide(model), 0.0)
    rare = (np.arange(N) < 5).astype(int)
    assert_array_equal(decide(fit(rare, C=1e-4)), -1.0)


# -- laws ------------------------------------------------------------------------------------


@every_penalty
def test_permuted_kernels_permute_the_weights(C):
    order = np.array([2, 0, 1])
    model, permuted = fit(C=C), fit(C=C, train=TRAIN[order])
    assert_allclose(permuted.weights_, model.weights_[order], atol=1e-7)
    assert_allclose(decide(permuted, TEST[order]), decide(model), atol=1e-7)


@every_penalty
def test_swapped_classes_turn_the_decision_round(C):
    assert_allclose(decide(fit(1 - TWO, C=C)), -decide(fit(C=C)), atol=1e-7)


@every_penalty
def test_a_weight_of_two_is_two_samples(C):
    counts = np.random.default_rng(2).integers(0, 4, N)
    rows = np.repeat(np.arange(N), counts)
    weighted = fit(C=C, sample_weight=counts)
    repeated = fit(TWO[rows], C, TRAIN[:, rows][:, :, rows])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-9)
    assert_allclose(decide(weighted), decide(repeated, TEST[:, :, rows]), atol=1e-7)


@every_penalty
def test_a_constant_in_a_kernel_changes_nothing(C):
    shifts = np.array([0.0, 50.0, 7.0])[:, None, None]
    model, moved = fit(C=C), fit(C=C, train=TRAIN + shifts)
    assert_allclose(moved.weights_, model.weights_, atol=1e-7)
    assert_allclose(decide(moved, TEST + shifts), decide(model), atol=1e-7)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("normalize", ["multiplicative", None])
def test_a_constant_kernel_gets_no_weight(normalize):
    options = {"normalize": normalize, "C": 3.0}
    model = CGBoost(KERNELS, **options).fit(X, TWO)
    padded = CGBoost([("one", Constant(2.0)), *KERNELS], **options).fit(X, TWO)
    assert padded.weights_[0] == 0.0
    assert_allclose(padded.weights_[1:], model.weights_, atol=1e-7)
    assert_allclose(padded.decision_function(NEW), model.decision_function(NEW), atol=1e-7)


def test_a_kernel_twice_is_this_kernel():
    model = fit(C=3.0)
    twice = fit(C=3.0, train=TRAIN[[0, 1, 2, 1]])
    together = twice.weights_[:3] + twice.weights_[3] * np.eye(3)[1]
    assert_allclose(together, model.weights_, atol=1e-7)
    assert_allclose(decide(twice, TEST[[0, 1, 2, 1]]), decide(model), atol=1e-7)


def test_normalised_kernels_have_no_scale():
    scales = np.array([1e-3, 1.0, 1e4])[:, None, None]
    model = fit(C=3.0, normalize="multiplicative")
    scaled = fit(C=3.0, normalize="multiplicative", train=scales * TRAIN)
    assert_allclose(scaled.weights_, model.weights_, atol=1e-7)
    assert_allclose(decide(scaled, scales * TEST), decide(model), atol=1e-7)


# -- what is told ----------------------------------------------------------------------------


def test_too_few_iterations_are_reported():
    message = r"CGBoost is stopped. The relative gap is .* max_iter=2 was reached: raise max_iter"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = fit(C=10.0, max_iter=2)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 3
    best, gap = fit(C=10.0).certificate_.primal, model.certificate_.gap
    assert best <= model.certificate_.primal <= best + gap


def test_a_callback_can_stop_it():
    model = CGBoost(KERNELS, C=10.0).set_callbacks(Recorder(stop_after=2))
    with pytest.warns(ConvergenceWarning, match="CGBoost is stopped.* A callback asked to stop"):
        model.fit(X, TWO)
    assert model.n_iter_ == 2
    assert np.isfinite(model.decision_function(NEW)).all()


def test_an_unsolved_program_is_reported(monkeypatch):
    def fails(self):
        return LinearSolution(np.zeros(1 + N), np.zeros(N), "Time limit reached")

    monkeypatch.setattr(LinearProgram, "solve", fails)
    message = "A linear program ended as Time limit reached: lower C."
    with pytest.warns(ConvergenceWarning, match=message):
        model = fit()
    assert not model.weights_.any()
    assert model.certificate_.dual == 0.0


def test_verbose_prints_a_line_per_iteration(capsys):
    model = CGBoost(KERNELS, verbose=True).fit(X, TWO)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert all(line.startswith("[CGBoost] iteration") for line in lines)
