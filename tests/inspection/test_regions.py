"""The picture of kernel weights by region."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manykernels import MKSVC, ConvexLocalizedSVC
from manykernels.inspection import RegionWeightsDisplay
from tests.estimators.registry import PAIRS, X, Y


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_every_weight_has_a_cell():
    model = ConvexLocalizedSVC(PAIRS, regions=2, sharpness=4.0).fit(X, Y)
    display = RegionWeightsDisplay.from_estimator(model)
    (image,) = display.ax_.get_images()
    np.testing.assert_array_equal(image.get_array(), model.weights_)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == [f"{weight:.2f}" for weight in model.weights_.ravel()]
    names = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert names == model.kernel_names_
    rows = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert rows == [f"{i} ({size:.0%})" for i, size in enumerate(model.region_sizes_)]
    display.figure_.canvas.draw()


def test_on_given_axes_and_for_one_class():
    model = ConvexLocalizedSVC(PAIRS, regions=2, multi_class="separate").fit(X, Y)
    _, ax = plt.subplots()
    display = RegionWeightsDisplay.from_estimator(model, ax=ax, which=2)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.weights, model.weights_[2])


def test_an_estimator_without_regions_has_no_such_picture():
    with pytest.raises(ValueError, match="MKSVC has no regions"):
        RegionWeightsDisplay.from_estimator(MKSVC(PAIRS).fit(X, Y))
