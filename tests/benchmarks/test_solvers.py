"""The judge of the benchmark of solvers against known answers, and its tables."""

import time

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks import _command, solvers
from benchmarks import _solvers_runner as runner
from manykernels.solvers import SOLVERS


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=["hinge", "square"])
def problem(request, rng):
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 4)) + y[:, None]
    kernels = np.array([np.outer(column, column) + 0.1 * np.eye(40) for column in X.T])
    targets = np.where(y, 1.0, -1.0)[:, None]
    return solvers.Problem("small", request.param, kernels, targets, 1.0, 0.5)


# -- the judge -----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_optimal_weights_have_no_gap(problem, p):
    problem = solvers.replace(problem, p=p)
    weights, dual = solvers.ours("newton", problem, 1e-9, 10.0)
    assert 0.0 <= problem.rel_gap(weights) + 1e-12 < 1e-7
    assert problem.rel_gap(weights, dual, enough=1e-7) < 1e-7


def test_the_gap_bounds_the_distance_from_the_optimum(problem, rng):
    weights, _ = solvers.ours("newton", problem, 1e-9, 10.0)

    def value(weights):
        K = np.tensordot(weights, problem.kernels, 1)
        return problem._upper(K, problem._inner(K))

    best = value(weights)
    for other in rng.dirichlet(np.ones(4), size=5):
        distance = (value(other) - best) / value(other)
        assert problem.rel_gap(other) >= distance - 1e-8
    # Weights are taken for what they are: half of the best are worse.
    assert problem.rel_gap(0.5 * weights) > 1e-3


def test_dual_variables_do_not_fool_the_judge(problem, rng):
    weights = np.full(4, 0.25)
    honest = problem.rel_gap(weights)
    assert honest > 1e-4
    for dual in (1e3 * rng.standard_normal((40, 1)), np.full((40, 1), np.nan), np.zeros((40, 1))):
        assert problem.rel_gap(weights, dual, enough=1e-6) <= honest * (1 + 1e-6)
        assert problem.rel_gap(weights, dual, enough=1e-6) > 0.5 * honest


@pytest.mark.parametrize("weights", [[-0.1, 0.5, 0.3, 0.3], [0.0] * 4, [np.nan] * 4])
def test_invalid_weights_have_an_infinite_gap(problem, weights):
    assert problem.rel_gap(np.array(weights)) == np.inf


def test_weights_outside_the_ball_are_scaled(problem):
    weights = np.full(4, 0.25)
    assert problem.rel_gap(3.0 * weights) == pytest.approx(problem.rel_gap(weights))


def test_the_machine_of_the_judge_is_that_of_libsvm(problem):
    K = np.tensordot(np.full(4, 0.25), problem.kernels, 1)
    y = problem.targets[:, 0]
    v = solvers._machine(K, y, 0.5)
    model = SVC(kernel="precomputed", C=0.5, tol=1e-8).fit(K, y)
    expected = np.zeros(40)
    expected[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(v, expected, atol=1e-5)


def test_feasible_variables(rng):
    signs = np.where(rng.random((30, 2)) < 0.5, 1.0, -1.0)
    v = solvers._feasible(3.0 * rng.standard_normal((30, 2)), signs, 0.7)
    np.testing.assert_allclose(v.sum(axis=0), 0.0, atol=1e-12)
    assert np.all(signs * v >= 0.0)
    assert np.all(signs * v <= 0.7 + 1e-12)


# -- methods -------------------------------------------------------------------------------------


def arguments_of(problem, p):
    return problem.kernels, problem.targets, problem.loss, p, problem.strength, 1e-4, 10.0


@pytest.mark.parametrize("method", ["cvxpy", "SLSQP"])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_peers_reach_the_optimum(problem, method, p):
    weights, dual = runner.METHODS[method](*arguments_of(problem, p))
    assert solvers.replace(problem, p=p).rel_gap(weights, dual) < 1e-4


def test_simple_mkl_reaches_the_optimum_of_sparse_machines(problem):
    machine = solvers.replace(problem, p=1.0, loss="hinge")
    weights, dual = runner.METHODS["SimpleMKL"](*arguments_of(machine, 1.0))
    assert machine.rel_gap(weights, dual) < 1e-4
    for p, loss in ((2.0, "hinge"), (1.0, "square")):
        with pytest.raises(NotImplementedError):
            runner.METHODS["SimpleMKL"](*arguments_of(solvers.replace(problem, loss=loss), p))


def test_every_solver_is_run_or_says_why_not(problem):
    for name in SOLVERS:
        results = list(solvers.run_method(solvers.METHODS[name], problem))
        assert results[-1]["end"].startswith("refused: ") or results[0]["end"] in (
            "solved",
            "gap",
            "too slow",
        )


def test_a_method_that_takes_too_long_or_fails_has_no_result():
    def endless():
        while True:
            pass

    begin = time.process_time()
    assert runner.limited(endless, 0.1) == {"result": None, "seconds": 0.1}
    assert time.process_time() - begin < 1.0
    assert runner.limited(lambda: 1 / 0, 0.1)["result"] is None
    assert runner.limited(lambda: "answer", 1.0)["result"] == "answer"


def test_a_failure_ends_the_tolerances(problem):
    def poor(problem, tol, limit):
        return np.full(4, 0.25), None

    results = list(solvers.run_method(poor, problem))
    assert results[-1]["end"] == "gap"
    assert len(results) < len(solvers.TOLERANCES)


def test_a_peer_in_its_own_process(problem):
    ((first, *_),) = solvers.run_peer("SLSQP", [problem])
    assert first["end"] == "solved"
    assert first["seconds"] > 0


def test_a_library_that_is_not_there(problem, monkeypatch):
    monkeypatch.delenv("MANYKERNELS_HIMALAYA", raising=False)
    assert solvers.run_peer("himalaya", [problem]) is None


# -- the page ------------------------------------------------------------------------------------


def test_shifted_geometric_mean():
    assert solvers.shifted_mean([2.0, 2.0]) == pytest.approx(2.0)
    expected = np.sqrt((1.0 + solvers.SHIFT) * (3.0 + solvers.SHIFT)) - solvers.SHIFT
    assert solvers.shifted_mean([1.0, 3.0]) == pytest.approx(expected)


def test_failures_and_refusals_count_as_the_limit():
    good = [{"tol": 1e-2, "seconds": 0.5, "gap": 0.0, "end": "solved"}]
    bad = [{"tol": 1e-2, "seconds": 0.5, "gap": 0.3, "end": "gap"}]
    methods = {"a": {"hinge, p = 1": good, "hinge, p = 2": bad, "square, p = 1": good}}
    methods["b"] = {"hinge, p = 1": [{"end": "refused: why"}], "square, p = 1": good}
    results = {"easy": {"limit": 3.0, "methods": methods}}
    assert solvers.times(results, "a", 1e-2, "hinge") == ([0.5, 3.0], 1)
    assert solvers.times(results, "a", 1e-4, "hinge") == ([3.0, 3.0], 0)
    assert solvers.times(results, "b", 1e-2, "hinge") == ([3.0], 0)
    table = solvers.ranking(results, ["b", "a"], "hinge")
    assert "1 of 2" in table.splitlines()[2]
    assert "| b" not in table  # it solves none


def test_from_the_command_line_to_the_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    assert solvers.main(["--quick", "--methods", "newton", "sip", "--write"]) == 0
    page = (tmp_path / "solvers.md").read_text(encoding="utf-8")
    assert "| newton" in page
    assert "Not measured: SimpleMKL" in page
    assert page == solvers.page(_command.read_results("solvers"))
