"""What holds of every test and of every example in a docstring."""

import os
import signal
import sys

import pytest

# Pictures are drawn without a screen. It is read when matplotlib is imported, which is later.
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(autouse=True, scope="session")
def interruptions_are_exceptions():
    """Of tests and of processes that they start, also if a shell runs them in the background.

    Such a shell ignores SIGINT, and what it starts inherits this.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Examples leave their figures open, as users do; the next test begins without them."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
