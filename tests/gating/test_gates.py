"""Gates: outputs, gradients against finite differences, extremes, starts, bad input."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from manykernels.gating import Gaussian, PerCluster, PerSample, Sigmoid, Softmax, gates
from manykernels.gating.gates import GATES, as_gate
from tests.differences import assert_derivatives

COMPETING = ["softmax", "gaussian", "cluster"]
# The gate of single samples has the formula of that of clusters, with other features.
FORMULAS = [name for name in GATES if name != "instance"]


@pytest.fixture(params=FORMULAS)
def gate(request):
    return as_gate(request.param)


def random_case(gate, seed, m=7, D=3, P=4, size=1.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, D))
    theta = size * rng.standard_normal(P * gate.row_length(D))
    return x, theta, rng


def naive(name, theta, x):
    """The formulas (3), (4) and (5) of the paper, one sample and one kernel at a time."""
    V = theta.reshape(-1, as_gate(name).row_length(x.shape[1]))
    if name == "cluster":
        V = np.column_stack([V, np.zeros(len(V))])
    eta = np.empty((len(x), len(V)))
    for i, row in enumerate(x):
        for p, v in enumerate(V):
            if name == "gaussian":
                eta[i, p] = np.exp(-np.sum((row - v[:-1]) ** 2) / np.exp(v[-1]) ** 2)
            else:
                eta[i, p] = np.exp(v[:-1] @ row + v[-1])
    return eta / (1.0 + eta) if name == "sigmoid" else eta / eta.sum(axis=1, keepdims=True)


# -- formulas ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_outputs_are_the_formulas_of_the_paper(gate, seed):
    x, theta, _ = random_case(gate, seed)
    assert_allclose(gate.outputs(theta, x), naive(gate.name, theta, x), rtol=1e-12)


@pytest.mark.slow
@given(
    name=st.sampled_from(FORMULAS),
    seed=st.integers(0, 10**6),
    m=st.integers(1, 8),
    D=st.integers(1, 4),
    P=st.integers(1, 5),
)
@example(name="gaussian", seed=2, m=1, D=3, P=2)  # a gradient lost in the rounding of f
@settings(max_examples=120, deadline=None)
def test_pull_back_agrees_with_finite_differences(name, seed, m, D, P):
    gate = as_gate(name)
    x, theta, rng = random_case(gate, seed, m, D, P)
    a, b = rng.standard_normal((2, m, P))

    def value(theta):
        eta = gate.outputs(theta, x)
        return float(np.sum(a * np.sin(eta + b)) + np.prod(1.0 + 0.1 * eta))

    eta = gate.outputs(theta, x)
    E = a * np.cos(eta + b) + np.prod(1.0 + 0.1 * eta) * 0.1 / (1.0 + 0.1 * eta)
    gradient = gate.pull_back(theta, x, eta, E)
    assert_derivatives(gradient, value, theta)


def test_pull_back_is_the_gradient_the_paper_writes_out_for_a_machine():
    """Section 2.3 for softmax: the double sums over samples, with a machine's E."""
    rng = np.random.default_rng(0)
    m, D, P = 6, 2, 3
    gate, x, v = Softmax(), rng.standard_normal((m, D)), rng.standard_normal(m)
    roots = rng.standard_normal((P, m, m))
    K = roots @ roots.transpose(0, 2, 1)
    theta = rng.standard_normal(P * (D + 1))
    eta = gate.outputs(theta, x)
    E = -v[:, None] * np.einsum("pij,jp->ip", K, v[:, None] * eta)
    with_bias = np.column_stack([x, np.ones(m)])
    expected = np.zeros((P, D + 1))
    for p in range(P):
        for h in range(P):
            pairs = v[:, None] * v * eta[:, [h]] * K[h] * eta[:, h]
            pull = with_bias * ((h == p) - eta[:, [p]])
            expected[p] -= 0.5 * (pairs.sum(axis=1) @ pull + pairs.sum(axis=0) @ pull)
    assert_allclose(gate.pull_back(theta, x, eta, E), expected.ravel(), rtol=1e-10)


@pytest.mark.parametrize("name", COMPETING)
@given(seed=st.integers(0, 10**6), size=st.floats(0.0, 20.0))
@settings(max_examples=30, deadline=None)
def test_competing_kernels_share_one(name, seed, size):
    x, theta, _ = random_case(GATES[name](), seed, size=size)
    eta = as_gate(name).outputs(theta, x)
    assert eta.min() >= 0
    assert_allclose(eta.sum(axis=1), 1.0, rtol=1e-12)


