"""Benchmarks are not part of the package: their tests wait for `make test-slow`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks._problems import Problem
from manykernels import KernelStack


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    X = rng.standard_normal((40, 3)) + np.outer(labels, [1.0, 1.2, 0.8])
    stack = KernelStack.from_arrays([np.outer(column, column) for column in X.T])
    return Problem("small", "a small problem", stack, labels)
