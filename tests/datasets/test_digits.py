import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels.datasets import load_digit_views
from manykernels.datasets.views import _fourier, _gradients, _profiles
from tests.problems import some_slow

COLUMNS = {
    "pixels": 64,
    "rows": 16,
    "columns": 16,
    "gradients": 32,
    "fourier": 13,
    "coarse": 16,
}


@pytest.fixture(scope="module")
def images():
    return load_digits().images


@pytest.fixture(scope="module")
def views():
    return load_digit_views()[0]


def test_names_shapes_and_labels():
    views, y = load_digit_views(noise=2)
    assert list(views) == [*COLUMNS, "noise1", "noise2"]
    for name, view in views.items():
        assert view.shape == (1797, COLUMNS.get(name, 16))
        assert view.dtype == np.float64
        assert np.isfinite(view).all()
    np.testing.assert_array_equal(y, load_digits().target)


def test_two_calls_agree_and_do_not_share_memory():
    first, _ = load_digit_views(noise=1, random_state=3)
    second, _ = load_digit_views(noise=1, random_state=3)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
        assert not np.shares_memory(first[name], second[name])


def test_noise_depends_on_the_seed_only():
    one, _ = load_digit_views(noise=1, random_state=0)
    three, _ = load_digit_views(noise=3, random_state=0)
    other, _ = load_digit_views(noise=1, random_state=1)
    np.testing.assert_array_equal(one["noise1"], three["noise1"])
    assert not np.array_equal(one["noise1"], other["noise1"])
    assert not np.array_equal(three["noise1"], three["noise2"])
    np.testing.assert_array_equal(one["pixels"], other["pixels"])


def test_noise_is_standard_normal_and_independent_of_the_digit():
    views, y = load_digit_views(noise=1)
    noise = views["noise1"]
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)
    correlation = np.corrcoef(noise.T, np.eye(10)[y].T)[:16, 16:]
    assert np.abs(correlation).max() < 5 / np.sqrt(len(y))


def test_sums_agree_across_views(views):
    ink = views["pixels"].sum(axis=1)
    np.testing.assert_allclose(views["rows"][:, :8].sum(axis=1), ink)
    np.testing.assert_allclose(views["columns"][:, :8].sum(axis=1), ink)
    np.testing.assert_allclose(4 * views["coarse"].sum(axis=1), ink)
    np.testing.assert_allclose(views["fourier"][:, 0], ink)


def test_each_row_sum_is_that_of_its_pixels(views, images):
    for i in range(8):
        np.testing.assert_array_equal(views["rows"][:, i], images[:, i, :].sum(axis=1))
        np.testing.assert_array_equal(views["columns"][:, i], images[:, :, i].sum(axis=1))


def test_width_of_a_drawn_row():
    image = np.zeros((1, 8, 8))
    image[0, 1, 2] = image[0, 1, 6] = 5
    image[0, 4, 7] = 1
    np.testing.assert_array_equal(_profiles(image)[0, 8:], [0, 5, 0, 0, 1, 0, 0, 0])


def test_first_coarse_value_is_the_mean_of_the_corner(views, images):
    np.testing.assert_allclose(views["coarse"][:, 0], images[:, :2, :2].mean(axis=(1, 2)))
    np.testing.assert_allclose(views["coarse"][:, -1], images[:, 6:, 6:].mean(axis=(1, 2)))


@pytest.mark.parametrize("shift", [(1, 0), (0, 3), (5, 2)])
def test_fourier_does_not_see_a_cyclic_shift(images, shift):
    shifted = np.roll(images, shift, axis=(1, 2))
    np.testing.assert_allclose(_fourier(shifted), _fourier(images), atol=1e-10)


def test_fourier_columns_are_not_copies_of_one_another(views):
    correlation = np.corrcoef(views["fourier"].T)
    np.fill_diagonal(correlation, 0)
    assert correlation.max() < 0.999


def test_gradients_keep_the_total_length(images):
    down, right = np.gradient(images, axis=(1, 2))
    total = np.sqrt(down**2 + right**2).sum(axis=(1, 2))
    np.testing.assert_allclose(_gradients(images).sum(axis=1), total)


def test_gradients_do_not_see_a_constant(images):
    np.testing.assert_allclose(_gradients(images + 7), _gradients(images), atol=1e-10)


def test_gradients_of_a_ramp_point_one_way():
    ramp = np.broadcast_to(np.arange(8.0), (1, 8, 8))
    expected = np.zeros((4, 8))
    expected[:, 0] = 16  # 16 pixels in each quarter, slope 1, pointing right
    np.testing.assert_allclose(_gradients(ramp)[0].reshape(4, 8), expected)
    expected = np.roll(expected, 2, axis=1)  # pointing down
    np.testing.assert_allclose(_gradients(ramp.transpose(0, 2, 1))[0].reshape(4, 8), expected)


def test_gradients_turn_with_the_image(images):
    """A quarter turn moves the four cells and shifts the eight directions by two."""
    turned = _gradients(np.rot90(images, axes=(1, 2))).reshape(-1, 2, 2, 8)
    moved = np.rot90(_gradients(images).reshape(-1, 2, 2, 8), axes=(1, 2))
    np.testing.assert_allclose(turned, np.roll(moved, -2, axis=3), atol=1e-10)


@pytest.mark.parametrize("name", some_slow(COLUMNS, "rows", "columns", "gradients"))
def test_every_view_tells_digits_apart_and_noise_does_not(name):
    views, y = load_digit_views(noise=1)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    assert cross_val_score(model, views[name], y, cv=3).mean() > 0.5
    assert cross_val_score(model, views["noise1"], y, cv=3).mean() < 0.2


@pytest.mark.parametrize(("noise", "error"), [(-1, ValueError), (1.5, TypeError)])
def test_noise_must_be_a_count(noise, error):
    with pytest.raises(error, match=r"noise must be|integer"):
        load_digit_views(noise=noise)