@given(seed=st.integers(0, 10**6), size=st.floats(0.0, 2.0))
@settings(max_examples=30, deadline=None)
def test_sigmoid_outputs_lie_between_zero_and_one(seed, size):
    x, theta, _ = random_case(Sigmoid(), seed, size=size)
    eta = Sigmoid().outputs(theta, x)
    assert 0 < eta.min() <= eta.max() < 1


# -- invariances -------------------------------------------------------------------------------


def test_permuting_kernels_permutes_outputs_and_gradients(gate):
    x, theta, rng = random_case(gate, 3)
    order = np.array([2, 0, 3, 1])
    E = rng.standard_normal((7, 4))
    permuted = theta.reshape(4, -1)[order].ravel()
    eta = gate.outputs(theta, x)
    assert_allclose(gate.outputs(permuted, x), eta[:, order], rtol=1e-13)
    gradient = gate.pull_back(theta, x, eta, E).reshape(4, -1)
    moved = gate.pull_back(permuted, x, eta[:, order], E[:, order]).reshape(4, -1)
    assert_allclose(moved, gradient[order], rtol=1e-10, atol=1e-13)


def test_each_row_has_its_own_output(gate):
    x, theta, _ = random_case(gate, 4)
    eta = gate.outputs(theta, x)
    assert_allclose(gate.outputs(theta, x[[5, 5, 1]]), eta[[5, 5, 1]], rtol=1e-13)
    assert gate.outputs(theta, x[:0]).shape == (0, 4)


def test_softmax_sees_only_differences_of_scores():
    x, theta, rng = random_case(Softmax(), 5)
    shifted = (theta.reshape(4, -1) + rng.standard_normal(4)).ravel()
    assert_allclose(Softmax().outputs(shifted, x), Softmax().outputs(theta, x), rtol=1e-10)


def test_two_softmax_kernels_are_a_sigmoid_of_the_difference():
    x, theta, _ = random_case(Softmax(), 6, P=2)
    difference = theta[:4] - theta[4:]
    eta = Softmax().outputs(theta, x)
    assert_allclose(eta[:, :1], Sigmoid().outputs(difference, x), rtol=1e-10)


def test_gaussians_of_one_width_are_a_softmax():
    """Then ‖x‖² cancels: the borders between regions are hyperplanes."""
    rng = np.random.default_rng(7)
    x, centres, width = rng.standard_normal((9, 2)), rng.standard_normal((3, 2)), 1.7
    gaussian = np.column_stack([centres, np.full(3, np.log(width))])
    linear = np.column_stack([2 * centres, -(centres**2).sum(axis=1)]) / width**2
    expected = Softmax().outputs(linear.ravel(), x)
    assert_allclose(Gaussian().outputs(gaussian.ravel(), x), expected, rtol=1e-10)


def test_gaussian_follows_shifts_and_scales_of_the_features():
    x, theta, _ = random_case(Gaussian(), 8)
    V = theta.reshape(4, -1).copy()
    V[:, :-1] = 3.0 * V[:, :-1] + 5.0
    V[:, -1] += np.log(3.0)
    eta = Gaussian().outputs(V.ravel(), 3.0 * x + 5.0)
    assert_allclose(eta, Gaussian().outputs(theta, x), rtol=1e-9)


def test_nothing_given_is_changed(gate):
    x, theta, rng = random_case(gate, 9, size=1e3)
    E = rng.standard_normal((7, 4))
    eta = gate.outputs(theta, x)
    given = [array.copy() for array in (theta, x, eta, E)]
    gate.pull_back(theta, x, eta, E)
    gate.coefficients(theta, 3)[gate.parts[0]][:] = 0.0
    for array, before in zip((theta, x, eta, E), given, strict=True):
        assert_array_equal(array, before)


# -- extremes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e3, 1e20, 1e150, np.finfo(float).max])
@pytest.mark.parametrize("features", [1e-300, 1.0, gates.LARGEST])
@pytest.mark.parametrize("seed", range(3))
def test_extreme_parameters_give_finite_answers_and_no_warnings(gate, size, features, seed):
    x, theta, rng = random_case(gate, seed)
    theta = size * (theta / np.abs(theta).max())
    x = features * (x / np.abs(x).max())
    eta = gate.outputs(theta, x)
    assert ((eta >= 0) & (eta <= 1)).all()
    E = rng.standard_normal(eta.shape)
    assert np.isfinite(gate.pull_back(theta, x, eta, E)).all()
    assert all(np.isfinite(c).all() for c in gate.coefficients(theta, 3).values())


