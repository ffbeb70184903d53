"""What estimators and observers may rely on, of every solver."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels.domains import lp_domain
from manykernels.solvers import SOLVERS, Newton
from manykernels.solvers.base import Problem, Solver, as_solver, refuse_unfit
from tests.problems import SQUARE_SOLVERS, random_gram_matrices, square_loss, takes


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_declares_what_estimators_read(name):
    solver = SOLVERS[name]()
    assert solver.name == name
    assert as_solver(name) == as_solver(solver) == solver
    assert solver.default_max_iter >= 1
    assert solver.by_columns == (solver.cache_bytes > 0)


class Bare:
    """An object with a method `solve`, and nothing else."""

    def solve(self, loss, domain, **options):
        return Newton().solve(loss, domain, **options)


class ByColumns(Bare):
    name, default_max_iter, by_columns, cache_bytes = "mine", 7, True, 1000


def test_objects_with_a_method_solve_get_the_defaults_of_a_solver():
    loss, domain = square_loss(random_gram_matrices(3, 20), 2), lp_domain(2)
    solver = as_solver(Bare())
    assert isinstance(solver, Solver)
    assert (solver.name, solver.default_max_iter) == ("bare", Solver.default_max_iter)
    assert not solver.by_columns
    refuse_unfit(solver, Problem(loss.spec, domain, 1e-6))
    assert solver.solve(loss, domain, tol=1e-6).certificate.converged
    own = as_solver(ByColumns())
    assert (own.name, own.default_max_iter, own.by_columns) == ("mine", 7, True)
    assert own.cache_bytes == 1000
    assert not {"bare", "mine"} & set(SOLVERS)


@pytest.mark.parametrize("given", ["simplex", None, 3, Newton, Bare])
def test_anything_else_is_refused_with_the_known_names(given):
    with pytest.raises(ValueError, match=r"solver must be one of .*'analytic'.*'sip'.* got "):
        as_solver(given)


@pytest.mark.parametrize("name", SQUARE_SOLVERS)
def test_observers_see_every_iteration_in_order(name):
    loss = square_loss(random_gram_matrices(4, 30), 2)
    domain = lp_domain(1.0 if takes(name, loss.spec, lp_domain(1.0)) else 1.5)
    seen = []
    solution = SOLVERS[name]().solve(loss, domain, tol=1e-4, max_iter=10, observer=seen.append)
    assert [step.iteration for step in seen] == list(range(solution.n_iter))
    assert seen[:-1] == solution.history[:-1]
    last, final = seen[-1].certificate, solution.history[-1].certificate
    assert last.primal == pytest.approx(final.primal, rel=1e-9)
    assert final == solution.certificate
    assert (np.diff([step.n_inner_solves for step in seen]) >= 0).all()


def test_what_an_observer_raises_reaches_the_caller():
    def fails(progress):
        raise KeyError(progress.iteration)

    loss = square_loss(random_gram_matrices(3, 20), 2)
    with pytest.raises(KeyError, match="0"):
        Newton().solve(loss, lp_domain(2), observer=fails)


class Overdoing(Solver):
    """Records weights outside of the domain."""

    name = "overdoing"

    def _minimize(self, loss, domain, run, start):
        run.record(loss.evaluate(3.0 * domain.start(loss.n_kernels)))


def test_weights_are_certified_in_the_domain():
    loss, domain = square_loss(random_gram_matrices(3, 20), 2), lp_domain(2.0)
    solution = Overdoing().solve(loss, domain)
    assert domain.gauge(solution.weights) == pytest.approx(1.0)
    assert solution.certificate.primal == pytest.approx(loss.evaluate(solution.weights).value)
    assert solution.certificate.gap >= 0.0
