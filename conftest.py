"""What holds of every test and of every example in a docstring."""

import os
import sys

import pytest

# Pictures are drawn without a screen. It is read when matplotlib is imported, which is later.
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Examples leave their figures open, as users do; the next test begins without them."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
