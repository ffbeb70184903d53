"""The benchmark of many kernels, on few of them."""

from __future__ import annotations

from benchmarks import many_kernels
from benchmarks._tables import measured_with
from benchmarks.many_kernels import TOL, page, problems, ratios, solve
from manykernels.solvers import SIP, Newton


def test_solvers_agree_and_the_page_tells(monkeypatch):
    monkeypatch.setattr(many_kernels, "SEEDS", range(1))
    rows = [
        solve(name, make, 1.0, solver)
        for name, make in problems(200, 20).items()
        for solver in (Newton(), SIP())
    ]
    for row in rows:
        assert row.rel_gap <= TOL
    assert all(0 < row.largest < 200 for row in rows[::2])
    fits = many_kernels.run_duplicates(quick=True)
    assert fits[0].n_missed == 0
    environment = measured_with()
    results = {
        "kernels": {"environment": environment, "rows": [vars(row) for row in rows]},
        "duplicates": {"environment": environment, "fits": [vars(fit) for fit in fits]},
    }
    text = page(results)
    assert ratios(rows) in text
    assert text.count("| MKSVC") == 2
