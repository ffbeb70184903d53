"""Machines are measured the same way for all contenders, on small problems."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks import _command, _svm_outer, _svm_sets, _svm_single, svm
from manykernels.solvers import SILP, SOLVERS, Analytic, Newton


def silent(line):
    pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No compilation, few repetitions and no long walks."""
    monkeypatch.setattr(_svm_single, "first_solves", lambda: (3.0, 0.5, 2e-4))
    monkeypatch.setattr(_svm_single, "_REPEATS", 1)
    monkeypatch.setattr(_svm_single, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(_svm_outer, "LEAST_BUDGET", 0.2)
    monkeypatch.setattr(_svm_outer, "PATIENCE", 1.0)


def row(solver="newton", *, C=1.0, p="1", n_solves=5, seconds=1.0, gap=1e-5):
    return _svm_outer.Row(C, p, solver, n_solves, seconds, gap)


def run(seconds, n_steps=100, gap=1e-4):
    return _svm_single.Run(seconds, n_steps, gap)


def made_duel(**changes):
    cold = _svm_single.Duel("small", 1.0, 10, run(1.0), run(2.0), 0.5, run(0.5), run(2.0))
    return replace(cold, **changes)


# -- one kernel ----------------------------------------------------------------------------


def test_both_programs_solve_the_same_machine():
    machine = _svm_sets.synthetic_machine(quick=True)
    duel = _svm_single.duel(machine, 1.0)
    for result in (duel.cold, duel.libsvm, duel.warm, duel.libsvm_changed):
        assert 0.0 <= result.rel_gap < 1e-2
        assert result.n_steps > 0
    assert duel.warm.n_steps < duel.cold.n_steps


def test_gap_of_libsvm_is_that_of_its_own_dual_variables():
    machine = _svm_sets.synthetic_machine(quick=True)
    problem = _svm_single.program(machine.signs, 1.0)
    gaps = [
        _svm_single.libsvm_gap(
            SVC(kernel="precomputed", tol=tol).fit(machine.K, machine.signs), machine.K, problem
        )
        for tol in (1e-1, 1e-8)
    ]
    assert gaps[1] < 1e-8 < gaps[0]


def test_the_part_of_scikit_learn_is_left_out_of_the_second_ratio():
    duel = made_duel()
    assert duel.ratio == 0.5
    assert duel.loop_ratio == pytest.approx(1.0 / 1.5)
    assert duel.speedup == 4.0
    assert duel.loop_speedup == 3.0


def test_worst_figures_are_told():
    slow = made_duel(machine="slow", C=100.0, cold=run(3.0), warm=run(1.5))
    cold, warm = _svm_single.verdicts([made_duel(), slow])
    assert "worst 1.50 (slow, C = 100): MISSED" in cold
    assert "worst 1.33 (slow, C = 100): MISSED" in warm
    cold, warm = _svm_single.verdicts([made_duel()])
    assert "at most 1.3 asked, worst 0.50 (small, C = 1): held" in cold
    assert "at least 2 asked, worst 4.00 (small, C = 1): held" in warm


def test_compilation_is_measured_in_processes_of_their_own(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(_svm_single, "_FIRST_SOLVE", "print(2.0); print(1.0)")
    assert _svm_single.first_solves() == (2.0, 2.0, 1.0)


def test_the_program_of_the_first_solve_runs(capsys):
    exec(_svm_single._FIRST_SOLVE, {})
    assert len(capsys.readouterr().out.split()) == 2


# -- several kernels -----------------------------------------------------------------------


def test_every_contender_that_the_package_has_is_run(problem):
    names = [solver.name for solver in _svm_outer.contenders()]
    assert {"silp", "reduced-gradient", "analytic", "silp, weights alone"} <= set(names)
    assert ("interleaved" in names) == ("interleaved" in SOLVERS)
    rows = _svm_outer.run_others(problem, [1.0], silent)
    assert [row.solver for row in rows] == ["newton", *names]
    assert rows[0].reached


def test_several_classes_make_several_machines(problem):
    three = replace(problem, labels=np.arange(40) % 3)
    assert _svm_sets.signs_of(problem).shape == (40, 1)
    assert (_svm_sets.signs_of(three).sum(axis=1) == -1).all()
    assert all(row.reached for row in _svm_outer.run_newton(three, [1.0], [2.0], silent))


def test_a_walk_without_time_is_stopped(problem):
    stopped = _svm_outer.solve(Analytic(), problem, 1.0, 1.0, budget=0.0)
    assert not stopped.reached
    assert stopped.n_solves == 1
    assert "stopped after" in stopped.end
    result = _svm_outer.Result("small", "small: title", [row()], [row(), stopped])
    assert "≥ " in _svm_outer.others_table(result)


def test_solvers_take_turns_and_those_that_fail_only_one(problem, monkeypatch):
    rows = {
        "newton": [row(seconds=0.3), row(seconds=0.1), row(seconds=0.2)],
        "silp": [row("silp", gap=1e-2)],
    }
    called = []

    def solve(solver, problem, C, p, budget):
        called.append(solver.name)
        return rows[solver.name].pop(0)

    monkeypatch.setattr(_svm_outer, "solve", solve)
    newton, silp = _svm_outer.in_turn([Newton(), SILP()], problem, 1.0, 1.0, silent)
    assert called == ["newton", "silp", "newton", "newton"]
    assert newton.seconds == 0.1
    assert not silp.reached


def test_too_many_solves_and_gaps_not_reached_are_told(problem):
    cells = [row(), row(p="2", n_solves=15), row(C=100.0, gap=1e-2)]
    line = _svm_outer.verdicts([_svm_outer.Result("small", "small: title", cells, [])])[0]
    assert "worst 15 (small, C = 1, p = 2): MISSED in 2 of 3 cells" in line
    assert "not reached: small, C = 100, p = 1, gap 1.0e-02" in line
    line = _svm_outer.verdicts([_svm_outer.Result("small", "small: title", cells[:1], [])])[0]
    assert line.endswith("at most 12 asked, worst 5 (small, C = 1, p = 1): held")


def test_ratios_to_newton_beside_their_bounds(problem):
    others = [
        row(),
        row("silp", n_solves=40, seconds=4.0),
        row("reduced-gradient", seconds=9.0, gap=1e-3),
        row("analytic", seconds=2.0),
    ]
    result = _svm_outer.Result("small", "small: title", [row()], others)
    lines = {line.split()[0]: line for line in _svm_outer.verdicts([result])}
    silp, simple, analytic = (lines[name] for name in ("silp", "reduced-gradient", "analytic"))
    assert "at least 5 asked, worst 4.00 (small, C = 1: 40 solves, 4 s;" in silp
    assert "MISSED in 1 of 1 cells" in silp
    assert "worst 9.00" in simple
    assert "held; median 9.0; 1 of 1 did not reach the gap" in simple
    assert "worst 2.00" in analytic
    assert "asked" not in analytic


# -- command line --------------------------------------------------------------------------


@pytest.mark.slow
def test_from_the_command_line_to_the_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    assert svm.main(["--quick", "--sets", "synthetic", "--write"]) == 0
    page = (tmp_path / "svm.md").read_text(encoding="utf-8")
    shown = capsys.readouterr().out
    for text in (page, shown):
        assert "3 s of the processor where the loops have to be compiled" in text
        assert "20 columns one by one (120 samples, 20 kernels, 2 classes)" in text
        for bound in ("SMO cold", "SMO warm", "Newton, SVM solves", "silp at p = 1"):
            assert bound in text
    assert "K' = 0.97 K + 0.03 K₂" in page


def test_digits_need_no_data():
    problem = _svm_sets.digits(quick=True)
    assert problem.stack.shape == (120, 120, 10)
    assert problem.n_classes == 10


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert svm.main(["--sets", "satimage", "sonar"]) == 1
    shown = capsys.readouterr()
    assert "Skipped: satimage." in shown.err
    assert "Skipped: sonar." in shown.err
