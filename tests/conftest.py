"""How the suite draws random cases, and where its workers keep compiled code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# Numba keeps the index and the code of a function in two files. Two processes that compile one
# function for different arguments at once can leave an index that names the other's code, so
# each worker has a folder of its own. It is read when numba is imported, which is later.
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER is not None:
    caches = Path(__file__).parents[1] / ".pytest_cache" / "numba"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(caches / WORKER))

# Nothing depends on how fast the machine happens to be.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same cases every time, for `make test`; others every time, for `make explore`. What that
# finds is added to the test by @example.
settings.register_profile("fixed", untimed, derandomize=True, database=None)
settings.register_profile("explore", untimed, print_blob=True)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
settings.load_profile(PROFILE)
ROUNDS = int(os.environ.get("EXPLORE_ROUNDS", "20"))


@pytest.fixture(scope="session")
def exploration_round(request):
    """Number of the round; each draws as many cases as the test asks for, all of them new."""
    return request.param


def pytest_generate_tests(metafunc):
    """Repeat tests with random cases while exploring: their own numbers of cases are small."""
    if PROFILE == "explore" and is_hypothesis_test(metafunc.function):
        metafunc.fixturenames.append("exploration_round")
        metafunc.parametrize("exploration_round", range(ROUNDS), indirect=True)
