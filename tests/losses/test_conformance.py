"""Laws that every loss keeps; a new loss joins by one line in LOSSES."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.losses.composed import SummedLoss
from manykernels.losses.cox import Cox
from manykernels.losses.features import FeatureLoss
from manykernels.losses.kim import KimLoss
from manykernels.losses.smooth import Logistic, Multinomial, Poisson
from manykernels.losses.smooth_loss import SmoothLoss
from manykernels.losses.square import JointSquareLoss, SquareLoss
from manykernels.losses.svm import (
    BoxLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    JointSquaredHingeLoss,
    MulticlassHingeLoss,
    OneClassLoss,
    SquaredHingeLoss,
)
from manykernels.solvers.base import certify
from tests.differences import assert_derivatives, derivative
from tests.problems import feature_loss, labels_for, slow, some_slow, square_loss

M = 24
few = settings(max_examples=12, deadline=None)
seeds = st.integers(0, 10**6)


def gram_matrices(seed=0, m=M):
    """Gaussians of three widths, of different size: full rank, so that machines are unique."""
    X = np.random.default_rng(seed).normal(size=(m, 3))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.array([s * np.exp(-g * squares) for s, g in ((1.0, 2.0), (0.5, 0.5), (2.0, 0.1))])


def stack_of(matrices):
    return KernelStack.from_arrays(matrices)


def centred(matrices, n_classes, weight, seed):
    return square_loss(matrices, n_classes, 0.3, seed, weight, normalize=None)


def on_features(matrices, n_classes, weight, seed):
    return feature_loss(centred(matrices, n_classes, weight, seed))


def summed(matrices, weight, seed):
    """Two outputs, each with sums of its own."""
    other = 1.0 + np.arange(matrices.shape[1]) % 3
    parts = [(weight, seed), (other, seed + 1)]
    return SummedLoss([on_features(matrices, 2, own, s) for own, s in parts])


def joint_square(matrices, weight, seed):
    plain = centred(matrices, 3, weight, seed)
    return JointSquareLoss(plain.kernels, plain.targets, 0.5, weight)


def signs_for(m, seed, n_outputs=1):
    """One column for two classes, or one per class against the others."""
    if n_outputs == 1:
        return np.where(labels_for(m, 3, seed) == 0, 1.0, -1.0)
    return np.where(labels_for(m, n_outputs, seed)[:, None] == np.arange(n_outputs), 1.0, -1.0)


def times(C, weight):
    return C if weight is None else C * weight


@dataclass(frozen=True)
class Case:
    """How to make a loss of kernels, sample weights and a seed, and what its outline says."""

    kind: type
    make: object
    n_outputs: int = 1
    learns_reg: bool = False

    def __call__(self, matrices, weighted=False, seed=0, **options):
        m = matrices.shape[1]
        weight = np.random.default_rng(1).uniform(0.3, 3.0, m) if weighted else None
        return self.make(matrices, weight, seed, **options)


def svm(kind, n_outputs=1, C=2.0):
    def make(matrices, weight, seed, inner_tol=1e-12):
        signs = signs_for(matrices.shape[1], seed, n_outputs)
        return kind(stack_of(matrices), signs, times(C, weight), inner_tol)

    return Case(kind, make, n_outputs)


def joint_hinge(matrices, weight, seed, inner_tol=1e-12):
    signs = signs_for(matrices.shape[1], seed)
    return JointSquaredHingeLoss(stack_of(matrices), signs, 0.5, weight, inner_tol)


def tube(matrices, weight, seed, inner_tol=1e-12):
    targets = np.random.default_rng(seed).normal(size=matrices.shape[1])
    return EpsilonInsensitiveLoss(stack_of(matrices), targets, times(2.0, weight), 0.2, inner_tol)


def one_class(matrices, weight, seed, inner_tol=1e-12):
    return OneClassLoss(stack_of(matrices), 0.33, weight, inner_tol)


def kim(matrices, weight, seed):
    labels = (labels_for(matrices.shape[1], 3, seed) == 0).astype(int)
    return KimLoss(stack_of(matrices), labels, 0.3, weight)


def logistic(m, weight, seed):
    return Logistic(signs_for(m, seed), weight)


def labels(m, weight, seed):
    """Three labels of each sample, each with weights of its own if there are weights."""
    signs = signs_for(m, seed, 3)
    signs[:2] = [[1.0], [-1.0]]
    return Logistic(signs, None if weight is None else np.outer(weight, [1.0, 2.0, 0.5]))


def multinomial(m, weight, seed):
    return Multinomial(labels_for(m, 3, seed), sample_weight=weight)


def poisson(m, weight, seed):
    rng = np.random.default_rng(seed)
    return Poisson(1 + rng.poisson(3.0, m), rng.normal(size=m), weight)


def cox(ties):
    def make(m, weight, seed):
        rng = np.random.default_rng(seed)
        time, event = rng.integers(1, 9, m), rng.random(m) < 0.7
        event[0] = True
        strata = np.arange(m) % 2
        return Cox(time, event, strata=strata, ties=ties, sample_weight=weight)

    return make


def smooth(function, n_outputs=1):
    def make(matrices, weight, seed, inner_tol=1e-22):
        chosen = function(matrices.shape[1], weight, seed)
        return SmoothLoss(stack_of(matrices), chosen, 0.3, inner_tol)

    return Case(SmoothLoss, make, n_outputs)


LOSSES = {
    "square": Case(SquareLoss, lambda K, w, s: centred(K, 2, w, s)),
    "square of three classes": Case(SquareLoss, lambda K, w, s: centred(K, 3, w, s), 2),
    "features": Case(FeatureLoss, lambda K, w, s: on_features(K, 2, w, s)),
    "features of three classes": Case(FeatureLoss, lambda K, w, s: on_features(K, 3, w, s), 2),
    "sum": Case(SummedLoss, summed, 2),
    "joint square": Case(JointSquareLoss, joint_square, 2, learns_reg=True),
    "kim": Case(KimLoss, kim),
    "hinge": svm(HingeLoss),
    "hinge of three outputs": svm(HingeLoss, 3),
    "squared hinge": svm(SquaredHingeLoss),
    "joint squared hinge": Case(JointSquaredHingeLoss, joint_hinge, learns_reg=True),
    "epsilon-insensitive": Case(EpsilonInsensitiveLoss, tube),
    "one class": Case(OneClassLoss, one_class),
    "one machine for three classes": svm(MulticlassHingeLoss, 3),
    "logistic": smooth(logistic),
    "logistic of three labels": smooth(labels, 3),
    "multinomial": smooth(multinomial, 3),
    "poisson": smooth(poisson),
    "cox, Breslow's ties": smooth(cox("breslow")),
    "cox, Efron's ties": smooth(cox("efron")),
}
MACHINES = BoxLoss | MulticlassHingeLoss
SVMS = {name: case for name, case in LOSSES.items() if issubclass(case.kind, MACHINES)}


@pytest.fixture(params=LOSSES.values(), ids=LOSSES.keys())
def case(request):
    return request.param


@pytest.fixture(params=[False, *slow(True)], ids=["", "weighted samples"])
def loss(request, case):
    return case(gram_matrices(), request.param)


def some_weights(loss, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 1.0, loss.n_kernels)


def held(point):
    """Which variables are where: at which bound, at the kink, or free."""
    if isinstance(point._loss, MulticlassHingeLoss):
        costs = point._loss.problem.C[:, None]
        return (point.dual == 0) + 2 * (point.dual <= -costs)
    programs = point._loss.programs(point.weights)
    return np.array(
        [
            (v <= p.lower) + 2 * (v >= p.upper) + 4 * ((v == 0) & (p.width > 0))
            for v, p in zip(point.dual.T, programs, strict=True)
        ]
    )


def test_outline(case):
    spec = case(gram_matrices()).spec
    n_weights = 3 + case.learns_reg
    assert (spec.kind, spec.n_samples, spec.n_kernels) == (case.kind, M, n_weights)
    assert (spec.n_outputs, spec.learns_reg) == (case.n_outputs, case.learns_reg)
    assert case(gram_matrices()).n_kernels == n_weights


@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, mix=st.floats(0.01, 0.99), weighted=st.booleans())
@few
def test_convex_and_never_rising(name, seed, mix, weighted):
    loss = LOSSES[name](gram_matrices(seed, 12), weighted, seed)
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.01, 1, (2, loss.n_kernels))
    ends = [loss.evaluate(w) for w in (a, b)]
    between = loss.evaluate(mix * a + (1 - mix) * b)
    chord = mix * ends[0].value + (1 - mix) * ends[1].value
    scale = 1e-10 * max(abs(point.value) for point in ends)
    assert between.value <= chord + scale
    # The tangent, which is what certificates are made of.
    for end in ends:
        tangent = end.value - end.slack - end.gains @ (between.weights - end.weights)
        assert between.value >= tangent - scale
    raised = a + rng.uniform(0, 1, len(a)) * (rng.random(len(a)) < 0.5)
    assert loss.evaluate(raised).value <= ends[0].value + scale


def test_gains_are_minus_the_slope_and_not_negative(loss):
    weights = some_weights(loss)
    point = loss.evaluate(weights)
    assert (point.gains >= 0).all()
    np.testing.assert_array_equal(point.weights, weights)
    assert_derivatives(-point.gains, lambda w: loss.evaluate(w).value, weights)


def test_hessian_is_the_derivative_of_the_gains(loss):
    """Where no variable changes its bound; such weights are looked for, and found."""
    reach = 1e-4
    found = 0
    for seed in range(6):
        if found == 3:
            break
        weights = some_weights(loss, seed)
        point = loss.evaluate(weights)
        hessian = point.hessian()
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
        assert np.linalg.eigvalsh(hessian)[0] >= -1e-10 * np.trace(hessian)
        shifts = reach * np.concatenate([np.eye(loss.n_kernels), -np.eye(loss.n_kernels)])
        if not isinstance(loss, MACHINES) or all(
            np.array_equal(held(point), held(loss.evaluate(weights + shift))) for shift in shifts
        ):
            found += 1
            assert np.abs(hessian).max() > 0
            assert_derivatives(-hessian, lambda w: loss.evaluate(w).gains, weights, reach)
    assert found == 3


def test_model_hessian(loss):
    """Positive semi-definite, and for SVMs the more so the larger the gap."""
    point = loss.evaluate(some_weights(loss))
    models = [point.model_hessian(gap) for gap in (0.0, 1e-30, 1e-3, 1e3)]
    for model in models:
        np.testing.assert_allclose(model, model.T, rtol=1e-9, atol=1e-12 * np.abs(model).max())
        assert np.linalg.eigvalsh(model)[0] >= -1e-10 * np.trace(model)
    np.testing.assert_allclose(models[1], models[0], rtol=1e-8)
    if isinstance(loss, MACHINES):
        np.testing.assert_allclose(models[0], point.hessian(), rtol=1e-8, atol=1e-10)
        assert np.linalg.eigvalsh(models[3] - models[0])[0] >= -1e-9 * np.trace(models[3])


def test_a_point_stays_as_it_is_after_the_loss_moved_on(loss):
    first = loss.evaluate(some_weights(loss, 0))
    value, slack, gains, dual = first.value, first.slack, first.gains.copy(), first.dual.copy()
    hessian, model = first.hessian(), first.model_hessian(0.1)
    later = loss.evaluate(some_weights(loss, 1))
    later_gains, later_hessian = later.gains.copy(), later.hessian()
    for _ in range(2):
        assert (first.value, first.slack) == (value, slack)
        np.testing.assert_array_equal(first.gains, gains)
        np.testing.assert_array_equal(first.dual, dual)
        np.testing.assert_allclose(first.hessian(), hessian, rtol=1e-10)
        np.testing.assert_allclose(first.model_hessian(0.1), model, rtol=1e-10)
        np.testing.assert_array_equal(later.gains, later_gains)
        np.testing.assert_allclose(later.hessian(), later_hessian, rtol=1e-10)


def test_a_hessian_first_asked_for_after_the_loss_moved_on(case):
    kept, other = case(gram_matrices()), case(gram_matrices())
    weights = some_weights(kept)
    first = kept.evaluate(weights)
    kept.evaluate(some_weights(kept, 1))
    expected = other.evaluate(weights)
    np.testing.assert_allclose(first.hessian(), expected.hessian(), rtol=1e-8)
    kept.evaluate(some_weights(kept, 2))
    np.testing.assert_allclose(
        first.model_hessian(0.1), expected.model_hessian(0.1), rtol=1e-8, atol=1e-10
    )


def test_what_is_released_is_said(loss):
    first = loss.evaluate(some_weights(loss, 0))
    assert not first.released
    later = loss.evaluate(some_weights(loss, 1))
    assert first.released
    assert not later.released
    first.hessian()
    assert not first.released
    assert later.released
    first.release()
    assert first.released


def test_a_failed_evaluation_leaves_no_wrong_derivatives(case):
    """It has overwritten the arrays of the point before, which must not be taken for its own."""
    loss = case(gram_matrices())
    point = loss.evaluate(some_weights(loss))
    expected = point.hessian()
    with pytest.raises((ValueError, FloatingPointError)):
        loss.evaluate(np.full(loss.n_kernels, np.nan))
    assert point.released
    np.testing.assert_allclose(point.hessian(), expected, rtol=1e-8)


def test_weights_of_kernels_and_of_the_regularisation(case):
    loss = case(gram_matrices())
    weights = np.arange(1.0, 1.0 + loss.n_kernels)
    np.testing.assert_array_equal(loss.kernel_weights(weights), weights[-3:])
    regularization = loss.regularization(weights)
    if case.learns_reg:
        assert regularization == 0.5 * weights[0]
        # The matrix of that weight is a multiple of the identity.
        np.testing.assert_allclose(loss.kernel(0), 0.5 * np.eye(M))
    elif issubclass(case.kind, MACHINES | SummedLoss):
        assert regularization is None
    else:
        assert regularization == loss.reg
    size = M * len(loss.parts) if case.kind is SummedLoss else M
    for j in range(loss.n_kernels):
        assert loss.kernel(j).shape == (size, size)


def test_the_dual_point_of_an_evaluation_attains_its_value(loss):
    """``D(α, β) = linear − quadratic − β·gains``, and no more at any other weights."""
    weights = some_weights(loss)
    point = loss.evaluate(weights)
    found = loss.dual_point(point.dual)
    attained = found.linear - found.quadratic - weights @ found.gains
    assert attained == pytest.approx(point.value, rel=1e-9)
    np.testing.assert_array_equal(loss.gains_at(point.dual), found.gains)
    for seed in range(5):
        other = loss.evaluate(some_weights(loss, seed))
        bound = loss.lower_bound(point.dual, lambda gains, w=other.weights: float(w @ gains))
        assert bound >= found.linear - found.quadratic - other.weights @ found.gains - 1e-12
        assert bound <= other.value + 1e-10 * abs(other.value)


def test_an_exact_loss_has_next_to_no_slack(loss):
    point = loss.evaluate(some_weights(loss))
    assert -1e-12 * abs(point.value) <= point.slack <= 1e-11 * abs(point.value)


@pytest.mark.parametrize("name", some_slow(SVMS, "hinge of three outputs", "one class"))
@given(seed=seeds, weighted=st.booleans())
@few
def test_a_machine_that_is_not_finished_still_proves_what_it_says(name, seed, weighted):
    matrices = gram_matrices(seed)
    rough = SVMS[name](matrices, weighted, seed, inner_tol=1e-2)
    exact = SVMS[name](matrices, weighted, seed)
    rng = np.random.default_rng(seed)
    domain = lp_domain(1.0)
    lowest, at = np.inf, None
    for _ in range(4):
        weights = domain.onto_boundary(rng.uniform(0.01, 1.0, rough.n_kernels))
        one, other = rough.evaluate(weights), exact.evaluate(weights)
        rounding = 1e-10 * abs(other.value)
        assert one.slack >= -rounding
        assert one.value - one.slack - rounding <= other.value
        assert other.value - other.slack <= one.value + rounding
        assert one.slack <= 1e-2 * abs(one.value - one.slack) + rounding
        if other.value < lowest:
            lowest, at = other.value, weights
    # No weights have less than the certificate says there is.
    certificate = certify(one, domain, 1e-6)
    best = minimise(exact, at)
    assert certificate.dual <= min(best, lowest) + rounding
    assert certificate.primal >= best - 1e-6 * abs(best)


def minimise(loss, start):
    """F at the best weights on the simplex that a general solver finds."""

    def value_and_slope(weights):
        point = loss.evaluate(np.maximum(weights, 1e-9))
        return point.value, -point.gains

    with warnings.catch_warnings():
        # Before version 1.16 SciPy may leave the bounds by a rounding error.
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        found = minimize(
            value_and_slope,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(1e-9, 1.0)] * len(start),
            constraints={"type": "ineq", "fun": lambda w: 1.0 - w.sum()},
            options={"maxiter": 30, "ftol": 1e-12},
        )
    return loss.evaluate(found.x / max(found.x.sum(), 1.0)).value


def fresh(case, matrices, reg_weight, kernel_weights):
    """A new loss at these weights."""
    loss = case(matrices)
    first = [reg_weight] if case.learns_reg else []
    return loss.evaluate(np.array([*first, *kernel_weights]))


def test_the_order_of_kernels_does_not_matter(case):
    matrices, weights = gram_matrices(), np.array([0.2, 0.7, 0.4])
    order = [2, 0, 1]
    one = fresh(case, matrices, 0.3, weights)
    other = fresh(case, matrices[order], 0.3, weights[order])
    assert other.value == pytest.approx(one.value, rel=1e-10)
    np.testing.assert_allclose(other.gains[-3:], one.gains[-3:][order], rtol=1e-6)
    np.testing.assert_allclose(
        other.hessian()[-3:, -3:], one.hessian()[-3:, -3:][np.ix_(order, order)], rtol=1e-5
    )


def test_units_of_kernels_do_not_matter(case):
    matrices, weights = gram_matrices(), np.array([0.2, 0.7, 0.4])
    units = np.array([1e-3, 1.0, 50.0])
    one = fresh(case, matrices, 0.3, weights)
    other = fresh(case, units[:, None, None] * matrices, 0.3, weights / units)
    assert other.value == pytest.approx(one.value, rel=1e-10)
    np.testing.assert_allclose(other.gains[-3:], units * one.gains[-3:], rtol=1e-6)


def test_equal_kernels_share_a_weight(case):
    matrices = gram_matrices()
    split = np.concatenate([matrices, matrices[:1]])
    one = fresh(case, matrices, 0.3, [0.6, 0.1, 0.2])
    other = fresh(case, split, 0.3, [0.35, 0.1, 0.2, 0.25])
    assert other.value == pytest.approx(one.value, rel=1e-10)
    assert other.gains[-1] == pytest.approx(other.gains[-4], rel=1e-12)


def test_a_kernel_that_is_zero_gains_nothing(case):
    matrices = gram_matrices()
    matrices[1] = 0.0
    point = fresh(case, matrices, 0.3, [0.5, 0.3, 0.2])
    assert point.gains[-2] == 0.0
    assert np.all(point.hessian()[-2] == 0.0)
    without = fresh(case, matrices, 0.3, [0.5, 0.0, 0.2])
    assert without.value == pytest.approx(point.value, rel=1e-12)


def test_a_weight_that_is_zero(case):
    """F and its slope are those from the right."""
    point = fresh(case, gram_matrices(), 0.3, [0.5, 0.0, 0.2])

    def along(t):
        """The change of F, continued as an odd function below zero, where F has no value."""
        value = fresh(case, gram_matrices(), 0.3, [0.5, abs(t), 0.2]).value
        return np.sign(t) * (value - point.value)

    slope, error = derivative(along, 0.0, 1.0)
    assert abs(slope + point.gains[-2]) <= error
    assert error <= 1e-3 * point.gains.max()
