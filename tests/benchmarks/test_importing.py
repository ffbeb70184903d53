"""The benchmark of imports runs every statement in an interpreter of its own, and reports it."""

import pytest

from benchmarks import _command, importing
from benchmarks.importing import BOUNDS, Row


def test_time_is_that_of_the_other_process():
    assert importing.seconds_of("pass") >= 0
    with pytest.raises(importing.subprocess.CalledProcessError):
        importing.seconds_of("raise SystemExit(3)")


def test_page(monkeypatch, tmp_path, capsys):
    times = {importing.REFERENCE: 1.0, "import manykernels": 1.2}
    monkeypatch.setattr(importing, "seconds_of", lambda statement: times.get(statement, 2.0))
    machines = iter([2.5, 0.25])
    monkeypatch.setattr(importing, "_first_machine", lambda cache: next(machines))
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    assert importing.main(["--quick", "--write"]) == 0
    page = (tmp_path / "importing.md").read_text(encoding="utf-8")
    assert page in capsys.readouterr().out
    assert page == importing.page(_command.read_results("importing"))
    assert all(f"`{statement}`" in page for statement in BOUNDS)
    assert "1.20" in page
    assert "held" in page
    assert "2.50" in page
    assert "0.25" in page
    assert "MISSED" in page


def test_a_missed_bound_is_reported():
    assert Row("import manykernels", 1.5, 1.0).cells[-1] == "MISSED"
    assert Row("import manykernels", 1.3, 1.0).cells[-1] == "held"


@pytest.mark.slow
def test_the_second_process_finds_the_compiled_loops(tmp_path):
    cold, warm = (importing._first_machine(str(tmp_path)) for _ in range(2))
    assert cold > warm > 0.0
    assert list(tmp_path.rglob("*.nbi"))
