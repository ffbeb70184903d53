"""The benchmark of the path on a small problem, end to end."""

from __future__ import annotations

import numpy as np

from benchmarks._command import with_environment
from benchmarks._problems import Problem
from benchmarks.path import TOL, Choice, Cost, measure, page
from manykernels import KernelStack
from tests.problems import labels_for, random_gram_matrices


def test_costs_and_choices_of_a_small_problem():
    stack = KernelStack.from_arrays(random_gram_matrices(3, 60, rank=5))
    problem = Problem("small", "Small", stack, labels_for(60, 3))
    ps, regs = np.array([1.0, 2.0, np.inf]), np.array([0.1, 1.0])
    results = with_environment({"small": measure(problem, ps, regs)})
    folds, closed = costs = [Cost(**cost) for cost in results["small"]["costs"]]
    assert folds.worst_gap <= 100 * TOL
    assert closed.worst_gap <= TOL
    for cost in costs:
        assert cost.n_points == 6
        assert cost.n_inner_solves >= 6
        assert cost.fits > 0
    choices = [Choice(**choice) for choice in results["small"]["choices"]]
    assert {choice.p for choice in choices} <= {"1", "2", "inf"}
    text = page(results)
    assert text.count("the grid costs") == 2
    assert text.count("bound 80") == 1
    assert text.count("times faster") == 2
