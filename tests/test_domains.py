"""Weight domains: support functions, boundaries and conic forms describe the same set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels.domains import Box, LpBall, Simplex, TraceSimplex, lp_domain
from manykernels.solvers.quadratic import minimize_quadratic
from tests.differences import assert_derivatives

TRACES = np.array([1.0, 4.0, 0.5, 2.0, 0.0])
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

gains_of_five = st.lists(st.floats(0, 1e3), min_size=5, max_size=5).map(np.array)
weights_of_five = st.lists(st.floats(1e-3, 1), min_size=5, max_size=5).map(np.array)


@pytest.fixture(params=DOMAINS, ids=str)
def domain(request):
    return request.param


@given(gains=gains_of_five, weights=weights_of_five)
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
    assert domain.gauge(domain.start(5)) == pytest.approx(1.0)
    assert domain.gauge(domain.onto_boundary(np.arange(1.0, 6.0))) == pytest.approx(1.0)


def test_conic_form_describes_the_same_set(domain):
    """A linear function over the conic form attains the support function."""
    gains = np.array([0.3, 1.0, 0.7, 0.2, 0.05])
    best = minimize_quadratic(-gains, np.zeros((5, 5)), domain)
    assert best @ gains == pytest.approx(domain.support(gains), rel=1e-6)


def test_the_boundary_of_the_box_is_no_level_set():
    assert Box().level_set(np.linspace(0.5, 1.0, 5)) is None


@pytest.mark.parametrize("domain", [d for d in DOMAINS if d != Box()], ids=str)
def test_level_set_is_one_on_the_boundary_with_its_derivatives(domain):
    x = domain.onto_boundary(np.linspace(0.5, 1.0, 5))
    value, gradient, curvature = domain.level_set(x)
    assert value == pytest.approx(1.0, rel=1e-8)
    reach = 1e-2 / getattr(domain, "p", 1.0)
    assert_derivatives(gradient, lambda x: domain.level_set(x)[0], x, reach)
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
    with pytest.raises(ValueError, match="nothing to learn"):
        TraceSimplex(np.zeros(3))
    with pytest.raises(ValueError, match="finite and non-negative"):
        TraceSimplex(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="2 traces were given for 3 kernels"):
        TraceSimplex(np.ones(2)).support(np.ones(3))
    start = TraceSimplex(TRACES).start(5)
    np.testing.assert_allclose((TRACES * start)[:4], 0.2)


def test_trace_simplex_is_the_simplex_after_unit_trace_scaling():
    gains = np.array([3.0, 1.0, 2.0])
    traces = np.array([2.0, 1.0, 5.0])
    assert TraceSimplex(traces).support(gains) == Simplex().support(gains / traces)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_quadratic_programs_are_solved_to_full_precision(seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((5, 5))
    quadratic, linear = factor @ factor.T, -rng.uniform(0.1, 2, 5)
    for domain in DOMAINS:
        x = minimize_quadratic(linear, quadratic, domain)
        assert x.min() >= 0
        assert domain.gauge(x) <= 1 + 1e-9
        gains = -(linear + quadratic @ x)
        # On the boundary: gains of the best interior point are all negative otherwise.
        if (gains > 0).any() and gains @ x > 0:
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