@pytest.mark.parametrize("log_width", [-1e6, -200.0, 200.0, 1e6])
def test_gaussian_of_no_or_all_width(log_width):
    x = np.array([[-1.0], [0.0], [1.0]])
    theta = np.array([-1.0, log_width, 1.0, 0.0])
    eta = Gaussian().outputs(theta, x)
    # The first kernel has its own centre only, or everything.
    expected = [1 / (1 + np.exp(-4.0)), 0, 0] if log_width < 0 else 1 / (1 + np.exp([-4, -1, 0]))
    assert_allclose(eta[:, 0], expected, rtol=1e-12)
    gradient = Gaussian().pull_back(theta, x, eta, np.ones_like(eta) * [1.0, -2.0])
    assert np.isfinite(gradient).all()
    assert gradient[1] == 0.0


def test_saturation(gate):
    x, theta, _ = random_case(gate, 0)
    assert not gate.saturated(gate.outputs(theta, x))
    assert gate.saturated(np.array([[1.0, 0.0], [1.0 - 1e-12, 1e-12]]))
    assert not gate.saturated(np.array([[1.0, 0.0], [0.99, 0.01]]))


def test_a_saturated_gate_has_no_gradient():
    x = np.array([[-1.0], [1.0]])
    for gate, theta in [(Softmax(), [0.0, 50.0, 0.0, 0.0]), (Sigmoid(), [0.0, -50.0])]:
        eta = gate.outputs(np.array(theta), x)
        assert gate.saturated(eta)
        assert np.abs(gate.pull_back(np.array(theta), x, eta, np.ones_like(eta))).max() < 1e-15


# -- start -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [np.random.default_rng, np.random.RandomState])
def test_start_is_random_and_repeatable(gate, seeded):
    x = np.random.default_rng(0).standard_normal((20, 3))
    theta = gate.initial(x, 4, seeded(1))
    assert theta.shape == (4 * gate.row_length(3),)
    assert_array_equal(theta, gate.initial(x, 4, seeded(1)))
    assert (theta != gate.initial(x, 4, seeded(2))).any()


@pytest.mark.parametrize(
    ("name", "level"), [("softmax", 0.25), ("sigmoid", 0.5), ("cluster", 0.25)]
)
def test_linear_gates_start_near_no_preference(name, level):
    x = np.random.default_rng(0).standard_normal((20, 3))
    theta = as_gate(name).initial(x, 4, np.random.default_rng(0))
    assert 0 < np.abs(theta).max() <= 0.01
    assert_allclose(as_gate(name).outputs(theta, x), level, atol=0.02)
    assert_array_equal(GATES[name](scale=0.0).initial(x, 4, np.random.default_rng(0)), 0.0)


@pytest.mark.parametrize("D", [1, 3, 300])
def test_gaussian_starts_at_samples_with_gradients_left(D):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, D))
    gate = Gaussian()
    theta = gate.initial(x, 4, rng)
    centres, widths = gate.coefficients(theta, D).values()
    nearest = np.abs(centres[:, None] - x).max(axis=2).argmin(axis=1)
    assert len(set(nearest)) == 4
    assert np.abs(centres - x[nearest]).max() <= 0.01
    assert_allclose(widths, np.sqrt(((x[:, None] - centres) ** 2).sum(axis=2).mean()))
    eta = gate.outputs(theta, x)
    assert (eta * (1.0 - eta)).mean() > 0.1
    doubled = Gaussian(width=2.0).initial(x, 4, np.random.default_rng(1))
    single = Gaussian().initial(x, 4, np.random.default_rng(1))
    assert_allclose((doubled - single).reshape(4, -1)[:, -1], np.log(2.0))


def test_width_one_would_leave_hardly_a_gradient_where_features_are_many():
    x = np.random.default_rng(0).standard_normal((50, 300))
    theta = Gaussian().initial(x, 4, np.random.default_rng(0)).reshape(4, -1)
    theta[:, -1] = 0.0
    eta = Gaussian().outputs(theta.ravel(), x)
    assert np.median((eta * (1.0 - eta)).max(axis=1)) < 1e-6


