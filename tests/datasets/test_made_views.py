"""make_views: the model it documents, which views matter, gaps, and frames in any order."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score

from manykernels import MKFDA, MKRidge, Views
from manykernels.datasets import make_views


def test_names_shapes_and_classes():
    views, y, relevant = make_views(
        50, n_classes=3, n_relevant=2, n_copies=1, n_noise=2, n_features=4, random_state=0
    )
    assert views.names == ["signal1", "signal2", "copy1", "noise1", "noise2"]
    assert relevant == ["signal1", "signal2"]
    assert {table.shape for _, table in views.items()} == {(50, 4)}
    assert np.bincount(y).tolist() == [17, 17, 16]
    assert y.tolist() != sorted(y)


def test_relevant_views_tell_classes_apart_and_noise_does_not():
    views, y, relevant = make_views(600, n_copies=1, signal=2.0, random_state=0)
    for name in views.names:
        score = cross_val_score(LogisticRegression(), views[name], y, cv=3).mean()
        assert (score > 0.75) if name in (*relevant, "copy1") else (score < 0.6), name


def test_relevant_views_tell_the_value_and_noise_does_not():
    views, y, relevant = make_views(600, n_classes=None, n_copies=1, random_state=0)
    for name in views.names:
        score = cross_val_score(Ridge(), views[name], y, cv=3).mean()
        # With x = s y u + ε, the best linear rule explains s²/(1 + s²) of the variance, 0.69.
        if name in (*relevant, "copy1"):
            assert score == pytest.approx(2.25 / 3.25, abs=0.1), name
        else:
            assert score < 0.05, name


def test_moments_are_those_of_the_model():
    signal, d = 2.0, 5
    squares = []
    for seed in range(40):
        views, y, _ = make_views(
            4000, n_relevant=1, n_noise=1, n_features=d, signal=signal, random_state=seed
        )
        x = views["signal1"]
        means = np.array([x[y == c].mean(axis=0) for c in (0, 1)])
        squares.append(np.sum((means[0] - means[1]) ** 2))
        if seed == 0:
            assert_allclose(np.cov((x - means[y]).T), np.eye(d), atol=0.1)
            assert_allclose(np.cov(views["noise1"].T), np.eye(d), atol=0.1)
    assert np.mean(squares) == pytest.approx(2 * signal**2, rel=0.3)


def test_copies_have_the_inner_products_of_what_they_copy():
    views, _, _ = make_views(30, n_relevant=2, n_copies=3, random_state=0)
    for copy, original in (("copy1", "signal1"), ("copy2", "signal2"), ("copy3", "signal1")):
        z, x = views[original], views[copy]
        assert_allclose(x @ x.T, z @ z.T, atol=1e-10)
        assert not np.allclose(x, z)


def test_what_is_added_leaves_the_rest_as_it_was():
    options = {"n_samples": 40, "random_state": 5, "spread": 10.0}
    plain, y, _ = make_views(**options)
    more, y_more, _ = make_views(n_relevant=4, n_copies=2, n_noise=5, **options)
    gaps, y_gaps, _ = make_views(missing=0.2, **options)
    for name in plain.names:
        assert_array_equal(plain[name], more[name])
        assert_array_equal(plain[name][gaps.has(name)], gaps[name])
    assert_array_equal(y, y_more)
    assert_array_equal(y, y_gaps)
    other, _, _ = make_views(n_samples=40, random_state=6)
    assert not np.array_equal(plain["signal1"], other["signal1"])


def test_factors_lie_in_their_range():
    one, _, _ = make_views(20, n_copies=3, n_noise=20, random_state=0)
    scaled, _, _ = make_views(20, n_copies=3, n_noise=20, spread=100.0, random_state=0)
    factors = np.array([(scaled[name] / one[name])[0, 0] for name in one.names])
    for name, factor in zip(one.names, factors, strict=True):
        assert_allclose(scaled[name], factor * one[name])
    assert 1 / 100 <= factors.min() < 1 / 5
    assert 5 < factors.max() <= 100


@pytest.mark.parametrize("frames", [False, True])
def test_the_share_that_lacks_each_view(frames):
    views, y, _ = make_views(200, missing=0.25, n_noise=4, frames=frames, random_state=0)
    present = (Views(views, join="outer") if frames else views).present
    assert present.shape == (200, 7)
    assert present.mean(axis=0).tolist() == [0.75] * 7
    assert len(y) == 200
    assert present.any(axis=1).all()


def test_every_sample_keeps_a_view():
    views, _, _ = make_views(100, missing=0.9, n_relevant=1, n_noise=1, random_state=0)
    assert views.present.any(axis=1).all()
    assert (~views.present).mean() < 0.9


def test_frames_hold_the_same_values_in_orders_of_their_own():
    arrays, y, _ = make_views(30, random_state=1)
    frames, target, relevant = make_views(30, frames=True, random_state=1)
    assert isinstance(target, pd.Series)
    assert_array_equal(target, y)
    assert relevant == ["signal1", "signal2", "signal3"]
    orders = {tuple(frame.index) for frame in frames.values()}
    assert len(orders) == len(frames)
    for name, frame in frames.items():
        assert_array_equal(frame.loc[target.index], arrays[name])
        assert frame.columns[0] == f"{name}_0"


def test_estimators_take_them_and_find_what_matters():
    views, y, relevant = make_views(150, n_noise=5, missing=0.1, random_state=2)
    frames, target, _ = make_views(150, n_noise=5, missing=0.1, frames=True, random_state=2)
    one = MKFDA("linear", p=1, missing="mean").fit(views, y)
    other = MKFDA("linear", p=1, missing="mean").fit(frames, target)
    assert_allclose(one.weights_, other.weights_, atol=1e-4)
    found = dict(zip(views.names, one.weights_, strict=True))
    assert min(found[name] for name in relevant) > max(
        weight for name, weight in found.items() if name not in relevant
    )


def test_regression_with_several_views():
    views, y, _ = make_views(150, n_classes=None, random_state=0)
    assert MKRidge("linear").fit(views, y).score(views, y) > 0.7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 1}, "n_samples must be at least 2; got 1"),
        ({"n_classes": 1}, "n_classes must be at least 2; got 1"),
        ({"n_classes": 300}, "n_classes is 300, more than n_samples, 200"),
        ({"n_noise": -1}, "n_noise must be at least 0; got -1"),
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_relevant": 0, "n_noise": 0}, "There must be at least one view"),
        ({"n_relevant": 0, "n_copies": 1}, "at least one relevant view if there are copies"),
        ({"missing": 1.0}, r"missing must be a share in \[0, 1\); got 1.0"),
        ({"missing": -0.1}, "missing must be a share"),
        ({"spread": 0.5}, "spread must be a number of at least 1; got 0.5"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_views(**options)
