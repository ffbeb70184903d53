"""All solvers are measured the same way, on small problems."""

import re

import numpy as np
import pytest

from benchmarks import _command, solvers
from manykernels.discriminant import fisher_targets
from manykernels.domains import lp_domain
from manykernels.kernels.transforms import preparation
from manykernels.losses.square import SquareLoss
from manykernels.solvers import SIP, SOLVERS, Analytic, Newton


@pytest.fixture
def fresh_loss(problem):
    stack = preparation(None).fit_transform(problem.stack)
    targets = fisher_targets(problem.labels, np.bincount(problem.labels).astype(float))
    return lambda: SquareLoss(stack, targets, solvers.REG)


def row(solver, *, p=1.0, n_inner_solves=10, seconds=1.0, gap=1e-5, end=""):
    return solvers.Row(p, solver, n_inner_solves, seconds, gap, gap, end)


def test_every_solver_is_run_or_says_why_not(problem):
    result = solvers.run(problem, [1.0, 2.0], say=lambda line: None)
    tried = {row.solver for row in result.rows if row.p == 1.0}
    refused = {text.split()[0] for text in result.refusals if re.search(r"\(p = 1[,)]", text)}
    assert tried | refused == {*SOLVERS, "sip, weights alone"}
    assert not tried & refused
    assert all(row.reached and row.seconds >= 0 for row in result.rows)
    assert "- dual works for p > 1 only (p = 1)" in solvers.section(result)


def test_a_walk_without_time_is_stopped(fresh_loss):
    stopped = solvers.solve(Analytic(), fresh_loss(), lp_domain(1.0), 1.0, budget=0.0)
    assert not stopped.reached
    assert stopped.n_inner_solves == 1
    assert f"stopped after 0 s at gap {stopped.rel_gap:.1e}" in solvers.table([stopped])


def test_a_walk_that_ends_in_time_keeps_what_its_solver_says(fresh_loss):
    ended = solvers.solve(SIP(eps=0.5), fresh_loss(), lp_domain(1.0), 1.0, budget=60.0)
    assert not ended.reached
    assert ended.gap_of_weights >= ended.rel_gap
    assert r"\|1 − S/θ\| is" in solvers.table([ended])


def test_solvers_take_turns_and_slow_ones_only_one(fresh_loss, monkeypatch):
    seconds = {"newton": [3.0, 1.0, 2.0], "sip": [9.0]}
    called = []

    def solve(solver, loss, domain, p, budget):
        called.append(solver.name)
        return row(solver.name, seconds=seconds[solver.name].pop(0))

    monkeypatch.setattr(solvers, "solve", solve)
    rows = solvers.in_turn(
        [Newton(), SIP()], fresh_loss, lp_domain(1.0), 1.0, 60.0, lambda line: None
    )
    assert called == ["newton", "sip", "newton", "newton"]
    assert [(row.solver, row.seconds) for row in rows] == [("newton", 2.0), ("sip", 9.0)]


def test_ratios_of_cutting_planes_to_newton_steps(problem):
    rows = [row("newton", n_inner_solves=4), row("sip", n_inner_solves=60, seconds=9.0)]
    line = solvers.comparison(solvers.Result(problem, rows, []))
    assert "time 9.0 (9 s / 1 s; bound 10: MISSED)" in line
    assert "inner solves 15.0 (60 / 4; bound 10: held)" in line


def test_a_solver_that_did_not_converge_is_reported(problem):
    rows = [row("newton"), row("sip", seconds=60.0, gap=1e-2)]
    line = solvers.comparison(solvers.Result(problem, rows, []))
    assert "time at least 60.0" in line
    assert "sip did not get there, its gap was 1.0e-02" in line


def test_other_norms_are_not_compared(problem):
    line = solvers.comparison(solvers.Result(problem, [row("sip", p=2.0)], []))
    assert line == "small: p = 1 was not run with sip and newton"


def test_from_the_command_line_to_the_page(problem, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    monkeypatch.setitem(solvers.PROBLEMS, "sonar", lambda: problem)
    assert solvers.main(["--quick", "--sets", "sonar", "--write"]) == 0
    page = (tmp_path / "solvers.md").read_text(encoding="utf-8")
    assert "small: a small problem (40 samples, 3 kernels, 2 classes)" in page
    assert "small: sip/newton at p = 1" in page
    assert "small: sip/newton at p = 1" in capsys.readouterr().out


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert solvers.main(["--sets", "sonar"]) == 1
    assert "Skipped: sonar." in capsys.readouterr().err
