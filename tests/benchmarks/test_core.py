"""The benchmark measures what it says, on small problems."""

import numpy as np
import pytest

from benchmarks import _command, core
from manykernels import rbf_grid


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    X = rng.standard_normal((60, 4)) + labels[:, None]
    return core.Problem("small", "a small problem", rbf_grid([1, 2, 4]).fit(X)(X), labels)


def test_single_kernel_fda_solves_the_centred_system(problem):
    H = np.random.default_rng(1).standard_normal((60, 2))
    P = np.eye(60) - 1 / 60
    K = P @ problem.stack.combine(np.ones(3)) @ P
    np.testing.assert_allclose(
        core.single_kernel_fda(problem.stack, H, 0.1), np.linalg.solve(np.eye(60) + K / 0.1, H)
    )


def test_peak_memory_is_counted_in_doubles():
    assert 5000 <= core.peak_doubles(lambda: np.ones(5000)) < 6000


def test_functions_are_timed_in_turn(monkeypatch):
    monkeypatch.setattr(core, "_LEAST_SECONDS", 0.0)
    calls = []
    times = core.best_times(lambda: calls.append("a"), lambda: calls.append("b"))
    assert calls == ["a", "b"] * 3
    assert min(times) >= 0


def test_tables_and_verdicts(problem, monkeypatch):
    monkeypatch.setattr(core, "_LEAST_SECONDS", 0.0)
    result = core.run(problem, [1.0, np.inf], [0.01, 1.0])
    assert max(cell.rel_gap for cell in result.cells) <= core.TOL
    assert len(core.table(result).splitlines()) == 4
    text = core.page(_command.with_environment({"small": {"result": result}}))
    assert "bound 1e-06: held" in text
    assert "small: a small problem (60 samples, 3 kernels, 3 classes)" in text
    assert "| inf " in text


def test_a_missed_bound_is_reported_as_missed():
    cells = [core.Cell("1", 1.0, rel_gap=1e-5, n_inner_solves=9, ratio=11.0)]
    line = core.verdicts(core.Result("small", "small: title", 60, 3, 3, cells, 20.0, 1.0))
    assert line.count("MISSED") == 5
    assert "held" not in line


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert core.main(["--quick", "--sets", "sonar"]) == 1
    assert "UCI Machine Learning Repository" in capsys.readouterr().err


def test_unknown_sets_are_refused(capsys):
    with pytest.raises(SystemExit):
        core.main(["--sets", "sonar,moonar"])
    assert "unknown: moonar" in capsys.readouterr().err