def test_gaussian_starts_with_fewer_rows_than_kernels():
    theta = Gaussian().initial(np.ones((1, 2)), 3, np.random.default_rng(0))
    centres = Gaussian().coefficients(theta, 2)["centres"]
    assert len(np.unique(centres, axis=0)) == 3
    alone = Gaussian(scale=0.0).initial(np.ones((1, 2)), 3, np.random.default_rng(0))
    assert_array_equal(Gaussian().coefficients(alone, 2)["widths"], 1.0)


def test_columns_of_zeros_get_no_weight(gate):
    x = np.random.default_rng(0).standard_normal((10, 3))
    x[:, 1] = 0.0
    theta = gate.initial(x, 4, np.random.default_rng(0))
    assert_array_equal(theta.reshape(4, -1)[:, 1], 0.0)
    eta = gate.outputs(theta, x)
    gradient = gate.pull_back(theta, x, eta, np.random.default_rng(1).standard_normal(eta.shape))
    assert_array_equal(gradient.reshape(4, -1)[:, 1], 0.0)


# -- coefficients, copies and bad input --------------------------------------------------------


def test_coefficients_have_names_and_shapes():
    theta = np.arange(8.0)
    linear = Softmax().coefficients(theta, 3)
    assert_array_equal(linear["weights"], [[0, 1, 2], [4, 5, 6]])
    assert_array_equal(linear["bias"], [3, 7])
    gaussian = Gaussian().coefficients(theta, 3)
    assert_array_equal(gaussian["centres"], [[0, 1, 2], [4, 5, 6]])
    assert_allclose(gaussian["widths"], np.exp([3, 7]))
    clusters = PerCluster().coefficients([0.0, 1.0, np.log(3.0), 1.0], 2)
    assert_allclose(clusters["outputs"], [[0.25, 0.5], [0.75, 0.5]])


def test_gates_have_the_parameters_of_estimators(gate):
    gate = clone(gate).set_params(scale=0.5, features=[0, 1], penalty=[0.1, 1.0])
    for twin in (clone(gate), copy.deepcopy(gate)):
        assert twin is not gate
        assert twin.get_params() == gate.get_params()
    assert "scale=0.5" in repr(gate)
    assert type(gate)().scale == 0.01


def test_as_gate():
    gate = Gaussian(width=2.0)
    assert as_gate(gate) is gate
    kinds = [Softmax, Sigmoid, Gaussian, PerCluster, PerSample]
    assert [type(as_gate(name)) for name in GATES] == kinds
    named = r"no gate named 'relu'.*'softmax', 'sigmoid', 'gaussian', 'cluster', 'instance', or"
    with pytest.raises(ValueError, match=named):
        as_gate("relu")
    for wrong in (None, 3, Softmax):
        with pytest.raises(TypeError, match=r"is not a gate: .*'softmax'"):
            as_gate(wrong)


@pytest.mark.parametrize("theta", [[], np.ones(5), np.ones((2, 4)), 1.0], ids=repr)
def test_parameters_of_the_wrong_shape_or_not_finite(gate, theta):
    length = f"flat array of {gate.row_length(3)} numbers for each kernel"
    with pytest.raises(ValueError, match=length):
        gate.coefficients(theta, 3)
    with pytest.raises(ValueError, match=length):
        gate.outputs(theta, np.ones((2, 3)))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must be finite"):
            gate.outputs([0.0, bad], np.ones((2, 1)))


def test_features_and_gradients_of_the_wrong_shape(gate):
    x, theta, rng = random_case(gate, 0)
    eta = gate.outputs(theta, x)
    for wrong in (x[0], [[1.0, 2.0, 3.0]]):
        for call in (lambda x: gate.outputs(theta, x), lambda x: gate.initial(x, 2, rng)):
            with pytest.raises(ValueError, match="two-dimensional"):
                call(wrong)
    for outputs, gradient in [(eta, eta[:, :2]), (eta[:3], eta), (eta.T, eta.T)]:
        with pytest.raises(ValueError, match=r"\(rows, kernels\) = \(7, 4\)"):
            gate.pull_back(theta, x, outputs, gradient)


def test_no_start_without_kernels_or_rows(gate):
    with pytest.raises(ValueError, match="0 kernels and 2 rows"):
        gate.initial(np.ones((2, 1)), 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="3 kernels and 0 rows"):
        gate.initial(np.ones((0, 1)), 3, np.random.default_rng(0))


def test_options_out_of_range(gate):
    for scale in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"'scale' parameter of .* must be"):
            type(gate)(scale=scale)._validate_params()
    for width in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="'width' parameter of Gaussian must be"):
            Gaussian(width=width)._validate_params()
