"""Every solver on support vector machines: values within the sum of the gaps, gaps true."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from manykernels.domains import Product, TraceSimplex, lp_domain
from manykernels.solvers import SOLVERS, Newton
from manykernels.solvers.base import certify
from tests.machines import LOSSES, check_feasible, machine, primal_optimum, stacks
from tests.problems import region_factors, slow, takes

PS = [1.0, 1 + 2.0**-6, 1.5, 2.0, np.inf]
M = 30
STACKS = stacks(M)
TOLERANCES = {"sip": 1e-3, "silp": 1e-3}
# Methods for any loss need not converge in the time of a test; here only their gaps must be true.
MOST_ITERATIONS = {"analytic": 15, "sip": 10, "silp": 10, "reduced-gradient": 5}


@cache
def optimum(kind, stack, p):
    loss = machine(kind, STACKS[stack])
    solution = Newton().solve(loss, lp_domain(p), tol=1e-7)
    # Where rounding errors limit C, the certificate says so, and its gap is that of the limit.
    assert (
        solution.certificate.rel_gap <= 1e-5
        or "the most that rounding" in solution.certificate.note
    )
    return solution.certificate


def raised(loss):
    """By how much a loss that learns C may raise its first weight, out of the domain."""
    if not loss.spec.learns_reg:
        return 0.0
    return 1e-9 * loss.kernels.kernels.row_diag.mean(axis=1).max()


def check(name, loss, domain, best, max_iter=None):
    tol = TOLERANCES.get(name, 1e-6)
    solution = SOLVERS[name]().solve(loss, domain, tol=tol, max_iter=max_iter)
    found = solution.certificate
    outside = raised(loss)
    rounding = 1e-8 * abs(best.primal) + 2.0 * outside * solution.evaluation.gains[0]
    assert abs(found.primal - best.primal) <= found.gap + best.gap + rounding
    assert found.dual <= best.primal + rounding
    assert solution.weights.min() >= 0.0
    assert domain.gauge(solution.weights) <= 1.0 + 1e-8 + outside * domain.gauge(
        np.eye(loss.n_kernels)[0]
    )
    check_feasible(loss, solution.evaluation)
    point = loss.evaluate(solution.weights)
    again = certify(point, domain, tol)
    assert again.primal <= found.primal + point.slack + rounding
    assert again.primal >= found.dual - rounding
    gaps = [step.certificate.gap for step in solution.history]
    assert min(gaps) >= -rounding
    assert (np.diff(gaps) <= rounding).all(), "the best gap never grows"
    return solution


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_values_agree_with_newton_within_the_gaps(name, kind):
    for stack, matrices in STACKS.items():
        for p in PS[::2] if name in MOST_ITERATIONS else PS:
            loss, domain = machine(kind, matrices), lp_domain(p)
            if takes(name, loss.spec, domain):
                best = optimum(kind, stack, p)
                solution = check(name, loss, domain, best, MOST_ITERATIONS.get(name))
                if name not in MOST_ITERATIONS:
                    # Of the others, those with p near 1 or kernels of any scale may be slow.
                    limit = 1e-6 if stack == "plain" else 1e-3
                    assert solution.certificate.rel_gap <= limit, (stack, p)
            else:
                with pytest.raises(ValueError, match=f"solver='{name}' .*; solver='newton'"):
                    SOLVERS[name]().solve(loss, domain)


def priced(kind):
    matrices = STACKS["plain"]
    loss = machine(kind, matrices)
    prices = np.trace(matrices, axis1=1, axis2=2)
    if loss.spec.learns_reg:
        prices = np.concatenate([[M], prices])
    return loss, TraceSimplex(prices)


@pytest.mark.parametrize("kind", LOSSES)
def test_prices_of_the_trace_simplex(kind):
    loss, domain = priced(kind)
    best = Newton().solve(loss, domain, tol=1e-8).certificate
    able = [name for name in SOLVERS if takes(name, loss.spec, domain)]
    assert {"newton", "sip"} <= set(able)
    for name in able:
        check(name, priced(kind)[0], domain, best, MOST_ITERATIONS.get(name))


@pytest.mark.parametrize("name", ["interleaved", "smo-mkl", "qcqp"])
def test_an_observer_can_stop_them(name):
    domain = lp_domain(1.0 if name == "qcqp" else 1.5)
    seen = []

    def stop_at_once(progress):
        seen.append(progress)
        return True

    loss = machine("three outputs", STACKS["plain"])
    solution = SOLVERS[name]().solve(loss, domain, tol=1e-9, observer=stop_at_once)
    assert len(seen) == solution.n_iter == 1
    assert np.isfinite(solution.certificate.gap)


CONIC = [("hinge", p) for p in (1.0, 1.5, 2.0, np.inf)]
CONIC += [(kind, p) for kind in ("squared hinge", "epsilon", "one class") for p in (1.0, 2.0)]


@pytest.mark.parametrize(("kind", "p"), CONIC)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_optimum_is_that_of_the_primal(kind, p):
    matrices = stacks(60)["plain"]
    value = primal_optimum(kind, matrices, p)
    domain = lp_domain(p)
    spec = machine(kind, matrices).spec
    able = [n for n in ("newton", "interleaved", "smo-mkl", "qcqp") if takes(n, spec, domain)]
    assert len(able) >= 2
    for name in able:
        found = SOLVERS[name]().solve(machine(kind, matrices), domain, tol=1e-6).certificate
        assert found.converged, name
        assert abs(found.primal - value) <= found.gap + 1e-6 * abs(value), name


# -- regions ---------------------------------------------------------------------------------

N_REGIONS = 3


def regional_matrices(m, n_kernels=4):
    factors = region_factors(N_REGIONS, m)
    base = stacks(m)["plain"][:n_kernels]
    return np.array([np.outer(own, own) * K for own in factors for K in base])


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if "joint" not in kind])
@pytest.mark.parametrize("p", [*slow(1.0), 1.5, *slow(np.inf)], ids=lambda p: f"p={p:g}")
def test_weights_of_regions(kind, p):
    loss, domain = machine(kind, regional_matrices(M, 2)), Product(lp_domain(p), N_REGIONS)
    best = Newton().solve(loss, domain, tol=1e-8).certificate
    assert best.rel_gap <= 1e-6
    able = [name for name in SOLVERS if takes(name, loss.spec, domain)]
    assert set(able) == {"newton", "analytic", "sip", "interleaved"}
    for name in able:
        solution = check(name, loss, domain, best, MOST_ITERATIONS.get(name))
        if name not in MOST_ITERATIONS:
            assert solution.certificate.rel_gap <= 1e-3
    for name in sorted(set(SOLVERS) - set(able)):
        with pytest.raises(ValueError, match=f"solver='{name}' .*; solver='newton'"):
            SOLVERS[name]().solve(loss, domain)


def test_c_is_not_learnt_with_weights_of_regions():
    loss = machine("joint squared hinge", regional_matrices(M, 2))
    with pytest.raises(ValueError, match=r"weights of several regions.*no other solver"):
        Newton().solve(loss, Product(lp_domain(2.0), N_REGIONS))


REGIONAL_CONIC = [("hinge", p) for p in (1.0, 1.5, np.inf)]
REGIONAL_CONIC += [("squared hinge", 2.0), ("epsilon", 1.0), ("one class", 2.0)]


@pytest.mark.parametrize(("kind", "p"), REGIONAL_CONIC)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_optimum_of_regions_is_that_of_the_primal(kind, p):
    matrices = regional_matrices(40, 3)
    value = primal_optimum(kind, matrices, p, N_REGIONS)
    solution = Newton().solve(machine(kind, matrices), Product(lp_domain(p), N_REGIONS), tol=1e-6)
    found = solution.certificate
    assert found.converged
    assert abs(found.primal - value) <= found.gap + 1e-6 * abs(value)
