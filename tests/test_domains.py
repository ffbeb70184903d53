"""Weight domains: support functions, boundaries and conic forms describe the same set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels.domains import (
    Box,
    LpBall,
    Product,
    Simplex,
    TraceSimplex,
    lp_domain,
    product_domain,
)
from manykernels.solvers.programs import minimize_quadratic
from tests.differences import assert_derivatives

TRACES = np.array([1.0, 4.0, 0.5, 2.0, 1.5, 0.0])
DOMAINS = [
    Simplex(),
    TraceSimplex(TRACES),
    LpBall(1 + 2.0**-6),
    LpBall(1.5),
    LpBall(2.0),
    LpBall(8.0),
    LpBall(1e6),
    Box(),
]
PRODUCTS = [
    Product(Simplex(), 3),
    Product(TraceSimplex(TRACES[:3]), 2),
    Product(LpBall(1 + 2.0**-6), 2),
    Product(LpBall(2.0), 3),
    Product(LpBall(8.0), 2),
    Product(Box(), 2),
]
DOMAINS += PRODUCTS

gains_of_six = st.lists(st.floats(0, 1e3), min_size=6, max_size=6).map(np.array)
weights_of_six = st.lists(st.floats(1e-3, 1), min_size=6, max_size=6).map(np.array)


@pytest.fixture(params=DOMAINS, ids=str)
def domain(request):
    return request.param


@given(gains=gains_of_six, weights=weights_of_six)
@settings(max_examples=40, deadline=None)
def test_support_bounds_every_point_and_is_attained(gains, weights):
    for domain in DOMAINS:
        support = domain.support(gains)
        inside = domain.onto_boundary(weights)
        assert inside @ gains <= support * (1 + 1e-9) + 1e-300
        best = domain.maximizer(gains)
        assert best.min() >= 0
        assert domain.gauge(best) <= 1 + 1e-9
        assert best @ gains == pytest.approx(support, rel=1e-9)


def test_start_and_boundary_have_gauge_one(domain):
    assert domain.gauge(domain.start(6)) == pytest.approx(1.0)
    assert domain.gauge(domain.onto_boundary(np.arange(1.0, 7.0))) == pytest.approx(1.0)


def test_conic_form_describes_the_same_set(domain):
    """A linear function over the conic form attains the support function."""
    gains = np.array([0.3, 1.0, 0.7, 0.2, 0.05, 0.6])
    best = minimize_quadratic(-gains, np.zeros((6, 6)), domain)
    assert best @ gains == pytest.approx(domain.support(gains), rel=1e-6)


@pytest.mark.parametrize("domain", [Box(), Product(Box(), 2)], ids=str)
def test_the_boundary_of_the_box_is_no_level_set(domain):
    assert domain.level_set(np.linspace(0.5, 1.0, 6)) is None


SMOOTH = [d for d in DOMAINS if d.level_set(np.ones(6)) is not None]


@pytest.mark.parametrize("domain", SMOOTH, ids=str)
def test_level_set_is_one_on_the_boundary_with_its_derivatives(domain):
    x = domain.onto_boundary(np.linspace(0.5, 1.0, 6))
    value, gradient, curvature = domain.level_set(x)
    assert value.shape == (domain.n_blocks,)
    np.testing.assert_allclose(value, 1.0, rtol=1e-8)
    reach = 1e-2 / getattr(getattr(domain, "part", domain), "p", 1.0)
    # No c depends on the weights of other blocks, so the gradient of the sum has those of all.
    assert_derivatives(gradient, lambda x: domain.level_set(x)[0].sum(), x, reach)
    assert_derivatives(np.diag(curvature), lambda x: domain.level_set(x)[1], x, reach)


@pytest.mark.parametrize("p", [1 + 1e-12, 1 + 2.0**-6, 2.0, 1e6, 1e15])
def test_norms_neither_overflow_nor_vanish(p):
    ball = LpBall(p)
    gains = np.array([1e-200, 1e-300, 1e200, 1.0])
    assert ball.support(gains) == pytest.approx(1e200)
    assert np.isfinite(ball.maximizer(gains)).all()
    assert ball.support(np.zeros(4)) == 0.0
    assert ball.gauge(ball.maximizer(np.zeros(4))) == pytest.approx(1.0)


@pytest.mark.parametrize("p", [0.99, 0, -1, np.nan])
def test_p_below_one_is_refused(p):
    with pytest.raises(ValueError, match="p must be at least 1"):
        lp_domain(p)


def test_lp_domain_chooses_the_exact_set_at_both_ends():
    assert lp_domain(1) == Simplex()
    assert lp_domain(np.inf) == Box()
    assert lp_domain(3) == LpBall(3.0)
    with pytest.raises(ValueError, match="lp_domain takes any"):
        LpBall(1.0)


def test_traces_are_checked_and_priced():
    with pytest.raises(ValueError, match="All kernels have trace zero"):
        TraceSimplex(np.zeros(3))
    with pytest.raises(ValueError, match="finite and non-negative"):
        TraceSimplex(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="each of 3 kernels, got 2"):
        TraceSimplex(np.ones(2)).support(np.ones(3))
    start = TraceSimplex(TRACES).start(6)
    np.testing.assert_allclose((TRACES * start)[:5], 1 / 6)


def test_trace_simplex_is_the_simplex_after_unit_trace_scaling():
    gains = np.array([3.0, 1.0, 2.0])
    traces = np.array([2.0, 1.0, 5.0])
    assert TraceSimplex(traces).support(gains) == Simplex().support(gains / traces)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_quadratic_programs_are_solved_to_full_precision(seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((6, 6))
    quadratic, linear = factor @ factor.T, -rng.uniform(0.1, 2, 6)
    for domain in DOMAINS:
        x = minimize_quadratic(linear, quadratic, domain)
        assert x.min() >= 0
        assert domain.gauge(x) <= 1 + 1e-9
        gains = -(linear + quadratic @ x)
        # On the boundary: gains of the best interior point are all negative otherwise.
        if (domain.block_sums(gains * x) > 0).all():
            gap = domain.support(gains) - gains @ x
            assert gap <= 1e-6 * np.abs(linear).max()


def test_quadratic_program_without_information_gives_nothing():
    assert minimize_quadratic(np.zeros(3), np.eye(3), Simplex()) is None
    assert minimize_quadratic(np.array([np.nan, 1.0]), np.eye(2), Simplex()) is None


def test_trace_simplices_are_told_apart():
    """Programs are kept by domain: one with the traces of another would be solved in its place."""
    one, other = TraceSimplex(np.array([1.0, 2.0])), TraceSimplex(np.array([2.0, 1.0]))
    assert one != other
    assert len({one, other, one}) == 2
    linear, quadratic = -np.array([1.0, 1.0]), 1e-3 * np.eye(2)
    found = [minimize_quadratic(linear, quadratic, domain) for domain in (one, other)]
    np.testing.assert_allclose(found[0], [1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(found[1], [0.0, 1.0], atol=1e-9)


# -- products --------------------------------------------------------------------------------


@given(gains=gains_of_six, weights=weights_of_six)
@settings(max_examples=20, deadline=None)
def test_a_product_of_one_is_its_part(gains, weights):
    for part in [Simplex(), TraceSimplex(TRACES), LpBall(1.5), Box()]:
        one, level = Product(part, 1), np.array([0.7])
        assert one.support(gains) == part.support(gains)
        assert one.gauge(weights) == part.gauge(weights)
        for found, expected in [
            (one.start(6), part.start(6)),
            (one.maximizer(gains), part.maximizer(gains)),
            (one.onto_boundary(weights), part.onto_boundary(weights)),
            (one.balance(np.log(weights)), part.balance(np.log(weights))),
            (one.equilibrium(weights, weights, level), part.equilibrium(weights, weights, level)),
            (one.settle(weights, weights), part.settle(weights, weights)),
            (one.conic_form(6).matrix.toarray(), part.conic_form(6).matrix.toarray()),
            (one.conic_form(6).bound, part.conic_form(6).bound),
        ]:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("domain", PRODUCTS, ids=str)
def test_a_product_treats_every_block_as_its_part(domain):
    rng = np.random.default_rng(0)
    gains, weights, level = rng.uniform(size=6), rng.uniform(size=6), rng.uniform(size=6)
    level = level[: domain.n_blocks]
    part, blocks = domain.part, np.arange(6).reshape(domain.n_blocks, -1)
    assert domain.support(gains) == pytest.approx(sum(part.support(gains[b]) for b in blocks))
    assert domain.gauge(weights) == max(part.gauge(weights[b]) for b in blocks)
    for k, b in enumerate(blocks):
        np.testing.assert_array_equal(domain.maximizer(gains)[b], part.maximizer(gains[b]))
        np.testing.assert_array_equal(domain.onto_boundary(gains)[b], part.onto_boundary(gains[b]))
        np.testing.assert_array_equal(
            domain.balance(np.log(gains))[b], part.balance(np.log(gains[b]))
        )
        np.testing.assert_array_equal(
            domain.equilibrium(gains, weights, level)[b],
            part.equilibrium(gains[b], weights[b], level[[k]]),
        )
        np.testing.assert_array_equal(
            domain.settle(weights, gains)[b], part.settle(weights[b], gains[b])
        )


@pytest.mark.parametrize("domain", PRODUCTS, ids=str)
def test_a_block_without_gains_or_weights_divides_by_nothing(domain):
    """The block of an empty region; warnings of NumPy are errors here."""
    dead = slice(0, 6 // domain.n_blocks)
    values = np.linspace(0.5, 1.0, 6)
    values[dead] = 0.0
    start = domain.start(6)[dead]
    np.testing.assert_array_equal(domain.onto_boundary(values)[dead], start)
    with np.errstate(divide="ignore"):
        balanced = np.exp(domain.balance(np.log(values)))
    assert domain.gauge(balanced) == pytest.approx(1.0)
    np.testing.assert_allclose(balanced[dead], start)
    np.testing.assert_array_equal(
        domain.settle(np.tile(start, domain.n_blocks), values)[dead], start
    )
    assert domain.gauge(domain.maximizer(values)) <= 1 + 1e-9
    # Zero weights are in the domain, and better than others where gains are negative.
    assert domain.supports(-values - 1.0).tolist() == [0.0] * domain.n_blocks
    best = minimize_quadratic(-values, np.zeros((6, 6)), domain)
    assert best @ values == pytest.approx(domain.support(values), rel=1e-6)


def test_blocks_of_a_product_are_equally_long():
    with pytest.raises(ValueError, match="5 weights cannot be divided into 2 equal blocks"):
        Product(Simplex(), 2).support(np.ones(5))
    with pytest.raises(ValueError, match="n_blocks must be at least 1"):
        Product(Simplex(), 0)
    with pytest.raises(ValueError, match="must have a single block"):
        Product(Product(Simplex(), 2), 2)
    with pytest.raises(TypeError, match="cannot be restricted"):
        Product(Simplex(), 2).restricted(np.array([0, 1]))
    assert product_domain(Simplex(), 1) == Simplex()
    assert product_domain(Simplex(), 2) == Product(Simplex(), 2)
