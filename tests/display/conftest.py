"""Pictures are drawn without a screen, and nothing is left open."""

import matplotlib as mpl
import pytest


@pytest.fixture(autouse=True)
def without_screen():
    before = mpl.get_backend()
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    yield
    plt.close("all")
    mpl.use(before)
