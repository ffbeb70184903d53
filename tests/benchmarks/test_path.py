"""The benchmark of the path on a small problem, end to end."""

from __future__ import annotations

import numpy as np

from benchmarks._problems import Problem
from benchmarks.path import compare_choices, measure_cost, page
from manykernels import KernelStack
from tests.problems import labels_for, random_gram_matrices


def test_costs_and_choices_of_a_small_problem():
    stack = KernelStack.from_arrays(random_gram_matrices(3, 60, rank=5))
    problem = Problem("small", "Small", stack, labels_for(60, 3))
    ps, regs = np.array([1.0, 2.0, np.inf]), np.array([0.1, 1.0])
    cost = measure_cost(problem, ps, regs)
    assert cost.n_points == 6
    assert cost.n_factorizations >= 6
    assert cost.worst_gap <= 1e-5
    assert cost.fits > 0
    choices = compare_choices(problem, ps, regs)
    assert [choice.p in ps for choice in choices] == [True, True]
    text = page(problem, cost, choices)
    assert "The grid costs" in text
    assert "times faster" in text
